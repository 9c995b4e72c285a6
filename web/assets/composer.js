// The prompt box, with what a run is started with: agent, model, permissions, directory.

import { post, request, sentence, session_path } from "./api.js";
import { add, button, by_id, h, icon } from "./dom.js";
import { first_line, visible } from "./words.js";

const KEY = "linkspan.choices";
const PERMISSIONS = [
  ["", "permissions: as configured"],
  ["ask", "permissions: ask me"],
  ["accept-edits", "permissions: accept edits, ask for the rest"],
  ["plan", "permissions: plan only"],
  ["deny", "permissions: deny what would be asked"],
  ["allow", "permissions: allow everything"],
];

/** @typedef {{ kind: "new" } | { kind: "session", session: Wire.Session } | { kind: "fork", session: Wire.Session }} Target */

export class Composer {
  #node = by_id("composer");
  #text = h("textarea", { rows: 1, "aria-label": "Prompt", dir: "auto", enterkeyhint: "send" });
  #send = h("button", { type: "button", class: "primary send", "aria-label": "Send" }, icon("send"));
  #problem = h("p", { class: "problem", role: "alert", hidden: true });
  #queue = h("ol", { class: "queue", "aria-label": "Waiting prompts", hidden: true });
  #engine = h("select", { "aria-label": "Agent" });
  #model = h("input", {
    type: "text",
    placeholder: "model: default",
    "aria-label": "Model",
    autocomplete: "off",
    spellcheck: "false",
  });
  #permissions = h(
    "select",
    { "aria-label": "Permissions" },
    ...PERMISSIONS.map(([value, label]) => h("option", { value }, label)),
  );
  #cwd = h("input", {
    type: "text",
    placeholder: "directory: default",
    "aria-label": "Directory",
    autocomplete: "off",
    spellcheck: "false",
  });
  #resume = h("input", {
    type: "text",
    placeholder: "go on with id…",
    "aria-label": "Native id of a session to go on with",
    autocomplete: "off",
    spellcheck: "false",
  });
  #options = h("div", { class: "options" });
  #hint = h("p", { class: "hint" });
  /** @type {Target} */
  #target = { kind: "new" };
  #is_sending = false;
  /** A prompt was taken. */
  onsent = (/** @type {string} */ _session) => {};
  oncancel_fork = () => {};

  constructor() {
    const box = h("div", { class: "box" }, this.#text, this.#send);
    add(this.#node, this.#queue, this.#hint, box, this.#options, this.#problem);
    this.#send.addEventListener("click", () => void this.send());
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
    const options = [
      ...installed.map((it) => h("option", { value: it.name }, it.version ? `${it.name} ${it.version}` : it.name)),
      ...all.replays.map((it) => h("option", { value: it.name }, it.name)),
    ];
    this.#engine.replaceChildren(...options);
    const names = options.map((it) => it.value);
    const wanted = saved && names.includes(saved) ? saved : (installed.find((it) => it.default)?.name ?? names[0]);
    if (wanted !== undefined) this.#engine.value = wanted;
  }

  /** @param {string} name */
  pick(name) {
    this.#engine.value = name;
    this.focus();
  }

  /** @param {Target} target */
  aim(target) {
    this.#target = target;
    this.#problem.hidden = true;
    this.#options.replaceChildren();
    this.#hint.replaceChildren();
    this.#hint.hidden = target.kind !== "fork";
    if (target.kind === "new")
      add(this.#options, this.#engine, this.#permissions, this.#model, this.#cwd, this.#resume);
    else add(this.#options, this.#permissions, this.#model);
    if (target.kind === "fork")
      add(
        this.#hint,
        "The next prompt starts a new session that begins with what this one holds. ",
        button("Not now", () => this.oncancel_fork(), { class: "text" }),
      );
    this.#placeholder();
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

  #placeholder() {
    const target = this.#target;
    const name = target.kind === "new" ? "the agent" : target.session.engine;
    const busy = target.kind === "session" && target.session.state !== "idle";
    this.#text.placeholder =
      target.kind === "fork"
        ? "First prompt of the fork"
        : busy
          ? `${name} is at work; this waits its turn`
          : target.kind === "session"
            ? `Go on with ${name}`
            : "What is to be done?";
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

/** What was chosen last time. @returns {Record<string, string | undefined>} */
function choices() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
}
