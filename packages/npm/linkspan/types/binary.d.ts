/** The packages that hold the program, by platform and processor. */
export declare const PLATFORMS: string[];
/**
 * The path of the program. Programs start it directly: the `linkspan` of `node_modules/.bin` costs the start of a Node.
 * @returns {string}
 */
export declare function binaryPath(): string;
/**
 * @param {string | undefined} named @param {string} platform @param {(path: string) => string} resolve
 * @returns {string}
 */
export declare function findBinary(named: string | undefined, platform: string, resolve: (path: string) => string): string;
