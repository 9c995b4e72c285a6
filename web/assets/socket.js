// One WebSocket to the server, opened again whenever it is lost, with growing pauses.
//
// It knows nothing of what the frames mean: `onopen` says that a fresh connection stands (whoever
// follows a session then asks for what came since its cursor), `onframe` hands on each text.

import { token } from "./token.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 15_000;
/** A connection that lived this long was a good one: the pauses start over. */
const GOOD = 5_000;
/** Milliseconds between two signs of life that are asked for, and without any before the line is dead. */
const BEAT = 20_000;
const DEAD = 50_000;

/** @typedef {"connecting" | "open" | "lost"} State */

export class Socket {
  /** @type {WebSocket | undefined} */
  #socket;
  #pause = FIRST_PAUSE;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #openedAt = 0;
  #receivedAt = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #beat;
  #isStopped = false;
  /** @type {State} */
  state = "connecting";
  onOpen = () => {};
  onFrame = (/** @type {string} */ _text) => {};
  onState = (/** @type {State} */ _state) => {};
  /** Asks the server for something after each failed attempt: a browser does not say why it failed, an answer does. */
  probe = async () => {};

  start() {
    this.#isStopped = false;
    clearTimeout(this.#timer);
    this.#set("connecting");
    const url = new URL("/ws?format=linkspan", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, ["linkspan", `token.${token() ?? ""}`]);
    this.#socket = socket;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.#openedAt = this.#receivedAt = performance.now();
      clearInterval(this.#beat);
      this.#beat = setInterval(() => this.#check(), BEAT);
      this.#set("open");
      this.onOpen();
    };
    socket.onmessage = (it) => {
      this.#receivedAt = performance.now();
      if (typeof it.data === "string" && socket === this.#socket) this.onFrame(it.data);
    };
    socket.onclose = () => {
      if (socket === this.#socket && !this.#isStopped) void this.#again(wasOpen);
    };
  }

  stop() {
    this.#isStopped = true;
    clearInterval(this.#beat);
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = undefined;
  }

  /** Try now rather than after the pause: the machine is back, or somebody looks. */
  hurry() {
    if (this.state !== "lost" || this.#isStopped) return;
    this.#pause = FIRST_PAUSE;
    this.start();
  }

  /** Sends a control message; false if there is no connection. @param {Record<string, unknown>} message */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** After sleep, the machine may hold a connection that the server has already dropped. */
  #check() {
    if (performance.now() - this.#receivedAt < DEAD) {
      this.send({ control: "echo" });
      return;
    }
    this.#socket?.close();
    void this.#again(true);
  }

  /** @param {boolean} wasOpen */
  async #again(wasOpen) {
    this.#socket = undefined;
    clearInterval(this.#beat);
    this.#set("lost");
    if (wasOpen && performance.now() - this.#openedAt > GOOD) this.#pause = FIRST_PAUSE;
    await this.probe();
    if (this.#isStopped || this.#socket) return;
    // Many pages lose a server at once; they do not all come back at once.
    this.#timer = setTimeout(() => this.start(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(LONGEST_PAUSE, this.#pause * 2);
  }

  /** @param {State} state */
  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.onState(state);
  }
}
