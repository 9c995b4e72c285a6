// What "always allow" would allow, in words; each agent offers it in its own form. Pure.

import { exact } from "./words.js";

/** What a lasting answer covers, part by part; nothing if it would cover no more than this once. @param {any} suggestions @returns {string[]} */
export function grants(suggestions) {
  if (!Array.isArray(suggestions)) return [];
  const words = suggestions.flatMap((it) => offered(it));
  // A mode is granted only where there is no rule.
  const rules = words.filter((it) => !it.isMode);
  return (rules.length > 0 ? rules : words).map((it) => exact(it.text));
}

/** @typedef {{ text: string, isMode: boolean }} Grant */

/** @param {any} it @returns {Grant[]} */
function offered(it) {
  if (typeof it === "string") return offeredByName(it);
  if (Array.isArray(it?.rules)) return it.rules.map((/** @type {any} */ rule) => grant(ruleOf(rule)));
  if (Array.isArray(it?.directories))
    return it.directories.map((/** @type {any} */ path) => grant(`files in ${String(path)}`));
  if (typeof it?.mode === "string") return [{ text: MODES[it.mode] ?? `everything in ${it.mode} mode`, isMode: true }];
  if (it?.kind === "allow_always") return [grant(typeof it.name === "string" ? it.name : "what it offers")];
  const rule = it?.acceptWithExecpolicyAmendment?.execpolicy_amendment;
  return Array.isArray(rule) ? [grant(`commands that start with ${rule.join(" ")}`)] : [];
}

/** @type {Record<string, string>} */
const MODES = { acceptEdits: "all file edits", bypassPermissions: "everything, without asking" };

/** Codex names its decisions, OpenCode its patterns. @param {string} name @returns {Grant[]} */
function offeredByName(name) {
  if (name === "acceptForSession") return [grant("this, whenever it is asked again")];
  return ["accept", "decline", "cancel"].includes(name) ? [] : [grant(name)];
}

/** @param {any} rule */
function ruleOf(rule) {
  const tool = String(rule?.toolName ?? "");
  return rule?.ruleContent === undefined ? `every use of ${tool}` : `${tool}(${String(rule.ruleContent)})`;
}

/** @param {string} text @returns {Grant} */
function grant(text) {
  return { text, isMode: false };
}
