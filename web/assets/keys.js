// The keyboard shortcuts of the whole page.

import { by_id } from "./dom.js";
import { show_keys } from "./help.js";
import { may } from "./me.js";

/**
 * @typedef {object} Acts
 * @property {import("./list.js").SessionList} list
 * @property {import("./feed.js").Feed} feed
 * @property {() => boolean} back false if there was nothing to go back from
 * @property {() => boolean} to_ask false if nothing is asked
 * @property {() => void} write
 */

/** @param {Acts} acts */
export function listen_to_keys(acts) {
  addEventListener("keydown", (it) => pressed(it, acts));
}

/** @param {KeyboardEvent} it @param {Acts} acts */
function pressed(it, acts) {
  const target = it.target instanceof Element ? it.target : null;
  const is_typing = target?.matches("input, textarea, select") ?? false;
  if (/** @type {HTMLDialogElement} */ (by_id("viewer")).open || by_id("app").hidden) return;
  if (it.key === "Escape") return escape(target, is_typing, acts);
  const is_list = target !== null && target.closest("#side") !== null;
  const is_plain = !is_typing && !it.ctrlKey && !it.metaKey && !it.altKey;
  const act = (is_list && ARROWS[it.key]) || (is_plain && KEYS[it.key]);
  if (act && act(acts) !== false) it.preventDefault();
}

/** @param {Element | null} target @param {boolean} is_typing @param {Acts} acts */
function escape(target, is_typing, acts) {
  if (target?.id === "search" && acts.list.clear_search()) return;
  if (acts.back()) return;
  if (is_typing) /** @type {HTMLElement} */ (target).blur();
  else if (document.body.classList.contains("in-session")) location.hash = "#/";
}

/** @typedef {(acts: Acts) => unknown} Act */

/** @type {Record<string, Act>} */
const ARROWS = {
  ArrowDown: ({ list }) => list.move(1),
  ArrowUp: ({ list }) => list.move(-1),
};

// A browser would go on to where the end was guessed to be, and not follow when it turns out to be elsewhere.
/** @type {Record<string, Act>} */
const KEYS = {
  j: ({ list }) => list.move(1),
  k: ({ list }) => list.move(-1),
  "/": ({ list }) => list.focus_search(),
  n: ({ write }) => {
    if (!may("submitPrompt")) return false;
    // Until the address has changed, the box is that of what is open, and a recording has none.
    if (location.hash !== "#/new") addEventListener("hashchange", write, { once: true });
    location.hash = "#/new";
    write();
    return true;
  },
  i: ({ write }) => write(),
  a: ({ to_ask }) => to_ask(),
  g: ({ feed }) => feed.to_start(),
  Home: ({ feed }) => feed.to_start(),
  G: ({ feed }) => feed.to_end(),
  End: ({ feed }) => feed.to_end(),
  "?": () => show_keys(),
};
