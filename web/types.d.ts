/** What travels between the server and the page; the canonical events are described in docs/linkspan.md. */
declare namespace Wire {
  type Status = "ok" | "error" | "denied" | "cancelled" | "lost";
  type Level = "debug" | "info" | "warning" | "error";

  interface Event {
    v: number;
    seq: number;
    at?: string;
    session: string;
    run?: string;
    engine?: string;
    path?: string[];
    origin: "agent" | "linkspan" | "client";
    why?: string;
    type: string;
    data: any;
  }

  interface Item {
    kind: "message" | "reasoning" | "tool" | "plan" | "subagent" | "compaction" | "other";
    id: string;
    role?: "user" | "assistant" | "harness";
    text?: string;
    parts?: Part[];
    encrypted?: string;
    name?: string;
    input?: any;
    class?: Class;
    result?: Result;
    server_side?: boolean;
    entries?: Entry[];
    call?: string;
    description?: string;
    prompt?: string;
    background?: boolean;
    report?: string;
    trigger?: string;
    summary?: string;
    tokens_before?: number;
    tokens_after?: number;
    data?: any;
  }

  interface Part {
    image?: { media_type: string; data: string };
    image_url?: { url: string };
    other?: any;
  }

  interface Class {
    kind: string;
    title: string;
    command?: string;
    paths?: { path: string; line?: number }[];
    diffs?: Diff[];
    query?: string;
    mcp?: { server: string; tool: string };
    change?: string;
    exit_code?: number;
  }

  interface Diff {
    path: string;
    old?: string;
    new: string;
  }

  interface Result {
    content: any;
    is_error?: boolean;
    structured?: any;
  }

  interface Entry {
    text: string;
    status: "pending" | "in_progress" | "completed";
    doing?: string;
  }

  interface Ask {
    id: string;
    kind: "permission" | "question" | "plan";
    item?: string;
    tool: string;
    title: string;
    description?: string;
    input?: any;
    suggestions?: any;
    /** When it is answered by itself if nobody has, and how. */
    deadline?: { at: string; decision: "allowed" | "denied" };
  }

  interface Question {
    id?: string;
    question: string;
    header?: string;
    multiSelect?: boolean;
    options?: { label: string; description?: string }[];
  }

  interface Tokens {
    input?: number;
    cache_read?: number;
    cache_write?: number;
    output?: number;
    reasoning?: number;
  }

  interface Session {
    id: string;
    engine: string;
    native?: string | null;
    cwd?: string | null;
    title?: string | null;
    created_at: string;
    active_at: string;
    head: number;
    bytes?: number;
    state: "idle" | "starting" | "queued" | "running" | "waiting";
    queue: number;
    /** What a fork began with: the events of that session up to `seq`. */
    parent?: { session: string; seq: number } | null;
  }

  interface OpenAsk {
    id: string;
    session: string;
    seq: number;
    can_change: boolean;
    data: Ask;
  }

  interface Detail extends Omit<Session, "queue"> {
    queue: { number: number; at?: string; prompt: string }[];
    asks: OpenAsk[];
    runs: { id: string; started_at: string; ended_at?: string; outcome?: string; cost_usd?: number }[];
  }

  type Role = "watch" | "prompt" | "approve" | "admin";

  /** One thing that can be done, the lowest role that may, and whether this token may. */
  interface Right {
    name: string;
    role: Role;
    allowed: boolean;
  }

  interface Me {
    id: string | null;
    role: Role;
    /** By `operationId`. */
    operations: Right[];
    /** By permission mode. */
    permissions: Right[];
  }

  interface Engine {
    name: string;
    summary: string;
    installed: boolean;
    version?: string | null;
    install?: string | null;
    default?: boolean;
    can?: { resume?: boolean; fork?: boolean; continue?: boolean; ask?: boolean; interrupt?: boolean };
  }

  interface Engines {
    engines: Engine[];
    replays: { name: string; summary: string }[];
  }
}

/** What the feed shows; `fold.js` makes it out of events. */
declare namespace View {
  interface RowBase {
    /** Unique in its session: the seq of the event that opened it. */
    key: number;
    /** Counts changes; a view that has seen this number has nothing to do. */
    version: number;
    depth: number;
    /** Pixels, as the feed measured it; 0 before. */
    height: number;
    at?: string;
    parent?: ToolRow;
    /** It belongs to the session that this one was forked from. */
    isPast?: boolean;
  }
  interface RunRow extends RowBase {
    kind: "run";
    n: number;
    cause: string;
  }
  interface MessageRow extends RowBase {
    kind: "message";
    role: "user" | "assistant" | "harness";
    text: string;
    parts: Wire.Part[];
    status?: Wire.Status;
  }
  interface ReasoningRow extends RowBase {
    kind: "reasoning";
    text: string;
    hidden: boolean;
    status?: Wire.Status;
  }
  interface ToolRow extends RowBase {
    kind: "tool";
    item: Wire.Item;
    /** Input as far as it has streamed. */
    typing: string;
    output: string;
    status?: Wire.Status;
    endedAt?: string;
    agent?: Wire.Item;
    agentStatus?: Wire.Status;
    children: Row[];
    ask?: AskRow;
    /** What its sub-agent took, and with which model. */
    tokens?: Wire.Tokens;
    cost?: number;
    model?: string;
  }
  interface PlanRow extends RowBase {
    kind: "plan";
    entries: Wire.Entry[];
    status?: Wire.Status;
  }
  interface CompactionRow extends RowBase {
    kind: "compaction";
    item: Wire.Item;
    status?: Wire.Status;
  }
  interface OtherRow extends RowBase {
    kind: "other";
    item: Wire.Item;
    status?: Wire.Status;
  }
  interface NoticeRow extends RowBase {
    kind: "notice";
    level: Wire.Level;
    text: string;
    code: string;
  }
  interface AskRow extends RowBase {
    kind: "ask";
    /** The name under which it is answered. */
    id: string;
    ask: Wire.Ask;
    tool?: ToolRow;
    settled?: { decision: string; message?: string; origin: string; why?: string; input?: any };
  }
  interface EndRow extends RowBase {
    kind: "end";
    outcome: string;
    error?: { code: string; message: string };
    denials: number;
    durationMs?: number;
    tokens?: Wire.Tokens;
    cost?: number;
  }
  /** A prompt that was sent and that no event shows yet. */
  interface PendingRow extends RowBase {
    kind: "pending";
    prompt: string;
    /** What happens to it, such as "Starting Claude…". */
    label: string;
    /** Events after this one may show it. */
    after: number;
    isAccepted: boolean;
    isRecording: boolean;
    /** Stop was pressed before the server had answered. */
    isStopped: boolean;
  }
  /** Where a fork leaves its parent. */
  interface ForkRow extends RowBase {
    kind: "fork";
    session: string;
    title: string;
  }
  type ItemRow = MessageRow | ReasoningRow | ToolRow | PlanRow | CompactionRow | OtherRow;
  type Row = ItemRow | RunRow | NoticeRow | AskRow | EndRow | PendingRow | ForkRow;
}
