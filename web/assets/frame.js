// The parts of the frame that say how things are: nothing to show, not found, loading, and news for screen readers.

import { add, button, byId, h, icon } from "./dom.js";
import { may } from "./me.js";
import { clearTop } from "./top.js";
import { plural } from "./labels.js";
import { visible } from "./words.js";

/** What stands where nothing else does. @param {import("./dom.js").Child[]} words */
export function blank(words) {
  const node = byId("blank");
  node.hidden = words.length === 0;
  if (node.textContent !== words.map((it) => (it instanceof Node ? it.textContent : it || "")).join("")) {
    node.replaceChildren();
    add(node, ...words);
  }
}

/** @param {string} name */
export function missing(name) {
  clearTop();
  blank([
    h("b", null, "Session not found"),
    h("p", null, "No session has the ID ", h("code", null, visible(name)), "."),
    may("submitPrompt") && h("a", { class: "button", href: "#/new" }, "New session"),
  ]);
}

/** How much of a long session has been read. @param {import("./follow.js").Follower} follower @param {number} head */
export function progress(follower, head) {
  const bar = byId("progress");
  bar.hidden = follower.isCaughtUp || head < 2000;
  if (!bar.hidden) bar.style.width = `${Math.min(100, (100 * follower.story.cursor) / head)}%`;
}

/**
 * Ways to what is out of view.
 * @param {View.AskRow[]} asks @param {boolean} isAtEnd
 * @param {{ reveal: (row: View.AskRow) => void, toEnd: () => void }} acts
 */
export function pills(asks, isAtEnd, acts) {
  const all = [];
  const [ask] = asks;
  if (ask && !isAtEnd)
    all.push(button(`${plural(asks.length, "approval")} needed`, () => acts.reveal(ask), { class: "pill odd" }));
  if (!isAtEnd) {
    const words = "Jump to the end";
    const node = button("", acts.toEnd, { class: "pill", "aria-label": words, title: words });
    node.append(icon("down"));
    all.push(node);
  }
  byId("pills").replaceChildren(...all);
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let offline;

/** How the connection is. @param {import("./socket.js").State} state */
export function showLink(state) {
  const words = { connecting: "Connecting…", open: "", lost: "Connection lost, trying again…" };
  const show = () => {
    for (const id of ["link-state", "lost"]) byId(id).textContent = words[state];
    document.body.classList.toggle("offline", state === "lost");
  };
  clearTimeout(offline);
  if (state === "open") show();
  // A short interruption is not shown.
  else offline = setTimeout(show, 800);
}

/** News for screen readers. @param {string} words */
export function say(words) {
  byId("live").textContent = words;
}
