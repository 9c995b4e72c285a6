//! AG-UI 1.0 events as they travel inside server-sent events.
//!
//! Names and shapes are those of npm `@ag-ui/core` 1.0.0 and its JSON Schema. A field without a
//! value is left out: the client rejects `null`. The `Thinking*` events are for clients
//! before 0.0.45, which know no reasoning. What AG-UI has no event for travels as `CUSTOM`, in the types at the end.

pub(crate) mod inbound;

use std::borrow::Cow;

use model::{AskKind, Deadline, Level, McpServer, Part, PlanStatus, Raw, Status, Text};
use serde::Serialize;

pub(crate) const PROTOCOL_VERSION: &str = "1.0";

/// The fields of each kind of event; `subagentRunId` and `timestamp` follow them.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(crate) enum Body<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Summary<'a>>,
        outcome: Outcome<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<Summary<'a>>>,
    },
    RunError {
        message: Text<'a>,
        code: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage<'a>>,
        metadata: Metadata<Summary<'a>>,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Manner<'a>>,
    },
    TextMessageEnd {
        message_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Attached<'a>>,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        // Always `reasoning`: the 1.0 schema requires the literal.
        role: &'static str,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ReasoningEncryptedValue {
        subtype: &'static str,
        entity_id: &'a str,
        encrypted_value: &'a Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<Hidden>>,
    },
    ThinkingStart,
    ThinkingTextMessageStart,
    ThinkingTextMessageContent {
        delta: &'a Text<'a>,
    },
    ThinkingTextMessageEnd,
    ThinkingEnd,
    ToolCallStart {
        tool_call_id: &'a str,
        tool_call_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<Hosted>>,
    },
    ToolCallEnd {
        tool_call_id: &'a str,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<ToolStatus>>,
    },
    SubagentStarted {
        subagent_run_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<&'a str>,
    },
    SubagentFinished {
        subagent_run_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Text<'a>>,
    },
    SubagentError {
        subagent_run_id: &'a str,
        message: Text<'a>,
        code: Status,
    },
    ActivitySnapshot {
        message_id: &'a str,
        activity_type: &'a str,
        content: Activity<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<ActivityStatus<'a>>>,
    },
    Raw {
        event: &'a Raw<'a>,
        source: &'a str,
    },
    Custom(Custom<'a>),
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Outcome<'a> {
    #[serde(rename_all = "camelCase")]
    Success {
        /// Calls of this run that the application is to answer.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        pending_tool_call_ids: &'a [String],
    },
    Cancelled,
}

/// How a message is meant, besides its role.
#[derive(Serialize)]
pub(crate) struct Manner<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) refusal: bool,
}

/// What came along with the words of a message.
#[derive(Serialize)]
pub(crate) struct Attached<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) annotations: Vec<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) linkspan: Option<Parts<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Parts<'a> {
    pub(crate) parts: Vec<&'a Part<'a>>,
}

/// What a hidden value is, when it is not the thought itself.
#[derive(Serialize)]
pub(crate) struct Hidden {
    pub(crate) kind: &'static str,
}

/// The provider runs the tool: the client need not answer the call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hosted {
    pub(crate) server_side: bool,
}

/// An activity has no end of its own.
#[derive(Serialize)]
pub(crate) struct ActivityStatus<'a> {
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a Text<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Activity<'a> {
    Plan(Plan<'a>),
    /// An object, as the agent made it.
    Item(&'a Raw<'a>),
}

/// Reads and writes of a cache are parts of the input, reasoning is a part of the output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<&'a str>,
    pub(crate) input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_tokens: Option<u64>,
    pub(crate) cached_input_tokens: u64,
    /// Most agents do not know it: zero is left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) cache_write_input_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Our own words beside the protocol's, under our own key.
#[derive(Serialize)]
pub(crate) struct Metadata<T> {
    pub(crate) linkspan: T,
}

/// How a run ended, where the protocol has no field for it.
#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary<'a> {
    /// Which kind of failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    /// The code that is the same for every agent, where the event has the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
    /// `incomplete` when the answer was cut off; `reason` is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
}

/// How a call ended, where that was not well: a result has no flag for it.
#[derive(Serialize)]
pub(crate) struct ToolStatus {
    pub(crate) status: Status,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Text(Text<'a>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentPart<'a> {
    Text {
        text: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata<Block>>,
    },
    Image {
        source: Source<'a>,
    },
}

/// The text is the JSON of a block that AG-UI has no part for.
#[derive(Serialize)]
pub(crate) struct Block {
    pub(crate) block: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Source<'a> {
    #[serde(rename_all = "camelCase")]
    Data {
        value: Text<'a>,
        mime_type: Cow<'a, str>,
    },
    Url {
        value: Text<'a>,
    },
}

#[derive(Serialize)]
pub(crate) struct Plan<'a> {
    pub(crate) entries: Vec<PlanEntry<'a>>,
}

#[derive(Serialize)]
pub(crate) struct PlanEntry<'a> {
    pub(crate) content: &'a Text<'a>,
    pub(crate) status: PlanStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) doing: Option<&'a Text<'a>>,
}

/// An event of ours; programs that do not know it pass over it.
#[derive(Serialize)]
#[serde(tag = "name", content = "value")]
pub(crate) enum Custom<'a> {
    #[serde(rename = "linkspan.session")]
    Session(Session<'a>),
    #[serde(rename = "linkspan.notice")]
    Notice(Notice<'a>),
    #[serde(rename = "linkspan.ask")]
    Ask(Ask<'a>),
    #[serde(rename = "linkspan.ask_settled")]
    AskSettled(&'a model::AskSettled<'a>),
    #[serde(rename = "linkspan.compaction")]
    Compaction(Compaction<'a>),
    #[serde(rename = "linkspan.item")]
    Item(Item<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Session<'a> {
    pub(crate) engine: &'a str,
    pub(crate) session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tools: &'a [Cow<'a, str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) mcp_servers: &'a [McpServer<'a>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) commands: &'a [Cow<'a, str>],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notice<'a> {
    pub(crate) level: Level,
    pub(crate) code: &'a str,
    pub(crate) text: &'a Text<'a>,
    /// A tool call or a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<&'a Raw<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ask<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: AskKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<&'a str>,
    pub(crate) tool_call_name: &'a str,
    pub(crate) title: &'a Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<&'a Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suggestions: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Deadline>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compaction<'a> {
    pub(crate) id: &'a str,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<&'a Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_after: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct Item<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a Text<'a>>,
    pub(crate) data: &'a Raw<'a>,
}
