import type { Aborted, Answer, Engines, Event, Me, Prompt, SessionDetail, Session, Sessions, Submitted, WaitingAsk } from "../types/wire.js";
import type { ThreadMessage } from "../types/bridge.js";
import type { Cursor } from "../types/bridge.js";
import type { Http } from "./http.js";
import type { Source, SubscriptionEvents } from "./subscription.js";
import { Run } from "./run.js";
import { Subscription } from "./subscription.js";
export type SessionQuery = {
    limit?: number;
    after?: string;
    engine?: string;
    text?: string;
    state?: Session["state"];
};
export type TakenPrompt = Submitted & {
    cursor: number;
};
export type FollowOptions = {
    session?: string | undefined;
    format: string;
    profile?: string | undefined;
    output?: string | undefined;
};
export type Backend = {
    submit: (prompt: Prompt, key: string | undefined, signal?: AbortSignal) => Promise<TakenPrompt>;
    abort: (session: string) => Promise<Aborted>;
    settle: (id: string, answer: Answer) => Promise<void>;
    asks: () => Promise<WaitingAsk[]>;
    engines: () => Promise<Engines>;
    sessions: (query: SessionQuery) => Promise<Sessions>;
    removeQueued: (session: string, number: number) => Promise<void>;
    follow: <T>(options: FollowOptions) => Source<T>;
    changes: () => Source<SessionsChange>;
    close: () => Promise<void>;
    /**
     * What else there is, of a server.
     */
    http?: Http;
};
export type EventOf = {
    linkspan: Event;
    thread: ThreadMessage;
};
export type SessionsChange = {
    type: "bridge.session";
    session: Session;
} | {
    type: "bridge.sessions_changed";
};
export type Following<F extends keyof EventOf> = {
    /**
     * The form of the events, `linkspan` unless given.
     */
    format?: F;
    /**
     * A variant of the format.
     */
    profile?: string;
    /**
     * Bytes of a tool's output in `thread`.
     */
    output?: number | "full";
};
export type OfSession = {
    session: string;
    since?: Cursor;
};
export type OfAll = {
    session?: undefined;
    since?: Record<string, Cursor>;
    newSince?: number;
};
export type RunOptions = {
    /**
     * Aborts the run; the loop over its events ends with its `run.ended`.
     */
    signal?: AbortSignal;
    /**
     * The prompt of one key is run once, however often it is given; a new one unless
     * given.
     */
    idempotencyKey?: string;
};
/**
 * Which sessions to list, the newest first; `after` is the `next` of the page before.
 * @typedef {object} SessionQuery
 * @property {number} [limit]
 * @property {string} [after]
 * @property {string} [engine]
 * @property {string} [text]
 * @property {Session["state"]} [state]
 */
/**
 * A prompt that was taken. `cursor` is an event of its session before it, 0 of a new one.
 * @typedef {Submitted & { cursor: number }} TakenPrompt
 */
/** @typedef {{ session?: string | undefined, format: string, profile?: string | undefined, output?: string | undefined }} FollowOptions */
/**
 * What a client talks to: a server, or a program on a pair of pipes.
 * @typedef {object} Backend
 * @property {(prompt: Prompt, key: string | undefined, signal?: AbortSignal) => Promise<TakenPrompt>} submit
 * @property {(session: string) => Promise<Aborted>} abort
 * @property {(id: string, answer: Answer) => Promise<void>} settle
 * @property {() => Promise<WaitingAsk[]>} asks
 * @property {() => Promise<Engines>} engines
 * @property {(query: SessionQuery) => Promise<Sessions>} sessions
 * @property {(session: string, number: number) => Promise<void>} removeQueued
 * @property {<T>(options: FollowOptions) => Source<T>} follow
 * @property {() => Source<SessionsChange>} changes
 * @property {() => Promise<void>} close
 * @property {Http} [http] What else there is, of a server.
 */
/**
 * The forms in which events come: `linkspan` is the canonical one, `thread` that of Codex, with the messages of the
 * bridge in between.
 * @typedef {{ linkspan: Event, thread: ThreadMessage }} EventOf
 */
/**
 * A session has changed, or the list is better read again.
 * @typedef {{ type: "bridge.session", session: Session } | { type: "bridge.sessions_changed" }} SessionsChange
 */
/**
 * What to follow, and from where on.
 * @template {keyof EventOf} F
 * @typedef {object} Following
 * @property {F} [format] The form of the events, `linkspan` unless given.
 * @property {string} [profile] A variant of the format.
 * @property {number | "full"} [output] Bytes of a tool's output in `thread`.
 */
/** One session: after this cursor, or from the beginning. @typedef {{ session: string, since?: Cursor }} OfSession */
/**
 * All sessions: from now on, and of some of them after these cursors.
 * @typedef {{ session?: undefined, since?: Record<string, Cursor>, newSince?: number }} OfAll
 */
/**
 * Of a run.
 * @typedef {object} RunOptions
 * @property {AbortSignal} [signal] Aborts the run; the loop over its events ends with its `run.ended`.
 * @property {string} [idempotencyKey] The prompt of one key is run once, however often it is given; a new one unless
 *   given.
 */
/** A client of linkspan. */
export declare class Linkspan {
    #private;
    /**
     * Gives a prompt and follows its run. The prompt is sent at once, and again while there is no answer; it is run once.
     * Leaving the loop over the events leaves the run alone: `abort()` of it, or the signal, stops it.
     * @param {string | Prompt} prompt @param {RunOptions} [options]
     * @returns {Run}
     */
    run(prompt: string | Prompt, options?: RunOptions): Run;
    /**
     * Gives a prompt without following it.
     * @param {string | Prompt} prompt @param {RunOptions} [options]
     * @returns {Promise<TakenPrompt>}
     */
    submit(prompt: string | Prompt, { signal, idempotencyKey }?: RunOptions): Promise<TakenPrompt>;
    /**
     * Follows a session, or all of them. The connection is made again whenever it is lost, and no event is missed or
     * comes twice.
     * @template {keyof EventOf} [F="linkspan"]
     * @param {Following<F> & (OfSession | OfAll) & SubscriptionEvents} [options]
     * @returns {Subscription<EventOf[F]>}
     */
    subscribe<F extends keyof EventOf = "linkspan">(options?: Following<F> & (OfSession | OfAll) & SubscriptionEvents): Subscription<EventOf[F]>;
    /**
     * Follows the list of sessions: each that is new, or whose state, title or queue has changed.
     * @param {SubscriptionEvents} [events]
     * @returns {Subscription<SessionsChange>}
     */
    changes(events?: SubscriptionEvents): Subscription<SessionsChange>;
    /** Stops the run of a session; its queue goes on. @param {string} session @returns {Promise<Aborted>} */
    abort(session: string): Promise<Aborted>;
    /**
     * Answers what an agent asks: an event `ask.opened`, one of `asks()`, or its id. Of several answers one is taken; the
     * others are refused with the code `already_settled`.
     * @param {string | { session: string, seq: number } | WaitingAsk} ask
     * @param {Answer["decision"] | Answer} answer
     * @returns {Promise<void>}
     */
    settle(ask: string | {
        session: string;
        seq: number;
    } | WaitingAsk, answer: Answer["decision"] | Answer): Promise<void>;
    /** What agents wait for. @returns {Promise<WaitingAsk[]>} */
    asks(): Promise<WaitingAsk[]>;
    /** A page of the list of sessions. @param {SessionQuery} [query] @returns {Promise<Sessions>} */
    sessions(query?: SessionQuery): Promise<Sessions>;
    /** The agents that can be run, and the recordings. @returns {Promise<Engines>} */
    engines(): Promise<Engines>;
    /** Takes back a prompt that waits. @param {string} session @param {number} number @returns {Promise<void>} */
    removeQueued(session: string, number: number): Promise<void>;
    /** A session with its runs, asks and queue. Only of a server. @param {string} id @returns {Promise<SessionDetail>} */
    session(id: string): Promise<SessionDetail>;
    /** Removes a session with all that is in it. Only of a server. @param {string} id @returns {Promise<void>} */
    removeSession(id: string): Promise<void>;
    /** What the token may do. Only of a server. @returns {Promise<Me>} */
    me(): Promise<Me>;
    /**
     * What is stored of a session. Only of a server.
     * @param {string} id @param {{ after?: number, limit?: number }} [options]
     * @returns {Promise<Event[]>}
     */
    events(id: string, { after, limit }?: {
        after?: number;
        limit?: number;
    }): Promise<Event[]>;
    /**
     * A session in any format of `linkspan formats`, such as `markdown` or `html`. Only of a server.
     * @param {string} id @param {string} format @param {{ profile?: string }} [options]
     * @returns {Promise<string>}
     */
    export(id: string, format: string, { profile }?: {
        profile?: string;
    }): Promise<string>;
    /** A text or an image below a session's directory. Only of a server. @param {string} id @param {string} path @returns {Promise<Blob>} */
    file(id: string, path: string): Promise<Blob>;
    /**
     * What a tool gave back, whole. Only of a server.
     * @param {string} id @param {string} item @param {{ at?: number, block?: number, part?: "structured" }} [options]
     * @returns {Promise<Blob>}
     */
    output(id: string, item: string, options?: {
        at?: number;
        block?: number;
        part?: "structured";
    }): Promise<Blob>;
    /** Ends every subscription, and the program, if one was started. @returns {Promise<void>} */
    close(): Promise<void>;
}
