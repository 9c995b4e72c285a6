// What survives a bad connection and a crash, and what else a server offers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { claude, collect, connect, cuttingWay, server } from "./harness.mjs";

test("a prompt whose answer is lost is sent again and run once", async () => {
  const way = cuttingWay(1);
  // The server takes the prompt, and not a byte of its answer gets through, three times.
  let n = 0;
  way.budget = () => ((n += 1) <= 3 ? 0 : undefined);
  const before = (await connect().sessions()).sessions.length;
  const run = connect({ url: way.url }).run(claude("once only"));
  assert.equal((await run.result()).answer, "once only");
  assert.equal(way.nCuts, 3);
  const { sessions } = await connect().sessions();
  assert.equal(sessions.length, before + 1);
  const { runs } = await connect().session((await run.submitted).session);
  assert.equal(runs.length, 1);
});

test("a prompt that is given twice under one key is run once", async () => {
  const client = connect();
  const idempotencyKey = "the same";
  const [a, b] = await Promise.all([1, 2].map(() => client.submit(claude("twice"), { idempotencyKey })));
  assert.deepEqual(a, b);
  await server.idle(a.session);
  // Also long after its end, in a session that has gone on.
  const late = claude("and later", { session: a.session });
  const [first, second] = [await client.run(late, { idempotencyKey: "later" }).result(), await client.run(late, { idempotencyKey: "later" }).result()];
  assert.deepEqual(first, second);
  await assert.rejects(client.submit(claude("another"), { idempotencyKey }), { code: "key_reused" });
});

test("all sessions are followed over cuts, old and new ones", async () => {
  const client = connect();
  const old = (await client.run(claude("before")).submitted).session;
  await server.idle(old);
  const { head } = await client.session(old);
  const way = cuttingWay(7);
  const events = connect({ url: way.url }).subscribe({ onState: (it) => it === "open" && opened() });
  let opened = () => {};
  await new Promise((done) => (opened = done));
  const sessions = [
    (await client.submit(claude("words 40", { session: old }))).session,
    (await client.submit(claude("words 60"))).session,
    (await client.submit(claude("words 80"))).session,
  ];
  assert.equal(sessions[0], old);
  let nEnds = 0;
  const seen = await collect(events, (it) => it.type === "run.ended" && (nEnds += 1) === 3);
  assert.ok(way.nCuts >= 4, `there were ${way.nCuts} cuts`);
  for (const session of sessions) {
    const own = seen.filter((it) => it.session === session);
    const first = session === old ? head : 0;
    assert.deepEqual(own, (await server.events(session)).slice(first, first + own.length));
    assert.ok(own.some((it) => it.type === "run.ended"));
  }
  assert.deepEqual([...new Set(seen.map((it) => it.session))].sort(), sessions.sort());
});

test("a session that comes to life while there is no connection is told from where it was", async () => {
  const client = connect();
  const { session } = await client.run(claude("sleeper")).submitted;
  await server.idle(session);
  const { head } = await client.session(session);
  const way = cuttingWay(1, 0);
  let opened;
  const isOpen = new Promise((done) => (opened = done));
  const events = connect({ url: way.url }).subscribe({ onState: (it) => it === "open" && opened() });
  await isOpen;
  way.isShut = true;
  way.cutAll();
  await client.run(claude("awake", { session })).result();
  way.isShut = false;
  const seen = await collect(events, (it) => it.session === session && it.type === "run.ended");
  const own = seen.filter((it) => it.session === session);
  assert.deepEqual(own, (await server.events(session)).slice(head, head + own.length));
});

test("changes of the list are told", async () => {
  const client = connect();
  const changes = client.changes();
  assert.deepEqual((await changes.next()).value, { type: "bridge.sessions_changed" });
  const { session } = await client.submit(claude("listed"));
  const isDone = (it) => it.type === "bridge.session" && it.session.id === session && it.session.state === "idle";
  const seen = await collect(changes, isDone);
  assert.equal(seen.at(-1).session.title, "listed");
});

test("what else a server offers", async () => {
  const client = connect();
  const run = client.run(claude("picture"));
  const { session } = await run.submitted;
  const events = await collect(run);
  const tool = events.find((it) => it.type === "item.closed" && it.data.item.kind === "tool");
  const me = await client.me();
  assert.deepEqual([me.id, me.role], [null, "admin"]);
  const { engines, replays } = await client.engines();
  assert.ok(engines.some((it) => it.name === "claude" && it.installed));
  assert.ok(replays.some((it) => it.name === "replay:tools"));
  assert.deepEqual(await client.events(session, { after: 2, limit: 3 }), (await server.events(session)).slice(2, 5));
  assert.match(await client.export(session, "markdown"), /picture/);
  assert.equal(await (await client.file(session, "notes.md")).text(), "what the picture shows\n");
  assert.equal(await (await client.output(session, tool.data.item.id)).text(), "wrote plot.png, notes.md and leak.txt");
  const { sessions, next } = await client.sessions({ limit: 1 });
  assert.deepEqual([sessions.length, typeof next], [1, "string"]);
  await server.idle(session);
  await client.removeSession(session);
  await assert.rejects(client.session(session), { code: "no_such_session", status: 404 });
});

test("a server that is killed and started again costs no event", async () => {
  const client = connect();
  const { session } = await client.submit(claude("wait"));
  const events = client.subscribe({ session });
  const first = await take(events, (it) => it.type === "session.bound");
  await server.stop("SIGKILL");
  await server.start();
  const rest = await collect(events, (it) => it.type === "run.ended");
  assert.equal(rest.at(-1).data.outcome, "lost");
  assert.deepEqual([...first, ...rest], (await server.events(session)).slice(0, first.length + rest.length));
});

/** Like `collect`, and the subscription goes on. */
async function take(events, isLast) {
  const all = [];
  do all.push((await events.next()).value);
  while (!isLast(all.at(-1)));
  return all;
}
