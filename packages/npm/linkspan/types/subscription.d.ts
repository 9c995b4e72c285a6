import type { Cursor } from "../types/bridge.js";
import { LinkspanError } from "./errors.js";
export type SubscriptionState = "connecting" | "open" | "waiting" | "paused" | "closed";
export type Position = {
    cursors: ReadonlyMap<string, Cursor>;
    newSince: number | undefined;
};
export type Receiver<T> = {
    onOpen: () => void;
    onValue: (value: T, session: string, cursor: Cursor | undefined, key?: string) => void;
    onBegin: (cursors: Iterable<[string, Cursor]>, newSince: number) => void;
    onCaughtUp: (session: string, cursor: Cursor) => void;
    onLost: (error: LinkspanError) => void;
};
export type Source<T> = (position: Position, receiver: Receiver<T>) => () => void;
export type SubscriptionEvents = {
    /**
     * Called with each change, and with the reason while it waits for the next attempt.
     */
    onState?: (state: SubscriptionState, error?: LinkspanError) => void;
    /**
     * Called when all that was stored has been received.
     */
    onCaughtUp?: (session: string, cursor: Cursor) => void;
    /**
     * Ends it.
     */
    signal?: AbortSignal;
};
/**
 * How it goes: `connecting`, `open`, `waiting` (for the next attempt), `paused` (until its consumer has caught up) or
 * `closed`.
 * @typedef {"connecting" | "open" | "waiting" | "paused" | "closed"} SubscriptionState
 */
/**
 * Where a connection begins: after these cursors, by session, and at the beginning of sessions that are newer than
 * `newSince`.
 * @typedef {{ cursors: ReadonlyMap<string, Cursor>, newSince: number | undefined }} Position
 */
/**
 * Who takes what a source reports. A value with a key and no cursor is told once.
 * @template T
 * @typedef {object} Receiver
 * @property {() => void} onOpen
 * @property {(value: T, session: string, cursor: Cursor | undefined, key?: string) => void} onValue
 * @property {(cursors: Iterable<[string, Cursor]>, newSince: number) => void} onBegin
 * @property {(session: string, cursor: Cursor) => void} onCaughtUp
 * @property {(error: LinkspanError) => void} onLost
 */
/**
 * Opens a connection, and gives back what closes it. Behind `onLost`, and once it is closed, it reports nothing.
 * @template T
 * @typedef {(position: Position, receiver: Receiver<T>) => () => void} Source
 */
/**
 * What a consumer may want to be told of.
 * @typedef {object} SubscriptionEvents
 * @property {(state: SubscriptionState, error?: LinkspanError) => void} [onState]
 *   Called with each change, and with the reason while it waits for the next attempt.
 * @property {(session: string, cursor: Cursor) => void} [onCaughtUp] Called when all that was stored has been received.
 * @property {AbortSignal} [signal] Ends it.
 */
/**
 * Events as they happen, for `for await`. Leaving the loop, `close()` and the signal end it; the loop throws a
 * `LinkspanError` when trying again cannot help.
 * @template T
 */
export declare class Subscription<T> {
    #private;
    /** How it goes. @returns {SubscriptionState} */
    get state(): SubscriptionState;
    /** @returns {this} */
    [Symbol.asyncIterator](): this;
    /** The next event, once there is one. @returns {Promise<IteratorResult<T, undefined>>} */
    next(): Promise<IteratorResult<T, undefined>>;
    /** Ends it, as leaving a `for await` does. @returns {Promise<IteratorResult<T, undefined>>} */
    return(): Promise<IteratorResult<T, undefined>>;
    /** Ends it. What waits is dropped. */
    close(): void;
}
