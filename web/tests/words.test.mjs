// Numbers as people read them, and text in which nothing hides.

import assert from "node:assert/strict";
import { test } from "node:test";

import { diff, plusMinus } from "../assets/diff.js";
import {
  agentTitle,
  ago,
  askTitle,
  countdown,
  exact,
  firstLine,
  modeName,
  plain,
  saysOnly,
  visible,
} from "../assets/words.js";

test("how long ago", () => {
  assert.deepEqual(
    ["2026-01-01T00:00:00Z", "2025-12-31T23:00:00Z", "2025-12-30T00:00:00Z"].map((it) =>
      ago(it, Date.parse("2026-01-01T00:00:30Z")),
    ),
    ["now", "1 h", "2 d"],
  );
});

test("characters without a shape are spelled out, the others stay", () => {
  assert.equal(visible("rm \u202e-rf\u2066 \u0007é😀👩‍👩‍👧\tx\n"), "rm ⟨U+202E⟩-rf⟨U+2066⟩ ⟨U+0007⟩é😀👩‍👩‍👧\tx\n");
  assert.equal(plain("\u001b[31mred\u001b[0m \u001b]8;;https://x.test\u0007link\u001b]8;;\u0007"), "red link");
  assert.equal(firstLine("\n\n  a\nb"), "a");
});

test("a change is what lies between what both sides share", () => {
  assert.deepEqual(
    diff("a\nb\nc\nd\ne\nf", "a\nb\nc\nX\ne\nf").map((it) => `${it.side} ${it.text}`),
    ["both a", "both b", "both c", "old d", "new X", "both e", "both f"],
  );
  assert.deepEqual(
    diff("", "x\n\ny\n").map((it) => it.side),
    ["new", "new", "new"],
  );
  assert.equal(plusMinus([{ path: "a", old: "x\ny", new: "x\nz\nw" }]), "+2 −1");
});

test("what somebody allows is to the letter", () => {
  assert.equal(exact("rm a\u00a0b\u200d\ufe0f\r\n\u{e0041}\ud800\u2028"), "rm a⟨U+00A0⟩b⟨U+200D⟩⟨U+FE0F⟩⟨U+000D⟩\n⟨U+E0041⟩⟨U+D800⟩⟨U+2028⟩");
  // Prose needs joiners; nothing needs tags.
  assert.equal(visible("👩‍💻 na\u200cme\u{e0041}\u00ad"), "👩‍💻 na\u200cme⟨U+E0041⟩⟨U+00AD⟩");
  // Nothing that can be seen is touched.
  assert.equal(exact("grüße\tπ 漢字 🙂 $'x' \\u202e"), "grüße\tπ 漢字 🙂 $'x' \\u202e");
});

test("agents as people say them", () => {
  assert.deepEqual(["claude", "replay:tools", "acp:./x", "mine"].map(agentTitle), [
    "Claude",
    "The recording",
    "The agent",
    "Mine",
  ]);
});

test("a clock counts down to the second", () => {
  assert.deepEqual([1, 1_000, 42_300, 60_000, 3_599_000, 3_661_000].map(countdown), [
    "0:01",
    "0:01",
    "0:43",
    "1:00",
    "59:59",
    "1:01:01",
  ]);
});

test("modes and asks as people say them", () => {
  assert.deepEqual(["", "default", "acceptEdits", "on-request", "build"].map(modeName), [
    "",
    "",
    "Accepts edits",
    "Asks when it needs more",
    "build mode",
  ]);
  const ask = (tool, title) => askTitle({ id: "a", kind: "plan", tool, title });
  assert.equal(ask("ExitPlanMode", "ExitPlanMode"), "Plan");
  assert.equal(ask("Bash", "touch z"), "touch z");
});

test("a line that only names the file of a change is told from one that says more", () => {
  const only = (text, tool = "Edit", paths = ["/w/src/a.rs"]) => saysOnly(text, tool, paths);
  for (const it of ["Edit a.rs", "/w/src/a.rs", "Edit `/w/src/a.rs`", "Write to a.rs…"]) assert.ok(only(it), it);
  assert.ok(only("Edit files: a.rs, b.rs", "apply_patch", ["a.rs", "b.rs"]));
  for (const it of ["Edit b.rs", "Edit a.rs outside of the sandbox", "a\u202e.rs", "/etc/a.rs"]) assert.ok(!only(it), it);
});
