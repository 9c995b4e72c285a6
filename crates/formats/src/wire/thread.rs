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
    TurnCompleted { usage: Usage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: Error<'a> },
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
        action: WebSearchAction<'a>,
    },
    TodoList {
        items: &'a [TodoItem],
    },
    Error {
        message: &'a Text<'a>,
    },
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

/// The agents a call speaks of, as a map by thread id.
#[derive(Debug)]
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

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum WebSearchAction<'a> {
    Search {
        query: &'a Text<'a>,
    },
    /// Said in Codex' own words.
    #[serde(untagged)]
    Own(&'a Raw<'a>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TodoItem {
    pub(crate) text: Text<'static>,
    pub(crate) completed: bool,
}
