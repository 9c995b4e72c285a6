// Stopping a run, and what came of it.

import { post, sentence, sessionPath } from "./api.js";

export class Stop {
  /** Stop was pressed, and the run goes on. */
  isPressed = false;
  /** Why the last press did nothing. */
  problem = "";
  onChange = () => {};
  /** The session that is being stopped. */
  #session = "";

  /** Nothing was pressed where somebody is now. */
  reset() {
    this.#session = "";
    this.isPressed = false;
    this.problem = "";
  }

  /** @param {import("./pending.js").Pending} pending @param {Wire.Session} session */
  async press(pending, session) {
    this.isPressed = true;
    this.problem = "";
    this.onChange();
    const unanswered = pending.rows.filter((row) => !row.isAccepted);
    // The server does not know of it yet: it is stopped as soon as it does.
    for (const row of unanswered) row.isStopped = true;
    if (session.id === "" || (unanswered.length > 0 && session.state === "idle")) return;
    await this.now(session.id);
  }

  /** @param {string} session */
  async now(session) {
    this.#session = session;
    let problem = "Nothing was running.";
    try {
      const { aborted } = await post(`${sessionPath(session)}/abort`, {});
      if (aborted) return;
    } catch (error) {
      problem = sentence(error);
    }
    // Something else is open by now.
    if (this.#session !== session) return;
    this.isPressed = false;
    this.problem = problem;
    this.onChange();
  }
}
