// The page in a real browser, against the real server.
//
//   cargo build --package linkspan --package scripted-model && node web/tests/serve.mjs [WORD…]
//
// `LINKSPAN`, `SCRIPTED_MODEL` and `LINKSPAN_AGENTS` name other programs than those in target/debug and
// peers/agents, `CHROMIUM` another browser. With words, only the scenes of these files are played.

import { readdirSync } from "node:fs";

import { Server } from "./server.mjs";
import { finish } from "./stage.mjs";

const FOLDER = new URL("serve/", import.meta.url);
const words = process.argv.slice(2);

const server = await new Server().start();
for (const name of readdirSync(FOLDER).sort()) {
  if (words.length > 0 && !words.some((it) => name.startsWith(it))) continue;
  const { play } = await import(new URL(name, FOLDER));
  await play(server);
}
await server.leave();
await finish();
