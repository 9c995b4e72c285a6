// The prompt box, with what a run is started with: agent, model, permissions, directory.

import { ApiError, post, request, sentence, sessionPath } from "./api.js";
import { add, button, byId, coded, h, icon } from "./dom.js";
import { draft, keepDraft } from "./drafts.js";
import { may, roleMissing, whyNot } from "./me.js";
import { recall, remember } from "./storage.js";
import { agentName, agentTitle, firstLine, isRecording, visible } from "./words.js";

const KEY = "linkspan.choices";
const PERMISSIONS = [
  ["", "Default"],
  ["ask", "Ask me first"],
  ["accept-edits", "Accept edits, ask for the rest"],
  ["plan", "Plan only"],
  ["listed", "Run allowed tools, deny the rest"],
  ["deny", "Deny anything that needs approval"],
  ["allow", "Allow everything"],
];

/** A recording is played this much slower than it was made: scripted models answer at once, people read. */
const DEMO_SPEED = 0.08;
/** Milliseconds without a key before what is written is kept. */
const PAUSE = 300;

/** @typedef {{ prompt: string, target: Target, engine: string }} Sent */
/** @typedef {{ session: string, position?: number }} Accepted */
/** @typedef {{ kind: "new" } | { kind: "session" | "fork", session: Wire.Session, isBusy: boolean }} Target */

export class Composer {
  #node = byId("composer");
  #text = h("textarea", { rows: 1, "aria-label": "Prompt", dir: "auto", enterkeyhint: "send" });
  #send = h("button", { type: "button", class: "primary send", "aria-label": "Send" }, icon("send"));
  #problem = h("p", { class: "problem", role: "alert", hidden: true });
  #queue = h("ol", { class: "queue", "aria-label": "Queued prompts", hidden: true });
  #engine = h("select", { "aria-label": "Agent", title: "Agent" }, h("option", { value: "" }, "Looking for agents…"));
  #model = field("Model", "the agent's default");
  #permissions = h(
    "select",
    { "aria-label": "Permissions", title: "What the agent may do without asking" },
    ...PERMISSIONS.map(([value, label]) => h("option", { value }, label)),
  );
  #box = h("div", { class: "prompt-box" });
  /** Why nothing can be sent. */
  #closed = h("p", { class: "closed", role: "note", hidden: true });
  #cwd = field("Directory", "where the server was started; ~ is your home");
  #resume = field("Session ID to resume", "the agent's own session ID");
  #options = h("div", { class: "options" });
  #details = h("div", { class: "details", hidden: true });
  #more = button("More", () => this.#unfold(this.#details.hidden === true), {
    class: "chip",
    "aria-expanded": "false",
    title: "Model, directory, session to resume",
  });
  #hint = h("p", { class: "hint" });
  /** @type {Target} */
  #target = { kind: "new" };
  #aimed = "";
  #hasAgent = true;
  #isSending = false;
  /** The problem that is shown is that there was no server. */
  #isUnreached = false;
  /** Under what name the text in the box is kept. */
  #name = "new";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** A prompt is on its way; what comes of it is told to what is given back. @returns {{ accepted: (answer: Accepted) => void, refused: () => void }} */
  onSend = (/** @type {Sent} */ _sent) => ({ accepted: (/** @type {Accepted} */ _answer) => {}, refused: () => {} });
  onCancelFork = () => {};
  /** Another agent was chosen. */
  onPick = (/** @type {string} */ _engine) => {};

  constructor() {
    const bar = h("div", { class: "bar" }, this.#options, this.#send);
    const box = this.#box;
    box.append(this.#text, this.#details, bar);
    add(this.#node, this.#queue, this.#hint, box, this.#closed, this.#problem);
    // Wherever the box is hit, somebody wants to write.
    box.addEventListener("click", (it) => (it.target === box || it.target === this.#options) && this.focus());
    this.#send.addEventListener("click", () => void this.send());
    this.#engine.addEventListener("change", () => this.#picked());
    this.#text.addEventListener("input", () => {
      this.#grow();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#keep(), PAUSE);
    });
    addEventListener("pagehide", () => this.#keep());
    this.#text.addEventListener("keydown", (it) => {
      if (it.key !== "Enter" || it.isComposing || (it.shiftKey && !it.ctrlKey)) return;
      it.preventDefault();
      void this.send();
    });
    const saved = choices();
    this.#cwd.value = saved.cwd ?? "";
    // Somebody is here to answer.
    this.#permissions.value = saved.permissions ?? "ask";
    this.#write(draft(this.#name));
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
    // A prompt has no effect on a recording, so without an agent only recordings are shown, and no box.
    this.#hasAgent = installed.length > 0;
    this.#node.hidden = !this.#hasAgent && this.#target.kind === "new";
    const wanted = saved && names.includes(saved) ? saved : (installed.find((it) => it.default)?.name ?? names[0]);
    if (wanted !== undefined) this.#engine.value = wanted;
    if (this.#target.kind === "new") this.#showModel();
  }

  /** What the token may do is known, or has changed. */
  rights() {
    for (const it of this.#permissions.options) {
      const role = roleMissing(it.value);
      const label = PERMISSIONS.find(([value]) => value === it.value)?.[1] ?? it.value;
      it.disabled = role !== undefined;
      it.textContent = role === undefined ? label : `${label} (needs a token for ${role})`;
    }
    // What was chosen with another token.
    if (this.#permissions.selectedOptions[0]?.disabled) this.#permissions.value = "ask";
    this.#close();
  }

  /** Says why nothing can be sent, where the box would be. */
  #close() {
    const why = this.#whyClosed();
    this.#box.hidden = why !== "";
    this.#closed.hidden = why === "";
    this.#closed.replaceChildren(...coded(why));
  }

  #whyClosed() {
    const target = this.#target;
    if (!may("submitPrompt")) return whyNot("submitPrompt");
    if (target.kind === "session" && isRecording(target.session.engine))
      return "This is a recording: it can be watched, but not replied to.";
    return "";
  }

  /** @param {string} name */
  pick(name) {
    this.#engine.value = name;
    this.#picked();
    this.focus();
  }

  #picked() {
    this.#showModel();
    this.onPick(this.#engine.value);
  }

  /** The model that was used last with the chosen agent: those of another agent are unknown to it. */
  #showModel() {
    this.#model.value = choices().models?.[this.#engine.value] ?? "";
  }

  /** The agent that is chosen. */
  get engine() {
    return this.#engine.value;
  }

  /** @param {Target} target */
  aim(target) {
    this.#target = target;
    this.#node.hidden = !this.#hasAgent && target.kind === "new";
    this.#close();
    this.#placeholder();
    this.#recall(nameOf(target));
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
    const isNew = target.kind === "new";
    // A session keeps its own model, unless another one is chosen here.
    if (isNew) this.#showModel();
    else this.#model.value = "";
    add(this.#options, isNew && this.#engine, this.#permissions, this.#more);
    add(this.#details, labelled("Model", this.#model));
    if (isNew) add(this.#details, labelled("Directory", this.#cwd), labelled("Resume session ID", this.#resume));
    if (target.kind === "fork")
      add(
        this.#hint,
        "Your next message starts a copy of this session. ",
        button("Cancel", () => this.onCancelFork(), { class: "text" }),
      );
  }

  focus() {
    this.#text.focus();
  }

  /** Forgets what is written. */
  clear() {
    clearTimeout(this.#timer);
    this.#write("");
  }

  /** @param {{ number: number, prompt: string }[]} waiting @param {string} session @param {() => void} again */
  queue(waiting, session, again) {
    this.#queue.hidden = waiting.length === 0;
    this.#queue.replaceChildren(
      ...waiting.map((it) => {
        const takeBack = async (/** @type {boolean} */ toEdit) => {
          try {
            await request(`${sessionPath(session)}/queue/${it.number}`, { method: "DELETE" });
            if (toEdit) {
              this.#giveBack(nameOf(this.#target), it.prompt);
              this.focus();
            }
          } catch (error) {
            this.#say(sentence(error));
          }
          again();
        };
        const words = visible(firstLine(it.prompt));
        const act = (/** @type {string} */ label, /** @type {boolean} */ toEdit) =>
          may("takeBackPrompt") &&
          button(label, () => void takeBack(toEdit), { class: "text", "aria-label": `${label} queued prompt: ${words}` });
        return h(
          "li",
          null,
          h("span", { dir: "auto", title: visible(it.prompt.slice(0, 2000)) }, words),
          act("Edit", true),
          act("Remove", false),
        );
      }),
    );
  }

  /** Sends what is written; or starts `engine` with `prompt` right away. @param {{ engine: string, prompt: string }} [now] */
  async send(now) {
    const prompt = now?.prompt ?? this.#text.value;
    if (prompt.trim() === "" || this.#isSending || (!now && this.#whyClosed() !== "")) return;
    this.#isSending = true;
    this.#send.disabled = true;
    this.#problem.hidden = true;
    const target = this.#target;
    const name = this.#name;
    const engine = now?.engine ?? (target.kind === "new" ? this.#engine.value : target.session.engine);
    const chosen = now ? { engine } : this.#chosen();
    const model = this.#model.value.trim();
    const saved = { engine, cwd: this.#cwd.value.trim(), permissions: this.#permissions.value };
    const speed = engine.startsWith("replay:") ? { speed: DEMO_SPEED } : {};
    if (!now) {
      clearTimeout(this.#timer);
      this.#write("");
    }
    // It is seen before the server has answered. What was written is kept until it has.
    const sent = this.onSend({ prompt, target, engine });
    try {
      const answer = await post("/api/runs", { prompt, ...chosen, ...speed });
      if (!now && target.kind === "new") remember(KEY, { ...saved, models: { ...choices().models, [engine]: model } });
      this.#resume.value = "";
      if (!now) keepDraft(name, name === this.#name ? this.#text.value : "");
      this.#isSending = false;
      sent.accepted(answer);
    } catch (error) {
      this.#isSending = false;
      sent.refused();
      if (!now) this.#giveBack(name, prompt);
      this.#say(sentence(error));
      this.#isUnreached = error instanceof ApiError && error.status === 0;
      if (!now && target.kind === this.#target.kind) this.#showAgain(chosen, model);
    } finally {
      this.#send.disabled = false;
    }
  }

  /** Shows what was chosen next to a refused prompt: that may be what has to be changed. @param {object} chosen @param {string} model */
  #showAgain(chosen, model) {
    this.#model.value = model;
    if (!["model", "cwd", "resume"].some((it) => it in chosen)) return;
    this.#unfold(true);
    this.focus();
  }

  /** Puts back what could not be sent, before what was written since. @param {string} name @param {string} prompt */
  #giveBack(name, prompt) {
    const since = name === this.#name ? this.#text.value : draft(name);
    const text = since.trim() === "" || since === prompt ? prompt : `${prompt}\n\n${since}`;
    keepDraft(name, text);
    if (name === this.#name) this.#write(text);
  }

  /** Keeps what is written. */
  #keep() {
    clearTimeout(this.#timer);
    if (!this.#isSending) keepDraft(this.#name, this.#text.value);
  }

  /** Shows what was written here. @param {string} name */
  #recall(name) {
    if (name === this.#name) return;
    const before = this.#name;
    this.#keep();
    this.#name = name;
    // What is written while a session is made belongs to that session.
    if (before === MAKING && this.#text.value.trim() !== "") {
      keepDraft(before, "");
      this.#keep();
    } else this.#write(draft(name));
  }

  /** @param {string} text */
  #write(text) {
    this.#text.value = text;
    this.#grow();
  }

  #chosen() {
    const target = this.#target;
    const model = this.#model.value.trim();
    const cwd = this.#cwd.value.trim();
    const permissions = this.#permissions.value;
    const engine = this.#engine.value;
    const resume = this.#resume.value.trim();
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

  /** @param {boolean} isOpen */
  #unfold(isOpen) {
    this.#details.hidden = !isOpen;
    this.#more.setAttribute("aria-expanded", String(isOpen));
    this.#more.textContent = isOpen ? "Less" : "More";
    if (isOpen) this.#details.querySelector("input")?.focus();
  }

  #placeholder() {
    const target = this.#target;
    this.#text.placeholder =
      target.kind === "new"
        ? "What should the agent do?"
        : target.kind === "fork"
          ? "First message of the copy"
          : target.isBusy
            ? `${agentTitle(target.session.engine)} is working. Your message will be queued`
            : `Reply to ${agentName(target.session.engine)}…`;
  }

  #grow() {
    this.#text.style.height = "auto";
    // What is not shown has no height to measure; one line is enough for it.
    if (this.#text.scrollHeight === 0) return;
    this.#text.style.height = `${Math.min(this.#text.scrollHeight + 2, 260)}px`;
  }

  /** The server is there again: that it could not be reached is no longer true. */
  reached() {
    if (this.#isUnreached) this.#problem.hidden = true;
  }

  /** @param {string} words */
  #say(words) {
    this.#isUnreached = false;
    this.#problem.replaceChildren(...coded(words));
    this.#problem.hidden = false;
  }
}

/** The session that is being made and has no id yet. */
const MAKING = "session ";

/** Under what name drafts for it are kept. @param {Target} target */
function nameOf(target) {
  return target.kind === "new" ? "new" : `${target.kind} ${target.session.id}`;
}

/** @param {string} label @param {string} placeholder */
function field(label, placeholder) {
  return h("input", { type: "text", placeholder, "aria-label": label, autocomplete: "off", spellcheck: "false" });
}

/** @param {string} label @param {HTMLElement} input */
function labelled(label, input) {
  return h("label", null, h("span", null, label), input);
}

/** What was chosen last time. @returns {{ engine?: string, models?: Record<string, string>, cwd?: string, permissions?: string }} */
function choices() {
  return recall(KEY) ?? {};
}
