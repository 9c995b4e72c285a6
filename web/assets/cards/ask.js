// An ask: what the agent wants, and the ways to answer. The first answer settles it.
//
// What is shown is what is allowed: literally and completely, or with the rest one click away.

import { isAnsweredHere, noteAnswer } from "../answered.js";
import { serverNow } from "../api.js";
import { button, coded, h } from "../dom.js";
import { grants } from "../grants.js";
import { may, whyNot } from "../me.js";
import { decisionLabel, toolName } from "../labels.js";
import { askTitle, capital, countdown, exact, inside, saysOnly, show, visible } from "../words.js";
import { markdown } from "./message.js";
import { aside, changes, tall, whole } from "./parts.js";

/** @typedef {import("../cards.js").Context} Context */
/** @typedef {import("../cards.js").Answer} Answer */

/** Milliseconds after an answer in which a click is still part of it: the next ask may stand in the same place. */
const DOUBLE_CLICK = 500;

const HEADINGS = { permission: "Allow this?", question: "The agent has a question", plan: "Approve this plan?" };

let answeredAt = -DOUBLE_CLICK;

/** A button that answers; the second click of a double click does nothing. @param {string} label @param {() => void} act @param {import("../dom.js").Attributes} attributes */
function answering(label, act, attributes = {}) {
  const node = h("button", { type: "button", ...attributes }, label);
  node.addEventListener("click", (it) => {
    // A click made by a key or a program has a count of zero.
    const isAgain = it.detail > 1 || (it.detail === 1 && performance.now() - answeredAt < DOUBLE_CLICK);
    if (!isAgain) act();
  });
  return node;
}

/** @param {View.AskRow} row @param {Context} context @returns {import("../cards.js").View} */
export function askCard(row, context) {
  const { ask } = row;
  const node = h("article", { class: "ask-row", "aria-label": HEADINGS[ask.kind] ?? "Approval" });
  let state = "";

  const send = async (/** @type {Answer} */ answer, /** @type {HTMLElement} */ card) => {
    answeredAt = performance.now();
    const fields = card.querySelectorAll("button, input, textarea");
    for (const it of fields) it.toggleAttribute("disabled", true);
    // The news of it may come before the answer to it.
    noteAnswer(row.id, true);
    const problem = await context.settle(row, answer);
    if (problem === undefined) return;
    noteAnswer(row.id, false);
    if (row.settled) {
      state = "";
      update();
      return;
    }
    for (const it of fields) it.toggleAttribute("disabled", false);
    card.querySelector(".late")?.remove();
    card.append(h("p", { class: "problem late", role: "alert" }, ...coded(problem)));
  };
  const update = () => {
    const now = row.settled ? `settled ${row.settled.decision}` : may("settleAsk") ? "open" : "watched";
    // Known a moment later than the ask itself; what somebody picked or typed by then has to stay.
    if (!row.settled) node.querySelector(".edit")?.toggleAttribute("hidden", !context.canChange(row));
    if (now === state) return;
    state = now;
    node.replaceChildren(row.settled ? settled(row, context) : open(row, context, send));
    tick();
  };
  const tick = () => {
    const clock = node.querySelector(".deadline");
    if (clock && ask.deadline) clock.textContent = timeLeft(ask.kind, ask.deadline);
  };
  return {
    node,
    update,
    tick,
    get isKept() {
      return !row.settled;
    },
  };
}

/** @param {View.AskRow} row @param {Context} context */
function settled(row, context) {
  const it = row.settled;
  const decision = it?.decision ?? "lost";
  const isGood = decision.startsWith("allowed");
  const tone = isGood ? "good" : decision === "denied" ? "bad" : "";
  const answers = inside(it?.input, "answers");
  return h(
    "div",
    { class: `ask ${tone}` },
    h(
      "p",
      null,
      h("b", null, `${verdict(row, decision)}${byWhom(row, context)}`),
      told(row),
    ),
    answers !== undefined &&
      h(
        "p",
        { class: "field" },
        visible(
          Object.values(Object(answers))
            .map((value) => (typeof value === "string" ? value : list(inside(value, "answers")).join(", ")))
            .join(" · "),
        ),
      ),
  );
}

/** What it was about, and what was said to it. That nobody answered is said by the verdict. @param {View.AskRow} row */
function told({ ask, settled }) {
  const isLate = settled?.why === "deadline";
  const title = ask.kind === "plan" ? "" : visible(askTitle(ask));
  const message = isLate ? "" : visible(settled?.message ?? "");
  const words = [title, message].filter(Boolean).join(": ");
  return words && `${title === "" || isLate ? ":" : ""} ${words}`;
}

/** @param {View.AskRow} row @param {Wire.Decision} decision */
function verdict(row, decision) {
  const label = decisionLabel(row.ask.kind, decision);
  return row.ask.kind === "plan" ? `Plan ${label}` : capital(label);
}

/** @param {View.AskRow} row @param {Context} context */
function byWhom(row, context) {
  if (context.isRecording()) return " in the recording";
  if (row.settled?.why === "deadline") return " because nobody answered in time";
  if (row.settled?.origin !== "client") return "";
  return isAnsweredHere(row.id) ? " by you" : " from another device";
}

/** @param {Wire.Ask["kind"]} kind @param {NonNullable<Wire.Ask["deadline"]>} deadline */
function timeLeft(kind, deadline) {
  const word = deadline.decision === "allowed" ? "Allowed" : kind === "question" ? "Skipped" : "Denied";
  const ms = Date.parse(deadline.at) - serverNow();
  return ms > 0 ? `${word} automatically in ${countdown(ms)}` : `Time is up: ${word.toLowerCase()} automatically…`;
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
      // The heading already says that it is a question or a plan.
      ask.kind === "permission" && h("span", { class: "tool-name" }, visible(toolName(ask.tool))),
    ),
  );
  if (ask.kind === "question" && questions(ask).length > 0) questionForm(row, card, send);
  else permissionForm(row, context, card, send);
  // Beside the answers, since the top of a long ask may be out of view. A recording has the time of its making.
  if (ask.deadline && !context.isRecording())
    card.querySelector(".actions")?.before(h("p", { class: "deadline", role: "timer" }));
  // Of a recording, the answer is a part: another one would be ignored.
  if (context.isRecording()) onlyShown(card, "This is a recording. The recorded answer follows in a moment.");
  else if (!may("settleAsk")) onlyShown(card, whyNot("settleAsk"));
  return card;
}

/** Nothing of it can be answered here. @param {HTMLElement} card @param {string} why */
function onlyShown(card, why) {
  for (const it of card.querySelectorAll(".actions, .remembers")) it.remove();
  for (const it of card.querySelectorAll("input")) it.disabled = true;
  card.append(h("p", { class: "remembers" }, ...coded(why)));
}

/** What the agent wants to do it with: what it asks about or, if it says nothing there, its call. @param {View.AskRow} row */
function inputOf(row) {
  const { input } = row.ask;
  const isEmpty = input === undefined || input === null || (typeof input === "object" && Object.keys(input).length === 0);
  return isEmpty ? row.tool?.item.input : input;
}

/** Whether a title is only the command again, on one line and with its hidden characters in another spelling. @param {string} title @param {string} command */
function isSame(title, command) {
  const bare = (/** @type {string} */ it) => it.replace(/\\u\{[0-9a-f]+\}|[^\x21-\x7e\p{L}\p{N}\p{P}\p{S}]|[\u2400-\u243f]/gu, "");
  return bare(title) === bare(command);
}

/** Fields that say nothing to people. */
const NOISE = /(?:Id|Ms|_id)$|^(?:kind|type|reason|commandActions|availableDecisions|proposed\w+)$/;
/** @param {View.AskRow} row @param {Context} context @param {HTMLElement} card */
function details(row, context, card) {
  const { ask } = row;
  const input = inputOf(row);
  const known = row.tool?.item.class;
  const asked = inside(input, "command");
  const command = typeof asked === "string" ? asked : Array.isArray(asked) ? asked.join(" ") : known?.command;
  const planned = inside(input, "plan");
  const plan = typeof planned === "string" ? planned : undefined;
  const diffs = known?.diffs ?? [];
  const paths = diffs.map((it) => it.path);
  // Each change names its file.
  const isNews = (/** @type {string} */ it) => paths.length === 0 || !saysOnly(it, ask.tool, paths);
  if (plan === undefined && !(command && isSame(ask.title, command)) && isNews(ask.title))
    card.append(h("p", { class: "ask-title" }, exact(askTitle(ask))));
  if (ask.description && ask.description !== ask.title && isNews(ask.description))
    card.append(h("p", { class: "why" }, exact(ask.description)));
  if (command) card.append(whole("command", "Command", command));
  for (const it of diffs) card.append(changes(it, context.openFile, tall));
  if (plan !== undefined) {
    const prose = h("div", { class: "prose plan-text", tabindex: 0, "aria-label": "Plan" });
    markdown(prose, plan);
    card.append(tall(prose));
  }
  if (input === undefined || input === null) return;
  const shown = [
    ...(typeof asked === "string" ? ["command"] : []),
    ...(inside(input, "description") === ask.description ? ["description"] : []),
    ...(plan === undefined ? [] : ["plan"]),
    ...(diffs.length > 0 ? ["old_string", "new_string", "content", "file_path"] : []),
  ];
  const hasForm = Boolean(command) || diffs.length > 0 || plan !== undefined;
  card.append(...fields(input, hasForm ? shown : undefined));
  const isRest = (/** @type {[string, unknown]} */ [name, value]) => !shown.includes(name) && !saysSomething(name, value);
  if (diffs.length > 0 || (hasForm && Object.entries(Object(input)).some(isRest))) card.append(aside("Full input", () => whole("plain", "Full input", JSON.stringify(input, null, 2))));
}

/** The fields of an input; next to those that are `shown` otherwise, only what says something. @param {unknown} input @param {string[] | undefined} shown */
function fields(input, shown) {
  if (typeof input !== "object" || Array.isArray(input)) return shown ? [] : [whole("plain", "Input", show(input))];
  return Object.entries(Object(input))
    .filter(([name, value]) => !shown || (!shown.includes(name) && saysSomething(name, value)))
    .map(([name, value]) => {
      const text = show(value);
      const label = h("b", null, exact(name));
      if (text.length <= 120 && !text.includes("\n"))
        return h("p", { class: "field" }, label, " ", h("code", { dir: "auto" }, exact(text)));
      return h("div", { class: "field" }, label, whole("plain", name, text));
    });
}

/** Whether a field is worth a line next to a command. @param {string} name @param {unknown} value */
function saysSomething(name, value) {
  return typeof value !== "object" && !NOISE.test(name);
}

/** @param {View.AskRow} row @param {Context} context @param {HTMLElement} card @param {(answer: Answer, card: HTMLElement) => void} send */
function permissionForm(row, context, card, send) {
  const { ask } = row;
  const input = inputOf(row);
  details(row, context, card);
  const reason = h("input", { type: "text", placeholder: "Reason (optional), then Deny again or Enter", "aria-label": "Reason", hidden: true });
  const editor = h("textarea", { rows: 5, spellcheck: "false", "aria-label": "Input as JSON", hidden: true });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const changed = () => {
    if (editor.hidden) return {};
    return { input: JSON.parse(editor.value) };
  };
  const allow = (/** @type {"allow" | "allow_always"} */ decision) => () => {
    let answer;
    try {
      answer = { decision, ...changed() };
    } catch (error) {
      problem.textContent = `This is not valid JSON: ${error instanceof Error ? error.message : error}`;
      problem.hidden = false;
      return;
    }
    send(answer, card);
  };
  const deny = () => {
    if (reason.hidden) {
      reason.hidden = false;
      reason.focus();
    } else send({ decision: "deny", ...(reason.value.trim() ? { message: reason.value.trim() } : {}) }, card);
  };
  reason.addEventListener("keydown", (it) => it.key === "Enter" && !it.isComposing && deny());
  const edit = button(
    "Edit…",
    () => {
      editor.hidden = !editor.hidden;
      if (editor.value === "") editor.value = JSON.stringify(input, null, 2);
      if (!editor.hidden) editor.focus();
    },
    { class: "edit", hidden: !context.canChange(row) },
  );
  const lasting = grants(ask.suggestions);
  card.append(
    editor,
    reason,
    h(
      "div",
      { class: "actions" },
      answering(ask.kind === "plan" ? "Approve" : "Allow once", allow("allow"), { class: "primary" }),
      lasting.length > 0 && answering("Always allow", allow("allow_always")),
      answering("Deny", deny, { class: "deny" }),
      input !== undefined && edit,
    ),
    lasting.length === 0
      ? ""
      : h(
          "p",
          { class: "remembers" },
          "“Always allow” also allows, for the rest of this session: ",
          ...lasting.flatMap((it, n) => [n > 0 ? ", " : "", h("code", null, it)]),
        ),
    problem,
  );
}

/** @param {Wire.Ask} ask @returns {View.Question[]} */
function questions(ask) {
  return list(inside(ask.input, "questions")).filter((it) => typeof inside(it, "question") === "string");
}

/** @param {unknown} value */
function list(value) {
  return Array.isArray(value) ? value : [];
}

/** @param {View.AskRow} row @param {HTMLElement} card @param {(answer: Answer, card: HTMLElement) => void} send */
function questionForm(row, card, send) {
  /** @type {{ question: View.Question, read: () => string[] }[]} */
  const fields = [];
  for (const [n, question] of questions(row.ask).entries()) {
    const name = `ask-${row.key}-${n}`;
    const other = h("input", {
      type: "text",
      placeholder: question.options?.length ? "Or type your own answer" : "Your answer",
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
    send({ decision: "allow", input: { ...Object(row.ask.input), answers } }, card);
  };
  card.append(
    h(
      "div",
      { class: "actions" },
      answering("Answer", answer, { class: "primary" }),
      answering("Skip", () => send({ decision: "deny", message: "no answer" }, card), { class: "deny" }),
    ),
    problem,
  );
}
