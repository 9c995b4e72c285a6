// A tool call: what it is in one line, and what it did when opened.

import { h, icon, patch, picture } from "../dom.js";
import { plusMinus } from "../diff.js";
import { callLabel, decisionLabel, dollars, duration, plural, tokensInOut, toolLabel } from "../labels.js";
import { between, capital, firstLine, inside, plain, show, visible } from "../words.js";
import { markdown } from "./message.js";
import { aside, block, changes, fileLink, fold, output, preview, tail, unfold } from "./parts.js";

/** Files that one output names and that are offered; and pictures that are shown at once. */
const MAX_FILES = 12;
const MAX_PICTURES = 4;

const PATH = /(?<![\w:/.~-])(?:\.{0,2}\/)?(?:[\w@.+-]+\/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9}(?![\w/])/g;
const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i;
/** What looks like a file in most outputs; `example.com` and `foo.bar` do not. */
const FILE =
  /\.(?:png|jpe?g|gif|webp|svg|pdf|md|txt|log|csv|json|jsonl|ya?ml|toml|html?|css|[cm]?[jt]sx?|rs|py|go|java|kt|swift|rb|php|c|h|cc|cpp|hpp|sh|sql|xml|diff|patch)$/i;

/** Milliseconds after which it is worth saying how long a call takes. */
const NOTICEABLE = 1_000;

/** Characters of a change that is shown without being asked for. */
const SMALL_CHANGE = 1_200;

/** @typedef {import("../cards.js").Context} Context */

/** A small change is what people want to see; while it is asked about, the ask shows it. @param {View.ToolRow} row */
export function opensItself(row) {
  const diffs = row.item.class.diffs;
  const isAsked = row.ask !== undefined && !row.ask.settled;
  if (!diffs?.length || row.depth > 0 || isAsked || (row.status ?? "ok") !== "ok") return false;
  return diffs.reduce((sum, it) => sum + (it.old?.length ?? 0) + it.new.length, 0) <= SMALL_CHANGE;
}

/** @param {View.ToolRow} row @param {Context} context @returns {import("../cards.js").View} */
export function toolCard(row, context) {
  const kind = row.item.class.kind ?? "other";
  const name = h("b", null);
  const title = h("code", { dir: "auto" });
  const facts = h("span", { class: "n" });
  const how = h("span", { class: "how" });
  const body = h("div", { class: "body" });
  let shown = kind;
  let pictureIcon = icon(kind);
  const node = fold("card", [pictureIcon, name, title, facts, how], row, context, body);

  const tick = () => {
    facts.textContent = summaryFacts(row);
  };
  const update = () => {
    const { item } = row;
    const now = row.agent ? "task" : (item.class.kind ?? "other");
    if (now !== shown) {
      const fresh = icon(now);
      pictureIcon.replaceWith(fresh);
      pictureIcon = fresh;
      shown = now;
    }
    node.className = `card k-${now} ${tone(row)}`;
    const [label, subject] = headline(row);
    name.textContent = label;
    title.textContent = subject;
    title.title = subject;
    title.hidden = subject === "";
    how.textContent = verdict(row);
    how.hidden = how.textContent === "";
    tick();
    unfold(node, context.isOpen(row));
    if (node.open) patch(body, pieces(row, context));
  };
  return { node: h("article", { class: "folded" }, node), update, tick: () => row.status === undefined && tick() };
}

/** @param {View.ToolRow} row @returns {[string, string]} */
function headline(row) {
  const { item, agent } = row;
  if (agent) {
    const last = row.status === undefined ? glimpse(row) : "";
    return [`Agent · ${visible(agent.name)}`, last || firstLine(visible(agent.description ?? item.class.title))];
  }
  const [name, about] = toolLabel(item);
  return [visible(name), firstLine(visible(about ?? ""))];
}

/** What a sub-agent does at the moment. @param {View.ToolRow} row */
function glimpse(row) {
  const last = row.children.at(-1);
  if (last?.kind === "tool") return `› ${headline(last).join(" ")}`;
  return last?.kind === "message" && last.role === "assistant" ? `› ${firstLine(plain(last.text))}` : "";
}

/** @param {View.ToolRow} row */
function summaryFacts(row) {
  const facts = [];
  if (row.children.length > 0) facts.push(plural(row.children.filter((it) => it.kind === "tool").length, "step"));
  const diffs = row.item.class.diffs;
  if (diffs?.length) facts.push(plusMinus(diffs));
  const ms =
    row.status === undefined && !row.agentStatus
      ? between(row.at, new Date().toISOString())
      : between(row.at, row.endedAt);
  if (ms !== undefined && ms >= NOTICEABLE && (row.status !== undefined || ms < 86_400_000)) facts.push(duration(ms));
  return facts.filter(Boolean).join(" · ");
}

/** @param {View.ToolRow} row */
function verdict(row) {
  if (row.ask && !row.ask.settled) return "needs approval";
  if (row.status === undefined) return "running";
  return callLabel(row.status, row.item.class.exit_code) ?? "";
}

/** @param {View.ToolRow} row */
function tone(row) {
  if (row.ask && !row.ask.settled) return "odd";
  if (row.status === undefined) return "live";
  return row.status === "error" ? "bad" : callLabel(row.status, row.item.class.exit_code) ? "odd" : "";
}

/** @param {View.ToolRow} row @param {Context} context */
function pieces(row, context) {
  const { item, agent } = row;
  const known = item.class;
  /** @type {import("../dom.js").Piece[]} */
  const out = [];
  const add = (/** @type {string} */ key, /** @type {string | number} */ sig, /** @type {() => Element} */ make) =>
    out.push({ key, sig, make });
  const open = context.openFile;

  if (known.command) add("command", known.command, () => block("command", "Command", visible(known.command ?? "")));
  const diffs = known.diffs ?? [];
  for (const [n, it] of diffs.entries()) add(`diff ${n}`, `${it.path}\n${it.old}\n${it.new}`, () => changes(it, open));
  const isShown = item.input !== undefined && Object.values(Object(item.input)).includes(known.query);
  if (known.query && !isShown) add("query", known.query, () => field("Query", known.query ?? ""));
  const paths = (known.paths ?? []).filter((it) => !diffs.some((diff) => diff.path === it.path));
  if (paths.length > 0) {
    add("paths", JSON.stringify(paths), () =>
      h("p", { class: "path" }, ...paths.flatMap((it) => [fileLink(it.path, open), it.line ? `:${it.line} ` : " "])),
    );
  }
  if (row.typing) add("typing", row.typing.length, () => block("plain", "Input", visible(row.typing.slice(-2000))));
  if (item.input !== undefined && !known.command && diffs.length === 0 && !agent) {
    const text = JSON.stringify(item.input);
    if (text !== "{}" && text !== "null") add("input", text, () => inputs(item.input));
  }
  if (row.ask?.settled) {
    const it = row.ask.settled;
    const words = `${capital(decisionLabel(row.ask.ask.kind, it.decision))}${it.message ? `: ${it.message}` : ""}`;
    add("decision", words, () => h("p", { class: "decision" }, visible(words)));
  }
  // The first thing inside is often the very same text.
  const first = row.children[0];
  const isInside = first?.kind === "message" && first.text === agent?.prompt;
  if (agent?.prompt && !isInside)
    add("prompt", agent.prompt, () => aside("Task", () => h("div", { class: "task" }, plain(agent.prompt ?? ""))));
  if (row.tokens) {
    const words = [tokensInOut(row.tokens), row.cost !== undefined && dollars(row.cost)].filter(Boolean).join(" · ");
    if (words) add("tokens", words, () => h("p", { class: "field" }, words));
  }
  if (agent?.report) {
    add("report", agent.report, () => {
      const node = h("div", { class: "prose report", dir: "auto" });
      markdown(node, agent.report ?? "");
      return h("div", null, h("p", { class: "field" }, h("b", null, "Report")), node);
    });
  } else {
    results(row, context, out);
  }
  if (out.length === 0)
    add("nothing", row.status ?? "", () =>
      h("p", { class: "cut" }, row.status === undefined ? "Nothing yet." : "No output."),
    );
  return out;
}

/** @param {View.ToolRow} row @param {Context} context @param {import("../dom.js").Piece[]} out */
function results(row, context, out) {
  const { result } = row.item;
  if (result === undefined) {
    if (row.output === "") return;
    const sig = row.output.length;
    const update = (/** @type {Element} */ node) => (node.textContent = tail(row.output));
    out.push({ key: "live", sig, make: () => block("output", "Output so far", tail(row.output)), update });
    return;
  }
  const { text, images } = contents(result.content);
  if (text.trim() !== "") {
    const length = `${text.length}`;
    // That a change was made is seen by the change.
    const isShown = row.status === "ok" && (row.item.class.diffs?.length ?? 0) > 0;
    const make = () => output(text, "Output", row.status === "error");
    out.push({ key: "output", sig: length, make: isShown ? () => aside("Output", make) : make });
  }
  for (const [n, it] of images.entries()) {
    out.push({
      key: `image ${n}`,
      sig: it.data.length,
      make: () => h("p", { class: "picture" }, picture(it.type, it.data) ?? `${it.type}, not shown`),
    });
  }
  const named = files(row, text);
  if (named.length > 0) {
    out.push({
      key: "files",
      sig: named.join("\n"),
      make: () =>
        h("p", { class: "path" }, "Files: ", ...named.flatMap((it) => [fileLink(it, context.openFile), " "])),
    });
  }
  const pictures = context.openFile ? named.filter((it) => PICTURE.test(it)) : [];
  for (const it of pictures.slice(0, MAX_PICTURES)) {
    out.push({ key: `preview ${it}`, sig: it, make: () => preview(context.session, it) });
  }
}

/** Text and pictures of a result. @param {unknown} content */
function contents(content) {
  /** @type {{ type: string, data: string }[]} */
  const images = [];
  if (!Array.isArray(content)) return { text: show(content ?? ""), images };
  const texts = [];
  for (const it of content) {
    const [said, data] = [inside(it, "text"), inside(it, "source", "data") ?? inside(it, "data")];
    if (typeof said === "string") texts.push(said);
    else if (inside(it, "type") === "image" && typeof data === "string")
      images.push({ type: String(inside(it, "source", "media_type") ?? inside(it, "mimeType") ?? ""), data });
    else texts.push(show(it));
  }
  return { text: texts.join("\n"), images };
}

/** Files that the call or its output names. @param {View.ToolRow} row @param {string} text */
function files(row, text) {
  const own = (row.item.class.paths ?? []).map((it) => it.path);
  const named = (text.slice(0, 20_000).match(PATH) ?? []).filter((it) => FILE.test(it));
  const pictures = own.filter((it) => PICTURE.test(it));
  return [...new Set([...pictures, ...named.filter((it) => !own.includes(it))])].slice(0, MAX_FILES);
}

/** @param {unknown} input */
function inputs(input) {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return block("plain", "Input", visible(show(input)));
  return h("div", null, ...Object.entries(input).map(([name, value]) => field(name, show(value))));
}

/** @param {string} name @param {string} raw */
function field(name, raw) {
  const value = visible(raw);
  const label = h("b", null, visible(name));
  if (value.length <= 120 && !value.includes("\n"))
    return h("p", { class: "field" }, label, " ", h("code", { dir: "auto" }, value));
  return h("div", { class: "field" }, label, output(raw, name));
}
