// A stand-in for `linkspan serve`, for work on the page: it serves the files of `web/`, plays golden
// files of `fixtures/` over the real contract, and can be told to misbehave.
//
//   node web/tests/mock.mjs [--port 8788] [--nothing-installed]
//
// It keeps nothing, checks little, and knows one token: `test`.

import { randomUUID } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { long } from "./long.mjs";
import { me } from "./rights.mjs";

const require = createRequire(new URL("../../peers/js/", import.meta.url));
const { WebSocketServer } = require("ws");

const WEB = fileURLToPath(new URL("..", import.meta.url));
const FIXTURES = fileURLToPath(new URL("../../fixtures/", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'";
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGNgYPiPBw0kJTLSAACxYwGfzaMTDwAAAABJRU5ErkJggg==",
  "base64",
);
const REPLAYS = {
  everything: "model/everything",
  tools: "claude/multi_tool.partial",
  permission: "claude/control_permissions.duplex",
  question: "claude/control_ask_user_question.duplex",
  agents: "claude/subagent_nested",
  story: "openresponses/recorded-lmstudio-basic.1",
  codex: "codex/app_server.duplex",
};
const SUMMARIES = {
  everything: "Something of everything that can happen",
  tools: "Claude Code runs a command, writes and edits a file",
  permission: "Claude Code asks before it writes",
  question: "Claude Code has a question",
  agents: "Claude Code hands work to sub-agents",
  story: "A model tells a story, word by word",
  codex: "Codex, over its app server",
};

/** Events of a golden file. */
export function golden(name) {
  return readFileSync(join(FIXTURES, `${name}.events.jsonl`), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((it) => JSON.parse(it));
}

export async function start({ port = 0, token = "test", pace = 40, installed = true } = {}) {
  const sessions = new Map();
  const sockets = new Set();

  const summary = (it) => ({
    id: it.id,
    engine: it.engine,
    native: it.native,
    cwd: it.cwd,
    title: it.title,
    created_at: it.created_at,
    active_at: it.active_at,
    head: it.events.length,
    bytes: 0,
    state: it.asks.size > 0 ? "waiting" : it.isRunning ? "running" : it.isStarting ? "starting" : "idle",
    queue: it.queue.length,
    parent: it.parent,
  });
  const tell = (it) => send({ type: "bridge.session", session: summary(it) });
  const send = (message) => {
    for (const socket of sockets) socket.send(JSON.stringify(message));
  };

  function session({
    engine = "claude",
    title,
    at = new Date().toISOString(),
    id = randomUUID(),
    native = randomUUID(),
  }) {
    const it = {
      id,
      engine,
      native,
      title,
      cwd: "/workspace",
      created_at: at,
      active_at: at,
      events: [],
      lines: [],
      queue: [],
      asks: new Map(),
      isRunning: false,
      wake: undefined,
      abort: false,
    };
    sessions.set(id, it);
    return it;
  }

  function append(it, event, at = new Date().toISOString()) {
    const full = {
      v: 1,
      seq: it.events.length + 1,
      at: event.at ?? at,
      session: it.id,
      run: event.run,
      engine: it.engine,
      path: event.path,
      origin: event.origin ?? "agent",
      why: event.why,
      type: event.type,
      data: event.data,
    };
    const line = JSON.stringify(full);
    it.events.push(full);
    it.lines.push(line);
    it.active_at = new Date().toISOString();
    for (const socket of sockets) if (socket.only === undefined || socket.only.has(it.id)) socket.send(line);
  }

  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  /** Plays a recording into a session; an ask waits for its answer. */
  async function play(it, name, prompt) {
    it.isRunning = true;
    const isStopped = it.abort;
    it.abort = false;
    tell(it);
    const run = randomUUID();
    const started = it.events.length;
    const open = new Map();
    const events = golden(REPLAYS[name] ?? REPLAYS.tools);
    if (isStopped) it.abort = true;
    const isShown = it.told === prompt;
    it.told = undefined;
    const hasPrompt = isShown || events.some((event) => event.data?.item?.role === "user" && !event.path);
    for (const event of events) {
      if (event.type === "run.ended" && it.abort) break;
      if (event.type === "ask.settled") continue;
      const data = structuredClone(event.data);
      append(it, { ...event, at: undefined, run: event.run && run, data });
      if (event.type === "run.started" && !hasPrompt) {
        const item = { kind: "message", id: `prompt.${started}`, role: "user", text: prompt };
        append(it, { run, origin: "client", type: "item.opened", data: item });
        append(it, { run, origin: "client", type: "item.closed", data: { status: "ok", item } });
      }
      const where = [...(event.path ?? []), data.id ?? data.item?.id].join("\n");
      if (event.type === "item.opened") open.set(where, { path: event.path, item: data });
      if (event.type === "item.closed") open.delete(where);
      if (event.type === "ask.opened") {
        const seq = it.events.length;
        const id = `${it.id}:${seq}`;
        it.asks.set(id, {
          id,
          session: it.id,
          seq,
          ask: data.id,
          run,
          at: new Date().toISOString(),
          answered: false,
          data,
          can_change: data.kind !== "plan",
        });
        tell(it);
        const answer = await new Promise((done) => (it.wake = done));
        it.asks.delete(id);
        const decision =
          answer === "abort"
            ? "withdrawn"
            : { allow: "allowed", allow_always: "allowed_always", deny: "denied" }[answer.decision];
        append(it, {
          run,
          origin: answer === "abort" ? "linkspan" : "client",
          type: "ask.settled",
          data: { id: data.id, decision, message: answer.message, input: answer.input },
        });
        tell(it);
      }
      if (it.abort) break;
      await sleep(server.pace);
    }
    if (it.abort) {
      for (const { path, item } of open.values())
        append(it, {
          run,
          path,
          origin: "linkspan",
          why: "abort",
          type: "item.closed",
          data: { status: "cancelled", item },
        });
      append(it, { run, origin: "linkspan", why: "abort", type: "run.ended", data: { outcome: "aborted" } });
    }
    it.isRunning = false;
    it.asks.clear();
    const next = it.queue.shift();
    tell(it);
    if (next) void play(it, name, next.prompt);
  }

  /** A prompt was taken: with `server.start` the agent takes its time, and the prompt may be told at once. */
  async function begin(it, prompt) {
    const { ms, isShown } = server.start;
    if (isShown) {
      it.isStarting = true;
      const item = { kind: "message", id: `prompt.${it.events.length}`, role: "user", text: prompt };
      append(it, { origin: "client", type: "item.opened", data: item });
      append(it, { origin: "client", type: "item.closed", data: { status: "ok", item } });
      it.told = prompt;
    }
    tell(it);
    for (const ends = Date.now() + ms; Date.now() < ends && !it.abort; ) await sleep(20);
    it.isStarting = false;
    void play(it, it.replay, prompt);
  }

  /** Answers an ask; undefined if there is none. */
  function settle(id, answer) {
    const it = [...sessions.values()].find((it) => it.asks.has(id));
    if (!it) return false;
    it.asks.delete(id);
    it.wake?.(answer);
    return true;
  }

  const http = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    const headers = {
      "Content-Security-Policy": POLICY,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    };
    const answer = (status, body, type = "application/json") => {
      response.writeHead(status, { ...headers, "Content-Type": type });
      response.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
    };
    const fail = (status, code, message) => answer(status, { error: { code, message } });
    if (url.pathname === "/") return answer(200, readFileSync(join(WEB, "index.html")), TYPES[".html"]);
    if (url.pathname.startsWith("/assets/")) {
      try {
        return answer(
          200,
          readFileSync(join(WEB, normalize(url.pathname))),
          TYPES[extname(url.pathname)] ?? "text/plain",
        );
      } catch {
        return fail(404, "not_found", "there is no such file");
      }
    }
    if (request.headers.authorization !== `Bearer ${token}`)
      return fail(401, "unauthorized", "the token is missing or wrong");
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {};
    const [, , what, name, part, n] = url.pathname.split("/").map(decodeURIComponent);
    const it =
      what === "sessions" && name
        ? (sessions.get(name) ?? [...sessions.values()].find((it) => it.native === name))
        : undefined;
    const operation = { runs: "submitPrompt", asks: "settleAsk" }[what] ?? { abort: "abortSession", queue: "takeBackPrompt" }[part];
    const right = me(server.role).operations.find((it) => it.name === operation);
    if (request.method !== "GET" && right && !right.allowed)
      return fail(403, "forbidden", `a token for \`${right.role}\` is needed for this`);
    if (what === "me") return answer(200, me(server.shownRole ?? server.role));
    if (what === "engines") {
      if (server.search > 0) await sleep(server.search);
      const engine = (name, summary, install) => ({
        name,
        summary,
        installed,
        version: installed ? "2.1.0" : null,
        install,
        default: name === "claude",
        can: { resume: true, fork: true, continue: true, ask: true, interrupt: true },
      });
      const engines = [
        engine("claude", "Claude Code", "npm install -g @anthropic-ai/claude-code"),
        engine("codex", "Codex", "npm install -g @openai/codex"),
        { ...engine("gemini", "Gemini CLI", "npm install -g @google/gemini-cli"), installed: false, version: null },
      ];
      return answer(200, {
        engines,
        replays: Object.keys(REPLAYS).map((name) => ({
          name: `replay:${name}`,
          summary: SUMMARIES[name],
        })),
      });
    }
    if (what === "sessions" && !name) {
      const text = (url.searchParams.get("text") ?? "").toLowerCase();
      const all = [...sessions.values()]
        .filter((it) => `${it.title} ${it.native} ${it.engine}`.toLowerCase().includes(text))
        .sort((a, b) => (a.active_at < b.active_at ? 1 : -1));
      const from = Number(url.searchParams.get("after") ?? 0);
      const limit = Number(url.searchParams.get("limit") ?? 100);
      return answer(200, {
        sessions: all.slice(from, from + limit).map(summary),
        next: from + limit < all.length ? String(from + limit) : null,
      });
    }
    if (what === "sessions" && !it) return fail(404, "no_such_session", "there is no such session");
    if (what === "sessions" && !part) {
      const said = { ...summary(it), runs: [], asks: [...it.asks.values()], queue: it.queue };
      // Read now, and delivered late.
      if (server.late > 0) await sleep(server.late);
      return answer(200, said);
    }
    if (part === "events") {
      const after = Number(url.searchParams.get("after") ?? 0);
      const lines = it.lines.slice(after, after + Math.min(server.page, Number(url.searchParams.get("limit") ?? 1000)));
      return answer(200, lines.map((line) => `${line}\n`).join(""), "application/x-ndjson");
    }
    if (part === "abort") {
      const aborted = it.isRunning || it.isStarting || server.start.ms > 0;
      it.abort = true;
      it.wake?.("abort");
      return answer(200, { aborted });
    }
    if (part === "queue") {
      it.queue = it.queue.filter((it) => it.number !== Number(n));
      tell(it);
      return answer(200, {});
    }
    if (part === "file") {
      const path = url.searchParams.get("path") ?? "";
      if (path.endsWith(".png")) return answer(200, PNG, "image/png");
      return path.includes("missing")
        ? fail(404, "no_such_file", "there is no such file")
        : answer(200, `contents of ${path}\n`, "text/plain; charset=utf-8");
    }
    if (what === "runs") {
      if (server.slow > 0) await sleep(server.slow);
      if (server.refusal) return fail(422, "bad_request", server.refusal);
      server.submitted.push(body);
      let target = body.session ? sessions.get(body.session) : undefined;
      target ??= session({
        engine: body.engine?.startsWith("replay") ? "replay" : (body.engine ?? "claude"),
        title: body.prompt.split("\n")[0],
      });
      target.replay ??= body.engine?.replace("replay:", "") ?? "tools";
      if (target.isRunning) {
        target.queue.push({ number: server.submitted.length, prompt: body.prompt });
        tell(target);
        return answer(202, { session: target.id, run: null, position: target.queue.length });
      }
      if (body.fork) target.parent = { session: body.fork, seq: sessions.get(body.fork).events.length };
      void begin(target, body.prompt);
      return answer(202, { session: target.id, run: null, position: 0 });
    }
    if (what === "asks" && !name)
      return answer(200, { asks: [...sessions.values()].flatMap((it) => [...it.asks.values()]) });
    if (what === "asks") {
      server.answers.push({ id: name, ...body });
      return settle(name, body) ? answer(200, {}) : fail(409, "already_settled", "it was allowed by another client");
    }
    return fail(404, "not_found", "there is no such route");
  });

  const wss = new WebSocketServer({ noServer: true, handleProtocols: () => "linkspan" });
  http.on("upgrade", (request, socket, head) => {
    // A tab that is closed in the middle of it.
    socket.on("error", () => {});
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(/,\s*/);
    if (server.isDown || !offered.includes(`token.${token}`)) {
      socket.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n");
      return;
    }
    wss.handleUpgrade(request, socket, head, (it) => {
      sockets.add(it);
      it.on("close", () => sockets.delete(it));
      it.on("message", (text) => {
        const message = JSON.parse(text.toString());
        if (message.control === "echo") it.send(JSON.stringify({ type: "bridge.echo" }));
        if (message.control === "unsubscribe" && message.sessionId === undefined) it.only = new Set();
        else if (message.control === "unsubscribe") it.only?.delete(message.sessionId);
        if (message.control === "unsubscribe")
          it.send(JSON.stringify({ type: "bridge.unsubscribed", requestId: message.requestId }));
        if (message.control !== "subscribe") return;
        it.only = (it.only ?? new Set()).add(message.sessionId);
        const target = sessions.get(message.sessionId);
        for (const line of target?.lines.slice(message.since) ?? []) it.send(line);
        it.send(
          JSON.stringify({ type: "bridge.caught_up", sessionId: message.sessionId, cursor: target?.lines.length ?? 0 }),
        );
      });
    });
  });
  await new Promise((done) => http.listen(port, "127.0.0.1", done));

  const server = {
    url: `http://127.0.0.1:${http.address().port}`,
    pace,
    page: 5000,
    /** Milliseconds that a session's detail takes to arrive, and that a prompt takes to be answered. */
    late: 0,
    slow: 0,
    /** Why prompts are refused. */
    refusal: "",
    /** The role of the token, and the one that is told once it is another. */
    role: "admin",
    shownRole: undefined,
    /** Milliseconds that the agents take to say their versions. */
    search: 0,
    /** How long an agent takes to start, and whether the prompt is an event before that. */
    start: { ms: 0, isShown: false },
    isDown: false,
    submitted: [],
    answers: [],
    sessions,
    session,
    append,
    settle,
    tell,
    /** A session that was, with what a golden file says. */
    past(name, title, at) {
      const it = session({ title, at, engine: golden(name)[0].engine });
      for (const event of golden(name)) append(it, event);
      it.active_at = at ?? it.active_at;
      return it;
    },
    /** Cuts every connection. */
    drop() {
      for (const socket of sockets) socket.terminate();
    },
    stop() {
      this.drop();
      http.closeAllConnections();
      return new Promise((done) => http.close(done));
    },
  };
  return server;
}

/** Something of everything, so that there is a list to look at. */
export function furnish(server) {
  const names = readdirSync(join(FIXTURES, "claude"))
    .filter((it) => it.endsWith(".events.jsonl"))
    .slice(0, 30);
  for (const [n, name] of names.entries()) {
    const at = new Date(Date.now() - (n + 4) * 3_700_000).toISOString();
    server.past(
      `claude/${name.replace(".events.jsonl", "")}`,
      name.replace(".events.jsonl", "").replaceAll(/[._]/g, " "),
      at,
    );
  }
  server.past("codex/app_server.duplex", "Codex, over its app server", new Date(Date.now() - 60_000).toISOString());
  return server.past("model/everything", "Something of everything", new Date().toISOString());
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const at = process.argv.indexOf("--port");
  const server = await start({
    port: at > 0 ? Number(process.argv[at + 1]) : 8788,
    installed: !process.argv.includes("--nothing-installed"),
  });
  furnish(server);
  long(server, 50_000);
  console.error(`listening on ${server.url}/#token=test`);
}
