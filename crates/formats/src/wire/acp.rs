//! Agent Client Protocol, stable version 1: JSON-RPC 2.0, one message per line.
//!
//! Field names and shapes are those of the v1 schema in npm `@agentclientprotocol/sdk` 2.4.0.
//! Here is what an agent sends about its work; `session` has what both sides send about sessions, and
//! `inbound` reads recordings of either side. There is no `fs/*` and no `terminal/*`.

pub(crate) mod inbound;
mod session;

use std::borrow::Cow;

use model::{Outcome, PlanStatus, Raw, Status, Text};
use serde::Serialize;

pub use self::session::*;
use super::json_rpc::Call;

pub const SESSION_UPDATE: &str = "session/update";
pub const REQUEST_PERMISSION: &str = "session/request_permission";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification<'a> {
    pub session_id: &'a str,
    pub update: SessionUpdate<'a>,
}

/// The request for a permission, under a name of ours.
pub type PermissionCall<'a> = Call<'static, &'a str, RequestPermission<'a>>;

#[derive(Debug, Serialize)]
pub struct Error<'a> {
    pub code: i64,
    pub message: Text<'a>,
    pub data: ErrorData<'a>,
}

/// The agent's own code of the error.
#[derive(Debug, Serialize)]
pub struct ErrorData<'a> {
    pub code: &'a str,
    /// `lost` when the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum SessionUpdate<'a> {
    UserMessageChunk(ContentChunk<'a>),
    AgentMessageChunk(ContentChunk<'a>),
    AgentThoughtChunk(ContentChunk<'a>),
    ToolCall(ToolCall<'a>),
    ToolCallUpdate(ToolCall<'a>),
    Plan {
        entries: Vec<PlanEntry<'a>>,
    },
    #[serde(rename_all = "camelCase")]
    AvailableCommandsUpdate {
        available_commands: Vec<AvailableCommand<'a>>,
    },
    #[serde(rename_all = "camelCase")]
    CurrentModeUpdate {
        current_mode_id: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    ConfigOptionUpdate {
        config_options: Vec<ConfigOption>,
    },
    SessionInfoUpdate {
        title: &'a str,
    },
    UsageUpdate(UsageUpdate),
    // These two only go to clients that declared them: older ones may fail on unknown updates.
    Notice(Notice<'a>),
    CompactionUpdate(CompactionUpdate<'a>),
}

/// What ACP has no field for; every object may carry it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta<'a> {
    /// The call that started the sub-agent this happened inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_use_id: Option<&'a str>,
    /// How a failed call ended, where that was not an error: ACP only knows `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// What the model saw of a result, where the update only has the agent's own object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a Raw<'a>>,
    /// No words of the model: a break between two messages, for clients that join them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub separator: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentChunk<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a str>,
    pub content: ContentBlock<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock<'a> {
    Text {
        text: Text<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: Text<'a>,
        mime_type: Cow<'a, str>,
    },
    ResourceLink {
        name: Text<'a>,
        uri: Text<'a>,
    },
}

/// A call, or an update of one: absent means unchanged, and a list that is present replaces the one before.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    pub tool_call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Text<'a>>,
    /// Only of a new call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolCallStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolCallContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<ToolCallLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<&'a Raw<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta<'a>>,
}

impl<'a> ToolCall<'a> {
    /// An update without any change.
    pub fn of(tool_call_id: &'a str) -> Self {
        Self {
            tool_call_id,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCallContent<'a> {
    Content {
        content: ContentBlock<'a>,
    },
    /// No old text means a new file.
    #[serde(rename_all = "camelCase")]
    Diff {
        path: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        old_text: Option<Text<'a>>,
        new_text: Text<'a>,
    },
}

#[derive(Debug, Serialize)]
pub struct ToolCallLocation<'a> {
    pub path: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(Debug, Serialize)]
pub struct PlanEntry<'a> {
    pub content: Text<'a>,
    pub priority: &'static str,
    pub status: PlanStatus,
}

#[derive(Debug, Serialize)]
pub struct AvailableCommand<'a> {
    pub name: &'a str,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
}

#[derive(Debug, Serialize)]
pub struct CommandInput {
    pub hint: String,
}

#[derive(Debug, Serialize)]
pub struct UsageUpdate {
    /// Tokens in the context, and how many fit.
    pub used: u64,
    pub size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

#[derive(Debug, Serialize)]
pub struct Cost {
    pub amount: f64,
    pub currency: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Notice<'a> {
    pub severity: &'static str,
    pub title: Text<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionUpdate<'a> {
    pub compaction_id: &'a str,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<ContentBlock<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermission<'a> {
    pub session_id: &'a str,
    pub tool_call: ToolCall<'a>,
    pub options: &'a [PermissionOption<&'static str>],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptResponse<'a> {
    pub stop_reason: &'static str,
    /// Not in the stable schema, which lets it pass; clients count tokens by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<StopMeta<'a>>,
}

/// What a turn used; input that was read from or written to a cache is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    pub cached_read_tokens: u64,
    pub cached_write_tokens: u64,
}

/// Which limit it was, or why the model refused: ACP has one stop reason for each.
#[derive(Debug, Serialize)]
pub struct StopMeta<'a> {
    pub code: &'a str,
    pub message: Text<'a>,
}
