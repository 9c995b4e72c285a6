// Markdown as agents write it, in two steps: text to blocks (pure), blocks to DOM nodes.
//
// Only what is named here can come out: there is no HTML, a picture becomes a link to it, and a
// link goes to http(s) or is shown as the text it was. Blocks keep their source, so that a growing
// message redraws its last block and nothing else.

/**
 * @typedef {{ kind: "p" | "quote", text: string }
 *   | { kind: "heading", level: number, text: string }
 *   | { kind: "code", lang: string, text: string }
 *   | { kind: "rule" }
 *   | { kind: "list", ordered: boolean, start: number, items: { text: string, done?: boolean }[] }
 *   | { kind: "table", head: string[], align: string[], rows: string[][] }} Body
 * @typedef {Body & { source: string }} Block
 */

/** Lists and quotes inside of each other, and marks inside of marks; deeper is shown as text. */
const MAX_DEPTH = 8;
/** Marks of one paragraph that are looked at; the rest of a longer one is text. */
const MAX_INLINE = 20_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const BULLET = /^( {0,3})([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** @param {string} text @returns {Block[]} */
export function blocks(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  /** @type {Block[]} */
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const from = at;
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    /** @type {Body} */
    let body;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (fence) {
      const mark = fence[1] ?? "```";
      const inside = [];
      at += 1;
      while (at < lines.length && !closes(lines[at] ?? "", mark)) inside.push(lines[at++]);
      at += 1;
      body = { kind: "code", lang: fence[2] ?? "", text: inside.join("\n") };
    } else if (heading) {
      at += 1;
      body = { kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" };
    } else if (RULE.test(line)) {
      at += 1;
      body = { kind: "rule" };
    } else if (/^ {0,3}>/.test(line)) {
      const inside = [];
      while (at < lines.length && /^ {0,3}>/.test(lines[at] ?? ""))
        inside.push((lines[at++] ?? "").replace(/^ {0,3}> ?/, ""));
      body = { kind: "quote", text: inside.join("\n") };
    } else if (BULLET.test(line)) {
      const list = readList(lines, at);
      at = list.next;
      body = list.body;
    } else if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const head = cells(line);
      const align = cells(lines[at + 1] ?? "").map((it) =>
        it.endsWith(":") ? (it.startsWith(":") ? "center" : "right") : "",
      );
      const rows = [];
      at += 2;
      while (at < lines.length && (lines[at] ?? "").includes("|")) rows.push(cells(lines[at++] ?? ""));
      body = { kind: "table", head, align, rows };
    } else {
      const inside = [];
      while (at < lines.length && (at === from || !starts(lines, at))) inside.push(lines[at++]);
      body = { kind: "p", text: inside.join("\n") };
    }
    out.push({ ...body, source: lines.slice(from, at).join("\n") });
  }
  return out;
}

/** True if a paragraph ends before this line. @param {string[]} lines @param {number} at */
function starts(lines, at) {
  const line = lines[at] ?? "";
  return (
    line.trim() === "" ||
    FENCE.test(line) ||
    HEADING.test(line) ||
    RULE.test(line) ||
    /^ {0,3}>/.test(line) ||
    /^ {0,3}(?:[-*+]|1[.)])\s+\S/.test(line)
  );
}

/** @param {string} line @param {string} mark */
function closes(line, mark) {
  const it = line.trim();
  return it.length >= mark.length && it === (mark[0] ?? "`").repeat(it.length);
}

/** @param {string[]} lines @param {number} at @returns {{ body: Body, next: number }} */
function readList(lines, at) {
  const first = BULLET.exec(lines[at] ?? "");
  const mark = first?.[2] ?? "-";
  const ordered = /\d/.test(mark);
  /** @type {{ text: string, done?: boolean }[]} */
  const items = [];
  while (at < lines.length) {
    const bullet = BULLET.exec(lines[at] ?? "");
    if (!bullet || /\d/.test(bullet[2] ?? "") !== ordered || RULE.test(lines[at] ?? "")) break;
    const indent = (bullet[1]?.length ?? 0) + (bullet[2]?.length ?? 1) + 1;
    const inside = [bullet[3] ?? ""];
    at += 1;
    while (at < lines.length) {
      const line = lines[at] ?? "";
      const isBlank = line.trim() === "";
      const next = lines[at + 1] ?? "";
      const depth = line.length - line.trimStart().length;
      if (isBlank && (next.trim() === "" || next.length - next.trimStart().length < Math.min(indent, 2))) break;
      if (!isBlank && depth < Math.min(indent, 2)) break;
      inside.push(isBlank ? "" : line.slice(Math.min(indent, depth)));
      at += 1;
    }
    const task = /^\[([ xX])\]\s+/.exec(inside[0] ?? "");
    if (task) inside[0] = (inside[0] ?? "").slice(task[0].length);
    items.push(task ? { text: inside.join("\n"), done: task[1] !== " " } : { text: inside.join("\n") });
    // One empty line between two entries does not end the list.
    if ((lines[at] ?? "x").trim() === "" && BULLET.test(lines[at + 1] ?? "")) at += 1;
  }
  return { body: { kind: "list", ordered, start: ordered ? Number.parseInt(mark, 10) : 1, items }, next: at };
}

/** @param {string} line */
function cells(line) {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((it) => it.trim().replaceAll("\\|", "|"));
}

/**
 * @typedef {{ kind: "text" | "code", text: string } | { kind: "br" }
 *   | { kind: "em" | "strong" | "del", inside: Inline[] }
 *   | { kind: "link", href: string, inside: Inline[] }} Inline
 */

// One alternative per mark; none can repeat inside of another, so a long line takes linear time.
const INLINE = new RegExp(
  [
    "(?<escape>\\\\[!-/:-@\\[-`{-~])",
    "(?<code>(?<ticks>`+)(?!`)(?<inside>[^`]|[^`][^]{0,2000}?[^`])\\k<ticks>(?!`))",
    '(?<image>!\\[(?<alt>[^\\[\\]\\n]{0,500})\\]\\((?<src>[^()\\s]{1,2000}(?:\\([^()\\s]{0,500}\\))?)(?:\\s+"[^"\\n]{0,500}")?\\))',
    '(?<link>\\[(?<label>(?:[^\\[\\]]|\\[[^\\[\\]]{0,300}\\]){1,1000})\\]\\((?<href>[^()\\s]{1,2000}(?:\\([^()\\s]{0,500}\\))?)(?:\\s+"[^"\\n]{0,500}")?\\))',
    "(?<auto><(?<address>https?://[^<>\\s]{1,2000})>)",
    "(?<bare>https?://[^\\s<>\"'`\\])]{1,2000})",
    "(?<strong>(?<two>\\*\\*|__)(?=\\S)(?<bold>[^]{0,2000}?\\S)\\k<two>)",
    "(?<em>(?<one>\\*|(?<![\\p{L}\\p{N}_])_)(?=[^\\s*_])(?<slant>[^*_\\n]{0,1000}?[^\\s*_])\\k<one>(?![\\p{L}\\p{N}]))",
    "(?<del>~~(?=\\S)(?<gone>[^~\\n]{1,1000}?)~~)",
    "(?<br> {2,}\\n|\\\\\\n)",
  ].join("|"),
  "gu",
);

/** @param {string} text @param {number} depth @returns {Inline[]} */
export function inline(text, depth = 0) {
  if (depth > MAX_DEPTH || text.length > MAX_INLINE) return [{ kind: "text", text }];
  /** @type {Inline[]} */
  const out = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const from = match.index;
    if (from > at) out.push({ kind: "text", text: text.slice(at, from) });
    at = from + match[0].length;
    out.push(...mark(match[0], match.groups ?? {}, depth));
  }
  if (at < text.length) out.push({ kind: "text", text: text.slice(at) });
  return out;
}

/** @param {string} all @param {Record<string, string>} it @param {number} depth @returns {Inline[]} */
function mark(all, it, depth) {
  if (it.escape) return [{ kind: "text", text: all.slice(1) }];
  if (it.code) return [{ kind: "code", text: (it.inside ?? "").replace(/^ (.*[^ ].*) $/, "$1") }];
  if (it.br) return [{ kind: "br" }];
  if (it.strong) return [{ kind: "strong", inside: inline(it.bold ?? "", depth + 1) }];
  if (it.em) return [{ kind: "em", inside: inline(it.slant ?? "", depth + 1) }];
  if (it.del) return [{ kind: "del", inside: inline(it.gone ?? "", depth + 1) }];
  if (it.bare) {
    // The end of a sentence is no part of an address.
    const address = it.bare.replace(/[.,;:!?*_~]+$/, "");
    /** @type {Inline[]} */
    const link = web(address)
      ? [{ kind: "link", href: address, inside: [{ kind: "text", text: address }] }]
      : [{ kind: "text", text: address }];
    return address === it.bare ? link : [...link, { kind: "text", text: it.bare.slice(address.length) }];
  }
  const href = it.href ?? it.src ?? it.address ?? "";
  if (!web(href)) return [{ kind: "text", text: all }];
  if (it.link) return [{ kind: "link", href, inside: unlinked(inline(it.label ?? "", depth + 1)) }];
  return [{ kind: "link", href, inside: [{ kind: "text", text: it.alt || href }] }];
}

/** A link has no link inside. @param {Inline[]} parts @returns {Inline[]} */
function unlinked(parts) {
  return parts.flatMap((it) =>
    it.kind === "link" ? unlinked(it.inside) : "inside" in it ? [{ ...it, inside: unlinked(it.inside) }] : [it],
  );
}

/** True for an address that a link may have. @param {string} href */
export function web(href) {
  try {
    const url = new URL(href);
    return (
      (url.protocol === "https:" || url.protocol === "http:") &&
      url.username === "" &&
      url.password === "" &&
      /^https?:\/\//i.test(href)
    );
  } catch {
    return false;
  }
}

/** The node of a block. @param {Block} block @param {number} depth @returns {HTMLElement} */
export function render(block, depth = 0) {
  switch (block.kind) {
    case "heading":
      // The page's own headings come first.
      return filled(make(/** @type {"h3"} */ (`h${Math.min(6, block.level + 2)}`)), block.text);
    case "code": {
      const pre = make("pre");
      pre.tabIndex = 0;
      const code = make("code");
      code.textContent = block.text;
      if (block.lang) pre.dataset.lang = block.lang.slice(0, 20);
      pre.append(code);
      return pre;
    }
    case "rule":
      return make("hr");
    case "quote": {
      const quote = make("blockquote");
      nest(quote, block.text, depth);
      return quote;
    }
    case "list": {
      const list = make(block.ordered ? "ol" : "ul");
      if (block.ordered && block.start !== 1) /** @type {HTMLOListElement} */ (list).start = block.start;
      for (const item of block.items) {
        const li = make("li");
        nest(li, item.text, depth);
        if (item.done !== undefined) li.className = item.done ? "task-done" : "task-open";
        list.append(li);
      }
      return list;
    }
    case "table":
      return table(block);
    default:
      return filled(make("p"), block.text);
  }
}

/** @param {HTMLElement} node @param {string} text @param {number} depth */
function nest(node, text, depth) {
  const inside = depth < MAX_DEPTH ? blocks(text) : [];
  const [only] = inside;
  if (inside.length === 0) node.append(text);
  else if (inside.length === 1 && only?.kind === "p") filled(node, only.text);
  else {
    for (const [n, it] of inside.entries()) {
      // A tight entry: its words, then the list below them.
      if (n === 0 && it.kind === "p" && inside[1]?.kind === "list") filled(node, it.text);
      else node.append(render(it, depth + 1));
    }
  }
}

/** @param {Block & { kind: "table" }} block */
function table(block) {
  const row = (/** @type {"th" | "td"} */ name, /** @type {string[]} */ texts) => {
    const tr = make("tr");
    for (let n = 0; n < block.head.length; n += 1) {
      const cell = filled(make(name), texts[n] ?? "");
      if (block.align[n]) cell.className = block.align[n] ?? "";
      tr.append(cell);
    }
    return tr;
  };
  const whole = make("div");
  const inner = make("table");
  const head = make("thead");
  const body = make("tbody");
  whole.className = "table";
  head.append(row("th", block.head));
  for (const it of block.rows) body.append(row("td", it));
  inner.append(head, body);
  whole.append(inner);
  return whole;
}

/** @template {HTMLElement} T @param {T} node @param {string} text @returns {T} */
function filled(node, text) {
  put(node, inline(text));
  return node;
}

/** @param {HTMLElement} node @param {Inline[]} parts */
function put(node, parts) {
  for (const it of parts) {
    switch (it.kind) {
      case "text":
        node.append(it.text);
        break;
      case "br":
        node.append(make("br"));
        break;
      case "code": {
        const code = make("code");
        code.textContent = it.text;
        node.append(code);
        break;
      }
      case "link": {
        const link = make("a");
        link.href = it.href;
        link.rel = "noopener noreferrer";
        link.target = "_blank";
        put(link, it.inside);
        node.append(link);
        break;
      }
      default: {
        const inner = make(it.kind);
        put(inner, it.inside);
        node.append(inner);
      }
    }
  }
}

/** @template {keyof HTMLElementTagNameMap} K @param {K} name */
function make(name) {
  return document.createElement(name);
}
