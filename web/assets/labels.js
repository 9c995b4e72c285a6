// The words of a transcript, the same as in `text`, `markdown` and `html`: `fixtures/transcript/labels.json` holds
// both to one table. Pure.
//
// A later server may know more than this page; what has no label here is named as it travels.

/** Characters of a prompt that make a title. */
const MAX_TITLE = 100;
/** Room for the input of a tool whose meaning is not known. */
const MAX_INPUT = 100;

/** @param {number} ms */
export function duration(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s}.${Math.floor((ms % 1000) / 100)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${twoDigits(s % 60)}s`;
  return `${Math.floor(s / 3600)}h ${twoDigits(Math.floor((s % 3600) / 60))}m`;
}

/** @param {number} n */
export function twoDigits(n) {
  return String(n).padStart(2, "0");
}

/** @param {number} n */
export function count(n) {
  if (n < 10_000) return String(n);
  return n < 1_000_000 ? `${tenths(n, 1_000)}k` : `${tenths(n, 1_000_000)}M`;
}

/** Half a tenth is rounded up. @param {number} n @param {number} unit */
function tenths(n, unit) {
  const it = Math.floor((n + unit / 20) / (unit / 10));
  return `${Math.floor(it / 10)}.${it % 10}`;
}

/** @param {number} usd */
export function dollars(usd) {
  if (usd === 0) return "$0";
  return usd < 0.1 ? `$${(Math.round(usd * 10_000) / 10_000).toFixed(4)}` : `$${(Math.round(usd * 100) / 100).toFixed(2)}`;
}

/** @param {number} n @param {string} word */
export function plural(n, word) {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

/** The first characters; says so when there are more. @param {string} text @param {number} n */
function cut(text, n) {
  // Longer than any cut, whatever the characters are made of.
  const characters = [...text.slice(0, 2 * n + 2)];
  return characters.length > n ? `${characters.slice(0, n).join("")}…` : text;
}

/** What a session is called after its first prompt. @param {string} prompt @returns {string | undefined} */
export function promptTitle(prompt) {
  const line = prompt
    .split("\n")
    .map((it) => it.trim())
    .find((it) => it !== "");
  return line && cut(line, MAX_TITLE);
}

/** All that went in, cached or not. @param {Partial<Wire.Tokens>} tokens */
export function allInput(tokens) {
  return (tokens.input ?? 0) + (tokens.cache_read ?? 0) + (tokens.cache_write ?? 0);
}

/** @param {View.Tokens} a @param {View.Tokens | undefined} b @returns {View.Tokens} */
export function plus(a, b) {
  /** @type {View.Tokens} */
  const both = { ...a };
  for (const name of /** @type {const} */ (["input", "cache_read", "cache_write", "output", "reasoning"])) {
    const more = b?.[name];
    if (more !== undefined) both[name] = (both[name] ?? 0) + more;
  }
  return both;
}

/** @param {Partial<Wire.Tokens> | undefined} tokens */
export function tokensInOut(tokens) {
  const input = allInput(tokens ?? {});
  const output = tokens?.output ?? 0;
  return input || output ? `${count(input)} in / ${count(output)} out tokens` : "";
}

/** A mark, how a run ended, and a word between that and how long it took. @type {Record<Wire.Outcome, [string, "in" | "after"]>} */
const OUTCOMES = {
  completed: ["✓ done", "in"],
  failed: ["✗ failed", "after"],
  aborted: ["⊘ stopped", "after"],
  refused: ["⊘ refused", "after"],
  limit: ["✗ stopped at a limit", "after"],
  lost: ["? cut off", "after"],
};

/** How a run ended and how long it took. @param {Wire.Outcome} outcome @param {number | undefined} ms */
export function outcomeLabel(outcome, ms) {
  const [verdict, word] = OUTCOMES[outcome] ?? [outcome, "after"];
  return ms === undefined ? verdict : `${verdict} ${word} ${duration(ms)}`;
}

/** The tokens of a run: by model where that is known, because it includes the sub-agents. @param {Wire.RunEnded} ended @returns {View.Tokens | undefined} */
export function runTokens({ models = [], usage }) {
  /** @type {View.Tokens} */
  const none = {};
  const byModel = models.reduce((sum, it) => plus(sum, it.tokens), none);
  return allInput(byModel) || byModel.output ? byModel : usage?.tokens;
}

/** What a run cost: by model where that is known, because it includes the sub-agents. @param {Wire.RunEnded} ended */
export function runCost({ models = [], usage }) {
  const costs = models.map((it) => it.cost_usd);
  const isKnown = costs.length > 0 && costs.every((it) => it !== undefined);
  return isKnown ? costs.reduce((sum, it) => sum + (it ?? 0), 0) : usage?.cost_usd;
}

/** What a run took: requests to the model, tokens, cost. @param {Wire.RunEnded} ended @param {number} nRequests */
export function summaryLine(ended, nRequests) {
  const cost = runCost(ended) ?? 0;
  const nDenied = ended.denials?.length ?? 0;
  return [
    nRequests > 0 ? plural(nRequests, "request") : "",
    tokensInOut(runTokens(ended)),
    cost > 0 ? dollars(cost) : "",
    nDenied > 0 ? `${nDenied} denied` : "",
  ].filter((it) => it !== "");
}

/** Words that agents use in their notices about the model's API, and what they mean. */
const API_WORDS = new Map([
  ["allowed_warning", "almost reached"],
  ["authentication_failed", "authentication failed"],
  ["billing_error", "billing error"],
  ["invalid_request", "invalid request"],
  ["server_error", "server error"],
]);

/** A notice as it is shown. @param {string} code @param {string} text */
export function noticeText(code, text) {
  // The text is only the task's own name.
  if (code.startsWith("task_")) return `${code.replaceAll("_", " ")}: ${text}`;
  if (code !== "api_retry" && code !== "rate_limit") return text;
  return text.replaceAll(/[a-z_]+/g, (word) => API_WORDS.get(word) ?? word);
}

/** How a call ended, if that is worth a word. @param {Wire.Status} status @param {number | undefined} exitCode */
export function callLabel(status, exitCode) {
  switch (status) {
    case "ok":
      return exitCode ? `exit ${exitCode}` : undefined;
    case "error":
      return exitCode ? `exit ${exitCode}` : "failed";
    case "lost":
      return "end not seen";
    default:
      return status;
  }
}

/** How an ask was settled. @param {Wire.AskKind} kind @param {Wire.Decision} decision */
export function decisionLabel(kind, decision) {
  switch (decision) {
    case "allowed":
      return { permission: "allowed", question: "answered", plan: "approved" }[kind];
    case "allowed_always":
      return "always allowed";
    case "denied":
      return kind === "question" ? "skipped" : "denied";
    case "lost":
      return "never answered";
    default:
      return decision;
  }
}

/** What a compaction did. @param {Wire.Compaction} it */
export function compacted({ trigger, tokens_before, tokens_after }) {
  const tokens =
    tokens_before === undefined
      ? ""
      : tokens_after === undefined
        ? `: ${count(tokens_before)} tokens before`
        : `: ${count(tokens_before)} → ${count(tokens_after)} tokens`;
  return `context compacted${trigger === undefined ? "" : ` (${trigger})`}${tokens}`;
}

/** Tools whose own names are no words. @type {Record<string, string>} */
const TOOLS = {
  command_execution: "Command",
  exec_command: "Command",
  file_change: "Edit files",
  apply_patch: "Edit files",
  mcp_tool_call: "MCP tool",
  web_search: "Web search",
  todo_list: "To-do list",
  ExitPlanMode: "Plan",
  AskUserQuestion: "Question",
};

/** A tool as people call it. @param {string} name */
export function toolName(name) {
  return TOOLS[name] ?? name;
}

/** What the titles of known tools begin with. */
const VERBS = ["Read", "Edit", "Write", "Delete", "Move", "Fetch", "Search"];

/** The name of a call and what it is about. Titles of known tools begin with a verb of their own. @param {Wire.Tool} tool @returns {[string, string | undefined]} */
export function toolLabel(tool) {
  const name = toolName(tool.name);
  const { kind, title, command, mcp } = tool.class;
  const subject = title === tool.name ? undefined : title;
  switch (kind) {
    case "shell":
      // A title in the agent's own words does not show what is run.
      if (command === undefined || title.includes(command)) return [name, subject];
      return [name, subject === undefined || command.includes(title) ? command : `${title}: ${command}`];
    case "task":
    case "ask":
      return [name, subject];
    case "read":
    case "edit":
    case "write":
    case "delete":
    case "move":
    case "search":
    case "fetch":
    case "web_search":
    case "todo": {
      const space = title.indexOf(" ");
      if (space < 0) return [title, undefined];
      const verb = title.slice(0, space);
      if (VERBS.includes(verb) || verb === tool.name) return [verb, title.slice(space + 1)];
      // The agent's own words do not always say what it is about.
      const about = target(tool);
      return [name, about === undefined || title.includes(about) ? title : `${title}: ${about}`];
    }
    case "mcp":
      return [mcp ? `${mcp.server}/${mcp.tool}` : name, input(tool)];
    case "think":
    case "mode":
    case "other":
    default:
      return [name, input(tool)];
  }
}

/** What is looked for, or the file that is meant. @param {Wire.Tool} tool */
function target(tool) {
  const it = tool.class.query ?? tool.class.paths?.[0]?.path;
  return it?.trim() ? it : undefined;
}

/** The input on one short line. @param {Wire.Tool} tool */
function input(tool) {
  const text = JSON.stringify(tool.input);
  return text === undefined || text === "{}" || text === "null" ? undefined : cut(text, MAX_INPUT);
}
