// What "always allow" would allow, in words; each agent offers it in its own form. Pure.

import { exact, inside } from "./words.js";

/** What a lasting answer covers, part by part; nothing if it would cover no more than this once. @param {unknown} suggestions @returns {string[]} */
export function grants(suggestions) {
  if (!Array.isArray(suggestions)) return [];
  const words = suggestions.flatMap((it) => offered(it));
  // A mode is granted only where there is no rule.
  const rules = words.filter((it) => !it.isMode);
  return (rules.length > 0 ? rules : words).map((it) => exact(it.text));
}

/** @typedef {{ text: string, isMode: boolean }} Grant */

/** @param {unknown} it @returns {Grant[]} */
function offered(it) {
  if (typeof it === "string") return offeredByName(it);
  const rules = inside(it, "rules");
  if (Array.isArray(rules)) return rules.map((rule) => grant(ruleOf(rule)));
  const directories = inside(it, "directories");
  if (Array.isArray(directories)) return directories.map((path) => grant(`files in ${String(path)}`));
  const mode = inside(it, "mode");
  if (typeof mode === "string") return [{ text: MODES[mode] ?? `everything in ${mode} mode`, isMode: true }];
  const name = inside(it, "name");
  if (inside(it, "kind") === "allow_always") return [grant(typeof name === "string" ? name : "what it offers")];
  const rule = inside(it, "acceptWithExecpolicyAmendment", "execpolicy_amendment");
  return Array.isArray(rule) ? [grant(`commands that start with ${rule.join(" ")}`)] : [];
}

/** @type {Record<string, string>} */
const MODES = { acceptEdits: "all file edits", bypassPermissions: "everything, without asking" };

/** Codex names its decisions, OpenCode its patterns. @param {string} name @returns {Grant[]} */
function offeredByName(name) {
  if (name === "acceptForSession") return [grant("this, whenever it is asked again")];
  return ["accept", "decline", "cancel"].includes(name) ? [] : [grant(name)];
}

/** @param {unknown} rule */
function ruleOf(rule) {
  const tool = String(inside(rule, "toolName") ?? "");
  const content = inside(rule, "ruleContent");
  return content === undefined ? `every use of ${tool}` : `${tool}(${String(content)})`;
}

/** @param {string} text @returns {Grant} */
function grant(text) {
  return { text, isMode: false };
}
