// Drives `POST /ag-ui/{engine}` with the vendor's own client, `@ag-ui/client`.
//
// A server of this file plays a provider: every recording of Open Responses, whole and byte by byte, and
// every way a connection can fail. linkspan stands between it and an `HttpAgent`, which must take what it
// gets without a warning, with exactly one end, and with the right one. With a Python that has it,
// LiteLLM's proxy stands between linkspan and the provider as well: an endpoint that is not ours.
// With `--app`, the client talks with a FastAPI app of the Python package instead, which runs in that
// Python and has the same routes.
//
//     node agui_endpoint.mjs LINKSPAN FIXTURES [PYTHON | --app PYTHON]

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";

import { HttpAgent } from "@ag-ui/client";

const { values, positionals } = parseArgs({ options: { app: { type: "string" } }, allowPositionals: true });
const [linkspan, fixtures, python] = positionals;
const KEY = "sk-peers-canary-5d1c9f2c71d08b6e45aa83d1";

/** Longer than anything here takes on a busy machine. */
const PATIENCE = 60_000;

const complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...args) => complaints.push(`client ${level}: ${args.map(String).join(" ")}`);
}

const TEXT = readFileSync(join(fixtures, "01-text.sse"));
const RECORDED = readdirSync(fixtures).filter((it) => /^\d\d-.*\.sse$/.test(it));
// What is no plain success, by the name of the recording.
const ENDS = {
  "09-incomplete-max-tokens": { status: "incomplete" },
  "10-failed": { error: true },
  "11-error-event-then-failed": { error: true },
  "12-error-event-only": { error: true },
  "13-truncated": { error: true },
};

/** What the provider does, by the name of the endpoint; each gets the number of the request. */
const providers = {
  refused: () => {},
  unauthorized: (_, response) => refuse(response, 401, "invalid_api_key"),
  retried: (n, response) => (n < 2 ? refuse(response, n === 0 ? 429 : 500, "busy", { "retry-after": "0" }) : play(response, TEXT)),
  exhausted: (_, response) => refuse(response, 503, "overloaded", { "retry-after": "0" }),
  dropped: (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(TEXT.subarray(0, TEXT.length / 2), () => response.destroy());
  },
  empty: (_, response) => play(response, Buffer.alloc(0)),
  whole: (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "r", object: "response", status: "completed", model: "m", output: [message("in one piece")] }, null, 2));
  },
  weather: (n, response) => play(response, n === 0 ? called() : TEXT),
  multimodal: (_, response) => play(response, TEXT),
  chained: (_, response) => play(response, TEXT),
  litellm: (_, response) => play(response, TEXT),
};
for (const file of RECORDED) {
  const bytes = readFileSync(join(fixtures, file));
  const name = basename(file, ".sse");
  providers[name] = (_, response) => play(response, bytes);
  // In pieces of one byte, every character is cut somewhere.
  providers[`${name}-bytes`] = (_, response) => play(response, bytes, 1);
}

const requests = {};
const provider = createServer(async (request, response) => {
  const name = request.url.split("/")[1];
  // LiteLLM asks for a list of models first, and takes it well that there is none.
  if (request.method !== "POST") return response.writeHead(404).end();
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const seen = (requests[name] ??= []);
  seen.push(JSON.parse(Buffer.concat(chunks).toString()));
  providers[name](seen.length - 1, response);
});
await new Promise((done) => provider.listen(0, "127.0.0.1", done));
const upstream = `http://127.0.0.1:${provider.address().port}`;

const folder = mkdtempSync(join(tmpdir(), "linkspan-agui-"));
const token = "t".repeat(43);
// Speaks as Claude Code does, and asks before it does anything.
const CLAUDE = String.raw`#!/bin/sh
while read -r line; do
  case $line in
  *'"type":"user"'*wait*|*wait*'"type":"user"'*)
    echo '{"type":"system","subtype":"init","session_id":"s'$$'","cwd":"/","model":"m","tools":[]}'
    ;;
  *interrupt*) echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s'$$'"}' ;;
  *'"type":"user"'*)
    echo '{"type":"system","subtype":"init","session_id":"s'$$'","cwd":"/","model":"m","tools":[]}'
    echo '{"type":"assistant","session_id":"s'$$'","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}'
    echo '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}'
    ;;
  *control_response*allow*) echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s'$$'","result":"allowed"}' ;;
  esac
done
`;
writeFileSync(join(folder, "claude"), CLAUDE, { mode: 0o755 });
const gateway = python && (await startGateway());
writeFileSync(
  join(folder, "config.toml"),
  Object.keys(providers)
    .map((name) => {
      const base = name === "refused" ? "http://127.0.0.1:9" : `${upstream}/${name}`;
      return `[engines.responses.${name}]\nbase_url = "${base}"\nmodel = "m"\napi_key_env = "PEERS_KEY"\nmax_retries = 2\n`;
    })
    .concat(gateway ? `[engines.responses.gateway]\nbase_url = "${gateway.url}"\nmodel = "m"\napi_key_env = "PEERS_KEY"\n` : "")
    .concat(`[engines.claude]\nprogram = "${join(folder, "claude")}"\n`)
    .join("\n"),
);
const settings = ["--config", join(folder, "config.toml"), "--data-dir", join(folder, "data")];
const environment = { PATH: process.env.PATH, HOME: folder, LINKSPAN_TOKEN: token, PEERS_KEY: KEY };
const serve = [linkspan, "serve", "--listen", "127.0.0.1:0", ...settings];
const app = [values.app, fileURLToPath(new URL("../python/ag_ui_app.py", import.meta.url)), settings[1], settings[3]];
const [command, ...args] = values.app ? app : serve;
const server = spawn(command, args, {
  env: { ...environment, PYTHONPATH: process.env.PYTHONPATH ?? "", LINKSPAN_BIN: linkspan },
  stdio: ["ignore", "inherit", "pipe"],
});
let log = "";
server.stderr.on("data", (data) => void (log += data));
const url = await address(server, server.stderr);

let n_passed = 0;
const failures = [];
async function scenario(name, run) {
  complaints.length = 0;
  try {
    const late = new Promise((_, failed) => setTimeout(failed, PATIENCE, new Error("it does not end")).unref());
    await Promise.race([run(), late]);
    await new Promise(setImmediate);
    if (complaints.length > 0) throw new Error(complaints[0]);
    n_passed += 1;
  } catch (err) {
    failures.push(name);
    process.stdout.write(`${name}: ${err?.message ?? err}\n`);
  }
}

for (const file of RECORDED) {
  const name = basename(file, ".sse");
  for (const engine of [name, `${name}-bytes`]) {
    await scenario(engine, async () => {
      const { end } = await ask(engine, [user("hi")]);
      const wanted = ENDS[name] ?? {};
      equal(end.type, wanted.error ? "RUN_ERROR" : "RUN_FINISHED");
      if (wanted.error) equal(typeof end.code, "string");
      else equal(end.outcome.type, "success");
      equal(end.result?.status, wanted.status);
    });
  }
}
for (const [engine, code] of [
  ["refused", "unreachable"],
  ["unauthorized", "invalid_api_key"],
  ["exhausted", "overloaded"],
  ["dropped", "connection_lost"],
  ["empty", "upstream_truncated"],
]) {
  await scenario(engine, async () => {
    const { end } = await ask(engine, [user("hi")]);
    equal([end.type, end.code], ["RUN_ERROR", code]);
  });
}
await scenario("retried", async () => {
  const { end, agent } = await ask("retried", [user("hi")]);
  equal([end.type, requests.retried.length], ["RUN_FINISHED", 3]);
  equal(agent.messages.at(-1).role, "assistant");
});
await scenario("an answer in one piece", async () => {
  const { agent } = await ask("whole", [user("hi")]);
  equal(agent.messages.at(-1).content, "in one piece");
});
await scenario("a tool of the application", async () => {
  const tools = [{ name: "weather", description: "tells it", parameters: { type: "object", properties: {} } }];
  const { end, agent } = await ask("weather", [user("weather?")], { tools });
  equal(end.outcome.pendingToolCallIds, ["call_1"]);
  agent.addMessage({ id: "t1", role: "tool", toolCallId: "call_1", content: "cold" });
  const next = await again(agent, { tools });
  equal(next.end.outcome.type, "success");
  const items = requests.weather[1].input.map((it) => [it.type, it.call_id, it.output]);
  equal(items, [["function_call_output", "call_1", "cold"]]);
});
await scenario("pictures and files", async () => {
  const content = [
    { type: "text", text: "look" },
    { type: "image", source: { type: "data", value: "aGk=", mimeType: "image/png" } },
    { type: "document", source: { type: "data", value: "aGk=", mimeType: "application/pdf" } },
    { type: "audio", source: { type: "data", value: "aGk=", mimeType: "audio/mpeg" } },
  ];
  await ask("multimodal", [{ id: "u", role: "user", content }]);
  const kinds = requests.multimodal[0].input[0].content.map((it) => it.type);
  equal(kinds, ["input_text", "input_image", "input_file", "input_file"]);
});
await scenario("a second prompt of the thread", async () => {
  const { agent } = await ask("chained", [user("one")]);
  agent.addMessage({ ...user("two"), id: "u2" });
  await again(agent, {});
  equal(typeof requests.chained[1].previous_response_id, "string");
  equal(requests.chained[1].input.length, 1);
});
await scenario("a question of an agent", async () => {
  const asked = await ask("ask", [user("may I?")], {}, "claude");
  equal(asked.end.outcome.type, "interrupt");
  const [{ id, toolCallId }] = asked.end.outcome.interrupts;
  equal(toolCallId, "t1");
  const resume = [{ interruptId: id, status: "resolved", payload: { approved: true } }];
  const { end, agent } = await again(asked.agent, { resume });
  equal([end.outcome.type, agent.messages.at(-1).content], ["success", "allowed"]);
});
await scenario("a bad request is told by its field", async () => {
  const body = JSON.stringify({ threadId: "t", runId: "r", messages: [{ id: "1", role: "user" }] });
  const response = await fetch(`${url}/ag-ui/responses:chained`, { method: "POST", headers: headers(), body });
  equal([response.status, (await response.json()).error.message], [400, "`messages[0].content` is missing"]);
});
await scenario("protobuf", async () => {
  const body = JSON.stringify({ threadId: "p", runId: "r", messages: [user("hi")] });
  const type = "application/vnd.ag-ui.event+proto";
  const response = await fetch(`${url}/ag-ui/responses:chained`, { method: "POST", headers: { ...headers(), accept: type }, body });
  equal(response.headers.get("content-type"), type);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const seen = [];
  const agent = new HttpAgent({ url, fetch: async () => new Response(bytes, { headers: { "content-type": type } }) });
  await agent.runAgent({}, { onEvent: ({ event }) => void seen.push(event.type) });
  equal([seen[0], seen.at(-1)], ["RUN_STARTED", "RUN_FINISHED"]);
});
await scenario("who comes back is told what is missing", async () => {
  const target = `${url}/ag-ui/responses:chained`;
  const body = JSON.stringify({ threadId: "back", runId: "r", messages: [user("hi")] });
  const get = async (more) => (await fetch(target, { method: "POST", headers: { ...headers(), ...more }, body })).text();
  const whole = await get({});
  const frames = whole.split("\n\n").slice(0, -1);
  for (let n = 2; n < frames.length; n += 1) {
    const id = /^id: (.*)$/m.exec(frames[n - 1])[1];
    const heard = `${frames.slice(0, n).join("\n\n")}\n\n${await get({ "last-event-id": id })}`;
    equal(heard, whole);
    const fetched = async () => new Response(heard, { headers: { "content-type": "text/event-stream" } });
    const agent = new HttpAgent({ url: target, fetch: fetched });
    equal((await again(agent, {})).end.outcome.type, "success");
  }
});
await scenario("who comes late is told the thread", async () => {
  const { agent } = await ask("chained", [user("early")]);
  const late = new HttpAgent({ url: agent.url, headers: headers(), threadId: agent.threadId });
  const { seen, end } = await again(late, {});
  equal([seen[1].type, end.outcome.type], ["MESSAGES_SNAPSHOT", "success"]);
  const told = (it) => it.messages.map(({ role, content }) => [role, content]);
  equal(told(late), told(agent));
});
await scenario("an abort", async () => {
  const agent = new HttpAgent({ url: `${url}/ag-ui/claude`, headers: headers(), initialMessages: [user("wait")] });
  const body = JSON.stringify({ threadId: agent.threadId });
  const abort = () => fetch(`${agent.url}/abort`, { method: "POST", headers: headers(), body });
  let is_asked = false;
  const seen = [];
  await agent.runAgent({}, {
    onEvent: ({ event }) => {
      seen.push(event);
      // The session introduces itself when the agent is at work.
      if (event.name === "linkspan.session" && !is_asked) {
        is_asked = true;
        void abort();
      }
    },
  });
  equal(seen.at(-1).outcome, { type: "cancelled" });
});
if (gateway) {
  await scenario("LiteLLM's proxy", async () => {
    const first = await ask("gateway", [user("one")]);
    equal(first.end.outcome.type, "success");
    first.agent.addMessage({ ...user("two"), id: "u2" });
    const second = await again(first.agent, {});
    equal(second.end.outcome.type, "success");
    const told = requests.litellm.map((it) => [typeof it.previous_response_id, it.input.length]);
    equal(told, [["undefined", 1], ["string", 1]]);
  });
  await scenario("LiteLLM's proxy, from the command line", async () => {
    const run = async (...more) => {
      const args = ["run", "--engine", "responses:gateway", "--to", "linkspan", ...settings, ...more];
      const { stdout } = await promisify(execFile)(linkspan, args, { env: environment, timeout: PATIENCE });
      return /"type":"session.bound","data":\{"native":"([^"]*)"/.exec(stdout)[1];
    };
    const native = await run("one");
    equal(await run("--resume", native, "two"), native);
    equal(typeof requests.litellm.at(-1).previous_response_id, "string");
  });
}

server.removeAllListeners("exit");
server.kill("SIGTERM");
await new Promise((done) => server.on("exit", done));
await scenario("nobody sees the key", async () => {
  equal(log.includes(KEY), false);
  const files = readdirSync(join(folder, "data"), { recursive: true, withFileTypes: true });
  for (const file of files.filter((it) => it.isFile())) {
    const bytes = readFileSync(join(file.parentPath ?? file.path, file.name));
    equal([file.name, bytes.includes(KEY)], [file.name, false]);
  }
});
if (gateway) {
  gateway.child.removeAllListeners("exit");
  gateway.child.kill("SIGTERM");
  await new Promise((done) => gateway.child.on("exit", done));
}
provider.close();
rmSync(folder, { recursive: true });
process.stdout.write(`${n_passed} passed, ${failures.length} failed\n`);
process.exit(failures.length === 0 ? 0 : 1);

/** Where a program listens, as it says itself. */
function address(child, stream) {
  return new Promise((found, failed) => {
    let said = "";
    child.on("exit", (code) => failed(new Error(`${child.spawnfile} left with ${code}: ${said}`)));
    stream.on("data", (data) => {
      said += data;
      const line = /listening on (\S+)/.exec(said);
      if (line) found(line[1]);
    });
  });
}

async function startGateway() {
  const file = join(folder, "litellm.yaml");
  const model = { model: "openai/m", api_base: `${upstream}/litellm`, api_key: "none" };
  // What is JSON is YAML.
  writeFileSync(file, JSON.stringify({ model_list: [{ model_name: "m", litellm_params: model }] }));
  const script = fileURLToPath(new URL("../python/litellm_proxy.py", import.meta.url));
  const child = spawn(python, [script, file], {
    env: { PATH: process.env.PATH, HOME: folder, LITELLM_MASTER_KEY: KEY },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const url = await address(child, child.stdout);
  // It listens before it has read its config.
  for (;;) {
    const alive = await fetch(`${url}/health/liveliness`);
    if (alive.ok) return { child, url: `${url}/v1` };
  }
}

function user(content) {
  return { id: "u1", role: "user", content };
}

function headers() {
  return { Authorization: `Bearer ${token}`, "content-type": "application/json" };
}

async function ask(name, messages, parameters = {}, engine = `responses:${name}`) {
  const agent = new HttpAgent({ url: `${url}/ag-ui/${engine}`, headers: headers(), initialMessages: messages });
  return again(agent, parameters);
}

async function again(agent, parameters) {
  const seen = [];
  await agent.runAgent(parameters, { onEvent: ({ event }) => void seen.push(event) });
  const ends = seen.filter((it) => it.type === "RUN_FINISHED" || it.type === "RUN_ERROR");
  equal([seen[0]?.type, ends.length, ends[0] === seen.at(-1)], ["RUN_STARTED", 1, true]);
  return { agent, seen, end: ends[0] };
}

function equal(got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

function refuse(response, status, code, more = {}) {
  response.writeHead(status, { "content-type": "application/json", ...more });
  response.end(JSON.stringify({ error: { code, message: `no: ${KEY}`, type: "error", param: null } }));
}

async function play(response, bytes, size = Math.max(bytes.length, 1)) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
  response.end();
}

function message(text) {
  return { type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
}

function called() {
  const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "weather", arguments: "{}", status: "completed" };
  const events = [
    { type: "response.created", response: { id: "resp_w", object: "response", status: "in_progress", model: "m", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "", status: "in_progress" } },
    { type: "response.function_call_arguments.done", output_index: 0, item_id: "fc_1", arguments: "{}" },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { id: "resp_w", object: "response", status: "completed", model: "m", output: [item] } },
  ];
  return Buffer.from(events.map((it, n) => `event: ${it.type}\ndata: ${JSON.stringify({ ...it, sequence_number: n })}\n\n`).join(""));
}
