/** What went wrong: the server's own error, or one of the codes below. */
export declare class LinkspanError extends Error {
    /**
     * A stable code for programs: the server's (`unauthorized`, `no_such_session`, `already_settled`, …), or
     * `unreachable` (no answer), `closed` (the client was closed), `no_websocket`, `no_stream` and `not_supported`
     * (not possible here), `no_program`, `program_ended` and `other_protocol` (of a program that was to be started),
     * `prompt_removed` (somebody took the prompt out of the queue).
     * @readonly
     */
    readonly code: string;
    /** What to do about it, if something can be said. @readonly @type {string | undefined} */
    readonly hint: string | undefined;
    /** The status of the HTTP response, if there was one. @readonly @type {number | undefined} */
    readonly status: number | undefined;
    /**
     * @param {string} code @param {string} message
     * @param {{ hint?: string | undefined, status?: number | undefined, cause?: unknown }} [more]
     */
    constructor(code: string, message: string, { hint, status, cause }?: {
        hint?: string | undefined;
        status?: number | undefined;
        cause?: unknown;
    });
    /**
     * Whether trying again may help: there was no answer, or one that says so.
     * @returns {boolean}
     */
    get isTemporary(): boolean;
}
/** @param {string} code @param {string} what @param {string} [hint] */
export declare const notPossible: (code: string, what: string, hint?: string) => LinkspanError;
