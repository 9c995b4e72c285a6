// The token: for every tab of a browser, until somebody signs out.

import assert from "node:assert/strict";

import { close, scene, sees, sleep, tab, until } from "../stage.mjs";

export async function play(server, everything) {
  await scene("a new tab, a bookmark and a reload need no link; signing out ends all of them", async () => {
    const page = await tab(`${server.url}/#token=test`);
    await sees(page, "Something of everything", "#list");
    await until(page, () => localStorage.getItem("linkspan.token") === "test");
    const context = page.context();
    const other = await context.newPage();
    await other.goto(`${server.url}/#/s/${everything.id}`);
    await sees(other, "cut off");
    await other.reload();
    await sees(other, "cut off");
    await page.fill("#composer textarea", "a draft");
    await page.waitForFunction(() => localStorage.getItem("linkspan.drafts")?.includes("a draft"));
    await other.click("#sign-out");
    await sees(other, "You are signed out", "#gate");
    await sees(page, "You are signed out", "#gate");
    const left = await page.evaluate(() => [
      sessionStorage.getItem("linkspan.token"),
      localStorage.getItem("linkspan.token"),
      localStorage.getItem("linkspan.drafts"),
    ]);
    assert.deepEqual(left, [null, null, null]);
    await other.close();
    await page.reload();
    await sees(page, "linkspan token", "#gate");
    await close(page);
  });

  await scene("a link with a wrong token does not sign out the other tabs", async () => {
    const page = await tab(`${server.url}/#token=test`, { isOfflineFine: true });
    await until(page, () => localStorage.getItem("linkspan.token") === "test");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/#token=wrong`);
    // It falls back to the one that the browser knows.
    await sees(other, "Something of everything", "#list");
    assert.equal(await page.evaluate(() => localStorage.getItem("linkspan.token")), "test");
    await other.close();
    await close(page);
  });

  await scene("a late refusal of a wrong token does not drop the right one", async () => {
    const page = await tab(`${server.url}/#token=test`, { isOfflineFine: true });
    await until(page, () => localStorage.getItem("linkspan.token") === "test");
    const other = await page.context().newPage();
    let late = 0;
    await other.route("**/api/engines", async (route) => {
      if (route.request().headers().authorization === "Bearer wrong") {
        await sleep(1500);
        late += 1;
      }
      await route.continue();
    });
    await other.goto(`${server.url}/#token=wrong`);
    await sees(other, "Something of everything", "#list");
    await until(other, () => document.querySelector("#start button") !== null);
    while (late === 0) await sleep(50);
    await sleep(500);
    assert.equal(await page.evaluate(() => localStorage.getItem("linkspan.token")), "test");
    assert.deepEqual(
      await other.evaluate(() => [document.querySelector("#app").hidden, document.querySelector("#start button") !== null]),
      [false, true],
    );
    await other.close();
    await close(page);
  });

  await scene("a tab that waits for a token opens when another tab has signed in", async () => {
    const page = await tab(`${server.url}/#/s/${everything.id}`);
    await sees(page, "needs a token", "#gate");
    const other = await page.context().newPage();
    await other.goto(`${server.url}/#token=test`);
    await sees(other, "Something of everything", "#list");
    await sees(page, "cut off");
    assert.equal(await page.$eval("#gate", (it) => it.checkVisibility()), false);
    await other.close();
    await close(page);
  });

  await scene("signing out leaves nothing of a session in the document", async () => {
    const it = server.session({ title: "A zebra project" });
    server.append(it, { type: "run.started", data: { cause: "prompt" } });
    const page = await tab(`${server.url}/#token=test/s/${it.id}`);
    await until(page, () => document.querySelector(".run") !== null);
    const ask = { id: "a1", kind: "permission", tool: "Bash", title: "touch zebra.txt", input: { command: "touch zebra.txt" } };
    server.append(it, { type: "ask.opened", data: ask });
    await sees(page, "touch zebra.txt", "#live");
    await page.fill("#composer textarea", "a zebra draft");
    await page.click("#sign-out");
    await sees(page, "You are signed out", "#gate");
    const left = await page.evaluate(() => document.documentElement.outerHTML + document.title + document.querySelector("textarea").value);
    assert.ok(!left.includes("zebra"), left);
    await close(page);
  });
}
