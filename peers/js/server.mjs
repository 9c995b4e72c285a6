// A server of the built program for one judge: an empty folder, a port of its own, gone with `stop`.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const TOKEN = "t".repeat(43);

/** An empty folder for the server's data and whatever else it needs. */
export function folder_for(name) {
  return mkdtempSync(join(tmpdir(), `linkspan-${name}-`));
}

/** Starts `linkspan serve` in a folder; resolves once it listens. */
export async function serve(linkspan, folder, { path = process.env.PATH, flags = [] } = {}) {
  const where = ["--listen", "127.0.0.1:0", "--data-dir", join(folder, "data")];
  const child = spawn(linkspan, ["serve", "--ready-json", ...where, ...flags], {
    cwd: folder,
    env: { PATH: path, HOME: folder, LINKSPAN_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { url } = await new Promise((found, failed) => {
    let printed = "";
    child.on("exit", (code) => failed(new Error(`the server left with ${code}`)));
    child.stdout.on("data", (data) => {
      printed += data;
      if (printed.includes("\n")) found(JSON.parse(printed));
    });
  });
  const stop = async () => {
    const gone = new Promise((done) => child.once("exit", done));
    child.kill();
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, stop };
}
