export declare class Backoff {
    #private;
    /** Milliseconds to wait before the next attempt. */
    next(): number;
    /** The connection was a good one. */
    reset(): void;
}
