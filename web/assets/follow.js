// Follows one session: what is stored comes in pages over HTTP, what is new over the socket.
//
// Nothing is lost and nothing comes twice, because all goes through the story's cursor: after a
// lost connection, a gap or a detach the follower asks again for what comes after it. Frames are
// folded in slices, so that a session of any length leaves the page answering.

import { request, sessionPath } from "./api.js";
import { Story } from "./fold.js";

/** Milliseconds of work before the page gets a turn. */
const SLICE = 8;
/** Events of one request. */
const PAGE = 5_000;

export class Follower {
  /** Frames that wait to be folded. @type {string[]} */
  #queue = [];
  #isScheduled = false;
  #abort = new AbortController();
  #isLoading = false;
  #again = false;
  /** Where the last gap was: asking twice at once would not fill it. */
  #gap = -1;
  /** Called at most once per frame, after the story changed. */
  onChange = () => {};
  /** Everything stored is there. */
  onCaughtUp = () => {};
  onError = (/** @type {unknown} */ _error) => {};
  /** @type {(since: number) => void} */
  #subscribe;
  isCaughtUp = false;

  /** @param {string} session @param {(since: number) => void} subscribe */
  constructor(session, subscribe) {
    this.story = new Story(session);
    this.#subscribe = subscribe;
  }

  /** Fetches what is stored after the cursor, then listens; also after a lost connection. */
  async sync() {
    if (this.#abort.signal.aborted) return;
    if (this.#isLoading) {
      this.#again = true;
      return;
    }
    this.#isLoading = true;
    try {
      do {
        this.#again = false;
        this.#queue.length = 0;
        while (await this.#page());
        this.#subscribe(this.story.cursor);
      } while (this.#again);
      this.isCaughtUp = true;
      this.onCaughtUp();
      this.onChange();
    } catch (error) {
      if (!this.#abort.signal.aborted) this.onError(error);
    } finally {
      this.#isLoading = false;
    }
  }

  /** One event of this session, as it came over the socket. @param {string} text */
  push(text) {
    this.#queue.push(text);
    this.#schedule();
  }

  stop() {
    this.#abort.abort();
    this.#queue.length = 0;
  }

  /** Reads one page; true if there may be more. */
  #page() {
    return page(this.story, PAGE, this.#abort.signal, () => this.onChange());
  }

  /** Ends with the follower. */
  get signal() {
    return this.#abort.signal;
  }

  #schedule() {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    const run = () => {
      this.#isScheduled = false;
      this.#drain();
    };
    // A page in the background gets no frames, but still has to keep up.
    if (document.hidden) setTimeout(run, 100);
    else requestAnimationFrame(run);
  }

  #drain() {
    // Live events that arrive before all pages are loaded would leave a gap; the subscription repeats them.
    if (this.#isLoading) {
      this.#queue.length = 0;
      return;
    }
    const ends = performance.now() + SLICE;
    let n = 0;
    for (; n < this.#queue.length && performance.now() < ends; n += 1) {
      if (this.story.add(JSON.parse(this.#queue[n] ?? "")) === "gap") {
        this.#queue.length = 0;
        const isStuck = this.#gap === this.story.cursor;
        this.#gap = this.story.cursor;
        setTimeout(() => void this.sync(), isStuck ? 2000 : 0);
        break;
      }
    }
    this.#queue.splice(0, n);
    this.onChange();
    this.#schedule();
  }
}

/**
 * Reads a session up to an event, as far as it is stored.
 * @param {Story} story @param {number} last @param {AbortSignal} signal
 */
export async function readUntil(story, last, signal) {
  while (story.cursor < last && (await page(story, Math.min(PAGE, last - story.cursor), signal, () => {})));
}

/**
 * Reads one page of a session; true if there may be more.
 * @param {Story} story @param {number} limit @param {AbortSignal} signal @param {() => void} onTurn
 */
async function page(story, limit, signal, onTurn) {
  const path = `${sessionPath(story.session)}/events?after=${story.cursor}&limit=${limit}&format=linkspan`;
  const response = await request(path, { signal, headers: { Accept: "application/x-ndjson" } });
  const before = story.cursor;
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let sliceEnds = performance.now() + SLICE;
  while (reader) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : (lines.pop() ?? "");
    for (const line of lines) {
      if (line !== "") story.add(JSON.parse(line));
      if (performance.now() > sliceEnds) {
        await turn();
        if (signal.aborted) return false;
        onTurn();
        sliceEnds = performance.now() + SLICE;
      }
    }
    if (done) break;
  }
  return story.cursor > before;
}

/** Lets the browser do what waits: input first, then paint. */
function turn() {
  const { scheduler } = /** @type {any} */ (globalThis);
  return scheduler?.yield ? scheduler.yield() : new Promise((done) => setTimeout(done, 0));
}
