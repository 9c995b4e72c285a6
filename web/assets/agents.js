// Which agents there are: asked for once, offered before a session and in the prompt box.

import { get, sentence } from "./api.js";
import { drawSearch, drawStart, markAgent } from "./start.js";

export class Agents {
  #composer;
  /** @type {Wire.Engines | undefined} */
  #known;
  /** Counts the searches: only the last one is shown. */
  #search = 0;
  /** The server has listed them, so it has accepted the token. */
  onFound = () => {};

  /** @param {import("./composer.js").Composer} composer */
  constructor(composer) {
    this.#composer = composer;
    composer.onPick = markAgent;
  }

  get isKnown() {
    return this.#known !== undefined;
  }

  async find() {
    const search = (this.#search += 1);
    this.#known = undefined;
    drawSearch();
    let found;
    try {
      found = await get("/api/engines");
    } catch (error) {
      if (search === this.#search) drawSearch(sentence(error));
      return;
    }
    // A later search was faster.
    if (search !== this.#search) return;
    this.#known = found;
    this.onFound();
    this.#composer.engines(found);
    this.draw();
  }

  draw() {
    if (!this.#known) return;
    drawStart(
      this.#known,
      (engine) => this.#composer.pick(engine),
      (engine, prompt) => void this.#composer.send({ engine, prompt }),
    );
    markAgent(this.#composer.engine);
  }

  /** What an engine is able to do, if it is listed. @param {string} engine */
  can(engine) {
    return this.#known?.engines.find((it) => it.name === engine)?.can;
  }
}
