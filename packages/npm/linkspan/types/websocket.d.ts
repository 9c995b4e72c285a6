import type { Receiver, Source } from "./subscription.js";
/** @import { Cursor } from "../types/bridge.js" */
/** @import { Receiver, Source } from "./subscription.js" */
import { LinkspanError } from "./errors.js";
export type WebSocketLike = {
    send: (text: string) => void;
    close: (code?: number, reason?: string) => void;
    onopen: ((event: never) => void) | null;
    onmessage: ((event: never) => void) | null;
    onclose: ((event: never) => void) | null;
    onerror: ((event: never) => void) | null;
};
export type Dial = {
    /**
     * Opens a socket of `/ws` with this query.
     */
    connect: (query: string) => WebSocketLike;
    /**
     * Why there was no socket, which a WebSocket does not tell.
     */
    refusal: () => Promise<LinkspanError | undefined>;
};
export type Message = {
    [name: string]: unknown;
    type?: string;
};
/** @param {string} message */
export declare const unreachable: (message: string) => LinkspanError;
/**
 * The events of a session, in the format of the query.
 * @template T
 * @param {Dial} dial @param {string} query @param {string} session
 * @returns {Source<T>}
 */
export declare function sessionSource<T>(dial: Dial, query: string, session: string): Source<T>;
/**
 * The events of all sessions. What a session is at when the subscription begins is noted first, so that one that
 * comes to life while there is no connection is told from there.
 * @template T
 * @param {Dial} dial @param {string} query
 * @returns {Source<T>}
 */
export declare function allSource<T>(dial: Dial, query: string): Source<T>;
/**
 * Hands on what is an event; `name` says under which name its session is followed.
 * @template T
 * @param {Message} message @param {Receiver<T>} receiver @param {boolean} isCanonical
 * @param {(session: string) => string} name
 */
export declare function deliver<T>(message: Message, receiver: Receiver<T>, isCanonical: boolean, name: (session: string) => string): void;
/**
 * Changes of the list of sessions. Behind every new connection it is better read again.
 * @param {Dial} dial
 * @returns {Source<import("./client.js").SessionsChange>}
 */
export declare function changesSource(dial: Dial): Source<import("./client.js").SessionsChange>;
