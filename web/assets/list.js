// The list of sessions: newest first, searched on the server, kept live by the socket.

import { get, sentence } from "./api.js";
import { byId, h, patch } from "./dom.js";
import { may } from "./me.js";
import { ago, engineName, visible } from "./words.js";

/** Sessions of one request. */
const PAGE = 100;
/** Milliseconds without a key before a search starts. */
const PAUSE = 150;

/** @param {Wire.Session["state"]} state */
function stateName(state) {
  if (state === "waiting") return may("settleAsk") ? "needs your input" : "waiting for an answer";
  return state === "idle" ? "" : state;
}

export class SessionList {
  /** @type {Map<string, Wire.Session>} */
  #sessions = new Map();
  /** @type {string | null} */
  #next = null;
  #text = "";
  #load = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #node = byId("list");
  #note = byId("list-note");
  #search = /** @type {HTMLInputElement} */ (byId("search"));
  #isFetching = false;
  #current = "";
  #store;

  /** @param {{ version: number, reply: (session: Wire.Session, askedAt: number) => Wire.Session }} store */
  constructor(store) {
    this.#store = store;
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.refresh(), PAUSE);
    });
    byId("list-scroll").addEventListener("scroll", () => void this.#more(), { passive: true });
  }

  /** Asks the server for the first page. */
  async refresh() {
    this.#text = this.#search.value.trim();
    const load = (this.#load += 1);
    const askedAt = this.#store.version;
    try {
      const page = await this.#page(null);
      // A later search was faster.
      if (load !== this.#load) return;
      this.#sessions = new Map(page.sessions.map((it) => [it.id, this.#store.reply(it, askedAt)]));
      this.#next = page.next;
      this.draw();
    } catch {
      // The connection says what is wrong, and the next one asks again.
    }
  }

  /** Clears the list; replies that are still pending are ignored. */
  clear() {
    this.#load += 1;
    this.#search.value = "";
    this.#sessions.clear();
    this.draw();
  }

  /** A session is new, or changed. @param {Wire.Session} session */
  put(session) {
    // What a search did not find it does not show; the server knows why.
    if (this.#text !== "" && !this.#sessions.has(session.id)) return;
    this.#sessions.set(session.id, session);
    this.draw();
  }

  /** This one is open. @param {string} id */
  mark(id) {
    this.#current = id;
    this.draw();
  }

  focusSearch() {
    this.#search.focus();
    this.#search.select();
  }

  /** Empties the search; false if it was empty. */
  clearSearch() {
    if (this.#search.value === "") return false;
    this.#search.value = "";
    void this.refresh();
    return true;
  }

  /** Moves the focus along the list. @param {1 | -1} step */
  move(step) {
    const links = [...this.#node.querySelectorAll("a")];
    const at = links.findIndex((it) => it === document.activeElement);
    const from = at >= 0 ? at : links.findIndex((it) => it.getAttribute("aria-current") === "page");
    const to = links[from < 0 ? 0 : Math.min(links.length - 1, Math.max(0, from + step))];
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  }

  draw() {
    const now = Date.now();
    const sorted = [...this.#sessions.values()].sort((a, b) =>
      a.active_at < b.active_at ? 1 : a.active_at > b.active_at ? -1 : 0,
    );
    patch(
      this.#node,
      sorted.map((it) => {
        const isHere = it.id === this.#current;
        const when = ago(it.active_at, now);
        const sig = [it.title, stateName(it.state), it.engine, it.cwd, when, it.queue, isHere].join("\n");
        return {
          key: it.id,
          sig,
          make: () => this.#entry(it, when, isHere),
          update: (node) => this.#update(node, it, when, isHere),
        };
      }),
    );
    this.#note.hidden = sorted.length > 0;
    this.#note.textContent = this.#text ? `No session matches “${this.#text}”.` : "No sessions yet.";
  }

  /** @param {Wire.Session} it @param {string} when @param {boolean} isHere */
  #entry(it, when, isHere) {
    const node = h(
      "li",
      null,
      h("a", { href: `#/s/${encodeURIComponent(it.id)}` }, h("b", { dir: "auto" }), h("small", null)),
    );
    this.#update(node, it, when, isHere);
    return node;
  }

  /** In place, so that whoever has the focus keeps it. @param {Element} node @param {Wire.Session} it @param {string} when @param {boolean} isHere */
  #update(node, it, when, isHere) {
    const link = node.firstElementChild;
    const [title, facts] = link?.children ?? [];
    if (!link || !title || !facts) return;
    link.className = it.state;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    title.textContent = visible(it.title || it.native || it.id);
    link.setAttribute("title", [title.textContent, it.cwd && visible(it.cwd)].filter(Boolean).join("\n"));
    const where = it.cwd?.split("/").filter(Boolean).at(-1);
    const state = stateName(it.state);
    const queue = it.queue > 0 ? `${it.queue} queued` : "";
    facts.replaceChildren(
      state ? h("span", { class: "state" }, state) : "",
      [queue, engineName(it.engine), where && visible(where), when].filter(Boolean).join(" · "),
    );
  }

  async #more() {
    const view = byId("list-scroll");
    if (this.#isFetching || this.#next === null || view.scrollHeight - view.scrollTop - view.clientHeight > 400)
      return;
    this.#isFetching = true;
    const load = this.#load;
    const askedAt = this.#store.version;
    try {
      const page = await this.#page(this.#next);
      if (load !== this.#load) return;
      for (const it of page.sessions)
        if (!this.#sessions.has(it.id)) this.#sessions.set(it.id, this.#store.reply(it, askedAt));
      this.#next = page.next;
      this.draw();
    } catch (error) {
      this.#note.hidden = false;
      this.#note.textContent = sentence(error);
    } finally {
      this.#isFetching = false;
    }
  }

  /** @param {string | null} after @returns {Promise<{ sessions: Wire.Session[], next: string | null }>} */
  #page(after) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (this.#text) query.set("text", this.#text);
    if (after) query.set("after", after);
    return get(`/api/sessions?${query}`);
  }
}
