// Server-sent events out of pieces of text. `EventSource` cannot send a token, so they are read from `fetch`.

import { LineSplitter } from "./lines.js";

/** @typedef {{ event: string, id: string | undefined, data: string }} ServerSentEvent */

export class SseParser {
  #lines = new LineSplitter();
  #event = "";
  /** @type {string | undefined} */
  #id;
  /** @type {string[]} */
  #data = [];

  /** What is complete with this piece. @param {string} piece @returns {ServerSentEvent[]} */
  push(piece) {
    /** @type {ServerSentEvent[]} */
    const events = [];
    for (const line of this.#lines.push(piece)) this.#line(line, events);
    return events;
  }

  /** @param {string} line @param {ServerSentEvent[]} events */
  #line(line, events) {
    if (line === "") {
      if (this.#data.length > 0) {
        events.push({ event: this.#event || "message", id: this.#id, data: this.#data.join("\n") });
      }
      this.#event = "";
      this.#id = undefined;
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id") this.#id = value;
  }
}
