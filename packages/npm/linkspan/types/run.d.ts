import type { Event, RunEnded } from "../types/wire.js";
import type { TakenPrompt } from "./client.js";
/** The run of a prompt: a `for await` over it gives its events, from `run.started` to `run.ended`. */
export declare class Run {
    #private;
    /** Resolves when the prompt was taken, with its session and its place in the queue. @readonly @type {Promise<TakenPrompt>} */
    readonly submitted: Promise<TakenPrompt>;
    /** @returns {AsyncGenerator<Event, void, undefined>} */
    [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined>;
    /** Waits for the end of the run: its outcome, answer, error and figures. @returns {Promise<RunEnded>} */
    result(): Promise<RunEnded>;
    /** Stops the run, or takes its prompt back if it still waits. @returns {Promise<void>} */
    abort(): Promise<void>;
}
