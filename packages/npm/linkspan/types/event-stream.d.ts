import type { Source } from "./subscription.js";
import type { Http } from "./http.js";
/**
 * @template T
 * @param {Http} http @param {Record<string, string | undefined>} query @param {string} session
 * @returns {Source<T>}
 */
export declare function streamSource<T>(http: Http, query: Record<string, string | undefined>, session: string): Source<T>;
