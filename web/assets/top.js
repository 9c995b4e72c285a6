// The line above the feed: what is open, how it stands, what can be done with it.

import { cost_card } from "./cards/notes.js";
import { button, by_id, coded, h, icon } from "./dom.js";
import { may } from "./me.js";
import { all_input, between, count, dollars, duration, engine_name, is_recording, mode_name, tokens_in_out, visible } from "./words.js";

/** Milliseconds that a button says that it has done it. */
const THANKS = 1_500;

/**
 * @typedef {object} Shown
 * @property {Wire.Session} session
 * @property {import("./fold.js").Story} story
 * @property {Wire.Engine["can"]} can
 * @property {boolean} is_stopping
 * @property {boolean} is_cost_shown
 * @property {boolean} is_sending a prompt is on its way
 * @property {string} problem what went wrong with the last thing that was done up here
 * @property {string} parent the title of the session that this one was forked from
 */

/** @typedef {{ toggle_cost: () => void, fork: () => void, stop: () => void }} Acts */

/** @type {string | undefined} */
let last;

/** Nothing is open. @param {string} [words] */
export function clear_top(words) {
  last = undefined;
  document.title = "linkspan";
  by_id("top").replaceChildren(back(), words ? h("h1", null, words) : h("h1", { class: "sr" }, "New session"));
}

/** @param {Shown} shown @param {Acts} acts */
export function draw_top(shown, acts) {
  const { session, story, can, is_stopping, is_cost_shown, parent, problem } = shown;
  const title = title_of(session, story);
  const state = state_of(shown);
  const mark = { waiting: "◆ ", running: "● ", starting: "● ", queued: "● ", idle: "" }[state];
  document.title = `${mark}${title} · linkspan`;
  const facts = [
    engine_name(session.engine),
    story.facts.model,
    session.cwd ?? story.facts.cwd,
    mode_name(story.facts.mode ?? ""),
  ];
  const tokens = story.is_running ? story.run_tokens : story.tokens;
  const split = tokens_in_out(tokens);
  const used = [split && `${count(all_input(tokens) + (tokens.output ?? 0))} tokens`, story.has_cost && dollars(story.cost)].filter(Boolean);
  const offers = {
    fork: (can?.fork ?? !is_recording(session.engine)) && may("submitPrompt"),
    stop: state !== "idle" && may("abortSession"),
    answer: may("settleAsk"),
  };
  const sig = JSON.stringify([title, facts, used, split, state, is_stopping, is_cost_shown, session.native, offers, session.parent, parent, problem]);
  if (last === sig && !is_cost_shown) return;
  last = sig;
  const top = by_id("top");
  const had_focus = top.contains(document.activeElement) ? document.activeElement?.textContent : undefined;
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
        button(used.join(" · "), acts.toggle_cost, {
          class: "text usage",
          "aria-expanded": String(is_cost_shown),
          title: [split && `${split} tokens`, "Show tokens and cost by model and by sub-agent"].filter(Boolean).join("\n"),
        }),
      offers.fork && button("Fork", acts.fork, { title: "Continue in a copy; this session stays as it is" }),
      session.native && copy_button(session.native),
      offers.stop &&
        button(is_stopping ? "Stopping…" : "Stop", acts.stop, {
          class: "stop",
          disabled: is_stopping,
          title: "Stop this run",
        }),
    ),
    problem ? h("p", { class: "problem", role: "alert" }, ...coded(problem)) : "",
    is_cost_shown ? cost_card(story) : "",
  );
  tick_top(story);
  if (had_focus) [...top.querySelectorAll("button")].find((it) => it.textContent === had_focus)?.focus();
}

/** How long it has been running. @param {import("./fold.js").Story} story */
export function tick_top(story) {
  const clock = document.querySelector("#top .state.running .clock");
  if (!clock) return;
  // A run that is about to start has not told when; the one before it has.
  const ms = story.is_running ? between(story.run_at, new Date().toISOString()) : undefined;
  // Recordings tell the times of their making.
  clock.textContent = ms !== undefined && ms >= 1000 && ms < 86_400_000 ? ` ${duration(ms)}` : "";
}

/** @param {Shown} shown @returns {Wire.Session["state"]} */
function state_of({ session, story, is_sending }) {
  if (story.asks.size > 0 || session.state === "waiting") return "waiting";
  // A run is announced before its agent has started.
  if (story.is_running && session.state !== "starting") return "running";
  return session.state === "idle" && is_sending ? "starting" : session.state;
}

/** @param {Wire.Session} session @param {import("./fold.js").Story} story */
function title_of(session, story) {
  return session.title || story.first_prompt.split("\n")[0]?.slice(0, 120) || session.native || session.id;
}

/** @param {string} native */
function copy_button(native) {
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
