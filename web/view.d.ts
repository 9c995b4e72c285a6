/** What the feed shows; `fold.js` makes it out of events. */
declare namespace View {
  /** Tokens as far as they are known. */
  type Tokens = Partial<Wire.Tokens>;
  /** A question of an agent, as its tool has it. */
  interface Question {
    id?: string;
    question: string;
    header?: string;
    multiSelect?: boolean;
    options?: { label: string; description?: string }[];
  }
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
    cause: Wire.Cause;
  }
  interface MessageRow extends RowBase {
    kind: "message";
    role: Wire.Role;
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
    item: Wire.Tool;
    /** Input as far as it has streamed. */
    typing: string;
    output: string;
    status?: Wire.Status;
    endedAt?: string;
    agent?: Wire.Subagent;
    agentStatus?: Wire.Status;
    children: Row[];
    ask?: AskRow;
    /** What its sub-agent took, and with which model. */
    tokens?: Tokens;
    cost?: number;
    model?: string;
  }
  interface PlanRow extends RowBase {
    kind: "plan";
    entries: Wire.PlanEntry[];
    status?: Wire.Status;
  }
  interface CompactionRow extends RowBase {
    kind: "compaction";
    item: Wire.Compaction;
    status?: Wire.Status;
  }
  interface OtherRow extends RowBase {
    kind: "other";
    item: Wire.Other;
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
    settled?: { decision: Wire.Decision; message?: string; origin: Wire.Origin; why?: Wire.Why; input?: unknown };
  }
  interface EndRow extends RowBase {
    kind: "end";
    outcome: Wire.Outcome;
    error?: Wire.RunError;
    durationMs?: number;
    /** What it took. */
    facts: string[];
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
