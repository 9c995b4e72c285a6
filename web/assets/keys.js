// The keyboard shortcuts of the whole page.

import { byId } from "./dom.js";
import { showKeys } from "./help.js";
import { may } from "./me.js";

/**
 * @typedef {object} Acts
 * @property {import("./list.js").SessionList} list
 * @property {import("./feed.js").Feed} feed
 * @property {() => boolean} back false if there was nothing to go back from
 * @property {() => boolean} toAsk false if nothing is asked
 * @property {() => void} write
 */

/** @param {Acts} acts */
export function listenToKeys(acts) {
  addEventListener("keydown", (it) => pressed(it, acts));
}

/** @param {KeyboardEvent} it @param {Acts} acts */
function pressed(it, acts) {
  const target = it.target instanceof Element ? it.target : null;
  const isTyping = target?.matches("input, textarea, select") ?? false;
  if (/** @type {HTMLDialogElement} */ (byId("viewer")).open || byId("app").hidden) return;
  if (it.key === "Escape") return escape(target, isTyping, acts);
  const isList = target !== null && target.closest("#side") !== null;
  const isPlain = !isTyping && !it.ctrlKey && !it.metaKey && !it.altKey;
  const act = (isList && ARROWS[it.key]) || (isPlain && KEYS[it.key]);
  if (act && act(acts) !== false) it.preventDefault();
}

/** @param {Element | null} target @param {boolean} isTyping @param {Acts} acts */
function escape(target, isTyping, acts) {
  if (target?.id === "search" && acts.list.clearSearch()) return;
  if (acts.back()) return;
  if (isTyping) /** @type {HTMLElement} */ (target).blur();
  else if (document.body.classList.contains("in-session")) location.hash = "#/";
}

/** @typedef {(acts: Acts) => unknown} Act */

/** @type {Record<string, Act>} */
const ARROWS = {
  ArrowDown: ({ list }) => list.move(1),
  ArrowUp: ({ list }) => list.move(-1),
};

// A browser would scroll to the estimated end, and not correct that when the real end is elsewhere.
/** @type {Record<string, Act>} */
const KEYS = {
  j: ({ list }) => list.move(1),
  k: ({ list }) => list.move(-1),
  "/": ({ list }) => list.focusSearch(),
  n: ({ write }) => {
    if (!may("submitPrompt")) return false;
    // Until the address has changed, the box is that of what is open, and a recording has none.
    if (location.hash !== "#/new") addEventListener("hashchange", write, { once: true });
    location.hash = "#/new";
    write();
    return true;
  },
  i: ({ write }) => write(),
  a: ({ toAsk }) => toAsk(),
  g: ({ feed }) => feed.toStart(),
  Home: ({ feed }) => feed.toStart(),
  G: ({ feed }) => feed.toEnd(),
  End: ({ feed }) => feed.toEnd(),
  "?": () => showKeys(),
};
