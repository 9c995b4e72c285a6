export type Query = Record<string, string | number | undefined>;
export type RequestOptions = {
    query?: Query;
    body?: object;
    headers?: Record<string, string>;
    signal?: AbortSignal | undefined;
};
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
export declare function queryString(query: Query): string;
/** The part of a path that names a session. @param {string} id */
export declare const sessionPath: (id: string) => string;
export declare class Http {
    #private;
    /** The address without a slash at its end. */
    base: string;
    /** @type {string | undefined} */
    token: string | undefined;
    /**
     * `url` may be the address of the page with its token, as `linkspan token` prints it.
     * @param {string} url @param {string | undefined} token @param {typeof globalThis.fetch | undefined} ownFetch
     */
    constructor(url: string, token: string | undefined, ownFetch: typeof globalThis.fetch | undefined);
    /**
     * @param {string} method @param {string} path @param {RequestOptions} [options]
     * @returns {Promise<Response>}
     */
    request(method: string, path: string, { query, body, headers, signal }?: RequestOptions): Promise<Response>;
    /**
     * @template T
     * @param {string} method @param {string} path @param {RequestOptions} [options]
     * @returns {Promise<T>}
     */
    json<T>(method: string, path: string, options?: RequestOptions): Promise<T>;
}
