// The real `linkspan serve`, in a home of its own, to be killed and started again.
//
// `LINKSPAN` names another program than target/debug/linkspan.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = process.env.LINKSPAN ?? fileURLToPath(new URL("../../target/debug/linkspan", import.meta.url));
const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));

/** A server whose only agent is `agent.mjs`, as Claude Code; `config` and `env` can say otherwise, `flags` are more of its flags. */
export class Server {
  home = mkdtempSync(join(tmpdir(), "linkspan-page-"));
  work = join(this.home, "work");
  #env;
  #flags;
  #child;
  /** The address, without a slash at its end. */
  url = "";
  token = "";

  constructor({ config = `[engines.claude]\nprogram = ${JSON.stringify(AGENT)}\n`, env = {}, flags = [] } = {}) {
    this.#flags = flags;
    mkdirSync(this.work);
    writeFileSync(join(this.home, "config.toml"), config);
    // Nothing of the machine: no other agent, no sessions, no settings.
    this.#env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: this.home, ...env };
  }

  /** Starts it, at the address that it had; `printed` is the page's address, on the first start. */
  async start() {
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const folder = join(this.home, "data");
    const flags = ["--listen", listen, "--data-dir", folder, "--config", join(this.home, "config.toml")];
    const stdio = ["ignore", "inherit", "pipe"];
    const child = spawn(PROGRAM, ["serve", ...flags, ...this.#flags], { cwd: this.work, env: this.#env, stdio });
    this.#child = child;
    let said = "";
    const isFirst = this.token === "";
    await new Promise((done, fail) => {
      child.on("error", fail);
      child.on("exit", () => fail(new Error(`the server has ended: ${said}`)));
      child.stderr.on("data", (it) => {
        said += it;
        if (/listening on \S+\n/.test(said)) done(undefined);
      });
    });
    this.url = /listening on (\S+)/.exec(said)[1];
    if (!isFirst) return this;
    // It is printed to terminals alone.
    this.token = readFileSync(join(folder, "token"), "utf8").trim();
    this.printed = `${this.url}/#token=${this.token}`;
    return this;
  }

  /** Ends it: `SIGKILL` at once, `SIGTERM` in peace. */
  async stop(signal = "SIGTERM") {
    const child = this.#child;
    child.removeAllListeners("exit");
    const ended = new Promise((done) => child.on("exit", done));
    child.kill(signal);
    await ended;
  }

  async leave() {
    await this.stop();
    rmSync(this.home, { recursive: true });
  }

  async api(path, body) {
    const headers = { Authorization: `Bearer ${this.token}` };
    const init = body ? { method: "POST", body: JSON.stringify(body), headers } : { headers };
    const response = await fetch(`${this.url}/api${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Gives a prompt; the id of its session. */
  async prompt(prompt, fields = {}) {
    return (await this.api("/runs", { prompt, engine: "claude", cwd: this.work, permissions: "ask", ...fields })).session;
  }

  /** The events of a session, all of them. */
  async events(session) {
    const headers = { Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}/api/sessions/${session}/events?limit=100000`, { headers });
    const lines = (await response.text()).split("\n").filter(Boolean);
    return lines.map((it) => JSON.parse(it));
  }

  /** Waits until what a session was last asked to do is done. */
  async idle(session) {
    for (;;) {
      const { state, runs } = await this.api(`/sessions/${session}`);
      if (state === "idle" && runs.at(-1)?.outcome) return;
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  /** The page's address for a session. */
  address(session) {
    return `${this.url}/#token=${this.token}${session ? `/s/${session}` : ""}`;
  }

  /** What `linkspan` prints in this home. */
  async run(...words) {
    const flags = ["--data-dir", join(this.home, "data")];
    const child = spawn(PROGRAM, [...words, ...flags], { env: this.#env, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (it) => (said += it));
    await new Promise((done) => child.on("exit", done));
    return said.trim();
  }
}
