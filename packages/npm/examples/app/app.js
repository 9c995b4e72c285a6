// One screen for a `linkspan serve` on another origin: sessions, a live feed, a prompt, answers and Stop.

import { Linkspan } from "linkspan";

import { Feed, node } from "./feed.js";

const $ = (selector) => document.querySelector(selector);
const composer = $("#composer");

/** @type {Linkspan} */
let client;
/** The session that is open, and what follows it. */
let current;
let following;
/** Sessions by id. */
const sessions = new Map();

function sentence(error) {
  const words = `${error.message}${error.hint ? `; ${error.hint}` : ""}.`;
  return words[0].toUpperCase() + words.slice(1);
}

async function connect({ url, token }) {
  const candidate = new Linkspan({ url, token });
  // Refused here, before anything is shown or remembered.
  await candidate.me();
  client = candidate;
  sessionStorage.setItem("server", JSON.stringify({ url, token }));
  $("#connect").hidden = true;
  $("#app").hidden = false;
  void list();
  await offerEngines();
}

async function offerEngines() {
  const { engines, replays } = await client.engines();
  const agents = engines.filter((it) => it.installed).map((it) => new Option(it.name, it.name));
  const recordings = replays.map((it) => new Option(it.summary, it.name));
  composer.elements.engine.replaceChildren(...agents, ...recordings);
}

/** Keeps the list as it is on the server, for as long as there is a client. */
async function list() {
  const changes = client.changes({ onState: (state) => ($("#state").textContent = state === "open" ? "Connected" : "Connecting…") });
  for await (const change of changes) {
    if (change.type === "bridge.session") sessions.set(change.session.id, change.session);
    else {
      const page = await client.sessions({ limit: 50 });
      sessions.clear();
      for (const it of page.sessions) sessions.set(it.id, it);
    }
    showList();
  }
}

function showList() {
  const newest = [...sessions.values()].sort((a, b) => (a.active_at < b.active_at ? 1 : -1));
  const rows = newest.map((it) => {
    const state = it.state === "idle" ? "" : it.state === "waiting" ? "needs your input" : it.state;
    const about = node("span", `about ${it.state}`, [it.engine, state].filter(Boolean).join(" · "));
    const row = node("button", "", node("span", "title", it.title ?? "Untitled"), about);
    row.type = "button";
    if (it.id === current) row.setAttribute("aria-current", "true");
    row.onclick = () => open(it.id);
    return row;
  });
  $("#sessions").replaceChildren(...rows);
  const shown = sessions.get(current);
  $("#title").textContent = current === undefined ? "New session" : (shown?.title ?? "Untitled");
  $("#stop").hidden = shown === undefined || shown.state === "idle";
  composer.elements.engine.hidden = current !== undefined;
}

/** Opens a session, or what a new one begins with. */
async function open(id) {
  following?.close();
  following = undefined;
  current = id;
  $("#app").classList.add("open");
  showList();
  const feed = new Feed($("#feed"), async (event, decision) => {
    try {
      await client.settle(event, decision);
      return undefined;
    } catch (error) {
      return sentence(error);
    }
  });
  if (id === undefined) return;
  following = client.subscribe({ session: id });
  try {
    for await (const event of following) feed.add(event);
  } catch (error) {
    $("#feed").append(node("p", "note error", sentence(error)));
  }
}

composer.onsubmit = async (event) => {
  event.preventDefault();
  const { prompt, engine } = composer.elements;
  const words = composer.querySelector(".error");
  words.textContent = "";
  try {
    const target = current === undefined ? { engine: engine.value } : { session: current };
    const { session } = await client.submit({ prompt: prompt.value, ...target });
    prompt.value = "";
    if (session !== current) void open(session);
  } catch (error) {
    words.textContent = sentence(error);
  }
};
composer.elements.prompt.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
};

$("#new").onclick = () => void open(undefined);
$("#back").onclick = () => $("#app").classList.remove("open");
$("#stop").onclick = () => client.abort(current).catch((error) => alert(sentence(error)));
$("#leave").onclick = async () => {
  sessionStorage.removeItem("server");
  await client.close();
  location.reload();
};

$("#command").textContent = `linkspan serve --allow-origin ${location.origin}`;
$("#connect").onsubmit = async (event) => {
  event.preventDefault();
  const { url, token } = event.target.elements;
  try {
    await connect({ url: url.value, token: token.value });
  } catch (error) {
    event.target.querySelector(".error").textContent = sentence(error);
  }
};

const remembered = JSON.parse(sessionStorage.getItem("server") ?? "null");
try {
  if (remembered) await connect(remembered);
} catch (error) {
  $("#connect .error").textContent = sentence(error);
}
$("#connect").hidden = client !== undefined;
