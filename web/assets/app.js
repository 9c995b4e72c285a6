// The page as a whole: which session is open, what the socket says, what the keys do.

import { ApiError, get, post, sentence, session_path } from "./api.js";
import { Composer } from "./composer.js";
import { add, button, by_id, h, icon } from "./dom.js";
import { Feed } from "./feed.js";
import { Follower } from "./follow.js";
import { gate } from "./gate.js";
import { show_keys } from "./help.js";
import { SessionList } from "./list.js";
import { Socket } from "./socket.js";
import { draw_start, mark_agent } from "./start.js";
import { forget_token, take_token, token } from "./token.js";
import { clear_top, draw_top, tick_top } from "./top.js";
import { open_file } from "./viewer.js";
import { engine_name, plural, visible } from "./words.js";

const socket = new Socket();
const list = new SessionList();
const feed = new Feed(by_id("scroll"));
const composer = new Composer();

/** The open session; its id is linkspan's own. @type {{ session: Wire.Session, follower: Follower, can_change: Map<string, boolean> } | undefined} */
let open;
let is_at_end = true;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let offline;
let is_forking = false;
let is_cost_shown = false;
let is_stopping = false;
/** Counts navigations: an answer that comes after the next one is not for us. */
let visit = 0;
/** @type {Wire.Engines} */
let engines = { engines: [], replays: [] };

socket.onstate = (state) => {
  const words = { connecting: "Connecting…", open: "", lost: "Connection lost, trying again…", refused: "" };
  clearTimeout(offline);
  // A short interruption is nobody's business.
  const show = () => {
    for (const id of ["link-state", "lost"]) by_id(id).textContent = words[state];
    document.body.classList.toggle("offline", state === "lost");
  };
  if (state === "open") show();
  else offline = setTimeout(show, 800);
  if (state === "refused") refuse();
};
socket.is_refused = () =>
  get("/api/engines").then(
    () => false,
    (error) => error instanceof ApiError && error.status === 401,
  );
socket.onopen = () => {
  // Of the sessions that nobody looks at, their state is enough.
  socket.send({ control: "unsubscribe" });
  void list.refresh();
  void open?.follower.sync();
  if (open) void refresh_detail();
};
socket.onframe = (text) => {
  if (text.startsWith('{"v":')) {
    // An event names its session early; only what is followed has to be read.
    if (open && text.slice(0, 400).includes(`"session":"${open.session.id}"`)) open.follower.push(text);
    return;
  }
  const message = JSON.parse(text);
  if (message.type === "bridge.session") session_changed(message.session);
  else if (message.type === "bridge.sessions_changed") void list.refresh();
  else if (message.type === "bridge.detached" && message.sessionId === open?.session.id) void open?.follower.sync();
};

feed.onend = (now) => {
  is_at_end = now;
  draw_pills();
};
list.onerror = (error) => {
  if (error instanceof ApiError && error.status === 401) refuse();
};
composer.onsent = (session) => {
  is_forking = false;
  feed.to_end();
  if (open?.session.id === session) void refresh_detail();
  else location.hash = `#/s/${encodeURIComponent(session)}`;
};
composer.onpick = mark_agent;
composer.oncancel_fork = () => {
  is_forking = false;
  aim();
};

addEventListener("hashchange", () => {
  if (take_token()) start();
  else void navigate();
});
addEventListener("online", () => socket.hurry());
addEventListener("focus", () => socket.hurry());
addEventListener("keydown", keys);
setInterval(() => {
  if (document.hidden) return;
  feed.tick();
  if (open) tick_top(open.follower.story);
}, 1000);
setInterval(() => list.draw(), 20_000);

take_token();
by_id("keys").addEventListener("click", show_keys);
start();

function start() {
  if (!token()) {
    gate("missing", start);
    by_id("app").hidden = true;
    return;
  }
  by_id("gate").hidden = true;
  by_id("app").hidden = false;
  socket.stop();
  socket.start();
  get("/api/engines").then(
    (all) => {
      engines = all;
      composer.engines(all);
      const prompt = (/** @type {string} */ replay) => `Play the recording “${engine_name(replay).slice(7)}”.`;
      draw_start(
        all,
        (engine) => composer.pick(engine),
        (replay) => void composer.send({ engine: replay, prompt: prompt(replay) }),
      );
      mark_agent(composer.engine);
    },
    (error) => error instanceof ApiError && error.status === 401 && refuse(),
  );
  void navigate();
}

function refuse() {
  socket.stop();
  forget_token();
  by_id("app").hidden = true;
  gate("refused", start);
}

/** Opens what the address names. */
async function navigate() {
  const here = (visit += 1);
  const name = /^#\/s\/([^?&]+)/.exec(location.hash)?.[1];
  if (open) {
    open.follower.stop();
    socket.send({ control: "unsubscribe", sessionId: open.session.id });
  }
  open = undefined;
  is_stopping = false;
  is_forking = false;
  is_cost_shown = false;
  document.body.classList.toggle("in-session", name !== undefined);
  document.body.classList.toggle("at-start", location.hash === "#/new");
  by_id("start").hidden = name !== undefined;
  by_id("scroll").hidden = name === undefined;
  by_id("progress").hidden = true;
  blank([]);
  feed.show(undefined, undefined);
  if (name === undefined) {
    list.current = "";
    list.draw();
    aim();
    draw();
    return;
  }
  try {
    const detail = await get(session_path(decodeURIComponent(name)));
    if (here !== visit) return;
    // Found by its native id: from here on it has its own address.
    if (detail.id !== decodeURIComponent(name)) history.replaceState(null, "", `#/s/${encodeURIComponent(detail.id)}`);
    follow(detail);
  } catch (error) {
    if (here !== visit) return;
    if (error instanceof ApiError && error.status === 401) return refuse();
    if (error instanceof ApiError && error.status === 404) missing(decodeURIComponent(name));
    else clear_top(sentence(error));
    // The server may only be on its way back.
    if (error instanceof ApiError && error.status === 0) setTimeout(() => here === visit && void navigate(), 1500);
  }
}

/** @param {string} name */
function missing(name) {
  clear_top();
  blank([
    h("b", null, "There is no such session"),
    h(
      "p",
      null,
      "Nothing is kept here under ",
      h("code", null, visible(name)),
      ", neither as linkspan's id nor as an agent's.",
    ),
    h("a", { class: "button", href: "#/new" }, "New session"),
  ]);
}

/** @param {Wire.Detail} detail */
function follow(detail) {
  const { id } = detail;
  const follower = new Follower(id, (since) => socket.send({ control: "subscribe", sessionId: id, since }));
  const can_change = new Map();
  open = { session: summary(detail), follower, can_change };
  list.current = id;
  list.draw();
  take_detail(detail);
  const { story } = follower;
  let n_asks = 0;
  let was_running = false;
  follower.onchange = () => {
    if (open?.follower !== follower) return;
    progress(follower);
    if (!follower.is_caught_up) return;
    feed.changed();
    draw();
    draw_pills();
    if (story.asks.size > n_asks) {
      say(`The agent asks: ${[...story.asks.values()].at(-1)?.ask.title ?? ""}`);
      void refresh_detail();
    } else if (was_running && !story.is_running) say("The run has ended.");
    n_asks = story.asks.size;
    was_running = story.is_running;
  };
  follower.oncaught_up = () => {
    by_id("progress").hidden = true;
  };
  follower.onerror = (error) => {
    if (error instanceof ApiError && error.status === 401) refuse();
    else if (socket.state === "open") setTimeout(() => open?.follower === follower && void follower.sync(), 1000);
  };
  feed.show(story, {
    session: id,
    can_change: (row) => can_change.get(row.id) ?? false,
    settle: (row, answer) => settle(row, answer),
    open_file: (path) => void open_file(id, path),
  });
  void follower.sync();
}

/** @param {Follower} follower */
function progress(follower) {
  const head = open?.session.head ?? 0;
  const bar = by_id("progress");
  bar.hidden = follower.is_caught_up || head < 2000;
  if (!bar.hidden) bar.style.width = `${Math.min(100, (100 * follower.story.cursor) / head)}%`;
}

/** @param {View.AskRow} row @param {import("./cards.js").Answer} answer */
async function settle(row, answer) {
  try {
    await post(`/api/asks/${encodeURIComponent(row.id)}`, answer);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return `Somebody else was faster: ${error.message}`;
    return sentence(error);
  }
}

/** @param {Wire.Session} session */
function session_changed(session) {
  list.put(session);
  if (open?.session.id !== session.id) return;
  const before = open.session;
  open.session = session;
  if (before.queue !== session.queue || before.state !== session.state) void refresh_detail();
  aim();
  draw();
}

/** Counts the times it was asked for, because answers may come in another order. */
let n_refreshes = 0;

async function refresh_detail() {
  const it = open;
  if (!it) return;
  const n = ++n_refreshes;
  try {
    const detail = await get(session_path(it.session.id));
    if (open === it && n === n_refreshes) take_detail(detail);
  } catch {
    // The next change, or the next connection, asks again.
  }
}

/** @param {Wire.Detail} detail */
function take_detail(detail) {
  if (!open) return;
  open.session = summary(detail);
  let is_new = false;
  for (const it of detail.asks ?? []) {
    is_new ||= open.can_change.get(it.id) !== it.can_change;
    open.can_change.set(it.id, it.can_change);
  }
  if (is_new) {
    for (const row of open.follower.story.asks.values()) row.version += 1;
    feed.changed();
  }
  composer.queue(detail.queue ?? [], detail.id, () => void refresh_detail());
  aim();
  draw();
}

/** @param {Wire.Detail} detail @returns {Wire.Session} */
function summary(detail) {
  return { ...detail, queue: detail.queue?.length ?? 0 };
}

function aim() {
  if (!open) {
    composer.queue([], "", () => {});
    composer.aim({ kind: "new" });
  } else composer.aim({ kind: is_forking ? "fork" : "session", session: open.session });
}

function draw() {
  if (!open) return clear_top();
  const { session, follower } = open;
  const can = engines.engines.find((it) => it.name === session.engine)?.can;
  is_stopping &&= session.state !== "idle" || follower.story.is_running;
  const { story } = follower;
  draw_top({ session, story, can, is_stopping, is_cost_shown }, { toggle_cost, fork, stop: () => void abort() });
  const is_empty = follower.is_caught_up && follower.story.rows.length === 0;
  blank(is_empty ? [session.state === "idle" ? "Nothing was said here yet." : "The agent is starting…"] : []);
}

/** What stands where nothing else does. @param {import("./dom.js").Child[]} words */
function blank(words) {
  const node = by_id("blank");
  node.hidden = words.length === 0;
  if (node.textContent !== words.map((it) => (it instanceof Node ? it.textContent : it)).join("")) {
    node.replaceChildren();
    add(node, ...words);
  }
}

function toggle_cost() {
  is_cost_shown = !is_cost_shown;
  draw();
}

function fork() {
  is_forking = true;
  aim();
  composer.focus();
}

async function abort() {
  if (!open) return;
  is_stopping = true;
  draw();
  try {
    const { aborted } = await post(`${session_path(open.session.id)}/abort`, {});
    if (aborted) return;
    say("Nothing was running.");
  } catch (error) {
    say(sentence(error));
  }
  is_stopping = false;
  draw();
}

function draw_pills() {
  const asks = open ? [...open.follower.story.asks.values()] : [];
  const pills = [];
  const [ask] = asks;
  if (ask && !is_at_end)
    pills.push(button(`${plural(asks.length, "ask")} waiting`, () => feed.reveal(ask), { class: "pill odd" }));
  if (!is_at_end) {
    const node = button("", () => feed.to_end(), { class: "pill", "aria-label": "To the end" });
    node.append(icon("down"));
    pills.push(node);
  }
  by_id("pills").replaceChildren(...pills);
}

/** For those who listen. @param {string} words */
function say(words) {
  by_id("live").textContent = words;
}

/** @param {KeyboardEvent} it */
function keys(it) {
  const target = /** @type {Element | null} */ (it.target instanceof Element ? it.target : null);
  const is_typing = target?.matches("input, textarea, select") ?? false;
  if (/** @type {HTMLDialogElement} */ (by_id("viewer")).open || by_id("app").hidden) return;
  if (it.key === "Escape") {
    if (target?.id === "search" && list.clear_search()) return;
    if (is_cost_shown) toggle_cost();
    else if (is_forking) composer.oncancel_fork();
    else if (is_typing) /** @type {HTMLElement} */ (target).blur();
    else if (document.body.classList.contains("in-session")) location.hash = "#/";
    return;
  }
  const is_list = target?.closest("#side") !== null && target !== null;
  if (it.key === "ArrowDown" && is_list) step(it, 1);
  else if (it.key === "ArrowUp" && is_list) step(it, -1);
  else if (is_typing || it.ctrlKey || it.metaKey || it.altKey) return;
  else if (it.key === "j") step(it, 1);
  else if (it.key === "k") step(it, -1);
  else if (it.key === "/") {
    it.preventDefault();
    list.focus_search();
  } else if (it.key === "n") {
    it.preventDefault();
    location.hash = "#/new";
    composer.focus();
  } else if (it.key === "G" || it.key === "End") to_end(it);
  else if (it.key === "g" || it.key === "Home") to_start(it);
  else if (it.key === "?") show_keys();
  else if (it.key === "a") to_ask(it);
  else if (it.key === "i") {
    it.preventDefault();
    composer.focus();
  }
}

// A browser would go on to where the end was guessed to be, and not follow when it turns out to be elsewhere.
/** @param {KeyboardEvent} it */
function to_end(it) {
  it.preventDefault();
  feed.to_end();
}

/** @param {KeyboardEvent} it */
function to_start(it) {
  it.preventDefault();
  feed.to_start();
}

/** To the ask that waits longest; answering it takes one more key. @param {KeyboardEvent} it */
function to_ask(it) {
  const [ask] = open?.follower.story.asks.values() ?? [];
  if (!ask) return;
  it.preventDefault();
  feed.reveal(ask);
  /** @type {HTMLElement | null} */ (document.querySelector(".ask.open :is(.option input, .primary)"))?.focus();
}

/** @param {KeyboardEvent} it @param {1 | -1} by */
function step(it, by) {
  it.preventDefault();
  list.move(by);
}
