// Finding a session again, and going on with it.

import assert from "node:assert/strict";

import { click, close, scene, sees, sessionId, tab, until } from "../stage.mjs";

export async function play(server) {
  await scene("a session is found by its native id, and has an address that stays", async () => {
    const id = await server.prompt("find me by my name");
    await server.idle(id);
    const { native } = await server.api(`/sessions/${id}`);
    assert.notEqual(native, id);
    const page = await tab(server.address(native));
    await sees(page, "You said: find me by my name");
    assert.equal(await page.evaluate(() => location.href), `${server.url}/#/s/${id}`);
    await page.reload();
    await sees(page, "You said: find me by my name");
    assert.equal(await sessionId(page), id);
    await page.evaluate(() => (location.hash = "#/s/no-such-session"));
    await sees(page, "not found", "#blank");
    await close(page);
  });

  await scene("a search finds what the list shows, and nothing is told as nothing", async () => {
    const id = await server.prompt("a needle in the haystack");
    await server.prompt("only hay");
    const page = await tab(server.address());
    await sees(page, "needle", "#list");
    await page.keyboard.press("/");
    await page.keyboard.type("needle");
    await until(page, () => document.querySelectorAll("#list li").length === 1);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await sees(page, "You said: a needle in the haystack");
    assert.equal(await sessionId(page), id);
    await page.fill("#search", "zebra");
    await sees(page, "No session", "#list-note");
    await page.fill("#search", "");
    await sees(page, "only hay", "#list");
    await close(page);
  });

  await scene("a prompt in an open session goes on with it", async () => {
    const id = await server.prompt("the first word");
    const page = await tab(server.address(id));
    await sees(page, "✓ done");
    const { native } = await server.api(`/sessions/${id}`);
    await page.fill("#composer textarea", "the second word");
    await page.keyboard.press("Enter");
    await sees(page, "You said: the second word");
    await server.idle(id);
    const after = await server.api(`/sessions/${id}`);
    assert.deepEqual([after.native, after.runs.map((it) => it.outcome)], [native, ["completed", "completed"]]);
    await close(page);
  });

  await scene("a fork is a session of its own, and the first one stays as it was", async () => {
    const id = await server.prompt("the trunk");
    const page = await tab(server.address(id));
    await sees(page, "✓ done");
    const before = await server.api(`/sessions/${id}`);
    await click(page, "Fork");
    await page.fill("#composer textarea", "the branch");
    await page.keyboard.press("Enter");
    await sees(page, "You said: the branch");
    const fork = await server.api(`/sessions/${await sessionId(page)}`);
    assert.notEqual(fork.id, id);
    assert.notEqual(fork.native, before.native);
    assert.deepEqual(await server.api(`/sessions/${id}`), before);
    await close(page);
  });

  await scene("a session that the terminal knows goes on in the page, by its native id", async () => {
    const native = "7d1c4f0e-2b7a-4b6e-9a53-0d6f3a1c9e11";
    const page = await tab(server.address());
    await until(page, () => document.querySelector("[aria-label='Agent'] option[value='claude']"));
    await page.selectOption("[aria-label='Agent']", "claude");
    await click(page, "More");
    await page.fill("[aria-label^='Session ID']", native);
    await page.fill("#composer textarea", "where were we");
    await page.keyboard.press("Enter");
    await sees(page, "You said: where were we");
    assert.equal((await server.api(`/sessions/${await sessionId(page)}`)).native, native);
    await close(page);
  });

  await scene("a session that is removed is closed, and the page says so", async () => {
    const id = await server.prompt("soon gone");
    await server.idle(id);
    const page = await tab(server.address(id));
    await sees(page, "You said: soon gone");
    const headers = { Authorization: `Bearer ${server.token}` };
    const removed = await fetch(`${server.url}/api/sessions/${id}`, { method: "DELETE", headers });
    assert.equal(removed.status, 200);
    await sees(page, "“soon gone” was removed.", "#top");
    assert.equal(await page.evaluate(() => location.hash), "#/");
    await until(page, (id) => !document.querySelector(`#list a[href="#/s/${id}"]`), id);
    await close(page);
  });

  await scene("a prompt that waits is shown, and taken back", async () => {
    const id = await server.prompt("wait here");
    const page = await tab(server.address(id));
    await sees(page, "wait here");
    await page.fill("#composer textarea", "and then this");
    await page.keyboard.press("Enter");
    await sees(page, "and then this", ".queue");
    await sees(page, "1 queued", "#list");
    await click(page, "Edit");
    await until(page, () => document.querySelector(".queue").hidden);
    assert.equal(await page.inputValue("#composer textarea"), "and then this");
    assert.deepEqual((await server.api(`/sessions/${id}`)).queue, []);
    await click(page, "Stop");
    await sees(page, "stopped");
    await close(page);
  });
}
