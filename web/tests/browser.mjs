// The page in a real browser, against the mock: what people do, and what must never happen.
//
//   node web/tests/browser.mjs

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import * as asks from "./mock/asks.mjs";
import * as prompts from "./mock/prompts.mjs";
import * as roles from "./mock/roles.mjs";
import * as tokens from "./mock/tokens.mjs";
import * as words from "./mock/words.mjs";
import { long } from "./long.mjs";
import { furnish, golden, start } from "./mock.mjs";
import { click, close, finish, play, scene, sees, sessionId, sleep, tab, text, until } from "./stage.mjs";

const server = await start({ pace: 25 });
const everything = furnish(server);
const open = (path = "/#token=test", options = {}) => tab(server.url + path, options);

await scene("the token moves out of the address", async () => {
  const page = await open();
  await sees(page, "Something of everything", "#list");
  assert.equal(await page.evaluate(() => location.href), `${server.url}/`);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("linkspan.token")), "test");
  await close(page);
});

await scene("no token and a wrong token are told apart", async () => {
  const none = await open("/");
  await sees(none, "needs a token", "#gate");
  await none.type("#gate input", "test");
  await none.keyboard.press("Enter");
  await sees(none, "Something of everything", "#list");
  await close(none);
  const wrong = await open("/#token=wrong", { isOfflineFine: true });
  await sees(wrong, "does not accept this token", "#gate");
  await close(wrong);
});

await scene("a replay streams, word by word", async () => {
  const page = await open();
  await play(page, "story");
  await until(page, () => document.querySelector(".message.live .prose")?.textContent.length > 20);
  const early = (await text(page, ".message.live .prose")).length;
  await until(page, (early) => (document.querySelector(".prose")?.textContent.length ?? 0) > early + 50, early);
  await click(page, "Stop");
  await sees(page, "stopped");
  await close(page);
});

await scene("a tool opens and shows what it did", async () => {
  const page = await open(`/#token=test/s/${everything.id}`);
  await sees(page, "cut off");
  await page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
  await sees(page, "make");
  await click(page, "Bash");
  await sees(page, "cc a.c");
  await sees(page, "Always allowed");
  await close(page);
});

await scene("a sub-agent's work is inside of its card", async () => {
  const page = await open(`/#token=test/s/${everything.native}`);
  await sees(page, "cut off");
  assert.equal(await sessionId(page), everything.id);
  await page.evaluate(() => (document.getElementById("scroll").scrollTop = 300));
  await sees(page, "Agent · Explore");
  assert.ok(!(await text(page)).includes("Nothing here."));
  await click(page, "Agent · Explore");
  await sees(page, "Nothing here.");
  await close(page);
});

await scene("an approval is answered once, and who is late is told", async () => {
  server.answers.length = 0;
  const page = await open();
  const id = await play(page, "permission");
  const other = await open(`/#token=test/s/${id}`);
  await sees(page, "Allow this?");
  await sees(other, "Allow this?");
  await until(page, () =>
    [...document.querySelectorAll(".ask.open button")].some((it) => it.textContent === "Edit…" && !it.hidden),
  );
  await click(page, "Allow once");
  await sees(page, "Allowed by you");
  await sees(other, "Allowed from another device");
  await until(page, () => document.querySelector(".ask.open") !== null);
  await click(page, "Deny");
  await page.keyboard.type("not today");
  await page.keyboard.press("Enter");
  await sees(page, "Denied by you");
  assert.deepEqual(
    server.answers.map(({ decision, message }) => ({ decision, message })),
    [
      { decision: "allow", message: undefined },
      { decision: "deny", message: "not today" },
    ],
  );
  await close(other);
  await close(page);
});

await scene("the late answer is told who was faster", async () => {
  const page = await open();
  const id = await play(page, "permission");
  await sees(page, "Allow this?");
  const target = server.sessions.get(id);
  const [ask] = [...target.asks.keys()];
  target.asks.delete(ask);
  await click(page, "Allow once");
  await sees(page, "Already answered elsewhere: it was allowed by another client");
  target.wake({ decision: "deny", message: "no" });
  await sees(page, "Denied");
  await close(page);
});

await scene("an input is changed before it is allowed", async () => {
  server.answers.length = 0;
  const page = await open();
  await play(page, "permission");
  await until(page, () =>
    [...document.querySelectorAll(".ask.open button")].some((it) => it.textContent === "Edit…" && !it.hidden),
  );
  await click(page, "Edit…");
  await page.evaluate(() => {
    const editor = document.querySelector(".ask.open textarea");
    editor.value = '{"file_path":"/workspace/b.txt","content":"B"}';
  });
  await click(page, "Allow once");
  await sees(page, "Allowed by you");
  assert.deepEqual(server.answers[0].input, { file_path: "/workspace/b.txt", content: "B" });
  await close(page);
});

await scene("a question is answered with an option", async () => {
  server.answers.length = 0;
  const page = await open();
  await play(page, "question");
  await sees(page, "Which color?", ".ask.open");
  await page.evaluate(() => [...document.querySelectorAll(".option input")].find((it) => it.value === "Blue").click());
  await page.evaluate(() => [...document.querySelectorAll(".ask.open .actions button")][0].click());
  await until(page, () => document.querySelector(".ask.open") === null);
  assert.deepEqual(server.answers[0].input.answers, { "Which color?": "Blue" });
  await close(page);
});

await scene("a reload in the middle of a run loses nothing", async () => {
  const page = await open();
  const id = await play(page, "story");
  await until(page, () => document.querySelector(".message.live .prose")?.textContent.length > 20);
  await page.reload();
  assert.equal(await sessionId(page), id);
  server.pace = 2;
  await sees(page, "✓ done");
  server.pace = 25;
  const said = golden("openresponses/recorded-lmstudio-basic.1").findLast(
    (it) => it.type === "item.closed" && it.data.item.role === "assistant",
  ).data.item.text;
  const letters = (it) => it.replace(/[^\p{L}\p{N}]/gu, "");
  await page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
  assert.ok(letters(await text(page)).includes(letters(said)));
  await close(page);
});

await scene("lost connections lose no event, show none twice, and move nothing", async () => {
  const page = await open("/#token=test", { isOfflineFine: true });
  const id = await play(page, "story");
  await until(page, () => document.querySelector(".message.live .prose")?.textContent.length > 20);
  await page.evaluate(() => (document.querySelector(".message.live").dataset.mine = "1"));
  for (let n = 0; n < 4; n += 1) {
    server.drop();
    await sleep(350);
  }
  server.pace = 2;
  await sees(page, "✓ done");
  server.pace = 25;
  assert.equal(await page.$$eval("[data-mine]", (all) => all.length), 1);
  const target = server.sessions.get(id);
  const said = target.events.findLast((it) => it.type === "item.closed" && it.data.item.role === "assistant").data.item
    .text;
  const letters = (it) => it.replace(/[^\p{L}\p{N}]/gu, "");
  const shown = letters(await text(page));
  assert.equal(shown.split(letters(said)).length, 2);
  await close(page);
});

await scene("a server that is away is waited for", async () => {
  const page = await open(`/#token=test/s/${everything.id}`, { isOfflineFine: true });
  await page.setViewportSize({ width: 400, height: 800 });
  await sees(page, "cut off");
  server.isDown = true;
  server.drop();
  await sees(page, "trying again", "#lost");
  server.append(everything, {
    type: "notice.raised",
    data: { level: "info", code: "x", text: "said while you were away" },
  });
  await page.route("**/api/runs", (it) => it.abort());
  await page.fill("#composer textarea", "written while it was away");
  await page.keyboard.press("Enter");
  await sees(page, "The server cannot be reached.", "#composer .problem");
  server.isDown = false;
  await sees(page, "said while you were away");
  await until(page, () => !document.querySelector("#composer .problem").checkVisibility());
  assert.equal(await page.inputValue("#composer textarea"), "written while it was away");
  await until(page, () => document.querySelector("#lost").textContent === "");
  await close(page);
});

await scene("no parameter of the address leads anywhere else", async () => {
  const page = await open(
    `/?gatewayUrl=ws://evil.test/&server=http://evil.test&token=other&format=thread#token=test/s/${everything.id}&server=evil.test`,
  );
  await sees(page, "said while you were away");
  await close(page);
});

await scene("a second prompt is queued, is edited, and goes into the open session", async () => {
  server.submitted.length = 0;
  const page = await open();
  const id = await play(page, "permission");
  await sees(page, "Allow this?");
  await page.type("#composer textarea", "and then this");
  await page.keyboard.press("Enter");
  await sees(page, "and then this", ".queue");
  await page.click(".queue button");
  await until(page, () => document.querySelector(".queue").hidden);
  assert.equal(await page.$eval("#composer textarea", (it) => it.value), "and then this");
  assert.equal(server.submitted[1].session, id);
  await click(page, "Stop");
  await sees(page, "stopped");
  await close(page);
});

await scene("a fork starts a session of its own", async () => {
  server.submitted.length = 0;
  const page = await open(`/#token=test/s/${everything.id}`);
  await sees(page, "cut off");
  await click(page, "Fork");
  await page.type("#composer textarea", "another way");
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  await until(page, (id) => location.hash.startsWith("#/s/") && !location.hash.includes(id), everything.id);
  assert.deepEqual(server.submitted[0], { prompt: "another way", fork: everything.id, permissions: "ask" });
  await close(page);
});

await scene("search, keys and escape", async () => {
  const page = await open();
  await sees(page, "Something of everything", "#list");
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("/");
  await page.keyboard.type("app server");
  await until(page, () => document.querySelectorAll("#list li").length === 1);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await sees(page, "Codex, over its app server", "#top");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Escape");
  await until(page, () => location.hash === "#/");
  await close(page);
});

await scene("what is to be allowed is shown whole, or the page says what is missing", async () => {
  const it = server.session({ title: "Long" });
  const text = `${"x".repeat(20_000)}\n${"line\n".repeat(3_000)}`;
  const tool = {
    kind: "tool",
    id: "t1",
    name: "Write",
    class: { kind: "write", title: "Write a", diffs: [{ path: "a", new: text }] },
  };
  server.append(it, { type: "run.started", data: { cause: "prompt" } });
  server.append(it, { type: "item.opened", data: tool });
  const input = { command: "rm \u202e-rf /" };
  server.append(it, {
    type: "ask.opened",
    data: { id: "a1", kind: "permission", item: "t1", tool: "Write", title: "Write a", input },
  });
  const page = await open(`/#token=test/s/${it.id}`);
  await sees(page, "10000 more characters not shown", ".ask.open");
  await sees(page, "1001 more lines not shown", ".ask.open");
  await sees(page, "rm ⟨U+202E⟩-rf /", ".ask.open");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("a");
  await until(page, () => document.activeElement?.closest(".ask.open") !== null);
  await close(page);
});

await scene("a file opens in the page", async () => {
  const it = server.session({ title: "Files" });
  const tool = {
    kind: "tool",
    id: "t1",
    name: "Bash",
    input: { command: "plot" },
    class: { kind: "shell", title: "plot", command: "plot" },
  };
  server.append(it, { type: "run.started", data: { cause: "prompt" } });
  server.append(it, { type: "item.opened", data: tool });
  server.append(it, {
    type: "item.closed",
    data: { status: "ok", item: { ...tool, result: { content: "wrote out/plot.png and notes.md, see example.com" } } },
  });
  server.append(it, { type: "run.ended", data: { outcome: "completed" } });
  const page = await open(`/#token=test/s/${it.id}`);
  await sees(page, "plot");
  await click(page, "Bash");
  await until(page, () => document.querySelector(".picture img")?.complete);
  assert.deepEqual(await page.$$eval(".file", (all) => all.map((it) => it.textContent)), ["out/plot.png", "notes.md"]);
  await click(page, "notes.md");
  await sees(page, "contents of notes.md", "#viewer");
  await page.keyboard.press("Escape");
  await until(page, () => !document.getElementById("viewer").open);
  // Going elsewhere closes it, too.
  await click(page, "notes.md");
  await until(page, () => document.getElementById("viewer").open);
  await page.evaluate(() => (location.hash = "#/new"));
  await until(page, () => !document.getElementById("viewer").open);
  await close(page);
});

await scene("hostile text in every field runs nothing", async () => {
  const payloads = readFileSync(new URL("../../fixtures/model/xss.payloads.jsonl", import.meta.url), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((it) => JSON.parse(it));
  const it = server.session({ title: payloads[0], native: `n-${payloads[1]}`, engine: payloads[10] });
  server.append(it, {
    type: "session.bound",
    data: { native: payloads[2], model: payloads[3], cwd: payloads[4], permission_mode: payloads[5], how: "init" },
  });
  server.append(it, { type: "run.started", data: { cause: "prompt" } });
  for (const [n, text] of payloads.entries()) {
    const items = [
      {
        kind: "message",
        id: `u${n}`,
        role: "user",
        text,
        parts: [{ image: { media_type: text, data: text } }, { image_url: { url: text } }],
      },
      { kind: "message", id: `m${n}`, role: "assistant", text },
      { kind: "reasoning", id: `r${n}`, text },
      {
        kind: "tool",
        id: `t${n}`,
        name: text,
        input: { [text]: text },
        class: {
          kind: text,
          title: text,
          command: text,
          paths: [{ path: text }],
          diffs: [{ path: text, old: text, new: `${text}x` }],
          query: text,
          mcp: { server: text, tool: text },
        },
        result: {
          content: [
            { type: "text", text },
            { type: "image", mimeType: text, data: text },
          ],
        },
      },
      { kind: "plan", id: `p${n}`, entries: [{ text, status: "pending" }] },
      { kind: "other", id: `o${n}`, name: text, text, data: text },
      { kind: "compaction", id: `c${n}`, trigger: text, summary: text },
    ];
    for (const item of items) server.append(it, { type: "item.closed", data: { status: "ok", item } });
    server.append(it, { type: "notice.raised", data: { level: "warning", code: text, text } });
    server.append(it, {
      type: "ask.opened",
      data: {
        id: `a${n}`,
        kind: "permission",
        tool: text,
        title: text,
        description: text,
        input: { command: text },
        suggestions: [{ mode: text }],
      },
    });
    server.append(it, { type: "ask.settled", data: { id: `a${n}`, decision: "denied", message: text } });
  }
  server.append(it, { type: "run.ended", data: { outcome: "failed", error: { code: "x", message: payloads[6] } } });
  const page = await open(`/#token=test/s/${it.id}`);
  await sees(page, "failed");
  const bad = await page.evaluate(async () => {
    const scroll = document.getElementById("scroll");
    const bad = [];
    scroll.scrollTop = 0;
    for (let n = 0; n < 5000; n += 1) {
      await new Promise((done) => requestAnimationFrame(done));
      for (const it of scroll.querySelectorAll("summary")) if (!it.parentElement.open) it.click();
      await new Promise((done) => requestAnimationFrame(done));
      for (const it of document.querySelectorAll("#app *")) {
        if (/^(?:SCRIPT|IFRAME|OBJECT|EMBED|STYLE|BASE|META|LINK|FORM|VIDEO|AUDIO)$/.test(it.tagName))
          bad.push(it.tagName);
        for (const { name, value } of it.attributes) {
          if (/^on/.test(name) || (/^(?:href|src)$/.test(name) && !/^(?:https?:|blob:|#\/)/.test(value)))
            bad.push(`${it.tagName} ${name}=${value}`);
        }
      }
      const before = scroll.scrollTop;
      scroll.scrollTop += 2000;
      if (scroll.scrollTop === before) break;
    }
    return bad;
  });
  assert.deepEqual(bad, []);
  await close(page);
});

await scene("50,000 events stay smooth", async () => {
  const it = long(server, 50_000);
  const page = await open();
  await sees(page, "A very long session", "#list");
  await page.evaluate(() => (window.__slow.length = 0));
  const began = performance.now();
  await page.evaluate((id) => (location.hash = `#/s/${id}`), it.id);
  await sees(page, "✓ done");
  const opened = Math.round(performance.now() - began);
  const slowOpen = await page.evaluate(() => window.__slow.splice(0));
  const nRows = await page.$$eval(".row", (all) => all.length);
  const scroll = await page.evaluate(async () => {
    const scroll = document.getElementById("scroll");
    const times = [];
    let last = performance.now();
    for (let n = 0; n < 120; n += 1) {
      scroll.scrollTop = (scroll.scrollHeight * ((n * 37) % 120)) / 120;
      await new Promise((done) => requestAnimationFrame(done));
      times.push(performance.now() - last);
      last = performance.now();
    }
    return times.sort((a, b) => a - b);
  });
  const slow = await page.evaluate(() => window.__slow);
  console.log(
    `        opened in ${opened} ms, longest task ${Math.max(0, ...slowOpen)} ms, ${nRows} rows in the document; jumping about: frames p50 ${Math.round(scroll[60])} ms, p95 ${Math.round(scroll[114])} ms, longest task ${Math.max(0, ...slow)} ms`,
  );
  assert.ok(nRows < 120, `${nRows} rows`);
  // Far above what it takes; a machine with other work to do is slow, too.
  assert.ok(Math.max(0, ...slowOpen) < 1500);
  await close(page);
});

await scene("what somebody reads does not move while more comes", async () => {
  const page = await open();
  const it = long(server, 2_000, "A shorter one");
  await page.evaluate((id) => (location.hash = `#/s/${id}`), it.id);
  await sees(page, "✓ done");
  await page.evaluate(() => (document.getElementById("scroll").scrollTop -= 3000));
  await sleep(200);
  const place = () =>
    page.evaluate(() => {
      const row = [...document.querySelectorAll(".row")].find((it) => it.getBoundingClientRect().top > 200);
      return [row.getAttribute("aria-posinset"), Math.round(row.getBoundingClientRect().top)];
    });
  const before = await place();
  for (let n = 0; n < 50; n += 1)
    server.append(it, { type: "notice.raised", data: { level: "info", code: "x", text: `more ${n}` } });
  await sleep(300);
  assert.deepEqual(await place(), before);
  await page.evaluate(() => document.querySelector(".pill").click());
  await sees(page, "more 49");
  await close(page);
});

await scene("nothing sticks out on a phone", async () => {
  const page = await open(`/#token=test/s/${everything.id}`);
  await page.setViewportSize({ width: 400, height: 800 });
  await sees(page, "cut off");
  for (const hash of [`#/s/${everything.id}`, "#/", "#/new"]) {
    await page.evaluate((hash) => (location.hash = hash), hash);
    await sleep(250);
    const wide = await page.evaluate(() =>
      [...document.querySelectorAll("body *")]
        .filter(
          (it) => it.checkVisibility() && !it.closest("pre, .table, .sr") && it.getBoundingClientRect().right > 401,
        )
        .map((it) => `${it.tagName}.${it.className}`),
    );
    assert.deepEqual(wide, []);
  }
  await close(page);
});

for (const part of [prompts, asks, tokens, roles, words]) await part.play(server, everything);

await server.stop();
await finish();
