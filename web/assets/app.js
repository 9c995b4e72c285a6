// The page as a whole: which session is open, what the socket says, what the keys do.

import { forgetAnswers } from "./answered.js";
import { Agents } from "./agents.js";
import { ApiError, get, onRefused, sentence, sessionPath, settle } from "./api.js";
import { Composer } from "./composer.js";
import { byId } from "./dom.js";
import { forgetDrafts } from "./drafts.js";
import { Feed } from "./feed.js";
import { Follower } from "./follow.js";
import { blank, missing, pills, progress, say, showLink } from "./frame.js";
import { gate } from "./gate.js";
import { showKeys } from "./help.js";
import { listenToKeys } from "./keys.js";
import { SessionList } from "./list.js";
import { forgetRights, learnRights, may, onRights } from "./me.js";
import { readPast } from "./past.js";
import { Pending, unmade } from "./pending.js";
import { Socket } from "./socket.js";
import { Stop } from "./stop.js";
import { Store, summary } from "./store.js";
import { dropToken, forgetToken, onSignedIn, onSignedOut, rememberToken, takeToken, token } from "./token.js";
import { clearTop, drawTop, tickTop } from "./top.js";
import { openFile } from "./viewer.js";
import { isRecording, visible } from "./words.js";

/**
 * @typedef {object} Open
 * @property {Wire.Session} session
 * @property {Follower} follower
 * @property {Map<string, boolean>} canChange
 * @property {Pending} pending
 * @property {{ of: string, rows: View.Row[], title: string }} past what a fork began with, and of which parent that is shown or asked for
 */

/**
 * @typedef {object} PageState
 * @property {Open | undefined} open the open session; its id is linkspan's own, and empty while it is being made
 * @property {{ id: string, session: Wire.Session, pending: Pending } | undefined} made the session that was just made, and the prompts that made it
 * @property {number} visit counts navigations: an answer that comes after the next one is not for us
 * @property {number} refresh counts the times that the details were asked for, because answers may come in another order
 * @property {number} rows counts the changes of what the feed shows
 * @property {string} words what is said in the place of a title while nothing is open
 * @property {boolean} isAtEnd
 * @property {boolean} isForking
 * @property {boolean} isCostShown
 */

/** @type {Store<PageState>} */
const store = new Store({
  open: undefined,
  made: undefined,
  visit: 0,
  refresh: 0,
  rows: 0,
  words: "",
  isAtEnd: true,
  isForking: false,
  isCostShown: false,
});
const socket = new Socket();
const list = new SessionList(store);
const feed = new Feed(byId("scroll"));
const composer = new Composer();
const agents = new Agents(composer);
const stop = new Stop();

/** The request after whose reply the server sends every change. */
const HELLO = "hello";

store.watch((it) => [it.open?.follower, it.rows], () => feed.changed());
store.watch((it) => [it.open?.follower, it.rows, it.isAtEnd], drawPills);
store.watch((it) => [it.open?.session.id], ({ open }) => list.mark(open?.session.id ?? ""));
store.watch((it) => [it], () => {
  aim();
  draw();
});

socket.onState = showLink;
socket.probe = () => get("/api/engines").catch(() => {});
socket.onOpen = () => {
  // For sessions that are not open, their state is enough.
  socket.send({ control: "unsubscribe", requestId: HELLO });
};
socket.onFrame = (text) => {
  if (text.startsWith('{"v":')) {
    // An event names its session early; only what is followed has to be read.
    const { open } = store.state;
    if (open && text.slice(0, 400).includes(`"session":"${open.session.id}"`)) open.follower.push(text);
    return;
  }
  const message = JSON.parse(text);
  // From here on the server sends every change; earlier replies may miss one.
  if (message.requestId === HELLO) catchUp();
  else if (message.type === "bridge.session") sessionChanged(message.session);
  else if (message.type === "bridge.sessions_changed") void list.refresh();
  else if (message.type === "bridge.session_removed") removed(message.sessionId);
  else if (message.type === "bridge.detached" && message.sessionId === store.state.open?.session.id)
    void store.state.open?.follower.sync();
};

feed.onEnd = (isAtEnd) => store.update({ isAtEnd });
composer.onSend = send;
agents.onFound = rememberToken;
stop.onChange = () => store.update({});
composer.onCancelFork = () => store.update({ isForking: false });

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
  if (store.state.open) tickTop(store.state.open.follower.story);
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
onRefused(refuse);
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
  for (const row of store.state.open?.follower.story.asks.values() ?? []) row.version += 1;
  store.update({ isForking: store.state.isForking && may("submitPrompt"), rows: store.state.rows + 1 });
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
  shut("signedOut");
  // Leaving a session keeps its draft, so they are forgotten after that.
  forgetDrafts();
  forgetAnswers();
}

/** Nothing of what was shown stays in the document. @param {"refused" | "signedOut"} why */
function shut(why) {
  socket.stop();
  store.update({ visit: store.state.visit + 1 });
  leave();
  feed.show(undefined, undefined);
  list.clear();
  clearTop();
  composer.queue([], "", () => {});
  say("");
  byId("app").hidden = true;
  gate(why, start);
}

/** The connection is open: what is shown may be outdated. */
function catchUp() {
  composer.reached();
  void learnRights();
  if (!agents.isKnown) void agents.find();
  void list.refresh();
  void store.state.open?.follower.sync();
  void refreshDetail();
}

/** Opens what the address names. */
async function navigate() {
  const encoded = /^#\/s\/([^?&]+)/.exec(location.hash)?.[1];
  const name = encoded === undefined ? undefined : decodeURIComponent(encoded);
  const { made } = store.state;
  leave();
  if (made === undefined) stop.reset();
  const visit = store.state.visit + 1;
  store.update({ visit, made: undefined, words: "", isForking: false, isCostShown: false });
  document.body.classList.toggle("in-session", name !== undefined);
  document.body.classList.toggle("at-start", location.hash === "#/new");
  byId("start").hidden = name !== undefined;
  byId("scroll").hidden = name === undefined;
  byId("progress").hidden = true;
  blank([]);
  feed.show(undefined, undefined);
  if (name === undefined) return;
  if (made?.id === name) {
    // Nothing disappears while the server is asked for more.
    follow({ ...made.session, queue: [], asks: [], runs: [] }, made.pending);
    void refreshDetail();
    return;
  }
  const isHere = () => visit === store.state.visit;
  const askedAt = store.version;
  try {
    const detail = await get(sessionPath(name));
    if (!isHere()) return;
    // Found by its native id: from here on it has its own address.
    if (detail.id !== name) history.replaceState(null, "", `#/s/${encodeURIComponent(detail.id)}`);
    follow(detail, new Pending(), askedAt);
  } catch (error) {
    if (!isHere()) return;
    if (error instanceof ApiError && error.status === 404) missing(name);
    else store.update({ words: sentence(error) });
    // The server may only be on its way back.
    if (error instanceof ApiError && error.status === 0) setTimeout(() => isHere() && void navigate(), 1500);
  }
}

/** Lets go of the open session. */
function leave() {
  const { open } = store.state;
  if (!open) return;
  open.follower.stop();
  if (open.session.id) socket.send({ control: "unsubscribe", sessionId: open.session.id });
  store.update({ open: undefined });
}

/** Changes what is known of the open session, if it is still the one that this follows. @param {Follower} follower @param {Partial<Open>} change */
function change(follower, change) {
  const { open, rows } = store.state;
  if (open?.follower === follower) store.update({ open: { ...open, ...change }, rows: rows + 1 });
}

/** Shows a session and what comes. @param {Wire.SessionDetail} detail @param {Pending} pending @param {number} askedAt */
function follow(detail, pending, askedAt = store.version) {
  const { id } = detail;
  const follower = new Follower(id, (since) => socket.send({ control: "subscribe", sessionId: id, since }));
  const { story } = follower;
  const canChange = new Map();
  const past = { of: "", rows: [], title: "" };
  // What a recording names was somewhere else.
  const hasFiles = !isRecording(detail.engine);
  store.update({ open: { session: summary(detail), follower, canChange, pending, past } });
  feed.show(parts, {
    session: id,
    isRecording: () => isRecording(store.state.open?.session.engine ?? detail.engine),
    canChange: (row) => canChange.get(row.id) ?? false,
    settle,
    openFile: hasFiles ? (path) => void openFile(id, path) : undefined,
  });
  takeDetail(detail, askedAt);
  let nAsks = 0;
  let wasRunning = false;
  follower.onChange = () => {
    const { open } = store.state;
    if (open?.follower !== follower) return;
    progress(follower, open.session.head);
    pending.seen(story);
    if (!follower.isCaughtUp) return;
    change(follower, {});
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
    if (error instanceof ApiError && error.status === 404) removed(id);
    else if (socket.state === "open")
      setTimeout(() => store.state.open?.follower === follower && void follower.sync(), 1000);
  };
  if (id) void follower.sync();
}

/** What the feed shows: the past of a fork, the story, and what is on its way and no event shows yet. @returns {View.Row[][]} */
function parts() {
  const { open } = store.state;
  if (!open) return [];
  const { session, follower, pending, past } = open;
  const isStarting = session.state === "starting" && follower.isCaughtUp;
  return [past.rows, follower.story.rows, isStarting ? pending.starting(session.engine) : pending.rows];
}

/** Shows what a fork began with. @param {Follower} follower @param {{ session: string, seq: number }} parent */
async function showPast(follower, parent) {
  change(follower, { past: { of: parent.session, rows: [], title: "" } });
  try {
    const past = await readPast(parent, follower.signal);
    change(follower, { past: { of: parent.session, ...past } });
  } catch {
    // A parent that was removed leaves its child without a past.
  }
}

/** A prompt is on its way: it is seen at once, in the session that is open or in one that is being made. @param {import("./composer.js").Sent} sent */
function send({ prompt, target, engine }) {
  const { visit } = store.state;
  if (target.kind !== "session" || !store.state.open) begin(prompt, engine);
  const { open } = store.state;
  if (!open) return { accepted: () => {}, refused: () => {} };
  const { follower, pending } = open;
  const isBusy = target.kind === "session" && open.session.state !== "idle";
  const row = pending.add({ prompt, engine, isBusy, after: follower.story.cursor });
  store.update({ isForking: false, rows: store.state.rows + 1 });
  feed.toEnd();
  return {
    accepted: (/** @type {import("./composer.js").Accepted} */ answer) =>
      accepted(open, row, answer, visit === store.state.visit),
    refused: () => {
      pending.drop(row);
      if (visit !== store.state.visit || store.state.open?.follower !== follower) return;
      // A session that was not made is not there; a fork goes back to its parent.
      if (open.session.id === "") {
        stop.reset();
        void navigate();
        if (target.kind === "fork") fork();
        return;
      }
      change(follower, {});
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
function accepted({ session, follower, pending }, row, answer, isHere) {
  const id = answer.session;
  pending.accept(row, answer);
  if (row.isStopped) void stop.now(id);
  if (session.id === id) {
    pending.seen(follower.story);
    change(follower, {});
    void refreshDetail();
  } else if (isHere) {
    store.update({ made: { id, session: { ...session, id }, pending } });
    location.hash = `#/s/${encodeURIComponent(id)}`;
  }
}

/** @param {Wire.Session} session */
function sessionChanged(session) {
  store.message(session);
  list.put(session);
  const { open } = store.state;
  if (open?.session.id !== session.id) return;
  const before = open.session;
  open.pending.state(session.state);
  change(open.follower, { session });
  if (before.queue !== session.queue || before.state !== session.state) void refreshDetail();
}

/** A session was removed: if it is open, go back to the list, which updates separately. @param {string} id */
function removed(id) {
  const { open } = store.state;
  if (open?.session.id !== id) return;
  history.replaceState(null, "", "#/");
  void navigate();
  store.update({ words: `“${visible(open.session.title || id)}” was removed.` });
  say(store.state.words);
}

async function refreshDetail() {
  const { open } = store.state;
  if (!open || open.session.id === "") return;
  const refresh = store.state.refresh + 1;
  store.update({ refresh });
  const askedAt = store.version;
  try {
    const detail = await get(sessionPath(open.session.id));
    const isLast = refresh === store.state.refresh && store.state.open?.follower === open.follower;
    if (isLast) takeDetail(detail, askedAt);
  } catch {
    // The next change, or the next connection, asks again.
  }
}

/** @param {Wire.SessionDetail} detail @param {number} askedAt */
function takeDetail(detail, askedAt) {
  const { open } = store.state;
  if (!open) return;
  const { follower, canChange, past } = open;
  const replied = summary(detail);
  const session = store.reply(replied, askedAt);
  // The socket was faster: what it has no words for is asked for again.
  if (session !== replied) void refreshDetail();
  if (session.parent && session.parent.session !== past.of) void showPast(follower, session.parent);
  const isNew = detail.asks.some((it) => canChange.get(it.id) !== it.can_change);
  for (const it of detail.asks) canChange.set(it.id, it.can_change);
  if (isNew) for (const row of follower.story.asks.values()) row.version += 1;
  composer.queue(detail.queue, detail.id, () => void refreshDetail());
  change(follower, { session });
}

function aim() {
  const { open, isForking } = store.state;
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
  const { open, words, isCostShown } = store.state;
  if (!open) return clearTop(words);
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
  store.update({ isCostShown: !store.state.isCostShown });
}

function fork() {
  store.update({ isForking: true });
  composer.focus();
}

function drawPills() {
  const { open, isAtEnd } = store.state;
  const asks = [...(open?.follower.story.asks.values() ?? [])];
  pills(asks, isAtEnd, { reveal: (ask) => feed.reveal(ask), toEnd: () => feed.toEnd() });
}

/** To the approval that was asked for first; answering it takes one more key. */
function toAsk() {
  const [ask] = store.state.open?.follower.story.asks.values() ?? [];
  if (!ask) return false;
  feed.reveal(ask);
  /** @type {HTMLElement | null} */ (document.querySelector(".ask.open :is(.option input, .primary)"))?.focus();
  return true;
}

/** One step back; false if there was none. */
function back() {
  if (store.state.isCostShown) toggleCost();
  else if (store.state.isForking) composer.onCancelFork();
  else return false;
  return true;
}
