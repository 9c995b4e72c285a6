// Requests to the server that the page came from. Every error is one kind of error.

import { token } from "./token.js";
import { capital } from "./words.js";

export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {string} [hint] */
  constructor(status, code, message, hint) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** Called when the server says that the token may not do something. */
let forbidden = () => {};

/** @param {() => void} act */
export function onForbidden(act) {
  forbidden = act;
}

/** Called when the server does not accept the token. */
let refused = () => {};

/** @param {() => void} act */
export function onRefused(act) {
  refused = act;
}

/** How far the server's clock is ahead of this one's, in milliseconds. */
let ahead = 0;

/** What the server's clock says, about. */
export function serverNow() {
  return Date.now() + ahead;
}

/** @param {Response} response */
function compareClocks(response) {
  const said = Date.parse(response.headers.get("Date") ?? "");
  // The header has whole seconds and a delay, so a small difference does not count.
  if (Number.isFinite(said)) ahead = Math.abs(said - Date.now()) > 2_000 ? said - Date.now() : 0;
}

/** What went wrong, for people. @param {unknown} error */
export function sentence(error) {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError && error.hint ? `; ${error.hint}` : "";
  return `${capital(message)}${hint}.`;
}

/** @param {string} path @param {RequestInit} [init] */
export async function request(path, init = {}) {
  let response;
  const sent = token();
  try {
    response = await fetch(path, {
      ...init,
      headers: { ...init.headers, Authorization: `Bearer ${sent ?? ""}` },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "the server cannot be reached");
  }
  compareClocks(response);
  if (response.ok) return response;
  if (response.status === 403) forbidden();
  // A late answer about a token that this tab has replaced says nothing about the one it has now.
  if (response.status === 401 && sent === token()) refused();
  const body = await response.json().catch(() => undefined);
  const it = body?.error;
  throw new ApiError(
    response.status,
    it?.code ?? "unknown",
    it?.message ?? `the server answered ${response.status}`,
    it?.hint,
  );
}

/** @param {string} path @param {RequestInit} [init] */
export async function get(path, init) {
  return (await request(path, init)).json();
}

/** @param {string} path @param {unknown} body */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** @param {string} id */
export function sessionPath(id) {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

/** A file below the directory of a session. @param {string} session @param {string} path */
export async function file(session, path) {
  return (await request(`${sessionPath(session)}/file?path=${encodeURIComponent(path)}`)).blob();
}

/** Answers what an agent asks; what went wrong, if something did. @param {View.AskRow} row @param {import("./cards.js").Answer} answer */
export async function settle(row, answer) {
  try {
    await post(`/api/asks/${encodeURIComponent(row.id)}`, answer);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return `Already answered elsewhere: ${error.message}`;
    return sentence(error);
  }
}
