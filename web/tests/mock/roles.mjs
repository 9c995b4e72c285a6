// What a token may not do is not offered, and the reason is where somebody would look for it.

import assert from "node:assert/strict";

import { click, close, scene as plainScene, sees, tab, text, until } from "../stage.mjs";

const USUAL = { role: "admin", shownRole: undefined };
const WATCHING = "Your token may only watch. Sending prompts needs a token for prompt.";

export async function play(server, everything) {
  const scene = async (name, act) => {
    await plainScene(name, act);
    Object.assign(server, USUAL);
  };
  const open = (path = "/#token=test", options = {}) => tab(server.url + path, options);
  const asking = () => {
    const it = server.session({ title: "Asks" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const data = { id: "a1", kind: "permission", tool: "Bash", title: "touch z", input: { command: "touch z" } };
    server.append(it, { type: "ask.opened", data });
    const id = `${it.id}:${it.events.length}`;
    it.asks.set(id, { id, data, can_change: false });
    it.queue.push({ number: 7, prompt: "what comes next" });
    it.isRunning = true;
    return it;
  };
  const offered = (page) =>
    page.$$eval("#app button, #app a.button, #app textarea", (all) =>
      all
        .filter((it) => it.checkVisibility())
        .map((it) => it.getAttribute("aria-label") ?? it.textContent)
        .filter((it) => !/^(Sign out|\? keys|Copy|Show|All sessions)/.test(it)),
    );

  await scene("a token that may watch is offered nothing else, and told why", async () => {
    server.role = "watch";
    const it = asking();
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, WATCHING, "#composer .closed");
    await sees(page, "Your token may only watch. Answering needs a token for approve.", ".ask.open");
    await sees(page, "what comes next", ".queue");
    await sees(page, "Waiting for an answer", "#top .state");
    await sees(page, "waiting for an answer", "#list .state");
    assert.deepEqual(await offered(page), []);
    // No key opens what is not offered.
    await page.keyboard.press("n");
    assert.ok((await page.evaluate(() => location.hash)).startsWith("#/s/"));
    await page.evaluate(() => (location.hash = "#/new"));
    await sees(page, "Choose a session from the list.", "#start");
    await sees(page, WATCHING, "#composer .closed");
    assert.deepEqual(await offered(page), []);
    await page.evaluate(() => (location.hash = "#/s/nothing"));
    await sees(page, "Session not found", "#blank");
    assert.deepEqual(await offered(page), []);
    await close(page);
  });

  await scene("a token for prompts answers nothing, and chooses no mode that runs tools unasked", async () => {
    server.role = "prompt";
    const it = asking();
    const page = await open(`/#token=test/s/${it.id}`);
    await sees(page, "Answering needs a token for approve.", ".ask.open");
    assert.deepEqual(await page.$$eval(".ask.open button", (all) => all.map((it) => it.textContent)), []);
    await until(page, () => document.querySelector("#top .stop") !== null);
    const modes = await page.$$eval("[aria-label='Permissions'] option", (all) =>
      all.map((it) => [it.textContent, it.disabled]),
    );
    assert.deepEqual(modes, [
      ["Default", false],
      ["Ask me first", false],
      ["Accept edits, ask for the rest (needs a token for approve)", true],
      ["Plan only", false],
      ["Run allowed tools, deny the rest (needs a token for approve)", true],
      ["Deny anything that needs approval", false],
      ["Allow everything (needs a token for approve)", true],
    ]);
    await close(page);
  });

  await scene("a mode that was chosen with another token is not sent with this one", async () => {
    server.role = "prompt";
    const page = await open();
    await page.evaluate(() => localStorage.setItem("linkspan.choices", JSON.stringify({ permissions: "allow" })));
    await page.reload();
    await until(page, () => document.querySelector("[aria-label='Permissions'] option[value='allow']")?.disabled);
    assert.equal(await page.$eval("[aria-label='Permissions']", (it) => it.value), "ask");
    await close(page);
  });

  await scene("a token that may do less than before is told so where it was tried", async () => {
    const it = asking();
    const page = await open(`/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".ask.open .primary") !== null);
    // The page does not know yet.
    Object.assign(server, { role: "watch", shownRole: "admin" });
    await click(page, "Stop");
    await sees(page, "A token for prompt is needed for this.", "#top .problem");
    assert.ok(await page.$eval("#top .problem", (it) => it.checkVisibility()));
    await click(page, "Allow once");
    await sees(page, "A token for approve is needed for this.", ".ask.open .late");
    await page.fill("#composer textarea", "and now?");
    await page.keyboard.press("Enter");
    await sees(page, "A token for prompt is needed for this.", "#composer .problem");
    assert.equal(await page.inputValue("#composer textarea"), "and now?");
    // The next refusal tells it.
    server.shownRole = "watch";
    await click(page, "Stop");
    await sees(page, WATCHING, "#composer .closed");
    await sees(page, "Answering needs a token for approve.", ".ask.open");
    assert.equal(await page.$("#top .stop"), null);
    await close(page);
  });

  await scene("a token that may do more than before is offered more with the next connection", async () => {
    server.role = "watch";
    const page = await open(`/#token=test/s/${everything.id}`, { isOfflineFine: true });
    await sees(page, WATCHING, "#composer .closed");
    server.role = "admin";
    server.drop();
    await until(page, () => document.querySelector("#composer textarea").checkVisibility());
    await sees(page, "Fork", "#top");
    assert.ok(!(await text(page, "#composer")).includes("only watch"));
    await close(page);
  });
}
