// The client against the real server, over WebSocket and over server-sent events.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { WebSocket, claude, collect, connect, cuttingWay, server } from "./harness.mjs";
import { Proxy } from "./proxy.mjs";

/** Node has a WebSocket of its own from 22 on, which sends the token as a header; before, it is given one. */
const TRANSPORTS = {
  ...(globalThis.WebSocket ? { "the WebSocket of Node": { WebSocket: undefined } } : {}),
  "the WebSocket of a package": { WebSocket },
  "server-sent events": { WebSocket: undefined, transport: "sse" },
};

/** The last message of a run: with server-sent events a turn ends with its own event. */
const isEnd = (transport) => (it) =>
  it.type === "run.ended" || it.type === (transport === "sse" ? "turn.completed" : "bridge.run_ended");

for (const [name, options] of Object.entries(TRANSPORTS)) {
  describe(name, { concurrency: true }, () => {
    const client = () => connect(options);
    const isLast = isEnd(options.transport);

    test("a run gives its events, from the first to the last", async () => {
      const run = client().run(claude("hello"));
      const { session } = await run.submitted;
      const events = await collect(run);
      assert.deepEqual(events, (await server.events(session)).slice(0, events.length));
      assert.equal(events[0].type, "run.started");
      assert.equal(events.filter((it) => it.type === "run.ended").length, 1);
      assert.equal(events.at(-1).data.answer, "hello");
    });

    test("a bundled recording is played", async () => {
      const { outcome } = await client().run({ prompt: "play", engine: "replay:tools" }).result();
      assert.equal(outcome, "completed");
    });

    test("each of several prompts of one session has its own run, though all say the same", async () => {
      const own = client();
      const first = own.run(claude("words 10"));
      const { session } = await first.submitted;
      const more = [];
      for (let n = 0; n < 2; n += 1) {
        more.push(own.run(claude("again", { session })));
        await more.at(-1).submitted;
      }
      const runs = await Promise.all([first, ...more].map((it) => collect(it)));
      const named = runs.map((events) => [...new Set(events.map((it) => it.run).filter(Boolean))]);
      assert.deepEqual(named, [["r1"], ["r2"], ["r3"]]);
      assert.deepEqual(runs.map((it) => it.at(-1).type), ["run.ended", "run.ended", "run.ended"]);
    });

    test("what an agent asks is answered once", async () => {
      const own = client();
      const run = own.run(claude("ask"));
      let refusal;
      let end;
      for await (const event of run) {
        if (event.type === "ask.opened") {
          const [ask] = (await own.asks()).filter((it) => it.session === event.session);
          assert.equal(ask.id, `${event.session}:${event.seq}`);
          await own.settle(event, "allow");
          refusal = await own.settle(ask, { decision: "deny", message: "too late" }).catch((it) => it);
        }
        if (event.type === "run.ended") end = event.data;
      }
      assert.deepEqual([refusal.name, refusal.code, refusal.status], ["LinkspanError", "already_settled", 409]);
      assert.equal(end.answer, "It was allowed.");
    });

    test("an answer may deny, with a reason", async () => {
      const own = client();
      for await (const event of own.run(claude("ask"))) {
        if (event.type === "ask.opened") await own.settle(event, { decision: "deny", message: "not here" });
        if (event.type === "run.ended") assert.equal(event.data.answer, "It was denied: not here");
      }
    });

    test("a run is aborted by its signal, and the loop ends with its end", async () => {
      const abort = new AbortController();
      const run = client().run(claude("wait"), { signal: abort.signal });
      const events = [];
      for await (const event of run) {
        events.push(event);
        if (event.type === "session.bound") abort.abort();
      }
      assert.equal(events.at(-1).data.outcome, "aborted");
    });

    test("a prompt that waits is taken back", async () => {
      const own = client();
      const first = own.run(claude("wait"));
      const { session } = await first.submitted;
      const second = own.run(claude("never", { session }));
      assert.equal((await second.submitted).position, 1);
      const result = second.result();
      await second.abort();
      await assert.rejects(result, { code: "prompt_removed" });
      await first.abort();
      assert.equal((await first.result()).outcome, "aborted");
    });

    test("a wrong token ends everything", async () => {
      const own = connect({ ...options, token: "wrong".repeat(8) });
      const refused = { name: "LinkspanError", code: "unauthorized", status: 401 };
      await assert.rejects(own.sessions(), refused);
      await assert.rejects(own.subscribe({ session: "any" }).next(), refused);
      // Not more often: ten wrong tokens in a minute are answered otherwise.
    });

    test("a server of another name ends it", async () => {
      const other = await new Proxy().start();
      other.target = Number(new URL(server.url).port);
      const own = connect({ ...options, url: other.url });
      await assert.rejects(own.subscribe({ session: "any" }).next(), { code: "other_host", status: 421 });
      await own.close();
      other.stop();
    });

    test("a session that is not there ends it", async () => {
      await assert.rejects(client().subscribe({ session: "nobody" }).next(), { code: "no_such_session" });
    });

    for (const format of ["linkspan", "thread"]) {
      test(`nothing is lost and nothing comes twice over cuts, as ${format}`, async () => {
        const way = cuttingWay(name.length + format.length, 8, format === "thread" ? 1200 : 3000);
        // Words come one after the other; a recording has more kinds of ThreadEvents, and comes at once.
        const prompt = format === "thread" ? { prompt: "play", engine: "replay:tools" } : claude("words 150");
        const { session } = await client().submit(prompt);
        const events = connect({ ...options, url: way.url }).subscribe({ session, format });
        const seen = await collect(events, isLast);
        assert.ok(way.nCuts >= 4, `there were ${way.nCuts} cuts`);
        assert.deepEqual(seen, await collect(client().subscribe({ session, format }), isLast));
        if (format === "linkspan") assert.deepEqual(seen, (await server.events(session)).slice(0, seen.length));
      });
    }

    test("a cursor that is a text goes on within an event", async () => {
      const { session } = await client().run({ prompt: "play", engine: "replay:tools" }).submitted;
      const all = await collect(client().subscribe({ session, format: "thread" }), isLast);
      const at = all.findIndex((it) => typeof it.cursor === "string");
      assert.match(all[at]?.cursor ?? "none", /^\d+\.\d+$/);
      const rest = await collect(client().subscribe({ session, format: "thread", since: all[at].cursor }), isLast);
      assert.deepEqual(rest, all.slice(at + 1));
    });
  });
}
