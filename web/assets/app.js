// The page as a whole: which session is open, what the socket says, what the keys do.

import { forgetAnswers } from "./answered.js";
import { Agents } from "./agents.js";
import { ApiError, get, sentence, sessionPath, settle } from "./api.js";
import { Composer } from "./composer.js";
import { byId } from "./dom.js";
import { forgetDrafts } from "./drafts.js";
import { Feed } from "./feed.js";
import { Follower } from "./follow.js";
import { blank, missing, pills, progress, say, showLink } from "./frame.js";
import { gate } from "./gate.js";
import { showKeys } from "./help.js";
import { listenToKeys } from "./keys.js";
import { Known, summary } from "./known.js";
import { SessionList } from "./list.js";
import { forgetRights, learnRights, may, onRights } from "./me.js";
import { readPast } from "./past.js";
import { Pending, startingRow, unmade } from "./pending.js";
import { Socket } from "./socket.js";
import { Stop } from "./stop.js";
import { dropToken, forgetToken, onSignedIn, onSignedOut, rememberToken, takeToken, token } from "./token.js";
import { clearTop, drawTop, tickTop } from "./top.js";
import { openFile } from "./viewer.js";
import { isRecording } from "./words.js";

const socket = new Socket();
const known = new Known();
const list = new SessionList(known);
const feed = new Feed(byId("scroll"));
const composer = new Composer();
const agents = new Agents(composer);
const stop = new Stop();

/**
 * @typedef {object} Open
 * @property {Wire.Session} session
 * @property {Follower} follower
 * @property {Map<string, boolean>} canChange
 * @property {Pending} pending
 * @property {{ rows: View.Row[], title: string }} past what a fork began with
 */

/** The open session; its id is linkspan's own, and empty while it is being made. @type {Open | undefined} */
let open;
/** The session that was just made, and the prompts that made it. @type {{ id: string, session: Wire.Session, pending: Pending } | undefined} */
let made;
/** The parent whose past is shown, or asked for. */
let pastOf = "";
/** The row that says that a session is starting. @type {View.PendingRow | undefined} */
let starting;
let isAtEnd = true;
let isForking = false;
let isCostShown = false;
/** The request after whose answer every change is told. */
const HELLO = "hello";
/** Counts navigations: an answer that comes after the next one is not for us. */
let visit = 0;

socket.onState = (state) => {
  showLink(state);
  if (state === "refused") refuse();
};
socket.isRefused = () =>
  get("/api/engines").then(
    () => false,
    (error) => error instanceof ApiError && error.status === 401,
  );
socket.onOpen = () => {
  // Of the sessions that nobody looks at, their state is enough.
  socket.send({ control: "unsubscribe", requestId: HELLO });
};
socket.onFrame = (text) => {
  if (text.startsWith('{"v":')) {
    // An event names its session early; only what is followed has to be read.
    if (open && text.slice(0, 400).includes(`"session":"${open.session.id}"`)) open.follower.push(text);
    return;
  }
  const message = JSON.parse(text);
  // From here on the server tells every change; what was asked for before may miss one.
  if (message.requestId === HELLO) catchUp();
  else if (message.type === "bridge.session") sessionChanged(message.session);
  else if (message.type === "bridge.sessions_changed") void list.refresh();
  else if (message.type === "bridge.detached" && message.sessionId === open?.session.id) void open?.follower.sync();
};

feed.onEnd = (now) => {
  isAtEnd = now;
  drawPills();
};
list.onError = (error) => {
  if (error instanceof ApiError && error.status === 401) refuse();
};
composer.onSend = send;
agents.onFound = rememberToken;
agents.onRefused = refuse;
stop.onChange = draw;
composer.onCancelFork = () => {
  isForking = false;
  aim();
};

addEventListener("hashchange", () => {
  if (takeToken()) start();
  else void navigate();
});
addEventListener("online", () => socket.hurry());
addEventListener("focus", () => socket.hurry());
listenToKeys({ list, feed, back, toAsk, write: () => composer.focus() });
setInterval(() => {
  if (document.hidden) return;
  feed.tick();
  if (open) tickTop(open.follower.story);
}, 1000);
setInterval(() => list.draw(), 20_000);

takeToken();
byId("keys").addEventListener("click", showKeys);
byId("sign-out").addEventListener("click", () => {
  forgetToken();
  signedOut();
});
onSignedOut(signedOut);
onSignedIn(() => byId("app").hidden && start());
onRights(rightsChanged);
start();

function start() {
  if (!token()) {
    gate("missing", start);
    byId("app").hidden = true;
    return;
  }
  byId("gate").hidden = true;
  byId("app").hidden = false;
  socket.stop();
  socket.start();
  forgetRights();
  void learnRights();
  void agents.find();
  void navigate();
}

/** What the token may do is known, or has changed. */
function rightsChanged() {
  byId("fresh").hidden = !may("submitPrompt");
  composer.rights();
  agents.draw();
  list.draw();
  for (const row of open?.follower.story.asks.values() ?? []) row.version += 1;
  isForking &&= may("submitPrompt");
  feed.changed();
  aim();
  draw();
  // The queue offers to take prompts back.
  void refreshDetail();
}

function refuse() {
  // This tab may have an old one, and the browser a newer one.
  socket.stop();
  if (dropToken()) start();
  else shut("refused");
}

function signedOut() {
  composer.clear();
  forgetDrafts();
  forgetAnswers();
  shut("signedOut");
}

/** Nothing of what was shown stays in the document. @param {"refused" | "signedOut"} why */
function shut(why) {
  socket.stop();
  visit += 1;
  leave();
  feed.show(undefined, undefined);
  list.clear();
  clearTop();
  composer.queue([], "", () => {});
  say("");
  byId("app").hidden = true;
  gate(why, start);
}

/** The connection stands: what is shown may be old. */
function catchUp() {
  composer.reached();
  void learnRights();
  if (!agents.isKnown) void agents.find();
  void list.refresh();
  void open?.follower.sync();
  void refreshDetail();
}

/** Opens what the address names. */
async function navigate() {
  const here = (visit += 1);
  const name = /^#\/s\/([^?&]+)/.exec(location.hash)?.[1];
  leave();
  if (made === undefined) stop.reset();
  isForking = false;
  isCostShown = false;
  pastOf = "";
  starting = undefined;
  document.body.classList.toggle("in-session", name !== undefined);
  document.body.classList.toggle("at-start", location.hash === "#/new");
  byId("start").hidden = name !== undefined;
  byId("scroll").hidden = name === undefined;
  byId("progress").hidden = true;
  blank([]);
  feed.show(undefined, undefined);
  const justMade = made;
  made = undefined;
  if (justMade && name !== undefined && justMade.id === decodeURIComponent(name)) {
    // Nothing disappears while the server is asked for more.
    follow({ ...justMade.session, id: justMade.id, queue: [], asks: [], runs: [] }, justMade.pending);
    void refreshDetail();
    return;
  }
  if (name === undefined) {
    list.current = "";
    list.draw();
    aim();
    draw();
    return;
  }
  const askedAt = known.now();
  try {
    const detail = await get(sessionPath(decodeURIComponent(name)));
    if (here !== visit) return;
    // Found by its native id: from here on it has its own address.
    if (detail.id !== decodeURIComponent(name)) history.replaceState(null, "", `#/s/${encodeURIComponent(detail.id)}`);
    follow(detail, new Pending(), askedAt);
  } catch (error) {
    if (here !== visit) return;
    if (error instanceof ApiError && error.status === 401) return refuse();
    if (error instanceof ApiError && error.status === 404) missing(decodeURIComponent(name));
    else clearTop(sentence(error));
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

/** Shows a session and what comes. @param {Wire.SessionDetail} detail @param {Pending} pending @param {number} askedAt */
function follow(detail, pending, askedAt = known.now()) {
  const { id } = detail;
  const follower = new Follower(id, (since) => socket.send({ control: "subscribe", sessionId: id, since }));
  const canChange = new Map();
  /** @type {Open} */
  const it = { session: summary(detail), follower, canChange, pending, past: { rows: [], title: "" } };
  open = it;
  list.current = id;
  list.draw();
  const { story } = follower;
  feed.show(() => [it.past.rows, story.rows, coming(it)], {
    session: id,
    isRecording: () => isRecording(it.session.engine),
    canChange: (row) => canChange.get(row.id) ?? false,
    settle,
    openFile: (path) => void openFile(id, path),
  });
  takeDetail(detail, askedAt);
  let nAsks = 0;
  let wasRunning = false;
  follower.onChange = () => {
    if (open?.follower !== follower) return;
    progress(follower, it.session.head);
    pending.seen(story);
    if (!follower.isCaughtUp) return;
    feed.changed();
    draw();
    drawPills();
    if (story.asks.size > nAsks) {
      feed.attend();
      say(`Approval needed: ${[...story.asks.values()].at(-1)?.ask.title ?? ""}`);
      void refreshDetail();
    } else if (wasRunning && !story.isRunning) say("The run has ended.");
    nAsks = story.asks.size;
    wasRunning = story.isRunning;
  };
  follower.onCaughtUp = () => {
    byId("progress").hidden = true;
  };
  follower.onError = (error) => {
    if (error instanceof ApiError && error.status === 401) refuse();
    else if (socket.state === "open") setTimeout(() => open?.follower === follower && void follower.sync(), 1000);
  };
  if (id) void follower.sync();
}

/** What is on its way and no event shows yet. @param {Open} it @returns {View.Row[]} */
function coming(it) {
  if (it.pending.rows.length > 0) return it.pending.rows;
  return it.session.state === "starting" && it.follower.isCaughtUp ? [(starting ??= startingRow(it.session.engine))] : [];
}

/** Shows what a fork began with. @param {Open} it @param {{ session: string, seq: number }} parent */
async function showPast(it, parent) {
  try {
    it.past = await readPast(parent, it.follower.signal);
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
  const isBusy = it !== undefined && target.kind === "session" && it.session.state !== "idle";
  const row = it?.pending.add({ prompt, engine, isBusy, after: story?.cursor ?? 0 });
  isForking = false;
  aim();
  feed.toEnd();
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
  byId("start").hidden = true;
  byId("scroll").hidden = false;
  follow(unmade(prompt, engine), new Pending());
}

/** @param {Open} it @param {View.PendingRow} row @param {import("./composer.js").Accepted} answer @param {boolean} isHere */
function accepted(it, row, answer, isHere) {
  it.pending.accept(row, answer);
  if (row.isStopped) void stop.now(answer.session);
  if (it.session.id === answer.session) {
    it.pending.seen(it.follower.story);
    feed.changed();
    draw();
    void refreshDetail();
  } else if (isHere) {
    made = { id: answer.session, session: { ...it.session, id: answer.session }, pending: it.pending };
    location.hash = `#/s/${encodeURIComponent(answer.session)}`;
  }
}

/** @param {Wire.Session} session */
function sessionChanged(session) {
  known.hear(session);
  list.put(session);
  if (open?.session.id !== session.id) return;
  const before = open.session;
  open.session = session;
  open.pending.state(session.state);
  feed.changed();
  if (before.queue !== session.queue || before.state !== session.state) void refreshDetail();
  aim();
  draw();
}

/** Counts the times it was asked for, because answers may come in another order. */
let nRefreshes = 0;

async function refreshDetail() {
  const it = open;
  if (!it || it.session.id === "") return;
  const n = ++nRefreshes;
  const askedAt = known.now();
  try {
    const detail = await get(sessionPath(it.session.id));
    if (open === it && n === nRefreshes) takeDetail(detail, askedAt);
  } catch {
    // The next change, or the next connection, asks again.
  }
}

/** @param {Wire.SessionDetail} detail @param {number} askedAt */
function takeDetail(detail, askedAt) {
  if (!open) return;
  const told = summary(detail);
  open.session = known.reply(told, askedAt);
  // The socket was faster: what it has no words for is asked for again.
  if (open.session !== told) void refreshDetail();
  const { parent } = open.session;
  if (parent && parent.session !== pastOf) {
    pastOf = parent.session;
    void showPast(open, parent);
  }
  let isNew = false;
  for (const it of detail.asks ?? []) {
    isNew ||= open.canChange.get(it.id) !== it.can_change;
    open.canChange.set(it.id, it.can_change);
  }
  if (isNew) {
    for (const row of open.follower.story.asks.values()) row.version += 1;
    feed.changed();
  }
  composer.queue(detail.queue ?? [], detail.id, () => void refreshDetail());
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
  const isBusy = session.state !== "idle" || follower.story.isRunning || pending.rows.length > 0;
  composer.aim({ kind: isForking ? "fork" : "session", session, isBusy });
}

function draw() {
  if (!open) return clearTop();
  const { session, follower, pending, past } = open;
  const can = agents.can(session.engine);
  const { story } = follower;
  const isSending = pending.rows.length > 0;
  if (session.state === "idle" && !story.isRunning && !isSending) stop.reset();
  const acts = { toggleCost, fork, stop: () => void stop.press(pending, session) };
  const { isPressed: isStopping, problem } = stop;
  drawTop({ session, story, can, isStopping, isCostShown, isSending, problem, parent: past.title }, acts);
  const isEmpty = follower.isCaughtUp && story.rows.length === 0 && past.rows.length === 0 && !isSending;
  blank(isEmpty && session.state === "idle" ? ["No messages yet"] : []);
}

function toggleCost() {
  isCostShown = !isCostShown;
  draw();
}

function fork() {
  isForking = true;
  aim();
  composer.focus();
}

function drawPills() {
  const asks = [...(open?.follower.story.asks.values() ?? [])];
  pills(asks, isAtEnd, { reveal: (ask) => feed.reveal(ask), toEnd: () => feed.toEnd() });
}

/** To the approval that was asked for first; answering it takes one more key. */
function toAsk() {
  const [ask] = open?.follower.story.asks.values() ?? [];
  if (!ask) return false;
  feed.reveal(ask);
  /** @type {HTMLElement | null} */ (document.querySelector(".ask.open :is(.option input, .primary)"))?.focus();
  return true;
}

/** One step back; false if there was none. */
function back() {
  if (isCostShown) toggleCost();
  else if (isForking) composer.onCancelFork();
  else return false;
  return true;
}
