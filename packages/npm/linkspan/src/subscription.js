// A stream of events over connections that come and go.
//
// A source opens one connection from a position and reports what comes; this opens the next one where the last
// one ended. Whatever was taken in once is dropped when it comes again, so nothing is lost and nothing comes
// twice. A consumer that falls behind does not fill the memory: the connection is closed, and opened again at the
// same position when all that waits has been consumed.

/** @import { Cursor } from "../types/bridge.js" */

import { Backoff } from "./backoff.js";
import { isBehind } from "./cursor.js";
import { LinkspanError } from "./errors.js";

/** Events that wait for the consumer before the connection is closed. */
const MAX_WAITING = 1024;
/** Asks that are remembered as told: of those that wait, a server tells again with every connection. */
const MAX_ASKS = 1024;

/**
 * How it goes: `connecting`, `open`, `waiting` (for the next attempt), `paused` (until its consumer has caught up) or
 * `closed`.
 * @typedef {"connecting" | "open" | "waiting" | "paused" | "closed"} SubscriptionState
 */

/**
 * Where a connection begins: after these cursors, by session, and at the beginning of sessions that are newer than
 * `newSince`.
 * @typedef {{ cursors: ReadonlyMap<string, Cursor>, newSince: number | undefined }} Position
 */

/**
 * Who takes what a source reports. A value with a key and no cursor is told once.
 * @template T
 * @typedef {object} Receiver
 * @property {() => void} onOpen
 * @property {(value: T, session: string, cursor: Cursor | undefined, key?: string) => void} onValue
 * @property {(cursors: Iterable<[string, Cursor]>, newSince: number) => void} onBegin
 * @property {(session: string, cursor: Cursor) => void} onCaughtUp
 * @property {(error: LinkspanError) => void} onLost
 */

/**
 * Opens a connection, and gives back what closes it. Behind `onLost`, and once it is closed, it reports nothing.
 * @template T
 * @typedef {(position: Position, receiver: Receiver<T>) => () => void} Source
 */

/**
 * What a consumer may want to be told of.
 * @typedef {object} SubscriptionEvents
 * @property {(state: SubscriptionState, error?: LinkspanError) => void} [onState]
 *   Called with each change, and with the reason while it waits for the next attempt.
 * @property {(session: string, cursor: Cursor) => void} [onCaughtUp] Called when all that was stored has been received.
 * @property {AbortSignal} [signal] Ends it.
 */

/**
 * Events as they happen, for `for await`. Leaving the loop, `close()` and the signal end it; the loop throws a
 * `LinkspanError` when trying again cannot help.
 * @template T
 */
export class Subscription {
  /** @type {T[]} */
  #queue = [];
  /** @type {Array<{ resolve: (it: IteratorResult<T, undefined>) => void, reject: (error: LinkspanError) => void }>} */
  #takers = [];
  #source;
  /** @type {Map<string, Cursor>} */
  #cursors;
  /** @type {number | undefined} */
  #newSince;
  /** @type {Set<string>} */
  #keys = new Set();
  #events;
  #backoff = new Backoff();
  /** @type {(() => void) | undefined} */
  #close;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {LinkspanError | undefined} */
  #error;
  /** @type {SubscriptionState} */
  #state = "connecting";
  #onAbort = () => this.close();
  /** Called when it has ended; of the client. */
  #onEnd;

  /**
   * @param {Source<T>} source @param {{ cursors?: Iterable<[string, Cursor]>, newSince?: number | undefined }} begin
   * @param {SubscriptionEvents} events @param {() => void} [onEnd]
   * @internal
   */
  constructor(source, { cursors = [], newSince }, events = {}, onEnd = () => {}) {
    this.#source = source;
    this.#cursors = new Map(cursors);
    this.#newSince = newSince;
    this.#events = events;
    this.#onEnd = onEnd;
    events.signal?.addEventListener("abort", this.#onAbort);
    if (events.signal?.aborted) this.#end();
    else this.#open();
  }

  /** How it goes. @returns {SubscriptionState} */
  get state() {
    return this.#state;
  }

  /** @returns {this} */
  [Symbol.asyncIterator]() {
    return this;
  }

  /** The next event, once there is one. @returns {Promise<IteratorResult<T, undefined>>} */
  async next() {
    const value = this.#queue.shift();
    if (value !== undefined) {
      if (this.#queue.length === 0 && this.#state === "paused") this.#open();
      return { value, done: false };
    }
    if (this.#error) {
      const error = this.#error;
      this.#error = undefined;
      throw error;
    }
    if (this.#state === "closed") return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#takers.push({ resolve, reject }));
  }

  /** Ends it, as leaving a `for await` does. @returns {Promise<IteratorResult<T, undefined>>} */
  async return() {
    this.close();
    return { value: undefined, done: true };
  }

  /** Ends it. What waits is dropped. */
  close() {
    this.#queue.length = 0;
    this.#end();
  }

  /** @param {LinkspanError} [error] */
  #end(error) {
    if (this.#state === "closed") return;
    this.#disconnect();
    clearTimeout(this.#timer);
    this.#events.signal?.removeEventListener("abort", this.#onAbort);
    const takers = this.#takers.splice(0);
    // One consumer gets the error; later ones only see the end.
    if (error && takers.length > 0) takers.shift()?.reject(error);
    else this.#error = error;
    for (const it of takers) it.resolve({ value: undefined, done: true });
    this.#set("closed", error);
    this.#onEnd();
  }

  #open() {
    this.#set("connecting");
    let isCurrent = true;
    /** What a connection reports after it was replaced is nobody's. @param {() => void} act */
    const ifCurrent = (act) => {
      if (isCurrent) act();
    };
    const close = this.#source(
      { cursors: this.#cursors, newSince: this.#newSince },
      {
        onOpen: () => ifCurrent(() => this.#set("open")),
        onValue: (value, session, cursor, key) => ifCurrent(() => this.#take(value, session, cursor, key)),
        onBegin: (cursors, newSince) => ifCurrent(() => this.#begin(cursors, newSince)),
        onCaughtUp: (session, cursor) => ifCurrent(() => this.#events.onCaughtUp?.(session, cursor)),
        onLost: (error) => ifCurrent(() => this.#lost(error)),
      },
    );
    this.#close = () => {
      isCurrent = false;
      close();
    };
    // A source that fails at once has called before there was something to close.
    if (["waiting", "paused", "closed"].includes(this.#state)) this.#disconnect();
  }

  #disconnect() {
    const close = this.#close;
    this.#close = undefined;
    close?.();
  }

  /** @param {Iterable<[string, Cursor]>} cursors @param {number} newSince */
  #begin(cursors, newSince) {
    for (const [session, cursor] of cursors) {
      if (!this.#cursors.has(session)) this.#cursors.set(session, cursor);
    }
    this.#newSince ??= newSince;
  }

  /** @param {T} value @param {string} session @param {Cursor | undefined} cursor @param {string} [key] */
  #take(value, session, cursor, key) {
    if (key !== undefined) {
      const isNew = !this.#keys.has(key);
      if (this.#keys.size >= MAX_ASKS) this.#keys.clear();
      this.#keys.add(key);
      if (!isNew && cursor === undefined) return;
    }
    if (cursor !== undefined) {
      if (!isBehind(cursor, this.#cursors.get(session))) return;
      this.#cursors.set(session, cursor);
    }
    this.#backoff.reset();
    const taker = this.#takers.shift();
    if (taker) return taker.resolve({ value, done: false });
    this.#queue.push(value);
    if (this.#queue.length < MAX_WAITING) return;
    this.#disconnect();
    this.#set("paused");
  }

  /** @param {LinkspanError} error */
  #lost(error) {
    this.#disconnect();
    if (!error.isTemporary) return this.#end(error);
    this.#set("waiting", error);
    this.#timer = setTimeout(() => this.#open(), this.#backoff.next());
  }

  /** @param {SubscriptionState} state @param {LinkspanError} [error] */
  #set(state, error) {
    if (this.#state === state && state !== "waiting") return;
    this.#state = state;
    this.#events.onState?.(state, error);
  }
}
