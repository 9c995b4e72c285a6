// The asks that were answered in this browser, so that they are known after a reload. Bounded.

import { forget, recall, remember } from "./storage.js";

const KEY = "linkspan.answered";
const MAX = 300;

/** Each tab marks for itself: the answer of one may be taken, and that of the other refused. */
const TAB = crypto.getRandomValues(new Uint32Array(2)).join("-");

/** @returns {[id: string, tab: string][]} */
function marks() {
  const all = recall(KEY);
  return Array.isArray(all) ? all.filter((it) => Array.isArray(it) && it.length === 2) : [];
}

/** @param {string} id */
export function isAnsweredHere(id) {
  return marks().some(([it]) => it === id);
}

/** @param {string} id @param {boolean} isMine */
export function noteAnswer(id, isMine) {
  const others = marks().filter(([it, tab]) => it !== id || tab !== TAB);
  remember(KEY, (isMine ? [...others, [id, TAB]] : others).slice(-MAX));
}

export function forgetAnswers() {
  forget(KEY);
}
