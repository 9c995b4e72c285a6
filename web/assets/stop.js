// Stopping a run, and what came of it.

import { post, sentence, session_path } from "./api.js";

export class Stop {
  /** Stop was pressed, and the run goes on. */
  is_pressed = false;
  /** Why the last press did nothing. */
  problem = "";
  onchange = () => {};
  /** The session that is being stopped. */
  #session = "";

  /** Nothing was pressed where somebody is now. */
  reset() {
    this.#session = "";
    this.is_pressed = false;
    this.problem = "";
  }

  /** @param {import("./pending.js").Pending} pending @param {Wire.Session} session */
  async press(pending, session) {
    this.is_pressed = true;
    this.problem = "";
    this.onchange();
    const unanswered = pending.rows.filter((row) => !row.is_accepted);
    // The server does not know of it yet: it is stopped as soon as it does.
    for (const row of unanswered) row.is_stopped = true;
    if (session.id === "" || (unanswered.length > 0 && session.state === "idle")) return;
    await this.now(session.id);
  }

  /** @param {string} session */
  async now(session) {
    this.#session = session;
    let problem = "Nothing was running.";
    try {
      const { aborted } = await post(`${session_path(session)}/abort`, {});
      if (aborted) return;
    } catch (error) {
      problem = sentence(error);
    }
    // Something else is open by now.
    if (this.#session !== session) return;
    this.is_pressed = false;
    this.problem = problem;
    this.onchange();
  }
}
