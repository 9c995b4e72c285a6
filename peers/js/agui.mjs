// Judges AG-UI streams with the vendor's own client, `@ag-ui/client`.
//
// The bytes enter through an `HttpAgent` whose `fetch` answers from memory, so the client's
// SSE parser, schema enforcement, sequence verification and message building all run. The
// client accepts a stream that just stops, so terminal events are counted here as well.
// Legacy THINKING_* events make the client warn; they are not judged by this file.

import { HttpAgent } from "@ag-ui/client";

import { main, reject } from "./judge.mjs";

const TERMINAL = ["RUN_FINISHED", "RUN_ERROR"];

// The client searches its whole buffer again for every chunk, so one frame costs the square
// of its length. Past this many characters a chunk size takes minutes and shows nothing new.
const MAX_SCANNED = 2e9;

const complaints = [];
const skipped = [];
for (const level of ["warn", "error"]) {
  console[level] = (...args) => complaints.push(`client ${level}: ${args.map(String).join(" ")}`);
}
process.on("warning", (it) => complaints.push(`process warning: ${it.message}`));
process.on("unhandledRejection", (it) => complaints.push(`unhandled rejection: ${it?.message ?? it}`));
process.on("uncaughtException", (it) => complaints.push(`uncaught exception: ${it?.message ?? it}`));

await main({
  name: "agui",
  extension: ".sse",
  flags: ["--chunks"],
  async judge(bytes, flags) {
    await play(bytes, Math.max(bytes.length, 1));
    if (!flags.has("--chunks")) return;
    for (const size of [1, 7]) {
      if (scanned(bytes, size) > MAX_SCANNED) skipped.push(size);
      else await play(bytes, size);
    }
  },
  closing: () => (skipped.length === 0 ? [] : [`note: ${skipped.length} plays in small chunks left out, their frames are too long`]),
});

async function play(bytes, size) {
  complaints.length = 0;
  const seen = [];
  const agent = new HttpAgent({
    url: "http://127.0.0.1/",
    fetch: async () => new Response(chunked(bytes, size), { headers: { "content-type": "text/event-stream" } }),
  });
  const where = size >= bytes.length ? "" : ` (chunks of ${size})`;
  try {
    await agent.runAgent({}, { onEvent: ({ event }) => void seen.push(event.type) });
  } catch (err) {
    reject(`${err?.message ?? err}${where}`);
  }
  // Some complaints of the client arrive one turn of the event loop after the end.
  await new Promise(setImmediate);
  if (complaints.length > 0) reject(complaints[0] + where);

  const n_started = seen.filter((it) => it === "RUN_STARTED").length;
  const n_ended = seen.filter((it) => TERMINAL.includes(it)).length;
  if (n_ended === 0) reject(`no terminal event${where}`);
  if (n_ended !== n_started) reject(`${n_started} RUN_STARTED, ${n_ended} terminal events${where}`);
  check_frames(bytes, seen);
}

// The client drops lines it does not know without a word; a frame it never saw is our bug.
function check_frames(bytes, seen) {
  const lines = new TextDecoder("utf-8", { fatal: true }).decode(bytes).split("\n");
  const odd = lines.find((it) => it !== "" && !/^(data:|event:|id:|retry:|:)/.test(it));
  if (odd !== undefined) reject(`not an SSE line: ${odd.slice(0, 80)}`);
  const n_frames = lines.filter((it) => it.startsWith("data:")).length;
  // One chunk event stands for up to three events, so counts only compare without them.
  const has_chunks = lines.some((it) => /^data:.*"type": ?"[A-Z_]+_CHUNK"/.test(it));
  if (!has_chunks && n_frames !== seen.length) reject(`${n_frames} frames in the file, ${seen.length} events in the client`);
}

function chunked(bytes, size) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + size)));
      at += size;
    },
  });
}

function scanned(bytes, size) {
  return bytes
    .toString("latin1")
    .split("\n\n")
    .reduce((sum, frame) => sum + (frame.length * frame.length) / (2 * size), 0);
}
