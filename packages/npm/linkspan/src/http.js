// Requests to a server. Every failure is a `LinkspanError`.

import { LinkspanError } from "./errors.js";

/** @typedef {Record<string, string | number | undefined>} Query */

/**
 * Of a request, beside its method and path.
 * @typedef {object} RequestOptions
 * @property {Query} [query]
 * @property {object} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal | undefined} [signal]
 */

/** @param {Query} query */
export function queryString(query) {
  const given = Object.entries(query).filter((it) => it[1] !== undefined);
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
}

/** The part of a path that names a session. @param {string} id */
export const sessionPath = (id) => `/api/sessions/${encodeURIComponent(id)}`;

export class Http {
  /** The address without a slash at its end. */
  base;
  /** @type {string | undefined} */
  token;
  #fetch;

  /**
   * `url` may be the address of the page with its token, as `linkspan token` prints it.
   * @param {string} url @param {string | undefined} token @param {typeof globalThis.fetch | undefined} ownFetch
   */
  constructor(url, token, ownFetch) {
    const [address = "", fragment = ""] = url.split("#");
    if (!/^https?:\/\/[^/]/.test(address)) {
      const hint = "for instance `http://127.0.0.1:8787`";
      throw new LinkspanError("bad_address", `\`url\` is the address of a server, not \`${address}\``, { hint });
    }
    this.base = address.replace(/[?].*$/, "").replace(/\/+$/, "");
    this.token = token ?? /(?:^|&)token=([^&/]+)/.exec(fragment)?.[1];
    this.#fetch = ownFetch ?? globalThis.fetch;
  }

  /**
   * @param {string} method @param {string} path @param {RequestOptions} [options]
   * @returns {Promise<Response>}
   */
  async request(method, path, { query = {}, body, headers = {}, signal } = {}) {
    const search = queryString(query);
    // Called as a plain function: a browser's own does not work as a method of something else.
    const fetch = this.#fetch;
    /** @type {Response} */
    let response;
    try {
      response = await fetch(`${this.base}${path}${search && `?${search}`}`, {
        method,
        headers: {
          ...(this.token === undefined ? {} : { Authorization: `Bearer ${this.token}` }),
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
          ...headers,
        },
        credentials: "omit",
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (cause) {
      // The caller's own signal is the caller's own error.
      if (signal?.aborted) throw signal.reason ?? cause;
      const hint = "is it running, and may pages of this origin use it (`linkspan serve --allow-origin`)?";
      throw new LinkspanError("unreachable", `there is no answer from ${this.base}`, { hint, cause });
    }
    if (!response.ok) throw await failure(response);
    return response;
  }

  /**
   * @template T
   * @param {string} method @param {string} path @param {RequestOptions} [options]
   * @returns {Promise<T>}
   */
  async json(method, path, options) {
    const response = await this.request(method, path, options);
    try {
      return /** @type {T} */ (await response.json());
    } catch (cause) {
      throw new LinkspanError("unreachable", `the answer from ${this.base} broke off`, { cause });
    }
  }
}

/** @param {Response} response */
async function failure(response) {
  const { status } = response;
  /** @type {Partial<import("../types/wire.js").Error> | undefined} */
  const body = await response.json().catch(() => undefined);
  const { code = "unknown", message = `the server answered ${status}`, hint } = body?.error ?? {};
  return new LinkspanError(code, message, { hint: hint ?? undefined, status });
}
