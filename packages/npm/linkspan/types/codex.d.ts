import type { CodexThreadEvent } from "../types/bridge.js";
import type { ThreadEvent } from "../types/wire.js";
/** @import { CodexContentBlock, CodexThreadEvent, CodexThreadItem } from "../types/bridge.js" */
/** @import { ThreadEvent, ThreadItem } from "../types/wire.js" */
/**
 * A ThreadEvent as `@openai/codex-sdk` types it; undefined where it has no such event.
 * @param {ThreadEvent} event
 * @returns {CodexThreadEvent | undefined}
 */
export declare function toCodexEvent(event: ThreadEvent): CodexThreadEvent | undefined;
