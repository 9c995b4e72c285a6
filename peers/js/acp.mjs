// Judges ACP streams: the stable v1 JSON Schema for every message, the turn's life cycle,
// and a play to the vendor's own client.
//
// A file is the agent's side of a conversation: turns of `session/update` notifications and
// permission requests (with the client's answers beside them), each ended by one response
// whose id is the turn's number.

import { play } from "./acp_client.mjs";
import { definition, envelope, validate } from "./acp_schema.mjs";
import { json_lines, main, reject } from "./judge.mjs";

const FINAL = ["completed", "failed"];
// What a client shows as part of a turn; nothing of it may follow the turn's response.
const CONTENT = ["tool_call", "tool_call_update", "user_message_chunk", "agent_message_chunk", "agent_thought_chunk"];

class Session {
  n_turns = 0;
  /** Tool calls opened anywhere in the file. */
  known = new Set();
  /** Tool call id to last status, for the calls touched in this turn. */
  calls = new Map();
  /** Permission request id to its offered options, until it is answered. */
  asks = new Map();
  ask_ids = new Set();
  has_content = false;

  message(at, it) {
    envelope(at, it);
    if ("method" in it) this.call(at, it);
    else if (typeof it.id === "string") this.answer(at, it);
    else this.response(at, it);
  }

  call(at, it) {
    const is_request = "id" in it;
    validate(at, definition(at, it.method, is_request ? "Request" : "Notification"), it.params);
    if (it.method === "session/update") this.update(at, it.params.update);
    if (it.method === "session/request_permission") this.ask(at, it);
    else if (is_request) reject(`${at}: no rule for the request ${it.method}`);
  }

  update(at, it) {
    if (CONTENT.includes(it.sessionUpdate)) this.has_content = true;
    if ("title" in it && it.title === "") reject(`${at}: empty title`);
    const id = it.toolCallId;
    if (it.sessionUpdate === "tool_call") {
      const status = this.calls.get(id);
      if (FINAL.includes(status)) reject(`${at}: tool call ${id} is opened again after ${status}`);
      if (status !== undefined) reject(`${at}: tool call ${id} is already open`);
      this.known.add(id);
      this.calls.set(id, it.status ?? "pending");
    } else if (it.sessionUpdate === "tool_call_update") {
      if (!this.known.has(id)) reject(`${at}: update of tool call ${id}, which was never opened`);
      const status = this.calls.get(id);
      if (FINAL.includes(status)) reject(`${at}: update of tool call ${id} after ${status}`);
      if (it.status) this.calls.set(id, it.status);
    }
  }

  ask(at, it) {
    if (typeof it.id !== "string") reject(`${at}: a permission request's id must be a string`);
    if (this.ask_ids.has(it.id)) reject(`${at}: permission request ${it.id} is sent twice`);
    if (it.params.toolCall.title === "") reject(`${at}: empty title`);
    this.ask_ids.add(it.id);
    this.asks.set(it.id, it.params.options.map((option) => option.optionId));
    this.has_content = true;
  }

  answer(at, it) {
    if (!this.asks.has(it.id)) reject(`${at}: answer to ${it.id}, which is not an open request`);
    if ("error" in it) {
      validate(at, "Error", it.error);
    } else {
      validate(at, "RequestPermissionResponse", it.result);
      const { outcome, optionId } = it.result.outcome;
      if (outcome === "selected" && !this.asks.get(it.id).includes(optionId)) {
        reject(`${at}: answer to ${it.id} selects ${optionId}, which was not offered`);
      }
    }
    this.asks.delete(it.id);
  }

  response(at, it) {
    this.n_turns += 1;
    if (it.id !== this.n_turns) reject(`${at}: response id ${JSON.stringify(it.id)} where turn ${this.n_turns} ends`);
    if ("result" in it) validate(at, "PromptResponse", it.result);
    else validate(at, "Error", it.error);
    for (const [id, status] of this.calls) {
      if (!FINAL.includes(status)) reject(`${at}: turn ends while tool call ${id} is ${status}`);
    }
    for (const id of this.asks.keys()) reject(`${at}: turn ends while ${id} is unanswered`);
    this.calls.clear();
    this.has_content = false;
  }

  end() {
    if (this.n_turns === 0) reject("no response ends a turn");
    if (this.has_content) reject("content after the last response");
  }
}

await main({
  name: "acp",
  extension: ".acp.jsonl",
  async judge(bytes) {
    const messages = json_lines(bytes);
    const file = new Session();
    for (const { at, value } of messages) file.message(at, value);
    file.end();
    await play(messages);
  },
});
