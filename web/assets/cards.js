// One kind of row, one kind of card.

import { ask_card } from "./cards/ask.js";
import { message_card, reasoning_card } from "./cards/message.js";
import { compaction_card, end_card, fork_card, notice_card, other_card, pending_card, run_card } from "./cards/notes.js";
import { plan_card } from "./cards/plan.js";
import { tool_card } from "./cards/tool.js";

/**
 * A row in the document. `update` brings it up to date with its row.
 * @typedef {{ node: HTMLElement, update: () => void, tick?: () => void, is_kept?: boolean, seen?: number }} View
 */

/**
 * What cards can ask for and do.
 * @typedef {object} Context
 * @property {string} session
 * @property {() => boolean} is_recording whether what is asked was answered long ago
 * @property {(row: View.Row) => boolean} is_open
 * @property {(row: View.Row, is_open: boolean) => void} set_open
 * @property {(row: View.AskRow) => boolean} can_change
 * @property {(row: View.AskRow, answer: Answer) => Promise<string | undefined>} settle
 * @property {(path: string) => void} open_file
 */

/** @typedef {{ decision: "allow" | "allow_always" | "deny", message?: string, input?: any }} Answer */

/** @param {View.Row} row @param {Context} context @returns {View} */
export function view_of(row, context) {
  switch (row.kind) {
    case "message":
      return message_card(row);
    case "reasoning":
      return reasoning_card(row, context);
    case "tool":
      return tool_card(row, context);
    case "plan":
      return plan_card(row);
    case "ask":
      return ask_card(row, context);
    case "run":
      return run_card(row);
    case "end":
      return end_card(row);
    case "notice":
      return notice_card(row);
    case "compaction":
      return compaction_card(row, context);
    case "other":
      return other_card(row, context);
    case "pending":
      return pending_card(row);
    case "fork":
      return fork_card(row);
  }
}
