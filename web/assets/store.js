// The state of the page under one version. What draws a part of it watches that part, and whatever changes it goes
// through here, so that nothing on the page is older than the rest.
//
// Sessions come over the socket, in order, and in replies; a reply may be older than what the socket has said since
// it was asked for, and then it does not count. Pure.

/** Sessions whose last message is kept: far more than change while one reply is on its way. */
const MAX_SESSIONS = 2_000;

/** @template {object} State */
export class Store {
  #state;
  #version = 0;
  /** @type {(() => void)[]} */
  #watchers = [];
  #isNotifying = false;
  /** By id, the one that changed longest ago first. @type {Map<string, { session: Wire.Session, version: number }>} */
  #messages = new Map();

  /** @param {State} state */
  constructor(state) {
    this.#state = state;
  }

  get state() {
    return this.#state;
  }

  /** Counts the changes; to be taken before something is asked for. */
  get version() {
    return this.#version;
  }

  /** @param {Partial<State>} change */
  update(change) {
    this.#version += 1;
    this.#state = { ...this.#state, ...change };
    // What a watcher changes is drawn after this round, in one more: no watcher sees an older state after a newer one.
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    try {
      for (let drawn = -1; drawn !== this.#version; ) {
        drawn = this.#version;
        for (const watcher of this.#watchers) watcher();
      }
    } finally {
      this.#isNotifying = false;
    }
  }

  /** Calls `draw` whenever one of these values has changed. @param {(state: State) => unknown[]} pick @param {(state: State) => void} draw */
  watch(pick, draw) {
    let last = pick(this.#state);
    this.#watchers.push(() => {
      const now = pick(this.#state);
      const isSame = now.every((it, n) => it === last[n]);
      last = now;
      if (!isSame) draw(this.#state);
    });
  }

  /** The socket has said this. @param {Wire.Session} session */
  message(session) {
    this.#version += 1;
    this.#messages.delete(session.id);
    this.#messages.set(session.id, { session, version: this.#version });
    for (const id of this.#messages.keys()) {
      if (this.#messages.size <= MAX_SESSIONS) break;
      this.#messages.delete(id);
    }
  }

  /** A reply has said this: the newer of it and what the socket said. @param {Wire.Session} session @param {number} askedAt the version before it was asked for */
  reply(session, askedAt) {
    const message = this.#messages.get(session.id);
    return message && message.version > askedAt ? message.session : session;
  }
}

/** One session as the list has it. @param {Wire.SessionDetail} detail @returns {Wire.Session} */
export function summary(detail) {
  return { ...detail, queue: detail.queue.length };
}
