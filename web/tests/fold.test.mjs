// Every golden file folds into a story that is whole: nothing open, nothing lost, nothing twice.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { Story, agentCost, flat } from "../assets/fold.js";

const FIXTURES = new URL("../../fixtures/", import.meta.url);

const golden = readdirSync(FIXTURES, { recursive: true })
  .filter((it) => it.endsWith(".events.jsonl"))
  .map((name) => ({ name, events: events(readFileSync(new URL(name, FIXTURES), "utf8")) }));

function events(text) {
  return text
    .split("\n")
    .filter(Boolean)
    .map((it) => JSON.parse(it));
}

/** All rows, also those inside of cards. */
function rows(story) {
  return flat(story.rows, () => true);
}

/** A golden file may hold several sessions; a story is of one. */
function stories(all) {
  const stories = new Map();
  for (const event of all) {
    const story = stories.get(event.session) ?? new Story(event.session);
    stories.set(event.session, story);
    assert.equal(story.add(event), "new");
  }
  return [...stories.values()];
}

test("there are golden files", () => assert.ok(golden.length > 100));

for (const { name, events } of golden) {
  test(`${name} is whole`, () => {
    for (const story of stories(events)) {
      const all = rows(story);
      const open = all.filter(
        (it) =>
          "status" in it === false && ["message", "reasoning", "tool", "plan", "compaction", "other"].includes(it.kind),
      );
      assert.deepEqual(open, []);
      assert.deepEqual(
        all.filter((it) => it.kind === "ask" && !it.settled),
        [],
      );
      assert.deepEqual([...story.open.keys(), ...story.asks.keys()], []);
      assert.equal(story.isRunning, false);
      assert.equal(new Set(all.map((it) => it.key)).size, all.length);
      const mine = events.filter((it) => it.session === story.session);
      const nClosed = mine.filter((it) => it.type === "item.closed" && it.data.item.kind !== "subagent").length;
      assert.equal(all.filter((it) => it.status !== undefined).length >= nClosed, true);
      assert.equal(all.filter((it) => it.kind === "end").length, mine.filter((it) => it.type === "run.ended").length);
    }
  });
}

test("what was seen already changes nothing", () => {
  for (const { events } of golden) {
    const once = stories(events);
    const twice = new Map(once.map((it) => [it.session, new Story(it.session)]));
    for (const event of events) {
      twice.get(event.session).add(event);
      assert.equal(twice.get(event.session).add(event), "seen");
    }
    assert.deepEqual([...twice.values()].map(rows), once.map(rows));
  }
});

test("an event that comes too early is refused, and fits later", () => {
  const [first, second, third] = golden.find((it) => it.name.endsWith("everything.events.jsonl")).events;
  const story = new Story("s1");
  assert.equal(story.add(first), "new");
  assert.equal(story.add(third), "gap");
  assert.equal(story.cursor, 1);
  assert.equal(story.add(second), "new");
  assert.equal(story.add(third), "new");
});

test("streamed text is what the closing event says", () => {
  for (const { events } of golden) {
    const streamed = new Map();
    const story = new Story(events[0].session);
    for (const event of events.filter((it) => it.session === story.session)) {
      if (event.type === "item.closed") {
        const row = story.open.get([...(event.path ?? []), event.data.item.id].join("\n"));
        if (row?.kind === "message" && row.text) streamed.set(row, row.text);
      }
      story.add(event);
    }
    for (const [row, text] of streamed) assert.ok(row.text.startsWith(text.slice(0, 20)), `${text} / ${row.text}`);
  }
});

test("what a sub-agent does is inside of the call that started it", () => {
  const nested = golden.find((it) => it.name.endsWith("subagent_nested.events.jsonl"));
  const [story] = stories(nested.events);
  const shown = rows(story).map((it) =>
    `${"  ".repeat(it.depth)}${it.kind} ${it.text ?? it.item?.class?.title ?? it.outcome ?? ""}`.trimEnd(),
  );
  assert.deepEqual(shown, [
    "run",
    "tool Outer",
    "  message [[lane:outer]] do outer",
    "  tool Inner",
    "message Top done.",
    "end completed",
  ]);
  assert.deepEqual(
    story.agents.map((it) => [it.agent.description, it.tokens?.input]),
    [
      ["Outer", 25],
      ["Inner", undefined],
    ],
  );
});

test("a closed card hides what is inside", () => {
  const [story] = stories(golden.find((it) => it.name.endsWith("subagent_nested.events.jsonl")).events);
  assert.deepEqual(
    flat(story.rows, () => false).map((it) => it.depth),
    [0, 0, 0, 0],
  );
});

test("cost is told by run and by model", () => {
  const [story] = stories(golden.find((it) => it.name.endsWith("everything.events.jsonl")).events);
  assert.equal(story.cost, 0.01);
  assert.deepEqual(
    [...story.models.values()],
    [{ model: "m1", tokens: { input: 10, cache_read: 20, cache_write: 5, output: 7 }, cost: 0.01 }],
  );
});

test("a sub-agent costs its share of its model, by tokens", () => {
  const [story] = stories(golden.find((it) => it.name.endsWith("subagent_nested.events.jsonl")).events);
  const [outer, inner] = story.agents;
  const part = (25 + 1.25 * 7 + 0.1 * 100) / (150 + 1.25 * 42 + 0.1 * 600 + 5 * 90);
  assert.deepEqual(agentCost(story, outer), { usd: story.cost * part, isGuess: true });
  assert.equal(agentCost(story, inner), undefined);
});

test("50,000 events fold in a moment", () => {
  const story = new Story("s");
  const began = performance.now();
  let seq = 0;
  const add = (type, data) => story.add({ v: 1, seq: (seq += 1), session: "s", origin: "agent", type, data });
  add("run.started", { cause: "prompt" });
  for (let n = 0; seq < 50_000; n += 1) {
    add("item.opened", { kind: "message", id: `m${n}`, role: "assistant", text: "" });
    for (let word = 0; word < 8; word += 1) add("item.delta", { item: `m${n}`, channel: "text", text: "word " });
    add("item.closed", {
      status: "ok",
      item: { kind: "message", id: `m${n}`, role: "assistant", text: "word ".repeat(8) },
    });
  }
  assert.ok(performance.now() - began < 1000);
  assert.equal(story.rows.length, 5001);
});
