// A page on another port, which knows the address and even the token, tries every way in that a browser has.

import assert from "node:assert/strict";
import { createServer } from "node:http";

import { browser, scene } from "../stage.mjs";

/** A fresh tab of a page that is not ours; nothing of it is watched. */
async function foreign() {
  const http = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<p>hello"));
  await new Promise((done) => http.listen(0, "127.0.0.1", () => done(undefined)));
  const page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${http.address().port}/`);
  const leave = async () => {
    await page.context().close();
    http.close();
    http.closeAllConnections();
  };
  return { page, leave };
}

export async function play(server) {
  const state = async () => {
    const { sessions } = await server.api("/sessions");
    return { heads: sessions.map((it) => [it.id, it.head, it.queue]), asks: (await server.api("/asks")).asks };
  };

  // Another port is another origin on the same site: cookies, if there were any, would be sent along.
  await scene("a page on another port gets nowhere, whatever it tries", async () => {
    const asking = await server.prompt("ask me");
    for (;;) if ((await server.api("/asks")).asks.length > 0) break;
    const before = await state();
    const [{ id: ask }] = before.asks;
    const { page, leave } = await foreign();
    const tried = await page.evaluate(attack, { url: server.url, token: server.token, session: asking, ask });
    for (const [name, outcome] of Object.entries(tried)) assert.equal(outcome, "refused", name);
    assert.equal(Object.keys(tried).length, 21);
    const framed = page.frames().find((it) => it.name() === "inside");
    assert.equal(framed.url(), "chrome-error://chromewebdata/");
    assert.deepEqual(await state(), before);

    // It may lead people to the page, as any link may; it cannot see, script or frame it.
    const [opened] = await Promise.all([
      page.context().waitForEvent("page"),
      page.evaluate((url) => (window.other = window.open(`${url}/`)), server.url),
    ]);
    await opened.waitForLoadState();
    const seen = await page.evaluate(() => {
      try {
        return window.other.document.title;
      } catch {
        return "refused";
      }
    });
    assert.equal(seen, "refused");
    assert.deepEqual(await state(), before);
    await leave();
    await server.api(`/sessions/${asking}/abort`, {});
    await server.idle(asking);
  });

  await scene("another name for this machine is not ours", async () => {
    const before = await state();
    const { page, leave } = await foreign();
    // What DNS rebinding comes down to: our own port under another name.
    const { port } = new URL(server.url);
    for (const path of ["/", "/api/sessions", "/assets/app.js", "/healthz"])
      assert.equal((await page.goto(`http://evil.test:${port}${path}`)).status(), 421, path);
    assert.deepEqual(await state(), before);
    await leave();
  });

  await scene("the same tries from the page itself get through", async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${server.url}/`);
    const session = await server.prompt("hello");
    await server.idle(session);
    const tried = await page.evaluate(attack, { url: server.url, token: server.token, session, ask: "none" });
    const names = ["fetch", "fetch with the token", "fetch of what is public", "post with the token", "socket with the token", "image"];
    assert.deepEqual(
      names.map((it) => tried[it]),
      [401, 200, 200, 202, "it worked", "it worked"],
    );
    await page.context().close();
  });
}

/** Runs in the hostile page. */
async function attack({ url, token, session, ask }) {
  const tried = {};
  const attempt = async (name, act) => {
    const late = new Promise((done) => setTimeout(() => done("refused"), 5_000));
    tried[name] = await Promise.race([act().catch(() => "refused"), late]);
  };
  const event = (it, good) =>
    new Promise((done, fail) => {
      it[good] = () => done("it worked");
      it.onerror = fail;
    });
  const Authorization = `Bearer ${token}`;
  const run = JSON.stringify({ prompt: "x", engine: "replay:tools" });
  const allow = JSON.stringify({ decision: "allow" });
  const post = (path, body, init = {}) => fetch(`${url}${path}`, { method: "POST", body, ...init });

  // Answers that may be seen.
  await attempt("fetch", async () => (await fetch(`${url}/api/sessions`)).status);
  await attempt("fetch with the token", async () => (await fetch(`${url}/api/sessions`, { headers: { Authorization } })).status);
  await attempt("fetch with cookies", async () => (await fetch(`${url}/api/sessions`, { credentials: "include" })).status);
  await attempt("fetch of what is public", async () => (await fetch(`${url}/healthz`)).status);
  await attempt("post", async () => (await post("/api/runs", run)).status);
  await attempt("post with the token", async () => (await post("/api/runs", run, { headers: { Authorization } })).status);
  await attempt("an answer", async () => (await post(`/api/asks/${ask}`, allow, { headers: { Authorization } })).status);
  await attempt("delete", async () => (await fetch(`${url}/api/sessions/${session}/queue/1`, { method: "DELETE" })).status);

  // Requests that a browser sends without asking; what they do shows in the sessions.
  const opaque = async (it) => ((await it).type === "opaque" ? "refused" : "it could be read");
  const blind = { mode: "no-cors", credentials: "include" };
  await attempt("blind post", () => opaque(post("/api/runs", run, blind)));
  await attempt("blind answer", () => opaque(post(`/api/asks/${ask}`, allow, blind)));
  await attempt("blind abort", () => opaque(post(`/api/sessions/${session}/abort`, "{}", blind)));
  await attempt("kept alive", () => opaque(post("/api/runs", run, { ...blind, keepalive: true })));
  await attempt("beacon", async () => (navigator.sendBeacon(`${url}/api/runs`, run), "refused"));
  await attempt("beacon of JSON", async () => {
    navigator.sendBeacon(`${url}/api/runs`, new Blob([run], { type: "application/json" }));
    return "refused";
  });

  // Sockets and streams.
  const ws = url.replace("http", "ws");
  await attempt("socket", () => event(new WebSocket(`${ws}/ws`), "onopen"));
  await attempt("socket with the token", () => event(new WebSocket(`${ws}/ws`, ["linkspan", `token.${token}`]), "onopen"));
  await attempt("events", () => event(new EventSource(`${url}/api/sessions/${session}/events`), "onopen"));

  // What pages embed.
  const embed = (name, fields, good = "onload") => {
    const node = Object.assign(document.createElement(name), fields);
    const loaded = event(node, good);
    document.body.append(node);
    return loaded;
  };
  await attempt("image", () => embed("img", { src: `${url}/assets/icon.svg` }));
  await attempt("script", () => embed("script", { src: `${url}/assets/words.js`, type: "module" }));
  await attempt("style", () => embed("link", { rel: "stylesheet", href: `${url}/assets/page.css` }));
  // What becomes of it is seen from outside: of a frame of others a page sees nothing.
  const inside = Object.assign(document.createElement("iframe"), { name: "inside", src: `${url}/#token=${token}` });
  document.body.append(inside);
  await new Promise((done) => (inside.onload = done));
  await attempt("form", async () => {
    const frame = Object.assign(document.createElement("iframe"), { name: "frame" });
    const form = Object.assign(document.createElement("form"), {
      method: "POST",
      action: `${url}/api/runs`,
      enctype: "text/plain",
      target: "frame",
    });
    form.append(Object.assign(document.createElement("input"), { name: run.slice(0, -1), value: "}" }));
    document.body.append(frame, form);
    form.submit();
    await new Promise((done) => (frame.onload = done));
    return "refused";
  });
  return tried;
}
