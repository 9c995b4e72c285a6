//! Agent Client Protocol, stable version 1, as an agent sends it: JSON-RPC 2.0, one message per line.
//!
//! Field names and shapes are those of the v1 schema in npm `@agentclientprotocol/sdk` 2.4.0.
//! Only what the writer says is here: no requests of the client, no `fs/*`, no `terminal/*`.

pub(crate) mod inbound;

use std::borrow::Cow;

use model::{Raw, Text};
use serde::Serialize;

use super::json_rpc::Call;

pub(crate) const SESSION_UPDATE: &str = "session/update";
pub(crate) const REQUEST_PERMISSION: &str = "session/request_permission";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionNotification<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) update: SessionUpdate<'a>,
}

/// The request for a permission, under a name of ours.
pub(crate) type PermissionCall<'a> = Call<'static, &'a str, RequestPermission<'a>>;

#[derive(Serialize)]
pub(crate) struct Error<'a> {
    pub(crate) code: i64,
    pub(crate) message: Text<'a>,
    pub(crate) data: ErrorData<'a>,
}

/// The agent's own word for what went wrong.
#[derive(Serialize)]
pub(crate) struct ErrorData<'a> {
    pub(crate) code: &'a str,
    /// `lost` when the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(crate) enum SessionUpdate<'a> {
    UserMessageChunk(ContentChunk<'a>),
    AgentMessageChunk(ContentChunk<'a>),
    AgentThoughtChunk(ContentChunk<'a>),
    ToolCall(ToolCall<'a>),
    ToolCallUpdate(ToolCallUpdate<'a>),
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
    UsageUpdate(UsageUpdate),
    Notice(Notice<'a>),
    CompactionUpdate(CompactionUpdate<'a>),
}

/// What ACP has no field for; every object may carry it.
#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta<'a> {
    /// The call that started the sub-agent this happened inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_use_id: Option<&'a str>,
    /// How a failed call ended, where that was not an error: ACP only knows `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
    /// What the model saw of a result, where the update only has the agent's own object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<&'a Raw<'a>>,
    /// No words of the model: a break between two messages, for clients that join them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) separator: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentChunk<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    pub(crate) content: ContentBlock<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentBlock<'a> {
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall<'a> {
    pub(crate) tool_call_id: &'a str,
    pub(crate) title: Text<'a>,
    pub(crate) name: &'a str,
    pub(crate) kind: ToolKind,
    pub(crate) status: ToolCallStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<ToolCallLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<&'a Raw<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Meta<'a>>,
}

/// Absent means unchanged; a list that is present replaces the one before.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallUpdate<'a> {
    pub(crate) tool_call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ToolCallStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolCallContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<ToolCallLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_output: Option<&'a Raw<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Meta<'a>>,
}

impl<'a> ToolCallUpdate<'a> {
    /// An update that says nothing yet.
    pub(crate) fn of(tool_call_id: &'a str) -> Self {
        Self {
            tool_call_id,
            title: None,
            kind: None,
            status: None,
            content: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            raw_output: None,
            meta: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
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

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolCallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToolCallContent<'a> {
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

#[derive(Serialize)]
pub(crate) struct ToolCallLocation<'a> {
    pub(crate) path: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
}

#[derive(Serialize)]
pub(crate) struct PlanEntry<'a> {
    pub(crate) content: Text<'a>,
    pub(crate) priority: &'static str,
    pub(crate) status: &'static str,
}

#[derive(Serialize)]
pub(crate) struct AvailableCommand<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: String,
}

#[derive(Serialize)]
pub(crate) struct UsageUpdate {
    /// Tokens in the context, and how many fit.
    pub(crate) used: u64,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
}

#[derive(Serialize)]
pub(crate) struct Cost {
    pub(crate) amount: f64,
    pub(crate) currency: &'static str,
}

#[derive(Serialize)]
pub(crate) struct Notice<'a> {
    pub(crate) severity: &'static str,
    pub(crate) title: Text<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionUpdate<'a> {
    pub(crate) compaction_id: &'a str,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) summary: Vec<ContentBlock<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestPermission<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) tool_call: ToolCallUpdate<'a>,
    pub(crate) options: &'a [PermissionOption],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    pub(crate) option_id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
}

#[derive(Serialize)]
pub(crate) struct PermissionAnswer {
    pub(crate) outcome: PermissionOutcome,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum PermissionOutcome {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: &'static str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptResponse<'a> {
    pub(crate) stop_reason: &'static str,
    /// Not in the stable schema, which lets it pass; clients count tokens by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<TokenUsage>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<StopMeta<'a>>,
}

/// What a turn used; input that was read from or written to a cache is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    pub(crate) total_tokens: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thought_tokens: Option<u64>,
    pub(crate) cached_read_tokens: u64,
    pub(crate) cached_write_tokens: u64,
}

/// Which limit it was, or why the model refused: ACP has one word for each.
#[derive(Serialize)]
pub(crate) struct StopMeta<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: Text<'a>,
}
