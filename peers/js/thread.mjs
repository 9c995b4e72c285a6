// Judges ThreadEvent streams (`codex exec --json`): a strict schema and the life of turns and items.
//
// Codex publishes no validator, so the schema beside this file is written from its types,
// as a writer must print them. The life cycle is stricter than Codex itself, which leaves
// interrupted turns open: a consumer of ours may rely on every turn and item ending once.

import fs from "node:fs";

import Ajv2020 from "ajv/dist/2020.js";

import { first_error, json_lines, main, reject } from "./judge.mjs";

const SCHEMA = new URL("../../docs/thread.schema.json", import.meta.url);

const check = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(JSON.parse(fs.readFileSync(SCHEMA, "utf8")));

class Thread {
  is_first = true;
  n_turns = 0;
  /** Item id to type for started items of the open turn; undefined between turns. */
  open;
  closed = new Set();

  event(at, it) {
    if (this.is_first && it.type !== "thread.started") reject(`${at}: the first line is ${it.type}`);
    this.is_first = false;
    const in_turn = this.open !== undefined;
    switch (it.type) {
      case "thread.started":
        if (in_turn) reject(`${at}: thread.started inside a turn`);
        return;
      case "turn.started":
        if (in_turn) reject(`${at}: turn.started inside a turn`);
        this.n_turns += 1;
        this.open = new Map();
        return;
    }
    if (!in_turn) {
      // Codex itself warns before its first turn.
      if (it.type === "item.completed" && it.item.type === "error") return;
      reject(`${at}: ${it.type} outside a turn`);
    }
    switch (it.type) {
      case "turn.completed":
      case "turn.failed":
        for (const [id, type] of this.open) reject(`${at}: turn ends while ${type} ${id} is open`);
        this.open = undefined;
        return;
      case "item.started":
        this.must_be_new(at, it.item);
        this.open.set(it.item.id, it.item.type);
        return;
      case "item.updated":
        if (!this.open.has(it.item.id)) reject(`${at}: update of item ${it.item.id}, which is not open`);
        this.must_keep_type(at, it.item);
        return;
      case "item.completed":
        if (this.open.has(it.item.id)) this.must_keep_type(at, it.item);
        else this.must_be_new(at, it.item);
        this.open.delete(it.item.id);
        this.closed.add(it.item.id);
    }
  }

  must_be_new(at, { id }) {
    if (this.open.has(id)) reject(`${at}: item ${id} is already open`);
    if (this.closed.has(id)) reject(`${at}: item ${id} was already completed`);
  }

  must_keep_type(at, { id, type }) {
    const started = this.open.get(id);
    if (started !== type) reject(`${at}: item ${id} started as ${started}, is now ${type}`);
  }

  end() {
    if (this.n_turns === 0) reject("no turn");
    if (this.open !== undefined) reject("the file ends inside a turn");
  }
}

await main({
  name: "thread",
  extension: ".thread.jsonl",
  judge(bytes) {
    const thread = new Thread();
    for (const { at, value } of json_lines(bytes)) {
      if (!check(value)) reject(`${at}: ${value.type}: ${first_error(check.errors)}`);
      thread.event(at, value);
    }
    thread.end();
  },
});
