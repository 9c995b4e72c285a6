// `linkspan stdio` as what a client talks to: a child process, with the messages of the WebSocket as lines.
//
// The child ends when its stdin does, and the pipe closes however this process ends, so no child stays behind.

/** @import { Aborted, Answer, Engines, Prompt, Sessions, WaitingAsk } from "../types/wire.js" */
/** @import { Backend, FollowOptions, SessionQuery, TakenPrompt } from "./client.js" */
/** @import { Cursor } from "../types/bridge.js" */
/** @import { Receiver, Source } from "./subscription.js" */
/** @import { Message } from "./websocket.js" */

import { spawn } from "node:child_process";

import { isBehind } from "./cursor.js";
import { LinkspanError, notPossible } from "./errors.js";
import { randomKey } from "./ids.js";
import { LineSplitter } from "./lines.js";
import { deliver } from "./websocket.js";

/** The version of the messages. */
const PROTOCOL = 1;
/** Milliseconds that a program may take to end its runs, after which it is killed. */
const LONGEST_END = 30_000;
/** Characters of its stderr that an error repeats. */
const MAX_WORDS = 4096;

/**
 * How the program is started.
 * @typedef {object} SpawnOptions
 * @property {string} [program] Another program than that of `binaryPath()`.
 * @property {string[]} [args] More arguments of `linkspan stdio`, such as `["--data-dir", DIR]`.
 * @property {string} [cwd] Its directory, where agents work unless a prompt says otherwise.
 * @property {Record<string, string | undefined>} [env] Its environment, instead of this process's.
 * @property {(text: string) => void} [onStderr] Gets what it says to people.
 */

/** @implements {Backend} */
export class Program {
  #child;
  /** Resolves when it has said that it is ready. @type {Promise<void>} */
  ready;
  /** @type {Promise<void>} */
  #ended;
  /** @type {LinkspanError | undefined} */
  #error;
  #words = "";
  #nRequests = 0;
  /** @type {Map<number, { resolve: (reply: Message) => void, reject: (error: LinkspanError) => void }>} */
  #requests = new Map();
  /** @type {Set<{ session: string, cursor: Cursor, receiver: Receiver<any> }>} */
  #followers = new Set();
  /** @type {{ resolve: () => void, reject: (error: LinkspanError) => void }} */
  #starting;

  /** @param {string} program @param {SpawnOptions} options */
  constructor(program, { args = [], cwd, env, onStderr }) {
    const child = spawn(program, ["stdio", "--to", "linkspan", ...args], { cwd, env, stdio: "pipe", windowsHide: true });
    this.#child = child;
    this.#starting = { resolve: () => {}, reject: () => {} };
    this.ready = new Promise((resolve, reject) => (this.#starting = { resolve, reject }));
    child.stderr.setEncoding("utf8").on("data", (/** @type {string} */ text) => {
      this.#words = (this.#words + text).slice(-MAX_WORDS);
      onStderr?.(text);
    });
    // If the program has exited, its `exit` event reports that.
    child.stdin.on("error", () => {});
    const lines = new LineSplitter();
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ piece) => {
      for (const line of lines.push(piece)) if (line !== "") this.#onLine(line);
    });
    this.#ended = new Promise((done) => {
      child.on("error", (cause) => {
        const message = `cannot start \`${program}\`: ${cause.message}`;
        this.#end(new LinkspanError("no_program", message, { cause }));
        done();
      });
      // Behind `exit` there may still be lines.
      child.on("close", (code, signal) => {
        const words = this.#words.trim();
        const how = `the program has ended with ${signal ?? code}`;
        this.#end(new LinkspanError("program_ended", words === "" ? how : `${how}: ${words}`));
        done();
      });
    });
  }

  /** @param {LinkspanError} error */
  #end(error) {
    if (this.#error) return;
    this.#error = error;
    this.#starting.reject(error);
    for (const it of this.#requests.values()) it.reject(error);
    this.#requests.clear();
    for (const it of [...this.#followers]) it.receiver.onLost(error);
  }

  /** @param {string} line */
  #onLine(line) {
    /** @type {Message} */
    const message = JSON.parse(line);
    const { type, requestId } = message;
    if (type === "bridge.ready") return this.#onReady(message);
    const request = typeof requestId === "number" ? this.#requests.get(requestId) : undefined;
    if (request) {
      this.#requests.delete(/** @type {number} */ (requestId));
      if (type !== "bridge.error") return request.resolve(message);
      const { code, message: words, hint } = message;
      const more = { hint: hint === undefined ? undefined : String(hint) };
      return request.reject(new LinkspanError(String(code), String(words), more));
    }
    for (const it of [...this.#followers]) {
      if (it.session !== message.session && it.session !== message.sessionId) continue;
      if (typeof message.seq === "number" && isBehind(message.seq, it.cursor)) it.cursor = message.seq;
      deliver(message, it.receiver, true, () => it.session);
    }
  }

  /** @param {Message} message */
  #onReady({ protocol, version }) {
    if (protocol === PROTOCOL) return this.#starting.resolve();
    const message = `linkspan ${version} speaks protocol ${protocol}, and this package protocol ${PROTOCOL}`;
    const hint = "install the package and the program in the same version";
    this.#end(new LinkspanError("other_protocol", message, { hint }));
    this.#child.kill();
  }

  /** @param {string} control @param {object} [fields] @returns {Promise<Message>} */
  #request(control, fields = {}) {
    if (this.#error) return Promise.reject(this.#error);
    const requestId = (this.#nRequests += 1);
    this.#child.stdin.write(`${JSON.stringify({ control, ...fields, requestId })}\n`);
    return new Promise((resolve, reject) => this.#requests.set(requestId, { resolve, reject }));
  }

  /** @param {Prompt} prompt @param {string} [key] @returns {Promise<TakenPrompt>} */
  async submit(prompt, key = randomKey()) {
    const reply = await this.#request("run.submit", { ...prompt, idempotencyKey: key });
    const { sessionId, number, position, cursor } = reply;
    const numbers = { number: Number(number), position: Number(position), cursor: Number(cursor) };
    return { session: String(sessionId), run: null, ...numbers };
  }

  /** @param {string} session @returns {Promise<Aborted>} */
  async abort(session) {
    const { aborted } = await this.#request("run.abort", { sessionId: session });
    return { aborted: aborted === true };
  }

  /** @param {string} id @param {Answer} answer @returns {Promise<void>} */
  async settle(id, answer) {
    await this.#request("ask.settle", { askId: id, ...answer });
  }

  /** @returns {Promise<WaitingAsk[]>} */
  async asks() {
    const { asks } = await this.#request("asks");
    return /** @type {WaitingAsk[]} */ (asks);
  }

  /** @returns {Promise<Engines>} */
  async engines() {
    const { engines, replays } = await this.#request("engines");
    return /** @type {Engines} */ ({ engines, replays });
  }

  /** @param {SessionQuery} query @returns {Promise<Sessions>} */
  async sessions(query) {
    const { sessions, next } = await this.#request("sessions", query);
    return /** @type {Sessions} */ ({ sessions, next });
  }

  /** @param {string} session @param {number} number @returns {Promise<void>} */
  async removeQueued(session, number) {
    await this.#request("queue.remove", { sessionId: session, number });
  }

  /**
   * All followers of a session share what the program sends of it, which begins where the last of them is.
   * @template T
   * @param {FollowOptions} options
   * @returns {Source<T>}
   */
  follow({ session, format }) {
    if (session === undefined || format !== "linkspan") {
      const what = session === undefined ? "all sessions" : `a session as \`${format}\``;
      const hint = "connect to a `linkspan serve` on the same data directory";
      throw notPossible("not_supported", `a program that was started does not follow ${what}`, hint);
    }
    return ({ cursors }, receiver) => {
      const follower = { session, cursor: cursors.get(session) ?? 0, receiver };
      let isOver = false;
      this.#followers.add(follower);
      const same = [...this.#followers].filter((it) => it.session === session).map((it) => it.cursor);
      const since = same.reduce((a, b) => (isBehind(a, b) ? b : a));
      this.#request("subscribe", { sessionId: session, since }).then(
        () => isOver || receiver.onOpen(),
        (error) => isOver || receiver.onLost(error),
      );
      return () => {
        isOver = true;
        this.#followers.delete(follower);
        const isLast = ![...this.#followers].some((it) => it.session === session);
        if (isLast && !this.#error) this.#request("unsubscribe", { sessionId: session }).catch(() => {});
      };
    };
  }

  /** @returns {never} */
  changes() {
    const hint = "connect to a `linkspan serve` on the same data directory";
    throw notPossible("not_supported", "a program that was started does not tell changes of the list", hint);
  }

  /** Ends the program, and with it its runs. @returns {Promise<void>} */
  async close() {
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), LONGEST_END);
    await this.#ended;
    clearTimeout(timer);
  }
}
