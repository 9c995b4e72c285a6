// Lines out of pieces of text. Only a line feed ends one: U+2028 is a character of a JSON string like any other, though
// Node's `readline` takes it for an end.

export class LineSplitter {
  /** The pieces of a line without an end; joined once, because a line may be long. @type {string[]} */
  #pieces = [];

  /** The lines that are complete with this piece. @param {string} piece @returns {string[]} */
  push(piece) {
    const [first = "", ...rest] = piece.split("\n");
    this.#pieces.push(first);
    if (rest.length === 0) return [];
    const lines = [this.#pieces.join(""), ...rest];
    this.#pieces = [lines.pop() ?? ""];
    return lines.map((it) => (it.endsWith("\r") ? it.slice(0, -1) : it));
  }
}
