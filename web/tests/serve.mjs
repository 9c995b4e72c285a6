// The page in a real browser, against the real server.
//
//   cargo build && node web/tests/serve.mjs
//
// `LINKSPAN` names another program than target/debug/linkspan, `CHROMIUM` another browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(new URL("../../peers/js/", import.meta.url));
const puppeteer = require("puppeteer-core");

const PROGRAM = process.env.LINKSPAN ?? fileURLToPath(new URL("../../target/debug/linkspan", import.meta.url));

/** Speaks Claude's stream-json: `wait` works until it is interrupted, anything else asks first. */
const AGENT = `#!/bin/sh
n=0
end() { echo '{"type":"result","subtype":"success","is_error":false,"session_id":"native-'$$'","result":"'"$1"'"}'; }
while read -r line; do
  case $line in
  *'"type":"user"'*)
    n=$((n + 1))
    echo '{"type":"system","subtype":"init","session_id":"native-'$$'","cwd":"'"$PWD"'","model":"m","tools":[]}'
    case $line in
    *wait*) ;;
    *)
      echo '{"type":"assistant","session_id":"native-'$$'","message":{"id":"m'$$-$n'","role":"assistant","content":[{"type":"tool_use","id":"t'$$-$n'","name":"Bash","input":{"command":"make it so"}}]}}'
      echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make it so"},"tool_use_id":"t'$$-$n'"}}'
      ;;
    esac ;;
  *control_response*allow*)
    echo '{"type":"assistant","session_id":"native-'$$'","message":{"id":"d'$$-$n'","role":"assistant","content":[{"type":"text","text":"It was allowed."}]}}'
    end allowed ;;
  *control_response*deny*) end denied ;;
  *interrupt*) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"native-'$$'"}' ;;
  esac
done
`;

const home = mkdtempSync(join(tmpdir(), "linkspan-page-"));
mkdirSync(join(home, "work"));
mkdirSync(join(home, "config/linkspan"), { recursive: true });
writeFileSync(join(home, "agent"), AGENT);
chmodSync(join(home, "agent"), 0o755);
writeFileSync(join(home, "config/linkspan/config.toml"), `[engines.claude]\nprogram = "${join(home, "agent")}"\n`);

/** Starts the server, and waits until it says where it is. */
async function serve(listen = "127.0.0.1:0") {
  const env = { ...process.env, XDG_CONFIG_HOME: join(home, "config"), XDG_STATE_HOME: join(home, "state") };
  const child = spawn(PROGRAM, ["serve", "--listen", listen, "--data-dir", join(home, "data")], {
    cwd: join(home, "work"),
    env,
    stdio: ["ignore", "inherit", "pipe"],
  });
  let said = "";
  await new Promise((done, fail) => {
    child.on("exit", () => fail(new Error(`the server ended: ${said}`)));
    child.stderr.on("data", (it) => {
      said += it;
      if (/listening on .*\n/.test(said)) done(undefined);
    });
  });
  await new Promise((done) => setTimeout(done, 50));
  return { child, url: /listening on (\S+)/.exec(said)[1], page: /open (\S+)/.exec(said)?.[1] };
}

let server = await serve();
const token = server.page.split("#token=")[1];
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    // Root has no sandbox to go into; the pages are ours, and the machine is a test's.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-background-networking",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ],
});
let failed = 0;

async function scene(name, act) {
  const began = performance.now();
  try {
    await act();
    console.log(`ok      ${name} (${Math.round(performance.now() - began)} ms)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}

async function open(url) {
  const page = await (await browser.createBrowserContext()).newPage();
  page.complaints = [];
  page.on("pageerror", (it) => page.complaints.push(it.message));
  await page.evaluateOnNewDocument(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (it) => window.__violations.push(it.violatedDirective));
  });
  await page.goto(url);
  return page;
}

async function close(page) {
  assert.deepEqual(await page.evaluate(() => window.__violations), []);
  assert.deepEqual(page.complaints, []);
  await page.browserContext().close();
}

const until = (page, what, ...args) => page.waitForFunction(what, { timeout: 20_000, polling: 50 }, ...args);
const sees = (page, words, selector = "#scroll") =>
  until(page, (selector, words) => document.querySelector(selector)?.textContent.includes(words), selector, words);
const text = (page) => page.$eval("#scroll", (it) => it.textContent);
const click = async (page, words) => {
  const find = (words) =>
    [...document.querySelectorAll("button, a, summary")].find(
      (it) => it.checkVisibility() && it.textContent.includes(words),
    );
  await until(page, find, words);
  await page.evaluate((words) => {
    [...document.querySelectorAll("button, a, summary")]
      .find((it) => it.checkVisibility() && it.textContent.includes(words))
      .click();
  }, words);
};

/** Gives a prompt to the agent, and opens its session. */
async function prompted(prompt) {
  const response = await fetch(`${server.url}/api/runs`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ prompt, engine: "claude", cwd: join(home, "work") }),
  });
  const { session } = await response.json();
  return open(`${server.url}/#token=${token}/s/${session}`);
}

await scene("the address that was printed opens the page, and a replay streams", async () => {
  const page = await open(server.page);
  await until(page, () => [...document.querySelectorAll("#start button")].some((it) => it.textContent.includes("tools")));
  assert.equal(await page.evaluate(() => location.href), `${server.url}/`);
  await page.evaluate(() =>
    [...document.querySelectorAll("#start button")].find((it) => it.textContent.includes("tools")).click(),
  );
  await until(page, () => location.hash.startsWith("#/s/"));
  await sees(page, "I will look around");
  await sees(page, "Everything is done");
  const before = await text(page);
  await page.reload();
  await sees(page, "Everything is done");
  assert.equal(await text(page), before);
  await close(page);
});

await scene("an approval reaches the agent", async () => {
  const page = await prompted("please");
  await sees(page, "make it so");
  await click(page, "Allow once");
  await sees(page, "It was allowed.");
  await close(page);
});

await scene("a run is stopped", async () => {
  const page = await prompted("wait for me");
  await click(page, "Stop");
  await sees(page, "aborted");
  await close(page);
});

await scene("a server that is killed comes back, and the page has lost nothing", async () => {
  const page = await prompted("wait for the end");
  await sees(page, "wait for the end");
  const { host } = new URL(server.url);
  server.child.removeAllListeners("exit");
  server.child.kill("SIGKILL");
  await new Promise((done) => server.child.on("exit", done));
  server = await serve(host);
  await sees(page, "ended before the run did");
  await close(page);
});

await scene("a page on another port gets nowhere", async () => {
  const foreign = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<p>hello"));
  await new Promise((done) => foreign.listen(0, "127.0.0.1", () => done(undefined)));
  const page = await open(`http://127.0.0.1:${foreign.address().port}/`);
  const n_sessions = async () => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await (await fetch(`${server.url}/api/sessions`, { headers })).json()).sessions.length;
  };
  const before = await n_sessions();
  const tried = await page.evaluate(
    async (url, token) => {
      const tried = {};
      const attempt = async (name, act) => {
        try {
          tried[name] = await act();
        } catch {
          tried[name] = "refused";
        }
      };
      const event = (it, good) =>
        new Promise((done, fail) => {
          it[good] = () => done("it worked");
          it.onerror = fail;
        });
      const headers = { Authorization: `Bearer ${token}` };
      const body = JSON.stringify({ prompt: "x", engine: "replay:tools" });
      await attempt("fetch", async () => (await fetch(`${url}/api/sessions`, { headers })).status);
      await attempt("simple fetch", async () => (await fetch(`${url}/healthz`)).status);
      await attempt("blind fetch", async () => (await fetch(`${url}/api/runs`, { method: "POST", mode: "no-cors", body })).type);
      await attempt("socket", () => event(new WebSocket(`${url.replace("http", "ws")}/ws`, ["linkspan", `token.${token}`]), "onopen"));
      await attempt("events", () => event(new EventSource(`${url}/api/sessions/x/events`), "onopen"));
      const image = new Image();
      image.src = `${url}/assets/icon.svg`;
      await attempt("image", () => event(image, "onload"));
      const form = document.createElement("form");
      const frame = document.createElement("iframe");
      frame.name = "frame";
      Object.assign(form, { method: "POST", action: `${url}/api/runs`, enctype: "text/plain", target: "frame" });
      const field = Object.assign(document.createElement("input"), { name: body.slice(0, -1), value: "}" });
      form.append(field);
      document.body.append(frame, form);
      form.submit();
      await new Promise((done) => (frame.onload = done));
      return tried;
    },
    server.url,
    token,
  );
  const names = ["fetch", "simple fetch", "blind fetch", "socket", "events", "image"];
  assert.deepEqual(tried, Object.fromEntries(names.map((it) => [it, "refused"])));
  assert.equal(await n_sessions(), before);
  await page.browserContext().close();
  foreign.close();
});

await browser.close();
server.child.removeAllListeners("exit");
server.child.kill("SIGTERM");
await new Promise((done) => server.child.on("exit", done));
rmSync(home, { recursive: true });
process.exitCode = failed > 0 ? 1 : 0;
