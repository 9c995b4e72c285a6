// Subscriptions over sockets that are fakes, on a clock that is one: when a connection is made again, from where, and
// what comes of the events.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { Linkspan } from "../linkspan/src/browser.js";

/** Sockets that were opened, the oldest first. */
let sockets = [];
/** What `GET /api/me` is answered with. */
let me;

class FakeSocket {
  sent = [];
  isClosed = false;
  onopen = null;
  onmessage = null;
  onclose = null;
  onerror = null;

  constructor(url, protocols) {
    Object.assign(this, { url, protocols });
    sockets.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
  }

  open() {
    this.onopen({});
    return this;
  }

  say(...messages) {
    for (const it of messages) this.onmessage({ data: JSON.stringify(it) });
  }

  lose(code = 1006, reason = "") {
    return this.onclose({ code, reason });
  }
}
const fetch = async () =>
  me instanceof Error ? Promise.reject(me) : new Response(JSON.stringify(me.body ?? {}), { status: me.status });

const client = () => new Linkspan({ url: "http://host:1/", token: "secret", WebSocket: FakeSocket, fetch });
const event = (seq, session = "s") => ({ v: 1, seq, session, engine: "x", origin: "agent", type: "run.started", data: {} });
const last = () => sockets.at(-1);
/** Lets promises settle; they do not depend on the clock. */
const settle = async () => {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
};

async function take(subscription, n) {
  const taken = [];
  while (taken.length < n) taken.push((await subscription.next()).value);
  return taken;
}

beforeEach(() => {
  sockets = [];
  me = { status: 200 };
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  mock.method(Math, "random", () => 0);
});

afterEach(() => {
  mock.timers.reset();
  mock.restoreAll();
});

test("a page offers its token as a subprotocol, and asks for what it has not", async () => {
  client().subscribe({ session: "s", since: "7.1", format: "thread", output: "full" });
  const { url, protocols, sent } = last().open();
  assert.equal(url, "ws://host:1/ws?format=thread&output=full&subscribe=none");
  assert.deepEqual(protocols, ["linkspan", "token.secret"]);
  assert.deepEqual(sent, [{ control: "subscribe", sessionId: "s", since: "7.1", requestId: 1 }]);
});

test("a lost connection goes on behind the last event, and none comes twice", async () => {
  const events = client().subscribe({ session: "s" });
  last().open().say({ type: "bridge.subscribed", requestId: 1 }, event(1), event(2));
  last().lose();
  assert.equal(events.state, "waiting");
  mock.timers.tick(249);
  assert.equal(sockets.length, 1);
  mock.timers.tick(1);
  assert.equal(sockets.length, 2);
  last().open().say(event(2), event(3));
  assert.equal(last().sent[0].since, 2);
  // The first one is nobody's any more.
  sockets[0].say(event(4));
  assert.deepEqual(await take(events, 3), [event(1), event(2), event(3)]);
});

test("pauses grow while nothing comes, and begin anew when something has", async () => {
  client().subscribe({ session: "s" });
  const pauses = [];
  for (const comes of [false, false, false, true, false]) {
    const socket = last().open();
    if (comes) socket.say(event(1));
    socket.lose();
    const n = sockets.length;
    let ms = 0;
    for (; sockets.length === n; ms += 50) mock.timers.tick(50);
    pauses.push(ms);
  }
  assert.deepEqual(pauses, [250, 500, 1000, 250, 500]);
});

test("cursors such as 7.1 are sent back as the texts they are", async () => {
  const events = client().subscribe({ session: "s", format: "thread" });
  const message = (cursor) => ({ sessionId: "s", cursor, type: "turn.started" });
  last().open().say(message(6), message("7.1"), message("7.9"), message("7.10"), message("7.9"));
  last().lose();
  mock.timers.tick(250);
  last().open();
  assert.equal(last().sent[0].since, "7.10");
  assert.deepEqual(await take(events, 4), [message(6), message("7.1"), message("7.9"), message("7.10")]);
});

test("a question that waits is told once, however often the server tells it", async () => {
  const events = client().subscribe({ session: "s", format: "thread" });
  const row = { sessionId: "s", replayed: true, type: "item.started", item: { id: "ask_3", ask_id: "s:3" } };
  const ask = { sessionId: "s", replayed: true, type: "bridge.ask", askId: "s:3" };
  const settled = { sessionId: "s", cursor: 4, type: "bridge.ask_settled", askId: "s:3" };
  last().open().say(row, ask);
  last().lose();
  mock.timers.tick(250);
  last().open().say(row, ask, settled);
  assert.deepEqual(await take(events, 3), [row, ask, settled]);
});

for (const status of [401, 403, 421]) {
  test(`an answer of ${status} ends it`, async () => {
    const events = client().subscribe({ session: "s" });
    me = { status, body: { error: { code: "refused", message: "no", hint: "do so" } } };
    await last().lose();
    await assert.rejects(events.next(), { name: "LinkspanError", code: "refused", message: "no", hint: "do so", status });
    assert.deepEqual(await events.next(), { value: undefined, done: true });
    mock.timers.tick(60_000);
    assert.equal(sockets.length, 1);
  });
}

test("a server that is not there, or is not well, is tried again", async () => {
  const states = [];
  client().subscribe({ session: "s", onState: (state, error) => states.push([state, error?.code]) });
  me = new TypeError("fetch failed");
  await last().lose();
  await settle();
  mock.timers.tick(250);
  me = { status: 503 };
  await last().lose();
  await settle();
  mock.timers.tick(500);
  last().open().say({ type: "bridge.subscribed", requestId: 1 });
  assert.deepEqual(states, [
    ["waiting", "unreachable"],
    ["connecting", undefined],
    ["waiting", "unknown"],
    ["connecting", undefined],
    ["open", undefined],
  ]);
});

test("a revoked token and a session that is not there end it", async () => {
  const events = client().subscribe({ session: "s" });
  last().open();
  await last().lose(1008, "the token was revoked");
  await assert.rejects(events.next(), { code: "forbidden", message: "the token was revoked" });
  const other = client().subscribe({ session: "nobody" });
  last().open().say({ type: "bridge.error", code: "no_such_session", message: "none", requestId: 1 });
  await assert.rejects(other.next(), { code: "no_such_session" });
});

test("a connection that was refused may tell its error alone", async () => {
  const events = client().subscribe({ session: "s" });
  me = { status: 401, body: { error: { code: "unauthorized", message: "no" } } };
  last().onerror({});
  await assert.rejects(events.next(), { code: "unauthorized" });
});

test("a silent connection is dead after fifty seconds", () => {
  client().subscribe({ session: "s" });
  const socket = last().open();
  mock.timers.tick(20_000);
  assert.deepEqual(socket.sent.at(-1), { control: "echo" });
  socket.say({ type: "bridge.echo" });
  mock.timers.tick(40_000);
  assert.equal(socket.isClosed, false);
  mock.timers.tick(20_000);
  assert.equal(socket.isClosed, true);
  mock.timers.tick(250);
  assert.equal(sockets.length, 2);
});

test("whoever falls behind is disconnected, and goes on when all is consumed", async () => {
  const events = client().subscribe({ session: "s" });
  const socket = last().open();
  for (let seq = 1; seq <= 1030; seq += 1) if (!socket.isClosed) socket.say(event(seq));
  assert.equal(events.state, "paused");
  assert.equal((await take(events, 1023)).at(-1).seq, 1023);
  assert.equal(sockets.length, 1);
  await take(events, 1);
  assert.equal(sockets.length, 2);
  last().open().say(event(1025));
  assert.equal(last().sent[0].since, 1024);
  assert.deepEqual(await take(events, 1), [event(1025)]);
});

test("all sessions are noted first, and followed from there", async () => {
  const events = client().subscribe();
  last().open().say({ type: "bridge.subscribed", requestId: "begin", at: 1000 }, event(9, "old"));
  const page = (ids, next) => ({
    type: "bridge.sessions", requestId: "list", next, sessions: ids.map((id) => ({ id, head: 9 })),
  });
  last().say(page(["old"], "more"), page(["older"], "more"));
  const { sent } = last();
  assert.deepEqual(sent, [
    { control: "subscribe", requestId: "begin" },
    { control: "sessions", limit: 500, requestId: "list" },
    { control: "sessions", limit: 500, after: "more", requestId: "list" },
    { control: "subscribe", since: { old: 9, older: 9 }, newSince: 1000, requestId: "follow" },
  ]);
  last().say({ type: "bridge.subscribed", requestId: "follow" }, event(9, "old"), event(10, "old"), event(1, "new"));
  last().lose();
  mock.timers.tick(250);
  last().open();
  assert.deepEqual(last().sent, [
    { control: "subscribe", since: { old: 10, older: 9, new: 1 }, newSince: 1000, requestId: "follow" },
  ]);
  assert.deepEqual(await take(events, 2), [event(10, "old"), event(1, "new")]);
});

test("close, the signal, leaving the loop and the client's end all close the socket", async () => {
  const own = client();
  const abort = new AbortController();
  const [a, b, c] = [own.subscribe({ session: "s" }), own.subscribe({ session: "s", signal: abort.signal }), own.subscribe()];
  const waiting = a.next();
  a.close();
  assert.deepEqual(await waiting, { value: undefined, done: true });
  abort.abort();
  await own.close();
  assert.deepEqual([a.state, b.state, c.state], ["closed", "closed", "closed"]);
  const left = client().subscribe({ session: "s" });
  last().open().say(event(1), event(2));
  for await (const it of left) {
    assert.equal(it.seq, 1);
    break;
  }
  assert.deepEqual(sockets.map((it) => it.isClosed), [true, true, true, true]);
  assert.throws(() => own.subscribe({ session: "s" }), { code: "closed" });
  mock.timers.tick(60_000);
  assert.equal(sockets.length, 4);
});
