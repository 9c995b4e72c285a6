// The smaller parts that cards are made of.

import { diff } from "../diff.js";
import { button, h, picture_of } from "../dom.js";
import { file } from "../api.js";
import { exact, plain, plural, visible } from "../words.js";

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
  unfold(node, context.is_open(row));
  summary.addEventListener("click", (it) => {
    it.preventDefault();
    context.set_open(row, !node.open);
  });
  node.addEventListener("toggle", () => node.open !== wanted.get(node) && context.set_open(row, node.open));
  return node;
}

/** Opens or closes it, as the page wants it. @param {HTMLDetailsElement} node @param {boolean} is_open */
export function unfold(node, is_open) {
  wanted.set(node, is_open);
  if (node.open !== is_open) node.open = is_open;
}

/** Something folded that nobody has to remember. @param {string} label @param {() => Element} make */
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
  const show_all = button(
    "Show all",
    () => {
      watch.disconnect();
      frame.className = "tall";
      node.classList.add("unbounded");
      show_all.remove();
      node.focus({ preventScroll: true });
    },
    { class: "more" },
  );
  const frame = h("div", { class: "tall" }, node);
  const look = () => {
    const is_cut = node.scrollHeight > node.clientHeight + ROUNDING;
    const line = Number.parseFloat(getComputedStyle(node).lineHeight) || 20;
    frame.classList.toggle("goes-on", is_cut);
    show_all.textContent = `Show all (${plural(Math.round(node.scrollHeight / line), "line")})`;
    if (!is_cut) show_all.remove();
    else if (!show_all.isConnected) frame.append(show_all);
  };
  // Its text may change, and so may the window.
  const watch = new ResizeObserver(look);
  watch.observe(node);
  for (const it of node.children) watch.observe(it);
  return frame;
}

/** Whoever allows something has to know that there is more of it. @param {string} text @param {number} max */
function short(text, max) {
  return text.length > max ? `${text.slice(0, max)} … ${plural(text.length - max, "more character")} not shown` : text;
}

/**
 * Output: some lines, and the rest if somebody wants it. What failed says why at its end.
 * @param {string} raw @param {string} label @param {boolean} from_end
 */
export function output(raw, label = "Output", from_end = false) {
  const text = plain(raw.trimEnd());
  if (few(text) === text.length) return block("output", label, text);
  const shown = from_end ? tail(text) : text.slice(0, few(text));
  const pre = block("output", label, shown);
  const n = count_lines(text) - count_lines(shown);
  const words = n > 0 ? `Show ${plural(n, from_end ? "earlier line" : "more line")}` : "Show the rest";
  const more = button(
    words,
    () => {
      pre.textContent = text.slice(0, MOST_CHARS);
      more.replaceWith(text.length > MOST_CHARS ? h("p", { class: "cut" }, "The rest is too long for a page.") : "");
      pre.focus({ preventScroll: true });
    },
    { class: "more" },
  );
  return from_end ? h("div", null, more, pre) : h("div", null, pre, more);
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
  if (count_lines(text.slice(at + 1, at + 400)) <= 2 && text.length < at + 400) return text.length;
  return Math.min(at, FEW_CHARS);
}

/** @param {string} text */
function count_lines(text) {
  let n = text === "" ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) n += 1;
  return n;
}

/** A change, line by line; what is left out is said, and one click away. @param {Wire.Diff} change @param {(path: string) => void} open @param {(pre: HTMLElement) => HTMLElement} frame */
export function changes(change, open, frame = (pre) => pre) {
  const pre = h("pre", { class: "diff", tabindex: 0, "aria-label": "Changes" });
  const is_cut = fill_changes(pre, change, MOST_LINES, MOST_OF_LINE);
  const more = button(
    "Show the whole change",
    () => {
      pre.replaceChildren();
      fill_changes(pre, change, Infinity, Infinity);
      more.remove();
    },
    { class: "more" },
  );
  return h("div", null, h("p", { class: "path" }, file_link(change.path, open)), frame(pre), is_cut && more);
}

/** True if something was left out. @param {Element} pre @param {Wire.Diff} change @param {number} most_lines @param {number} most_of_line */
function fill_changes(pre, change, most_lines, most_of_line) {
  const lines = diff(change.old ?? "", change.new, most_lines === Infinity ? Infinity : undefined);
  let is_cut = lines.length > most_lines;
  for (const line of lines.slice(0, most_lines)) {
    const all = exact(line.text);
    const text = short(all, most_of_line);
    is_cut ||= text !== all || line.side === "gap";
    if (line.side === "gap") pre.append(h("span", { class: "gap" }, `… ${plural(Number(line.text), "equal line")}\n`));
    else if (line.side === "old") pre.append(h("del", null, `- ${text}\n`));
    else if (line.side === "new") pre.append(h("ins", null, `+ ${text}\n`));
    else pre.append(h("span", null, `  ${text}\n`));
  }
  const n_left = lines.length - most_lines;
  if (n_left > 0) pre.append(h("span", { class: "gap" }, `… ${plural(n_left, "more line")} not shown`));
  return is_cut;
}

/** @param {string} path @param {(path: string) => void} open */
export function file_link(path, open) {
  return button(visible(path), () => open(path), { class: "file" });
}

/** A picture from the session's directory; nothing if there is none. @param {string} session @param {string} path */
export function preview(session, path) {
  const node = h("p", { class: "picture" });
  file(session, path).then(
    (blob) => blob.type.startsWith("image/") && node.append(picture_of(blob, path), h("span", null, visible(path))),
    () => node.remove(),
  );
  return node;
}
