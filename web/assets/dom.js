// Makes DOM nodes, and changes as few of them as possible. Text is only ever a text node.

/** @typedef {Node | string | number | false | null | undefined} Child */
/** @typedef {Record<string, string | number | boolean | undefined | null | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. Attributes that start with `on` are listeners; `true` is an empty attribute.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Attributes | null} attributes
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = String(value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  add(node, ...children);
  return node;
}

/** @param {Element} node @param {Child[]} children */
export function add(node, ...children) {
  for (const it of children) {
    if (it === false || it === null || it === undefined) continue;
    node.append(typeof it === "number" ? String(it) : it);
  }
}

/** A button that does one thing. @param {string} label @param {() => void} act @param {Attributes} attributes */
export function button(label, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, ...attributes }, label);
}

/** Words with `names` in backticks, as the server and the command line write them. @param {string} text @returns {(string | HTMLElement)[]} */
export function coded(text) {
  return text.split(/`([^`\n]+)`/).map((it, n) => (n % 2 === 1 ? h("code", null, it) : it));
}

/** The element with this id; the page has it. @param {string} id */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`no element \`${id}\``);
  return node;
}

/**
 * A part of a card: made anew when its signature changes, kept as it is otherwise, so that what
 * somebody selected or opened stays.
 * @typedef {{ key: string, sig: string | number, make: () => Element, update?: (node: Element) => void }} Piece
 */

/** @type {WeakMap<Element, { key: string, sig: string | number }>} */
const made = new WeakMap();

/** @param {Element} parent @param {Piece[]} pieces */
export function patch(parent, pieces) {
  /** @type {Map<string, Element> | undefined} */
  let byKey;
  const elsewhere = (/** @type {string} */ key) => {
    byKey ??= new Map([...parent.children].map((it) => [made.get(it)?.key ?? "", it]));
    return byKey.get(key);
  };
  let at = parent.firstElementChild;
  for (const piece of pieces) {
    let node = at && made.get(at)?.key === piece.key ? at : elsewhere(piece.key);
    if (node && made.get(node)?.sig !== piece.sig) {
      if (piece.update) piece.update(node);
      else {
        const fresh = piece.make();
        node.replaceWith(fresh);
        if (node === at) at = fresh;
        node = fresh;
      }
    }
    node ??= piece.make();
    made.set(node, { key: piece.key, sig: piece.sig });
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
  while (at) {
    const next = at.nextElementSibling;
    at.remove();
    at = next;
  }
}

/** What each kind of tool looks like, as paths on a field of 16 × 16. @type {Record<string, string>} */
const ICONS = {
  shell: "M2.5 4l4 4-4 4M8.5 12.5h5",
  read: "M3.5 1.8h5.5l3.5 3.5v8.9h-9zM6 8h4M6 11h4",
  edit: "M2.5 13.5l.8-3.3 7.7-7.7 2.5 2.5-7.7 7.7z",
  write: "M3.5 1.8h5.5l3.5 3.5v8.9h-9zM8 7v5M5.5 9.5h5",
  delete: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9",
  move: "M2 8h11.5M9 3.5l4.5 4.5L9 12.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.3l3.2 3.2",
  fetch: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8M2 8h12M8 2c-4 4-4 8 0 12 4-4 4-8 0-12",
  mcp: "M5.5 1.8v3M10.5 1.8v3M3.5 4.8h9v2.7a4.5 4.5 0 0 1-9 0zM8 12v2.5",
  task: "M4 2v12M4 9c0-3 8-1 8-4.5M12 4.5a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6",
  todo: "M2 4l1.3 1.3L5.5 3M2 11l1.3 1.3L5.5 10M8.5 4.5H14M8.5 11.5H14",
  ask: "M5 5.5a3 3 0 1 1 4.5 2.6C8.4 8.7 8 9.2 8 10.2M8 13.3v.1",
  other: "M8 2l5.2 3v6L8 14l-5.2-3V5zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4",
  back: "M10 3L5 8l5 5",
  down: "M8 3v10M4 9l4 4 4-4",
  play: "M5 3.2l7.5 4.8L5 12.8z",
  send: "M2.5 8L13.5 3l-3 10.5L8 9.5z",
};

/** @param {string} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name === "web_search" ? "fetch" : name] ?? ICONS.other ?? "");
  svg.append(path);
  return svg;
}

/** Pictures a browser shows and does not run, by how their base64 begins. @type {Record<string, string>} */
const PICTURES = { "image/png": "iVBORw0KGgo", "image/jpeg": "/9j/", "image/gif": "R0lGOD", "image/webp": "UklGR" };

/** A picture out of base64, if it is one. @param {string} type @param {string} data */
export function picture(type, data) {
  const magic = PICTURES[type];
  if (!magic || !data.startsWith(magic)) return undefined;
  try {
    const bytes = Uint8Array.from(atob(data), (it) => it.charCodeAt(0));
    return pictureOf(new Blob([bytes], { type }), "Picture");
  } catch {
    return undefined;
  }
}

/** @param {Blob} blob @param {string} alt */
export function pictureOf(blob, alt) {
  const url = URL.createObjectURL(blob);
  const done = () => URL.revokeObjectURL(url);
  return h("img", { src: url, alt, onload: done, onerror: done });
}
