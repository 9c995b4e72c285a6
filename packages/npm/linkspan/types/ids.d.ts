/** The id by which an ask is answered. @param {string | { session: string, seq: number }} ask @returns {string} */
export declare const askId: (ask: string | {
    session: string;
    seq: number;
}) => string;
/** A key that nobody else has: it has to be unique, not secret. */
export declare function randomKey(): string;
