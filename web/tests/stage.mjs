// What scenes stand on: a browser, and the watch over every tab of it.
//
// Nothing may leave the machine, nothing may violate the policy, nothing may end up on the console,
// and no token may be part of an address that is sent.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../peers/js/", import.meta.url));
const { chromium } = require("playwright-core");

export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    // Root has no sandbox to go into; the pages are ours, and the machine is a test's.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    // One name leads here that is not ours; no other leads anywhere.
    "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ],
});
/** Milliseconds that a scene may take, on a machine with other work to do. */
const LONGEST = 120_000;

const complaints = [];
let passed = 0;
let failed = 0;
let skipped = 0;

/**
 * A fresh tab, as somebody opens it. `isOfflineFine` is for scenes in which the server goes away;
 * the rest is what a browser context can be told: `viewport`, `colorScheme`, `reducedMotion`, …
 */
export async function tab(url, { isOfflineFine = false, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const { origin } = new URL(url);
  const secret = /#token=([^/&]+)/.exec(url)?.[1];
  page.on("dialog", (it) => (complaints.push(`a dialog: ${it.message()}`), it.dismiss()));
  page.on("pageerror", (it) => complaints.push(`an error: ${it.stack ?? it.message}`));
  page.on("console", (it) => {
    const isExpected = isOfflineFine && /WebSocket|Failed to load resource|ERR_/.test(it.text());
    if (!isExpected && !/status of 4\d\d/.test(it.text())) complaints.push(`on the console: ${it.text()}`);
  });
  page.on("request", (it) => {
    const sent = it.url().split("#")[0];
    if (!sent.startsWith(`${origin}/`) && !sent.startsWith("blob:")) complaints.push(`a request: ${sent}`);
    if (secret !== undefined && sent.includes(`=${secret}`)) complaints.push(`the token is in an address: ${sent}`);
  });
  page.on("popup", () => complaints.push("a window was opened"));
  await page.addInitScript(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (it) =>
      window.__violations.push(`${it.violatedDirective} ${it.blockedURI}`),
    );
    window.__slow = [];
    new PerformanceObserver((list) =>
      window.__slow.push(...list.getEntries().map((it) => Math.round(it.duration))),
    ).observe({ type: "longtask", buffered: true });
  });
  await page.goto(url);
  return page;
}

export async function close(page) {
  const seen = await page.evaluate(() => ({ violations: window.__violations, xss: window.__xss }));
  complaints.push(...seen.violations.map((it) => `the policy was violated: ${it}`));
  if (seen.xss !== undefined) complaints.push("a script ran");
  await page.context().close();
}

export const text = (page, selector = "#scroll") => page.$eval(selector, (it) => it.textContent);
export const until = (page, what, arg) => page.waitForFunction(what, arg, { timeout: 20_000, polling: 50 });
export const sees = (page, words, selector = "#scroll") =>
  until(page, ([selector, words]) => document.querySelector(selector)?.textContent.includes(words), [selector, words]);

/** Clicks what is visible and has these words, once it is there. */
export async function click(page, words) {
  const find = (words) =>
    [...document.querySelectorAll("button, a, summary")].find(
      (it) => it.checkVisibility() && it.textContent.includes(words),
    );
  const node = await until(page, find, words);
  await node.asElement().evaluate((it) => it.click());
}

export const sessionId = (page) => page.evaluate(() => decodeURIComponent(location.hash.slice(4)));
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Starts a replay by its card and waits for its session. */
export async function play(page, name) {
  const find = (name) => [...document.querySelectorAll("#start button")].find((it) => it.dataset.name === name);
  const node = await until(page, find, `replay:${name}`);
  await node.asElement().evaluate((it) => it.click());
  await until(page, () => location.hash.startsWith("#/s/"));
  return sessionId(page);
}

/** Scenes whose names hold these words are played; all of them unless given. */
const ONLY = process.env.SCENE ?? "";

export async function scene(name, act) {
  if (!ONLY.split("|").some((it) => name.includes(it))) return;
  const before = complaints.length;
  const began = performance.now();
  let timer;
  const tooLong = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`nothing more happened in ${LONGEST / 1000} s`)), LONGEST);
  });
  try {
    await Promise.race([act(), tooLong]);
    assert.deepEqual(complaints.slice(before), []);
    passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}\n${complaints.slice(before).join("\n")}`);
    // What is left of it would disturb the next one.
    for (const it of browser.contexts()) await it.close();
  } finally {
    clearTimeout(timer);
  }
}

/** Says that a scene cannot be played here, and why. */
export function skip(name, why) {
  skipped += 1;
  console.log(`SKIPPED ${name}: ${why}`);
}

/** Ends it all, and says how it went. */
export async function finish() {
  await browser.close();
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} SKIPPED` : ""}`);
  process.exitCode = failed === 0 ? 0 : 1;
}
