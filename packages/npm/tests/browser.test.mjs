// The client in a page of another origin, and the example, in Chromium against the real server.
//
// `CHROMIUM` names another browser than /usr/bin/chromium. `SHOTS` names a folder for pictures of the example.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Server } from "../../../web/tests/server.mjs";
import { serve } from "../examples/app/serve.mjs";
import { Proxy, random } from "./proxy.mjs";

const { chromium } = createRequire(new URL("../../../peers/js/", import.meta.url))("playwright-core");
const PATIENCE = 30_000;

const app = await serve();
const way = await new Proxy().start();
const server = new Server({ flags: ["--allow-origin", app.url, "--origin", way.url] });
let browser;

before(async () => {
  await server.start();
  way.target = Number(new URL(server.url).port);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Root has no sandbox to go into; the pages are ours.
    args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-background-networking", "--no-first-run"],
  });
});

after(async () => {
  await browser.close();
  app.stop();
  way.stop();
  await server.leave();
});

/** A tab, and what it complains of. */
async function tab(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const complaints = [];
  page.on("pageerror", (it) => complaints.push(it.stack ?? it.message));
  page.on("request", (it) => it.url().includes(server.token) && complaints.push(`the token is in an address: ${it.url()}`));
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}

/** Runs in the page: a run with a question, followed from the beginning. */
async function ask({ url, token, cwd }) {
  const { Linkspan } = await import("/node_modules/linkspan/src/browser.js");
  const client = new Linkspan({ url, token });
  const run = client.run({ prompt: "ask", engine: "claude", cwd, permissions: "ask" });
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.type === "ask.opened") await client.settle(event, "allow");
  }
  await client.close();
  return events;
}

test("a page of another origin runs, answers and follows", async () => {
  const { page, complaints, close } = await tab(app.url);
  const events = await page.evaluate(ask, { url: server.url, token: server.token, cwd: server.work });
  assert.equal(events.at(-1).data.answer, "It was allowed.");
  assert.deepEqual(events, (await server.events(events[0].session)).slice(0, events.length));
  assert.deepEqual(complaints, []);
  await close();
});

test("a page loses nothing over cuts", async () => {
  const chance = random(5);
  let nLeft = 8;
  way.budget = () => ((nLeft -= 1) < 0 ? undefined : 300 + Math.floor(chance() * 8000));
  const session = await server.prompt("words 150");
  const { page, close } = await tab(app.url);
  const events = await page.evaluate(
    async ({ url, token, session }) => {
      const { Linkspan } = await import("/node_modules/linkspan/src/browser.js");
      const events = [];
      for await (const event of new Linkspan({ url, token }).subscribe({ session })) {
        events.push(event);
        if (event.type === "run.ended") return events;
      }
      return events;
    },
    { url: way.url, token: server.token, session },
  );
  assert.ok(way.nCuts >= 4, `there were ${way.nCuts} cuts`);
  assert.deepEqual(events, (await server.events(session)).slice(0, events.length));
  await close();
});

test("a wrong token ends it, and an origin that was not named gets no answer", async () => {
  const attempt = async ({ url, token }) => {
    const { Linkspan } = await import("/node_modules/linkspan/src/browser.js");
    const client = new Linkspan({ url, token });
    const states = new Promise((done) => client.subscribe({ onState: (state, error) => done([state, error?.code]) }).next().catch(() => {}));
    const code = await client.me().then(() => "fine", (it) => it.code);
    const seen = await states;
    await client.close();
    return [code, ...seen];
  };
  const named = await tab(app.url);
  const wrong = await named.page.evaluate(attempt, { url: server.url, token: "wrong".repeat(8) });
  assert.deepEqual(wrong, ["unauthorized", "closed", "unauthorized"]);
  await named.close();
  const other = await tab(app.url.replace("127.0.0.1", "localhost"));
  const refused = await other.page.evaluate(attempt, { url: server.url, token: server.token });
  assert.deepEqual(refused, ["unreachable", "waiting", "unreachable"]);
  await other.close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`the example lists, shows, prompts, answers and stops, in the ${colorScheme}`, async () => {
    const { page, complaints, close } = await tab(app.url, { colorScheme });
    await page.fill("[name=url]", server.url);
    await page.fill("[name=token]", "wrong".repeat(8));
    await page.click("#connect button");
    await page.waitForFunction(() => document.querySelector("#connect .error").textContent.includes("wrong"));
    await shoot(page, `connect-${colorScheme}`);
    await page.fill("[name=token]", server.token);
    await page.click("#connect button");
    await page.waitForSelector("#composer option[value=claude]", { state: "attached" });
    await page.fill("#composer textarea", "ask");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".ask button.primary");
    await page.waitForSelector("#sessions .waiting");
    await shoot(page, `ask-${colorScheme}`);
    await page.click(".ask button.primary");
    await page.waitForSelector(".end.completed");
    assert.match(await page.textContent("#feed"), /It was allowed\./);
    await page.fill("#composer textarea", "wait");
    await page.click("#composer button.primary");
    await page.click("#stop");
    await page.waitForSelector(".end.aborted");
    await page.waitForSelector("#stop", { state: "hidden" });
    await shoot(page, `feed-${colorScheme}`);
    // It comes back as it was.
    await page.reload();
    await page.click("#sessions button >> nth=0");
    await page.waitForSelector(".end.aborted");
    await page.setViewportSize({ width: 400, height: 760 });
    const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(isTooWide, false);
    await shoot(page, `phone-${colorScheme}`);
    assert.deepEqual(complaints, []);
    await close();
  });
}

async function shoot(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) });
}
