// The parts that need no server: cursors, pauses, server-sent events, and a subscription over sockets that are fakes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Backoff } from "../linkspan/src/backoff.js";
import { findBinary } from "../linkspan/src/binary.js";
import { Linkspan as Browser, toCodexEvent } from "../linkspan/src/browser.js";
import { fromId, isBehind } from "../linkspan/src/cursor.js";
import { SseParser } from "../linkspan/src/sse.js";

test("cursors are compared part by part, and texts stay texts", () => {
  const sorted = ["0", "1.1", "1.2", "1.9", "1.10", 1, "2.1", 2, 10];
  sorted.forEach((a, i) => sorted.forEach((b, j) => assert.equal(isBehind(a, b), i > j, `${a} behind ${b}`)));
  assert.equal(isBehind(0, undefined), true);
  assert.deepEqual([fromId("7"), fromId("7.1"), fromId("7.10")], [7, "7.1", "7.10"]);
});

test("pauses grow from a quarter of a second to ten seconds, at random within their range", (t) => {
  const random = t.mock.method(Math, "random", () => 0);
  const backoff = new Backoff();
  const least = Array.from({ length: 7 }, () => backoff.next());
  assert.deepEqual(least, [250, 500, 1000, 2000, 4000, 5000, 5000]);
  backoff.reset();
  random.mock.mockImplementation(() => 1);
  const most = Array.from({ length: 7 }, () => backoff.next());
  assert.deepEqual(most, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test("server-sent events are the same however they are cut", () => {
  const text = 'id: 7.1\ndata: {"a":\ndata: 1}\n\n:\n\nevent: caught_up\r\ndata:{"cursor":7}\r\n\r\nid: 8\n\n';
  const expected = [
    { event: "message", id: "7.1", data: '{"a":\n1}' },
    { event: "caught_up", id: undefined, data: '{"cursor":7}' },
  ];
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))], expected);
  }
});

test("the program is named, packaged, or missed by the name of its package", () => {
  const resolve = (path) => `/app/node_modules/${path}`;
  const missing = () => {
    throw new Error("not found");
  };
  assert.equal(findBinary("/opt/linkspan", "linux-x64", missing), "/opt/linkspan");
  assert.equal(findBinary("", "linux-x64", resolve), "/app/node_modules/linkspan-linux-x64/bin/linkspan");
  const { code, message, hint } = thrown(() => findBinary(undefined, "darwin-arm64", missing));
  assert.equal(code, "no_program");
  assert.equal(message, "the package `linkspan-darwin-arm64`, which holds the program, is not installed");
  assert.match(hint, /--omit=optional/);
  assert.match(thrown(() => findBinary(undefined, "aix-ppc64", resolve)).message, /no program for aix-ppc64/);
});

test("a browser starts no program, and an address is checked", async () => {
  await assert.rejects(Browser.spawn(), { code: "not_supported" });
  assert.equal(thrown(() => new Browser({ url: "localhost:8787" })).code, "bad_address");
});

test("a ThreadEvent is narrowed to what the types of the Codex SDK have", () => {
  const command = { id: "1", type: "command_execution", command: "ls", aggregated_output: "" };
  const narrow = (item, type = "item.completed") => toCodexEvent({ type, item })?.item;
  assert.deepEqual(narrow({ ...command, exit_code: null, status: "in_progress" }), { ...command, status: "in_progress" });
  assert.deepEqual(narrow({ ...command, exit_code: 1, status: "declined" }), { ...command, exit_code: 1, status: "failed" });
  assert.equal(narrow({ id: "2", type: "file_change", changes: [], status: "in_progress" }, "item.started"), undefined);
  assert.equal(narrow({ id: "3", type: "collab_tool_call" }), undefined);
  const call = { id: "4", type: "mcp_tool_call", server: "s", tool: "t", arguments: null, status: "completed" };
  const result = { content: [{ type: "text", text: "x" }], structured_content: null };
  assert.deepEqual(narrow({ ...call, result, error: null }), { ...call, result });
  assert.deepEqual(toCodexEvent({ type: "turn.started" }), { type: "turn.started" });
});

test("a `fetch` that cannot stream says what to do", async () => {
  const fetch = async () => new Response(null);
  const events = new Browser({ url: "http://host", fetch, transport: "sse" }).subscribe({ session: "s" });
  await assert.rejects(events.next(), { code: "no_stream", hint: "give the client a `WebSocket`" });
  const client = new Browser({ url: "http://host", fetch, transport: "sse" });
  assert.throws(() => client.subscribe(), { code: "no_websocket" });
  assert.throws(() => client.changes(), { code: "no_websocket" });
});

test("the address of the page brings its token", async () => {
  const asked = [];
  const fetch = async (url, { headers }) => (asked.push([url, headers.Authorization]), new Response("{}"));
  await new Browser({ url: "http://host:1/#token=abc/s/1", fetch }).sessions({ text: "a b", limit: 2 });
  await new Browser({ url: "https://host/below/", token: "own", fetch }).me();
  assert.deepEqual(asked, [
    ["http://host:1/api/sessions?text=a%20b&limit=2", "Bearer abc"],
    ["https://host/below/api/me", "Bearer own"],
  ]);
});

function thrown(act) {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
