import { Linkspan as Client } from "./client.js";
export { binaryPath } from "./binary.js";
export { toCodexEvent } from "./codex.js";
export { LinkspanError } from "./errors.js";
export { askId } from "./ids.js";
export { Run } from "./run.js";
export { Subscription } from "./subscription.js";
/** @import { WebSocketLike } from "./websocket.js" */
/** A client of a server, or of a program that is started for it. */
export declare class Linkspan extends Client {
    /** @param {import("./server.js").ServerOptions} options */
    constructor(options: import("./server.js").ServerOptions);
    /**
     * Starts `linkspan stdio`, which works in this process's place on the user's own sessions and ends with it: no server,
     * no port, no token. Only in Node and Bun.
     * @param {import("./stdio.js").SpawnOptions} [options]
     * @returns {Promise<Linkspan>}
     */
    static spawn(options?: import("./stdio.js").SpawnOptions): Promise<Linkspan>;
}
