// The keyboard shortcuts.

import { button, byId, h } from "./dom.js";

const KEYS = [
  ["j k ↓ ↑", "Move through sessions; Enter opens one"],
  ["/", "Search sessions"],
  ["n", "New session"],
  ["i", "Write a message"],
  ["a", "Jump to the pending approval"],
  ["g G", "Jump to the start or the end"],
  ["Enter", "Send; Shift+Enter starts a new line"],
  ["Esc", "Go back"],
  ["?", "Show this help"],
];

export function showKeys() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("viewer"));
  const row = (/** @type {string[]} */ [keys = "", words]) => {
    const caps = keys.split(" ").map((it) => h("kbd", null, it));
    return h("tr", null, h("th", { scope: "row" }, ...caps), h("td", null, words));
  };
  dialog.replaceChildren(
    h(
      "header",
      null,
      h("b", null, "Keys"),
      button("Close", () => dialog.close()),
    ),
    h("div", { class: "viewer-body" }, h("table", { class: "keys" }, h("tbody", null, ...KEYS.map(row)))),
  );
  dialog.setAttribute("aria-label", "Keys");
  if (!dialog.open) dialog.showModal();
}
