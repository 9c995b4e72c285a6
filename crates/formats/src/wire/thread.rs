//! ThreadEvents, the JSON lines of `codex exec --json`, as a strict reader wants them.
//!
//! From the types and the producer in openai/codex, `codex-rs/exec/src/exec_events.rs`, of August
//! 2026. Fields that may be null are written as null, as that program does. Left out: the second `id`
//! key that Codex itself puts into a `web_search`.

use std::borrow::Cow;

use model::{Raw, Text};
use serde::{Serialize, Serializer};

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(crate) enum ThreadEvent<'a> {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: &'a str },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        usage: Usage,
        #[serde(flatten)]
        figures: Figures<'a>,
    },
    #[serde(rename = "turn.failed")]
    TurnFailed {
        error: Error<'a>,
        /// Absent for Codex, which does not count a failed turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(flatten)]
        figures: Figures<'a>,
    },
    #[serde(rename = "item.started")]
    ItemStarted { item: ThreadItem<'a> },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: ThreadItem<'a> },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: ThreadItem<'a> },
    /// Said in passing: it ends nothing.
    #[serde(rename = "error")]
    Error { message: &'a Text<'a> },
}

/// What linkspan adds to the end of a turn; a turn of Codex itself has none of it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures<'a> {
    /// [`OF_THE_RUN`], or absent where the counts are Codex's own, of the whole thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) model_usage: Vec<ModelUsage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
}

/// The scope of counts that are those of one run, with the parts of the input disjoint.
pub(crate) const OF_THE_RUN: &str = "run";

#[derive(Debug, Serialize)]
pub(crate) struct ModelUsage<'a> {
    pub(crate) model: &'a str,
    #[serde(flatten)]
    pub(crate) usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_window: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) cached_input_tokens: u64,
    pub(crate) cache_write_input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) reasoning_output_tokens: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Error<'a> {
    pub(crate) message: Text<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ThreadItem<'a> {
    pub(crate) id: &'a str,
    #[serde(flatten)]
    pub(crate) details: Details<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Details<'a> {
    AgentMessage {
        text: &'a Text<'a>,
        #[serde(flatten)]
        about: Option<AboutAsk<'a>>,
    },
    Reasoning {
        text: &'a Text<'a>,
    },
    CommandExecution {
        command: &'a Text<'a>,
        aggregated_output: Text<'a>,
        /// Absent only in the seed's shape of a running command.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<Option<i32>>,
        status: Status,
        #[serde(flatten)]
        more: More,
    },
    FileChange {
        changes: Vec<FileUpdate<'a>>,
        status: Status,
    },
    McpToolCall {
        server: &'a str,
        tool: &'a str,
        arguments: Option<&'a Raw<'a>>,
        result: Option<McpResult<'a>>,
        error: Option<Error<'a>>,
        status: Status,
    },
    CollabToolCall {
        tool: CollabTool,
        sender_thread_id: &'a str,
        receiver_thread_ids: Vec<&'a str>,
        prompt: Option<&'a Text<'a>>,
        agents_states: AgentsStates<'a>,
        status: Status,
    },
    WebSearch {
        query: &'a Text<'a>,
        action: &'a WebSearchAction,
    },
    TodoList {
        items: &'a [TodoItem],
    },
    Error {
        message: &'a Text<'a>,
    },
}

/// Marks the message that shows a question of the agent.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct AboutAsk<'a> {
    /// Always `commentary`, as Codex marks a message that is not the answer.
    pub(crate) phase: &'static str,
    pub(crate) ask_id: &'a str,
}

/// What a server knows about an output that is not written whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct More {
    /// How long the output is that was cut, and where all of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
}

/// A picture of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Attachment {
    pub(crate) media_type: String,
    pub(crate) bytes: usize,
    pub(crate) url: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    InProgress,
    Completed,
    Failed,
    /// Only of a command.
    Declined,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileUpdate<'a> {
    pub(crate) path: &'a Text<'a>,
    pub(crate) kind: FileUpdateKind,
    /// Where a server shows the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileUpdateKind {
    Add,
    Delete,
    Update,
}

#[derive(Debug, Serialize)]
pub(crate) struct McpResult<'a> {
    pub(crate) content: Vec<McpContent<'a>>,
    pub(crate) structured_content: Option<Raw<'a>>,
}

/// A content block of the Model Context Protocol.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum McpContent<'a> {
    Text {
        text: Text<'a>,
    },
    Image {
        data: Text<'a>,
        #[serde(rename = "mimeType")]
        mime_type: Cow<'a, str>,
    },
    ResourceLink {
        uri: Text<'a>,
        name: &'a str,
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
    },
    #[serde(untagged)]
    Other(Raw<'a>),
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CollabTool {
    SpawnAgent,
    SendInput,
    Wait,
    CloseAgent,
}

/// The agents of a call, as a map by thread id.
#[derive(Debug, Default)]
pub(crate) struct AgentsStates<'a>(pub(crate) Vec<(Cow<'a, str>, AgentState<'a>)>);

impl Serialize for AgentsStates<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, state)| (id, state)))
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AgentState<'a> {
    pub(crate) status: AgentStatus,
    pub(crate) message: Option<Text<'a>>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentStatus {
    PendingInit,
    Running,
    Interrupted,
    Completed,
    Errored,
    Shutdown,
    NotFound,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum WebSearchAction {
    Search {
        #[serde(skip_serializing_if = "Option::is_none")]
        query: Option<Text<'static>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        queries: Option<Vec<Text<'static>>>,
    },
    OpenPage {
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<Text<'static>>,
    },
    FindInPage {
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<Text<'static>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<Text<'static>>,
    },
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TodoItem {
    pub(crate) text: Text<'static>,
    pub(crate) completed: bool,
}
