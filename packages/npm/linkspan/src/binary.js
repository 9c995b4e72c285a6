// Where the program is: `LINKSPAN_BIN`, else the package of this platform that npm installs beside this one.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { LinkspanError } from "./errors.js";

/** The packages that hold the program, by platform and processor. */
export const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

/**
 * The path of the program. Programs start it directly: the `linkspan` of `node_modules/.bin` costs the start of a Node.
 * @returns {string}
 */
export function binaryPath() {
  return findBinary(process.env.LINKSPAN_BIN, `${process.platform}-${process.arch}`, createRequire(import.meta.url).resolve);
}

/**
 * @param {string | undefined} named @param {string} platform @param {(path: string) => string} resolve
 * @returns {string}
 */
export function findBinary(named, platform, resolve) {
  if (named) return named;
  const own = "or set LINKSPAN_BIN to a program that is there";
  if (!PLATFORMS.includes(platform)) {
    const message = `there is no program for ${platform}, only for ${PLATFORMS.join(", ")}`;
    throw new LinkspanError("no_program", message, { hint: `build it from source, ${own}` });
  }
  const name = `linkspan-${platform}`;
  try {
    return join(dirname(resolve(`${name}/package.json`)), "bin/linkspan");
  } catch (cause) {
    const message = `the package \`${name}\`, which holds the program, is not installed`;
    const hint = `install without \`--omit=optional\` (and without a lock file of another platform), ${own}`;
    throw new LinkspanError("no_program", message, { hint, cause });
  }
}
