//! OpenHands events as `openhands-sdk` 1.58.0 loads them: what the SDK's own classes accept.
//!
//! Every class there forbids unknown keys, and its own writers leave out what is null; so do these.
//! Only the kinds and fields that the writer uses are here. A variant's name is the class's name,
//! because `kind` is. `ExternalToolAction` and `ExternalToolObservation` are proposals that a
//! consumer has to register before it can load them.
#![expect(
    clippy::enum_variant_names,
    reason = "`kind` is the name of the SDK's class"
)]

pub(crate) mod inbound;

use std::borrow::Cow;

use model::{Raw, Text};
use serde::{Serialize, Serializer};

use super::acp::ToolKind;
use super::uuid::Uuid;

/// What is written for a call that has no result; our reader recognizes these texts.
pub(crate) const CALL_FAILED: &str = "the call failed";
pub(crate) const CALL_STOPPED: &str = "the call was stopped";
pub(crate) const CALL_LOST: &str = "nobody said how the call ended";
pub(crate) const RUN_ENDED: &str = "the run ended";
pub(crate) const STREAM_ENDED: &str = "the stream ended";

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "kind")]
pub(crate) enum Event<'a> {
    SystemPromptEvent {
        #[serde(flatten)]
        head: Head,
        system_prompt: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        dynamic_context: Option<Content<'a>>,
        /// Definitions the SDK would have to know; a foreign agent's tools are none of them.
        tools: [(); 0],
    },
    MessageEvent {
        #[serde(flatten)]
        head: Head,
        #[serde(skip_serializing_if = "Option::is_none")]
        llm_response_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<&'a str>,
        llm_message: Message<'a>,
    },
    ActionEvent {
        #[serde(flatten)]
        head: Head,
        // Required, even where it is empty.
        thought: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        thinking_blocks: Vec<ThinkingBlock<'a>>,
        /// Absent when the call could not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<Action<'a>>,
        tool_name: &'a str,
        tool_call_id: &'a str,
        tool_call: ToolCall<'a>,
        llm_response_id: &'a str,
    },
    ObservationEvent {
        #[serde(flatten)]
        head: Head,
        tool_name: &'a str,
        tool_call_id: &'a str,
        action_id: Uuid,
        observation: Observation<'a>,
    },
    UserRejectObservation {
        #[serde(flatten)]
        head: Head,
        tool_name: &'a str,
        tool_call_id: &'a str,
        action_id: Uuid,
        rejection_reason: Text<'a>,
        rejection_source: RejectionSource,
    },
    AgentErrorEvent {
        #[serde(flatten)]
        head: Head,
        tool_name: &'a str,
        tool_call_id: &'a str,
        error: Text<'a>,
    },
    // No `locations`: the SDK's class has no such field, and forbids unknown ones.
    ACPToolCallEvent {
        #[serde(flatten)]
        head: Head,
        tool_call_id: &'a str,
        title: Text<'a>,
        status: &'static str,
        tool_kind: ToolKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_input: Option<Raw<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_output: Option<Raw<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<AcpContent<'a>>,
        is_error: bool,
    },
    Condensation {
        #[serde(flatten)]
        head: Head,
        forgotten_event_ids: [(); 0],
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Text<'a>>,
        llm_response_id: Uuid,
    },
    HookExecutionEvent {
        #[serde(flatten)]
        head: Head,
        hook_event_type: &'static str,
        hook_command: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_name: Option<Text<'a>>,
        success: bool,
        blocked: bool,
        exit_code: i64,
        stdout: Text<'a>,
        stderr: Text<'a>,
    },
    InterruptEvent {
        #[serde(flatten)]
        head: Head,
    },
    ConversationErrorEvent {
        #[serde(flatten)]
        head: Head,
        code: &'a str,
        detail: Text<'a>,
    },
    ConversationStateUpdateEvent {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        update: StateUpdate<'a>,
    },
    StreamingDeltaEvent {
        #[serde(flatten)]
        head: Head,
        #[serde(flatten)]
        delta: Delta<'a>,
    },
}

/// What every event begins with.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) id: Uuid,
    pub(crate) timestamp: Time,
    pub(crate) source: Source,
}

/// ISO 8601 in UTC with microseconds and, as OpenHands writes it, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) [u8; 26]);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ascii(&self.0, serializer)
    }
}

fn ascii<S: Serializer>(text: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(std::str::from_utf8(text).expect("times are ASCII"))
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Agent,
    User,
    Environment,
    Hook,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Content<'a> {
    Text { text: Text<'a> },
    Image { image_urls: [Url<'a>; 1] },
}

/// An address, or a picture written as one.
#[derive(Debug)]
pub(crate) enum Url<'a> {
    Link(Text<'a>),
    Data {
        media_type: Cow<'a, str>,
        data: Text<'a>,
    },
}

impl Serialize for Url<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Link(url) => url.serialize(serializer),
            Self::Data { media_type, data } => {
                serializer.collect_str(&format_args!("data:{media_type};base64,{data}"))
            }
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    pub(crate) content: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) thinking_blocks: Vec<ThinkingBlock<'a>>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ThinkingBlock<'a> {
    Thinking {
        thinking: Text<'a>,
        signature: Text<'a>,
    },
    RedactedThinking {
        data: Text<'a>,
    },
}

/// The call as the model made it.
#[derive(Debug, Serialize)]
pub(crate) struct ToolCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// JSON text inside a string.
    pub(crate) arguments: Text<'a>,
    pub(crate) origin: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind")]
pub(crate) enum Action<'a> {
    MCPToolAction {
        data: Raw<'a>,
    },
    ExternalToolAction {
        tool: &'a str,
        args: Raw<'a>,
    },
    FinishAction {
        message: Text<'a>,
    },
    TerminalAction {
        command: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    FileEditorAction {
        command: EditorCommand,
        path: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_text: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_str: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_str: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        view_range: Option<[i64; 2]>,
    },
    TaskTrackerAction {
        command: &'static str,
        task_list: Vec<Task<'a>>,
    },
    GlobAction {
        pattern: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<Text<'a>>,
    },
    GrepAction {
        pattern: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        include: Option<Text<'a>>,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Observation<'a> {
    #[serde(flatten)]
    pub(crate) detail: ObservationDetail<'a>,
    pub(crate) content: Vec<Content<'a>>,
    pub(crate) is_error: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind")]
pub(crate) enum ObservationDetail<'a> {
    MCPToolObservation {
        tool_name: &'a str,
    },
    ExternalToolObservation {
        tool: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Raw<'a>>,
    },
    FinishObservation {},
    TerminalObservation {
        command: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    FileEditorObservation {
        command: EditorCommand,
        path: Text<'a>,
        prev_exist: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_content: Option<Text<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        new_content: Option<Text<'a>>,
    },
    TaskTrackerObservation {
        command: &'static str,
        task_list: Vec<Task<'a>>,
    },
    GlobObservation {
        files: Vec<Cow<'a, str>>,
        pattern: Text<'a>,
        search_path: Text<'a>,
        truncated: bool,
    },
    GrepObservation {
        matches: Vec<Cow<'a, str>>,
        pattern: Text<'a>,
        search_path: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        include_pattern: Option<Text<'a>>,
        truncated: bool,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditorCommand {
    View,
    Create,
    StrReplace,
}

#[derive(Debug, Serialize)]
pub(crate) struct Task<'a> {
    pub(crate) title: Text<'a>,
    pub(crate) notes: &'static str,
    pub(crate) status: TaskStatus,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    Todo,
    InProgress,
    Done,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RejectionSource {
    User,
    Hook,
}

/// A block of an ACP tool call, in the spelling in which OpenHands stores it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum AcpContent<'a> {
    Diff {
        path: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_text: Option<Text<'a>>,
        new_text: Text<'a>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "key", content = "value", rename_all = "snake_case")]
pub(crate) enum StateUpdate<'a> {
    Stats(Stats<'a>),
    ExecutionStatus(ExecutionStatus),
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutionStatus {
    Running,
    WaitingForConfirmation,
    Finished,
    Error,
}

#[derive(Debug, Serialize)]
pub(crate) struct Stats<'a> {
    #[serde(serialize_with = "one_entry")]
    pub(crate) usage_to_metrics: (&'a str, Metrics<'a>),
}

fn one_entry<S: Serializer>(entry: &(&str, Metrics<'_>), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(std::iter::once((entry.0, &entry.1)))
}

#[derive(Debug, Serialize)]
pub(crate) struct Metrics<'a> {
    pub(crate) model_name: &'a str,
    pub(crate) accumulated_cost: f64,
    pub(crate) accumulated_token_usage: TokenUsage<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TokenUsage<'a> {
    pub(crate) model: &'a str,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) cache_write_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    pub(crate) context_window: u64,
    pub(crate) per_turn_token: u64,
    pub(crate) response_id: &'static str,
}

/// A piece of what the model is saying.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delta<'a> {
    Content(Text<'a>),
    ReasoningContent(Text<'a>),
}
