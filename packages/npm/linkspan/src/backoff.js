// How long to wait before the next attempt: from a quarter of a second to ten seconds, at random within a
// range that doubles, because many clients lose a server at once and must not come back at once.

const FIRST = 500;
const LONGEST = 10_000;

export class Backoff {
  #range = FIRST;

  /** Milliseconds to wait before the next attempt. */
  next() {
    const range = this.#range;
    this.#range = Math.min(LONGEST, range * 2);
    return (range / 2) * (1 + Math.random());
  }

  /** The connection was a good one. */
  reset() {
    this.#range = FIRST;
  }
}
