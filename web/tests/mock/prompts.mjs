// What happens between Enter and the agent's first word, and to what was written and not sent.

import assert from "node:assert/strict";

import { click, close, play as start, scene as plainScene, sees, sessionId, tab, text, until } from "../stage.mjs";

const count = (page, words) => page.$eval("#scroll", (it, words) => it.textContent.split(words).length - 1, words);

/** What goes wrong, or slowly, in one scene does not in the next. */
const USUAL = { slow: 0, late: 0, pace: 25, refusal: "", start: { ms: 0, isShown: false } };

export async function play(server, everything) {
  const scene = async (name, act) => {
    await plainScene(name, act);
    Object.assign(server, USUAL);
  };
  const open = (path = "/#token=test", options = {}) => tab(server.url + path, options);
  const box = "#composer textarea";
  const ready = (page) => until(page, () => document.querySelector("[aria-label='Agent'] option[value='claude']") !== null);

  for (const isShown of [false, true]) {
    await scene(`a prompt is seen on Enter, and once${isShown ? ", also where it is an event before the run" : ""}`, async () => {
      Object.assign(server, { slow: 1500, start: { ms: 1500, isShown } });
      const page = await open();
      await ready(page);
      await page.fill(box, "say it at once");
      await page.keyboard.press("Enter");
      // The server has not answered yet.
      await until(page, () => document.querySelector("#scroll .pending .prompt")?.textContent === "say it at once");
      assert.equal(await sessionId(page), "");
      assert.equal(await page.inputValue(box), "");
      await sees(page, "Starting Claude…");
      await sees(page, "Starting", "#top .state");
      assert.equal(await page.$eval("#top .stop", (it) => it.textContent), "Stop");
      await until(page, () => location.hash.startsWith("#/s/"));
      await sees(page, "say it at once");
      await sees(page, "✓ done");
      assert.equal(await count(page, "say it at once"), 1);
      assert.equal(await page.$(".pending"), null);
      // The same in a session that is there.
      server.slow = 800;
      await page.fill(box, "and this as well");
      await page.keyboard.press("Enter");
      await until(page, () => document.querySelector("#scroll .pending .prompt")?.textContent === "and this as well");
      await sees(page, "Run 2");
      await until(page, () => document.querySelector("#top .stop") === null);
      assert.equal(await count(page, "and this as well"), 1);
      assert.equal(await page.$(".pending"), null);
      await close(page);
    });

    await scene(`Stop works before the server has answered${isShown ? ", and before the run" : ""}`, async () => {
      Object.assign(server, { slow: isShown ? 0 : 1200, start: { ms: 15_000, isShown } });
      const page = await open();
      await ready(page);
      await page.fill(box, "stop this");
      await page.keyboard.press("Enter");
      if (isShown) await until(page, () => location.hash.startsWith("#/s/"));
      await click(page, "Stop");
      await sees(page, "⊘ stopped");
      await until(page, () => document.querySelector("#top .stop") === null);
      assert.equal(await page.$(".pending"), null);
      await close(page);
    });
  }

  await scene("a refused prompt comes back into the box, with the reason", async () => {
    Object.assign(server, { slow: 700, refusal: "there is no directory `/nowhere`" });
    const page = await open();
    await ready(page);
    await page.fill(box, "work in a place that is not there");
    await page.keyboard.press("Enter");
    await sees(page, "work in a place");
    await sees(page, "There is no directory /nowhere.", "#composer .problem");
    assert.equal(await page.inputValue(box), "work in a place that is not there");
    await until(page, () => !document.getElementById("start").hidden);
    // In a session, and with something written since.
    await page.evaluate((id) => (location.hash = `#/s/${id}`), everything.id);
    await sees(page, "cut off");
    await page.fill(box, "first");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector(".pending .prompt")?.textContent === "first");
    await page.fill(box, "second");
    await until(page, () => document.querySelector("#composer .problem").checkVisibility());
    assert.equal(await page.inputValue(box), "first\n\nsecond");
    assert.equal(await page.$(".pending"), null);
    await close(page);
  });

  await scene("the prompt box is a line high on the first visit", async () => {
    const page = await open();
    await ready(page);
    await until(page, () => document.querySelector("#composer textarea").checkVisibility());
    const height = await page.$eval(box, (it) => it.clientHeight);
    assert.ok(height >= 20, `${height} px`);
    await close(page);
  });

  await scene("a refused directory is shown next to the reason, and is not kept for the next visit", async () => {
    Object.assign(server, { refusal: "there is no directory `/nowhere`" });
    const page = await open();
    await ready(page);
    await click(page, "More");
    await page.fill("[aria-label='Directory']", "/nowhere");
    await page.fill("[aria-label='Model']", "opus");
    await page.fill(box, "work there");
    await page.keyboard.press("Enter");
    await sees(page, "There is no directory", "#composer .problem");
    await until(page, () => document.querySelector("[aria-label='Directory']").checkVisibility());
    const values = () => ["Model", "Directory"].map((it) => document.querySelector(`[aria-label='${it}']`).value);
    assert.deepEqual(await page.evaluate(values), ["opus", "/nowhere"]);
    await page.reload();
    await ready(page);
    await until(page, () => document.querySelector("[aria-label='Directory']") !== null);
    assert.deepEqual(await page.evaluate(values), ["", ""]);
    await close(page);
  });

  await scene("a model is kept for its agent, and goes into no other session", async () => {
    server.submitted.length = 0;
    const page = await open();
    await ready(page);
    await page.selectOption("[aria-label='Agent']", "claude");
    await click(page, "More");
    await page.fill("[aria-label='Model']", "opus");
    await page.fill(box, "with a model");
    await page.keyboard.press("Enter");
    await until(page, () => location.hash.startsWith("#/s/"));
    await sees(page, "✓ done");
    await page.evaluate((id) => (location.hash = `#/s/${id}`), everything.id);
    await sees(page, "cut off");
    await page.fill(box, "a reply");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector("#composer textarea").value === "");
    await page.evaluate(() => (location.hash = "#/new"));
    await until(page, () => !document.getElementById("start").hidden);
    const model = () => page.$eval("[aria-label='Model']", (it) => it.value);
    assert.equal(await model(), "opus");
    await page.selectOption("[aria-label='Agent']", "codex");
    assert.equal(await model(), "");
    while (server.submitted.length < 2) await page.waitForTimeout(20);
    assert.deepEqual(
      server.submitted.map((it) => [it.prompt, it.model]),
      [
        ["with a model", "opus"],
        ["a reply", undefined],
      ],
    );
    await close(page);
  });

  await scene("Enter twice, and a double click on Send, send one prompt", async () => {
    server.submitted.length = 0;
    server.slow = 600;
    const page = await open();
    await ready(page);
    await page.fill(box, "only once");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.click(".send", { clickCount: 2, force: true });
    await until(page, () => location.hash.startsWith("#/s/"));
    await sees(page, "✓ done");
    assert.deepEqual(
      server.submitted.map((it) => it.prompt),
      ["only once"],
    );
    await close(page);
  });

  await scene("each session has a draft of its own, also after a reload", async () => {
    const page = await open(`/#token=test/s/${everything.id}`);
    await sees(page, "cut off");
    await page.fill(box, "for this session");
    await page.evaluate(() => (location.hash = "#/new"));
    await until(page, () => document.querySelector("#composer textarea").value === "");
    await page.fill(box, "a draft I was writing");
    await page.evaluate((id) => (location.hash = `#/s/${id}`), everything.id);
    await until(page, () => document.querySelector("#composer textarea").value === "for this session");
    await page.reload();
    await until(page, () => document.querySelector("#composer textarea").value === "for this session");
    await page.evaluate(() => (location.hash = "#/new"));
    await until(page, () => document.querySelector("#composer textarea").value === "a draft I was writing");
    // What was sent is no draft any more.
    await page.keyboard.press("Escape");
    await page.fill(box, "");
    await page.evaluate((id) => (location.hash = `#/s/${id}`), everything.id);
    await until(page, () => document.querySelector("#composer textarea").value === "for this session");
    await page.fill(box, "");
    await page.reload();
    await sees(page, "cut off");
    assert.equal(await page.inputValue(box), "");
    assert.equal(await page.evaluate(() => localStorage.getItem("linkspan.drafts")), "[]");
    await close(page);
  });

  await scene("drafts are bounded", async () => {
    const page = await open();
    const kept = await page.evaluate(async () => {
      const { keepDraft, draft } = await import("/assets/drafts.js");
      for (let n = 0; n < 60; n += 1) keepDraft(`session ${n}`, `text ${n}`);
      keepDraft("session long", "x".repeat(60_000));
      const stored = JSON.parse(localStorage.getItem("linkspan.drafts"));
      return [stored.length <= 50, draft("session 0"), draft("session 59"), draft("session long").length];
    });
    assert.deepEqual(kept, [true, "", "text 59", 60_000]);
    await close(page);
  });

  await scene("a fork shows what it began with, and leads to its parent", async () => {
    const page = await open(`/#token=test/s/${everything.id}`);
    await sees(page, "cut off");
    await click(page, "Fork");
    await sees(page, "Your next message starts a copy of this session.", "#composer .hint");
    await page.fill(box, "another way");
    await page.keyboard.press("Enter");
    await until(page, (id) => location.hash.startsWith("#/s/") && !location.hash.includes(id), everything.id);
    await sees(page, "✓ done");
    await page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
    await until(page, () => document.querySelector(".row.past .prompt") !== null);
    // Nothing of it can be answered, and it ends with a link.
    assert.equal(await page.$(".past .ask.open"), null);
    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("End");
    await sees(page, "✓ done");
    await sees(page, "Forked from another session", "#top .facts");
    await page.click("#top .facts a");
    await until(page, (id) => location.hash === `#/s/${id}`, everything.id);
    await close(page);
  });

  await scene("no reply makes the page older than what the socket has said", async () => {
    const page = await open();
    await ready(page);
    // The detail is read while the run goes on, and arrives after its end.
    Object.assign(server, { late: 3000, pace: 2 });
    await start(page, "tools");
    await sees(page, "✓ done");
    const stuck = () => document.querySelector("#top .stop") !== null || document.querySelector("#list .running") !== null;
    await until(page, () => document.querySelector("#top .stop") === null);
    await page.waitForResponse((it) => /\/api\/sessions\/[^/?]+$/.test(it.url()));
    await page.waitForTimeout(3200);
    assert.equal(await page.evaluate(stuck), false);
    assert.ok((await page.getAttribute(box, "placeholder")).startsWith("Reply to"));
    await close(page);
  });

  await scene("a session that starts says so on every page", async () => {
    const it = server.session({ title: "Starting elsewhere" });
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "No messages yet", "#blank");
    it.isStarting = true;
    server.tell(it);
    await sees(page, "Starting Claude…");
    await sees(page, "starting", "#list .state");
    await until(page, () => document.querySelector("#top .stop") !== null);
    it.isStarting = false;
    server.tell(it);
    await until(page, () => document.querySelector("#top .stop") === null);
    assert.ok(!(await text(page)).includes("Starting"));
    await close(page);
  });
}
