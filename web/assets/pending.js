// Prompts that were sent and that no event shows yet: they are seen at once, and only once. Pure.

import { promptTitle } from "./labels.js";
import { agentName, engineName } from "./words.js";

let nRows = 0;

export class Pending {
  /** @type {View.PendingRow[]} */
  rows = [];
  /** The session was seen at work since the last prompt was accepted. */
  #wasBusy = false;

  /** The row that says that the session is starting, whoever has sent the prompt. @type {View.PendingRow | undefined} */
  #starting;

  /** @param {{ prompt: string, engine: string, isBusy: boolean, after: number }} sent @returns {View.PendingRow} */
  add({ prompt, engine, isBusy, after }) {
    const isRecording = engine.startsWith("replay");
    /** @type {View.PendingRow} */
    const row = {
      key: -(nRows += 1),
      kind: "pending",
      version: 0,
      depth: 0,
      height: 0,
      prompt: isRecording ? "" : prompt,
      label: isBusy ? "Queued" : starting(engine),
      after,
      isAccepted: false,
      isRecording,
      isStopped: false,
    };
    this.rows.push(row);
    return row;
  }

  /** What to show while the session starts: what was sent from here, or else that it does. @param {string} engine */
  starting(engine) {
    if (this.rows.length > 0) return this.rows;
    this.#starting ??= new Pending().add({ prompt: "", engine, isBusy: false, after: 0 });
    return [this.#starting];
  }

  /** The server has taken it; one that waits for its turn is shown by the queue. @param {View.PendingRow} row @param {{ position?: number }} answer */
  accept(row, { position = 0 }) {
    row.isAccepted = true;
    this.#wasBusy = false;
    if (position > 0) this.drop(row);
  }

  /** @param {View.PendingRow} row */
  drop(row) {
    this.rows = this.rows.filter((it) => it !== row);
  }

  /** Everything that was accepted was stopped. */
  stopped() {
    this.rows = this.rows.filter((it) => !it.isAccepted);
  }

  /** Takes away what the story shows by now. @param {import("./fold.js").Story} story */
  seen(story) {
    if (this.rows.length === 0) return;
    /** Each event shows one of them. @type {Set<number>} */
    const taken = new Set();
    this.rows = this.rows.filter((row) => {
      if (row.isRecording) return story.startedSeq <= row.after;
      const after = story.prompts.filter((it) => it.seq > row.after && !taken.has(it.key));
      // An agent may tell a prompt in other words than it was given.
      const shown = after.find((it) => same(it.text, row.prompt)) ?? (row.isAccepted ? after[0] : undefined);
      if (shown) taken.add(shown.key);
      return !shown && !(row.isAccepted && story.endedSeq > row.after);
    });
    if (story.isRunning) for (const row of this.rows) this.#relabel(row, "");
  }

  /** A session that was at work and is idle has nothing on its way. @param {Wire.Session["state"]} state */
  state(state) {
    if (state !== "idle") this.#wasBusy = true;
    else if (this.#wasBusy) this.stopped();
  }

  /** @param {View.PendingRow} row @param {string} label */
  #relabel(row, label) {
    if (row.label === label) return;
    row.label = label;
    row.version += 1;
  }
}

/** A session that the server has not made yet. @param {string} prompt @param {string} engine @returns {Wire.SessionDetail} */
export function unmade(prompt, engine) {
  const at = new Date().toISOString();
  return {
    id: "",
    engine,
    native: null,
    cwd: null,
    parent: null,
    bytes: 0,
    title: engine.startsWith("replay:") ? engineName(engine) : (promptTitle(prompt) ?? ""),
    created_at: at,
    active_at: at,
    head: 0,
    state: "starting",
    queue: [],
    asks: [],
    runs: [],
  };
}

/** @param {string} engine */
function starting(engine) {
  return `Starting ${agentName(engine)}…`;
}

/** @param {string} a @param {string} b */
function same(a, b) {
  return a.trim() === b.trim();
}
