import type { Aborted, Answer, Engines, Prompt, Sessions, WaitingAsk } from "../types/wire.js";
import type { Backend, FollowOptions, SessionQuery, TakenPrompt } from "./client.js";
import type { Source } from "./subscription.js";
export type SpawnOptions = {
    /**
     * Another program than that of `binaryPath()`.
     */
    program?: string;
    /**
     * More arguments of `linkspan stdio`, such as `["--data-dir", DIR]`.
     */
    args?: string[];
    /**
     * Its directory, where agents work unless a prompt says otherwise.
     */
    cwd?: string;
    /**
     * Its environment, instead of this process's.
     */
    env?: Record<string, string | undefined>;
    /**
     * Gets what it says to people.
     */
    onStderr?: (text: string) => void;
};
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
export declare class Program implements Backend {
    #private;
    /** Resolves when it has said that it is ready. @type {Promise<void>} */
    ready: Promise<void>;
    /** @param {string} program @param {SpawnOptions} options */
    constructor(program: string, { args, cwd, env, onStderr }: SpawnOptions);
    /** @param {Prompt} prompt @param {string} [key] @returns {Promise<TakenPrompt>} */
    submit(prompt: Prompt, key?: string): Promise<TakenPrompt>;
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
     * All followers of a session share what the program sends of it, which begins where the last of them is.
     * @template T
     * @param {FollowOptions} options
     * @returns {Source<T>}
     */
    follow<T>({ session, format }: FollowOptions): Source<T>;
    /** @returns {never} */
    changes(): never;
    /** Ends the program, and with it its runs. @returns {Promise<void>} */
    close(): Promise<void>;
}
