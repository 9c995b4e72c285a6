// Takes pictures of the page, against the mock.
//
//   node web/tests/shots.mjs              docs/page-light.png and docs/page-dark.png
//   node web/tests/shots.mjs --all DIR [WORD…]
//                                         every state of it, in both themes, on a desk and on a phone; with
//                                         words, those whose file name holds them all

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { demo } from "./demo.mjs";
import { furnish, start } from "./mock.mjs";
import { browser, click, play, sees, sleep, tab, until } from "./stage.mjs";

const THEMES = ["light", "dark"];
const DESK = { width: 1280, height: 860 };
/** As much as the demonstration takes. */
const WHOLE = { width: 1280, height: 1116 };
const PHONE = { width: 400, height: 800 };

const at = process.argv.indexOf("--all");
if (at > 0) await all(process.argv[at + 1], process.argv.slice(at + 2));
else await docs(fileURLToPath(new URL("../../docs/", import.meta.url)));
await browser.close();

async function docs(folder) {
  const server = await start();
  const { id } = demo(server);
  for (const colorScheme of THEMES) {
    const page = await tab(`${server.url}/#token=test/s/${id}`, { colorScheme, viewport: WHOLE });
    await shown(page);
    await page.screenshot({ path: join(folder, `page-${colorScheme}.png`) });
    await page.context().close();
  }
  await server.stop();
}

/** The session of the demonstration, with the change unfolded. */
async function shown(page) {
  await until(page, () => document.querySelector(".ask.open .edit:not([hidden])"));
  await page.evaluate(() => document.activeElement?.blur());
  await sleep(300);
}

/** A session in which a command leaves a picture. */
function pictured(server) {
  const it = server.session({ title: "Plot the timings" });
  const tool = { kind: "tool", id: "t1", name: "Bash", class: { kind: "shell", title: "./plot", command: "./plot" } };
  server.append(it, { type: "run.started", data: { cause: "prompt" } });
  server.append(it, { type: "item.opened", data: tool });
  const item = { ...tool, result: { content: "wrote out/plot.png and notes.md" } };
  server.append(it, { type: "item.closed", data: { status: "ok", item } });
  server.append(it, { type: "run.ended", data: { outcome: "completed" } });
  return it;
}

/** A session that asks for a long command, and waits for a minute. */
function asking(server) {
  const it = server.session({ title: "Clean up the build folders" });
  const command = `${Array.from({ length: 60 }, (_, n) => `find build/${n} -name '*.o' -newer stamp`).join(" ; ")} ; rm -rf build`;
  const deadline = { at: new Date(Date.now() + 90_000).toISOString(), decision: "denied" };
  const input = { command, description: "Remove what was built before" };
  server.append(it, { type: "run.started", data: { cause: "prompt" } });
  server.append(it, { type: "item.closed", data: { status: "ok", item: { kind: "message", id: "m1", role: "user", text: "Clean up." } } });
  server.append(it, { type: "ask.opened", data: { id: "a1", kind: "permission", tool: "Bash", title: "find build", description: input.description, input, deadline } });
  const id = `${it.id}:${it.events.length}`;
  it.asks.set(id, { id, session: it.id, seq: it.events.length, data: {}, can_change: true });
  it.queue.push({ number: 7, prompt: "and then write the release notes" });
  it.isRunning = true;
  return it;
}

async function all(folder, words) {
  mkdirSync(folder, { recursive: true });
  const server = await start();
  const bare = await start({ installed: false });
  const everything = furnish(server);
  const { id } = demo(server);
  const plotted = pictured(server);
  const asks = asking(server);
  const to = (hash) => (page) => page.evaluate((hash) => (location.hash = hash), hash);
  const session = (id, act = async () => {}) => async (page) => {
    await to(`#/s/${id}`)(page);
    await until(page, () => document.querySelector(".row"));
    await act(page);
  };
  const top = (page) => page.evaluate(() => (document.getElementById("scroll").scrollTop = 0));
  /** @type {Record<string, (page: any) => Promise<void>>} */
  const states = {
    start: async () => {},
    new: to("#/new"),
    demo: session(id, shown),
    everything: session(everything.id, top),
    "everything-open": session(everything.id, async (page) => {
      await top(page);
      await sleep(200);
      await page.evaluate(() => [...document.querySelectorAll("summary")].slice(0, 6).forEach((it) => it.click()));
    }),
    "everything-end": session(everything.id),
    cost: session(everything.id, (page) => page.click(".usage")),
    live: async (page) => {
      await to("#/new")(page);
      await play(page, "tools");
      await until(page, () => document.querySelectorAll(".card").length > 2);
    },
    agents: async (page) => {
      await to("#/new")(page);
      await play(page, "agents");
      await sees(page, "✓ done");
      await top(page);
      await sleep(200);
      await page.evaluate(() => document.querySelector(".k-task > summary").click());
    },
    question: async (page) => {
      await to("#/new")(page);
      await play(page, "question");
      await until(page, () => document.querySelector(".ask.open"));
    },
    file: session(plotted.id, async (page) => {
      await click(page, "Bash");
      await until(page, () => document.querySelector(".picture img"));
    }),
    viewer: session(plotted.id, async (page) => {
      await click(page, "Bash");
      await click(page, "notes.md");
    }),
    long: session(asks.id, (page) => until(page, () => document.querySelector(".goes-on"))),
    watch: async (page) => {
      server.role = "watch";
      await page.reload();
      await session(asks.id, (page) => until(page, () => document.querySelector(".closed:not([hidden])")))(page);
    },
    "watch-start": async (page) => {
      server.role = "watch";
      await to("#/new")(page);
      await page.reload();
    },
    looking: async (page) => {
      server.search = 5_000;
      await to("#/new")(page);
      await page.reload();
    },
    keys: (page) => page.evaluate(() => document.getElementById("keys").click()),
    more: async (page) => {
      await to("#/new")(page);
      await click(page, "More");
    },
    fork: session(id, (page) => click(page, "Fork")),
    queue: session(id, async (page) => {
      await page.fill("#composer textarea", "and then write the release notes");
      await page.keyboard.press("Enter");
      await sees(page, "release notes", ".queue");
    }),
    "no-session": to("#/s/nothing"),
    "no-match": async (page) => {
      await to("#/")(page);
      await page.fill("#search", "zebra");
      await sleep(400);
    },
    lost: session(everything.id, async (page) => {
      server.isDown = true;
      server.drop();
      await sleep(1500);
    }),
  };
  for (const colorScheme of THEMES) {
    for (const [size, viewport] of Object.entries({ desk: DESK, phone: PHONE })) {
      const options = { colorScheme, viewport, isOfflineFine: true };
      const shoot = async (name, url, act) => {
        const file = `${name}-${size}-${colorScheme}.png`;
        if (!words.every((it) => file.includes(it))) return;
        const page = await tab(url, options);
        await sleep(400);
        try {
          await act(page);
        } catch (error) {
          console.log(`${name}: ${error.message}`);
        }
        await sleep(300);
        await page.screenshot({ path: join(folder, file) });
        await page.context().close();
        Object.assign(server, { isDown: false, role: "admin", search: 0 });
      };
      for (const [name, act] of Object.entries(states)) await shoot(name, `${server.url}/#token=test`, act);
      await shoot("gate", `${server.url}/`, async () => {});
      await shoot("refused", `${server.url}/#token=wrong`, async () => {});
      await shoot("bare", `${bare.url}/#token=test`, async () => {});
    }
  }
  await server.stop();
  await bare.stop();
}
