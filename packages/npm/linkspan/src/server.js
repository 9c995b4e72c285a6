// A server as what a client talks to: requests over HTTP, events over WebSocket or server-sent events.

/** @import { Asks, Engines, Prompt, SessionDetail, Sessions, Submitted, Aborted, Answer, WaitingAsk } from "../types/wire.js" */
/** @import { Backend, FollowOptions, SessionQuery, TakenPrompt } from "./client.js" */
/** @import { WebSocketLike } from "./websocket.js" */

import { Backoff } from "./backoff.js";
import { LinkspanError, notPossible } from "./errors.js";
import { streamSource } from "./event-stream.js";
import { Http, queryString, sessionPath } from "./http.js";
import { randomKey } from "./ids.js";
import { allSource, changesSource, sessionSource } from "./websocket.js";

/** Milliseconds that a prompt is sent again and again while there is no answer. */
const PATIENCE = 30_000;
/** What says that the server is not there for a moment, from a proxy in front of it. */
const GATEWAY = [502, 504];

/** @typedef {new (url: string, protocols?: string[]) => WebSocketLike} WebSocketConstructor */

/**
 * Where the server is, and what to reach it with.
 * @typedef {object} ServerOptions
 * @property {string} url Its address, such as `http://127.0.0.1:8787`; also that of the page with its token, as
 *   `linkspan token` prints it.
 * @property {string} [token] The token, unless the address has it.
 * @property {typeof globalThis.fetch} [fetch] Another `fetch` than the global one.
 * @property {WebSocketConstructor} [WebSocket] Another WebSocket than the global one, such as that of the package `ws`.
 * @property {"websocket" | "sse"} [transport] How events come; WebSocket, where there is one, unless given.
 */

/** @implements {Backend} */
export class Server {
  #http;
  /** @type {((url: string, token: string | undefined) => WebSocketLike) | undefined} */
  #open;

  /**
   * `open` opens a WebSocket where the caller has given none.
   * @param {ServerOptions} options
   * @param {((url: string, token: string | undefined) => WebSocketLike) | undefined} open
   */
  constructor({ url, token, fetch, WebSocket, transport }, open) {
    this.#http = new Http(url, token, fetch);
    this.#open = WebSocket ? (url, token) => offer(WebSocket, url, token) : open;
    if (transport === "sse") this.#open = undefined;
    else if (transport === "websocket" && !this.#open) throw noWebSocket("`transport` is `websocket`");
  }

  get http() {
    return this.#http;
  }

  /** @param {Prompt} prompt @param {string} [key] @param {AbortSignal} [signal] @returns {Promise<TakenPrompt>} */
  async submit(prompt, key, signal) {
    const session = prompt.session ?? prompt.resume;
    // What has a key of the caller's may have been run long ago.
    const isNew = key === undefined && typeof session === "string";
    const cursor = isNew ? await this.#patiently(() => this.#head(session), signal) : 0;
    const headers = { "Idempotency-Key": key ?? randomKey() };
    /** @type {Submitted} */
    const taken = await this.#patiently(() => this.#http.json("POST", "/api/runs", { body: prompt, headers, signal }), signal);
    return { ...taken, cursor };
  }

  /**
   * Tries again while there is no answer.
   * @template T
   * @param {() => Promise<T>} request @param {AbortSignal | undefined} signal
   * @returns {Promise<T>}
   */
  async #patiently(request, signal) {
    const backoff = new Backoff();
    const giveUpAt = Date.now() + PATIENCE;
    for (;;) {
      try {
        return await request();
      } catch (error) {
        // A prompt may have been taken all the same: the key sees to it that it runs once.
        const isOurs = error instanceof LinkspanError;
        const mayHelp = isOurs && (error.code === "unreachable" || GATEWAY.includes(error.status ?? 0));
        if (!mayHelp || Date.now() > giveUpAt) throw error;
      }
      await sleep(backoff.next(), signal);
    }
  }

  /** @param {string} session @returns {Promise<Aborted>} */
  abort(session) {
    return this.#http.json("POST", `${sessionPath(session)}/abort`);
  }

  /** @param {string} id @param {Answer} answer @returns {Promise<void>} */
  async settle(id, answer) {
    await this.#http.json("POST", `/api/asks/${encodeURIComponent(id)}`, { body: answer });
  }

  /** @returns {Promise<WaitingAsk[]>} */
  async asks() {
    /** @type {Asks} */
    const { asks } = await this.#http.json("GET", "/api/asks");
    return asks;
  }

  /** @returns {Promise<Engines>} */
  engines() {
    return this.#http.json("GET", "/api/engines");
  }

  /** @param {SessionQuery} query @returns {Promise<Sessions>} */
  sessions(query) {
    return this.#http.json("GET", "/api/sessions", { query: { ...query } });
  }

  /** The last event of a session, 0 of one that is not known. @param {string} session @returns {Promise<number>} */
  async #head(session) {
    try {
      /** @type {SessionDetail} */
      const { head } = await this.#http.json("GET", sessionPath(session));
      return head;
    } catch (error) {
      if (error instanceof LinkspanError && error.status === 404) return 0;
      throw error;
    }
  }

  /** @param {string} session @param {number} number @returns {Promise<void>} */
  async removeQueued(session, number) {
    await this.#http.request("DELETE", `${sessionPath(session)}/queue/${number}`);
  }

  /**
   * @template T
   * @param {FollowOptions} options
   * @returns {import("./subscription.js").Source<T>}
   */
  follow({ session, format, profile, output }) {
    const query = { format, profile, output };
    if (session !== undefined && !this.#open) return streamSource(this.#http, query, session);
    const search = queryString({ ...query, subscribe: "none" });
    if (session !== undefined) return sessionSource(this.#dial("a session"), search, session);
    return allSource(this.#dial("all sessions are followed over a WebSocket"), search);
  }

  changes() {
    return changesSource(this.#dial("changes of the list come over a WebSocket"));
  }

  async close() {}

  /** @param {string} why */
  #dial(why) {
    const open = this.#open;
    if (!open) throw noWebSocket(why);
    const { base, token } = this.#http;
    return {
      connect: (/** @type {string} */ query) => open(`${base.replace(/^http/, "ws")}/ws?${query}`, token),
      refusal: async () => {
        try {
          await this.#http.request("GET", "/api/me");
          return undefined;
        } catch (error) {
          return /** @type {LinkspanError} */ (error);
        }
      },
    };
  }
}

/** @param {string} why */
function noWebSocket(why) {
  const hint = "Node has a WebSocket from version 22 on; else give the client one, such as that of the package `ws`";
  return notPossible("no_websocket", `${why}, and there is none here`, hint);
}

/**
 * The token as a subprotocol: a browser can set no header.
 * @param {WebSocketConstructor} WebSocket @param {string} url @param {string | undefined} token
 */
export function offer(WebSocket, url, token) {
  return new WebSocket(url, ["linkspan", ...(token === undefined ? [] : [`token.${token}`])]);
}

/** @param {number} ms @param {AbortSignal | undefined} signal @returns {Promise<void>} */
function sleep(ms, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), fail(signal.reason)), { once: true });
  });
}
