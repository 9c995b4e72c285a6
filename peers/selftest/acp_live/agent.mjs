// An agent that answers the live judges as they want it, except for the fault it is given.
//
// Its history is a file in the folder of the session, so that a second process can load it.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";

const fault = process.argv[2];
let cwd = ".";
let n_asked = 0;
/** Resolved by the answer to the request of this id. */
const waiting = new Map();
/** Resolved when the turn is cancelled. */
let cancel = () => {};

const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const history = () => path.join(cwd, "history.jsonl");
const send = (update) => write({ method: "session/update", params: { sessionId: "s", update } });
const remember = (update) => fs.appendFileSync(history(), `${JSON.stringify(update)}\n`);
const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

function tell(update) {
  send(update);
  remember(update);
}

const text = (words) => tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words } });
const call = (id, title) =>
  tell({ sessionUpdate: "tool_call", toolCallId: id, title, kind: "execute", status: "pending", rawInput: { command: title } });
const status = (id, status, content) => tell({ sessionUpdate: "tool_call_update", toolCallId: id, status, content });

async function permitted(id) {
  if (fault === "asks") return true;
  const options = [
    { optionId: "yes", name: "Allow", kind: "allow_once" },
    { optionId: "no", name: "Reject", kind: "reject_once" },
  ];
  n_asked += 1;
  write({ id: `q${n_asked}`, method: "session/request_permission", params: { sessionId: "s", toolCall: { toolCallId: id }, options } });
  const { outcome } = await new Promise((answer) => waiting.set(`q${n_asked}`, answer));
  return fault === "deny" || outcome.optionId === "yes";
}

const LANES = {
  async allow() {
    if (fault === "schema") send({ sessionUpdate: "agent_message_chunk", content: "words" });
    text("I will write it.");
    call("c1", "echo yes | tee allowed");
    if (!(await permitted("c1"))) return;
    if (fault !== "progress") status("c1", "in_progress");
    fs.writeFileSync(path.join(cwd, "allowed"), "yes\n");
    const output = { type: "text", text: fault === "output" ? "" : "yes\n" };
    if (fault !== "open") status("c1", "completed", [{ type: "content", content: output }]);
    text("It is written.");
  },
  async deny() {
    call("c2", "echo no > denied");
    const is_allowed = await permitted("c2");
    if (is_allowed) fs.writeFileSync(path.join(cwd, "denied"), "no\n");
    status("c2", is_allowed ? "completed" : "failed");
  },
  async text() {
    text("tick");
    await new Promise((done) => (cancel = done));
  },
  async tool() {
    call("c3", "sleep");
    await permitted("c3");
    fs.writeFileSync(path.join(cwd, "begun"), "");
    await new Promise((done) => (cancel = done));
    status("c3", "failed");
  },
  async after() {
    text("Still here.");
  },
  async again() {
    text("Here again.");
  },
};

async function prompt({ prompt: [{ text: words }] }) {
  remember({ sessionUpdate: "user_message_chunk", content: { type: "text", text: words } });
  const lane = words.match(/\[\[lane:(\w+)\]\]/)[1];
  await LANES[lane]();
  const is_cancelled = lane === "text" || lane === "tool";
  return { stopReason: is_cancelled && fault !== "cancel" ? "cancelled" : "end_turn" };
}

async function load() {
  const lines = fs.readFileSync(history(), "utf8").trim().split("\n");
  for (const line of fault === "load" ? lines.slice(0, -1) : lines) send(JSON.parse(line));
  return {};
}

async function answer(method, params) {
  cwd = params.cwd ?? cwd;
  if (method === "initialize") {
    const list = { list: {}, close: {} };
    const agentInfo = fault === "info" ? undefined : { name: "self-test", version: "1" };
    return { protocolVersion: fault === "version" ? 7 : 1, agentInfo, agentCapabilities: { loadSession: true, sessionCapabilities: list } };
  }
  if (method === "session/new") return { sessionId: "s" };
  if (method === "session/prompt") return prompt(params);
  if (method === "session/list") return { sessions: fault === "list" ? [] : [{ sessionId: "s", cwd, title: "a session" }] };
  if (method === "session/load") return load();
  return {};
}

if (fault === "words") process.stdout.write("ready\n");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "session/cancel") cancel();
  else if (method === undefined) waiting.get(id)?.(result);
  // Not awaited: a prompt is answered when it is done, and is cancelled before.
  else answer(method, params).then((result) => write({ id, result }));
}
if (fault === "exit") await pause(60_000);
