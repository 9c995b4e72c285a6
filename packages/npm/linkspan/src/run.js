// One prompt and the events of its run.

/** @import { Event, Prompt, RunEnded } from "../types/wire.js" */
/** @import { Backend, Linkspan, RunOptions, TakenPrompt } from "./client.js" */

import { LinkspanError } from "./errors.js";

/** The run of a prompt: a `for await` over it gives its events, from `run.started` to `run.ended`. */
export class Run {
  /** Resolves when the prompt was taken, with its session and its place in the queue. @readonly @type {Promise<TakenPrompt>} */
  submitted;
  #client;
  #backend;
  #isStarted = false;
  #isEnded = false;
  /** Ends the loop over a run that never starts. */
  #removed = new AbortController();

  /** @param {Linkspan} client @param {Backend} backend @param {Prompt} prompt @param {RunOptions} options @internal */
  constructor(client, backend, prompt, { signal, idempotencyKey }) {
    this.#client = client;
    this.#backend = backend;
    this.submitted = signal?.aborted ? Promise.reject(signal.reason) : backend.submit(prompt, idempotencyKey, signal);
    // Iterating or awaiting `submitted` reports the error; an unobserved run must not crash the program.
    this.submitted.catch(() => {});
    signal?.addEventListener("abort", () => void this.abort().catch(() => {}), { once: true });
  }

  /** @returns {AsyncGenerator<Event, void, undefined>} */
  async *[Symbol.asyncIterator]() {
    const { session, number, cursor: since } = await this.submitted;
    let isOurs = false;
    for await (const event of this.#client.subscribe({ session, since, signal: this.#removed.signal })) {
      if (!isOurs && event.type === "run.started" && event.data.prompt !== undefined) {
        isOurs = event.data.prompt === number;
        // Prompts are run in the order of their numbers.
        if (event.data.prompt > number) throw removed(number);
        this.#isStarted ||= isOurs;
      }
      if (!isOurs) continue;
      // A session has one run at a time: until the end, all of it belongs to this one.
      this.#isEnded ||= event.type === "run.ended";
      yield event;
      if (event.type === "run.ended") return;
    }
  }

  /** Waits for the end of the run: its outcome, answer, error and figures. @returns {Promise<RunEnded>} */
  async result() {
    for await (const event of this) if (event.type === "run.ended") return event.data;
    throw removed((await this.submitted).number);
  }

  /** Stops the run, or takes its prompt back if it still waits. @returns {Promise<void>} */
  async abort() {
    const { session, number, position } = await this.submitted;
    // The session may be at work on another prompt by now.
    if (this.#isEnded) return;
    if (!this.#isStarted && position > 0) {
      try {
        await this.#backend.removeQueued(session, number);
        this.#removed.abort();
        return;
      } catch (error) {
        // It has been started meanwhile.
        if (!(error instanceof LinkspanError && error.code === "no_such_prompt")) throw error;
      }
    }
    await this.#backend.abort(session);
  }
}

/** @param {number} number */
function removed(number) {
  return new LinkspanError("prompt_removed", `prompt ${number} was taken out of the queue`);
}
