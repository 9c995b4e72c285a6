// An ask: what the agent wants, and the ways to answer. It is settled once, by whoever is first.

import { button, h } from "../dom.js";
import { visible } from "../words.js";
import { markdown } from "./message.js";
import { block, changes } from "./parts.js";
import { inputs } from "./tool.js";

/** @typedef {import("../cards.js").Context} Context */
/** @typedef {import("../cards.js").Answer} Answer */

const HEADINGS = { permission: "Allow this?", question: "The agent asks", plan: "Go ahead with this plan?" };
const DECISIONS = {
  allowed: "Allowed",
  allowed_always: "Always allowed",
  denied: "Denied",
  withdrawn: "No longer asked",
  lost: "Never answered",
};

/** @param {View.AskRow} row @param {Context} context @returns {import("../cards.js").View} */
export function ask_card(row, context) {
  const { ask } = row;
  const node = h("article", { class: "ask-row", "aria-label": HEADINGS[ask.kind] ?? "Ask" });
  let is_mine = false;
  let state = "";

  const send = async (/** @type {Answer} */ answer, /** @type {HTMLElement} */ card) => {
    const fields = card.querySelectorAll("button, input, textarea");
    for (const it of fields) it.toggleAttribute("disabled", true);
    // The news of it may come before the answer to it.
    is_mine = true;
    const problem = await context.settle(row, answer);
    if (problem === undefined) return;
    is_mine = false;
    if (row.settled) {
      state = "";
      update();
      return;
    }
    for (const it of fields) it.toggleAttribute("disabled", false);
    card.querySelector(".late")?.remove();
    card.append(h("p", { class: "problem late", role: "alert" }, problem));
  };
  const update = () => {
    const now = row.settled ? `settled ${row.settled.decision}` : "open";
    // Known a moment later than the ask itself; what somebody picked or typed by then has to stay.
    if (now === "open") node.querySelector(".edit")?.toggleAttribute("hidden", !context.can_change(row));
    if (now === state) return;
    state = now;
    node.replaceChildren(row.settled ? settled(row, is_mine) : open(row, context, send));
  };
  return {
    node,
    update,
    get is_kept() {
      return !row.settled;
    },
  };
}

/** @param {View.AskRow} row @param {boolean} is_mine */
function settled(row, is_mine) {
  const it = row.settled;
  const decision = it?.decision ?? "lost";
  const word = DECISIONS[/** @type {keyof typeof DECISIONS} */ (decision)] ?? decision;
  const who = it?.origin !== "client" ? "" : is_mine ? " by you" : " by a client";
  const tone = decision.startsWith("allowed") ? "good" : decision === "denied" ? "bad" : "";
  const answers = it?.input?.answers;
  return h(
    "div",
    { class: `ask ${tone}` },
    h(
      "p",
      null,
      h("b", null, `${word}${who}`),
      ` ${visible(row.ask.title)}`,
      it?.message ? `: ${visible(it.message)}` : "",
    ),
    answers &&
      h(
        "p",
        { class: "field" },
        visible(
          Object.values(answers)
            .map((value) => (typeof value === "string" ? value : (value?.answers ?? []).join(", ")))
            .join(" · "),
        ),
      ),
  );
}

/** @param {View.AskRow} row @param {Context} context @param {(answer: Answer, card: HTMLElement) => void} send */
function open(row, context, send) {
  const { ask } = row;
  const card = h(
    "div",
    { class: "ask open" },
    h(
      "p",
      null,
      h("b", null, HEADINGS[ask.kind] ?? "Allow this?"),
      " ",
      h("span", { class: "tool-name" }, visible(ask.tool)),
    ),
  );
  if (ask.kind === "question" && questions(ask).length > 0) question_form(row, card, send);
  else permission_form(row, context, card, send);
  return card;
}

/** @param {View.AskRow} row @param {Context} context @param {HTMLElement} card @param {(answer: Answer, card: HTMLElement) => void} send */
function permission_form(row, context, card, send) {
  const { ask } = row;
  const input = ask.input ?? row.tool?.item.input;
  const known = row.tool?.item.class;
  const command = known?.command ?? (typeof input?.command === "string" ? input.command : undefined);
  if (!command || ask.title !== command) card.append(h("p", { class: "ask-title" }, visible(ask.title)));
  if (ask.description && ask.description !== ask.title) card.append(h("p", { class: "why" }, visible(ask.description)));
  if (command) card.append(block("command", "Command", visible(command)));
  for (const it of known?.diffs ?? []) card.append(changes(it, context.open_file));
  if (typeof input?.plan === "string") {
    const plan = h("div", { class: "prose" });
    markdown(plan, input.plan);
    card.append(plan);
  } else if (!command && !known?.diffs?.length && input !== undefined) card.append(inputs(input));

  const reason = h("input", { type: "text", placeholder: "Why not? (optional)", "aria-label": "Reason", hidden: true });
  const editor = h("textarea", { rows: 5, spellcheck: "false", "aria-label": "Input as JSON", hidden: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const changed = () => {
    if (editor.hidden) return {};
    return { input: JSON.parse(editor.value) };
  };
  const allow = (/** @type {"allow" | "allow_always"} */ decision) => () => {
    try {
      send({ decision, ...changed() }, card);
    } catch (error) {
      problem.textContent = `That is not JSON: ${error instanceof Error ? error.message : error}`;
      problem.hidden = false;
    }
  };
  const deny = () => {
    if (reason.hidden) {
      reason.hidden = false;
      reason.focus();
      no.textContent = "Deny now";
    } else send({ decision: "deny", ...(reason.value.trim() ? { message: reason.value.trim() } : {}) }, card);
  };
  const no = button("Deny", deny, { class: "deny" });
  reason.addEventListener("keydown", (it) => it.key === "Enter" && deny());
  const edit = button(
    "Edit…",
    () => {
      editor.hidden = !editor.hidden;
      if (editor.value === "") editor.value = JSON.stringify(input, null, 2);
      if (!editor.hidden) editor.focus();
    },
    { class: "edit", hidden: !context.can_change(row) },
  );
  card.append(
    editor,
    reason,
    h(
      "div",
      { class: "actions" },
      button("Allow once", allow("allow"), { class: "primary" }),
      ask.suggestions !== undefined && button("Always allow", allow("allow_always")),
      no,
      input !== undefined && edit,
    ),
    ask.suggestions === undefined
      ? ""
      : h("p", { class: "remembers" }, "“Always allow” remembers ", h("code", null, remembered(ask.suggestions))),
    problem,
  );
}

/** What a lasting permission would cover. @param {any} suggestions */
function remembered(suggestions) {
  const rules = Array.isArray(suggestions) ? suggestions : [];
  const words = rules.flatMap((it) => {
    if (Array.isArray(it?.rules))
      return it.rules.map((/** @type {any} */ rule) => `${rule.toolName}(${rule.ruleContent ?? "*"})`);
    if (Array.isArray(it?.directories)) return it.directories;
    return it?.mode ?? (it?.kind === "allow_always" ? it.name : []) ?? [];
  });
  return words.length > 0 ? visible(words.join(", ")) : "this answer";
}

/** @param {Wire.Ask} ask @returns {Wire.Question[]} */
function questions(ask) {
  const list = ask.input?.questions;
  return Array.isArray(list) ? list.filter((it) => typeof it?.question === "string") : [];
}

/** @param {View.AskRow} row @param {HTMLElement} card @param {(answer: Answer, card: HTMLElement) => void} send */
function question_form(row, card, send) {
  const list = questions(row.ask);
  /** @type {{ question: Wire.Question, read: () => string[] }[]} */
  const fields = [];
  for (const [n, question] of list.entries()) {
    const name = `ask-${row.key}-${n}`;
    const other = h("input", {
      type: "text",
      placeholder: question.options?.length ? "Or in your own words" : "Your answer",
      "aria-label": "Your own answer",
    });
    const boxes = (question.options ?? []).map((option) => {
      const box = h("input", { type: question.multiSelect ? "checkbox" : "radio", name, value: option.label });
      return {
        box,
        label: h(
          "label",
          { class: "option" },
          box,
          h("span", null, visible(option.label), option.description && h("small", null, visible(option.description))),
        ),
      };
    });
    card.append(
      h("fieldset", null, h("legend", null, visible(question.question)), ...boxes.map((it) => it.label), other),
    );
    const read = () => {
      const own = other.value.trim();
      const picked = boxes.filter((it) => it.box.checked).map((it) => it.box.value);
      return own ? (question.multiSelect ? [...picked, own] : [own]) : picked;
    };
    fields.push({ question, read });
  }
  const problem = h("p", { class: "problem", role: "alert", hidden: true }, "Every question needs an answer.");
  const answer = () => {
    problem.hidden = fields.every((it) => it.read().length > 0);
    if (!problem.hidden) return;
    /** @type {Record<string, unknown>} */
    const answers = {};
    for (const { question, read } of fields) {
      // Codex names its questions; Claude takes them by their words.
      if (question.id !== undefined) answers[question.id] = { answers: read() };
      else answers[question.question] = read().join(", ");
    }
    send({ decision: "allow", input: { ...row.ask.input, answers } }, card);
  };
  card.append(
    h(
      "div",
      { class: "actions" },
      button("Answer", answer, { class: "primary" }),
      button("Skip", () => send({ decision: "deny", message: "no answer" }, card), { class: "deny" }),
    ),
    problem,
  );
}
