// For every reader: on a phone, by keyboard alone, in the light and in the dark.

import assert from "node:assert/strict";

import { click, close, play as start, scene, sees, tab, until } from "../stage.mjs";

/** The least contrast of text, as WCAG 2 AA has it. */
const CONTRAST = 4.5;

export async function play(server) {
  await scene("on a phone everything is there, and nothing sticks out", async () => {
    const phone = { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true };
    const page = await tab(server.address(), phone);
    const fits = async (where) => assert.deepEqual(await page.evaluate(wide), [], where);
    await until(page, () => document.querySelector("#list a")?.checkVisibility());
    await fits("the list");
    await page.tap("#fresh");
    await until(page, () => document.querySelector("#start button")?.checkVisibility());
    await fits("the start");
    await start(page, "tools");
    await sees(page, "✓ done");
    await fits("a session");
    for (const it of await page.$$(".card:not([open]) > summary")) await it.evaluate((it) => it.click());
    await fits("open cards");
    const id = await server.prompt("ask me");
    await page.evaluate((id) => (location.hash = `#/s/${id}`), id);
    await until(page, () => document.querySelector(".ask.open .primary"));
    await fits("an ask");
    // A thumb is no mouse.
    const small = await page.$$eval(".ask.open .actions button, #top button, .send, .back, .options > *", (all) =>
      all.filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44).map((it) => it.textContent),
    );
    assert.deepEqual(small, []);
    await page.tap(".ask.open .primary");
    await sees(page, "It was allowed.");
    await page.tap(".back");
    await until(page, () => document.querySelector("#list a")?.checkVisibility());
    await close(page);
  });

  await scene("with the keyboard alone", async () => {
    const page = await tab(server.address());
    const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
    const focused = (what) => until(page, (what) => document.activeElement?.matches(what), what);
    await until(page, () => document.querySelector("#start button"));
    for (let n = 0; n < 300; n += 1) {
      await press("Tab");
      if (await page.evaluate(() => document.activeElement?.dataset.name === "replay:tools")) break;
    }
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
    await press("Enter");
    await sees(page, "✓ done");
    // A card opens and closes.
    await page.evaluate(() => document.getElementById("scroll").focus());
    for (let n = 0; n < 30; n += 1) {
      await press("Tab");
      if (await page.evaluate(() => document.activeElement?.matches(".k-shell > summary"))) break;
    }
    await press("Enter");
    await until(page, () => document.querySelector(".k-shell[open]"));
    await press("Enter");
    await until(page, () => !document.querySelector(".k-shell[open]"));
    // A new session, an ask, an answer.
    await press("n");
    await focused("#composer textarea");
    await until(page, () => document.querySelector("[aria-label='Agent'] option[value='claude']"));
    await page.keyboard.type("ask me");
    await press("Enter");
    await until(page, () => document.querySelector(".ask.open"));
    await press("Escape", "a");
    await focused(".ask.open *");
    await press("Enter");
    await sees(page, "It was allowed.");
    await sees(page, "✓ done");
    // Along the list and back.
    await page.evaluate(() => document.activeElement?.blur());
    await press("j", "Enter");
    await sees(page, "Everything is done");
    await press("k", "Enter");
    await sees(page, "It was allowed.");
    await press("?");
    await until(page, () => document.querySelector("dialog[open]"));
    await press("Escape");
    await until(page, () => !document.querySelector("dialog[open]"));
    await close(page);
  });

  for (const colorScheme of ["light", "dark"]) {
    await scene(`every word can be read in the ${colorScheme}`, async () => {
      const page = await tab(server.address(), { colorScheme });
      await until(page, () => document.querySelector("#start button"));
      assert.deepEqual(await page.evaluate(faint, CONTRAST), []);
      await start(page, "tools");
      await sees(page, "✓ done");
      for (const it of await page.$$(".card:not([open]) > summary")) await it.evaluate((it) => it.click());
      assert.deepEqual(await page.evaluate(faint, CONTRAST), []);
      await page.evaluate((id) => (location.hash = `#/s/${id}`), await server.prompt("ask me"));
      await until(page, () => document.querySelector(".ask.open"));
      assert.deepEqual(await page.evaluate(faint, CONTRAST), []);
      await click(page, "Stop");
      await sees(page, "stopped");
      assert.deepEqual(await page.evaluate(faint, CONTRAST), []);
      await close(page);
    });
  }
}

/** Runs in the page: what is wider than the view, unless it scrolls by itself. */
function wide() {
  const isWide = (it) => it.getBoundingClientRect().right > innerWidth + 1 || it.getBoundingClientRect().left < -1;
  return [...document.querySelectorAll("body *")]
    .filter((it) => it.checkVisibility() && !it.closest("pre, .table, .sr") && isWide(it))
    .map((it) => `${it.tagName}.${it.className}`);
}

/** Runs in the page: texts with too little contrast to what is behind them. */
function faint(least) {
  // Whatever the notation, the canvas knows the bytes.
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) => top.slice(0, 3).map((it, n) => (it * top[3] + below[n] * (255 - top[3])) / 255);
  const light = (color) => {
    const [r, g, b] = color.map((it) => (it / 255 <= 0.03928 ? it / 255 / 12.92 : ((it / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const own = rgba(getComputedStyle(node).backgroundColor);
    return own[3] === 255 ? own.slice(0, 3) : over(own, behind(node.parentElement));
  };
  const opacity = (node) => (node ? Number(getComputedStyle(node).opacity) * opacity(node.parentElement) : 1);
  const bad = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let it = walker.nextNode(); it; it = walker.nextNode()) {
    const node = it.parentElement;
    if (it.textContent.trim() === "" || !node.checkVisibility() || node.closest(".sr, :disabled, noscript")) continue;
    const below = behind(node);
    const color = rgba(getComputedStyle(node).color);
    color[3] *= opacity(node);
    const [a, b] = [light(over(color, below)), light(below)].sort((a, b) => b - a);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least) bad.add(`${ratio.toFixed(1)} ${node.tagName}.${node.className}: ${it.textContent.trim().slice(0, 30)}`);
  }
  return [...bad];
}
