// What was written and not sent, for each session; it outlives a reload. Bounded.

import { forget, recall, remember } from "./storage.js";

const KEY = "linkspan.drafts";
const MAX_DRAFTS = 50;
/** Characters of one draft; a longer one lives as long as the tab. */
const MAX_LENGTH = 50_000;

/** The one written last is the last. @type {Map<string, string>} */
let drafts = new Map();

/** Reads what is stored: another tab may have written since. */
function load() {
  const stored = recall(KEY);
  if (!Array.isArray(stored)) return;
  const long = [...drafts].filter(([, text]) => text.length > MAX_LENGTH);
  drafts = new Map([...stored.filter((it) => typeof it?.[1] === "string"), ...long]);
}

/** @param {string} name */
export function draft(name) {
  load();
  return drafts.get(name) ?? "";
}

/** @param {string} name @param {string} text */
export function keepDraft(name, text) {
  load();
  drafts.delete(name);
  if (text.trim() !== "") drafts.set(name, text);
  while (drafts.size > MAX_DRAFTS) drafts.delete(drafts.keys().next().value ?? "");
  remember(
    KEY,
    [...drafts].filter(([, it]) => it.length <= MAX_LENGTH),
  );
}

export function forgetDrafts() {
  drafts.clear();
  forget(KEY);
}
