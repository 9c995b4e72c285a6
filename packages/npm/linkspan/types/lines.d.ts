export declare class LineSplitter {
    #private;
    /** The lines that are complete with this piece. @param {string} piece @returns {string[]} */
    push(piece: string): string[];
}
