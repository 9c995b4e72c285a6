import type { Engines, Prompt, Sessions, Aborted, Answer, WaitingAsk } from "../types/wire.js";
import type { Backend, FollowOptions, SessionQuery, TakenPrompt } from "./client.js";
import type { WebSocketLike } from "./websocket.js";
import { Http } from "./http.js";
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;
export type ServerOptions = {
    /**
     * Its address, such as `http://127.0.0.1:8787`; also that of the page with its token, as
     * `linkspan token` prints it.
     */
    url: string;
    /**
     * The token, unless the address has it.
     */
    token?: string;
    /**
     * Another `fetch` than the global one.
     */
    fetch?: typeof globalThis.fetch;
    /**
     * Another WebSocket than the global one, such as that of the package `ws`.
     */
    WebSocket?: WebSocketConstructor;
    /**
     * How events come; WebSocket, where there is one, unless given.
     */
    transport?: "websocket" | "sse";
};
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
export declare class Server implements Backend {
    #private;
    /**
     * `open` opens a WebSocket where the caller has given none.
     * @param {ServerOptions} options
     * @param {((url: string, token: string | undefined) => WebSocketLike) | undefined} open
     */
    constructor({ url, token, fetch, WebSocket, transport }: ServerOptions, open: ((url: string, token: string | undefined) => WebSocketLike) | undefined);
    get http(): Http;
    /** @param {Prompt} prompt @param {string} [key] @param {AbortSignal} [signal] @returns {Promise<TakenPrompt>} */
    submit(prompt: Prompt, key?: string, signal?: AbortSignal): Promise<TakenPrompt>;
    /** @param {string} session @returns {Promise<Aborted>} */
    abort(session: string): Promise<Aborted>;
    /** @param {string} id @param {Answer} answer @returns {Promise<void>} */
    settle(id: string, answer: Answer): Promise<void>;
    /** @returns {Promise<WaitingAsk[]>} */
    asks(): Promise<WaitingAsk[]>;
    /** @returns {Promise<Engines>} */
    engines(): Promise<Engines>;
    /** @param {SessionQuery} query @returns {Promise<Sessions>} */
    sessions(query: SessionQuery): Promise<Sessions>;
    /** @param {string} session @param {number} number @returns {Promise<void>} */
    removeQueued(session: string, number: number): Promise<void>;
    /**
     * @template T
     * @param {FollowOptions} options
     * @returns {import("./subscription.js").Source<T>}
     */
    follow<T>({ session, format, profile, output }: FollowOptions): import("./subscription.js").Source<T>;
    changes(): import("./subscription.js").Source<import("./client.js").SessionsChange>;
    close(): Promise<void>;
}
/**
 * The token as a subprotocol: a browser can set no header.
 * @param {WebSocketConstructor} WebSocket @param {string} url @param {string | undefined} token
 */
export declare function offer(WebSocket: WebSocketConstructor, url: string, token: string | undefined): WebSocketLike;
