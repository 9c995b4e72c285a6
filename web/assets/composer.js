// The prompt box, with what a run is started with: agent, model, permissions, directory.

import { post, request, sentence, session_path } from "./api.js";
import { add, button, by_id, h, icon } from "./dom.js";
import { engine_name, first_line, visible } from "./words.js";

const KEY = "linkspan.choices";
const PERMISSIONS = [
  ["", "As configured"],
  ["ask", "Ask me first"],
  ["accept-edits", "Accept edits, ask for the rest"],
  ["plan", "Plan only"],
  ["deny", "Deny what would be asked"],
  ["listed", "Run allowed tools, deny the rest"],
  ["allow", "Allow everything"],
];

/** @typedef {{ kind: "new" } | { kind: "session", session: Wire.Session } | { kind: "fork", session: Wire.Session }} Target */

export class Composer {
  #node = by_id("composer");
  #text = h("textarea", { rows: 1, "aria-label": "Prompt", dir: "auto", enterkeyhint: "send" });
  #send = h("button", { type: "button", class: "primary send", "aria-label": "Send" }, icon("send"));
  #problem = h("p", { class: "problem", role: "alert", hidden: true });
  #queue = h("ol", { class: "queue", "aria-label": "Waiting prompts", hidden: true });
  #engine = h("select", { "aria-label": "Agent", title: "Which agent" });
  #model = field("Model", "the agent's own choice");
  #permissions = h(
    "select",
    { "aria-label": "Permissions", title: "What the agent may do without being asked" },
    ...PERMISSIONS.map(([value, label]) => h("option", { value }, label)),
  );
  #cwd = field("Directory", "where the server was started");
  #resume = field("Native id of a session to go on with", "an agent's own session id");
  #options = h("div", { class: "options" });
  #details = h("div", { class: "details", hidden: true });
  #more = button("More", () => this.#unfold(this.#details.hidden === true), {
    class: "chip",
    "aria-expanded": "false",
    title: "Model, directory, and which session to go on with",
  });
  #hint = h("p", { class: "hint" });
  /** @type {Target} */
  #target = { kind: "new" };
  #aimed = "";
  #has_agent = true;
  #is_sending = false;
  /** A prompt was taken. */
  onsent = (/** @type {string} */ _session) => {};
  oncancel_fork = () => {};
  /** Another agent was chosen. */
  onpick = (/** @type {string} */ _engine) => {};

  constructor() {
    const bar = h("div", { class: "bar" }, this.#options, this.#send);
    const box = h("div", { class: "prompt-box" }, this.#text, this.#details, bar);
    add(this.#node, this.#queue, this.#hint, box, this.#problem);
    // Wherever the box is hit, somebody wants to write.
    box.addEventListener("click", (it) => (it.target === box || it.target === this.#options) && this.focus());
    this.#send.addEventListener("click", () => void this.send());
    this.#engine.addEventListener("change", () => this.onpick(this.#engine.value));
    this.#text.addEventListener("input", () => this.#grow());
    this.#text.addEventListener("keydown", (it) => {
      if (it.key !== "Enter" || it.isComposing || (it.shiftKey && !it.ctrlKey)) return;
      it.preventDefault();
      void this.send();
    });
    const saved = choices();
    this.#model.value = saved.model ?? "";
    this.#cwd.value = saved.cwd ?? "";
    // Somebody is here to answer.
    this.#permissions.value = saved.permissions ?? "ask";
  }

  /** @param {Wire.Engines} all */
  engines(all) {
    const saved = choices().engine;
    const installed = all.engines.filter((it) => it.installed);
    const agents = installed.map((it) => h("option", { value: it.name }, `${it.name} ${it.version ?? ""}`.trimEnd()));
    const replays = all.replays.map((it) => h("option", { value: it.name }, it.name));
    this.#engine.replaceChildren(
      ...(agents.length > 0 ? [h("optgroup", { label: "Agents" }, ...agents)] : []),
      h("optgroup", { label: "Recordings" }, ...replays),
    );
    const names = [...agents, ...replays].map((it) => it.value);
    // A prompt to a recording changes nothing: whoever has no agent is shown recordings, and no box to write in.
    this.#has_agent = installed.length > 0;
    this.#node.hidden = !this.#has_agent && this.#target.kind === "new";
    const wanted = saved && names.includes(saved) ? saved : (installed.find((it) => it.default)?.name ?? names[0]);
    if (wanted !== undefined) this.#engine.value = wanted;
  }

  /** @param {string} name */
  pick(name) {
    this.#engine.value = name;
    this.onpick(name);
    this.focus();
  }

  /** The agent that is chosen. */
  get engine() {
    return this.#engine.value;
  }

  /** @param {Target} target */
  aim(target) {
    this.#target = target;
    this.#node.hidden = !this.#has_agent && target.kind === "new";
    this.#placeholder();
    // News of the session that is open change nothing else: somebody may be in the middle of a choice.
    const aimed = `${target.kind} ${target.kind === "new" ? "" : target.session.id}`;
    if (aimed === this.#aimed) return;
    this.#aimed = aimed;
    this.#problem.hidden = true;
    this.#unfold(false);
    this.#options.replaceChildren();
    this.#details.replaceChildren();
    this.#hint.replaceChildren();
    this.#hint.hidden = target.kind !== "fork";
    const is_new = target.kind === "new";
    add(this.#options, is_new && this.#engine, this.#permissions, this.#more);
    add(this.#details, labelled("Model", this.#model));
    if (is_new) add(this.#details, labelled("Directory", this.#cwd), labelled("Go on with", this.#resume));
    if (target.kind === "fork")
      add(
        this.#hint,
        "The next prompt starts a new session that begins with what this one holds. ",
        button("Not now", () => this.oncancel_fork(), { class: "text" }),
      );
  }

  focus() {
    this.#text.focus();
  }

  /** @param {{ number: number, prompt: string }[]} waiting @param {string} session @param {() => void} again */
  queue(waiting, session, again) {
    this.#queue.hidden = waiting.length === 0;
    this.#queue.replaceChildren(
      ...waiting.map((it) => {
        const take_back = async () => {
          try {
            await request(`${session_path(session)}/queue/${it.number}`, { method: "DELETE" });
            if (this.#text.value.trim() === "") this.#text.value = it.prompt;
            this.#grow();
            this.focus();
          } catch (error) {
            this.#say(sentence(error));
          }
          again();
        };
        return h(
          "li",
          null,
          h("span", { dir: "auto" }, visible(first_line(it.prompt))),
          button("Take back", () => void take_back(), { class: "text" }),
        );
      }),
    );
  }

  /** Sends what is written; or starts `engine` with `prompt` right away. @param {{ engine: string, prompt: string }} [now] */
  async send(now) {
    const prompt = now?.prompt ?? this.#text.value;
    if (prompt.trim() === "" || this.#is_sending) return;
    this.#is_sending = true;
    this.#send.disabled = true;
    this.#problem.hidden = true;
    try {
      const answer = await post("/api/runs", { prompt, ...this.#choices(), ...(now ? { engine: now.engine } : {}) });
      if (!now) {
        this.#text.value = "";
        this.#grow();
      }
      this.#resume.value = "";
      this.onsent(answer.session);
    } catch (error) {
      this.#say(sentence(error));
    } finally {
      this.#is_sending = false;
      this.#send.disabled = false;
    }
  }

  #choices() {
    const target = this.#target;
    const model = this.#model.value.trim();
    const cwd = this.#cwd.value.trim();
    const permissions = this.#permissions.value;
    const engine = this.#engine.value;
    const resume = this.#resume.value.trim();
    if (target.kind === "new") localStorage.setItem(KEY, JSON.stringify({ engine, model, cwd, permissions }));
    return {
      ...(target.kind === "session" ? { session: target.session.id } : {}),
      ...(target.kind === "fork" ? { fork: target.session.id } : {}),
      ...(target.kind === "new" && engine ? { engine } : {}),
      ...(target.kind === "new" && cwd ? { cwd } : {}),
      ...(target.kind === "new" && resume ? { resume } : {}),
      ...(model ? { model } : {}),
      ...(permissions ? { permissions } : {}),
    };
  }

  /** @param {boolean} is_open */
  #unfold(is_open) {
    this.#details.hidden = !is_open;
    this.#more.setAttribute("aria-expanded", String(is_open));
    this.#more.textContent = is_open ? "Less" : "More";
    if (is_open) this.#details.querySelector("input")?.focus();
  }

  #placeholder() {
    const target = this.#target;
    const name = target.kind === "new" ? "the agent" : engine_name(target.session.engine);
    const busy = target.kind === "session" && target.session.state !== "idle";
    this.#text.placeholder =
      target.kind === "fork"
        ? "First prompt of the fork"
        : busy
          ? `${name} is at work; this waits its turn`
          : target.kind === "session"
            ? `Go on with ${name}`
            : "Say what is to be done";
  }

  #grow() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, 260)}px`;
  }

  /** @param {string} words */
  #say(words) {
    this.#problem.textContent = words;
    this.#problem.hidden = false;
  }
}

/** @param {string} label @param {string} placeholder */
function field(label, placeholder) {
  return h("input", { type: "text", placeholder, "aria-label": label, autocomplete: "off", spellcheck: "false" });
}

/** @param {string} label @param {HTMLElement} input */
function labelled(label, input) {
  return h("label", null, h("span", null, label), input);
}

/** What was chosen last time. @returns {Record<string, string | undefined>} */
function choices() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
}
