// The small print between what agents say and do: where a run starts and ends, notices, compactions.

import { coded, h } from "../dom.js";
import { agentCost } from "../fold.js";
import { compacted, count, dollars, noticeText, outcomeLabel, plural, tokensInOut } from "../labels.js";
import { capital, plain, show, visible } from "../words.js";
import { markdown } from "./message.js";
import { block, fold, unfold } from "./parts.js";

/** @typedef {import("../cards.js").View} CardView */

/** @param {View.RunRow} row @returns {CardView} */
export function runCard(row) {
  const time = row.at
    ? h(
        "time",
        { datetime: row.at },
        new Date(row.at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }),
      )
    : "";
  const words = row.cause === "wake_up" ? `Run ${row.n}, resumed in the background` : `Run ${row.n}`;
  return { node: h("article", { class: "run" }, h("h2", null, words, time)), update: () => {} };
}

/** A prompt that was sent, as it will stand there. @param {View.PendingRow} row @returns {CardView} */
export function pendingCard(row) {
  const label = h("p", { class: "starting", role: "status" });
  const prompt = h("div", { class: "prompt", dir: "auto" });
  const node = h("article", { class: "message user pending", "aria-label": "Prompt" }, prompt, label);
  const update = () => {
    prompt.textContent = plain(row.prompt);
    prompt.hidden = row.prompt === "";
    label.textContent = row.label;
    label.hidden = row.label === "";
  };
  return { node, update };
}

/** @param {View.ForkRow} row @returns {CardView} */
export function forkCard(row) {
  const link = h("a", { href: `#/s/${encodeURIComponent(row.session)}`, dir: "auto" }, visible(row.title));
  const words = h("span", null, "Forked from ", link, "; everything above happened there");
  return { node: h("article", { class: "run fork" }, h("h2", null, words)), update: () => {} };
}

/** @type {Record<Wire.Outcome, "good" | "bad" | "odd">} */
const TONES = { completed: "good", failed: "bad", aborted: "odd", refused: "odd", limit: "bad", lost: "odd" };

/** @param {View.EndRow} row @returns {CardView} */
export function endCard(row) {
  const words = outcomeLabel(row.outcome, row.durationMs);
  const message = row.outcome === "aborted" ? "" : failure(row.error?.message ?? "");
  const why = message && h("span", { class: "why" }, ...coded(visible(message)));
  return {
    node: h(
      "article",
      { class: `end ${TONES[row.outcome] ?? "odd"}` },
      h("p", null, h("b", null, words), ...row.facts.map((it) => h("span", null, it))),
      why,
    ),
    update: () => {},
  };
}

/** An exit code in words. @param {string} message */
function failure(message) {
  return message.replace(/^(\S+(?: \S+)?) failed \(rc=(\d+)\)/, "$1 exited with code $2");
}

/** @param {View.NoticeRow} row @returns {CardView} */
export function noticeCard(row) {
  const strong = row.level === "warning" || row.level === "error";
  const text = h(
    "div",
    { class: `notice ${row.level}`, dir: "auto" },
    strong && h("b", null, row.level === "error" ? "Error " : "Warning "),
    ...coded(plain(noticeText(row.code, row.text)).slice(0, 5000)),
  );
  return { node: h("article", { class: "notice-row" }, text), update: () => {} };
}

/** @param {View.CompactionRow} row @param {import("../cards.js").Context} context @returns {CardView} */
export function compactionCard(row, context) {
  const label = h("b", null);
  const prose = h("div", { class: "prose", dir: "auto" });
  const node = fold("aside", [label], row, context, prose);
  const update = () => {
    label.textContent = row.status === undefined ? "Compacting the context…" : capital(visible(compacted(row.item)));
    if (context.isOpen(row)) markdown(prose, row.item.summary ?? "");
    unfold(node, context.isOpen(row));
  };
  return { node: h("article", { class: "folded" }, node), update };
}

/** @param {View.OtherRow} row @param {import("../cards.js").Context} context @returns {CardView} */
export function otherCard(row, context) {
  const label = h("b", null);
  const glimpse = h("span", { dir: "auto" });
  const body = h("div", null);
  const node = fold("aside", [label, glimpse], row, context, body);
  const update = () => {
    label.textContent = visible(row.item.name ?? "Something else");
    glimpse.textContent = plain(row.item.text ?? "").slice(0, 120);
    if (context.isOpen(row))
      body.replaceChildren(block("plain", "Details", visible(row.item.text ?? show(row.item.data))));
    unfold(node, context.isOpen(row));
  };
  return { node: h("article", { class: "folded" }, node), update };
}

/** What a session took: by model and by sub-agent. @param {import("../fold.js").Story} story */
export function costCard(story) {
  const head = [
    plural(story.nRuns, "run"),
    tokensInOut(story.tokens),
    story.hasCost && dollars(story.cost),
  ].filter(Boolean);
  const models = [...story.models.values()].filter((it) => tokensInOut(it.tokens));
  const agents = story.agents.map((it) => {
    const cost = agentCost(story, it);
    return {
      name: it.agent?.description ?? it.agent?.name ?? "Agent",
      tokens: it.tokens ?? {},
      cost: cost && `${cost.isGuess ? "≈ " : ""}${dollars(cost.usd)}`,
    };
  });
  return h(
    "div",
    { class: "cost" },
    h("p", { class: "sum" }, head.join(" · ")),
    models.length > 0 &&
      table(
        "Model",
        models.map((it) => ({
          name: it.model,
          tokens: it.tokens,
          cost: it.cost === undefined ? undefined : dollars(it.cost),
        })),
      ),
    agents.length > 0 && table("Sub-agent", agents),
    agents.length > 0 &&
      h(
        "p",
        { class: "cut" },
        "Sub-agent usage is included in the model totals; ≈ is estimated from tokens.",
      ),
  );
}

/** @param {string} label @param {{ name: string, tokens: View.Tokens, cost?: string }[]} rows */
function table(label, rows) {
  const head = [label, "Input", "Cached", "Output", "Cost"];
  const cells = (/** @type {View.Tokens} */ it) =>
    [it.input === undefined ? undefined : it.input + (it.cache_write ?? 0), it.cache_read, it.output].map((n) =>
      n === undefined ? "–" : count(n),
    );
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, ...head.map((it) => h("th", { scope: "col" }, it)))),
      h(
        "tbody",
        null,
        ...rows.map((row) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, visible(row.name)),
            ...cells(row.tokens).map((it) => h("td", null, it)),
            h("td", null, row.cost ?? "–"),
          ),
        ),
      ),
    ),
  );
}
