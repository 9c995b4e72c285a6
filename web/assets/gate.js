// What somebody sees who has no token, or one that the server refuses.

import { button, by_id, h } from "./dom.js";
import { set_token } from "./token.js";

/** @param {"missing" | "refused"} why @param {() => void} again */
export function gate(why, again) {
  const input = h("input", {
    type: "text",
    class: "secret",
    "aria-label": "Token",
    placeholder: "Token",
    autocomplete: "off",
    spellcheck: "false",
  });
  const enter = () => {
    // People paste the whole address as well.
    const value = input.value.trim().replace(/^.*#token=/, "");
    if (value === "") return;
    set_token(value);
    again();
  };
  input.addEventListener("keydown", (it) => it.key === "Enter" && enter());
  const node = by_id("gate");
  node.replaceChildren(
    h("h1", null, why === "missing" ? "This page needs its token" : "The server refuses this token"),
    h(
      "p",
      null,
      "Open the address that ",
      h("code", null, "linkspan token"),
      " prints, or paste the token here. It is kept until this tab is closed.",
    ),
    h("div", { class: "box" }, input, button("Open", enter, { class: "primary" })),
  );
  node.hidden = false;
  input.focus();
}
