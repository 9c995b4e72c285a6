// A session to look at: a small job, told in made-up events, that stops at a question.

const MINUTE = 60_000;

/** Other sessions, so that the list is one: title, engine, minutes ago. */
const OTHERS = [
  ["Why does the nightly build take an hour?", "codex", 12],
  ["Write the release notes for 0.9", "claude", 48],
  ["Port the parser tests to property tests", "claude", 95],
  ["Look for unused feature flags", "gemini", 180],
  ["Explain the retry logic in sync.rs", "codex", 340],
  ["Bump the base image and fix what breaks", "opencode", 1500],
  ["Draft a migration for the sessions table", "claude", 1700],
  ["Make the CLI start faster", "claude", 3100],
];

/** Furnishes a mock with it; the session. */
export function demo(server) {
  const now = Date.now();
  for (const [title, engine, minutes] of OTHERS) {
    const at = new Date(now - minutes * MINUTE).toISOString();
    const it = server.session({ title, engine, at });
    it.active_at = at;
    if (minutes === 12) it.isRunning = true;
  }
  const it = server.session({ title: "Retry uploads that fail on a flaky network" });
  it.cwd = "/home/me/uploader";
  let at = now - 3 * MINUTE;
  const add = (type, data, { after = 400, path } = {}) =>
    server.append(it, { type, data, path, run: "r1" }, new Date((at += after)).toISOString());
  const item = (item, { status = "ok", after = 900, path } = {}) => {
    add("item.opened", { ...item, result: undefined }, { path });
    add("item.closed", { status, item }, { after, path });
  };
  const tool = (id, name, kind, title, rest = {}) => {
    const { input = {}, result, ...known } = rest;
    return { kind: "tool", id, name, input, class: { kind, title, ...known }, ...(result ? { result: { content: result } } : {}) };
  };
  add("session.bound", { native: it.native, how: "init", model: "claude-opus-5-5", cwd: it.cwd, permission_mode: "default" });
  add("run.started", { cause: "prompt" });
  item({ kind: "message", id: "u1", role: "user", text: "Uploads die on the first network hiccup. Make them retry, with a test." });
  item({ kind: "reasoning", id: "r1", text: "The upload loop has no retry at all. Look at the client first." }, { after: 2200 });
  const entries = [
    { text: "Find where uploads give up", status: "completed" },
    { text: "Retry with a growing pause", status: "in_progress", doing: "Retrying with a growing pause" },
    { text: "Test it against a server that fails twice", status: "pending" },
  ];
  item({ kind: "plan", id: "p1", entries });
  item(tool("t2", "Read", "read", "src/upload.rs", { paths: [{ path: "src/upload.rs", line: 1 }], result: "…" }));
  const call = tool("a1", "Agent", "task", "How do other callers handle it?");
  const agent = { kind: "subagent", id: "s1", call: "a1", name: "Explore", description: "How do other callers handle timeouts?" };
  add("item.opened", call);
  add("item.opened", agent);
  for (const name of ["src/sync.rs", "src/download.rs"])
    item(tool(`b-${name}`, "Read", "read", name, { result: "…" }), { path: ["a1"], after: 1800 });
  const report = "Downloads already retry: three times, 0.2 s doubling, only for connection errors.";
  add("item.closed", { status: "ok", item: { ...agent, report } });
  add("item.closed", { status: "ok", item: { ...call, result: { content: report } } });
  item({ kind: "message", id: "m1", role: "assistant", text: "Downloads already retry **three times**, for connection errors only. I will give uploads the same policy in `src/upload.rs`:" });
  const diffs = [
    {
      path: "src/upload.rs",
      old: "    let response = client.put_object(part).await?;\n    Ok(response.etag)\n",
      new: "    let response = retry(Pause::doubling(200), 3, || client.put_object(part)).await?;\n    Ok(response.etag)\n",
    },
  ];
  item(tool("t3", "Edit", "edit", "src/upload.rs", { diffs, change: "update", paths: [{ path: "src/upload.rs" }] }), { after: 350 });
  add("usage.reported", {
    scope: "call",
    basis: "delta",
    model: "claude-opus-5-5",
    tokens: { input: 4120, cache_read: 38_400, output: 1630 },
  });
  const command = "cargo test --package uploader retries";
  const run = tool("t4", "Bash", "shell", command, { command, input: { command, description: "Run the new test" } });
  add("item.opened", run);
  const ask = { id: "q1", kind: "permission", item: "t4", tool: "Bash", title: command, description: "Run the new test", input: run.input, suggestions: [{ rules: [{ toolName: "Bash", ruleContent: "cargo test:*" }] }] };
  add("ask.opened", ask);
  const seq = it.events.length;
  const name = `${it.id}:${seq}`;
  it.asks.set(name, { id: name, session: it.id, seq, ask: "q1", run: "r1", at: new Date(at).toISOString(), answered: false, data: ask, can_change: true });
  it.isRunning = true;
  return it;
}
