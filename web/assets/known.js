// What is known of the sessions. The socket tells every change in order; a reply may be older than
// what the socket has said since it was asked for, and then it does not count. Pure.

/** Sessions whose last message is kept: far more than change while one reply is on its way. */
const MAX_KNOWN = 2_000;

export class Known {
  /** By id, the one heard of longest ago first. @type {Map<string, { session: Wire.Session, at: number }>} */
  #heard = new Map();
  #clock = 0;

  /** To be taken before something is asked for. */
  now() {
    return this.#clock;
  }

  /** The socket has said this. @param {Wire.Session} session */
  hear(session) {
    this.#clock += 1;
    this.#heard.delete(session.id);
    this.#heard.set(session.id, { session, at: this.#clock });
    for (const id of this.#heard.keys()) {
      if (this.#heard.size <= MAX_KNOWN) break;
      this.#heard.delete(id);
    }
  }

  /** A reply has said this: the newer of it and what the socket said. @param {Wire.Session} session @param {number} askedAt */
  reply(session, askedAt) {
    const heard = this.#heard.get(session.id);
    return heard && heard.at > askedAt ? heard.session : session;
  }
}

/** One session as the list has it. @param {Wire.SessionDetail} detail @returns {Wire.Session} */
export function summary(detail) {
  return { ...detail, queue: detail.queue?.length ?? 0 };
}
