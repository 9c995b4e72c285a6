// The asks that were answered in this browser, so that they are known after a reload. Bounded.

import { forget, recall, remember } from "./store.js";

const KEY = "linkspan.answered";
const MAX = 300;

/** @param {string} id */
export function is_answered_here(id) {
  const ids = recall(KEY);
  return Array.isArray(ids) && ids.includes(id);
}

/** @param {string} id @param {boolean} is_mine */
export function note_answer(id, is_mine) {
  const ids = recall(KEY);
  const others = Array.isArray(ids) ? ids.filter((it) => it !== id) : [];
  remember(KEY, (is_mine ? [...others, id] : others).slice(-MAX));
}

export function forget_answers() {
  forget(KEY);
}
