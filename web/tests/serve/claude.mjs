// The real Claude Code, against a scripted model, in the page.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Server } from "../server.mjs";
import { click, close, scene, sees, sessionId, skip, tab, until } from "../stage.mjs";

const here = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const AGENTS = process.env.LINKSPAN_AGENTS ?? here("peers/agents/node_modules/.bin");
const MODEL = process.env.SCRIPTED_MODEL ?? here("target/debug/scripted-model");

const bash = (command) => ({ blocks: [{ tool: "Bash", input: { command, description: "Make a file" } }] });
const SCENARIO = {
  lanes: {
    main: [
      { blocks: [{ thinking: "A file is wanted." }, { text: "I will make the file." }, ...bash("touch made.txt").blocks] },
      { blocks: [{ text: "The file is there." }], chunk: 3, chunk_delay_ms: 30 },
      bash("touch unwanted.txt"),
      { blocks: [{ text: "Then I will not." }] },
    ],
  },
};

/** Starts the model; its address, and how to end it. */
async function model(folder) {
  const scenario = join(folder, "scenario.json");
  const log = join(folder, "requests.jsonl");
  writeFileSync(scenario, JSON.stringify(SCENARIO));
  const child = spawn(MODEL, ["--scenario", scenario, "--log", log], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((done, fail) => {
    child.on("error", fail);
    child.stdout.on("data", (it) => done(/listening on (\S+)/.exec(it)[1]));
  });
  const asked = () => readFileSync(log, "utf8").split("\n").filter(Boolean).map((it) => JSON.parse(it));
  return { url, asked, stop: () => child.kill() };
}

export async function play() {
  const name = "the real Claude Code asks on the page, is allowed, goes on, and is refused";
  const program = join(AGENTS, "claude");
  if (!existsSync(program)) return skip(name, "`cargo xtask peers` installs it");
  return scene(name, async () => {
    const server = new Server({ config: "" });
    const scripted = await model(server.home);
    writeFileSync(join(server.home, "config.toml"), config(program, scripted.url));
    await server.start();
    try {
      await talk(server, scripted);
    } finally {
      await server.leave();
      scripted.stop();
    }
  });
}

async function talk(server, scripted) {
  const page = await tab(server.printed);
  await until(page, () => document.querySelector("[aria-label='Agent'] option[value='claude']"));
  await page.selectOption("[aria-label='Agent']", "claude");
  await page.fill("#composer textarea", "Make a file, please.");
  await page.keyboard.press("Enter");
  await until(page, () => document.querySelector(".ask.open"));
  await sees(page, "I will make the file.");
  await sees(page, "touch made.txt", ".ask.open");
  const made = join(server.work, "made.txt");
  assert.ok(!existsSync(made), "it did not wait for the answer");
  await click(page, "Allow once");
  await sees(page, "The file is there.");
  await sees(page, "✓ done");
  assert.ok(existsSync(made));

  await page.fill("#composer textarea", "And another one.");
  await page.keyboard.press("Enter");
  await sees(page, "touch unwanted.txt", ".ask.open");
  await click(page, "Deny");
  await page.keyboard.type("one is enough");
  await page.keyboard.press("Enter");
  await sees(page, "Then I will not.");
  await until(page, () => document.querySelectorAll(".row.end").length === 2);
  assert.ok(!existsSync(join(server.work, "unwanted.txt")));

  // What the model was told: the reason, and in one conversation with the first prompt.
  const { body } = scripted.asked().filter((it) => it.lane === "main").at(-1);
  for (const words of ["Make a file, please.", "The file is there.", "one is enough"]) assert.ok(body.includes(words), words);
  const { runs, native } = await server.api(`/sessions/${await sessionId(page)}`);
  assert.deepEqual(
    runs.map((it) => it.outcome),
    ["completed", "completed"],
  );
  assert.match(native, /^[0-9a-f-]{36}$/);
  await close(page);
}

function config(program, url) {
  return `[engines.claude]
program = ${JSON.stringify(program)}
[engines.claude.env]
ANTHROPIC_API_KEY = "dummy"
ANTHROPIC_BASE_URL = ${JSON.stringify(url)}
CLAUDE_CODE_MAX_RETRIES = "1"
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
`;
}
