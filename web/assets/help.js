// The keys, for those who ask.

import { button, by_id, h } from "./dom.js";

const KEYS = [
  ["j k ↓ ↑", "along the sessions, Enter opens"],
  ["/", "search"],
  ["n", "new session"],
  ["i", "to the prompt"],
  ["a", "to what the agent asks"],
  ["g G", "to the start, to the end"],
  ["Enter", "send; Shift+Enter is a new line"],
  ["Esc", "one step back"],
  ["?", "this"],
];

export function show_keys() {
  const dialog = /** @type {HTMLDialogElement} */ (by_id("viewer"));
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
