// The feed: a list of any length of which only what is near the view is in the document.
//
// Heights are guessed until a row was shown once, then known. Whatever changes, the row somebody
// reads stays where it is; whoever is at the end stays at the end.

import { viewOf } from "./cards.js";
import { opensItself } from "./cards/tool.js";
import { h } from "./dom.js";
import { flat } from "./fold.js";

/** Pixels above and below the view that are kept in the document. */
const MARGIN = 700;
/** Closer to the end than this counts as being at the end. */
const AT_END = 48;

/** @typedef {import("./cards.js").View} CardView */
/** @typedef {import("./cards.js").Context} Context */

/** Heights before a row was seen. @type {Record<View.Row["kind"], number>} */
const GUESS = {
  run: 48,
  message: 120,
  reasoning: 34,
  tool: 46,
  plan: 140,
  compaction: 34,
  other: 34,
  notice: 34,
  ask: 180,
  end: 44,
  pending: 80,
  fork: 44,
};

export class Feed {
  #before = h("div", { class: "pad" });
  #rows = h("div", { class: "rows", role: "feed", "aria-label": "Conversation" });
  #after = h("div", { class: "pad" });
  /** @type {Map<number, CardView>} */
  #views = new Map();
  /** @type {View.Row[]} */
  #flat = [];
  #tops = new Float64Array(1);
  /** @type {Map<number, boolean>} */
  #open = new Map();
  #isStale = true;
  #isScheduled = false;
  #isAtEnd = true;
  /** Somebody has scrolled away from the end, and not only opened a card. */
  #isScrolled = false;
  #lastTop = 0;
  /** The heights of the view and of what is in it when it was drawn last. */
  #lastHeights = [0, 0];
  /** @type {(() => View.Row[][]) | undefined} */
  #parts;
  /** @type {Context | undefined} */
  #context;
  #observer = new ResizeObserver(() => this.draw());
  /** Called when somebody leaves the end, or comes back to it. */
  onEnd = (/** @type {boolean} */ _isAtEnd) => {};

  /** @param {HTMLElement} scroller */
  constructor(scroller) {
    this.scroller = scroller;
    scroller.append(this.#before, this.#rows, this.#after);
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // Someone who expands a card is reading that card.
    scroller.addEventListener(
      "click",
      (it) => it.target instanceof Element && it.target.matches(".more") && this.#atEnd(false),
      { capture: true },
    );
    this.#observer.observe(scroller);
  }

  /** Shows something else, from its end: rows in several lists, one after the other. @param {(() => View.Row[][]) | undefined} parts @param {Omit<Context, "isOpen" | "setOpen"> | undefined} context */
  show(parts, context) {
    for (const view of this.#views.values()) this.#observer.unobserve(view.node);
    this.#views.clear();
    this.#rows.replaceChildren();
    this.#open.clear();
    this.#parts = parts;
    this.#context = context && {
      ...context,
      isOpen: (row) => this.#isOpen(row),
      setOpen: (row, isOpen) => this.#setOpen(row, isOpen),
    };
    this.#isScrolled = false;
    this.#atEnd(true);
    this.changed();
  }

  /** Something new has to be seen: it is shown, unless somebody has scrolled away by hand. */
  attend() {
    if (!this.#isScrolled) this.toEnd();
  }

  /** The story has grown. */
  changed() {
    this.#isStale = true;
    this.draw();
  }

  /** Draws with the next frame. */
  draw() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#draw();
    });
  }

  toEnd() {
    this.#isScrolled = false;
    this.#atEnd(true);
    this.draw();
  }

  toStart() {
    this.#isScrolled = true;
    this.#atEnd(false);
    this.scroller.scrollTop = this.#lastTop = 0;
    this.draw();
  }

  /** @param {View.Row} row */
  reveal(row) {
    for (let it = row.parent; it; it = it.parent) this.#open.set(it.key, true);
    this.#isScrolled = true;
    this.#atEnd(false);
    this.#isStale = true;
    this.#refresh();
    const at = this.#flat.indexOf(row);
    if (at < 0) return;
    this.scroller.scrollTop = (this.#tops[at] ?? 0) - 60;
    this.#lastTop = this.scroller.scrollTop;
    this.#draw();
    this.#views.get(row.key)?.node.scrollIntoView({ block: "center" });
  }

  /** Cards whose time goes on. */
  tick() {
    for (const view of this.#views.values()) view.tick?.();
  }

  /** @param {View.Row} row */
  #isOpen(row) {
    return this.#open.get(row.key) ?? (row.kind === "tool" && opensItself(row));
  }

  /** Somebody has opened or closed a card. @param {View.Row} row @param {boolean} isOpen */
  #setOpen(row, isOpen) {
    if (this.#isOpen(row) === isOpen) return;
    this.#open.set(row.key, isOpen);
    if (isOpen) this.#atEnd(false);
    this.#views.get(row.key)?.update();
    this.changed();
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const rest = scrollHeight - scrollTop - clientHeight;
    // If a card changed its own height, it was the browser that scrolled, not the user.
    const isByHand = this.#lastHeights[0] === clientHeight && this.#lastHeights[1] === scrollHeight;
    if (isByHand && scrollTop < this.#lastTop - 1 && rest > 2) {
      this.#isScrolled = true;
      this.#atEnd(false);
    } else if (rest < AT_END && scrollTop > this.#lastTop) {
      this.#isScrolled = false;
      this.#atEnd(true);
    }
    this.#lastTop = scrollTop;
    this.draw();
  }

  /** @param {boolean} isAtEnd */
  #atEnd(isAtEnd) {
    if (this.#isAtEnd === isAtEnd) return;
    this.#isAtEnd = isAtEnd;
    this.onEnd(isAtEnd);
  }

  #refresh() {
    if (this.#isStale) {
      this.#flat = [];
      for (const rows of this.#parts?.() ?? []) flat(rows, (row) => this.#isOpen(row), this.#flat);
    }
    this.#isStale = false;
    const n = this.#flat.length;
    if (this.#tops.length !== n + 1) this.#tops = new Float64Array(n + 1);
    let top = 0;
    for (let at = 0; at < n; at += 1) {
      this.#tops[at] = top;
      const row = this.#flat[at];
      if (row) top += row.height || GUESS[row.kind];
    }
    this.#tops[n] = top;
  }

  /** The row at this height. @param {number} y */
  #at(y) {
    let low = 0;
    let high = Math.max(0, this.#flat.length - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#tops[middle] ?? 0) <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #draw() {
    if (!this.#parts) {
      this.#before.style.height = this.#after.style.height = "0";
      return;
    }
    const view = this.scroller;
    // The row at the upper edge, and how far it is from there: it will not move.
    const anchorRow = this.#flat[this.#at(view.scrollTop)];
    const anchorOff = anchorRow ? (this.#tops[this.#at(view.scrollTop)] ?? 0) - view.scrollTop : 0;
    this.#refresh();
    let top = view.scrollTop;
    const anchored = () => {
      if (this.#isAtEnd) return Math.max(0, (this.#tops[this.#flat.length] ?? 0) - view.clientHeight);
      const at = anchorRow ? this.#flat.indexOf(anchorRow) : -1;
      return at < 0 ? top : (this.#tops[at] ?? 0) - anchorOff;
    };
    // Guessed heights become known ones by being drawn; two or three rounds are enough.
    for (let round = 0; round < 4; round += 1) {
      top = anchored();
      const first = this.#at(top - MARGIN);
      const last = this.#at(top + view.clientHeight + MARGIN);
      this.#place(first, last);
      if (!this.#measure(first, last)) break;
      this.#refresh();
    }
    top = anchored();
    if (this.#isAtEnd) view.scrollTop = view.scrollHeight;
    else if (Math.abs(view.scrollTop - top) > 0.5) view.scrollTop = top;
    this.#lastTop = view.scrollTop;
    this.#lastHeights = [view.clientHeight, view.scrollHeight];
    // If everything is visible, so is the end.
    if (view.scrollHeight - view.clientHeight < 2) this.#atEnd(true);
  }

  /** Puts these rows, and no others, into the document. @param {number} first @param {number} last */
  #place(first, last) {
    const wanted = new Set();
    /** @type {Element | null} */
    let at = this.#rows.firstElementChild;
    const n = this.#flat.length;
    for (let i = first; i <= last && i < n; i += 1) {
      const row = this.#flat[i];
      if (row) wanted.add(row.key);
    }
    for (const [key, view] of this.#views) {
      if (wanted.has(key)) continue;
      this.#observer.unobserve(view.node);
      if (view.node === at) at = at.nextElementSibling;
      view.node.remove();
      // What somebody has begun to answer is not thrown away.
      if (!view.isKept) this.#views.delete(key);
    }
    for (let i = first; i <= last && i < n; i += 1) {
      const row = this.#flat[i];
      if (!row || !this.#context) continue;
      let view = this.#views.get(row.key);
      if (!view) {
        view = viewOf(row, this.#context);
        view.node.classList.add("row");
        view.node.style.setProperty("--depth", String(row.depth));
        if (row.depth > 0) view.node.classList.add("inside");
        if (row.isPast) view.node.classList.add("past");
        this.#views.set(row.key, view);
        view.update();
        view.seen = row.version;
      } else if (view.seen !== row.version) {
        view.update();
        view.seen = row.version;
      }
      if (view.node.getAttribute("aria-posinset") !== `${i + 1}`) view.node.setAttribute("aria-posinset", `${i + 1}`);
      if (view.node.getAttribute("aria-setsize") !== `${n}`) view.node.setAttribute("aria-setsize", `${n}`);
      if (view.node === at) at = at.nextElementSibling;
      else {
        this.#rows.insertBefore(view.node, at);
        this.#observer.observe(view.node);
      }
    }
    this.#before.style.height = `${this.#tops[first] ?? 0}px`;
    this.#after.style.height = `${(this.#tops[n] ?? 0) - (this.#tops[Math.min(n, last + 1)] ?? 0)}px`;
  }

  /** True if a height was not what it was thought to be. @param {number} first @param {number} last */
  #measure(first, last) {
    let isNew = false;
    for (let i = first; i <= last && i < this.#flat.length; i += 1) {
      const row = this.#flat[i];
      const view = row && this.#views.get(row.key);
      if (!row || !view) continue;
      // A row of no height would be guessed again for ever.
      const height = Math.max(0.01, view.node.getBoundingClientRect().height);
      if (Math.abs(height - row.height) > 0.25) {
        row.height = height;
        isNew = true;
      }
    }
    return isNew;
  }
}
