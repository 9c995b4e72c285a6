// What was said and what was thought.

import { h, patch, picture } from "../dom.js";
import { blocks, render, web } from "../markdown.js";
import { firstLine, plain } from "../words.js";
import { fold, output, unfold } from "./parts.js";

/** Characters from which a prompt is folded; people paste whole files. */
const LONG = 6_000;

/** @param {View.MessageRow} row @returns {import("../cards.js").View} */
export function messageCard(row) {
  const body = h("div", {
    class: row.role === "assistant" ? "prose" : row.role === "user" && row.depth === 0 ? "prompt" : "task",
    dir: "auto",
  });
  const extras = h("div", { class: "extras" });
  const node = h(
    "article",
    {
      class: `message ${row.role}`,
      "aria-label": row.role === "user" ? "Prompt" : row.role === "assistant" ? "Answer" : "Agent program",
    },
    body,
  );
  let nParts = 0;
  const update = () => {
    if (row.role === "assistant") markdown(body, row.text);
    else if (row.text.length > LONG) body.replaceChildren(output(row.text, "Text"));
    else body.textContent = plain(row.text);
    node.hidden = row.text === "" && row.parts.length === 0;
    node.classList.toggle("live", row.status === undefined);
    if (row.parts.length === nParts) return;
    nParts = row.parts.length;
    extras.replaceChildren(...row.parts.map(part));
    node.append(extras);
  };
  return { node, update };
}

/** Brings a node up to date with Markdown; blocks that did not change stay as they are. @param {Element} node @param {string} text */
export function markdown(node, text) {
  patch(
    node,
    blocks(text).map((it, n) => ({ key: `${n}`, sig: it.source, make: () => byItself(render(it)) })),
  );
}

/** Each block is read in the direction of its own script. @param {Element} node */
function byItself(node) {
  if (!node.matches("pre, .table")) node.setAttribute("dir", "auto");
  return node;
}

/** @param {Wire.Part} part */
function part(part) {
  if ("image" in part) {
    const img = picture(part.image.media_type, part.image.data);
    return h("p", { class: "picture" }, img ?? `${part.image.media_type}, not shown`);
  }
  const url = "image_url" in part ? part.image_url.url : undefined;
  if (url && web(url)) {
    return h("p", { class: "picture" }, h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, url));
  }
  return h("p", { class: "picture" }, url ?? "An attachment");
}

/** @param {View.ReasoningRow} row @param {import("../cards.js").Context} context @returns {import("../cards.js").View} */
export function reasoningCard(row, context) {
  const prose = h("div", { class: "prose", dir: "auto" });
  const glimpse = h("span", { dir: "auto" });
  const label = h("b", null, "Thought");
  const node = fold("aside reasoning", [label, glimpse], row, context, prose);
  const update = () => {
    node.hidden = row.text === "" && !row.hidden && row.status !== undefined;
    label.textContent = row.status === undefined ? "Thinking…" : "Thought";
    glimpse.textContent = row.hidden ? "hidden by the provider" : firstLine(plain(row.text));
    if (context.isOpen(row)) markdown(prose, row.text);
    unfold(node, context.isOpen(row));
  };
  return { node: wrap(node), update };
}

/** @param {HTMLElement} node */
function wrap(node) {
  return h("div", { class: "folded", role: "article" }, node);
}
