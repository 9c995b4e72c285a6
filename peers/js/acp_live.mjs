// Drives a live ACP agent with the vendor's own client, `@agentclientprotocol/sdk`.
//
// usage: acp_live.mjs [--selftest] PLAN COMMAND...
//
// The agent is started in the current folder, which has to be empty. Plan `replay` prompts, lists,
// closes and loads; plan `model` also answers permissions and cancels, by the lanes of
// `acp/scenario.json`. Every line on the agent's stdout is held against the schema of its method.
// Prints a line for each case that fails, and closes with `N passed, M failed`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { isDeepStrictEqual } from "node:util";

import { client, ndJsonStream } from "@agentclientprotocol/sdk";

import { definition, envelope, validate } from "./acp_schema.mjs";
import { Rejected, reject } from "./judge.mjs";

const SELFTEST = new URL("../selftest/acp_live/", import.meta.url);
// A real agent on a busy machine takes seconds to start.
const MAX_SILENCE_MS = 120_000;
// The self-test waits for one that stays.
const MAX_LEAVE_MS = process.argv[2] === "--selftest" ? 3_000 : 20_000;
const FINAL = ["completed", "failed"];
// What is told of the session, not of the conversation in it.
const ABOUT = ["available_commands_update", "config_option_update", "session_info_update"];
const CHUNKS = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"];

// The client drops what it cannot use with a word on the console.
const dropped = [];
for (const level of ["warn", "error"]) {
  console[level] = (...args) => dropped.push(`client ${level}: ${args.map((it) => JSON.stringify(it)).join(" ")}`);
}

/** An agent at work, and all that it has said. */
class Agent {
  updates = [];
  asks = [];
  n_messages = 0;
  /** What was wrong on stdout, however good the rest was. */
  complaints = [];
  /** Method by the id of a request of the client. */
  #asked = new Map();
  #watchers = new Set();
  /** Chooses the option of a permission request. */
  choose = "allow_once";

  static async with(command, op) {
    const agent = new Agent();
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    const gone = once(child, "exit");
    const stdout = Readable.toWeb(child.stdout).pipeThrough(tap((line) => agent.#heard(line)));
    const stdin = new WritableStream({
      write(bytes) {
        // The client writes a message at a time.
        agent.#said(new TextDecoder().decode(bytes));
        child.stdin.write(bytes);
      },
    });
    // One that left early is told by its exit code.
    child.stdin.on("error", () => {});
    const app = client()
      .onNotification("session/update", ({ params }) => agent.#updated(params.update))
      .onRequest("session/request_permission", ({ params }) => agent.#permit(params));
    try {
      await app.connectWith(ndJsonStream(stdin, stdout), (connection) => op(agent, connection));
    } finally {
      child.stdin.end();
      const late = setTimeout(() => child.kill("SIGKILL"), MAX_LEAVE_MS);
      const [code, signal] = await gone;
      clearTimeout(late);
      if (signal !== null) agent.complaints.push(`it does not leave when stdin ends: ${signal}`);
      else if (code !== 0) agent.complaints.push(`it left with ${code}`);
      agent.complaints.push(...dropped.splice(0));
    }
    return agent;
  }

  #said(line) {
    const { id, method } = JSON.parse(line);
    if (id !== undefined && method !== undefined) this.#asked.set(id, method);
  }

  #heard(line) {
    this.n_messages += 1;
    const at = `message ${this.n_messages}`;
    try {
      this.#check(at, line);
    } catch (err) {
      this.complaints.push(err instanceof Rejected ? err.message : `${at}: ${err}`);
    }
  }

  #check(at, line) {
    let it;
    try {
      it = JSON.parse(line);
    } catch {
      reject(`${at}: not JSON: ${line.slice(0, 100)}`);
    }
    envelope(at, it);
    if ("method" in it) return validate(at, definition(at, it.method, "id" in it ? "Request" : "Notification"), it.params);
    const method = this.#asked.get(it.id);
    if (method === undefined) reject(`${at}: an answer to ${it.id}, which nobody asked`);
    this.#asked.delete(it.id);
    if ("error" in it) validate(at, "Error", it.error);
    else validate(at, definition(at, method, "Response"), it.result);
  }

  #updated(update) {
    this.updates.push(update);
    for (const look of this.#watchers) look();
  }

  #permit(params) {
    this.asks.push(params);
    const option = params.options.find((it) => it.kind === this.choose);
    if (option === undefined) reject(`no option is ${this.choose}`);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  }

  /** Waits until something holds, which may come with an update. */
  async until(what, holds) {
    const deadline = Date.now() + MAX_SILENCE_MS;
    while (!holds()) {
      if (Date.now() > deadline) reject(`waited in vain for ${what}`);
      await new Promise((done) => {
        const resume = () => {
          clearTimeout(timer);
          this.#watchers.delete(resume);
          done();
        };
        const timer = setTimeout(resume, 50);
        this.#watchers.add(resume);
      });
    }
  }
}

/** Passes bytes on, and shows each line of them. */
function tap(look) {
  let rest = "";
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return new TransformStream({
    transform(chunk, controller) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop();
      parts.forEach(look);
      controller.enqueue(chunk);
    },
    flush() {
      if (rest !== "") look(rest);
    },
  });
}

/** One session, case by case; what a case finds is used by the next. */
class Session {
  constructor(agent, connection) {
    Object.assign(this, { agent, connection });
  }

  async initialize() {
    const request = { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: "peer", version: "1" } };
    const { protocolVersion, agentInfo, agentCapabilities } = await this.connection.request("initialize", request);
    if (protocolVersion !== 1) reject(`version ${protocolVersion} is not what was asked for`);
    if (!agentInfo) reject("it does not say what it is");
    if (!agentCapabilities.loadSession) reject("it cannot load sessions");
  }

  async open() {
    const { sessionId } = await this.connection.request("session/new", { cwd: process.cwd(), mcpServers: [] });
    this.id = sessionId;
  }

  /** Prompts, and looks at the turn: how it ends, and that nothing of it is left open. */
  async turn(text, stop, meanwhile) {
    const [from, asked] = [this.agent.updates.length, this.agent.asks.length];
    const answer = this.connection.request("session/prompt", { sessionId: this.id, prompt: [{ type: "text", text }] });
    // Whoever waits for the answer later must not find it unhandled before.
    answer.catch(() => {});
    await meanwhile?.(() => this.agent.updates.slice(from));
    const { stopReason } = await answer;
    // Handlers of the last notifications may start after the prompt was answered.
    await new Promise(setImmediate);
    if (stopReason !== stop) reject(`${stopReason} where ${stop} is due`);
    const updates = this.agent.updates.slice(from);
    const calls = new Map();
    for (const it of updates) if (it.toolCallId && it.status) calls.set(it.toolCallId, it.status);
    for (const [id, status] of calls) if (!FINAL.includes(status)) reject(`${id} is still ${status} when the turn ends`);
    return { text: said(updates), calls: [...calls.values()], n_asks: this.agent.asks.length - asked, updates };
  }

  cancel() {
    return this.connection.notify("session/cancel", { sessionId: this.id });
  }

  async is_listed() {
    const { sessions } = await this.connection.request("session/list", { cwd: process.cwd() });
    const found = sessions.find((it) => it.sessionId === this.id);
    if (found === undefined) reject("the session is not in the list");
    if (!found.title) reject("the session has no title");
  }

  async close() {
    await this.connection.request("session/close", { sessionId: this.id });
  }

  async load(id) {
    this.id = id;
    await this.connection.request("session/load", { sessionId: id, cwd: process.cwd(), mcpServers: [] });
    await new Promise(setImmediate);
  }
}

function said(updates) {
  return updates
    .filter((it) => it.sessionUpdate === "agent_message_chunk")
    .map((it) => it.content.text)
    .join("");
}

/** What the calls that are completed show, fences and space around it aside. */
function output(updates) {
  const shown = updates.filter((it) => it.status === "completed").flatMap((it) => it.content ?? []);
  return shown.map((it) => it.content.text).join("").replace(/^[`\s]+|[`\s]+$/g, "");
}

/** The conversation that a client has seen, wherever its texts were cut; the user's words aside. */
function seen(updates) {
  const folded = [];
  for (const { content, ...rest } of updates) {
    if (ABOUT.includes(rest.sessionUpdate) || rest.sessionUpdate === "user_message_chunk") continue;
    const last = folded.at(-1);
    const is_text = CHUNKS.includes(rest.sessionUpdate) && content.type === "text";
    if (is_text && last?.is_text && isDeepStrictEqual(last.rest, rest)) last.content.text += content.text;
    else folded.push({ is_text, rest, content: structuredClone(content) });
  }
  return folded.map(({ rest, content }) => ({ ...rest, content }));
}

const exists = (name) => fs.existsSync(path.join(process.cwd(), name));
const lane = (name) => `please [[lane:${name}]]`;

const MODEL = {
  async "a permission is allowed"(session) {
    const turn = await session.turn(lane("allow"), "end_turn");
    if (turn.n_asks !== 1) reject(`${turn.n_asks} permissions were asked for, not one`);
    if (!isDeepStrictEqual(turn.calls, ["completed"])) reject(`the calls are ${turn.calls}`);
    if (!exists("allowed")) reject("nothing was written, although it was allowed");
    const progress = turn.updates.filter((it) => it.toolCallId).map((it) => it.status);
    if (!progress.includes("in_progress")) reject(`the call was never in progress: ${progress}`);
    if (output(turn.updates) !== "yes") reject(`the call shows ${JSON.stringify(output(turn.updates))}`);
    if (!turn.text.includes("It is written")) reject(`it says ${JSON.stringify(turn.text)}`);
  },
  async "a permission is denied"(session) {
    session.agent.choose = "reject_once";
    const turn = await session.turn(lane("deny"), "end_turn");
    session.agent.choose = "allow_once";
    if (exists("denied")) reject("it was written, although it was denied");
    if (!isDeepStrictEqual(turn.calls, ["failed"])) reject(`the calls are ${turn.calls}`);
  },
  async "a text is cancelled"(session) {
    await session.turn(lane("text"), "cancelled", async (updates) => {
      await session.agent.until("a text", () => said(updates()).includes("tick"));
      await session.cancel();
    });
  },
  async "a tool is cancelled"(session) {
    const turn = await session.turn(lane("tool"), "cancelled", async () => {
      await session.agent.until("the tool", () => exists("begun"));
      await session.cancel();
    });
    if (!isDeepStrictEqual(turn.calls, ["failed"])) reject(`the calls are ${turn.calls}`);
    if (exists("ended")) reject("the tool went on");
  },
  async "the session goes on"(session) {
    const { text } = await session.turn(lane("after"), "end_turn");
    if (text !== "Still here.") reject(`it says ${JSON.stringify(text)}`);
  },
};

const REPLAY = {
  async "a prompt is answered"(session) {
    const turn = await session.turn("go", "end_turn");
    if (turn.calls.length === 0) reject("no tool was called");
    if (turn.text === "") reject("nothing was said");
  },
};

const PLANS = {
  model: { cases: MODEL, prompts: ["allow", "deny", "text", "tool", "after"].map(lane), again: lane("again") },
  replay: { cases: REPLAY, prompts: ["go"], again: undefined },
};

/** Runs a plan, in two processes; the reason of every case that failed, or undefined, by its name. */
async function run({ cases, prompts, again }, command) {
  const verdicts = new Map();
  const attempt = async (name, op) => {
    let timer;
    const silence = new Promise((_, stop) => {
      timer = setTimeout(() => stop(new Rejected("nothing happens any more")), 2 * MAX_SILENCE_MS);
    });
    try {
      await Promise.race([op(), silence]);
      verdicts.set(name, undefined);
    } catch (err) {
      verdicts.set(name, err instanceof Rejected ? err.message : String(err.stack ?? err));
    } finally {
      clearTimeout(timer);
    }
  };
  let id;
  const first = await Agent.with(command, async (agent, connection) => {
    const session = new Session(agent, connection);
    await attempt("initialize", () => session.initialize());
    await attempt("a session is made", () => session.open());
    for (const [name, op] of Object.entries(cases)) await attempt(name, () => op(session));
    await attempt("the session is listed", () => session.is_listed());
    await attempt("the session is closed", () => session.close());
    id = session.id;
  });
  const second = await Agent.with(command, async (agent, connection) => {
    const session = new Session(agent, connection);
    await session.initialize().catch(() => {});
    await attempt("the session is loaded as it was seen", async () => {
      await session.load(id);
      same(seen(first.updates), seen(agent.updates));
      same(prompts, agent.updates.filter((it) => it.sessionUpdate === "user_message_chunk").map((it) => it.content.text));
    });
    if (again === undefined) return;
    await attempt("what was loaded goes on", async () => {
      const { text } = await session.turn(again, "end_turn");
      if (text !== "Here again.") reject(`it says ${JSON.stringify(text)}`);
    });
  });
  const complaints = [...first.complaints, ...second.complaints];
  const n_messages = first.n_messages + second.n_messages;
  verdicts.set(`all ${n_messages} lines on stdout are valid`, complaints[0]);
  return verdicts;
}

function same(before, after) {
  const at = before.findIndex((it, at) => !isDeepStrictEqual(it, after[at]));
  if (at < 0 && before.length === after.length) return;
  const [one, other] = [before, after].map((it) => JSON.stringify(it[at < 0 ? before.length : at]));
  reject(`loaded differently: ${one} is now ${other}`);
}

function close(lines, n_passed) {
  for (const line of lines) console.log(`FAIL ${line.replace(/\s+/g, " ").slice(0, 1000)}`);
  console.log(`${n_passed} passed, ${lines.length} failed`);
  process.exitCode = lines.length > 0 ? 1 : 0;
}

/** Runs the plan `model` with an agent that does as it should, and with each of its faults. */
async function selftest() {
  const reasons = JSON.parse(fs.readFileSync(new URL("reasons.json", SELFTEST), "utf8"));
  const agent = new URL("agent.mjs", SELFTEST).pathname;
  const wrong = [];
  for (const [fault, expected] of [["none", undefined], ...Object.entries(reasons)]) {
    process.chdir(fs.mkdtempSync(path.join(os.tmpdir(), "linkspan-acp-")));
    const verdicts = await run(PLANS.model, [process.execPath, agent, fault]);
    fs.rmSync(process.cwd(), { recursive: true });
    const found = [...verdicts.values()].filter((it) => it !== undefined);
    if (expected === undefined && found.length > 0) wrong.push(`${fault}: should pass: ${found[0]}`);
    if (expected !== undefined && !found.some((it) => it.includes(expected))) {
      wrong.push(`${fault}: should fail with "${expected}", failed with: ${found.join("; ")}`);
    }
  }
  close(wrong, Object.keys(reasons).length + 1 - wrong.length);
}

const [plan, ...command] = process.argv.slice(2);
if (plan === "--selftest") {
  await selftest();
} else if (plan in PLANS && command.length > 0) {
  const verdicts = [...(await run(PLANS[plan], command))];
  const failed = verdicts.filter(([, reason]) => reason !== undefined);
  close(failed.map(([name, reason]) => `${name}: ${reason}`), verdicts.length - failed.length);
} else {
  process.stderr.write("usage: acp_live.mjs [--selftest] replay|model COMMAND...\n");
  process.exitCode = 1;
}
