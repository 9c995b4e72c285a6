// A session of any length, for the mock.

import { createHash } from "node:crypto";

/** Events of a long session, made up: prompts, words and tools. */
export function long(server, nEvents, title = "A very long session") {
  const it = server.session({ title });
  let n = 0;
  const add = (type, data, path) =>
    server.append(it, { type, data, path, run: "r1" }, new Date(1_790_000_000_000 + 50 * n++).toISOString());
  add("session.bound", { native: it.native, how: "init", model: "m1", cwd: "/workspace" });
  add("run.started", { cause: "prompt" });
  for (let i = 0; n < nEvents - 1; i += 1) {
    const text = `Step ${i}: **bold**, \`code\` and a [link](https://example.com/${i}).\n\n- one\n- two\n\n\`\`\`rust\nfn main() { println!("${createHash("sha256").update(String(i)).digest("hex")}"); }\n\`\`\``;
    add("item.opened", { kind: "message", id: `m${i}`, role: "assistant", text: "" });
    for (const word of text.match(/[^]{1,40}/g)) add("item.delta", { item: `m${i}`, channel: "text", text: word });
    add("item.closed", { status: "ok", item: { kind: "message", id: `m${i}`, role: "assistant", text } });
    const tool = {
      kind: "tool",
      id: `t${i}`,
      name: "Bash",
      input: { command: `make step-${i}` },
      class: { kind: "shell", title: `make step-${i}`, command: `make step-${i}` },
    };
    add("item.opened", tool);
    add("item.closed", {
      status: i % 7 === 3 ? "error" : "ok",
      item: {
        ...tool,
        class: { ...tool.class, exit_code: i % 7 === 3 ? 2 : 0 },
        result: { content: `line of output ${i}\n`.repeat(1 + (i % 40)) },
      },
    });
  }
  add("run.ended", {
    outcome: "completed",
    duration_ms: 50 * n,
    models: [{ model: "m1", tokens: { input: 10, output: 20 }, cost_usd: 0.5 }],
  });
  return it;
}
