// Times, names and foreign text in the form people read; the words of a transcript are in `labels.js`. Pure.

import { toolName, twoDigits } from "./labels.js";

/** Milliseconds between two moments, if both are known. @param {string | undefined} from @param {string | undefined} to */
export function between(from, to) {
  if (!from || !to) return undefined;
  const ms = Date.parse(to) - Date.parse(from);
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}

/** An engine as people call it: of a recording, only the name of its file. @param {string} engine */
export function engineName(engine) {
  return visible(engine.startsWith("replay:") ? `replay:${engine.split("/").at(-1)?.replace(/^replay:/, "")}` : engine);
}

/** What agents' programs are called by people. @type {Record<string, string>} */
const AGENTS = {
  claude: "Claude",
  codex: "Codex",
  opencode: "OpenCode",
  gemini: "Gemini",
  openhands: "OpenHands",
  qwen: "Qwen",
  goose: "Goose",
};

/** Whether a session plays what was recorded; there is nobody to talk to. @param {string} engine */
export function isRecording(engine) {
  return engine.startsWith("replay:");
}

/** The agents' own names of their modes; those that are words are not here. @type {Record<string, string>} */
const MODES = {
  "": "",
  default: "",
  acceptEdits: "Accepts edits",
  auto_edit: "Accepts edits",
  autoEdit: "Accepts edits",
  bypassPermissions: "Allows everything",
  yolo: "Allows everything",
  dontAsk: "Denies what is not allowed",
  plan: "Plan mode",
  auto: "Auto mode",
  "on-request": "Asks when it needs more",
  "on-failure": "Asks after failures",
  untrusted: "Asks before most commands",
  never: "Never asks",
};

/** What an agent does without asking, where it says so. @param {string} mode */
export function modeName(mode) {
  return MODES[mode] ?? `${mode} mode`;
}

/** An agent in a sentence. @param {string} engine */
export function agentName(engine) {
  if (engine.startsWith("replay")) return "the recording";
  if (engine.startsWith("acp:")) return "the agent";
  return AGENTS[engine] ?? engineName(engine);
}

/** The same at the start of a sentence. @param {string} engine */
export function agentTitle(engine) {
  return capital(agentName(engine));
}

/** What an ask is about, in one line: some agents have no more to say than the name of the tool. @param {Wire.Ask} ask */
export function askTitle(ask) {
  return ask.title === ask.tool ? toolName(ask.tool) : ask.title;
}

/** Words that say what a tool does to a file and nothing else. */
const FILE_TOOL = /\b(?:edit|write|update|create|change|modify|delete|add|patch|apply|multiedit|notebookedit|files?|to|the|in)\b/gi;

/** Whether a line says no more than that this tool works on these files. @param {string} text @param {string} tool @param {string[]} paths */
export function saysOnly(text, tool, paths) {
  // The longer ones first: a path holds its own name.
  const names = paths.flatMap((it) => [it, it.split("/").at(-1) ?? it]).sort((a, b) => b.length - a.length);
  const rest = [...names, tool, toolName(tool)].filter(Boolean).reduce((left, it) => left.replaceAll(it, " "), text);
  return rest.replace(FILE_TOOL, " ").replace(/[\s`'"“”:,.…/\\]+/g, "") === "";
}

/** Minutes and seconds, as clocks count down. @param {number} ms */
export function countdown(ms) {
  const s = Math.ceil(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)}:${twoDigits(s % 60)}`;
  return `${Math.floor(s / 3600)}:${twoDigits(Math.floor(s / 60) % 60)}:${twoDigits(s % 60)}`;
}

/** How long ago, in a few letters. @param {string} at @param {number} now */
export function ago(at, now) {
  const s = Math.max(0, (now - Date.parse(at)) / 1000);
  if (!Number.isFinite(s)) return "";
  if (s < 60) return "now";
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  if (s < 604_800) return `${Math.floor(s / 86_400)} d`;
  return at.slice(0, 10);
}

/** The first line that says something. @param {string} text @param {number} max */
export function firstLine(text, max = 120) {
  const line =
    text
      .slice(0, 4000)
      .split("\n")
      .find((it) => it.trim() !== "")
      ?.trim() ?? "";
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** Control characters, characters that turn the order of reading, and characters without a shape. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\p{Surrogate}]/gu;
/** Also those that prose needs, and that change a command: joiners, variation selectors, unusual spaces. */
const AMBIGUOUS = /[\u00a0\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000\ufe00-\ufe0f\r]/gu;

/** @param {string} it */
function spelled(it) {
  return `⟨U+${(it.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/**
 * Text in which nothing hides: characters without a shape, and those that turn the order of
 * reading, are spelled out.
 * @param {string} text
 */
export function visible(text) {
  return text.replaceAll("\r\n", "\n").replace(HIDDEN, spelled);
}

/**
 * Text to the letter, for what somebody is about to allow: whatever looks like something else, or
 * like nothing, is spelled out.
 * @param {string} text
 */
export function exact(text) {
  return text.replace(AMBIGUOUS, spelled).replace(HIDDEN, spelled);
}

/** Output of a program without the colors and moves meant for a terminal. @param {string} text */
export function plain(text) {
  return visible(text.replace(ESCAPES, ""));
}

/** What is inside of foreign JSON under these names, if anything is. @param {unknown} value @param {string[]} names @returns {unknown} */
export function inside(value, ...names) {
  return names.reduce((it, name) => Object(it)[name], value);
}

/** A value as text. @param {unknown} value */
export function show(value) {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** With a capital at the start. @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
