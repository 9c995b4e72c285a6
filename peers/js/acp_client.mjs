// Plays an ACP file to the vendor's own client, `@agentclientprotocol/sdk`.
//
// The client prompts once per recorded turn; this side answers as the agent, with the
// recorded lines. The SDK drops what it does not know without a word, so what its handlers
// receive is compared with what was sent: a lost key is one that no real client would see.

import { isDeepStrictEqual } from "node:util";

import { RequestError, client, ndJsonStream } from "@agentclientprotocol/sdk";

import { Rejected, reject } from "./judge.mjs";

// A file takes milliseconds; a client that closed the connection would be waited for in vain.
const MAX_SILENCE_MS = 30_000;

const complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...args) => complaints.push(`client ${level}: ${args.map((it) => JSON.stringify(it)).join(" ")}`);
}

/** `messages` are the parsed lines of a file whose shape and life cycle were already checked. */
export async function play(messages) {
  let timer;
  const silence = new Promise((_, stop) => {
    timer = setTimeout(() => stop(new Rejected(complaints[0] ?? "the client stopped answering")), MAX_SILENCE_MS);
  });
  await Promise.race([converse(messages), silence]).finally(() => clearTimeout(timer));
}

async function converse(messages) {
  complaints.length = 0;
  const answers = new Map(messages.filter(({ value }) => typeof value.id === "string" && !("method" in value)).map(({ value }) => [value.id, value]));
  const updates = [];
  const app = client()
    .onNotification("session/update", ({ params }) => void updates.push(params))
    .onRequest("session/request_permission", ({ requestId }) => {
      const { result, error } = answers.get(requestId);
      if (error) throw new RequestError(error.code, error.message, error.data);
      return result;
    });
  const to_client = new TransformStream();
  const from_client = new TransformStream();
  const agent = to_client.writable.getWriter();
  const said = lines(from_client.readable);
  const send = (message) => agent.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));

  await app.connectWith(ndJsonStream(from_client.writable, to_client.readable), async (connection) => {
    let turn;
    // The first lines of a turn can come before the client's prompt is needed for its id.
    const prompt = async () => {
      const answer = connection.request("session/prompt", { sessionId: "s", prompt: [] }).then(
        (result) => ({ result }),
        (err) => ({ error: { code: err.code, message: err.message, ...(err.data === undefined ? {} : { data: err.data }) } }),
      );
      return { id: (await said.next()).value.id, answer };
    };
    for (const { at, value } of messages) {
      turn ??= await prompt();
      if ("method" in value) {
        await send(value);
        if ("id" in value) same(at, (await said.next()).value, answers.get(value.id));
      } else if (!answers.has(value.id)) {
        await send({ ...value, id: turn.id });
        const { jsonrpc, id, ...outcome } = value;
        same(at, await turn.answer, outcome);
        turn = undefined;
      }
    }
    // Handlers of the last notifications may start after the prompt was answered.
    await new Promise(setImmediate);
  });
  if (complaints.length > 0) reject(complaints[0]);
  const sent = messages.filter(({ value }) => value.method === "session/update");
  if (updates.length !== sent.length) reject(`${sent.length} updates sent, the client saw ${updates.length}`);
  sent.forEach(({ at, value }, index) => same(at, updates[index], value.params));
}

function same(at, seen, sent) {
  const lost = difference(sent, seen, "");
  if (lost !== undefined) reject(`${at}: the client does not see ${lost}`);
}

function difference(sent, seen, where) {
  const is_object = (it) => it !== null && typeof it === "object";
  if (!is_object(sent) || !is_object(seen)) return Object.is(sent, seen) ? undefined : where || "/";
  for (const key of Object.keys(sent)) {
    const lost = difference(sent[key], seen[key], `${where}/${key}`);
    if (lost !== undefined) return lost;
  }
  return isDeepStrictEqual(sent, seen) ? undefined : where || "/";
}

async function* lines(stream) {
  let rest = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop();
    for (const line of parts) yield JSON.parse(line);
  }
}
