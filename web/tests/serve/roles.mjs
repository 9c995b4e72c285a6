// Tokens that may do less than everything, deadlines, and recordings, with the server's own answers.

import assert from "node:assert/strict";

import { click, close, play as start, scene, sees, tab, text, until } from "../stage.mjs";

export async function play(server) {
  /** The page's address with a fresh token of this role. */
  const address = async (role, session) => `${(await server.run("token", "--role", role)).split("\n")[0]}/s/${session}`;

  await scene("a watch token sees everything and is offered nothing, by what the server says", async () => {
    const id = await server.prompt("ask");
    const page = await tab(await address("watch", id));
    await sees(page, "Answering needs a token for approve.", ".ask.open");
    await sees(page, "Your token may only watch. Sending prompts needs a token for prompt.", "#composer .closed");
    assert.deepEqual(await page.$$eval(".ask.open button, #top .stop, #fresh", (all) => all.filter((it) => it.checkVisibility()).length), 0);
    assert.ok(!(await text(page, "#top")).includes("Fork"));
    // Somebody else answers.
    const [ask] = (await server.api(`/sessions/${id}`)).asks;
    await server.api(`/asks/${ask.id}`, { decision: "deny", message: "no" });
    await sees(page, "Denied from another device");
    await sees(page, "It was denied: no");
    await close(page);
  });

  await scene("a prompt token sends prompts, and leaves the answers to others", async () => {
    const id = await server.prompt("hello there");
    const page = await tab(await address("prompt", id));
    await sees(page, "✓ done");
    await until(page, () => document.querySelector("[aria-label='Permissions'] option[value='allow']").disabled);
    await page.fill("#composer textarea", "ask");
    await page.keyboard.press("Enter");
    await sees(page, "Answering needs a token for approve.", ".ask.open");
    await click(page, "Stop");
    await sees(page, "stopped");
    await close(page);
  });

  await scene("an ask with a deadline counts down, is denied, and says so once", async () => {
    const id = await server.prompt("ask", { askTimeout: 6 });
    const page = await tab(server.address(id));
    await sees(page, "Denied automatically in 0:0", ".ask.open .deadline");
    await sees(page, "Denied because nobody answered in time");
    assert.equal(await text(page, ".ask"), "Denied because nobody answered in time: make it so");
    await server.idle(id);
    await close(page);
  });

  await scene("a recording says that it cannot be replied to, and the server refuses it too", async () => {
    const page = await tab(server.address());
    const id = await start(page, "failure");
    await sees(page, "✗ failed");
    await sees(page, "it can be watched, but not replied to", "#composer .closed");
    // The error is said once.
    const words = await text(page);
    assert.equal(words.split("Invalid API key").length - 1, 1, words);
    await assert.rejects(server.api("/runs", { prompt: "and now?", session: id }), /409 .*not replied to/);
    await close(page);
  });
}
