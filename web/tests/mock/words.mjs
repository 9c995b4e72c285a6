// What the page says about sessions, runs and asks.

import assert from "node:assert/strict";

import { start } from "../mock.mjs";
import { close, scene as plainScene, sees, tab, text, until } from "../stage.mjs";

const USUAL = { search: 0, slow: 0, pace: 25, start: { ms: 0, isShown: false } };

export async function play(server, everything) {
  const scene = async (name, act) => {
    await plainScene(name, act);
    Object.assign(server, USUAL);
  };
  const open = (path = "/#token=test", options = {}) => tab(server.url + path, options);
  const begun = (title, rest = {}) => {
    const it = server.session({ title, ...rest });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    return it;
  };

  await scene("the page says that agents are being looked for, and then which there are", async () => {
    server.search = 1500;
    const page = await open("/#token=test/new");
    await sees(page, "Looking for agents…", "#start");
    assert.equal(await page.$eval("[aria-label='Agent']", (it) => it.selectedOptions[0].textContent), "Looking for agents…");
    await sees(page, "Choose an agent", "#start");
    assert.ok(!(await text(page, "#start")).includes("Looking"));
    await close(page);
  });

  await scene("a recording cannot be replied to or forked, and says so", async () => {
    const it = begun("Played", { engine: "replay:tools" });
    it.isRunning = true;
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "This is a recording: it can be watched, but not replied to.", "#composer");
    assert.equal(await page.$eval("#composer textarea", (it) => it.checkVisibility()), false);
    await until(page, () => document.querySelector("#top .stop") !== null);
    assert.ok(!(await text(page, "#top")).includes("Fork"));
    // From here, too, a key leads to the box of a new session.
    await page.keyboard.press("n");
    await until(page, () => document.activeElement?.matches("#composer textarea"));
    await page.evaluate((id) => (location.hash = `#/s/${id}`), everything.id);
    await until(page, () => document.querySelector("#composer textarea").checkVisibility());
    await close(page);
  });

  await scene("a run that is about to start does not show the time of the one before", async () => {
    const it = server.past("claude/multi_tool.partial", "Done long ago", new Date(Date.now() - 60_000).toISOString());
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "✓ done");
    it.isRunning = true;
    server.tell(it);
    await sees(page, "Running", "#top .state");
    assert.equal(await text(page, "#top .state"), "Running");
    await until(page, () => /is working/.test(document.querySelector("#composer textarea").placeholder));
    await close(page);
  });

  await scene("a prompt that is on its way already makes the agent busy", async () => {
    server.slow = 1500;
    const page = await open(`/#token=test/s/${everything.id}`);
    await sees(page, "cut off");
    await page.fill("#composer textarea", "on its way");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector(".pending") !== null);
    assert.match(await page.getAttribute("#composer textarea", "placeholder"), /is working/);
    await close(page);
  });

  await scene("tokens are called tokens, and modes by what they do", async () => {
    const it = server.session({ title: "Modes" });
    server.append(it, { type: "session.bound", data: { native: "n", how: "init", permission_mode: "acceptEdits" } });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const usage = { tokens: { input: 100, output: 20 } };
    server.append(it, { type: "run.ended", data: { outcome: "completed", usage } });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "120 tokens", "#top .usage");
    assert.match(await page.getAttribute("#top .usage", "title"), /^100 in \/ 20 out tokens/);
    await sees(page, "Accepts edits", "#top .facts");
    assert.ok(!(await text(page, "#top")).includes("acceptEdits"));
    await close(page);
  });

  await scene("plans and questions are not called by the names of their tools", async () => {
    const it = begun("Plans");
    const item = { kind: "tool", id: "t1", name: "ExitPlanMode", input: { plan: "do it" }, class: { kind: "mode", title: "ExitPlanMode" } };
    server.append(it, { type: "item.opened", data: item });
    const plan = { id: "a1", kind: "plan", item: "t1", tool: "ExitPlanMode", title: "ExitPlanMode", input: {} };
    server.append(it, { type: "ask.opened", data: plan });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Approve this plan?", ".ask.open");
    assert.equal(await text(page, ".ask.open > p"), "Approve this plan? ");
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied", message: "no" } });
    await sees(page, "Plan denied from another device: no");
    const question = { id: "a2", kind: "question", tool: "AskUserQuestion", title: "AskUserQuestion", input: { questions: [{ question: "Which?" }] } };
    server.append(it, { type: "ask.opened", data: question });
    await sees(page, "The agent has a question", ".ask.open");
    assert.equal(await text(page, ".ask.open > p"), "The agent has a question ");
    assert.ok(!(await text(page)).includes("ExitPlanMode"));
    await close(page);
  });

  await scene("an ask about a change names the file once", async () => {
    const it = begun("Edits");
    const diffs = [{ path: "/workspace/src/a.rs", old: "a\n", new: "b\n" }];
    const input = { file_path: "/workspace/src/a.rs", old_string: "a", new_string: "b" };
    server.append(it, { type: "item.opened", data: { kind: "tool", id: "t1", name: "Edit", input, class: { kind: "edit", title: "Edit src/a.rs", diffs } } });
    const ask = (id, description) => ({ id, kind: "permission", item: "t1", tool: "Edit", title: "Edit a.rs", description, input });
    server.append(it, { type: "ask.opened", data: ask("a1", "/workspace/src/a.rs") });
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".ask.open .diff") !== null);
    assert.equal((await text(page, ".ask.open")).split("a.rs").length - 1, 1);
    server.append(it, { type: "ask.settled", origin: "client", data: { id: "a1", decision: "denied" } });
    server.append(it, { type: "ask.opened", data: ask("a2", "outside of the sandbox") });
    await sees(page, "outside of the sandbox", ".ask.open");
    await close(page);
  });

  await scene("an error is said once, and an exit code is called one", async () => {
    const it = begun("Fails");
    const item = { kind: "message", id: "m1", role: "assistant", text: "Invalid API key · Fix it" };
    server.append(it, { type: "item.closed", data: { status: "ok", item } });
    server.append(it, { type: "notice.raised", data: { level: "error", code: "x", text: "No such model" } });
    const message = "claude failed (rc=1)\nInvalid API key · Fix it\nNo such model";
    server.append(it, { type: "run.ended", data: { outcome: "failed", error: { code: "crashed", message } } });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "✗ failed");
    for (const words of ["Invalid API key", "No such model"]) assert.equal((await text(page)).split(words).length - 1, 1);
    assert.equal(await text(page, ".end .why"), "claude exited with code 1");
    await close(page);
  });

  await scene("a notice shows names as names, without backticks", async () => {
    const it = begun("Notes");
    const words = "Claude Code is not logged in; see `use_api_billing` and `a`\n``";
    server.append(it, { type: "notice.raised", data: { level: "info", code: "api_key", text: words } });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Claude Code is not logged in; see use_api_billing and a\n``", ".notice");
    assert.deepEqual(await page.$$eval(".notice code", (all) => all.map((it) => it.textContent)), ["use_api_billing", "a"]);
    await close(page);
  });

  await scene("each queued prompt is edited and removed by its own name", async () => {
    const it = begun("Queued");
    it.isRunning = true;
    it.queue.push({ number: 1, prompt: "one" }, { number: 2, prompt: "two\nlines" });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "two", ".queue");
    assert.deepEqual(
      await page.$$eval(".queue button", (all) => all.map((it) => it.getAttribute("aria-label"))),
      ["Edit queued prompt: one", "Remove queued prompt: one", "Edit queued prompt: two", "Remove queued prompt: two"],
    );
    await close(page);
  });

  await scene("with nothing installed the recordings come first", async () => {
    const bare = await start({ installed: false });
    const page = await tab(`${bare.url}/#token=test`);
    await sees(page, "Watch a recorded session", "#start");
    assert.ok((await text(page, "#start")).indexOf("recorded") < (await text(page, "#start")).indexOf("npm install"));
    await close(page);
    await bare.stop();
  });
}
