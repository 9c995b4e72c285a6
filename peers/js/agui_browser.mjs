// Runs the vendor's own `HttpAgent` in a page of another origin, in Chromium.
//
// The page is served from a port of its own. One of its two names was given to `--allow-origin`: there
// the agent runs, is interrupted by a permission, and resumes. Under its other name the same page must be
// refused by the browser, which also shows that this test can fail.
//
//     node agui_browser.mjs LINKSPAN

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { chromium } from "playwright-core";

import { TOKEN, folder_for, serve } from "./server.mjs";

const [linkspan] = process.argv.slice(2);
/** Longer than anything here takes on a busy machine. */
const PATIENCE = 60_000;

// Speaks as Claude Code does, and asks before it does anything.
const CLAUDE = String.raw`#!/bin/sh
while read -r line; do
  case $line in
  *'"type":"user"'*)
    echo '{"type":"system","subtype":"init","session_id":"s'$$'","cwd":"/","model":"m","tools":[]}'
    echo '{"type":"assistant","session_id":"s'$$'","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}'
    echo '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}'
    ;;
  *control_response*allow*)
    echo '{"type":"user","session_id":"s'$$'","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a file"}]}}'
    echo '{"type":"assistant","session_id":"s'$$'","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"There is a file."}]}}'
    echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s'$$'","result":"There is a file."}'
    ;;
  esac
done
`;

const bundle = await build({
  stdin: { contents: 'export { HttpAgent } from "@ag-ui/client";', resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
  bundle: true,
  write: false,
  format: "iife",
  globalName: "agui",
  platform: "browser",
  logLevel: "error",
});
const script = bundle.outputFiles[0].text;
const app = createServer((request, response) => {
  const is_script = request.url === "/app.js";
  response.writeHead(200, { "content-type": is_script ? "text/javascript" : "text/html" });
  response.end(is_script ? script : '<!doctype html><title>app</title><script src="/app.js"></script>');
});
await new Promise((done) => app.listen(0, "127.0.0.1", done));
const { port } = app.address();
const named = `http://localhost:${port}`;
const other = `http://127.0.0.1:${port}`;

const folder = folder_for("browser");
const config = join(folder, "config.toml");
writeFileSync(join(folder, "claude"), CLAUDE, { mode: 0o755 });
writeFileSync(config, `[engines.claude]\nprogram = "${join(folder, "claude")}"\n`);
const { url, stop } = await serve(linkspan, folder, { flags: ["--allow-origin", named, "--config", config] });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--disable-background-networking", "--no-first-run"],
});
let failure;
try {
  const allowed = await talk(named);
  equal(allowed, {
    asked: { type: "interrupt", call: "t1" },
    resumed: { type: "success" },
    messages: [
      ["user", "list the files"],
      ["assistant", null],
      ["tool", "a file"],
      ["assistant", "There is a file."],
    ],
  });
  process.stdout.write("ok    HttpAgent on another origin runs, is interrupted and resumes\n");
  const refused = await talk(other);
  equal(refused, { error: "Failed to fetch" });
  process.stdout.write("ok    an origin that was not named is refused by the browser\n");
} catch (err) {
  failure = err;
}
await browser.close();
await stop();
app.close();
if (failure) {
  process.stderr.write(`${failure.stack}\n`);
  process.exit(1);
}

/** What the agent of a page at this origin comes to. */
async function talk(origin) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  try {
    await page.goto(`${origin}/`);
    return await page.evaluate(run, { url: `${url}/ag-ui/claude`, token: TOKEN });
  } finally {
    await page.close();
  }
}

/** Runs in the page. */
async function run({ url, token }) {
  const agent = new window.agui.HttpAgent({
    url,
    headers: { Authorization: `Bearer ${token}` },
    initialMessages: [{ id: "u1", role: "user", content: "list the files" }],
  });
  const runAgent = async (parameters) => {
    let end;
    await agent.runAgent(parameters, {
      onEvent: ({ event }) => {
        if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") end = event;
      },
    });
    return end;
  };
  try {
    const asked = await runAgent({});
    const [interrupt] = asked.outcome.interrupts;
    const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }];
    const end = await runAgent({ resume });
    return {
      asked: { type: asked.outcome.type, call: interrupt.toolCallId },
      resumed: { type: end.outcome.type },
      messages: agent.messages.map(({ role, content }) => [role, content ?? null]),
    };
  } catch (err) {
    return { error: err.message };
  }
}

function equal(got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) {
    throw new Error(`${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
  }
}
