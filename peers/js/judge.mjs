// What all JavaScript judges share: finding files, reporting, and the self-test.
//
// A judge is a function from a file (its bytes, the flags, its path) to the first reason for rejecting it, or
// undefined. The closing line `N passed, M failed` counts files and is read by machines.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const SELFTEST = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "selftest");

/** Thrown by a judge's checks; its message is the reason shown beside the file's name. */
export class Rejected extends Error {}

export function reject(reason) {
  throw new Rejected(reason);
}

/**
 * Runs one judge from the command line and sets the exit code.
 *
 * `usage: NAME.mjs [--selftest] [FLAG...] DIR...`; folders are searched recursively for
 * names that end in `extension`, and a file may be named directly. `parallel` files are
 * judged at a time.
 */
export async function main({ name, extension, flags = [], judge, closing, parallel = 1 }) {
  const args = process.argv.slice(2);
  const given = new Set(args.filter((it) => it.startsWith("--")));
  const dirs = args.filter((it) => !it.startsWith("--"));
  for (const it of given) {
    if (it !== "--selftest" && !flags.includes(it)) return fail(`${name}: unknown flag ${it}`);
  }
  const verdict = async (file) => {
    try {
      return await judge(fs.readFileSync(file), given, file);
    } catch (err) {
      return err instanceof Rejected ? err.message : `judge failed: ${err.stack ?? err}`;
    }
  };
  if (given.has("--selftest")) return selftest(path.join(SELFTEST, name), extension, verdict);
  if (dirs.length === 0) return fail(`usage: ${name}.mjs [--selftest] ${flags.map((it) => `[${it}] `).join("")}DIR...`);

  const files = dirs.flatMap((it) => find(it, extension)).sort();
  if (files.length === 0) return fail(`${name}: no *${extension} file in ${dirs.join(", ")}`);
  let n_passed = 0;
  let n_failed = 0;
  while (files.length > 0) {
    const some = files.splice(0, parallel);
    const reasons = await Promise.all(some.map(verdict));
    n_passed += reasons.filter((it) => it === undefined).length;
    reasons.forEach((reason, at) => {
      if (reason === undefined) return;
      n_failed += 1;
      console.log(`FAIL ${some[at]}: ${one_line(reason)}`);
    });
  }
  for (const line of closing?.() ?? []) console.log(line);
  close(n_passed, n_failed);
}

// A bad example must fail for the reason it was made for: a file rejected because of a
// typing error would prove nothing about the check it stands for.
async function selftest(dir, extension, verdict) {
  const good = find(path.join(dir, "good"), extension);
  const bad = find(path.join(dir, "bad"), extension);
  if (good.length === 0 || bad.length === 0) return fail(`${dir}: needs good and bad examples`);
  const reasons = JSON.parse(fs.readFileSync(path.join(dir, "bad", "reasons.json"), "utf8"));
  const wrong = [];
  for (const file of good) {
    const reason = await verdict(file);
    if (reason !== undefined) wrong.push(`${file}: should pass: ${one_line(reason)}`);
  }
  for (const file of bad) {
    const expected = reasons[path.basename(file)];
    const reason = await verdict(file);
    if (!expected) wrong.push(`${file}: has no entry in reasons.json`);
    else if (reason === undefined) wrong.push(`${file}: should fail: ${expected}`);
    else if (!reason.includes(expected)) {
      wrong.push(`${file}: should fail with "${expected}", failed with: ${one_line(reason)}`);
    }
  }
  const names = new Set(bad.map((it) => path.basename(it)));
  const stale = Object.keys(reasons).filter((it) => !names.has(it));
  for (const it of stale) wrong.push(`${dir}: reasons.json names ${it}, which does not exist`);
  for (const line of wrong) console.log(`FAIL ${line}`);
  const n_all = good.length + bad.length + stale.length;
  close(n_all - wrong.length, wrong.length);
}

function find(dir, extension) {
  if (!fs.existsSync(dir)) return [];
  if (fs.statSync(dir).isFile()) return dir.endsWith(extension) ? [dir] : [];
  return fs
    .readdirSync(dir, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((it) => {
      const file = path.join(dir, it.name);
      if (it.isDirectory()) return find(file, extension);
      return it.name.endsWith(extension) ? [file] : [];
    });
}

function close(n_passed, n_failed) {
  console.log(`${n_passed} passed, ${n_failed} failed`);
  process.exitCode = n_failed > 0 ? 1 : 0;
}

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

function one_line(text) {
  const flat = text.replace(/\s+/g, " ");
  return flat.length > 400 ? `${flat.slice(0, 400)}…` : flat;
}

/** Splits JSONL strictly: valid UTF-8, one object per line, a final newline, no blank lines. */
export function json_lines(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    reject("not valid UTF-8");
  }
  if (text === "") reject("the file is empty");
  if (!text.endsWith("\n")) reject("the last line has no newline");
  return text
    .slice(0, -1)
    .split("\n")
    .map((line, index) => {
      const at = `line ${index + 1}`;
      let value;
      try {
        value = JSON.parse(line);
      } catch (err) {
        reject(`${at}: not JSON: ${err.message}`);
      }
      if (value === null || typeof value !== "object" || Array.isArray(value)) reject(`${at}: not an object`);
      return { at, value };
    });
}

/** The deepest ajv complaint: errors of an `anyOf` list every branch, the last path is the most telling. */
export function first_error(errors) {
  const deepest = errors.reduce((best, it) => (it.instancePath.length > best.instancePath.length ? it : best));
  const extra = deepest.params?.additionalProperty ?? deepest.params?.allowedValues ?? "";
  return `${deepest.instancePath || "/"} ${deepest.message}${extra === "" ? "" : ` (${extra})`}`;
}
