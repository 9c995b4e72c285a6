// The package for Node and Bun, which can also start the program.

import { binaryPath } from "./binary.js";
import { Linkspan as Client } from "./client.js";
import { Server } from "./server.js";
import { Program } from "./stdio.js";

export { binaryPath } from "./binary.js";
export { toCodexEvent } from "./codex.js";
export { LinkspanError } from "./errors.js";
export { askId } from "./ids.js";
export { Run } from "./run.js";
export { Subscription } from "./subscription.js";

/** @import { WebSocketLike } from "./websocket.js" */

/** A client of a server, or of a program that is started for it. */
export class Linkspan extends Client {
  /** @param {import("./server.js").ServerOptions} options */
  constructor(options) {
    super(options instanceof Program ? options : new Server(options, openWebSocket()));
  }

  /**
   * Starts `linkspan stdio`, which works in this process's place on the user's own sessions and ends with it: no server,
   * no port, no token. Only in Node and Bun.
   * @param {import("./stdio.js").SpawnOptions} [options]
   * @returns {Promise<Linkspan>}
   */
  static async spawn(options = {}) {
    const program = new Program(options.program ?? binaryPath(), options);
    await program.ready;
    return new Linkspan(/** @type {import("./server.js").ServerOptions} */ (/** @type {unknown} */ (program)));
  }
}

/** Node from 22 on and Bun have a WebSocket that sends headers. */
function openWebSocket() {
  const WebSocket = /** @type {(new (url: string, options: object) => WebSocketLike) | undefined} */ (
    /** @type {unknown} */ (globalThis.WebSocket)
  );
  return (
    WebSocket &&
    ((/** @type {string} */ url, /** @type {string | undefined} */ token) => {
      const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      return new WebSocket(url, { protocols: ["linkspan"], headers });
    })
  );
}
