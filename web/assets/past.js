// What a fork began with: the events of the session that it was forked from, and of those before it.

import { get, sessionPath } from "./api.js";
import { readUntil } from "./follow.js";
import { Story, flat } from "./fold.js";
import { promptTitle } from "./labels.js";

/** Sessions that are read back through; each was forked from the one before. */
const MAX_PARENTS = 8;
/** Far apart, so that no two rows have the same key. */
const KEYS = 2 ** 40;

/**
 * The rows of the past, the oldest first.
 * @param {{ session: string, seq: number }} parent @param {AbortSignal} signal
 * @returns {Promise<{ rows: View.Row[], title: string }>}
 */
export async function readPast(parent, signal) {
  /** @type {View.Row[]} */
  let rows = [];
  let firstTitle = "";
  /** @type {{ session: string, seq: number } | null | undefined} */
  let next = parent;
  for (let n = 1; next && n <= MAX_PARENTS; n += 1) {
    /** @type {Wire.SessionDetail} */
    const detail = await get(sessionPath(next.session), { signal });
    const story = new Story(detail.id, -n * KEYS);
    await readUntil(story, next.seq, signal);
    const title = detail.title || promptTitle(story.firstPrompt) || detail.id;
    firstTitle ||= title;
    const key = -n * KEYS + KEYS / 2;
    /** @type {View.ForkRow} */
    const fork = { key, kind: "fork", version: 0, depth: 0, height: 0, session: detail.id, title };
    rows = [...over(story), fork, ...rows];
    next = detail.parent;
  }
  return { rows, title: firstTitle };
}

/** Rows of a story that can no longer change. @param {Story} story */
function over(story) {
  for (const row of flat(story.rows, () => true)) {
    row.isPast = true;
    if (row.kind === "ask") row.settled ??= { decision: "lost", origin: "linkspan" };
    else if ("status" in row || row.kind === "tool" || row.kind === "message") row.status ??= "ok";
  }
  return story.rows;
}
