import type { Cursor } from "../types/bridge.js";
/** Whether the first of them is further on. @param {Cursor} cursor @param {Cursor | undefined} other */
export declare function isBehind(cursor: Cursor, other: Cursor | undefined): boolean;
/** The cursor that a server-sent event has as its id: whole events are numbers. @param {string} id @returns {Cursor} */
export declare function fromId(id: string): Cursor;
