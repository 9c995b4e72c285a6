// What is shown without a token, or with one that the server does not accept.

import { button, byId, h } from "./dom.js";
import { setToken } from "./token.js";

const HEADINGS = {
  missing: "This page needs a token",
  refused: "The server does not accept this token",
  signedOut: "You are signed out",
};

/** @param {keyof typeof HEADINGS} why @param {() => void} again */
export function gate(why, again) {
  const input = h("input", {
    type: "text",
    class: "secret",
    "aria-label": "Token",
    placeholder: "Link or token",
    autocomplete: "off",
    spellcheck: "false",
  });
  const enter = () => {
    // People paste the whole address as well.
    const value = input.value.trim().replace(/^.*#token=/, "").replace(/[/&].*$/, "");
    if (value === "") return;
    setToken(value);
    again();
  };
  input.addEventListener("keydown", (it) => it.key === "Enter" && enter());
  const node = byId("gate");
  node.replaceChildren(
    h("h1", null, HEADINGS[why]),
    h(
      "p",
      null,
      "In a terminal on the machine where ",
      h("code", null, "linkspan serve"),
      " runs, as the same user, run ",
      h("code", null, "linkspan token"),
      ". It prints a link to this page: open it, or paste it here. If the server was started with ",
      h("code", null, "--data-dir"),
      " or ",
      h("code", null, "--token-file"),
      ", give the same option.",
    ),
    h("p", { class: "note" }, "This browser then stays signed in until you sign out."),
    h("div", { class: "box" }, input, button("Open", enter, { class: "primary" })),
  );
  node.hidden = false;
  input.focus();
}
