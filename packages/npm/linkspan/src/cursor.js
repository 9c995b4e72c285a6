// Cursors: `7.1` is behind the first frame of event 7, and `7` behind all of it. `7.10` comes after `7.9`, so they are
// never made numbers.

/** @import { Cursor } from "../types/bridge.js" */

/** @param {Cursor} cursor */
function parts(cursor) {
  const [seq = "0", frames = "Infinity"] = String(cursor).split(".");
  return [Number(seq), Number(frames)];
}

/** Whether the first of them is further on. @param {Cursor} cursor @param {Cursor | undefined} other */
export function isBehind(cursor, other) {
  if (other === undefined) return true;
  const [seq = 0, frames = 0] = parts(cursor);
  const [otherSeq = 0, otherFrames = 0] = parts(other);
  return seq > otherSeq || (seq === otherSeq && frames > otherFrames);
}

/** The cursor that a server-sent event has as its id: whole events are numbers. @param {string} id @returns {Cursor} */
export function fromId(id) {
  return /^\d+$/.test(id) ? Number(id) : id;
}
