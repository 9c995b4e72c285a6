// The line above the feed: what is open, how it stands, what can be done with it.

import { costCard } from "./cards/notes.js";
import { button, byId, coded, h, icon } from "./dom.js";
import { may } from "./me.js";
import { allInput, count, dollars, duration, promptTitle, tokensInOut } from "./labels.js";
import { between, engineName, isRecording, modeName, visible } from "./words.js";

/** Milliseconds that a button says that it has done it. */
const THANKS = 1_500;

/**
 * @typedef {object} Shown
 * @property {Wire.Session} session
 * @property {import("./fold.js").Story} story
 * @property {Wire.Ability | undefined} can
 * @property {boolean} isStopping
 * @property {boolean} isCostShown
 * @property {boolean} isSending a prompt is on its way
 * @property {string} problem what went wrong with the last thing that was done up here
 * @property {string} parent the title of the session that this one was forked from
 */

/** @typedef {{ toggleCost: () => void, fork: () => void, stop: () => void }} Acts */

/** @type {string | undefined} */
let last;

/** Nothing is open. @param {string} [words] */
export function clearTop(words) {
  last = undefined;
  document.title = "linkspan";
  byId("top").replaceChildren(back(), words ? h("h1", null, words) : h("h1", { class: "sr" }, "New session"));
}

/** @param {Shown} shown @param {Acts} acts */
export function drawTop(shown, acts) {
  const { session, story, can, isStopping, isCostShown, parent, problem } = shown;
  const title = titleOf(session, story);
  const state = stateOf(shown);
  const mark = { waiting: "◆ ", running: "● ", starting: "● ", queued: "● ", idle: "" }[state];
  document.title = `${mark}${title} · linkspan`;
  const facts = [
    engineName(session.engine),
    story.facts.model,
    session.cwd ?? story.facts.cwd,
    modeName(story.facts.mode ?? ""),
  ];
  const tokens = story.isRunning ? story.runTokens : story.tokens;
  const split = tokensInOut(tokens);
  const used = [split && `${count(allInput(tokens) + (tokens.output ?? 0))} tokens`, story.hasCost && dollars(story.cost)].filter(Boolean);
  const offers = {
    fork: (can?.fork ?? !isRecording(session.engine)) && may("submitPrompt"),
    stop: state !== "idle" && may("abortSession"),
    answer: may("settleAsk"),
  };
  const sig = JSON.stringify([title, facts, used, split, state, isStopping, isCostShown, session.native, offers, session.parent, parent, problem]);
  if (last === sig && !isCostShown) return;
  last = sig;
  const top = byId("top");
  const hadFocus = top.contains(document.activeElement) ? document.activeElement?.textContent : undefined;
  const waiting = may("settleAsk") ? "Needs your input" : "Waiting for an answer";
  const chip = { waiting, running: "Running", starting: "Starting", queued: "Queued", idle: "" }[state];
  top.replaceChildren(
    back(),
    h(
      "div",
      { class: "title" },
      h("h1", { dir: "auto", title }, visible(title)),
      h(
        "p",
        { class: "facts" },
        chip && h("span", { class: `state ${state}` }, chip, h("span", { class: "clock" })),
        ...facts.filter(Boolean).map((it) => h("span", null, visible(String(it)))),
        session.parent &&
          h(
            "a",
            { href: `#/s/${encodeURIComponent(session.parent.session)}`, title: parent && visible(parent) },
            "Forked from another session",
          ),
      ),
    ),
    h(
      "div",
      { class: "tools" },
      used.length > 0 &&
        button(used.join(" · "), acts.toggleCost, {
          class: "text usage",
          "aria-expanded": String(isCostShown),
          title: [split, "Show tokens and cost by model and by sub-agent"].filter(Boolean).join("\n"),
        }),
      offers.fork && button("Fork", acts.fork, { title: "Continue in a copy; this session stays as it is" }),
      session.native && copyButton(session.native),
      offers.stop &&
        button(isStopping ? "Stopping…" : "Stop", acts.stop, {
          class: "stop",
          disabled: isStopping,
          title: "Stop this run",
        }),
    ),
    problem ? h("p", { class: "problem", role: "alert" }, ...coded(problem)) : "",
    isCostShown ? costCard(story) : "",
  );
  tickTop(story);
  if (hadFocus) [...top.querySelectorAll("button")].find((it) => it.textContent === hadFocus)?.focus();
}

/** How long it has been running. @param {import("./fold.js").Story} story */
export function tickTop(story) {
  const clock = document.querySelector("#top .state.running .clock");
  if (!clock) return;
  // A run that is about to start has no start time yet; the previous one has.
  const ms = story.isRunning ? between(story.runAt, new Date().toISOString()) : undefined;
  // Recordings tell the times of their making.
  clock.textContent = ms !== undefined && ms >= 1000 && ms < 86_400_000 ? ` ${duration(ms)}` : "";
}

/** @param {Shown} shown @returns {Wire.Session["state"]} */
function stateOf({ session, story, isSending }) {
  if (story.asks.size > 0 || session.state === "waiting") return "waiting";
  // A run is announced before its agent has started.
  if (story.isRunning && session.state !== "starting") return "running";
  return session.state === "idle" && isSending ? "starting" : session.state;
}

/** @param {Wire.Session} session @param {import("./fold.js").Story} story */
function titleOf(session, story) {
  return session.title || promptTitle(story.firstPrompt) || session.native || session.id;
}

/** @param {string} native */
function copyButton(native) {
  const words = () => ["Copy ", h("span", { class: "wide" }, "session "), "ID"];
  const act = () =>
    void navigator.clipboard
      .writeText(native)
      .then(
        () => (node.textContent = "Copied"),
        () => (node.textContent = "Couldn't copy"),
      )
      .then(() => setTimeout(() => node.replaceChildren(...words()), THANKS));
  const node = button("", act, { title: `The agent's own session ID: ${visible(native)}`, class: "copy" });
  node.append(...words());
  return node;
}

function back() {
  return h("a", { class: "back", href: "#/", "aria-label": "All sessions", title: "All sessions" }, icon("back"));
}
