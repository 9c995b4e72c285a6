// `Linkspan.spawn()` and the `linkspan` of `node_modules/.bin`: programs that are started, and that end.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Linkspan } from "../linkspan/src/node.js";

const PROGRAM = process.env.LINKSPAN ?? fileURLToPath(new URL("../../../target/debug/linkspan", import.meta.url));
const AGENT = fileURLToPath(new URL("../../../web/tests/agent.mjs", import.meta.url));
const BIN = fileURLToPath(new URL("../linkspan/bin/linkspan.js", import.meta.url));
const NODE = new URL("../linkspan/src/node.js", import.meta.url);

const home = mkdtempSync(join(tmpdir(), "linkspan-npm-"));
const cwd = join(home, "work of é");
mkdirSync(cwd);
writeFileSync(join(home, "config.toml"), `[engines.claude]\nprogram = ${JSON.stringify(AGENT)}\n`);
const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: home };
const args = ["--data-dir", join(home, "data"), "--config", join(home, "config.toml")];
const options = { program: PROGRAM, args, cwd, env };
const claude = (prompt, more = {}) => ({ prompt, engine: "claude", permissions: "ask", ...more });

after(() => rmSync(home, { recursive: true }));

/** Whether a process is there. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // What is dead and not yet waited for does not count.
  return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

async function isGone(pid) {
  for (let i = 0; i < 300 && isAlive(pid); i += 1) await new Promise((done) => setTimeout(done, 50));
  return !isAlive(pid);
}

async function collect(events) {
  const all = [];
  for await (const it of events) all.push(it);
  return all;
}

test("a started program runs, asks, is answered and resumes a session", async () => {
  const client = await Linkspan.spawn(options);
  const run = client.run(claude("ask"));
  const { session } = await run.submitted;
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.type === "ask.opened") await client.settle(event, "allow");
  }
  assert.equal(events.at(-1).data.answer, "It was allowed.");
  assert.deepEqual(events.map((it) => it.seq), events.map((_, at) => events[0].seq + at));
  const second = await collect(client.run(claude("once more", { session })));
  assert.equal(second.at(-1).data.answer, "once more");
  assert.equal(second[0].run, "r2");
  const { sessions } = await client.sessions();
  assert.deepEqual(sessions.map((it) => it.id), [session]);
  assert.ok((await client.engines()).engines.some((it) => it.name === "claude"));
  assert.deepEqual(await client.asks(), []);
  await client.close();
});

test("two followers of one session each get all of it", async () => {
  const client = await Linkspan.spawn(options);
  const run = client.run(claude("words 20"));
  const { session } = await run.submitted;
  const followed = collect(run);
  const follow = async (since) => {
    const seen = [];
    for await (const event of client.subscribe({ session, since })) {
      seen.push(event);
      if (event.type === "run.ended") break;
    }
    return seen;
  };
  const [whole, first, late] = await Promise.all([followed, follow(0), follow(3)]);
  assert.deepEqual(first, whole);
  assert.deepEqual(late, whole.slice(3));
  await client.close();
});

test("an abort, and what a program does not offer", async () => {
  const client = await Linkspan.spawn(options);
  const abort = new AbortController();
  const events = [];
  for await (const event of client.run(claude("wait"), { signal: abort.signal })) {
    events.push(event);
    if (event.type === "session.bound") abort.abort();
  }
  assert.equal(events.at(-1).data.outcome, "aborted");
  await assert.rejects(client.me(), { code: "not_supported" });
  assert.throws(() => client.subscribe(), { code: "not_supported" });
  await client.close();
  await assert.rejects(client.sessions(), { code: "program_ended" });
});

test("a program that is not there, or ends, is an error with its words", async () => {
  await assert.rejects(Linkspan.spawn({ program: join(home, "none") }), { code: "no_program" });
  await assert.rejects(Linkspan.spawn({ ...options, args: ["--nonsense"] }), { code: "program_ended", message: /--nonsense/ });
});

/** A program that says what it is told to, a piece of each line at a time. */
function impostor(...lines) {
  const program = join(home, "impostor.mjs");
  const pieces = lines.flatMap((it) => (JSON.stringify(it) + "\n").match(/[^]{1,40}/g));
  const body = `for (const it of ${JSON.stringify(pieces)}) { process.stdout.write(it); await new Promise((done) => setTimeout(done, 2)); }`;
  writeFileSync(program, `#!${process.execPath}\n${body}\nprocess.stdin.resume();\n`, { mode: 0o755 });
  return { program };
}

test("a program of another protocol is refused with both versions", async () => {
  const hello = { type: "bridge.ready", version: "9.9.9", protocol: 2, pid: 1 };
  const spawned = Linkspan.spawn(impostor(hello));
  await assert.rejects(spawned, { code: "other_protocol", message: /linkspan 9\.9\.9 speaks protocol 2, .* protocol 1/ });
});

test("only a line feed ends a line, and lines come in pieces", async () => {
  const title = "a\u2028b\u2029c\u0085d é😀".repeat(20);
  const reply = { type: "bridge.sessions", requestId: 1, sessions: [{ id: "s", title }], next: null };
  const client = await Linkspan.spawn(impostor({ type: "bridge.ready", version: "0", protocol: 1, pid: 1 }, reply));
  assert.equal((await client.sessions()).sessions[0].title, title);
  await client.close();
});

const PARENT = `
import { Linkspan } from ${JSON.stringify(NODE.href)};
const client = await Linkspan.spawn(${JSON.stringify(options)});
const run = client.run(${JSON.stringify(claude("wait"))});
process.stdin.on("end", () => process.exit(0)).resume();
for await (const event of run) if (event.type === "session.bound") console.log("at work");
`;

for (const end of ["exit", "SIGTERM", "SIGKILL"]) {
  test(`no child stays behind after ${end} of its parent`, async () => {
    const parent = spawn(process.execPath, ["--input-type=module", "-e", PARENT], { env, stdio: ["pipe", "pipe", "inherit"] });
    await new Promise((done) => parent.stdout.once("data", done));
    const children = below(parent.pid);
    assert.ok(children.length >= 2, `there are ${children.length} processes below it`);
    const ended = new Promise((done) => parent.on("exit", done));
    if (end === "exit") parent.stdin.end();
    else parent.kill(end);
    await ended;
    for (const pid of children) assert.equal(await isGone(pid), true, `${pid} is still there`);
  });
}

/** All processes below one. */
function below(pid) {
  const read = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  const own = read === "" ? [] : read.split(" ").map(Number);
  return [...own, ...own.flatMap(below)];
}

const run = (words, { input, more = {} } = {}) =>
  new Promise((done) => {
    const child = spawn(process.execPath, [BIN, ...words], { env: { ...env, LINKSPAN_BIN: PROGRAM, ...more }, stdio: "pipe" });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (it) => (stdout += it));
    child.stderr.on("data", (it) => (stderr += it));
    child.on("exit", (code, signal) => done({ code, signal, stdout, stderr }));
    child.stdin.end(input ?? "");
  });

test("the script hands on arguments, stdin, stdout, stderr and the exit code", async () => {
  assert.match((await run(["--version"])).stdout, /^linkspan \d/);
  const input = '{"type":"system","subtype":"init","session_id":"s1"}\n';
  const converted = await run(["convert", "--from", "claude", "--to", "thread"], { input });
  assert.equal(converted.code, 0);
  assert.match(converted.stdout, /^\{"type":"thread.started","thread_id":"s1"\}/);
  const wrong = await run(["--nonsense"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--nonsense/);
});

test("the script names the package that is missing", async () => {
  const { code, stderr } = await run(["--version"], { more: { LINKSPAN_BIN: "" } });
  assert.equal(code, 4);
  assert.match(stderr, /^linkspan: the package `linkspan-\w+-\w+`, which holds the program, is not installed\n\nhint: .*--omit=optional/);
});

test("the script hands on signals, and ends as the program does", async () => {
  const words = ["serve", "--listen", "127.0.0.1:0", ...args];
  // The last one is for the program itself, which cannot hand it on.
  for (const [signal, end] of [["SIGTERM", [0, null]], ["SIGINT", [0, null]], ["SIGKILL", [null, "SIGKILL"]]]) {
    const child = spawn(process.execPath, [BIN, ...words], { env: { ...env, LINKSPAN_BIN: PROGRAM }, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    await new Promise((done) => child.stderr.on("data", (it) => /listening on/.test((said += it)) && done()));
    const [pid] = below(child.pid);
    const ended = new Promise((done) => child.on("exit", (...how) => done(how)));
    if (signal === "SIGKILL") process.kill(pid, signal);
    else child.kill(signal);
    assert.deepEqual(await ended, end, said);
    assert.equal(isAlive(pid), false);
  }
});
