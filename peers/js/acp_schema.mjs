// The stable v1 JSON Schema of ACP, by method.
//
// The schema's top level lets broken updates through, so every message is held against the
// definition of its own method, found by `x-method`.

import fs from "node:fs";

import Ajv2020 from "ajv/dist/2020.js";

import { first_error, reject } from "./judge.mjs";

const SCHEMA = new URL("../schemas/acp-schema.json", import.meta.url);
const ROOT = "acp";

const schema = JSON.parse(fs.readFileSync(SCHEMA, "utf8"));
const ajv = new Ajv2020({ strict: false, allErrors: true });
for (const [name, min, max] of [
  ["int32", -(2 ** 31), 2 ** 31 - 1],
  ["int64", -(2 ** 63), 2 ** 63],
  ["uint16", 0, 2 ** 16 - 1],
  ["uint32", 0, 2 ** 32 - 1],
  ["uint64", 0, 2 ** 64],
]) {
  ajv.addFormat(name, { type: "number", validate: (it) => Number.isInteger(it) && it >= min && it <= max });
}
ajv.addFormat("double", { type: "number", validate: Number.isFinite });
ajv.addFormat("uri", (it) => /^[A-Za-z][A-Za-z0-9+.-]*:/.test(it));
ajv.addSchema(schema, ROOT);

/** Rejects a message that is no JSON-RPC 2.0, or has keys besides. */
export function envelope(at, it) {
  if (it.jsonrpc !== "2.0") reject(`${at}: jsonrpc is not "2.0"`);
  const shape = "method" in it ? ["jsonrpc", "id", "method", "params"] : ["jsonrpc", "id", "result", "error"];
  const extra = Object.keys(it).find((key) => !shape.includes(key));
  if (extra !== undefined) reject(`${at}: unknown key ${extra} in the JSON-RPC message`);
  if (!("method" in it) && "result" in it === "error" in it) reject(`${at}: a response needs either result or error`);
}

/**
 * The definition of what an agent sends: a request or notification of its own, or its response.
 *
 * `x-side` names the side that handles a method, so an agent sends the client's methods (and those
 * of the protocol itself) and answers its own.
 */
export function definition(at, method, kind) {
  const is_ours = (side) => (kind === "Response" ? side !== "client" : side !== "agent");
  const found = Object.entries(schema.$defs).find(
    ([name, it]) => it["x-method"] === method && is_ours(it["x-side"]) && name.endsWith(kind),
  );
  return found ? found[0] : reject(`${at}: ${method} is not a ${kind.toLowerCase()} that an agent sends`);
}

export function validate(at, name, value) {
  const check = ajv.getSchema(`${ROOT}#/$defs/${name}`);
  if (!check(value)) reject(`${at}: ${name}: ${complaint(check.errors, value)}`);
}

// `SessionUpdate` is a union of fourteen, and ajv complains for all of them; asking the
// variant that was meant gives the one useful sentence.
function complaint(errors, value) {
  const meant = value?.update?.sessionUpdate;
  if (meant === undefined) return first_error(errors);
  const index = schema.$defs.SessionUpdate.oneOf.findIndex((it) => it.properties.sessionUpdate.const === meant);
  if (index < 0) return `unknown sessionUpdate ${meant}`;
  const check = ajv.getSchema(`${ROOT}#/$defs/SessionUpdate/oneOf/${index}`);
  return check(value.update) ? first_error(errors) : `${meant}: ${first_error(check.errors)}`;
}
