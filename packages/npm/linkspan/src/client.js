// The client: what can be done with a server, or with a program that was started for it.

/** @import { Aborted, Answer, Engines, Event, Me, Prompt, SessionDetail, Session, Sessions, Submitted, WaitingAsk } from "../types/wire.js" */
/** @import { ThreadMessage } from "../types/bridge.js" */
/** @import { Cursor } from "../types/bridge.js" */
/** @import { Http } from "./http.js" */
/** @import { Source, SubscriptionEvents } from "./subscription.js" */

import { LinkspanError, notPossible } from "./errors.js";
import { sessionPath } from "./http.js";
import { askId } from "./ids.js";
import { Run } from "./run.js";
import { Subscription } from "./subscription.js";

/**
 * Which sessions to list, the newest first; `after` is the `next` of the page before.
 * @typedef {object} SessionQuery
 * @property {number} [limit]
 * @property {string} [after]
 * @property {string} [engine]
 * @property {string} [text]
 * @property {Session["state"]} [state]
 */

/**
 * A prompt that was taken. `cursor` is an event of its session before it, 0 of a new one.
 * @typedef {Submitted & { cursor: number }} TakenPrompt
 */

/** @typedef {{ session?: string | undefined, format: string, profile?: string | undefined, output?: string | undefined }} FollowOptions */

/**
 * What a client talks to: a server, or a program on a pair of pipes.
 * @typedef {object} Backend
 * @property {(prompt: Prompt, key: string | undefined, signal?: AbortSignal) => Promise<TakenPrompt>} submit
 * @property {(session: string) => Promise<Aborted>} abort
 * @property {(id: string, answer: Answer) => Promise<void>} settle
 * @property {() => Promise<WaitingAsk[]>} asks
 * @property {() => Promise<Engines>} engines
 * @property {(query: SessionQuery) => Promise<Sessions>} sessions
 * @property {(session: string, number: number) => Promise<void>} removeQueued
 * @property {<T>(options: FollowOptions) => Source<T>} follow
 * @property {() => Source<SessionsChange>} changes
 * @property {() => Promise<void>} close
 * @property {Http} [http] What else there is, of a server.
 */

/**
 * The forms in which events come: `linkspan` is the canonical one, `thread` that of Codex, with the messages of the
 * bridge in between.
 * @typedef {{ linkspan: Event, thread: ThreadMessage }} EventOf
 */

/**
 * A session has changed, or the list is better read again.
 * @typedef {{ type: "bridge.session", session: Session } | { type: "bridge.sessions_changed" }} SessionsChange
 */

/**
 * What to follow, and from where on.
 * @template {keyof EventOf} F
 * @typedef {object} Following
 * @property {F} [format] The form of the events, `linkspan` unless given.
 * @property {string} [profile] A variant of the format.
 * @property {number | "full"} [output] Bytes of a tool's output in `thread`.
 */

/** One session: after this cursor, or from the beginning. @typedef {{ session: string, since?: Cursor }} OfSession */

/**
 * All sessions: from now on, and of some of them after these cursors.
 * @typedef {{ session?: undefined, since?: Record<string, Cursor>, newSince?: number }} OfAll
 */

/**
 * Of a run.
 * @typedef {object} RunOptions
 * @property {AbortSignal} [signal] Aborts the run; the loop over its events ends with its `run.ended`.
 * @property {string} [idempotencyKey] The prompt of one key is run once, however often it is given; a new one unless
 *   given.
 */

/** A client of linkspan. */
export class Linkspan {
  #backend;
  /** @type {Set<Subscription<any>>} */
  #subscriptions = new Set();
  #isClosed = false;

  /** @param {Backend} backend @internal */
  constructor(backend) {
    this.#backend = backend;
  }

  /**
   * Gives a prompt and follows its run. The prompt is sent at once, and again while there is no answer; it is run once.
   * Leaving the loop over the events leaves the run alone: `abort()` of it, or the signal, stops it.
   * @param {string | Prompt} prompt @param {RunOptions} [options]
   * @returns {Run}
   */
  run(prompt, options = {}) {
    return new Run(this, this.#backend, toPrompt(prompt), options);
  }

  /**
   * Gives a prompt without following it.
   * @param {string | Prompt} prompt @param {RunOptions} [options]
   * @returns {Promise<TakenPrompt>}
   */
  submit(prompt, { signal, idempotencyKey } = {}) {
    return this.#backend.submit(toPrompt(prompt), idempotencyKey, signal);
  }

  /**
   * Follows a session, or all of them. The connection is made again whenever it is lost, and no event is missed or
   * comes twice.
   * @template {keyof EventOf} [F="linkspan"]
   * @param {Following<F> & (OfSession | OfAll) & SubscriptionEvents} [options]
   * @returns {Subscription<EventOf[F]>}
   */
  subscribe(options = {}) {
    const { format = "linkspan", profile, output } = options;
    /** @type {FollowOptions} */
    const what = { session: options.session, format, profile, output: output === undefined ? undefined : String(output) };
    /** @type {Source<EventOf[F]>} */
    const source = this.#backend.follow(what);
    if (options.session === undefined) {
      return this.#keep(source, { cursors: Object.entries(options.since ?? {}), newSince: options.newSince }, options);
    }
    return this.#keep(source, { cursors: [[options.session, options.since ?? 0]] }, options);
  }

  /**
   * Follows the list of sessions: each that is new, or whose state, title or queue has changed.
   * @param {SubscriptionEvents} [events]
   * @returns {Subscription<SessionsChange>}
   */
  changes(events = {}) {
    return this.#keep(this.#backend.changes(), {}, events);
  }

  /**
   * @template T
   * @param {Source<T>} source
   * @param {{ cursors?: Iterable<[string, Cursor]>, newSince?: number | undefined }} begin
   * @param {SubscriptionEvents} events
   */
  #keep(source, begin, events) {
    if (this.#isClosed) throw new LinkspanError("closed", "the client was closed");
    /** @type {Subscription<T>} */
    const subscription = new Subscription(source, begin, events, () => this.#subscriptions.delete(subscription));
    if (subscription.state !== "closed") this.#subscriptions.add(subscription);
    return subscription;
  }

  /** Stops the run of a session; its queue goes on. @param {string} session @returns {Promise<Aborted>} */
  abort(session) {
    return this.#backend.abort(session);
  }

  /**
   * Answers what an agent asks: an event `ask.opened`, one of `asks()`, or its id. Of several answers one is taken; the
   * others are refused with the code `already_settled`.
   * @param {string | { session: string, seq: number } | WaitingAsk} ask
   * @param {Answer["decision"] | Answer} answer
   * @returns {Promise<void>}
   */
  settle(ask, answer) {
    return this.#backend.settle(askId(ask), typeof answer === "string" ? { decision: answer } : answer);
  }

  /** What agents wait for. @returns {Promise<WaitingAsk[]>} */
  asks() {
    return this.#backend.asks();
  }

  /** A page of the list of sessions. @param {SessionQuery} [query] @returns {Promise<Sessions>} */
  sessions(query = {}) {
    return this.#backend.sessions(query);
  }

  /** The agents that can be run, and the recordings. @returns {Promise<Engines>} */
  engines() {
    return this.#backend.engines();
  }

  /** Takes back a prompt that waits. @param {string} session @param {number} number @returns {Promise<void>} */
  removeQueued(session, number) {
    return this.#backend.removeQueued(session, number);
  }

  /** A session with its runs, asks and queue. Only of a server. @param {string} id @returns {Promise<SessionDetail>} */
  async session(id) {
    return this.#http("session").json("GET", sessionPath(id));
  }

  /** Removes a session with all that is in it. Only of a server. @param {string} id @returns {Promise<void>} */
  async removeSession(id) {
    await this.#http("removeSession").request("DELETE", sessionPath(id));
  }

  /** What the token may do. Only of a server. @returns {Promise<Me>} */
  async me() {
    return this.#http("me").json("GET", "/api/me");
  }

  /**
   * What is stored of a session. Only of a server.
   * @param {string} id @param {{ after?: number, limit?: number }} [options]
   * @returns {Promise<Event[]>}
   */
  async events(id, { after, limit } = {}) {
    const lines = (await this.#export("events", id, { after, limit })).split("\n");
    return lines.filter((it) => it !== "").map((it) => JSON.parse(it));
  }

  /**
   * A session in any format of `linkspan formats`, such as `markdown` or `html`. Only of a server.
   * @param {string} id @param {string} format @param {{ profile?: string }} [options]
   * @returns {Promise<string>}
   */
  export(id, format, { profile } = {}) {
    return this.#export("export", id, { format, profile });
  }

  /** @param {string} method @param {string} id @param {import("./http.js").Query} query */
  async #export(method, id, query) {
    const response = await this.#http(method).request("GET", `${sessionPath(id)}/events`, { query });
    return response.text();
  }

  /** A text or an image below a session's directory. Only of a server. @param {string} id @param {string} path @returns {Promise<Blob>} */
  async file(id, path) {
    const response = await this.#http("file").request("GET", `${sessionPath(id)}/file`, { query: { path } });
    return response.blob();
  }

  /**
   * What a tool gave back, whole. Only of a server.
   * @param {string} id @param {string} item @param {{ at?: number, block?: number, part?: "structured" }} [options]
   * @returns {Promise<Blob>}
   */
  async output(id, item, options = {}) {
    const path = `${sessionPath(id)}/items/${encodeURIComponent(item)}/output`;
    return (await this.#http("output").request("GET", path, { query: options })).blob();
  }

  /** Ends every subscription, and the program, if one was started. @returns {Promise<void>} */
  async close() {
    this.#isClosed = true;
    for (const it of this.#subscriptions) it.close();
    await this.#backend.close();
  }

  /** @param {string} method */
  #http(method) {
    const { http } = this.#backend;
    if (http) return http;
    const hint = "connect to a `linkspan serve` on the same data directory";
    throw notPossible("not_supported", `a program that was started has no \`${method}()\``, hint);
  }
}

/** @param {string | Prompt} prompt @returns {Prompt} */
const toPrompt = (prompt) => (typeof prompt === "string" ? { prompt } : prompt);
