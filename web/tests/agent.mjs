#!/usr/bin/env node
// An agent that does what its prompt says, in Claude Code's stream-json; for scenes with the real server.
//
//   ask          wants to run a command, and does what it is told
//   wait         works until it is interrupted
//   words N      says N words, one after the other
//   picture      runs a command that leaves a picture, a note, and a link that leads out
//   anything     repeats it

import { randomUUID } from "node:crypto";
import { symlinkSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGNgYPiPBw0kJTLSAACxYwGfzaMTDwAAAABJRU5ErkJggg==";

const args = process.argv.slice(2);
if (args.includes("--version")) {
  console.log("2.1.325 (Claude Code)");
  process.exit(0);
}
const resumed = args[args.indexOf("--resume") + 1];
const session_id = args.includes("--resume") && !args.includes("--fork-session") ? resumed : randomUUID();

const tell = (message) => process.stdout.write(`${JSON.stringify({ ...message, session_id, uuid: randomUUID() })}\n`);
const say = (content, id = `msg_${randomUUID()}`) =>
  tell({ type: "assistant", parent_tool_use_id: null, message: { id, type: "message", role: "assistant", content } });
const end = (rest) => {
  // One prompt, one result: whoever is interrupted when all is said has nothing to add.
  if (!isBusy) return;
  isBusy = false;
  tell({ type: "result", is_error: false, num_turns: 1, duration_ms: 5, total_cost_usd: 0.01, ...rest });
};
const done = (result) => end({ subtype: "success", result });
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** The call that waits for an answer. */
let asked;
let isInterrupted = false;
let isBusy = false;

function call(command) {
  const id = `toolu_${randomUUID()}`;
  say([{ type: "tool_use", id, name: "Bash", input: { command } }]);
  return id;
}

function returned(id, content, is_error = false) {
  const message = { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, is_error }] };
  tell({ type: "user", parent_tool_use_id: null, message });
}

async function words(n) {
  const id = `msg_${randomUUID()}`;
  const event = (event) => tell({ type: "stream_event", parent_tool_use_id: null, event });
  const text = Array.from({ length: n }, (_, at) => `word${at}`);
  event({ type: "message_start", message: { id, type: "message", role: "assistant", content: [] } });
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  for (const it of text) {
    if (isInterrupted) return;
    event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: `${it} ` } });
    await sleep(20);
  }
  const whole = `${text.join(" ")} `;
  say([{ type: "text", text: whole }], id);
  event({ type: "content_block_stop", index: 0 });
  event({ type: "message_stop" });
  done(whole);
}

async function prompted(text) {
  isInterrupted = false;
  isBusy = true;
  tell({ type: "system", subtype: "init", cwd: process.cwd(), model: "scripted-1", tools: ["Bash"] });
  const [verb, n] = text.split(" ");
  if (verb === "ask") {
    const input = { command: "make it so" };
    asked = call(input.command);
    const request = { subtype: "can_use_tool", tool_name: "Bash", input, tool_use_id: asked };
    return tell({ type: "control_request", request_id: randomUUID(), request });
  }
  if (verb === "wait") return undefined;
  if (verb === "words") return words(Number(n));
  if (verb === "picture") {
    const id = call("plot");
    writeFileSync("plot.png", Buffer.from(PICTURE, "base64"));
    writeFileSync("notes.md", "what the picture shows\n");
    symlinkSync("/etc/hostname", "leak.txt");
    returned(id, "wrote plot.png, notes.md and leak.txt");
    return done("done");
  }
  say([{ type: "text", text: `You said: ${text}` }]);
  return done(text);
}

function answered({ behavior, message }) {
  returned(asked, behavior === "allow" ? "so it is" : message, behavior !== "allow");
  const words = behavior === "allow" ? "It was allowed." : `It was denied: ${message}`;
  say([{ type: "text", text: words }]);
  done(words);
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === "user") {
    const { content } = message.message;
    void prompted(typeof content === "string" ? content : content.map((it) => it.text ?? "").join(""));
  } else if (message.type === "control_response") answered(message.response.response);
  else if (message.type === "control_request") {
    tell({ type: "control_response", response: { subtype: "success", request_id: message.request_id, response: {} } });
    if (message.request.subtype !== "interrupt") continue;
    isInterrupted = true;
    end({ subtype: "error_during_execution", is_error: true });
  }
}
