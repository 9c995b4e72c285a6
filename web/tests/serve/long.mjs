// A session of 50,000 events, out of the real journal.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { close, scene, sees, tab, until } from "../stage.mjs";

/** Answers of the model, and what each holds: as many words as calls, two events for each. */
const TURNS = 100;
const BLOCKS = 125;

/** Milliseconds that the page may be busy at once. It takes a tenth of that, and a list that is not windowed takes ten times as long; between them is what a machine with other work to do may add. */
const LONGEST_TASK = 1_500;

export async function play(server) {
  await scene("a session of 50,000 events opens at once and stays smooth", async () => {
    const file = join(server.work, "long.jsonl");
    writeFileSync(file, `${[...recording()].map((it) => JSON.stringify(it)).join("\n")}\n`);
    const began = performance.now();
    const id = await server.prompt("a long story", { engine: `replay:${file}`, speed: 0 });
    await server.idle(id);
    const { head } = await server.api(`/sessions/${id}`);
    console.log(`        ${head} events stored in ${Math.round(performance.now() - began)} ms`);
    assert.ok(head >= 50_000);

    const page = await tab(server.address());
    await sees(page, "a long story", "#list");
    await page.evaluate(() => (window.__slow.length = 0));
    const opening = performance.now();
    await page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await sees(page, "✓ done");
    const opened = Math.round(performance.now() - opening);
    const slowOpen = await page.evaluate(() => Math.max(0, ...window.__slow.splice(0)));
    const frames = await page.evaluate(jump);
    const slow = await page.evaluate(() => Math.max(0, ...window.__slow.splice(0)));
    console.log(
      `        opened in ${opened} ms, longest task ${slowOpen} ms; jumping about: frames p50 ${Math.round(frames.times[60])} ms, p95 ${Math.round(frames.times[114])} ms, longest task ${slow} ms, at most ${frames.most} nodes`,
    );
    assert.ok(frames.most < 3_000, `${frames.most} nodes`);
    assert.ok(Math.max(slowOpen, slow) < LONGEST_TASK, `${slowOpen} ms, ${slow} ms`);

    // The keyboard reads it, too: both ends, and pages between them.
    await page.focus("#scroll");
    await page.keyboard.press("Home");
    await sees(page, "Step 0:");
    const place = () => page.$eval("#scroll", (it) => it.scrollTop);
    for (let n = 0; n < 5; n += 1) {
      const before = await place();
      await page.keyboard.press("PageDown");
      await until(page, (before) => document.getElementById("scroll").scrollTop > before + 300, before);
    }
    await page.keyboard.press("End");
    await sees(page, "✓ done");
    await close(page);
  });
}

/** A recording of Claude Code: words and calls, many in each line, because each line is stored before the next. */
function* recording() {
  const envelope = { session_id: "4b4f1f4e-6d2a-4d43-a6b5-2a4c52f3e9aa", parent_tool_use_id: null };
  yield { type: "system", subtype: "init", cwd: "/workspace", model: "m1", tools: ["Bash"], ...envelope };
  for (let turn = 0; turn < TURNS; turn += 1) {
    const steps = Array.from({ length: BLOCKS }, (_, at) => turn * BLOCKS + at);
    const content = steps.flatMap((n) => [
      { type: "text", text: `Step ${n}: **bold**, \`code\` and a list:\n\n- one\n- two\n\n\`\`\`rust\nfn main() {}\n\`\`\`` },
      { type: "tool_use", id: `t${n}`, name: "Bash", input: { command: `make step-${n}` } },
    ]);
    yield { type: "assistant", message: { id: `m${turn}`, type: "message", role: "assistant", content }, ...envelope };
    const results = steps.map((n) => ({
      type: "tool_result",
      tool_use_id: `t${n}`,
      content: `line of output ${n}\n`.repeat(1 + (n % 40)),
      is_error: n % 7 === 3,
    }));
    yield { type: "user", message: { role: "user", content: results }, ...envelope };
  }
  yield { type: "result", subtype: "success", is_error: false, num_turns: TURNS, duration_ms: 5, result: "", ...envelope };
}

/** Runs in the page: all over the session, a frame at a time. */
async function jump() {
  const scroll = document.getElementById("scroll");
  const times = [];
  let most = 0;
  let last = performance.now();
  for (let n = 0; n < 120; n += 1) {
    scroll.scrollTop = (scroll.scrollHeight * ((n * 37) % 120)) / 120;
    await new Promise((done) => requestAnimationFrame(done));
    times.push(performance.now() - last);
    last = performance.now();
    most = Math.max(most, document.querySelectorAll("*").length);
  }
  return { times: times.sort((a, b) => a - b), most };
}
