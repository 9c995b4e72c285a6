// What a server sends beside ThreadEvents, and ThreadEvents as the types of `@openai/codex-sdk` have them.

import type {
  AgentMessageItem,
  Answer,
  AskKind,
  CommandExecutionItem,
  Deadline,
  Decision,
  Denial,
  ErrorEvent,
  ErrorItem,
  FileChangeItem,
  ItemId,
  McpToolCallItem,
  Origin,
  Outcome,
  ReasoningItem,
  RunError,
  ThreadEvent,
  ThreadModelUsage,
  ThreadStartedEvent,
  ThreadUsage,
  TodoListItem,
  TurnCompletedEvent,
  TurnFailedEvent,
  TurnStartedEvent,
  WebSearchItem,
  Why,
} from "./wire.js";

/** Where somebody is in a session: a number, or a text such as `7.1`. */
export type Cursor = number | string;

/** Where it belongs. What waits when a client comes is told without a cursor, as `replayed`. */
export type Place = {
  sessionId: string;
  cursor?: Cursor;
  replayed?: true;
};

/** A question of the agent, with all that is needed to answer it. */
export type BridgeAsk = {
  type: "bridge.ask";
  askId: string;
  /** The number of the event that asked. */
  seq: number;
  runId: string | null;
  itemId: ItemId | null;
  kind: AskKind;
  tool: string;
  title: string;
  description: string | null;
  /** The command line, to the letter, of a tool that has one. */
  command: string | null;
  input: unknown;
  suggestions: unknown;
  /** When it is answered by itself, and how. */
  deadline: Deadline | null;
  /** Where and how it is answered, besides `settle()`. */
  answer: {
    page: string;
    url: string;
    decisions: Answer["decision"][];
    control: { control: "ask.settle"; askId: string; decision: Answer["decision"] };
  };
};

/** The one end of a question. */
export type BridgeAskSettled = {
  type: "bridge.ask_settled";
  askId: string;
  decision: Decision;
  by: Origin;
  why: Why | null;
  message: string | null;
  /** What runs instead of what was asked for, or the answers. */
  input: unknown;
};

/** The end of a run, after that of its turn. */
export type BridgeRunEnded = {
  type: "bridge.run_ended";
  runId: string | null;
  outcome: Outcome;
  answer: string | null;
  error: RunError | null;
  usage: ThreadUsage | null;
  usage_scope?: "run";
  model_usage?: ThreadModelUsage[];
  cost_usd?: number;
  session_cost_usd?: number;
  duration_ms?: number;
  stopReason: string | null;
  denials: Denial[];
};

/** An event of a session in the format `thread`, or a message of the bridge in between. */
export type ThreadMessage = (ThreadEvent | BridgeAsk | BridgeAskSettled | BridgeRunEnded) & Place;

/** A content block of the Model Context Protocol. */
export type CodexContentBlock =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: string; mimeType: string }
  | { type: "resource_link"; uri: string; name: string; mimeType?: string }
  | { type: "resource"; resource: { uri: string; text: string } | { uri: string; blob: string } };

/** A ThreadItem as `@openai/codex-sdk` types it. */
export type CodexThreadItem =
  | AgentMessageItem
  | ReasoningItem
  | (Omit<CommandExecutionItem, "exit_code" | "status"> & {
      exit_code?: number;
      status: "in_progress" | "completed" | "failed";
    })
  | (Omit<FileChangeItem, "status"> & { status: "completed" | "failed" })
  | (Omit<McpToolCallItem, "result" | "error"> & {
      result?: { content: CodexContentBlock[]; _meta?: unknown; structured_content: unknown };
      error?: { message: string };
    })
  | WebSearchItem
  | TodoListItem
  | ErrorItem;

/** A ThreadEvent as `@openai/codex-sdk` types it. */
export type CodexThreadEvent =
  | ThreadStartedEvent
  | TurnStartedEvent
  | TurnCompletedEvent
  | TurnFailedEvent
  | { type: "item.started" | "item.updated" | "item.completed"; item: CodexThreadItem }
  | ErrorEvent;
