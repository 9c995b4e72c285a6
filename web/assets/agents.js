// Which agents there are: asked for once, offered before a session and in the prompt box.

import { ApiError, get, sentence } from "./api.js";
import { draw_search, draw_start, mark_agent } from "./start.js";

export class Agents {
  #composer;
  /** @type {Wire.Engines | undefined} */
  #known;
  /** The server has listed them, so it has accepted the token. */
  onfound = () => {};
  /** The server does not accept the token. */
  onrefused = () => {};

  /** @param {import("./composer.js").Composer} composer */
  constructor(composer) {
    this.#composer = composer;
    composer.onpick = mark_agent;
  }

  get is_known() {
    return this.#known !== undefined;
  }

  async find() {
    this.#known = undefined;
    draw_search();
    try {
      this.#known = await get("/api/engines");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.onrefused();
      else draw_search(sentence(error));
      return;
    }
    this.onfound();
    if (this.#known) this.#composer.engines(this.#known);
    this.draw();
  }

  draw() {
    if (!this.#known) return;
    draw_start(
      this.#known,
      (engine) => this.#composer.pick(engine),
      (engine, prompt) => void this.#composer.send({ engine, prompt }),
    );
    mark_agent(this.#composer.engine);
  }

  /** What an engine is able to do, if it is listed. @param {string} engine */
  can(engine) {
    return this.#known?.engines.find((it) => it.name === engine)?.can;
  }
}
