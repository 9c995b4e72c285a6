// What somebody does who opens the page for the first time, and every day after.

import assert from "node:assert/strict";

import { click, close, play as start, scene, sees, sessionId, tab, text, until } from "../stage.mjs";

export async function play(server) {
  await scene("the address that was printed opens the page, and a replay runs within ten seconds", async () => {
    const began = performance.now();
    const page = await tab(server.printed);
    const id = await start(page, "tools");
    await sees(page, "I will look around");
    const took = performance.now() - began;
    assert.ok(took < 10_000, `${took} ms`);
    assert.equal(await page.evaluate(() => location.href), `${server.url}/#/s/${id}`);
    assert.equal(await page.evaluate(() => sessionStorage.getItem("linkspan.token")), server.token);
    // Neither the address bar nor the way back leads to the token.
    const visited = await page.context().newCDPSession(page).then((it) => it.send("Page.getNavigationHistory"));
    assert.ok(visited.entries.every((it) => !it.url.includes("token")));
    await sees(page, "✓ done");
    const { title, state, head } = await server.api(`/sessions/${id}`);
    assert.deepEqual([title !== "", state], [true, "idle"]);
    assert.equal((await server.events(id)).length, head);
    await close(page);
  });

  await scene("a recording is played at a pace to read along, and shows an approval", async () => {
    const page = await tab(server.address());
    await start(page, "approval");
    await sees(page, "rm -rf build", ".ask.open");
    await sees(page, "Needs your input", "#top .state");
    // A recording answers for itself.
    await sees(page, "Denied");
    await sees(page, "The build folder stays, as you asked.");
    await sees(page, "✓ done");
    await close(page);
  });

  await scene("text streams, word by word", async () => {
    const id = await server.prompt("words 5000");
    const page = await tab(server.address(id));
    await until(page, () => document.querySelector(".message.live .prose"));
    const steps = await page.evaluate(async () => {
      const lengths = new Set();
      for (const ends = performance.now() + 15_000; lengths.size < 10 && performance.now() < ends; ) {
        lengths.add(document.querySelector(".message.live .prose").textContent.length);
        await new Promise((done) => requestAnimationFrame(done));
      }
      return lengths.size;
    });
    assert.equal(steps, 10);
    await click(page, "Stop");
    await sees(page, "stopped");
    const words = (await text(page, ".message.assistant .prose")).trim().split(" ");
    assert.deepEqual(
      words,
      words.map((_, at) => `word${at}`),
    );
    await close(page);
  });

  await scene("a tool opens: its command, its output, its change, line by line", async () => {
    const page = await tab(server.address());
    await start(page, "tools");
    await sees(page, "✓ done");
    await page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
    await click(page, "Bash");
    await until(page, () => document.querySelector(".k-shell[open] .command"));
    await sees(page, "to-stderr", ".k-shell[open] .output");
    await click(page, "Bash");
    await until(page, () => document.querySelector(".k-shell[open]") === null);
    // A small change is open from the start, and can be closed.
    const lines = await page.$$eval(".k-edit[open] .diff > *", (all) => all.map((it) => it.textContent.trim()));
    assert.deepEqual(lines, ["- a - b", "+ a - b  # subtract"]);
    await click(page, "Edit");
    await until(page, () => document.querySelector(".k-edit[open]") === null);
    await close(page);
  });

  await scene("an approval reaches the agent: allowed", async () => {
    const page = await tab(server.address(await server.prompt("ask me")));
    await sees(page, "make it so", ".ask.open");
    await sees(page, "needs your input", "#list");
    assert.match(await page.title(), /^◆ /);
    await click(page, "Allow once");
    await sees(page, "It was allowed.");
    await sees(page, "Allowed by you");
    await sees(page, "✓ done");
    assert.deepEqual((await server.api("/asks")).asks, []);
    await close(page);
  });

  await scene("an approval reaches the agent: denied, with the reason", async () => {
    const page = await tab(server.address(await server.prompt("ask me")));
    await sees(page, "make it so", ".ask.open");
    await click(page, "Deny");
    await page.keyboard.type("not in this house");
    await page.keyboard.press("Enter");
    await sees(page, "It was denied: not in this house");
    await sees(page, "Denied by you");
    await close(page);
  });

  await scene("of two pages one answers, and the other is told", async () => {
    const id = await server.prompt("ask me");
    const [one, other] = [await tab(server.address(id)), await tab(server.address(id))];
    await sees(one, "make it so", ".ask.open");
    await sees(other, "make it so", ".ask.open");
    await click(one, "Allow once");
    await sees(other, "Allowed from another device");
    assert.equal(await other.$(".ask.open"), null);
    await close(one);
    await close(other);
  });

  await scene("a run is stopped", async () => {
    const id = await server.prompt("wait for me");
    const page = await tab(server.address(id));
    await click(page, "Stop");
    await sees(page, "stopped");
    await until(page, () => ![...document.querySelectorAll("button")].some((it) => /^Stop/.test(it.textContent)));
    await close(page);
  });

  await scene("a reload in the middle of a run loses nothing", async () => {
    const id = await server.prompt("words 150");
    const page = await tab(server.address(id));
    await sees(page, "word20 ");
    await page.reload();
    assert.equal(await sessionId(page), id);
    await sees(page, "word60 ");
    await page.reload();
    await sees(page, "✓ done");
    const fresh = await tab(server.address(id));
    await sees(fresh, "✓ done");
    assert.equal(await text(page), await text(fresh));
    assert.equal((await text(page)).split("word149").length, 2);
    await close(fresh);
    await close(page);
  });

  await scene("files that a tool names are shown, and those outside are not", async () => {
    const id = await server.prompt("picture please");
    const page = await tab(server.address(id));
    await sees(page, "✓ done");
    await click(page, "Bash");
    await until(page, () => document.querySelector(".picture img")?.naturalWidth === 10);
    await click(page, "notes.md");
    await sees(page, "what the picture shows", "#viewer");
    await page.keyboard.press("Escape");
    await click(page, "leak.txt");
    await sees(page, "Cannot show it", "#viewer");
    await close(page);
  });
}
