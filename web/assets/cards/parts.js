// The smaller parts that cards are made of.

import { diff } from "../diff.js";
import { button, h, pictureOf } from "../dom.js";
import { file } from "../api.js";
import { plural } from "../labels.js";
import { exact, plain, visible } from "../words.js";

/** Lines of an output that are shown before somebody asks for the rest. */
const FEW_LINES = 16;
/** Characters that are shown before somebody asks for the rest, and at most after that. */
const FEW_CHARS = 4_000;
const MOST_CHARS = 400_000;
/** Lines of a change that are shown, and characters of one of them; what is left out is said. */
const MOST_LINES = 2_000;
const MOST_OF_LINE = 10_000;

/** What the page itself wants to be open. @type {WeakMap<HTMLDetailsElement, boolean>} */
const wanted = new WeakMap();

/**
 * Something that opens and closes, and stays as it was left when it is drawn again.
 *
 * The browser tells of a change some time after it was made, by whomever. What the page has opened by
 * itself must not count as a click by then, so clicks are taken as clicks, and of the browser's news only
 * what the page did not do: a search in the page opens what it finds.
 * @param {string} kind @param {import("../dom.js").Child[]} head @param {View.Row} row @param {import("../cards.js").Context} context @param {import("../dom.js").Child[]} inside
 */
export function fold(kind, head, row, context, ...inside) {
  const summary = h("summary", null, ...head);
  const node = h("details", { class: kind }, summary, ...inside);
  unfold(node, context.isOpen(row));
  summary.addEventListener("click", (it) => {
    it.preventDefault();
    context.setOpen(row, !node.open);
  });
  node.addEventListener("toggle", () => node.open !== wanted.get(node) && context.setOpen(row, node.open));
  return node;
}

/** Opens or closes it, as the page wants it. @param {HTMLDetailsElement} node @param {boolean} isOpen */
export function unfold(node, isOpen) {
  wanted.set(node, isOpen);
  if (node.open !== isOpen) node.open = isOpen;
}

/** A collapsible part whose state is not remembered. @param {string} label @param {() => Element} make */
export function aside(label, make) {
  const node = h("details", { class: "aside" }, h("summary", null, h("b", null, label)));
  node.addEventListener("toggle", () => {
    if (node.open && node.childElementCount === 1) node.append(make());
  });
  return node;
}

/** Text as it is. @param {string} kind @param {string} label @param {string} text */
export function block(kind, label, text) {
  return h("pre", { class: kind, tabindex: 0, "aria-label": label }, short(text, MOST_CHARS));
}

/** Characters of what somebody is asked to allow that are shown before they ask for the rest. */
const FIRST_CHARS = 100_000;

/** Text to the letter and whole: what is higher than its block, or very long, is one click away. @param {string} kind @param {string} label @param {string} raw */
export function whole(kind, label, raw) {
  const text = exact(raw);
  const pre = h("pre", { class: kind, tabindex: 0, "aria-label": label }, short(text, FIRST_CHARS));
  if (text.length <= FIRST_CHARS) return tall(pre);
  const more = button(
    `Show all ${text.length.toLocaleString("en")} characters`,
    () => {
      pre.textContent = text;
      more.remove();
    },
    { class: "more" },
  );
  return h("div", null, tall(pre), more);
}

/** Pixels of a block below which nothing is hidden: edges are rounded. */
const ROUNDING = 2;

/**
 * A block that says so when it goes on below its edge, since not every browser shows a scrollbar.
 * @param {HTMLElement} node
 */
export function tall(node) {
  const showAll = button(
    "Show all",
    () => {
      watch.disconnect();
      frame.className = "tall";
      node.classList.add("unbounded");
      showAll.remove();
      node.focus({ preventScroll: true });
    },
    { class: "more" },
  );
  const frame = h("div", { class: "tall" }, node);
  const look = () => {
    const isCut = node.scrollHeight > node.clientHeight + ROUNDING;
    const line = Number.parseFloat(getComputedStyle(node).lineHeight) || 20;
    frame.classList.toggle("goes-on", isCut);
    showAll.textContent = `Show all (${plural(Math.round(node.scrollHeight / line), "line")})`;
    if (!isCut) showAll.remove();
    else if (!showAll.isConnected) frame.append(showAll);
  };
  // Its text may change, and so may the window.
  const watch = new ResizeObserver(look);
  watch.observe(node);
  for (const it of node.children) watch.observe(it);
  return frame;
}

/** Marks the cut, so that nobody allows more than they see. @param {string} text @param {number} max */
function short(text, max) {
  return text.length > max ? `${text.slice(0, max)} … ${plural(text.length - max, "more character")} not shown` : text;
}

/**
 * Output: some lines, and the rest if somebody wants it. What failed says why at its end.
 * @param {string} raw @param {string} label @param {boolean} fromEnd
 */
export function output(raw, label = "Output", fromEnd = false) {
  const text = plain(raw.trimEnd());
  if (few(text) === text.length) return block("output", label, text);
  const shown = fromEnd ? tail(text) : text.slice(0, few(text));
  const pre = block("output", label, shown);
  const n = countLines(text) - countLines(shown);
  const words = n > 0 ? `Show ${plural(n, fromEnd ? "earlier line" : "more line")}` : "Show the rest";
  const more = button(
    words,
    () => {
      pre.textContent = text.slice(0, MOST_CHARS);
      more.replaceWith(text.length > MOST_CHARS ? h("p", { class: "cut" }, "The rest is too long for a page.") : "");
      pre.focus({ preventScroll: true });
    },
    { class: "more" },
  );
  return fromEnd ? h("div", null, more, pre) : h("div", null, pre, more);
}

/** Output that is still coming: its end. @param {string} raw */
export function tail(raw) {
  const lines = plain(raw.slice(-FEW_CHARS)).trimEnd().split("\n").slice(-FEW_LINES);
  return lines.join("\n");
}

/** @param {string} text */
function few(text) {
  let at = -1;
  for (let n = 0; n < FEW_LINES; n += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) return Math.min(text.length, text.length <= FEW_CHARS + 400 ? text.length : FEW_CHARS);
  }
  // Two lines are not worth a button.
  if (countLines(text.slice(at + 1, at + 400)) <= 2 && text.length < at + 400) return text.length;
  return Math.min(at, FEW_CHARS);
}

/** @param {string} text */
function countLines(text) {
  let n = text === "" ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n += 1;
  return n;
}

/** A change, line by line; what is left out is said, and one click away. @param {Wire.Diff} change @param {((path: string) => void) | undefined} open @param {(pre: HTMLElement) => HTMLElement} frame */
export function changes(change, open, frame = (pre) => pre) {
  const pre = h("pre", { class: "diff", tabindex: 0, "aria-label": "Changes" });
  const isCut = fillChanges(pre, change, MOST_LINES, MOST_OF_LINE);
  const more = button(
    "Show the whole change",
    () => {
      pre.replaceChildren();
      fillChanges(pre, change, Infinity, Infinity);
      more.remove();
    },
    { class: "more" },
  );
  return h("div", null, h("p", { class: "path" }, fileLink(change.path, open)), frame(pre), isCut && more);
}

/** True if something was left out. @param {Element} pre @param {Wire.Diff} change @param {number} mostLines @param {number} mostOfLine */
function fillChanges(pre, change, mostLines, mostOfLine) {
  const lines = diff(change.old ?? "", change.new, mostLines === Infinity ? Infinity : undefined);
  let isCut = lines.length > mostLines;
  for (const line of lines.slice(0, mostLines)) {
    const all = exact(line.text);
    const text = short(all, mostOfLine);
    isCut ||= text !== all || line.side === "gap";
    if (line.side === "gap") pre.append(h("span", { class: "gap" }, `… ${plural(Number(line.text), "equal line")}\n`));
    else if (line.side === "old") pre.append(h("del", null, `- ${text}\n`));
    else if (line.side === "new") pre.append(h("ins", null, `+ ${text}\n`));
    else pre.append(h("span", null, `  ${text}\n`));
  }
  const nLeft = lines.length - mostLines;
  if (nLeft > 0) pre.append(h("span", { class: "gap" }, `… ${plural(nLeft, "more line")} not shown`));
  return isCut;
}

/** A path; it can be opened where the session has files here. @param {string} path @param {((path: string) => void) | undefined} open */
export function fileLink(path, open) {
  return open ? button(visible(path), () => open(path), { class: "file" }) : h("span", null, visible(path));
}

/** A picture from the session's directory; nothing if there is none. @param {string} session @param {string} path */
export function preview(session, path) {
  const node = h("p", { class: "picture" });
  file(session, path).then(
    (blob) => blob.type.startsWith("image/") && node.append(pictureOf(blob, path), h("span", null, visible(path))),
    () => node.remove(),
  );
  return node;
}
