// The package as it is packed: its files, its versions, its types for those who use it.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Server } from "../../../web/tests/server.mjs";
import { Linkspan } from "../linkspan/src/node.js";

const { WebSocket } = createRequire(new URL("../../../peers/js/", import.meta.url))("ws");
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const ROOT = at("../../../");
const PACKAGE = at("../linkspan");
const TSC = join(ROOT, "peers/js/node_modules/typescript/bin/tsc");
const ESBUILD = join(ROOT, "peers/js/node_modules/esbuild/bin/esbuild");
const JUDGES = join(ROOT, "peers/npm/node_modules");
const PLATFORM = `linkspan-${process.platform}-${process.arch}`;
const PROGRAM = process.env.LINKSPAN ?? join(ROOT, "target/debug/linkspan");

const manifest = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
const work = mkdtempSync(join(tmpdir(), "linkspan-package-"));
/** Where the package is installed from its archive. */
const app = join(work, "app");
let archive;

const node = (...words) => spawnSync(process.execPath, words, { encoding: "utf8", cwd: work });
const npm = (words, cwd) =>
  execFileSync("npm", [...words, "--offline", "--no-audit", "--no-fund", "--loglevel=error"], { cwd, encoding: "utf8" });
const pack = (folder) => join(work, JSON.parse(npm(["pack", "--json", "--pack-destination", work], folder))[0].filename);

before(() => {
  const copy = join(work, "linkspan");
  cpSync(PACKAGE, copy, { recursive: true });
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(join(ROOT, name), join(copy, name));
  archive = pack(copy);
  // As `cargo xtask dist` makes it, with a program that is not copied.
  const platform = join(work, PLATFORM);
  mkdirSync(join(platform, "bin"), { recursive: true });
  const { version } = manifest;
  writeFileSync(join(platform, "package.json"), JSON.stringify({ name: PLATFORM, version, os: [process.platform] }));
  writeFileSync(join(platform, "bin/linkspan"), `#!/bin/sh\nexec ${PROGRAM} "$@"\n`, { mode: 0o755 });
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", version: "1.0.0", private: true, type: "module" }));
  npm(["install", archive, pack(platform)], app);
});

after(() => rmSync(work, { recursive: true }));

test("the version is the workspace's, and the programs have exactly the same", () => {
  const [, version] = /\[workspace\.package\]\nversion = "(.*)"/.exec(readFileSync(join(ROOT, "Cargo.toml"), "utf8"));
  assert.equal(manifest.version, version);
  const names = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"];
  assert.deepEqual(manifest.optionalDependencies, Object.fromEntries(names.map((it) => [`linkspan-${it}`, version])));
  assert.deepEqual([manifest.dependencies, manifest.scripts], [undefined, undefined]);
});

test("the archive holds what is needed and nothing else", () => {
  const [{ files }] = JSON.parse(npm(["pack", "--dry-run", "--json"], join(work, "linkspan")));
  const below = (folder) => readdirSync(join(PACKAGE, folder)).map((it) => `${folder}/${it}`);
  const expected = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json", ...["bin", "src", "types"].flatMap(below)];
  assert.deepEqual(files.map((it) => it.path).sort(), expected.sort());
});

test("the declarations are those of the sources", () => {
  const out = join(work, "types");
  const made = node(TSC, "-p", at("../tsconfig.json"), "--outDir", out);
  assert.equal(made.status, 0, made.stdout);
  const names = readdirSync(out).sort();
  // These three are no declarations of a source.
  const committed = readdirSync(join(PACKAGE, "types")).filter((it) => !["bridge.d.ts", "index.d.ts", "wire.d.ts"].includes(it));
  if (process.env.UPDATE_EXPECT) {
    for (const it of committed) rmSync(join(PACKAGE, "types", it));
    for (const it of names) copyFileSync(join(out, it), join(PACKAGE, "types", it));
    return;
  }
  assert.deepEqual(committed.sort(), names, "UPDATE_EXPECT=1 writes them");
  for (const it of names) {
    const [made, kept] = [join(out, it), join(PACKAGE, "types", it)].map((path) => readFileSync(path, "utf8"));
    assert.equal(kept, made, `${it}: UPDATE_EXPECT=1 writes it`);
    assert.doesNotMatch(kept.replace(/\/\*[^]*?\*\//g, ""), /\bany\b/, `${it} has no any`);
  }
});

/** Compiles a program that uses the installed package; gives back the complaints. */
function compile(name, source, { resolution = "nodenext", lib = ["es2022", "dom"], types = [], skipLibCheck = false } = {}) {
  writeFileSync(join(app, name), source);
  const config = {
    compilerOptions: {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      target: "es2022",
      module: resolution === "bundler" ? "esnext" : resolution,
      moduleResolution: resolution,
      lib,
      types,
      skipLibCheck,
      typeRoots: [join(JUDGES, "@types")],
      paths: Object.fromEntries(["@openai/codex-sdk", "@modelcontextprotocol/sdk"].flatMap((it) => [[it, [join(JUDGES, it)]], [`${it}/*`, [join(JUDGES, it, "*")]]])),
    },
    files: [name],
  };
  writeFileSync(join(app, "tsconfig.json"), JSON.stringify(config));
  const { stdout } = node(TSC, "-p", join(app, "tsconfig.json"));
  return stdout.split("\n").filter((it) => it !== "");
}

const USE = `
import { Linkspan, LinkspanError, binaryPath, askId, type Event, type ThreadEvent } from "linkspan";

const client = new Linkspan({ url: "http://127.0.0.1:8787", token: "t" });
for await (const event of client.run({ prompt: "hi", engine: "claude", permissions: "ask" })) {
  if (event.type === "item.delta") event.data.text satisfies string;
  if (event.type === "ask.opened") await client.settle(event, "allow");
  if (event.type === "item.closed" && event.data.item.kind === "tool") event.data.item.class.title satisfies string;
}
for await (const it of client.subscribe({ session: "s", since: "7.1", format: "thread" })) {
  if (it.type === "bridge.ask") await client.settle(it.askId, { decision: "deny", message: "no" });
  else if (it.type === "item.completed" && it.item.type === "command_execution") it.item.exit_code satisfies number | null;
}
for await (const it of client.subscribe({ since: { s: 7 } })) it satisfies Event;
const { answer } = await client.run("hi").result();
answer satisfies string | undefined;
const spawned: Linkspan = await Linkspan.spawn({ cwd: "/" });
spawned.subscribe({ session: askId({ session: "s", seq: 1 }) });
binaryPath() satisfies string;
new LinkspanError("a", "b").isTemporary satisfies boolean;
export type Both = Event | ThreadEvent;
`;

test("the types are strict for Node, bundlers and those without the browser's library", () => {
  assert.deepEqual(compile("use.ts", USE), []);
  assert.deepEqual(compile("use.ts", USE, { resolution: "bundler" }), []);
  assert.deepEqual(compile("use.ts", USE, { lib: ["es2022"], types: ["node"] }), []);
});

test("wrong uses are refused", () => {
  const lines = [
    'client.subscribe({ session: "s", format: "takopi" });',
    'client.run({ prompt: "hi", permission: "ask" });',
    'client.settle("s:1", "yes");',
    'for await (const it of client.run("hi")) if (it.type === "run.end") break;',
    'for await (const it of client.subscribe({ session: "s" })) it.data.text;',
    "new Linkspan({});",
  ];
  const source = ['import { Linkspan } from "linkspan"; declare const client: Linkspan; export {};', ...lines].join("\n");
  const complaints = compile("wrong.ts", source).map((it) => Number(/wrong\.ts\((\d+),/.exec(it)?.[1]));
  assert.deepEqual([...new Set(complaints)].filter(Boolean), lines.map((_, at) => at + 2));
});

test("a ThreadEvent that was narrowed is one of the Codex SDK", () => {
  const narrowed = `
import type { ThreadEvent } from "@openai/codex-sdk";
import { toCodexEvent, type ThreadEvent as Ours } from "linkspan";
declare const ours: Ours;
const theirs: ThreadEvent | undefined = toCodexEvent(ours);
// Codex itself writes more than its types have, and so does linkspan.
// @ts-expect-error
const wrong: ThreadEvent = ours;
export { theirs, wrong };`;
  // The libraries behind the SDK are not ours to check.
  assert.deepEqual(compile("codex.ts", narrowed, { resolution: "bundler", types: ["node"], skipLibCheck: true }), []);
});

test("what is written has the types that are promised", () => {
  const lines = (path) => readFileSync(join(ROOT, path), "utf8").split("\n").filter((it) => it !== "");
  const threads = readdirSync(join(ROOT, "fixtures/thread")).filter((it) => /^[^.]*(\.(partial|duplex))*(\.full)?\.thread\.jsonl$/.test(it));
  assert.ok(threads.length > 5, `there are ${threads.length} recordings`);
  const source = `
import type { Event, ThreadEvent } from "linkspan";
export const events: Event[] = [${lines("fixtures/model/everything.events.jsonl").join(",\n")}];
export const thread: ThreadEvent[] = [${threads.flatMap((it) => lines(`fixtures/thread/${it}`)).join(",\n")}];`;
  assert.deepEqual(compile("written.ts", source), []);
});

test("what a server sends has the types that are promised", async () => {
  const server = await new Server().start();
  const client = new Linkspan({ url: server.url, token: server.token, WebSocket });
  const { session } = await client.submit({ prompt: "ask", engine: "claude", cwd: server.work, permissions: "ask" });
  const messages = [];
  for await (const it of client.subscribe({ session, format: "thread" })) {
    messages.push(it);
    if (it.type === "bridge.run_ended") break;
    if (it.type !== "bridge.ask") continue;
    // Whoever comes now is told again what waits.
    const late = client.subscribe({ session, format: "thread", since: it.seq });
    messages.push((await late.next()).value, (await late.next()).value);
    late.close();
    await client.settle(it.askId, "allow");
  }
  const kinds = messages.map((it) => (it.replayed ? `${it.type} again` : it.type)).filter((it) => /bridge|again/.test(it));
  assert.deepEqual(kinds, ["bridge.ask", "item.started again", "bridge.ask again", "bridge.ask_settled", "bridge.run_ended"]);
  const values = {
    "ThreadMessage[]": messages,
    SessionDetail: await client.session(session),
    Sessions: await client.sessions(),
    Engines: await client.engines(),
    Me: await client.me(),
    "Event[]": await client.events(session),
  };
  await client.close();
  await server.leave();
  const names = Object.keys(values).map((it) => it.replace("[]", ""));
  const lines = Object.entries(values).map(([type, it], at) => `export const it${at}: ${type} = ${JSON.stringify(it)};`);
  assert.deepEqual(compile("sent.ts", [`import type { ${names.join(", ")} } from "linkspan";`, ...lines].join("\n")), []);
});

test("publint and arethetypeswrong find nothing", () => {
  const linted = node(join(JUDGES, "publint/src/cli.js"), "run", archive, "--strict");
  assert.equal(linted.status, 0, linted.stdout + linted.stderr);
  // It is a module for those who `import`: CommonJS before Node 22 cannot `require` it.
  const judged = node(join(JUDGES, "@arethetypeswrong/cli/dist/index.js"), archive, "--profile", "esm-only", "--no-color");
  assert.equal(judged.status, 0, judged.stdout + judged.stderr);
});

test("a bundle for browsers holds nothing of Node", () => {
  writeFileSync(join(app, "page.js"), 'import { Linkspan } from "linkspan"; console.log(new Linkspan({ url: "http://a" }));');
  const bundle = execFileSync(ESBUILD, ["page.js", "--bundle", "--format=esm", "--platform=browser"], { cwd: app, encoding: "utf8" });
  assert.doesNotMatch(bundle, /node:/);
});

test("the installed program is found and run", () => {
  const env = { ...process.env, LINKSPAN_BIN: "" };
  const script = 'import("linkspan").then((it) => console.log(it.binaryPath()))';
  const path = execFileSync(process.execPath, ["-e", script], { cwd: app, env, encoding: "utf8" }).trim();
  assert.equal(path, join(app, "node_modules", PLATFORM, "bin/linkspan"));
  const version = execFileSync("npx", ["--offline", "linkspan", "--version"], { cwd: app, env, encoding: "utf8" });
  assert.match(version, /^linkspan \d/);
});
