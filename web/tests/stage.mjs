// What the scenes of `browser.mjs` stand on: the mock, a browser, and the watch over both.
//
// Nothing may leave the machine, nothing may violate the policy, nothing may end up on the console.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

import { furnish, start } from "./mock.mjs";

const require = createRequire(new URL("../../peers/js/", import.meta.url));
const puppeteer = require("puppeteer-core");

export const server = await start({ pace: 25 });
export const everything = furnish(server);
export const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    // Root has no sandbox to go into; the pages are ours, and the machine is a test's.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ],
});
const complaints = [];
let failed = 0;

/** A fresh tab, as somebody opens it. */
export async function open(path = "/#token=test", { is_offline_fine = false } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.on("dialog", (it) => (complaints.push(`a dialog: ${it.message()}`), it.dismiss()));
  page.on("pageerror", (it) => complaints.push(`an error: ${it.stack ?? it.message}`));
  page.on("console", (it) => {
    const is_expected = is_offline_fine && /WebSocket|Failed to load resource|ERR_/.test(it.text());
    if (!is_expected && !/status of 4\d\d/.test(it.text())) complaints.push(`on the console: ${it.text()}`);
  });
  page.on("request", (it) => {
    if (!it.url().startsWith(server.url) && !it.url().startsWith("blob:")) complaints.push(`a request: ${it.url()}`);
    if (/token=test|Bearer/.test(it.url().split("#")[0])) complaints.push(`the token is in an address: ${it.url()}`);
  });
  page.on("popup", () => complaints.push("a window was opened"));
  await page.evaluateOnNewDocument(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (it) =>
      window.__violations.push(`${it.violatedDirective} ${it.blockedURI}`),
    );
    window.__slow = [];
    new PerformanceObserver((list) =>
      window.__slow.push(...list.getEntries().map((it) => Math.round(it.duration))),
    ).observe({ type: "longtask", buffered: true });
  });
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(server.url + path);
  return page;
}

export async function close(page) {
  const seen = await page.evaluate(() => ({ violations: window.__violations, xss: window.__xss }));
  complaints.push(...seen.violations.map((it) => `the policy was violated: ${it}`));
  if (seen.xss !== undefined) complaints.push("a script ran");
  await page.browserContext().close();
}

export const text = (page, selector = "#scroll") => page.$eval(selector, (it) => it.textContent);
export const until = (page, what, ...args) => page.waitForFunction(what, { timeout: 10_000, polling: 50 }, ...args);
export const sees = (page, words, selector = "#scroll") =>
  until(page, (selector, words) => document.querySelector(selector)?.textContent.includes(words), selector, words);
export const click = (page, words) =>
  page.evaluate(
    (words) =>
      [...document.querySelectorAll("button, a, summary")]
        .find((it) => it.checkVisibility() && it.textContent.includes(words))
        .click(),
    words,
  );
export const session_id = (page) => page.evaluate(() => decodeURIComponent(location.hash.slice(4)));

export async function scene(name, act) {
  const before = complaints.length;
  const began = performance.now();
  try {
    await act();
    assert.deepEqual(complaints.slice(before), []);
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}\n${complaints.slice(before).join("\n")}`);
  }
}

/** Starts a replay by its card and waits for its session. */
export async function play(page, name) {
  await until(
    page,
    (name) => [...document.querySelectorAll("#start button")].some((it) => it.textContent.startsWith(name)),
    name,
  );
  await page.evaluate(
    (name) => [...document.querySelectorAll("#start button")].find((it) => it.textContent.startsWith(name)).click(),
    name,
  );
  await until(page, () => location.hash.startsWith("#/s/"));
  return session_id(page);
}

/** Ends it all, and says how it went. */
export async function finish() {
  await browser.close();
  await server.stop();
  console.log(failed === 0 ? "all is well" : `${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
