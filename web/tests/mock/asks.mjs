// What an agent asks: always in view, to the letter, and answered once.

import assert from "node:assert/strict";

import { click, close, scene, sees, tab, until } from "../stage.mjs";

export async function play(server) {
  const open = (path = "/#token=test", options = {}) => tab(server.url + path, options);
  const edit = (id, lines) => ({
    kind: "tool",
    id,
    name: "Edit",
    input: { file_path: "/workspace/a", old_string: "a", new_string: "b" },
    class: { kind: "edit", title: "Edit a", diffs: [{ path: "/workspace/a", old: "a\n", new: "b\n".repeat(lines) }] },
  });
  const said = (n) => ({ kind: "message", id: `m${n}`, role: "assistant", text: `Step ${n}\n\nand more of it` });
  const inView = () => {
    const box = document.querySelector(".ask.open .actions")?.getBoundingClientRect();
    const view = document.getElementById("scroll").getBoundingClientRect();
    return box !== undefined && box.bottom <= view.bottom + 1 && box.top >= view.top - 1;
  };

  await scene("what is asked is in view, although a card has opened itself above it", async () => {
    for (let round = 0; round < 4; round += 1) {
      const it = server.session({ title: "Edits" });
      server.append(it, { type: "run.started", data: { cause: "prompt" } });
      for (let n = 0; n < 12; n += 1) server.append(it, { type: "item.closed", data: { status: "ok", item: said(n) } });
      const page = await open(`/#token=test/s/${it.id}`);
      await sees(page, "Step 11");
      // The card opens in one frame; the browser tells of it after the ask has come.
      server.append(it, { type: "item.opened", data: edit("t1", 20) });
      if (round > 1) await until(page, () => document.querySelector(".k-edit[open]") !== null);
      const ask = { id: "a1", kind: "permission", item: "t1", tool: "Edit", title: "Edit a", input: { file_path: "a" } };
      server.append(it, { type: "ask.opened", data: ask });
      await until(page, () => document.querySelector(".ask.open") !== null);
      await until(page, inView);
      await page.waitForTimeout(150);
      assert.equal(await page.evaluate(inView), true);
      assert.equal(await page.$(".pill"), null);
      await close(page);
    }
  });

  await scene("a toggle that the browser tells late is no click", async () => {
    const it = server.session({ title: "Late" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    for (let n = 0; n < 30; n += 1) server.append(it, { type: "item.closed", data: { status: "ok", item: said(n) } });
    server.append(it, { type: "item.opened", data: edit("t1", 3) });
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".k-edit[open]") !== null);
    // As it is told when the ask has closed the card in the meantime.
    const ask = { id: "a1", kind: "permission", item: "t1", tool: "Edit", title: "Edit a", input: { file_path: "a" } };
    await page.evaluate(() => {
      const node = document.querySelector(".k-edit");
      window.__late = setInterval(() => node.dispatchEvent(new Event("toggle")), 1);
    });
    server.append(it, { type: "ask.opened", data: ask });
    await until(page, () => document.querySelector(".ask.open") !== null);
    await until(page, inView);
    await until(page, () => document.querySelector(".k-edit[open]") === null);
    await page.evaluate(() => clearInterval(window.__late));
    assert.equal(await page.$(".pill"), null);
    await close(page);
  });

  await scene("whoever has opened a card still sees what is asked; whoever has scrolled away is not moved", async () => {
    const it = server.session({ title: "Reading" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    for (let n = 0; n < 30; n += 1) server.append(it, { type: "item.closed", data: { status: "ok", item: said(n) } });
    const tool = { kind: "tool", id: "t0", name: "Bash", input: { command: "ls" }, class: { kind: "shell", title: "ls", command: "ls" } };
    server.append(it, { type: "item.closed", data: { status: "ok", item: { ...tool, result: { content: "a\n".repeat(15) } } } });
    const page = await open(`/#token=test/s/${it.id}`);
    await click(page, "Bash");
    await until(page, () => document.querySelector(".k-shell[open]") !== null);
    const ask = (id) => ({ id, kind: "permission", tool: "Bash", title: "rm a", input: { command: "rm a" } });
    server.append(it, { type: "ask.opened", data: ask("a1") });
    await until(page, inView);
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    await until(page, () => document.querySelector(".ask.open") === null);
    await page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
    await until(page, () => document.querySelector(".pill") !== null);
    server.append(it, { type: "ask.opened", data: ask("a2") });
    await sees(page, "1 approval needed", "#pills");
    assert.equal(await page.evaluate(() => document.getElementById("scroll").scrollTop), 0);
    await close(page);
  });

  await scene("a plan is shown before it is approved", async () => {
    const it = server.session({ title: "Plan" });
    const item = { kind: "tool", id: "t1", name: "ExitPlanMode", input: { plan: "# The plan\n\n1. do *this*\n2. then that" }, class: { kind: "other", title: "ExitPlanMode" } };
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    server.append(it, { type: "item.opened", data: item });
    const ask = { id: "a1", kind: "plan", item: "t1", tool: "ExitPlanMode", title: "ExitPlanMode", input: {} };
    server.append(it, { type: "ask.opened", data: ask });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Approve this plan?", ".ask.open");
    await sees(page, "then that", ".ask.open .prose");
    assert.equal(await page.$$eval(".ask.open .actions button", (all) => all[0].textContent), "Approve");
    await close(page);
  });

  await scene("a command is shown to the letter and whole, with everything else that was asked", async () => {
    const it = server.session({ title: "Letters" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const long = `echo ${"y".repeat(150_000)}`;
    const command = `cd / && rm -rf /workspace/etc\u202e\u200b\u{e0041}\u00a0\u200d \u001b[31mx\r\n# end`;
    const input = { command, timeout: 5, run_in_background: true, env: { A: "b" } };
    const shown = { kind: "shell", title: "cd / && rm -rf etc", command: "cd / && rm -rf etc" };
    server.append(it, { type: "item.opened", data: { kind: "tool", id: "t1", name: "Bash", input, class: shown } });
    const ask = (id, input) => ({ id, kind: "permission", item: "t1", tool: "Bash", title: "cd / && rm -rf etc", input });
    server.append(it, { type: "ask.opened", data: ask("a1", input) });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Allow this?", ".ask.open");
    assert.equal(
      await page.$eval(".ask.open .command", (it) => it.textContent),
      "cd / && rm -rf /workspace/etc⟨U+202E⟩⟨U+200B⟩⟨U+E0041⟩⟨U+00A0⟩⟨U+200D⟩ ⟨U+001B⟩[31mx⟨U+000D⟩\n# end",
    );
    await sees(page, "timeout 5", ".ask.open");
    await sees(page, "run_in_background true", ".ask.open");
    await click(page, "Full input");
    await sees(page, '"env": {\n    "A": "b"\n  }', ".ask.open");
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    server.append(it, { type: "ask.opened", data: ask("a2", { command: long }) });
    await click(page, "Show all 150,005 characters");
    assert.equal(await page.$eval(".ask.open .command", (it) => it.textContent), long);
    await close(page);
  });

  await scene("a change that is asked about is whole after one click", async () => {
    const it = server.session({ title: "Whole" });
    const before = Array.from({ length: 3_000 }, (_, n) => `line ${n}\n`).join("");
    const after = before.replace("line 1500\n", `${"z".repeat(20_000)}\n`);
    const item = { ...edit("t1", 1), class: { kind: "edit", title: "Edit a", diffs: [{ path: "a", old: before, new: after }] } };
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    server.append(it, { type: "item.opened", data: item });
    const ask = { id: "a1", kind: "permission", item: "t1", tool: "Edit", title: "Edit a", input: { file_path: "a" } };
    server.append(it, { type: "ask.opened", data: ask });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "1497 equal lines", ".ask.open .diff");
    await click(page, "Show the whole change");
    const lines = await page.$$eval(".ask.open .diff > *", (all) => all.map((it) => it.textContent));
    assert.equal(lines.length, 3_001);
    assert.ok(lines.some((it) => it === `+ ${"z".repeat(20_000)}\n`));
    await close(page);
  });

  await scene("“Always allow” says what it allows, and is not offered where it allows nothing", async () => {
    const it = server.session({ title: "Always" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const page = await open(`/#token=test/s/${it.id}`);
    const rule = { type: "addRules", rules: [{ toolName: "Bash", ruleContent: "touch z *" }] };
    const mode = { type: "setMode", mode: "acceptEdits" };
    const cases = [
      [[rule, mode], "Bash(touch z *)"],
      [[mode], "all file edits"],
      [["touch *", "echo *"], "touch *, echo *"],
      [["accept", "acceptForSession"], "this, whenever it is asked again"],
      [["accept", { acceptWithExecpolicyAmendment: { execpolicy_amendment: ["npm", "test"] } }], "commands that start with npm test"],
      [[{ kind: "allow_once", name: "Once" }, { kind: "allow_always", name: "Allow for this session" }], "Allow for this session"],
      [[], undefined],
      [undefined, undefined],
    ];
    for (const [n, [suggestions, words]] of cases.entries()) {
      const ask = { id: `a${n}`, kind: "permission", tool: "Bash", title: "touch z", input: { command: "touch z" }, suggestions };
      server.append(it, { type: "ask.opened", data: ask });
      await until(page, () => document.querySelector(".ask.open .actions") !== null);
      const offers = await page.$$eval(".ask.open .actions button", (all) => all.some((it) => it.textContent === "Always allow"));
      assert.equal(offers, words !== undefined, JSON.stringify(suggestions));
      if (words) await sees(page, words, ".ask.open .remembers");
      server.append(it, { type: "ask.settled", origin: "client", data: { id: `a${n}`, decision: "allowed" } });
      await until(page, () => document.querySelector(".ask.open") === null);
    }
    await close(page);
  });

  await scene("a double click on Allow answers one ask, and not the next", async () => {
    server.answers.length = 0;
    const it = server.session({ title: "Twice" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const put = (n) => {
      const data = { id: `a${n}`, kind: "permission", tool: "Bash", title: "touch z", input: { command: "touch z" } };
      server.append(it, { type: "ask.opened", data });
      it.asks.set(`${it.id}:${it.events.length}`, { id: `${it.id}:${it.events.length}`, data, can_change: false });
      return `${it.id}:${it.events.length}`;
    };
    const first = put(1);
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".ask.open .primary") !== null);
    it.wake = () => {
      server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "allowed" } });
      put(2);
    };
    const { x, y } = await page.$eval(".ask.open .primary", (it) => it.getBoundingClientRect().toJSON());
    await page.mouse.click(x + 10, y + 10, { clickCount: 2 });
    await sees(page, "Allowed by you");
    await page.waitForTimeout(100);
    assert.deepEqual(server.answers.map((it) => it.id), [first]);
    // After a reload it is still known who has answered.
    await page.reload();
    await sees(page, "Allowed by you");
    await close(page);
  });

  await scene("of two tabs of one browser both say that it was answered here", async () => {
    const it = server.session({ title: "Two tabs" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const data = { id: "a1", kind: "permission", tool: "Bash", title: "touch z", input: { command: "touch z" } };
    server.append(it, { type: "ask.opened", data });
    const id = `${it.id}:${it.events.length}`;
    it.asks.set(id, { id, data, can_change: false });
    it.wake = () => {};
    const address = `/#token=test/s/${it.id}`;
    const first = await open(address);
    const second = await first.context().newPage();
    await second.goto(server.url + address);
    for (const page of [first, second]) {
      await until(page, () => document.querySelector(".ask.open .primary") !== null);
      await click(page, "Allow once");
    }
    await sees(second, "Already answered elsewhere");
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "allowed" } });
    await sees(first, "Allowed by you");
    await sees(second, "Allowed by you");
    await close(first);
  });

  await scene("what a recording asks is answered by the recording", async () => {
    const it = server.session({ title: "Played", engine: "replay:approval" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const data = { id: "a1", kind: "permission", tool: "Bash", title: "touch z", input: { command: "touch z" } };
    server.append(it, { type: "ask.opened", data });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "The recorded answer follows", ".ask.open");
    assert.deepEqual(await page.$$eval(".ask.open button", (all) => all.map((it) => it.textContent)), []);
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied", message: "no" } });
    await sees(page, "Denied in the recording touch z: no");
    await close(page);
  });

  await scene("a command of several lines is shown once", async () => {
    const it = server.session({ title: "Lines" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const ask = (id, title, command) => ({ id, kind: "permission", tool: "Bash", title, input: { command } });
    const titles = (page) => page.$$eval(".ask.open .ask-title", (all) => all.map((it) => it.textContent));
    server.append(it, { type: "ask.opened", data: ask("a1", "cat <<E␊a\\u{202e}b␊E", "cat <<E\na\u202eb\nE") });
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".ask.open .command") !== null);
    assert.deepEqual(await titles(page), []);
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    server.append(it, { type: "ask.opened", data: ask("a2", "List the files", "rm -rf x") });
    await sees(page, "rm -rf x", ".ask.open");
    assert.deepEqual(await titles(page), ["List the files"]);
    await close(page);
  });

  await scene("a command that goes on below its block says so, and is whole after one click", async () => {
    const it = server.session({ title: "Tall" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const command = `${"echo y; ".repeat(1_240)}rm -rf build`;
    const ask = (id, command) => ({ id, kind: "permission", tool: "Bash", title: "echo", input: { command } });
    server.append(it, { type: "ask.opened", data: ask("a1", command) });
    const page = await open(`/#token=test/s/${it.id}`);
    const label = () => [...document.querySelectorAll(".goes-on > .more")].find((it) => it.checkVisibility())?.textContent;
    await until(page, label);
    const lines = await page.$eval(".ask.open .command", (it) => Math.round(it.scrollHeight / parseFloat(getComputedStyle(it).lineHeight)));
    assert.equal(await page.evaluate(label), `Show all (${lines} lines)`);
    const isWhole = () => {
      const pre = document.querySelector(".ask.open .command");
      return pre.scrollHeight <= pre.clientHeight + 2;
    };
    assert.equal(await page.evaluate(isWhole), false);
    // A narrow window breaks it into more lines.
    await page.setViewportSize({ width: 400, height: 800 });
    await until(page, (lines) => !document.querySelector(".goes-on > .more").textContent.includes(`(${lines} `), lines);
    await click(page, "Show all (");
    await until(page, isWhole);
    assert.equal(await page.evaluate(label), undefined);
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    server.append(it, { type: "ask.opened", data: ask("a2", "ls") });
    await until(page, () => document.querySelector(".ask.open .command")?.textContent === "ls");
    await page.waitForTimeout(100);
    assert.equal(await page.evaluate(label), undefined);
    await close(page);
  });

  await scene("changes and plans that go on below say so too", async () => {
    const it = server.session({ title: "Tall changes" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    server.append(it, { type: "item.opened", data: edit("t1", 200) });
    const ask = { id: "a1", kind: "permission", item: "t1", tool: "Edit", title: "Edit a", input: { file_path: "a" } };
    server.append(it, { type: "ask.opened", data: ask });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Show all (", ".ask.open .goes-on");
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    const plan = { id: "a2", kind: "plan", tool: "ExitPlanMode", title: "ExitPlanMode", input: { plan: "- a step\n".repeat(200) } };
    server.append(it, { type: "ask.opened", data: plan });
    await sees(page, "a step", ".ask.open .goes-on .plan-text");
    await sees(page, "Show all (", ".ask.open .goes-on");
    await close(page);
  });

  await scene("an ask with a deadline counts down, and says once that nobody answered", async () => {
    const it = server.session({ title: "Deadline" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const at = (ms) => new Date(Date.now() + ms).toISOString();
    const ask = (id, ms, decision, kind = "permission") => ({ id, kind, tool: "Bash", title: `touch ${id}`, input: { command: `touch ${id}` }, deadline: { at: at(ms), decision } });
    server.append(it, { type: "ask.opened", data: ask("a1", 62_000, "denied") });
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => /^Denied automatically in 1:0\d$/.test(document.querySelector(".ask.open .deadline")?.textContent));
    await until(page, () => /^Denied automatically in 0:5\d$/.test(document.querySelector(".ask.open .deadline")?.textContent));
    const settled = { id: "a1", decision: "denied", message: "nobody answered within 62s" };
    server.append(it, { type: "ask.settled", origin: "linkspan", why: "deadline", data: settled });
    await until(page, () => document.querySelector(".ask.open") === null);
    assert.equal(await page.$eval(".ask", (it) => it.textContent), "Denied because nobody answered in time: touch a1");
    server.append(it, { type: "ask.opened", data: ask("a2", 1_500, "allowed") });
    await sees(page, "Allowed automatically in 0:0", ".ask.open");
    await sees(page, "Time is up: allowed automatically…", ".ask.open");
    server.append(it, { type: "ask.settled", origin: "linkspan", why: "deadline", data: { id: "a2", decision: "allowed" } });
    await sees(page, "Allowed because nobody answered in time: touch a2");
    await close(page);
  });

  await scene("a deadline is counted by the server's clock", async () => {
    const it = server.session({ title: "Clocks" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const deadline = { at: new Date(Date.now() + 42_000).toISOString(), decision: "denied" };
    server.append(it, { type: "ask.opened", data: { id: "a1", kind: "permission", tool: "Bash", title: "ls", input: { command: "ls" }, deadline } });
    const page = await open("/");
    // This machine's clock is an hour behind.
    await page.addInitScript(() => {
      const now = Date.now;
      Date.now = () => now() - 3_600_000;
    });
    await page.goto(`${server.url}/#token=test/s/${it.id}`);
    await until(page, () => /^Denied automatically in 0:[34]\d$/.test(document.querySelector(".ask.open .deadline")?.textContent));
    await close(page);
  });
}
