// Ids that are made here.

/** The id by which an ask is answered. @param {string | { session: string, seq: number }} ask @returns {string} */
export const askId = (ask) => (typeof ask === "string" ? ask : `${ask.session}:${ask.seq}`);

/** A key that nobody else has: it has to be unique, not secret. */
export function randomKey() {
  const bytes = new Uint8Array(16);
  // Older Nodes and React Native have none, and pages without TLS have no `randomUUID`.
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, at) => (bytes[at] = Math.floor(Math.random() * 256)));
  return Array.from(bytes, (it) => it.toString(16).padStart(2, "0")).join("");
}
