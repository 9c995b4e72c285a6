// Which agents there are: asked for once, offered before a session and in the prompt box.

import { ApiError, get, sentence } from "./api.js";
import { drawSearch, drawStart, markAgent } from "./start.js";

export class Agents {
  #composer;
  /** @type {Wire.Engines | undefined} */
  #known;
  /** The server has listed them, so it has accepted the token. */
  onFound = () => {};
  /** The server does not accept the token. */
  onRefused = () => {};

  /** @param {import("./composer.js").Composer} composer */
  constructor(composer) {
    this.#composer = composer;
    composer.onPick = markAgent;
  }

  get isKnown() {
    return this.#known !== undefined;
  }

  async find() {
    this.#known = undefined;
    drawSearch();
    try {
      this.#known = await get("/api/engines");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.onRefused();
      else drawSearch(sentence(error));
      return;
    }
    this.onFound();
    if (this.#known) this.#composer.engines(this.#known);
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
