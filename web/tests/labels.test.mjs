// The words of a transcript: the same table as in Rust.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  callLabel,
  compacted,
  count,
  decisionLabel,
  dollars,
  duration,
  noticeText,
  outcomeLabel,
  plural,
  promptTitle,
  summaryLine,
  toolLabel,
} from "../assets/labels.js";

const table = JSON.parse(readFileSync(new URL("../../fixtures/transcript/labels.json", import.meta.url), "utf8"));

/** Calls with the cells of each row but the last, which is what is expected; `null` is nothing. */
const RULES = {
  durations: duration,
  counts: count,
  dollars,
  plurals: plural,
  titles: promptTitle,
  outcomes: outcomeLabel,
  ends: summaryLine,
  calls: callLabel,
  decisions: decisionLabel,
  notices: noticeText,
  compactions: compacted,
  tools: toolLabel,
};

test("every rule has its cases", () => assert.deepEqual(Object.keys(RULES), Object.keys(table)));

for (const [name, rule] of Object.entries(RULES)) {
  test(name, () => {
    const cells = (row) => row.map((it) => it ?? undefined);
    const said = table[name].map((row) => [...row.slice(0, -1), rule(...cells(row.slice(0, -1)))]);
    assert.deepEqual(JSON.parse(JSON.stringify(said, (_, it) => it ?? null)), table[name]);
  });
}
