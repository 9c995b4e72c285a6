// A proxy that cuts connections: after some bytes of what the server says, at random, or before it says anything.

import { connect, createServer } from "node:net";

/** A generator of numbers below 1 that gives the same ones for the same seed. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    // Mulberry32: small, and good enough to choose where to cut.
    state = (state + 0x6d2b79f5) >>> 0;
    let it = Math.imul(state ^ (state >>> 15), state | 1);
    it ^= it + Math.imul(it ^ (it >>> 7), it | 61);
    return ((it ^ (it >>> 14)) >>> 0) / 4294967296;
  };
}

export class Proxy {
  /** The port of the server. */
  target = 0;
  /** How many bytes of the server the next connection lets through; undefined is all of them. @type {() => number | undefined} */
  budget = () => undefined;
  /** Nobody is let in. */
  isShut = false;
  nCuts = 0;
  #sockets = new Set();
  #server = createServer((client) => this.#accept(client));

  async start() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
    return this;
  }

  #accept(client) {
    if (this.isShut) return client.destroy();
    let left = this.budget() ?? Infinity;
    const server = connect(this.target, "127.0.0.1");
    const cut = () => {
      client.destroy();
      server.destroy();
    };
    for (const it of [client, server]) {
      this.#sockets.add(it);
      it.on("error", cut);
      it.on("close", () => (this.#sockets.delete(it), cut()));
    }
    client.on("data", (data) => server.write(data));
    server.on("data", (data) => {
      client.write(data.subarray(0, left));
      left -= data.length;
      if (left > 0) return;
      this.nCuts += 1;
      // What was let through arrives; then the connection is reset.
      client.end(cut);
    });
  }

  /** Cuts every connection. */
  cutAll() {
    for (const it of this.#sockets) it.destroy();
  }

  stop() {
    this.cutAll();
    this.#server.close();
  }
}
