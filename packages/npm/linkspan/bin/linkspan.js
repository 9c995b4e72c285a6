#!/usr/bin/env node
// Runs the program of this platform as if it had been called itself: its stdio, arguments, signals and exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";

import { binaryPath } from "../src/binary.js";

/** Cannot be started; the same as the program's own code for that. */
const NOT_STARTED = 4;
const SIGNALS = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);

/** @param {unknown} error */
function fail(error) {
  const { message, hint } = /** @type {{ message: string, hint?: string }} */ (error);
  process.stderr.write(`linkspan: ${message}\n${hint ? `\nhint: ${hint}\n` : ""}`);
  process.exit(NOT_STARTED);
}

/** @returns {string} */
function path() {
  try {
    return binaryPath();
  } catch (error) {
    return fail(error);
  }
}

const program = path();
const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: false });
child.on("error", (cause) => fail({ message: `cannot start \`${program}\`: ${cause.message}` }));
// A terminal sends these to the program as well; the second one would end it at once.
const isFromTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
for (const signal of SIGNALS) {
  const isSentTwice = isFromTerminal && (signal === "SIGINT" || signal === "SIGQUIT");
  process.on(signal, () => isSentTwice || child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  // The parent process sees the same exit code or signal.
  for (const it of SIGNALS) process.removeAllListeners(it);
  process.kill(process.pid, signal);
  // Some signals do not end a Node.
  setTimeout(() => process.exit(128 + (constants.signals[signal] ?? 0)), 100);
});
