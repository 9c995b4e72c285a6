// The page as a whole: which session is open, what the socket says, what the keys do.

import { forget_answers } from "./answered.js";
import { Agents } from "./agents.js";
import { ApiError, get, sentence, session_path, settle } from "./api.js";
import { Composer } from "./composer.js";
import { by_id } from "./dom.js";
import { forget_drafts } from "./drafts.js";
import { Feed } from "./feed.js";
import { Follower } from "./follow.js";
import { blank, missing, pills, progress, say, show_link } from "./frame.js";
import { gate } from "./gate.js";
import { show_keys } from "./help.js";
import { listen_to_keys } from "./keys.js";
import { Known, summary } from "./known.js";
import { SessionList } from "./list.js";
import { forget_rights, learn_rights, may, on_rights } from "./me.js";
import { read_past } from "./past.js";
import { Pending, starting_row, unmade } from "./pending.js";
import { Socket } from "./socket.js";
import { Stop } from "./stop.js";
import { drop_token, forget_token, on_signed_in, on_signed_out, remember_token, take_token, token } from "./token.js";
import { clear_top, draw_top, tick_top } from "./top.js";
import { open_file } from "./viewer.js";
import { is_recording } from "./words.js";

const socket = new Socket();
const known = new Known();
const list = new SessionList(known);
const feed = new Feed(by_id("scroll"));
const composer = new Composer();
const agents = new Agents(composer);
const stop = new Stop();

/**
 * @typedef {object} Open
 * @property {Wire.Session} session
 * @property {Follower} follower
 * @property {Map<string, boolean>} can_change
 * @property {Pending} pending
 * @property {{ rows: View.Row[], title: string }} past what a fork began with
 */

/** The open session; its id is linkspan's own, and empty while it is being made. @type {Open | undefined} */
let open;
/** The session that was just made, and the prompts that made it. @type {{ id: string, session: Wire.Session, pending: Pending } | undefined} */
let made;
/** The parent whose past is shown, or asked for. */
let past_of = "";
/** The row that says that a session is starting. @type {View.PendingRow | undefined} */
let starting;
let is_at_end = true;
let is_forking = false;
let is_cost_shown = false;
/** The request after whose answer every change is told. */
const HELLO = "hello";
/** Counts navigations: an answer that comes after the next one is not for us. */
let visit = 0;

socket.onstate = (state) => {
  show_link(state);
  if (state === "refused") refuse();
};
socket.is_refused = () =>
  get("/api/engines").then(
    () => false,
    (error) => error instanceof ApiError && error.status === 401,
  );
socket.onopen = () => {
  // Of the sessions that nobody looks at, their state is enough.
  socket.send({ control: "unsubscribe", requestId: HELLO });
};
socket.onframe = (text) => {
  if (text.startsWith('{"v":')) {
    // An event names its session early; only what is followed has to be read.
    if (open && text.slice(0, 400).includes(`"session":"${open.session.id}"`)) open.follower.push(text);
    return;
  }
  const message = JSON.parse(text);
  // From here on the server tells every change; what was asked for before may miss one.
  if (message.requestId === HELLO) catch_up();
  else if (message.type === "bridge.session") session_changed(message.session);
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
composer.onsend = send;
agents.onfound = remember_token;
agents.onrefused = refuse;
stop.onchange = draw;
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
listen_to_keys({ list, feed, back, to_ask, write: () => composer.focus() });
setInterval(() => {
  if (document.hidden) return;
  feed.tick();
  if (open) tick_top(open.follower.story);
}, 1000);
setInterval(() => list.draw(), 20_000);

take_token();
by_id("keys").addEventListener("click", show_keys);
by_id("sign-out").addEventListener("click", () => {
  forget_token();
  signed_out();
});
on_signed_out(signed_out);
on_signed_in(() => by_id("app").hidden && start());
on_rights(rights_changed);
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
  forget_rights();
  void learn_rights();
  void agents.find();
  void navigate();
}

/** What the token may do is known, or has changed. */
function rights_changed() {
  by_id("fresh").hidden = !may("submitPrompt");
  composer.rights();
  agents.draw();
  list.draw();
  for (const row of open?.follower.story.asks.values() ?? []) row.version += 1;
  is_forking &&= may("submitPrompt");
  feed.changed();
  aim();
  draw();
  // The queue offers to take prompts back.
  void refresh_detail();
}

function refuse() {
  // This tab may have an old one, and the browser a newer one.
  socket.stop();
  if (drop_token()) start();
  else shut("refused");
}

function signed_out() {
  composer.clear();
  forget_drafts();
  forget_answers();
  shut("signed_out");
}

/** Nothing of what was shown stays in the document. @param {"refused" | "signed_out"} why */
function shut(why) {
  socket.stop();
  visit += 1;
  leave();
  feed.show(undefined, undefined);
  list.clear();
  clear_top();
  composer.queue([], "", () => {});
  say("");
  by_id("app").hidden = true;
  gate(why, start);
}

/** The connection stands: what is shown may be old. */
function catch_up() {
  composer.reached();
  void learn_rights();
  if (!agents.is_known) void agents.find();
  void list.refresh();
  void open?.follower.sync();
  void refresh_detail();
}

/** Opens what the address names. */
async function navigate() {
  const here = (visit += 1);
  const name = /^#\/s\/([^?&]+)/.exec(location.hash)?.[1];
  leave();
  if (made === undefined) stop.reset();
  is_forking = false;
  is_cost_shown = false;
  past_of = "";
  starting = undefined;
  document.body.classList.toggle("in-session", name !== undefined);
  document.body.classList.toggle("at-start", location.hash === "#/new");
  by_id("start").hidden = name !== undefined;
  by_id("scroll").hidden = name === undefined;
  by_id("progress").hidden = true;
  blank([]);
  feed.show(undefined, undefined);
  const just_made = made;
  made = undefined;
  if (just_made && name !== undefined && just_made.id === decodeURIComponent(name)) {
    // Nothing disappears while the server is asked for more.
    follow({ ...just_made.session, id: just_made.id, queue: [], asks: [], runs: [] }, just_made.pending);
    void refresh_detail();
    return;
  }
  if (name === undefined) {
    list.current = "";
    list.draw();
    aim();
    draw();
    return;
  }
  const asked_at = known.now();
  try {
    const detail = await get(session_path(decodeURIComponent(name)));
    if (here !== visit) return;
    // Found by its native id: from here on it has its own address.
    if (detail.id !== decodeURIComponent(name)) history.replaceState(null, "", `#/s/${encodeURIComponent(detail.id)}`);
    follow(detail, new Pending(), asked_at);
  } catch (error) {
    if (here !== visit) return;
    if (error instanceof ApiError && error.status === 401) return refuse();
    if (error instanceof ApiError && error.status === 404) missing(decodeURIComponent(name));
    else clear_top(sentence(error));
    // The server may only be on its way back.
    if (error instanceof ApiError && error.status === 0) setTimeout(() => here === visit && void navigate(), 1500);
  }
}

/** Lets go of the open session. */
function leave() {
  if (open) {
    open.follower.stop();
    if (open.session.id) socket.send({ control: "unsubscribe", sessionId: open.session.id });
  }
  open = undefined;
}

/** Shows a session and what comes. @param {Wire.Detail} detail @param {Pending} pending @param {number} asked_at */
function follow(detail, pending, asked_at = known.now()) {
  const { id } = detail;
  const follower = new Follower(id, (since) => socket.send({ control: "subscribe", sessionId: id, since }));
  const can_change = new Map();
  /** @type {Open} */
  const it = { session: summary(detail), follower, can_change, pending, past: { rows: [], title: "" } };
  open = it;
  list.current = id;
  list.draw();
  const { story } = follower;
  feed.show(() => [it.past.rows, story.rows, coming(it)], {
    session: id,
    is_recording: () => is_recording(it.session.engine),
    can_change: (row) => can_change.get(row.id) ?? false,
    settle,
    open_file: (path) => void open_file(id, path),
  });
  take_detail(detail, asked_at);
  let n_asks = 0;
  let was_running = false;
  follower.onchange = () => {
    if (open?.follower !== follower) return;
    progress(follower, it.session.head);
    pending.seen(story);
    if (!follower.is_caught_up) return;
    feed.changed();
    draw();
    draw_pills();
    if (story.asks.size > n_asks) {
      feed.attend();
      say(`Approval needed: ${[...story.asks.values()].at(-1)?.ask.title ?? ""}`);
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
  if (id) void follower.sync();
}

/** What is on its way and no event shows yet. @param {Open} it @returns {View.Row[]} */
function coming(it) {
  if (it.pending.rows.length > 0) return it.pending.rows;
  return it.session.state === "starting" && it.follower.is_caught_up ? [(starting ??= starting_row(it.session.engine))] : [];
}

/** Shows what a fork began with. @param {Open} it @param {{ session: string, seq: number }} parent */
async function show_past(it, parent) {
  try {
    it.past = await read_past(parent, it.follower.signal);
  } catch (error) {
    // A parent that was removed leaves its child without a past.
    if (it.follower.signal.aborted) return;
  }
  if (open !== it) return;
  feed.changed();
  draw();
}

/** A prompt is on its way: it is seen at once, in the session that is open or in one that is being made. @param {import("./composer.js").Sent} sent */
function send({ prompt, target, engine }) {
  const here = visit;
  if (target.kind !== "session" || !open) begin(prompt, engine);
  const it = open;
  const story = it?.follower.story;
  const is_busy = it !== undefined && target.kind === "session" && it.session.state !== "idle";
  const row = it?.pending.add({ prompt, engine, is_busy, after: story?.cursor ?? 0 });
  is_forking = false;
  aim();
  feed.to_end();
  feed.changed();
  draw();
  return {
    accepted: (/** @type {import("./composer.js").Accepted} */ answer) => {
      if (it && row) accepted(it, row, answer, here === visit);
    },
    refused: () => {
      if (it && row) it.pending.drop(row);
      if (here !== visit || !it || open !== it) return;
      // A session that was not made is not there; a fork goes back to its parent.
      if (it.session.id === "") {
        stop.reset();
        void navigate();
        if (target.kind === "fork") fork();
        return;
      }
      feed.changed();
      draw();
    },
  };
}

/** Shows a session that is not made yet. @param {string} prompt @param {string} engine */
function begin(prompt, engine) {
  leave();
  document.body.classList.add("in-session");
  document.body.classList.remove("at-start");
  by_id("start").hidden = true;
  by_id("scroll").hidden = false;
  follow(unmade(prompt, engine), new Pending());
}

/** @param {Open} it @param {View.PendingRow} row @param {import("./composer.js").Accepted} answer @param {boolean} is_here */
function accepted(it, row, answer, is_here) {
  it.pending.accept(row, answer);
  if (row.is_stopped) void stop.now(answer.session);
  if (it.session.id === answer.session) {
    it.pending.seen(it.follower.story);
    feed.changed();
    draw();
    void refresh_detail();
  } else if (is_here) {
    made = { id: answer.session, session: { ...it.session, id: answer.session }, pending: it.pending };
    location.hash = `#/s/${encodeURIComponent(answer.session)}`;
  }
}

/** @param {Wire.Session} session */
function session_changed(session) {
  known.hear(session);
  list.put(session);
  if (open?.session.id !== session.id) return;
  const before = open.session;
  open.session = session;
  open.pending.state(session.state);
  feed.changed();
  if (before.queue !== session.queue || before.state !== session.state) void refresh_detail();
  aim();
  draw();
}

/** Counts the times it was asked for, because answers may come in another order. */
let n_refreshes = 0;

async function refresh_detail() {
  const it = open;
  if (!it || it.session.id === "") return;
  const n = ++n_refreshes;
  const asked_at = known.now();
  try {
    const detail = await get(session_path(it.session.id));
    if (open === it && n === n_refreshes) take_detail(detail, asked_at);
  } catch {
    // The next change, or the next connection, asks again.
  }
}

/** @param {Wire.Detail} detail @param {number} asked_at */
function take_detail(detail, asked_at) {
  if (!open) return;
  const told = summary(detail);
  open.session = known.reply(told, asked_at);
  // The socket was faster: what it has no words for is asked for again.
  if (open.session !== told) void refresh_detail();
  const { parent } = open.session;
  if (parent && parent.session !== past_of) {
    past_of = parent.session;
    void show_past(open, parent);
  }
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

function aim() {
  if (!open) {
    composer.queue([], "", () => {});
    composer.aim({ kind: "new" });
    return;
  }
  const { session, follower, pending } = open;
  const is_busy = session.state !== "idle" || follower.story.is_running || pending.rows.length > 0;
  composer.aim({ kind: is_forking ? "fork" : "session", session, is_busy });
}

function draw() {
  if (!open) return clear_top();
  const { session, follower, pending, past } = open;
  const can = agents.can(session.engine);
  const { story } = follower;
  const is_sending = pending.rows.length > 0;
  if (session.state === "idle" && !story.is_running && !is_sending) stop.reset();
  const acts = { toggle_cost, fork, stop: () => void stop.press(pending, session) };
  const { is_pressed: is_stopping, problem } = stop;
  draw_top({ session, story, can, is_stopping, is_cost_shown, is_sending, problem, parent: past.title }, acts);
  const is_empty = follower.is_caught_up && story.rows.length === 0 && past.rows.length === 0 && !is_sending;
  blank(is_empty && session.state === "idle" ? ["No messages yet"] : []);
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

function draw_pills() {
  const asks = [...(open?.follower.story.asks.values() ?? [])];
  pills(asks, is_at_end, { reveal: (ask) => feed.reveal(ask), to_end: () => feed.to_end() });
}

/** To the approval that was asked for first; answering it takes one more key. */
function to_ask() {
  const [ask] = open?.follower.story.asks.values() ?? [];
  if (!ask) return false;
  feed.reveal(ask);
  /** @type {HTMLElement | null} */ (document.querySelector(".ask.open :is(.option input, .primary)"))?.focus();
  return true;
}

/** One step back; false if there was none. */
function back() {
  if (is_cost_shown) toggle_cost();
  else if (is_forking) composer.oncancel_fork();
  else return false;
  return true;
}
