// Derived from the types of the server and the schema of ThreadEvents by the server's test
// `the_npm_package_has_the_same_types`.

/** What the engine is able to do. */
export type Ability = {
  ask: boolean;
  continue: boolean;
  fork: boolean;
  interrupt: boolean;
  resume: boolean;
};

/** Whether there was a run to abort. */
export type Aborted = {
  aborted: boolean;
};

/** An answer as clients send it. */
export type Answer = {
  decision: "allow" | "allow_always" | "deny";
  /** What runs instead of the input that the agent asked for. */
  input?: Record<string, unknown> | null;
  /** The reason that the agent gets with a denial. */
  message?: string | null;
};

/** An open question; exactly one `ask.settled` follows. */
export type Ask = {
  /** When linkspan answers it by itself, unless a client has by then; without one it waits for ever. */
  deadline?: Deadline;
  description?: string;
  id: AskId;
  input?: unknown;
  /** The tool call it is about. */
  item?: ItemId;
  kind: AskKind;
  /** Rules the agent offers to remember with a lasting permission. */
  suggestions?: unknown;
  /** One line for people; never empty. */
  title: string;
  tool: string;
};

/** An open question of the agent. */
export type AskId = string;

export type AskKind = "permission" | "question" | "plan";

/** The one end of an ask. */
export type AskSettled = {
  decision: Decision;
  id: AskId;
  /** The input that runs instead, or the answers. */
  input?: unknown;
  message?: string;
  /** The rules that were remembered. */
  remembered?: unknown;
};

export type Asks = {
  asks: WaitingAsk[];
};

export type Basis = "delta" | "cumulative";

/** How a native session came to be known. */
export type Binding = "fork" | "init" | "resume" | "repeat" | "mismatch";

export type Cause = "prompt" | "wake_up";

export type Change = "add" | "update" | "delete";

export type Channel = "text" | "input" | "output";

/** The classification of a tool call, shared by all writers. */
export type Class = {
  /** What happened to the file, as far as it is known. */
  change?: Change;
  command?: string;
  diffs?: Diff[];
  exit_code?: number;
  kind: ToolKind;
  mcp?: Mcp;
  paths?: Location[];
  /** Search terms, a pattern or a URL. */
  query?: string;
  /** One line for people; never empty. Paths in it are relative to the working directory. */
  title: string;
};

/** The agent replaced the early part of the conversation by a summary. */
export type Compaction = {
  detail?: unknown;
  id: ItemId;
  summary?: string;
  tokens_after?: number;
  tokens_before?: number;
  trigger?: string;
};

/** When an ask without an answer is settled, and how. */
export type Deadline = {
  at: string;
  /** Either `allowed` or `denied`. */
  decision: Decision;
};

export type Decision = "allowed" | "allowed_always" | "denied" | "withdrawn" | "lost";

/** A piece of an open item; the pieces of a channel add up to the content of `item.closed`. */
export type Delta = {
  channel: Channel;
  item: ItemId;
  text: string;
};

/** A tool call that was not allowed. */
export type Denial = {
  input?: unknown;
  item?: ItemId;
  tool: string;
};

/** A replacement in a file; no old text means the whole file is new. */
export type Diff = {
  new: string;
  old?: string;
  path: string;
};

export type Engine = {
  can: Ability;
  default: boolean;
  /** How to install it. */
  install: string | null;
  installed: boolean;
  name: string;
  summary: string;
  version: string | null;
};

export type Engines = {
  engines: Engine[];
  replays: Replay[];
};

/** An error as clients see it. */
export type Error = {
  error: {
    /** A stable code for programs. */
    code: string;
    hint?: string | null;
    message: string;
  };
};

/** One fact about a session. */
export type Event = {
  /** The time, if the agent or a live clock reported it. */
  at?: string;
  engine: string;
  /** The frame's other fields, on the first event that came from it. */
  extra?: Record<string, unknown>;
  /** The number of the input frame, from 1; absent when the event came from no frame. */
  frame?: number;
  /** The agent's own id of that frame. */
  native?: string;
  origin: Origin;
  /** The sub-agents this happened inside, outermost first, by the id of the call that started each. */
  path?: ItemId[];
  /** The run this belongs to; absent between runs. */
  run?: RunId;
  /** The only cursor: contiguous per session, from 1. */
  seq: number;
  session: SessionId;
  /** The version of the format. */
  v: 1;
  /** Why linkspan made this event up. */
  why?: Why;
} & ({
  data: SessionBound;
  type: "session.bound";
} | {
  data: RunStarted;
  type: "run.started";
} | {
  data: RunEnded;
  type: "run.ended";
} | {
  data: Item;
  type: "item.opened";
} | {
  data: Item;
  type: "item.updated";
} | {
  data: Delta;
  type: "item.delta";
} | {
  data: ItemClosed;
  type: "item.closed";
} | {
  data: Ask;
  type: "ask.opened";
} | {
  data: AskSettled;
  type: "ask.settled";
} | {
  data: Usage;
  type: "usage.reported";
} | {
  data: Notice;
  type: "notice.raised";
} | {
  data: Unmapped;
  type: "frame.unmapped";
});

/** A thing with a life inside a run. */
export type Item = {
  kind: "message";
} & Message | {
  kind: "reasoning";
} & Reasoning | {
  kind: "tool";
} & Tool | {
  kind: "plan";
} & Plan | {
  kind: "subagent";
} & Subagent | {
  kind: "compaction";
} & Compaction | {
  kind: "other";
} & Other;

/** The whole item at the end of its life. */
export type ItemClosed = {
  item: Item;
  status: Status;
};

/** Something with a life inside a session; a tool call's id is the agent's own call id. */
export type ItemId = string;

export type Level = "debug" | "info" | "warning" | "error";

/** A place in a file; lines count from 1. */
export type Location = {
  line?: number;
  path: string;
};

export type Mcp = {
  server: string;
  tool: string;
};

export type McpServer = {
  name: string;
  status?: string;
};

export type Me = {
  /** As `linkspan token --json` names it; null is the first token. */
  id: string | null;
  /** Every route that needs a token, by its name in the OpenAPI document. */
  operations: Right[];
  /** Every permission mode that a prompt can name. */
  permissions: Right[];
  role: TokenRole;
};

/** Text with its images and files. */
export type Message = {
  /** The model response this is a part of; items of one response share it. */
  group?: string;
  id: ItemId;
  parts?: Part[];
  role: Role;
  text: string;
};

export type ModelUsage = {
  context_window?: number;
  cost_usd?: number;
  model: string;
  tokens: Tokens;
};

/** Something worth showing that is no item: a bad line, a retry, a rate limit, a hook, a status. */
export type Notice = {
  /** A stable code for programs, such as `bad_line` or `api_retry`. */
  code: string;
  /** The agent's own message, verbatim. */
  detail?: unknown;
  /** The item it speaks of. */
  item?: ItemId;
  level: Level;
  text: string;
};

/** Who caused an event. */
export type Origin = "agent" | "linkspan" | "client";

/** An item of a kind the model has no type for. */
export type Other = {
  data: unknown;
  id: ItemId;
  name: string;
  text?: string;
};

export type Outcome = "completed" | "failed" | "aborted" | "refused" | "limit" | "lost";

export type Parent = {
  /** The last event of the other session that it began with. */
  seq: number;
  session: string;
};

/** A piece of content that is not text. */
export type Part = {
  image: {
    data: string;
    media_type: string;
  };
} | {
  image_url: {
    url: string;
  };
} | {
  other: unknown;
};

/** A list of things to do; each update carries the whole list. */
export type Plan = {
  entries: PlanEntry[];
  id: ItemId;
};

export type PlanEntry = {
  /** What to show while it is being done, such as "Running the tests". */
  doing?: string;
  /** The agent's own id of the entry. */
  key?: string;
  status: PlanStatus;
  text: string;
};

export type PlanStatus = "pending" | "in_progress" | "completed";

/** A prompt as clients send it, under the names of the bridge too. */
export type Prompt = {
  /** Tools that may run without a question, instead of those of the config; an empty list allows nothing. */
  allow?: string[] | null;
  /** The answer to an ask that times out. */
  askDefault?: "deny" | "allow" | null;
  /** The timeout of asks, in seconds; 0 waits for ever. */
  askTimeout?: number | null;
  cwd?: string | null;
  /** Tools that may not run at all. */
  deny?: string[];
  /** The reasoning effort, in the agent's own terms. */
  effort?: string | null;
  engine?: string | null;
  /** Start with the events of this session. */
  fork?: string | null;
  /** By the agent's own name for it. */
  model?: string | null;
  outputStyle?: string | null;
  permissions?: "plan" | "deny" | "ask" | "accept-edits" | "listed" | "allow" | null;
  prompt: string;
  /** Resume the agent's session of this id. */
  resume?: string | null;
  /** Resume this session. */
  session?: string | null;
  /** Of a recording: 2 is twice as fast. 0 and absent do not wait at all. */
  speed?: number | null;
  verbosity?: string | null;
};

export type QueuedPrompt = {
  at: string;
  /** By which it is removed from the queue. */
  number: number;
  prompt: string;
};

/** The model's reasoning before its answer. */
export type Reasoning = {
  /** Thinking the provider hides: only its own model can read it. */
  encrypted?: string;
  group?: string;
  id: ItemId;
  signature?: string;
  text: string;
};

/** A recording that is part of the program. */
export type Replay = {
  name: string;
  summary: string;
};

/** One thing that can be done, the lowest role that may do it, and whether this token may. */
export type Right = {
  allowed: boolean;
  name: string;
  role: TokenRole;
};

export type Role = "user" | "assistant" | "harness";

export type Run = {
  /** All its models together. */
  cost_usd: number | null;
  ended_at: string | null;
  id: string;
  outcome: Outcome | null;
  started_at: string;
};

/** The one end of a run. */
export type RunEnded = {
  /** The final answer; for a failed run, its last text. */
  answer?: string;
  denials?: Denial[];
  /** The agent's own last frame of the run. */
  detail?: unknown;
  duration_ms?: number;
  error?: RunError;
  /** Tokens by model in this run, sub-agents included. */
  models?: ModelUsage[];
  outcome: Outcome;
  /** What the session has cost so far, in US dollars. */
  session_cost_usd?: number;
  /** The model's own stop reason. */
  stop_reason?: string;
  /** Tokens of the main agent in this run. */
  usage?: Usage;
};

export type RunError = {
  /** A stable code for programs, the same for every agent, such as `rate_limited` or `crashed`. */
  code: string;
  message: string;
  /** The agent's own error code, if it differs. */
  native?: string;
};

/** One prompt cycle of a session. */
export type RunId = string;

/** A prompt cycle begins. */
export type RunStarted = {
  cause: Cause;
  /** The number that a server gave the prompt when it took it. */
  prompt?: number;
};

export type Scope = "run" | "session" | "call";

/** A session as clients see it. */
export type Session = {
  active_at: string;
  bytes: number;
  created_at: string;
  cwd: string | null;
  engine: string;
  /** The number of its last event. */
  head: number;
  id: string;
  /** The agent's own id of it. */
  native: string | null;
  /** What it began with, when it is a fork. */
  parent: Parent | null;
  /** How many prompts wait. */
  queue: number;
  state: "idle" | "queued" | "starting" | "running" | "waiting";
  title: string | null;
};

/** The agent's own session is known, or reported more about itself. */
export type SessionBound = {
  commands?: string[];
  cwd?: string;
  how: Binding;
  mcp_servers?: McpServer[];
  model?: string;
  native: SessionId;
  permission_mode?: string;
  tools?: string[];
  version?: string;
};

/** A session with its runs and its queue. */
export type SessionDetail = {
  active_at: string;
  asks: WaitingAsk[];
  bytes: number;
  created_at: string;
  cwd: string | null;
  engine: string;
  /** The number of its last event. */
  head: number;
  id: string;
  /** The agent's own id of it. */
  native: string | null;
  /** What it began with, when it is a fork. */
  parent: Parent | null;
  queue: QueuedPrompt[];
  /** The newest ones. */
  runs: Run[];
  state: "idle" | "queued" | "starting" | "running" | "waiting";
  title: string | null;
};

/** A session: linkspan's own in an envelope, the agent's in `session.bound`. */
export type SessionId = string;

/** A page of the list. */
export type Sessions = {
  /** The `after` of the next page. */
  next: string | null;
  sessions: Session[];
};

/** How an item's life ended. */
export type Status = "ok" | "error" | "denied" | "cancelled" | "lost";

/** An agent that an agent started; what it does carries its call id in the path. */
export type Subagent = {
  /** It runs in the background while its parent continues. */
  background?: boolean;
  /** The tool call that started it. */
  call: ItemId;
  description?: string;
  detail?: unknown;
  id: ItemId;
  /** What kind of agent it is, such as `general-purpose`. */
  name: string;
  prompt?: string;
  /** Its final report. */
  report?: string;
};

/** The prompt was taken. */
export type Submitted = {
  /** By which the prompt is removed from the queue. */
  number: number;
  /** 0 runs now. */
  position: number;
  /** Its first event names it. */
  run: null;
  session: string;
};

export type Thread = {
  threadId: string;
};

/** What a token may do; each may do what those before it may. */
export type TokenRole = "watch" | "prompt" | "approve" | "admin";

/** Token counts. The parts of the input are disjoint; reasoning is a part of the output. */
export type Tokens = {
  cache_read: number;
  cache_write: number;
  /** Input that was neither read from nor written to a cache. */
  input: number;
  /** Absent when the agent does not know it yet. */
  output?: number;
  reasoning?: number;
};

/** One call of a tool. The agent's own name and input stay beside the classification. */
export type Tool = {
  class: Class;
  group?: string;
  id: ItemId;
  /** The whole input; absent while it is still streaming. */
  input?: unknown;
  name: string;
  result?: ToolResult;
  /** The provider runs it, not the agent. */
  server_side?: boolean;
};

export type ToolKind = "shell" | "read" | "edit" | "write" | "delete" | "move" | "search" | "fetch" | "web_search" | "mcp" | "task" | "todo" | "ask" | "think" | "other" | "mode";

/** A tool's result. */
export type ToolResult = {
  /** A JSON string, or an array of content blocks. */
  content: unknown;
  is_error?: boolean;
  /** The agent's report of how it was allowed or denied. */
  meta?: unknown;
  /** The structured form some agents send along. */
  structured?: unknown;
};

/** A frame or block that no rule knows; its bytes are preserved. */
export type Unmapped = {
  raw: unknown;
  /** What was unknown, such as ``type `foo` ``. */
  what: string;
};

/** Tokens and cost, with what they cover. */
export type Usage = {
  basis: Basis;
  cost_usd?: number;
  /** The agent's own numbers, unchanged. */
  detail?: unknown;
  model?: string;
  scope: Scope;
  tokens: Tokens;
};

/** An ask as clients see it. */
export type WaitingAsk = {
  /** Its answer is on its way to the agent. */
  answered: boolean;
  /** The agent's own id of it. */
  ask: string;
  at: string;
  /** Whether an answer may change the input. */
  can_change: boolean;
  /** As in the `ask.opened` event; a `deadline` says when it is answered by itself, and how. */
  data: Ask;
  /** By which it is answered. */
  id: string;
  run: string | null;
  /** The number of its event. */
  seq: number;
  session: string;
};

/** Why linkspan made an event up. */
export type Why = "process_exit" | "missing_end" | "abort" | "left_open" | "never_opened" | "wrong_session" | "damaged" | "deadline";

export type AgentMessageItem = {
  /** By which a server takes the answer. */
  ask_id?: string;
  id: string;
  /** Not the answer: what the agent asks. */
  phase?: "commentary";
  text: string;
  type: "agent_message";
};

export type CollabToolCallItem = {
  agents_states: Record<string, {
    message: string | null;
    status: "pending_init" | "running" | "interrupted" | "completed" | "errored" | "shutdown" | "not_found";
  }>;
  id: string;
  prompt: string | null;
  receiver_thread_ids: string[];
  sender_thread_id: string;
  status: ThreadStatus;
  tool: "spawn_agent" | "send_input" | "wait" | "close_agent";
  type: "collab_tool_call";
};

export type CommandExecutionItem = {
  aggregated_output: string;
  /** The pictures of the result, on a server. */
  attachments?: {
    bytes: number;
    media_type: string;
    url: string;
  }[];
  command: string;
  exit_code: number | null;
  id: string;
  /** The length of an output that a server has cut. */
  output_bytes?: number;
  /** Where a server has all of it. */
  output_url?: string;
  status: "in_progress" | "completed" | "failed" | "declined";
  type: "command_execution";
};

export type ErrorEvent = {
  message: string;
  type: "error";
};

export type ErrorItem = {
  id: string;
  message: string;
  type: "error";
};

export type FileChangeItem = {
  changes: ({
    kind: "add" | "delete" | "update";
    path: string;
    /** Where a server shows the file. */
    url?: string;
  })[];
  id: string;
  status: ThreadStatus;
  type: "file_change";
};

export type ItemCompletedEvent = {
  item: ThreadItem;
  type: "item.completed";
};

export type ItemStartedEvent = {
  item: ThreadItem;
  type: "item.started";
};

export type ItemUpdatedEvent = {
  item: ThreadItem;
  type: "item.updated";
};

export type McpToolCallItem = {
  arguments: unknown;
  error: null | {
    message: string;
  };
  id: string;
  result: null | {
    _meta?: unknown;
    content: unknown[];
    structured_content: unknown;
  };
  server: string;
  status: ThreadStatus;
  tool: string;
  type: "mcp_tool_call";
};

export type ReasoningItem = {
  id: string;
  text: string;
  type: "reasoning";
};

export type ThreadEvent = ThreadStartedEvent | TurnStartedEvent | TurnCompletedEvent | TurnFailedEvent | ItemStartedEvent | ItemUpdatedEvent | ItemCompletedEvent | ErrorEvent;

export type ThreadItem = AgentMessageItem | ReasoningItem | CommandExecutionItem | FileChangeItem | McpToolCallItem | CollabToolCallItem | WebSearchItem | TodoListItem | ErrorItem;

export type ThreadModelUsage = {
  cache_write_input_tokens: number;
  cached_input_tokens: number;
  context_window?: number;
  cost_usd?: number;
  input_tokens: number;
  model: string;
  output_tokens: number;
  reasoning_output_tokens: number;
};

export type ThreadStartedEvent = {
  thread_id: string;
  type: "thread.started";
};

export type ThreadStatus = "in_progress" | "completed" | "failed";

export type ThreadUsage = {
  cache_write_input_tokens: number;
  cached_input_tokens: number;
  input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
};

export type TodoListItem = {
  id: string;
  items: {
    completed: boolean;
    text: string;
  }[];
  type: "todo_list";
};

export type TurnCompletedEvent = {
  cost_usd?: number;
  duration_ms?: number;
  model_usage?: ThreadModelUsage[];
  session_cost_usd?: number;
  type: "turn.completed";
  usage: ThreadUsage;
  usage_scope?: "run";
};

export type TurnFailedEvent = {
  cost_usd?: number;
  duration_ms?: number;
  error: {
    message: string;
  };
  model_usage?: ThreadModelUsage[];
  session_cost_usd?: number;
  type: "turn.failed";
  usage?: ThreadUsage;
  usage_scope?: "run";
};

export type TurnStartedEvent = {
  type: "turn.started";
};

export type WebSearchItem = {
  action: {
    queries?: string[];
    query?: string;
    type: "search";
  } | {
    type: "open_page";
    url?: string;
  } | {
    pattern?: string;
    type: "find_in_page";
    url?: string;
  } | {
    type: "other";
  };
  id: string;
  query: string;
  type: "web_search";
};
