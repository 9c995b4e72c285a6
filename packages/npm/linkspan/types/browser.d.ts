import { Linkspan as Client } from "./client.js";
export { toCodexEvent } from "./codex.js";
export { LinkspanError } from "./errors.js";
export { askId } from "./ids.js";
export { Run } from "./run.js";
export { Subscription } from "./subscription.js";
/** A client of a server. */
export declare class Linkspan extends Client {
    /** @param {import("./server.js").ServerOptions} options */
    constructor(options: import("./server.js").ServerOptions);
    /** Starts a program, where there are programs. @returns {Promise<never>} */
    static spawn(): Promise<never>;
}
/** Where the program is, where there are programs. @returns {never} */
export declare function binaryPath(): never;
