// Drives linkspan with the SDKs of other agents, in place of the programs that they bring along.
//
// usage: sdks.mjs LINKSPAN [CASE...]
//
// `@openai/codex-sdk` starts `linkspan exec`, `@anthropic-ai/claude-agent-sdk` starts `linkspan claude-sdk`.
// They talk with a recording, with the real Claude Code on the scripted model, and with a model of an Open
// Responses endpoint: the config in the home says where these are. The current folder has to be empty.
// Prints a line for each case that fails, with all that the SDK was given, and closes with `N passed, M failed`.

import { Codex } from "@openai/codex-sdk";
import { query } from "@anthropic-ai/claude-agent-sdk";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [linkspan, ...wanted] = process.argv.slice(2);
// A real agent on a busy machine takes seconds to start.
const MAX_MS = 60_000;
// Cases wait for agents more than they compute.
const AT_ONCE = 3;

const cases = {
  // --- @openai/codex-sdk ---

  async "codex: a recording, streamed"(seen) {
    const thread = codex("replay:tools").startThread({ skipGitRepoCheck: true });
    const events = await streamed(thread, "go", seen);
    const types = events.map((it) => it.type);
    assert.equal(types[0], "thread.started");
    assert.equal(types[1], "turn.started");
    assert.equal(types.at(-1), "turn.completed");
    const kinds = new Set(events.filter((it) => it.item).map((it) => it.item.type));
    assert.ok(kinds.has("command_execution") && kinds.has("file_change") && kinds.has("agent_message"));
    for (const key of ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"])
      assert.equal(typeof events.at(-1).usage[key], "number", key);
    assert.equal(thread.id, events[0].thread_id);
  },

  async "codex: tools, a second turn, and resume"(seen) {
    const options = { sandboxMode: "danger-full-access", skipGitRepoCheck: true, approvalPolicy: "never" };
    const thread = codex("claude").startThread(options);
    const first = await thread.run([{ type: "text", text: "please" }, { type: "text", text: "[[lane:codex-tool]]" }]);
    seen.push(first);
    assert.equal(first.finalResponse, "It is written.");
    const command = first.items.find((it) => it.type === "command_execution");
    assert.equal(command.status, "completed");
    assert.equal(fs.readFileSync("codex-tool", "utf8"), "yes\n");
    const { id } = thread;
    const second = await thread.run("[[lane:after]]");
    seen.push(second);
    assert.deepEqual([second.finalResponse, thread.id], ["Still here.", id]);
    // The engine is that of the session.
    const resumed = new Codex({ codexPathOverride: linkspan }).resumeThread(id, options);
    const third = await resumed.run("[[lane:again]]");
    assert.deepEqual([third.finalResponse, resumed.id], ["Here again.", id]);
  },

  async "codex: a model, and its memory"(seen) {
    const thread = codex("responses:scripted").startThread({ skipGitRepoCheck: true });
    const first = await thread.run("[[lane:after]]");
    seen.push(first);
    assert.equal(first.finalResponse, "Still here.");
    assert.equal((await thread.run("[[lane:again]]")).finalResponse, "Here again.");
  },

  async "codex: a turn that fails"(seen) {
    const thread = codex("replay:failure").startThread({ skipGitRepoCheck: true });
    const events = await streamed(thread, "go", seen).catch((err) => err);
    assert.ok(events instanceof Error, "a failed turn is an error");
    const failed = seen.find((it) => it.type === "turn.failed");
    assert.ok(failed?.error.message, "`turn.failed` comes before the exit");
  },

  async "codex: what the engine cannot keep is refused"(seen) {
    const thread = codex("claude").startThread({ skipGitRepoCheck: true });
    const schema = { type: "object", properties: {}, additionalProperties: false };
    const refused = await thread.run("go", { outputSchema: schema }).catch((err) => err);
    seen.push(String(refused));
    assert.match(String(refused), /`--output-schema` is not supported by claude/);
    const asking = codex("claude").startThread({ approvalPolicy: "on-request" });
    assert.match(String(await asking.run("go").catch((err) => err)), /`approval_policy` cannot be `on-request`/);
  },

  async "codex: abort"(seen) {
    const stop = new AbortController();
    const options = { sandboxMode: "danger-full-access", skipGitRepoCheck: true };
    const thread = codex("claude").startThread(options);
    const turn = await thread.runStreamed("[[lane:codex-abort]]", { signal: stop.signal });
    const ended = (async () => {
      for await (const event of turn.events) seen.push(event);
    })().catch((err) => err);
    await exists("codex-begun");
    stop.abort();
    assert.ok((await ended) instanceof Error, "an aborted turn is an error");
    await gone("sleep 20; touch codex-ended");
  },

  // --- @anthropic-ai/claude-agent-sdk ---

  async "claude: a recording"(seen) {
    const messages = await all(query({ prompt: "go", options: claude("replay:tools") }), seen);
    const types = messages.map((it) => it.type);
    assert.deepEqual([messages[0].subtype, types.at(-1)], ["init", "result"]);
    assert.ok(types.includes("assistant") && types.includes("user"));
    const last = messages.at(-1);
    assert.deepEqual([last.subtype, last.is_error], ["success", false]);
    for (const it of messages) assert.ok(it.uuid && it.session_id, JSON.stringify(it));
  },

  async "claude: a recording that asks"(seen) {
    // The path of a program has no arguments: a script stands between.
    const program = path.resolve("fake-claude");
    fs.writeFileSync(program, `#!/bin/sh\nexec '${linkspan}' replay approval --as claude -- "$@"\n`, { mode: 0o755 });
    const asked = [];
    const canUseTool = async (tool, input) => {
      asked.push(tool);
      return { behavior: "allow", updatedInput: input };
    };
    const options = { ...claude(), pathToClaudeCodeExecutable: program, canUseTool };
    const messages = await all(query({ prompt: "go", options }), seen);
    assert.ok(asked.length > 0, "the host is asked");
    assert.equal(messages.at(-1).type, "result");
  },

  async "claude: allowed, denied, and streamed"(seen) {
    const asked = [];
    const canUseTool = async (tool, input) => {
      asked.push([tool, input.command]);
      return input.command.includes("denied")
        ? { behavior: "deny", message: "not there" }
        : { behavior: "allow", updatedInput: input };
    };
    const input = prompts();
    const options = { ...claude("claude"), canUseTool, includePartialMessages: true };
    const messages = query({ prompt: input.stream, options });
    input.send("please [[lane:allow]]");
    const first = await turn(messages, seen);
    assert.equal(first.at(-1).result, "It is written, as you can see.");
    assert.equal(fs.readFileSync("allowed", "utf8"), "yes\n");
    const pieces = first.filter((it) => it.type === "stream_event").map((it) => it.event.delta?.text ?? "");
    assert.equal(pieces.join(""), "I will write it.It is written, as you can see.");
    input.send("please [[lane:deny]]");
    const second = await turn(messages, seen);
    assert.equal(second.at(-1).result, "Then I will not.");
    assert.equal(second.at(-1).permission_denials.length, 1);
    assert.equal(fs.existsSync("denied"), false);
    assert.deepEqual(asked, [["Bash", "echo yes > allowed"], ["Bash", "echo no > denied"]]);
    input.end();
    assert.deepEqual(await all(messages, seen), []);
  },

  async "claude: interrupt, settings, and resume"(seen) {
    const input = prompts();
    const options = { ...claude("claude"), permissionMode: "default", allowedTools: ["Bash"] };
    const messages = query({ prompt: input.stream, options });
    input.send("please [[lane:interrupt]]");
    const stopped = turn(messages, seen);
    await exists("begun");
    await messages.interrupt();
    const result = (await stopped).at(-1);
    assert.deepEqual([result.subtype, result.is_error], ["error_during_execution", true]);
    await messages.setPermissionMode("acceptEdits");
    input.send("please [[lane:after]]");
    const second = await turn(messages, seen);
    assert.equal(second.at(-1).result, "Still here.");
    input.end();
    await all(messages, seen);
    await gone("sleep 20; touch ended");
    const { session_id } = second.at(-1);
    const resumed = await all(query({ prompt: "[[lane:again]]", options: { ...claude(), resume: session_id } }), seen);
    const { result: said, session_id: same } = resumed.at(-1);
    assert.deepEqual([said, same], ["Here again.", session_id]);
  },

  async "claude: a model"(seen) {
    const messages = await all(query({ prompt: "[[lane:after]]", options: claude("responses:scripted") }), seen);
    assert.equal(messages.at(-1).result, "Still here.");
  },

  async "claude: hooks are refused"(seen) {
    const hooks = { PreToolUse: [{ hooks: [async () => ({})] }] };
    const messages = query({ prompt: "go", options: { ...claude("replay:tools"), hooks } });
    await assert.rejects(messages.initializationResult(), /`hooks` is not supported/);
    // Nothing runs without them.
    await all(messages, seen).catch((err) => seen.push(String(err)));
    assert.deepEqual(seen.filter((it) => it.type === "assistant"), []);
    assert.match(JSON.stringify(seen), /`hooks` is not supported/);
  },
};

function codex(engine) {
  return new Codex({ codexPathOverride: linkspan, config: { linkspan: { engine } } });
}

function claude(engine) {
  const env = { ...process.env, ...(engine && { LINKSPAN_ENGINE: engine }) };
  const stderr = (text) => (errors += text);
  return { pathToClaudeCodeExecutable: linkspan, env, stderr, settingSources: [] };
}

let errors = "";

async function streamed(thread, prompt, seen) {
  const { events } = await thread.runStreamed(prompt);
  const all = [];
  for await (const event of events) {
    seen.push(event);
    all.push(event);
  }
  return all;
}

/** All messages that are left, without what is said of the session's state. */
async function all(messages, seen) {
  const list = [];
  for await (const message of messages) note(message, list, seen);
  return list;
}

/** The messages up to the next result. */
async function turn(messages, seen) {
  const list = [];
  for (;;) {
    const { value, done } = await messages.next();
    assert.ok(!done, "the messages end before the result");
    note(value, list, seen);
    if (value.type === "result") return list;
  }
}

function note(message, list, seen) {
  seen.push(message);
  if (message.subtype !== "session_state_changed") list.push(message);
}

/** Prompts for a query that stays open. */
function prompts() {
  const queue = [];
  let wake = () => {};
  let isOver = false;
  const push = (op) => {
    op();
    wake();
  };
  return {
    send: (content) => push(() => queue.push({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "" })),
    end: () => push(() => (isOver = true)),
    stream: (async function* () {
      for (;;) {
        while (queue.length) yield queue.shift();
        if (isOver) return;
        await new Promise((resolve) => (wake = resolve));
      }
    })(),
  };
}

/** Waits for a file of the agent. */
async function exists(file) {
  while (!fs.existsSync(file)) await sleep(20);
}

/** Waits until no process has this on its command line. */
async function gone(words) {
  const isThere = () =>
    fs.readdirSync("/proc").some((pid) => {
      if (!/^\d+$/.test(pid)) return false;
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(words);
      } catch {
        return false;
      }
    });
  while (isThere()) await sleep(20);
}

async function run(name) {
  const seen = [];
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it takes longer than ${MAX_MS / 1000} s`)), MAX_MS);
  });
  try {
    await Promise.race([cases[name](seen), late]);
    return true;
  } catch (err) {
    console.log(`${name}: ${err.message}`);
    for (const it of seen) console.log(`    ${JSON.stringify(it)?.slice(0, 400)}`);
    return false;
  } finally {
    clearTimeout(timer);
  }
}

const names = Object.keys(cases).filter((it) => wanted.length === 0 || wanted.includes(it));
const queue = [...names];
let nPassed = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let name; (name = queue.shift()); ) {
      // Not `+=` around the `await`: the others count meanwhile.
      const isPassed = await run(name);
      nPassed += Number(isPassed);
    }
  }),
);
const nFailed = names.length - nPassed;
if (nFailed > 0 && errors) console.log(errors);
console.log(`${nPassed} passed, ${nFailed} failed`);
process.exit(nFailed > 0 || names.length === 0 ? 1 : 0);
