// The real server for a file of tests, ways to it that cut connections, and clients that are closed in the end.
//
// `LINKSPAN` names another program than target/debug/linkspan.

import { createRequire } from "node:module";
import { after, before } from "node:test";

import { Server } from "../../../web/tests/server.mjs";
import { Linkspan } from "../linkspan/src/node.js";
import { Proxy, random } from "./proxy.mjs";

export const { WebSocket } = createRequire(new URL("../../../peers/js/", import.meta.url))("ws");

/** Ways that the server knows by name; it refuses others. */
const ways = await Promise.all(Array.from({ length: 10 }, () => new Proxy().start()));
export const server = new Server({ flags: ways.flatMap((it) => ["--origin", it.url]) });
const used = [];
const clients = [];

before(async () => {
  await server.start();
  for (const it of ways) it.target = Number(new URL(server.url).port);
});

after(async () => {
  for (const it of clients) await it.close();
  for (const it of [...ways, ...used]) it.stop();
  await server.leave();
});

/** A client with a WebSocket, unless the options say otherwise. */
export function connect(options = {}) {
  const client = new Linkspan({ url: server.url, token: server.token, WebSocket, ...options });
  clients.push(client);
  return client;
}

/** A way to the server on which the first connections are cut at random places, some bytes behind the first ones. */
export function cuttingWay(seed, nCuts = 8, most = 3000) {
  const way = ways.pop();
  used.push(way);
  const chance = random(seed);
  let nLeft = nCuts;
  way.budget = () => ((nLeft -= 1) < 0 ? undefined : 700 + Math.floor(chance() * most));
  return way;
}

/** A prompt for the agent of the tests, which does what it says. */
export const claude = (prompt, more = {}) => ({
  prompt,
  engine: "claude",
  cwd: server.work,
  permissions: "ask",
  ...more,
});

/** What comes, up to and with the last. */
export async function collect(events, isLast = () => false) {
  const all = [];
  for await (const it of events) {
    all.push(it);
    if (isLast(it)) break;
  }
  return all;
}
