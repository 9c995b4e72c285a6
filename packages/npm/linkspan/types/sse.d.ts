export type ServerSentEvent = {
    event: string;
    id: string | undefined;
    data: string;
};
/** @typedef {{ event: string, id: string | undefined, data: string }} ServerSentEvent */
export declare class SseParser {
    #private;
    /** What is complete with this piece. @param {string} piece @returns {ServerSentEvent[]} */
    push(piece: string): ServerSentEvent[];
}
