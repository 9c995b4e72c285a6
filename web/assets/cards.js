// One kind of row, one kind of card.

import { askCard } from "./cards/ask.js";
import { messageCard, reasoningCard } from "./cards/message.js";
import { compactionCard, endCard, forkCard, noticeCard, otherCard, pendingCard, runCard } from "./cards/notes.js";
import { planCard } from "./cards/plan.js";
import { toolCard } from "./cards/tool.js";

/**
 * A row in the document. `update` brings it up to date with its row.
 * @typedef {{ node: HTMLElement, update: () => void, tick?: () => void, isKept?: boolean, seen?: number }} View
 */

/**
 * What cards can ask for and do.
 * @typedef {object} Context
 * @property {string} session
 * @property {() => boolean} isRecording whether what is asked was answered long ago
 * @property {(row: View.Row) => boolean} isOpen
 * @property {(row: View.Row, isOpen: boolean) => void} setOpen
 * @property {(row: View.AskRow) => boolean} canChange
 * @property {(row: View.AskRow, answer: Answer) => Promise<string | undefined>} settle
 * @property {((path: string) => void) | undefined} openFile nothing where the session has no files here
 */

/** @typedef {{ decision: "allow" | "allow_always" | "deny", message?: string, input?: unknown }} Answer */

/** @param {View.Row} row @param {Context} context @returns {View} */
export function viewOf(row, context) {
  switch (row.kind) {
    case "message":
      return messageCard(row);
    case "reasoning":
      return reasoningCard(row, context);
    case "tool":
      return toolCard(row, context);
    case "plan":
      return planCard(row);
    case "ask":
      return askCard(row, context);
    case "run":
      return runCard(row);
    case "end":
      return endCard(row);
    case "notice":
      return noticeCard(row);
    case "compaction":
      return compactionCard(row, context);
    case "other":
      return otherCard(row, context);
    case "pending":
      return pendingCard(row);
    case "fork":
      return forkCard(row);
  }
}
