// Canonical events as nodes. Foreign text becomes text nodes and nothing else.

/** @param {string} tag @param {string} name @param {...(Node | string)} content */
export function node(tag, name, ...content) {
  const it = document.createElement(tag);
  it.className = name;
  it.append(...content);
  return it;
}

/** The feed of one session. */
export class Feed {
  /** What an open item is shown with, by its id. */
  #items = new Map();
  #asks = new Map();

  /** `settle` answers an ask, given its event and a decision. */
  constructor(root, settle) {
    this.root = root;
    this.settle = settle;
    root.replaceChildren();
  }

  /** @param {import("linkspan").Event} event */
  add(event) {
    const isAtEnd = this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < 40;
    this.#show(event);
    if (isAtEnd) this.root.scrollTop = this.root.scrollHeight;
  }

  #show(event) {
    switch (event.type) {
      case "item.opened":
      case "item.updated":
        return this.#item(event.data, "running");
      case "item.delta": {
        const shown = this.#items.get(event.data.item);
        if (event.data.channel === "text") shown?.text?.append(event.data.text);
        else if (event.data.channel === "output") shown?.output?.append(event.data.text);
        return undefined;
      }
      case "item.closed":
        return this.#item(event.data.item, event.data.status);
      case "ask.opened":
        return this.#ask(event);
      case "ask.settled":
        return this.#settled(event.data);
      case "run.ended":
        return this.#ended(event.data);
      case "notice.raised":
        if (event.data.level !== "warning" && event.data.level !== "error") return undefined;
        return this.root.append(node("p", `note ${event.data.level}`, event.data.text));
      default:
        return undefined;
    }
  }

  #item(item, status) {
    const before = this.#items.get(item.id);
    const shown = show(item, status);
    if (!shown) return;
    if (before) {
      if (before.root.open) shown.root.open = true;
      before.root.replaceWith(shown.root);
    } else this.root.append(shown.root);
    if (status === "running") this.#items.set(item.id, shown);
    else this.#items.delete(item.id);
  }

  #ask(event) {
    const { title, description, input, kind } = event.data;
    const card = node("div", "ask", node("strong", "", `${kind === "permission" ? "May it run" : "It asks"}: ${title}`));
    if (description) card.append(node("p", "", description));
    if (input !== undefined) card.append(node("pre", "", input.command ?? JSON.stringify(input, null, 2)));
    const answers = node("div", "answers");
    for (const [words, decision, name] of [["Allow", "allow", "primary"], ["Deny", "deny", ""]]) {
      const button = node("button", name, words);
      button.type = "button";
      button.onclick = async () => {
        for (const it of answers.querySelectorAll("button")) it.disabled = true;
        const refusal = await this.settle(event, decision);
        if (refusal) answers.append(node("span", "error", refusal));
      };
      answers.append(button);
    }
    card.append(answers);
    this.#asks.set(event.data.id, card);
    this.root.append(card);
  }

  #settled({ id, decision }) {
    const card = this.#asks.get(id);
    card?.classList.add("settled");
    card?.querySelector(".answers").replaceChildren(decision.replace("_", " "));
  }

  #ended({ outcome, error, duration_ms: ms, models = [] }) {
    const cost = models.reduce((sum, it) => sum + (it.cost_usd ?? 0), 0);
    const figures = [ms === undefined ? "" : `${(ms / 1000).toFixed(1)} s`, cost > 0 ? `$${cost.toFixed(4)}` : ""];
    const words = [outcome, error?.message === outcome ? "" : error?.message, ...figures].filter(Boolean).join(" · ");
    this.root.append(node("p", `end ${outcome}`, words));
  }
}

/** What shows an item, and where its text and its output go on. */
function show(item, status) {
  switch (item.kind) {
    case "message": {
      const root = node("div", `message ${item.role}`, item.text);
      return { root, text: root };
    }
    case "reasoning": {
      const root = node("div", "reasoning", item.text);
      return { root, text: root };
    }
    case "tool": {
      const output = node("pre", "", resultText(item.result?.content));
      const command = item.class.command ?? (item.input === undefined ? "" : JSON.stringify(item.input, null, 2));
      const words = status === "ok" ? "" : status;
      const head = node("summary", "", node("span", "title", item.class.title), node("span", `status ${status}`, words));
      return { root: node("details", "tool", head, node("pre", "", command), output), output };
    }
    case "plan": {
      const entries = item.entries.map((it) => node("li", it.status, it.text));
      return { root: node("ul", "plan", ...entries) };
    }
    default:
      return undefined;
  }
}

/** The text of a tool's result. */
function resultText(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((it) => it.text ?? `[${it.type}]`).join("\n");
}
