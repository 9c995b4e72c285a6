// A source over server-sent events, where there is no WebSocket: the events of one session.

/** @import { Source } from "./subscription.js" */
/** @import { Http } from "./http.js" */

import { fromId } from "./cursor.js";
import { LinkspanError } from "./errors.js";
import { SseParser } from "./sse.js";
import { unreachable } from "./websocket.js";

/** Milliseconds of silence after which a connection is dead; the server sends something every 15 s. */
const DEAD = 50_000;

/**
 * @template T
 * @param {Http} http @param {Record<string, string | undefined>} query @param {string} session
 * @returns {Source<T>}
 */
export function streamSource(http, query, session) {
  const isCanonical = (query.format ?? "linkspan") === "linkspan";
  return ({ cursors }, receiver) => {
    const ended = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => ended.abort(), DEAD);
    };
    const read = async () => {
      const since = cursors.get(session);
      const headers = { Accept: "text/event-stream", ...(since === undefined ? {} : { "Last-Event-ID": String(since) }) };
      const path = `/api/sessions/${encodeURIComponent(session)}/events`;
      const response = await http.request("GET", path, { query, headers, signal: ended.signal });
      if (!response.body) {
        const hint = "give the client a `WebSocket`";
        throw new LinkspanError("no_stream", "this `fetch` cannot read a stream", { hint });
      }
      receiver.onOpen();
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      const parser = new SseParser();
      for (;;) {
        heard();
        const { value, done } = await reader.read();
        if (done) throw unreachable("the stream has ended");
        for (const it of parser.push(decoder.decode(value, { stream: true }))) {
          const data = JSON.parse(it.data);
          if (it.event === "caught_up") receiver.onCaughtUp(session, data.cursor);
          else if (it.id !== undefined) {
            const cursor = fromId(it.id);
            receiver.onValue(isCanonical ? data : { sessionId: session, cursor, ...data }, session, cursor);
          }
        }
      }
    };
    heard();
    read().catch((/** @type {unknown} */ error) => {
      clearTimeout(silence);
      const isOurs = error instanceof LinkspanError;
      receiver.onLost(isOurs ? error : unreachable("the connection was lost"));
    });
    return () => {
      clearTimeout(silence);
      ended.abort();
    };
  };
}
