// Sources over the server's WebSocket: the events of one session or of all, and the changes of the list.
//
// Each subscription has a socket of its own, so that one that falls behind holds up no other. The socket begins with
// no events (`subscribe=none`) and is told where to go on.

/** @import { Cursor } from "../types/bridge.js" */
/** @import { Receiver, Source } from "./subscription.js" */

import { LinkspanError } from "./errors.js";

/** Milliseconds between two signs of life that are asked for, and without any before a connection counts as dead. */
const BEAT = 20_000;
const DEAD = 50_000;
/** The close code of a token that was revoked. */
const POLICY = 1008;
/** Sessions whose ends are noted when all are followed: two pages. */
const PAGE = 500;
const MAX_PAGES = 2;

/**
 * The part of a WebSocket that is used here; the browsers', Node's, Bun's, React Native's and that of `ws` have it.
 * @typedef {object} WebSocketLike
 * @property {(text: string) => void} send
 * @property {(code?: number, reason?: string) => void} close
 * @property {((event: never) => void) | null} onopen
 * @property {((event: never) => void) | null} onmessage
 * @property {((event: never) => void) | null} onclose
 * @property {((event: never) => void) | null} onerror
 */

/**
 * How a server is reached.
 * @typedef {object} Dial
 * @property {(query: string) => WebSocketLike} connect Opens a socket of `/ws` with this query.
 * @property {() => Promise<LinkspanError | undefined>} refusal Why there was no socket, which a WebSocket does not tell.
 */

/** @typedef {{ [name: string]: unknown, type?: string }} Message */

/**
 * One connection: opens a socket, keeps it alive, reads its messages.
 * @param {Dial} dial @param {string} query
 * @param {{ onOpen: (send: (message: object) => void) => void, onMessage: (message: Message) => void,
 *   onLost: (error: LinkspanError) => void }} handlers
 * @returns {() => void} what closes it
 */
function connect(dial, query, { onOpen, onMessage, onLost }) {
  let isOpen = false;
  let isOver = false;
  let heardAt = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let beat;
  /** @type {WebSocketLike | undefined} */
  let socket;
  const end = () => {
    isOver = true;
    clearInterval(beat);
    // A socket may not have opened yet, and some complain of that.
    try {
      socket?.close();
    } catch {}
  };
  /** @param {LinkspanError} error */
  const lose = (error) => {
    if (isOver) return;
    end();
    onLost(error);
  };
  try {
    socket = dial.connect(query);
  } catch (cause) {
    // An invalid address, or a page that may not open a WebSocket.
    const error = new LinkspanError("no_websocket", `cannot open a WebSocket: ${String(cause)}`, { cause });
    queueMicrotask(() => lose(error));
    return end;
  }
  const send = (/** @type {object} */ message) => socket?.send(JSON.stringify(message));
  socket.onopen = () => {
    if (isOver) return;
    isOpen = true;
    heardAt = Date.now();
    beat = setInterval(() => {
      // After sleep, the machine may hold a connection that the server has already dropped.
      if (Date.now() - heardAt < DEAD) send({ control: "echo" });
      else lose(unreachable("the connection is silent"));
    }, BEAT);
    onOpen(send);
  };
  socket.onmessage = (/** @type {{ data: unknown }} */ { data }) => {
    if (isOver || typeof data !== "string") return;
    heardAt = Date.now();
    onMessage(JSON.parse(data));
  };
  let isClosing = false;
  const onClose = async (/** @type {{ code?: number, reason?: string }} */ { code, reason }) => {
    if (isOver || isClosing) return;
    isClosing = true;
    if (code === POLICY) return lose(new LinkspanError("forbidden", reason || "the token was revoked"));
    if (isOpen) return lose(unreachable(reason || "the connection was lost"));
    lose((await dial.refusal()) ?? unreachable("the server cannot be reached"));
  };
  socket.onclose = onClose;
  // For a refused connection, Node's WebSocket reports only the error.
  socket.onerror = () => void onClose({});
  return end;
}

/** @param {string} message */
export const unreachable = (message) => new LinkspanError("unreachable", message);

/** @param {Message} message */
const refused = ({ code, message, hint }) =>
  new LinkspanError(String(code), String(message), { hint: hint === undefined ? undefined : String(hint) });

/**
 * The events of a session, in the format of the query.
 * @template T
 * @param {Dial} dial @param {string} query @param {string} session
 * @returns {Source<T>}
 */
export function sessionSource(dial, query, session) {
  const isCanonical = query.includes("format=linkspan");
  return ({ cursors }, receiver) => {
    const since = cursors.get(session) ?? 0;
    return connect(dial, query, {
      onOpen: (send) => send({ control: "subscribe", sessionId: session, since, requestId: 1 }),
      onMessage: (message) => {
        if (message.type === "bridge.subscribed") receiver.onOpen();
        else if (message.type === "bridge.error" && message.requestId === 1) receiver.onLost(refused(message));
        else deliver(message, receiver, isCanonical, () => session);
      },
      onLost: receiver.onLost,
    });
  };
}

/**
 * The events of all sessions. What a session is at when the subscription begins is noted first, so that one that
 * comes to life while there is no connection is told from there.
 * @template T
 * @param {Dial} dial @param {string} query
 * @returns {Source<T>}
 */
export function allSource(dial, query) {
  const isCanonical = query.includes("format=linkspan");
  return ({ cursors, newSince }, receiver) => {
    /** @type {(message: object) => void} */
    let send = () => {};
    let isFollowing = newSince !== undefined;
    /** @type {number} */
    let at = newSince ?? 0;
    let nPages = 0;
    /** @type {Map<string, Cursor>} */
    const heads = new Map();
    const follow = () => {
      if (!isFollowing) receiver.onBegin(heads, at);
      isFollowing = true;
      send({ control: "subscribe", since: Object.fromEntries(cursors), newSince: at, requestId: "follow" });
    };
    /** @param {Message} message */
    const onMessage = (message) => {
      if (message.type === "bridge.error" && message.requestId !== undefined) return receiver.onLost(refused(message));
      if (message.type === "bridge.subscribed") {
        if (message.requestId === "follow") return receiver.onOpen();
        at = Number(message.at);
        return send({ control: "sessions", limit: PAGE, requestId: "list" });
      }
      if (message.type === "bridge.sessions" && message.requestId === "list") {
        const page = /** @type {import("../types/wire.js").Sessions} */ (/** @type {unknown} */ (message));
        for (const it of page.sessions) heads.set(it.id, it.head);
        nPages += 1;
        if (page.next === null || nPages >= MAX_PAGES) return follow();
        return send({ control: "sessions", limit: PAGE, after: page.next, requestId: "list" });
      }
      // Events that arrive before that are sent again from the recorded cursors.
      if (isFollowing) deliver(message, receiver, isCanonical, (it) => it);
    };
    return connect(dial, query, {
      onOpen: (it) => {
        send = it;
        if (isFollowing) follow();
        else send({ control: "subscribe", requestId: "begin" });
      },
      onMessage,
      onLost: receiver.onLost,
    });
  };
}

/**
 * Hands on what is an event; `name` says under which name its session is followed.
 * @template T
 * @param {Message} message @param {Receiver<T>} receiver @param {boolean} isCanonical
 * @param {(session: string) => string} name
 */
export function deliver(message, receiver, isCanonical, name) {
  const value = /** @type {T} */ (/** @type {unknown} */ (message));
  const { type, cursor, sessionId, session, seq } = message;
  if (typeof sessionId === "string" && type === "bridge.caught_up") {
    return receiver.onCaughtUp(sessionId, /** @type {Cursor} */ (cursor));
  }
  if (isCanonical) {
    // A bridge message has the cursor of its event, and would be counted as that event.
    if (typeof seq === "number" && typeof session === "string") receiver.onValue(value, name(session), seq);
    return;
  }
  if (typeof sessionId !== "string") return;
  const isEvent = typeof cursor === "number" || typeof cursor === "string";
  if (type === "bridge.detached" || !(isEvent || message.replayed === true)) return;
  const item = /** @type {{ ask_id?: string } | undefined} */ (message.item);
  const ask = message.askId ?? item?.ask_id;
  const key = ask === undefined ? undefined : `${type} ${ask}`;
  receiver.onValue(value, name(sessionId), isEvent ? cursor : undefined, key);
}

/**
 * Changes of the list of sessions. Behind every new connection it is better read again.
 * @param {Dial} dial
 * @returns {Source<import("./client.js").SessionsChange>}
 */
export function changesSource(dial) {
  return (_position, receiver) =>
    connect(dial, "format=linkspan&subscribe=none", {
      onOpen: () => {
        receiver.onOpen();
        receiver.onValue({ type: "bridge.sessions_changed" }, "", undefined);
      },
      onMessage: (message) => {
        const { type } = message;
        if (type === "bridge.session" || type === "bridge.sessions_changed") {
          receiver.onValue(/** @type {import("./client.js").SessionsChange} */ (message), "", undefined);
        }
      },
      onLost: receiver.onLost,
    });
}
