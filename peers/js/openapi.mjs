// Judges `/api/openapi.json` with people's own tools: `redocly lint` reads it, and `schemathesis`, if
// there is a Python with it, compares what the server does with what the document says.
//
// Each must first refuse a document that is wrong, so that their yes means something. The server has no
// agents, and its prompts go to recordings at most.
//
//     node openapi.mjs LINKSPAN [PYTHON]

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { TOKEN, folder_for, serve } from "./server.mjs";

const [linkspan, python] = process.argv.slice(2);
const REDOCLY = fileURLToPath(new URL("node_modules/@redocly/cli/bin/cli.js", import.meta.url));

/** Seconds that schemathesis may try new requests for. */
const MAX_TIME = 45;
// What has another judge: who may do what is tried for every route with every kind of wrong token, and a
// request that fits its schema may still name an engine or a session that is not there.
const LEFT_OUT = "ignored_auth,positive_data_acceptance,missing_required_header";

const folder = folder_for("openapi");
const { url, stop } = await serve(linkspan, folder, { path: "/nowhere" });

const failures = [];
try {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const text = await (await fetch(`${url}/api/openapi.json`, { headers })).text();
  const document = () => JSON.parse(text);
  const nameless = document();
  delete nameless.paths["/api/runs"].post.operationId;
  delete nameless.servers;
  await check("redocly refuses a document without servers and names", lint(nameless), false);
  await check("redocly lint", lint(document()), true);
  if (python) {
    const wrong = document();
    wrong.paths = { "/healthz": wrong.paths["/healthz"] };
    wrong.paths["/healthz"].get.responses["200"].content = { "application/json": {} };
    await check("schemathesis refuses a document that says another kind", explore(wrong, 5), false);
    const real = document();
    // A WebSocket is no request, and the page is for people.
    for (const path of ["/ws", "/", "/assets/{path}"]) delete real.paths[path];
    await check("schemathesis", explore(real, MAX_TIME), true);
    const alive = await fetch(`${url}/healthz`);
    if (alive.status !== 200) failures.push("the server does not answer any more");
  }
} catch (err) {
  failures.push(err.stack);
}
await stop();
for (const failure of failures) process.stderr.write(`${failure}\n`);
process.exit(failures.length === 0 ? 0 : 1);

function lint(document) {
  const file = join(folder, "openapi.json");
  writeFileSync(file, JSON.stringify(document));
  const config = join(folder, "redocly.yaml");
  // The open routes are asked for nothing that has to fail; all else is as recommended, warnings too.
  writeFileSync(config, JSON.stringify({ extends: ["recommended-strict"] }));
  return run(process.execPath, [REDOCLY, "lint", "--config", config, file], {
    REDOCLY_TELEMETRY: "off",
    REDOCLY_SUPPRESS_UPDATE_NOTICE: "true",
  });
}

function explore(document, seconds) {
  const file = join(folder, "explored.json");
  writeFileSync(file, JSON.stringify(document));
  const words = ["run", file, "--url", url, "--header", `Authorization: Bearer ${TOKEN}`];
  const limits = ["--max-examples", "25", "--max-time", String(seconds), "--seed", "1", "--exclude-checks", LEFT_OUT];
  return run(join(dirname(python), "st"), [...words, ...limits, "--continue-on-failure"], {});
}

/** Runs a program; what it has said is told if it comes to something else than wanted. */
function run(program, args, env) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => void (said += data));
    child.on("error", failed);
    child.on("exit", (code) => done({ is_fine: code === 0, said }));
  });
}

async function check(name, judged, wanted) {
  const { is_fine, said } = await judged;
  process.stdout.write(`${is_fine === wanted ? "ok   " : "FAILED"} ${name}\n`);
  if (is_fine !== wanted) failures.push(said);
}
