// A server that dies in the middle of a run, and comes back.

import assert from "node:assert/strict";

import { close, scene, sees, sleep, tab, text, until } from "../stage.mjs";

/** Runs in the page: from now on, whatever is taken out of the view or becomes shorter is noted. */
function watch() {
  const rows = document.querySelector(".rows");
  window.__flickers = [];
  const lengths = new WeakMap();
  const look = (records) => {
    for (const it of records ?? [])
      for (const node of it.removedNodes)
        if (it.target === rows) window.__flickers.push(`a row was taken away: ${node.textContent.slice(0, 40)}`);
    for (const row of rows.children) {
      const before = lengths.get(row) ?? 0;
      if (row.textContent.length < before && row.matches(".message"))
        window.__flickers.push(`shorter than before: ${row.textContent.slice(0, 40)}`);
      lengths.set(row, row.textContent.length);
    }
  };
  look();
  new MutationObserver(look).observe(rows, { childList: true, subtree: true, characterData: true });
}

export async function play(server) {
  await scene("a server that is killed comes back: nothing is lost, told twice, or moved", async () => {
    const id = await server.prompt("words 2000");
    const page = await tab(server.address(id), { isOfflineFine: true });
    await sees(page, "word30 ");
    await page.evaluate(watch);
    await server.stop("SIGKILL");
    await sees(page, "trying again", "#link-state");
    // What has been seen stays to be read.
    assert.match(await text(page), /word30 /);
    await sleep(500);
    await server.start();
    await sees(page, "? cut off");
    await until(page, () => document.querySelector("#link-state").textContent === "");
    assert.deepEqual(await page.evaluate(() => window.__flickers), []);

    const events = await server.events(id);
    assert.deepEqual(
      events.map((it) => it.seq),
      events.map((_, at) => at + 1),
    );
    const said = events.findLast((it) => it.type === "item.closed" && it.data.item.role === "assistant").data.item.text;
    assert.equal((await text(page, ".message.assistant .prose")).trim(), said.trim());

    // Life goes on, in the same session and the same page.
    await page.fill("#composer textarea", "hello again");
    await page.keyboard.press("Enter");
    await sees(page, "You said: hello again");
    await sees(page, "✓ done");
    const fresh = await tab(server.address(id));
    await sees(fresh, "✓ done");
    assert.equal(await text(page), await text(fresh));
    assert.equal((await text(page)).split("word30 ").length, 2);
    await close(fresh);
    await close(page);
  });

  await scene("a page that is opened while the server is away finds it when it is back", async () => {
    const id = await server.prompt("hello there");
    const page = await tab(server.address(id), { isOfflineFine: true });
    await sees(page, "✓ done");
    await server.stop();
    await page.evaluate(() => (location.hash = "#/new"));
    await page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await sees(page, "cannot be reached", "#top");
    await server.start();
    await sees(page, "You said: hello there");
    await close(page);
  });
}
