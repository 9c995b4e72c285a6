// ThreadEvents in the shape that the types of `@openai/codex-sdk` promise.
//
// Those are narrower than what Codex itself prints, and so than what linkspan writes: a field that has no value yet is
// absent, not null; a command is not `declined`; a change of files is not told before its end; and there are no
// calls between agents.

/** @import { CodexContentBlock, CodexThreadEvent, CodexThreadItem } from "../types/bridge.js" */
/** @import { ThreadEvent, ThreadItem } from "../types/wire.js" */

/**
 * A ThreadEvent as `@openai/codex-sdk` types it; undefined where it has no such event.
 * @param {ThreadEvent} event
 * @returns {CodexThreadEvent | undefined}
 */
export function toCodexEvent(event) {
  switch (event.type) {
    case "item.started":
    case "item.updated":
    case "item.completed": {
      const item = toCodexItem(event.item);
      return item && { type: event.type, item };
    }
    default:
      return event;
  }
}

/** @param {ThreadItem} item @returns {CodexThreadItem | undefined} */
function toCodexItem(item) {
  switch (item.type) {
    case "command_execution": {
      const { exit_code, status, ...rest } = item;
      const isDeclined = status === "declined";
      return { ...rest, status: isDeclined ? "failed" : status, ...(exit_code === null ? {} : { exit_code }) };
    }
    case "file_change": {
      const { status, ...rest } = item;
      return status === "in_progress" ? undefined : { ...rest, status };
    }
    case "mcp_tool_call": {
      const { result, error, ...rest } = item;
      // The blocks are those of the MCP server, to the letter.
      const content = /** @type {CodexContentBlock[]} */ (result?.content);
      const results = result === null ? {} : { result: { ...result, content } };
      return { ...rest, ...results, ...(error === null ? {} : { error }) };
    }
    case "collab_tool_call":
      return undefined;
    default:
      return item;
  }
}
