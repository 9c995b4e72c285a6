// What this token may do, as the server says. What is not known is offered: the server refuses it by itself.

import { get, onForbidden } from "./api.js";

/** @typedef {"submitPrompt" | "abortSession" | "takeBackPrompt" | "settleAsk"} Operation */

/** In a sentence that says what is missing. @type {Record<Operation, string>} */
const DEEDS = {
  submitPrompt: "Sending prompts",
  abortSession: "Stopping a run",
  takeBackPrompt: "Removing queued prompts",
  settleAsk: "Answering",
};

/** @type {Record<Wire.TokenRole, string>} */
const ROLES = {
  watch: "Your token may only watch.",
  prompt: "Your token may send prompts, but not answer.",
  approve: "Your token may send prompts and answer, but not more.",
  admin: "Your token may do everything.",
};

/** @type {Wire.Me | undefined} */
let me;
let changed = () => {};

/** Calls back when the rights are known, and whenever they are others. @param {() => void} act */
export function onRights(act) {
  changed = act;
}

/** Asks the server. One that does not say leaves everything offered. */
export async function learnRights() {
  const before = JSON.stringify(me);
  try {
    me = await get("/api/me");
  } catch {
    // The next connection asks again; an invalid token is reported elsewhere.
    return;
  }
  if (JSON.stringify(me) !== before) changed();
}

/** Another token may have other rights. */
export function forgetRights() {
  me = undefined;
}

/** @param {Operation} operation */
export function may(operation) {
  return me?.operations.find((it) => it.name === operation)?.allowed ?? true;
}

/** Why it is not offered, with names of roles in backticks. @param {Operation} operation */
export function whyNot(operation) {
  const role = me?.operations.find((it) => it.name === operation)?.role ?? "admin";
  return `${me ? ROLES[me.role] : ""} ${DEEDS[operation]} needs a token for \`${role}\`.`.trimStart();
}

/** The role that a prompt with these permissions needs; nothing if this token has it. @param {string} mode */
export function roleMissing(mode) {
  const right = me?.permissions.find((it) => it.name === mode);
  return right && !right.allowed ? right.role : undefined;
}

// A token that was replaced by one for less is refused before the page knows.
onForbidden(() => void learnRights());
