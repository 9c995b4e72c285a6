// One state per session, whatever order messages and replies come in; and prompts that are on their way.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Story } from "../assets/fold.js";
import { Pending } from "../assets/pending.js";
import { Store } from "../assets/store.js";

const session = (state, id = "a") => ({ id, state });

test("a watcher is called for what it watches, with the last state", () => {
  const store = new Store({ open: "", n: 0 });
  const seen = [];
  store.watch((it) => [it.open], ({ open, n }) => {
    seen.push(`${open} ${n}`);
    // A change from inside is drawn after this one.
    if (n === 1) store.update({ open: "b", n: 2 });
  });
  store.watch((it) => [it], ({ open, n }) => seen.push(`any ${open} ${n}`));
  store.update({ n: 0 });
  store.update({ open: "a", n: 1 });
  assert.deepEqual(seen, ["any  0", "a 1", "any b 2", "b 2"]);
  assert.equal(store.version, 3);
});

test("a reply counts unless the socket has spoken since it was asked for", () => {
  const store = new Store({});
  const asked = store.version;
  assert.equal(store.reply(session("running"), asked).state, "running");
  store.message(session("idle"));
  assert.equal(store.reply(session("running"), asked).state, "idle");
  assert.equal(store.reply(session("running"), store.version).state, "running");
  assert.equal(store.reply(session("running", "b"), asked).state, "running");
});

test("every order of messages and replies ends with the last state", () => {
  // The server's states, in order; each is told by a message, and some are read by a reply.
  const states = ["idle", "starting", "running", "waiting", "running", "idle"];
  for (let readAt = 0; readAt < states.length; readAt += 1) {
    for (let askedAfter = 0; askedAfter <= readAt; askedAfter += 1) {
      for (let arrivesAfter = readAt; arrivesAfter <= states.length; arrivesAfter += 1) {
        const store = new Store({});
        let shown = "";
        let asked;
        for (let n = 0; n <= states.length; n += 1) {
          if (n === askedAfter) asked = store.version;
          if (n === arrivesAfter) shown = store.reply(session(states[readAt]), asked).state;
          if (n === states.length) break;
          store.message(session(states[n]));
          shown = states[n];
        }
        assert.equal(shown, "idle", `read at ${readAt}, asked after ${askedAfter}, arrived after ${arrivesAfter}`);
      }
    }
  }
});

let seq = 0;
const event = (type, data) => ({ v: 1, seq: (seq += 1), session: "s", origin: "client", type, data });
const said = (text) => event("item.closed", { status: "ok", item: { kind: "message", id: `m${seq}`, role: "user", text } });

/** A story, and one prompt on its way. */
function sent(prompt, engine = "claude") {
  seq = 0;
  const story = new Story("s");
  const pending = new Pending();
  const row = pending.add({ prompt, engine, isBusy: false, after: 0 });
  return { story, pending, row };
}

test("a prompt goes when its event comes, before or after the answer", () => {
  const { story, pending, row } = sent("fix it");
  story.add(said("fix it\n"));
  pending.seen(story);
  assert.deepEqual(pending.rows, []);
  pending.accept(row, { position: 0 });
  assert.deepEqual(pending.rows, []);
});

test("a prompt told in other words goes once it is accepted", () => {
  const { story, pending, row } = sent("/review");
  story.add(said("Please review"));
  pending.seen(story);
  assert.deepEqual(pending.rows, [row]);
  pending.accept(row, { position: 0 });
  pending.seen(story);
  assert.deepEqual(pending.rows, []);
});

test("two equal prompts are shown by two events", () => {
  const { story, pending, row } = sent("again");
  const second = pending.add({ prompt: "again", engine: "claude", isBusy: false, after: 0 });
  for (const it of [row, second]) pending.accept(it, { position: 0 });
  story.add(said("again"));
  pending.seen(story);
  assert.deepEqual(pending.rows, [second]);
});

test("an older prompt is not taken for a new one", () => {
  seq = 0;
  const story = new Story("s");
  story.add(said("again"));
  const pending = new Pending();
  const row = pending.add({ prompt: "again", engine: "claude", isBusy: false, after: story.cursor });
  pending.accept(row, { position: 0 });
  pending.seen(story);
  assert.deepEqual(pending.rows, [row]);
});

test("what waits for its turn is the queue's, and what was stopped is gone", () => {
  const { pending, row } = sent("later");
  pending.accept(row, { position: 2 });
  assert.deepEqual(pending.rows, []);
  const other = sent("stopped");
  other.pending.accept(other.row, { position: 0 });
  // A server that does not know of starting says idle until the agent runs.
  other.pending.state("idle");
  assert.deepEqual(other.pending.rows, [other.row]);
  other.pending.state("starting");
  other.pending.state("idle");
  assert.deepEqual(other.pending.rows, []);
});

test("a recording is on its way until it runs", () => {
  const { story, pending } = sent("Play it.", "replay:tools");
  assert.equal(pending.rows[0].prompt, "");
  story.add(event("run.started", { cause: "prompt" }));
  pending.seen(story);
  assert.deepEqual(pending.rows, []);
});
