// Makes hostile canonical events: `xss.mjs OUT` writes a file for each attack in
// `fixtures/model/xss.payloads.jsonl`, in which every text a stranger can choose is that attack.
//
// The template is `fixtures/model/everything.events.jsonl`, which holds everything the model can
// say. Ids keep their own name behind the attack, so that what belongs together still does.

import fs from "node:fs";
import path from "node:path";

const MODEL = new URL("../../fixtures/model/", import.meta.url);

/** Words of the model itself, and times; everything else is a stranger's. */
const OURS = new Set([
  "at", "basis", "cause", "channel", "decision", "how", "kind", "level", "origin", "outcome", "role", "scope", "status", "type", "why", "change",
]);
const IDS = new Set(["id", "item", "call", "group", "session", "run", "path"]);

const read = (name) => fs.readFileSync(new URL(name, MODEL), "utf8").trim().split("\n").map((it) => JSON.parse(it));

/** A call with everything a call can have. */
const EDIT = {
  kind: "tool",
  id: "edit",
  name: "Edit",
  input: { file_path: "/w/a.c", old_string: "a", new_string: "b" },
  class: {
    kind: "edit",
    title: "Edit a.c",
    command: "ed",
    paths: [{ path: "/w/a.c", line: 1 }],
    diffs: [{ path: "/w/a.c", old: "a", new: "b\na" }, { path: "/w/b.c", new: "c" }],
    query: "a",
    change: "update",
  },
  result: { content: [{ type: "text", text: "ok" }, { type: "image", source: { type: "url", url: "x" } }, { type: "odd" }] },
};

/** Half of the pages have pictures that say they are some. */
let keeps_types = false;

function attacked(value, key, attack, inside) {
  if (typeof value === "string") {
    if (OURS.has(key) && !inside) return value;
    // Sides of a change have to differ to be seen.
    if (IDS.has(key) || ["old", "new"].includes(key)) return attack + value;
    if (key === "media_type" && keeps_types) return value;
    // A picture that begins as one has to be looked at to its end.
    if (key === "data" && value === "aGk=") return `iVBORw0KGgo${attack}`;
    return attack;
  }
  if (Array.isArray(value)) return value.map((it) => attacked(it, key, attack, inside));
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([name, it]) => {
    const is_payload = inside || ["input", "content", "detail", "raw", "suggestions", "remembered"].includes(name);
    // What an agent names its fields is its own choice, as far as nobody looks for them.
    const is_free = inside && !["type", "text", "source", "media_type", "data", "url"].includes(name);
    return [is_free ? attack + name : name, attacked(it, name, attack, is_payload && !["type"].includes(name))];
  });
  return Object.fromEntries(entries);
}

const out = process.argv[2];
fs.mkdirSync(out, { recursive: true });
// The pieces of a text have to add up to it; here its end says it all.
const template = read("everything.events.jsonl").filter((it) => it.type !== "item.delta");
const first = template.findIndex((it) => it.type === "item.closed");
template.splice(
  first + 1,
  0,
  { ...template[first], origin: "agent", type: "item.opened", data: EDIT },
  { ...template[first], origin: "agent", type: "item.closed", data: { status: "error", item: EDIT } },
);
read("xss.payloads.jsonl").forEach((attack, n) => {
  keeps_types = n % 2 === 1;
  const lines = template.map((event, at) => JSON.stringify({ ...attacked(event, "", attack, false), seq: at + 1 }));
  const name = `xss-${String(n + 1).padStart(3, "0")}.events.jsonl`;
  fs.writeFileSync(path.join(out, name), `${lines.join("\n")}\n`);
});
