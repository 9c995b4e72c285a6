// What somebody sees before a session is open: the agents that are there, recorded sessions to watch
// without any, and how to get the other agents.

import { button, byId, h, icon } from "./dom.js";
import { may } from "./me.js";
import { engineName, visible } from "./words.js";

/** Before the agents are known: the server asks each of them for its version, which takes seconds. @param {string} [problem] */
export function drawSearch(problem) {
  byId("start").replaceChildren(
    h("h1", null, "New session"),
    problem === undefined
      ? h("p", { class: "starting", role: "status" }, "Looking for agents…")
      : h("p", { class: "problem", role: "alert" }, `Agents could not be listed. ${problem}`),
  );
}

/** @param {Wire.Engines} all @param {(engine: string) => void} pick @param {(replay: string, prompt: string) => void} play */
export function drawStart(all, pick, play) {
  if (!may("submitPrompt")) return drawWatching();
  const installed = all.engines.filter((it) => it.installed);
  const hasAgent = installed.length > 0;
  const agents = section("Choose an agent and describe the task", installed.map((it) => agent(it, pick)));
  const replays = section(
    hasAgent ? "Or watch a recorded session" : "Watch a recorded session",
    all.replays.map((it) => replay(it, play)),
  );
  const missing = section(
    hasAgent ? "More agents you can install" : "Agents, and how to install them",
    all.engines.filter((it) => !it.installed).map(howToInstall),
    "installs",
  );
  byId("start").replaceChildren(
    h("h1", null, hasAgent ? "New session" : "Welcome to linkspan"),
    hasAgent
      ? ""
      : h("p", { class: "lead" }, "No agent is installed here yet. Try a recorded session: it plays back like a live run."),
    agents,
    replays,
    missing,
  );
}

/** Without the right to start a session, one can still choose an existing one. */
function drawWatching() {
  byId("start").replaceChildren(
    h("h1", null, "Watch a session"),
    h("p", { class: "lead" }, "Choose a session from the list. New ones appear there as soon as they start."),
  );
}

/** Shows which agent is chosen. @param {string} name */
export function markAgent(name) {
  for (const it of byId("start").querySelectorAll("button.agent"))
    it.setAttribute("aria-pressed", String(it.getAttribute("data-name") === name));
}

/** @param {Wire.Engine} it @param {(engine: string) => void} pick */
function agent(it, pick) {
  const facts = [it.summary, it.version].filter(Boolean).map((text) => visible(String(text)));
  const attributes = { class: "engine agent", "data-name": it.name, "aria-pressed": "false" };
  const node = button(it.name, () => pick(it.name), attributes);
  node.append(h("small", null, facts.join(" · ")));
  return node;
}

/** @param {{ name: string, summary: string }} it @param {(replay: string, prompt: string) => void} play */
function replay(it, play) {
  const prompt = `Play the recording “${engineName(it.name).slice(7)}”.`;
  const node = button("", () => play(it.name, prompt), { class: "engine replay", "data-name": it.name });
  const name = it.name.replace(/^replay:/, "");
  node.append(icon("play"), h("span", null, visible(name), h("small", null, visible(it.summary))));
  return node;
}

/** @param {Wire.Engine} it */
function howToInstall(it) {
  return h("p", null, h("b", null, it.name), h("code", { tabindex: 0 }, visible(it.install ?? it.summary)));
}

/** @param {string} title @param {Element[]} children @param {string} kind */
function section(title, children, kind = "engines") {
  return children.length > 0 ? h("section", null, h("h2", null, title), h("div", { class: kind }, ...children)) : "";
}
