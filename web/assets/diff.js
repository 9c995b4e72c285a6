// A replacement as lines that go and lines that come. Pure.
//
// Lines that both sides begin or end with are context; what lies between is shown as removed and
// added, as a whole. That is no minimal diff, but an edit is small and this is quick to read.

/** @typedef {{ side: "both" | "old" | "new" | "gap", text: string }} Line */

const CONTEXT = 3;

/** @param {string} before @param {string} after @param {number} around lines of context @returns {Line[]} */
export function diff(before, after, around = CONTEXT) {
  const oldLines = split(before);
  const newLines = split(after);
  const shorter = Math.min(oldLines.length, newLines.length);
  let head = 0;
  while (head < shorter && oldLines[head] === newLines[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && oldLines[oldLines.length - 1 - tail] === newLines[newLines.length - 1 - tail])
    tail += 1;
  const lines = (/** @type {Line["side"]} */ side, /** @type {string[]} */ texts) =>
    texts.map((text) => ({ side, text }));
  const gap = (/** @type {number} */ n) => (n > 0 ? lines("gap", [String(n)]) : []);
  return [
    ...gap(head - Math.min(head, around)),
    ...lines("both", oldLines.slice(Math.max(0, head - around), head)),
    ...lines("old", oldLines.slice(head, oldLines.length - tail)),
    ...lines("new", newLines.slice(head, newLines.length - tail)),
    ...lines("both", oldLines.slice(oldLines.length - tail, oldLines.length - tail + around)),
    ...gap(tail - Math.min(tail, around)),
  ];
}

/** Lines that came and went. @param {Wire.Diff[]} diffs */
export function plusMinus(diffs) {
  let plus = 0;
  let minus = 0;
  for (const it of diffs) {
    for (const line of diff(it.old ?? "", it.new)) {
      if (line.side === "new") plus += 1;
      else if (line.side === "old") minus += 1;
    }
  }
  return [plus ? `+${plus}` : "", minus ? `−${minus}` : ""].filter(Boolean).join(" ");
}

/** @param {string} text */
function split(text) {
  const inner = text.endsWith("\n") ? text.slice(0, -1) : text;
  return inner === "" ? [] : inner.split("\n").map((it) => (it.endsWith("\r") ? it.slice(0, -1) : it));
}
