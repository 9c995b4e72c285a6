// Folds canonical events into what the feed shows: a list of rows, some with rows inside.
//
// Pure: no DOM, no clock, no network. One event at a time and in order of `seq`; an event that was
// seen already changes nothing, one that comes too early is refused, and the caller asks again
// from `cursor`. A row's `version` counts its changes, so that a view redraws only what is new.

import { plus, runCost, runTokens, summaryLine } from "./labels.js";

/** Text of one streaming channel that is kept; the closing event carries the whole. */
const MAX_STREAMED = 2_000_000;
/** Prompts that are remembered by their text. */
const MAX_PROMPTS = 50;

/** @typedef {{ model: string, tokens: View.Tokens, cost?: number }} ModelTotal */

/** The story of one session so far. */
export class Story {
  /** @param {string} session @param {number} firstKey added to the keys of rows, where several stories are shown together */
  constructor(session, firstKey = 0) {
    this.session = session;
    this.firstKey = firstKey;
    /** The seq of the last event that was folded. */
    this.cursor = 0;
    /** @type {View.Row[]} */
    this.rows = [];
    /** @type {{ native?: string, model?: string, cwd?: string, mode?: string, version?: string, engine?: string }} */
    this.facts = {};
    this.isRunning = false;
    this.nRuns = 0;
    this.cost = 0;
    this.hasCost = false;
    /** @type {View.Tokens} */
    this.tokens = {};
    /** When the last run started. @type {string | undefined} */
    this.runAt = undefined;
    /** Answers of the model in this run. */
    this.nRequests = 0;
    /** Tokens of the run that is going on. @type {View.Tokens} */
    this.runTokens = {};
    /** @type {Map<string, ModelTotal>} */
    this.models = new Map();
    /** Calls that started a sub-agent. @type {View.ToolRow[]} */
    this.agents = [];
    /** Asks that wait, by the agent's own id. @type {Map<string, View.AskRow>} */
    this.asks = new Map();
    /** @type {Map<string, View.ItemRow>} */
    this.open = new Map();
    /** Tool calls by id, for what happens inside of them. @type {Map<string, View.ToolRow>} */
    this.calls = new Map();
    /** What the agent has said last in this run, and the errors since. */
    this.lastWords = "";
    this.firstPrompt = "";
    /** The last prompts, and where they are. @type {{ key: number, seq: number, text: string }[]} */
    this.prompts = [];
    /** The seqs of the last start and the last end of a run. */
    this.startedSeq = 0;
    this.endedSeq = 0;
  }

  /**
   * @param {Wire.Event} event
   * @returns {"new" | "seen" | "gap"}
   */
  add(event) {
    if (event.seq <= this.cursor) return "seen";
    if (event.seq > this.cursor + 1) return "gap";
    this.cursor = event.seq;
    switch (event.type) {
      case "session.bound":
        this.#bound(event, event.data);
        break;
      case "run.started":
        this.isRunning = true;
        this.nRuns += 1;
        this.runTokens = {};
        this.nRequests = 0;
        this.runAt = event.at;
        this.lastWords = "";
        this.startedSeq = event.seq;
        this.#push(event, { ...this.#base(event), kind: "run", n: this.nRuns, cause: event.data.cause });
        break;
      case "run.ended":
        this.#ended(event, event.data);
        break;
      case "item.opened":
      case "item.updated":
        this.#item(event, event.data, undefined);
        break;
      case "item.closed":
        this.#item(event, event.data.item, event.data.status);
        break;
      case "item.delta":
        this.#delta(event, event.data);
        break;
      case "ask.opened":
        this.#ask(event, event.data);
        break;
      case "ask.settled":
        this.#settled(event, event.data);
        break;
      case "usage.reported":
        this.#usage(event, event.data);
        break;
      case "notice.raised":
        if (event.data.level === "debug") break;
        // The end of the run says that it was stopped; one line for it is enough.
        if (event.data.code === "interrupt" || event.data.code === "interrupted") break;
        if (event.data.level === "error") this.lastWords += `\n${event.data.text}`;
        this.#push(event, { ...this.#base(event), kind: "notice", level: event.data.level, code: event.data.code, text: event.data.text });
        break;
      case "frame.unmapped":
        // The agent sent something that linkspan does not know; it would not help a reader.
        break;
      default:
        // A later server may know more; what this page does not know it does not show.
        break;
    }
    return "new";
  }

  /** @param {Wire.Event} event @param {Wire.SessionBound} data */
  #bound(event, data) {
    const facts = this.facts;
    facts.engine = event.engine ?? facts.engine;
    for (const name of /** @type {const} */ (["native", "model", "cwd", "version"])) {
      if (data[name]) facts[name] = data[name];
    }
    if (data.permission_mode) facts.mode = data.permission_mode;
    if (data.how === "mismatch") {
      const text = `the agent resumed another session: ${data.native}`;
      this.#push(event, { ...this.#base(event), kind: "notice", level: "warning", code: "mismatch", text });
    }
  }

  /** @param {Wire.Event} event @param {Wire.RunEnded} data */
  #ended(event, data) {
    this.isRunning = false;
    this.endedSeq = event.seq;
    for (const it of data.models ?? []) this.#model(it.model, it.tokens, it.cost_usd);
    if (!data.models?.length && data.usage) {
      this.#model(data.usage.model ?? this.facts.model ?? "all", data.usage.tokens, data.usage.cost_usd);
    }
    const cost = runCost(data);
    if (cost !== undefined) {
      this.cost += cost;
      this.hasCost = true;
    }
    this.tokens = plus(this.tokens, runTokens(data) ?? this.runTokens);
    this.runTokens = {};
    this.#push(event, {
      ...this.#base(event),
      kind: "end",
      outcome: data.outcome,
      error: data.error && { ...data.error, message: unsaid(data.error.message, this.lastWords) },
      durationMs: data.duration_ms,
      facts: summaryLine(data, this.nRequests),
    });
  }

  /** @param {string} model @param {View.Tokens} tokens @param {number | undefined} cost */
  #model(model, tokens, cost) {
    const total = this.models.get(model) ?? { model, tokens: {} };
    total.tokens = plus(total.tokens, tokens);
    if (cost !== undefined) total.cost = (total.cost ?? 0) + cost;
    this.models.set(model, total);
  }

  /** @param {Wire.Event} event @param {Wire.Item} item @param {Wire.Status | undefined} status */
  #item(event, item, status) {
    if (item.kind === "subagent") return this.#subagent(event, item, status);
    const name = place(event, item.id);
    let row = this.open.get(name);
    if (!row) {
      row = fresh(this.#base(event), item);
      this.open.set(name, row);
      this.#push(event, row);
      if (row.kind === "tool") this.calls.set(item.id, row);
    }
    row.version += 1;
    fill(row, item);
    if (row.kind === "message" && row.role === "user" && !event.path?.length) this.#prompted(event.seq, row);
    if (status) {
      row.status = status;
      if (row.kind === "message" && row.role === "assistant" && !row.parent) this.lastWords = row.text;
      if (row.kind === "tool") row.endedAt = event.at;
      this.open.delete(name);
    }
    touch(row.parent);
  }

  /** @param {number} seq @param {View.MessageRow} row */
  #prompted(seq, row) {
    this.firstPrompt ||= row.text;
    // Opened and closed, it is still one prompt.
    if (this.prompts.at(-1)?.key === row.key) this.prompts.pop();
    this.prompts.push({ key: row.key, seq, text: row.text });
    if (this.prompts.length > MAX_PROMPTS) this.prompts.shift();
  }

  /** @param {Wire.Event} event @param {Wire.Subagent} item @param {Wire.Status | undefined} status */
  #subagent(event, item, status) {
    let row = this.calls.get(item.call);
    if (!row) {
      // Some agents have no call for it: the sub-agent is then its own card.
      /** @type {Wire.Tool} */
      const call = { id: item.call, name: item.name, class: { kind: "task", title: item.description ?? item.name } };
      row = toolRow(this.#base(event), call);
      this.calls.set(call.id, row);
      this.#push(event, row);
    }
    if (!row.agent) this.agents.push(row);
    row.agent = item;
    if (status) {
      row.agentStatus = status;
      if (!this.open.has(place(event, row.item.id))) row.status ??= status;
      row.endedAt ??= event.at;
    }
    touch(row);
  }

  /** @param {Wire.Event} event @param {Wire.Delta} data */
  #delta(event, data) {
    const row = this.open.get(place(event, data.item));
    if (!row) return;
    row.version += 1;
    if (row.kind === "tool") {
      if (data.channel === "input") row.typing = grow(row.typing, data.text);
      else row.output = grow(row.output, data.text);
    } else if (row.kind === "message" || row.kind === "reasoning") {
      row.text = grow(row.text, data.text);
    }
    touch(row.parent);
  }

  /** @param {Wire.Event} event @param {Wire.Ask} ask */
  #ask(event, ask) {
    const tool = ask.item === undefined ? undefined : this.calls.get(ask.item);
    /** @type {View.AskRow} */
    const row = { ...this.#base(event), kind: "ask", id: `${this.session}:${event.seq}`, ask, tool };
    this.asks.set(ask.id, row);
    if (tool) {
      tool.ask = row;
      touch(tool);
    }
    // Someone has to see it, so it is shown at the top level even if a sub-agent asks.
    this.rows.push(row);
  }

  /** @param {Wire.Event} event @param {Wire.AskSettled} data */
  #settled(event, data) {
    const row = this.asks.get(data.id);
    if (!row) return;
    this.asks.delete(data.id);
    row.settled = { decision: data.decision, message: data.message, origin: event.origin, why: event.why, input: data.input };
    row.version += 1;
    touch(row.tool);
  }

  /** @param {Wire.Event} event @param {Wire.Usage} data */
  #usage(event, data) {
    const call = event.path?.at(-1);
    const row = call === undefined ? undefined : this.calls.get(call);
    if (row && data.scope === "call") {
      row.tokens = data.basis === "delta" ? plus(row.tokens ?? {}, data.tokens) : data.tokens;
      row.model = data.model ?? row.model;
      if (data.cost_usd !== undefined) row.cost = (row.cost ?? 0) + data.cost_usd;
      touch(row);
    }
    if (data.scope === "call" && !event.path?.length) this.nRequests += 1;
    if (data.scope === "call" && data.basis === "delta") this.runTokens = plus(this.runTokens, data.tokens);
  }

  /** @param {Wire.Event} event @returns {View.RowBase} */
  #base(event) {
    return { key: this.firstKey + event.seq, version: 0, depth: 0, height: 0, at: event.at };
  }

  /** @param {Wire.Event} event @param {View.Row} row */
  #push(event, row) {
    const call = event.path?.at(-1);
    const parent = call === undefined ? undefined : this.calls.get(call);
    if (!parent) {
      this.rows.push(row);
      return;
    }
    row.parent = parent;
    row.depth = parent.depth + 1;
    parent.children.push(row);
    touch(parent);
  }
}

/**
 * What a sub-agent cost: as its agent says or else, about, its share of what its model cost.
 * @param {Story} story @param {View.ToolRow} row
 * @returns {{ usd: number, isGuess: boolean } | undefined}
 */
export function agentCost(story, row) {
  if (row.cost !== undefined) return { usd: row.cost, isGuess: false };
  const total = story.models.get(row.model ?? "");
  const whole = weight(total?.tokens);
  if (total?.cost === undefined || whole === 0 || !row.tokens) return undefined;
  return { usd: total.cost * Math.min(1, weight(row.tokens) / whole), isGuess: true };
}

/** Tokens by what they cost beside each other; providers differ little in this. @param {View.Tokens | undefined} it */
function weight(it) {
  return (it?.input ?? 0) + 1.25 * (it?.cache_write ?? 0) + 0.1 * (it?.cache_read ?? 0) + 5 * (it?.output ?? 0);
}

/**
 * The rows in the order they are shown; what is inside of a closed card is left out.
 * @param {View.Row[]} rows
 * @param {(row: View.Row) => boolean} isOpen
 * @param {View.Row[]} out
 */
export function flat(rows, isOpen, out = []) {
  for (const row of rows) {
    out.push(row);
    if (row.kind === "tool" && row.children.length > 0 && isOpen(row)) flat(row.children, isOpen, out);
  }
  return out;
}

/** Two sub-agents may use one id. @param {Wire.Event} event @param {string} id */
function place(event, id) {
  return event.path?.length ? `${event.path.join("\n")}\n${id}` : id;
}

/** @typedef {Exclude<Wire.Item, { kind: "subagent" }>} RowItem */

/** @param {View.RowBase} it @param {RowItem} item @returns {View.ItemRow} */
function fresh(it, item) {
  switch (item.kind) {
    case "message":
      return { ...it, kind: "message", role: item.role, text: "", parts: [] };
    case "reasoning":
      return { ...it, kind: "reasoning", text: "", hidden: false };
    case "tool":
      return toolRow(it, item);
    case "plan":
      return { ...it, kind: "plan", entries: [] };
    case "compaction":
      return { ...it, kind: "compaction", item };
    case "other":
      return { ...it, kind: "other", item };
  }
}

/** @param {View.RowBase} it @param {Wire.Tool} item @returns {View.ToolRow} */
function toolRow(it, item) {
  return { ...it, kind: "tool", item, typing: "", output: "", children: [] };
}

/** @param {View.ItemRow} row @param {RowItem} item */
function fill(row, item) {
  if (row.kind === "message" && item.kind === "message") {
    row.text = item.text;
    row.parts = item.parts ?? [];
  } else if (row.kind === "reasoning" && item.kind === "reasoning") {
    row.text = item.text;
    row.hidden = !row.text && item.encrypted !== undefined;
  } else if (row.kind === "plan" && item.kind === "plan") {
    row.entries = item.entries;
  } else if (row.kind === "tool" && item.kind === "tool") {
    row.item = item;
    if (item.input !== undefined) row.typing = "";
    // The result says it all again.
    if (item.result !== undefined) row.output = "";
  } else if (row.kind === "compaction" && item.kind === "compaction") {
    row.item = item;
  } else if (row.kind === "other" && item.kind === "other") {
    row.item = item;
  }
}

/** An error without what the agent has just said in words of its own. @param {string} message @param {string} said */
function unsaid(message, said) {
  const lines = new Set(said.split("\n").map((it) => it.trim()));
  const rest = message.split("\n").filter((it) => !lines.has(it.trim()));
  return rest.join("\n").trim();
}

/** A card changes with what is inside of it. @param {View.ToolRow | undefined} row */
function touch(row) {
  for (let it = row; it; it = it.parent) it.version += 1;
}

/** @param {string} text @param {string} more */
function grow(text, more) {
  return text.length < MAX_STREAMED ? text + more : text;
}
