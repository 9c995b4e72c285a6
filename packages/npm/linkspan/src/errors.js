// The one kind of error that this package throws.

/** What went wrong: the server's own error, or one of the codes below. */
export class LinkspanError extends Error {
  /**
   * A stable code for programs: the server's (`unauthorized`, `no_such_session`, `already_settled`, …), or
   * `unreachable` (no answer), `closed` (the client was closed), `no_websocket`, `no_stream` and `not_supported`
   * (not possible here), `no_program`, `program_ended` and `other_protocol` (of a program that was to be started),
   * `prompt_removed` (somebody took the prompt out of the queue).
   * @readonly
   */
  code;
  /** What to do about it, if something can be said. @readonly @type {string | undefined} */
  hint;
  /** The status of the HTTP response, if there was one. @readonly @type {number | undefined} */
  status;

  /**
   * @param {string} code @param {string} message
   * @param {{ hint?: string | undefined, status?: number | undefined, cause?: unknown }} [more]
   */
  constructor(code, message, { hint, status, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "LinkspanError";
    this.code = code;
    this.hint = hint;
    this.status = status;
  }

  /**
   * Whether trying again may help: there was no answer, or one that says so.
   * @returns {boolean}
   */
  get isTemporary() {
    const { code, status } = this;
    if (status === undefined) return code === "unreachable";
    return status >= 500 || status === 408 || status === 425 || status === 429;
  }
}

/** @param {string} code @param {string} what @param {string} [hint] */
export const notPossible = (code, what, hint) => new LinkspanError(code, what, { hint });
