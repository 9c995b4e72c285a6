// What somebody sees before a session is open: the agents that are there, how to get the others,
// and recorded sessions to try without any.

import { button, by_id, h } from "./dom.js";
import { visible } from "./words.js";

/** @param {Wire.Engines} all @param {(engine: string) => void} pick @param {(replay: string) => void} play */
export function draw_start(all, pick, play) {
  const installed = all.engines.filter((it) => it.installed);
  const missing = all.engines.filter((it) => !it.installed);
  const replays = section(
    installed.length === 0
      ? "No agent is installed here. Watch a recorded session:"
      : "Recorded sessions, to look around",
    all.replays
      .map((it) =>
        button(visible(it.name.replace(/^replay:/, "")), () => play(it.name), { class: "engine", "data-name": it.name }),
      )
      .map((it, n) => (it.append(h("small", null, visible(all.replays[n]?.summary ?? ""))), it)),
  );
  by_id("start").replaceChildren(
    h("h1", null, installed.length > 0 ? "What is to be done?" : "Welcome to linkspan"),
    installed.length === 0 ? replays : "",
    section(
      "Agents",
      installed.map((it) => {
        const node = button(it.name, () => pick(it.name), { class: "engine" });
        node.append(
          h(
            "small",
            null,
            [it.summary, it.version]
              .filter(Boolean)
              .map((text) => visible(String(text)))
              .join(" · "),
          ),
        );
        return node;
      }),
    ),
    section(
      installed.length > 0 ? "Not installed" : "Agents, and how to install them",
      missing.map((it) =>
        h(
          "div",
          { class: "engine missing" },
          h("b", null, it.name),
          h("small", null, visible(it.summary)),
          it.install ? h("code", null, visible(it.install)) : "",
        ),
      ),
    ),
    installed.length > 0 ? replays : "",
  );
}

/** @param {string} title @param {Element[]} children */
function section(title, children) {
  return children.length > 0
    ? h("section", null, h("h2", null, title), h("div", { class: "engines" }, ...children))
    : "";
}
