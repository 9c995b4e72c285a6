// The package for browsers, React Native and whatever else has `fetch` and `WebSocket`.

import { Linkspan as Client } from "./client.js";
import { notPossible } from "./errors.js";
import { Server, offer } from "./server.js";

export { toCodexEvent } from "./codex.js";
export { LinkspanError } from "./errors.js";
export { askId } from "./ids.js";
export { Run } from "./run.js";
export { Subscription } from "./subscription.js";

const HINT = "start `linkspan serve`, and connect to it";

/** A client of a server. */
export class Linkspan extends Client {
  /** @param {import("./server.js").ServerOptions} options */
  constructor(options) {
    const { WebSocket } = globalThis;
    super(new Server(options, WebSocket && ((url, token) => offer(WebSocket, url, token))));
  }

  /** Starts a program, where there are programs. @returns {Promise<never>} */
  static async spawn() {
    throw notPossible("not_supported", "no program can be started here", HINT);
  }
}

/** Where the program is, where there are programs. @returns {never} */
export function binaryPath() {
  throw notPossible("not_supported", "there is no program here", HINT);
}
