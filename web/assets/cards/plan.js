// The plan: what is done, what is being done, what comes.

import { h } from "../dom.js";
import { visible } from "../words.js";

const CLASSES = { completed: "done", in_progress: "doing", pending: "" };
const SAID = { completed: "done: ", in_progress: "now: ", pending: "to do: " };

/** @param {View.PlanRow} row @returns {import("../cards.js").View} */
export function planCard(row) {
  const node = h("article", { class: "plan-row" });
  const update = () => {
    const nDone = row.entries.filter((it) => it.status === "completed").length;
    const entries = row.entries.map((it) => {
      const text = it.status === "in_progress" && it.doing ? it.doing : it.text;
      return h("li", { class: CLASSES[it.status] }, h("span", { class: "sr" }, SAID[it.status]), visible(text));
    });
    node.hidden = entries.length === 0;
    node.replaceChildren(
      h(
        "div",
        { class: "plan" },
        h("h3", null, "Plan ", h("span", null, `${nDone}/${row.entries.length}`)),
        h("ul", { class: "todo" }, ...entries),
      ),
    );
  };
  return { node, update };
}
