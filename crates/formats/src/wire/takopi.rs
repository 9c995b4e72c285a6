//! Takopi's events as JSON lines, for writing.
//!
//! Field names are those of takopi 0.22.3's dataclasses (`model.py`); takopi itself keeps its events in
//! memory, so the line form is ours: `type` first, absent fields left out, `detail` always there.
//! `resume_line` and `modelUsage` are additions that takopi's model does not have.

use model::{Raw, Text};
use serde::Serialize;

use super::lenient::{Any, Flag, Str};

#[derive(Serialize)]
#[serde(tag = "type", rename = "started")]
pub(crate) struct Started<'a> {
    pub(crate) engine: &'a str,
    pub(crate) resume: Resume<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "action")]
pub(crate) struct ActionEvent<'a, D> {
    pub(crate) engine: &'a str,
    pub(crate) action: Action<'a, D>,
    pub(crate) phase: Phase,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<Level>,
}

#[derive(Serialize)]
pub(crate) struct Resume<'a> {
    pub(crate) engine: &'a str,
    pub(crate) value: &'a str,
}

#[derive(Serialize)]
pub(crate) struct Meta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tools: &'a [String],
    #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_style: Option<&'a Raw<'static>>,
    #[serde(rename = "apiKeySource", skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_source: Option<&'a Raw<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp_servers: Option<&'a Raw<'static>>,
}

#[derive(Serialize)]
pub(crate) struct Action<'a, D> {
    pub(crate) id: &'a str,
    pub(crate) kind: Kind,
    pub(crate) title: Text<'a>,
    pub(crate) detail: D,
}

impl<'a, D> Action<'a, D> {
    pub(crate) fn new(id: &'a str, kind: Kind, title: Text<'a>, detail: D) -> Self {
        Self {
            id,
            kind,
            title,
            detail,
        }
    }

    /// The event of an action without a message and a level.
    pub(crate) fn event(
        self,
        engine: &'a str,
        phase: Phase,
        ok: Option<bool>,
    ) -> ActionEvent<'a, D> {
        ActionEvent {
            engine,
            action: self,
            phase,
            ok,
            message: None,
            level: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Command,
    Tool,
    FileChange,
    WebSearch,
    Subagent,
    Note,
    Warning,
    /// Only takopi's own Codex runner has these.
    Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Started,
    Updated,
    Completed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Debug,
    Info,
    Warning,
    Error,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "completed")]
pub(crate) struct Completed<'a> {
    pub(crate) engine: &'a str,
    pub(crate) ok: bool,
    pub(crate) answer: Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<Resume<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume_line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Raw<'a>>,
    #[serde(rename = "modelUsage", skip_serializing_if = "Option::is_none")]
    pub(crate) model_usage: Option<Raw<'a>>,
}

/// The detail of a tool call; the second part is known when it has ended.
#[derive(Default, Serialize)]
pub(crate) struct ToolDetail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_input: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
    /// Takopi's renderer puts it behind the title when it is not zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
}

/// The detail of a tool call as takopi's own Claude runner fills it.
#[derive(Default, Serialize)]
pub(crate) struct UpstreamDetail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_preview: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_len: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
}

/// The detail of a tool call as takopi's own OpenCode runner fills it.
#[derive(Serialize)]
pub(crate) struct OpenCodeDetail<'a> {
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<&'a Raw<'a>>,
    #[serde(rename = "callID")]
    pub(crate) call_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_preview: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Change<'a> {
    pub(crate) path: Text<'a>,
    pub(crate) kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeKind {
    Add,
    Update,
    Delete,
}

#[derive(Serialize)]
pub(crate) struct ThinkingDetail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<&'a Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct DenialDetail<'a> {
    pub(crate) tool_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_input: Option<&'a Raw<'a>>,
}

#[derive(Serialize)]
pub(crate) struct NoticeDetail<'a> {
    pub(crate) code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a Raw<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SessionDetail<'a> {
    pub(crate) tools: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp_servers: Option<&'a Raw<'static>>,
}

/// Takopi's own detail of a Codex to-do list.
#[derive(Serialize)]
pub(crate) struct PlanDetail {
    pub(crate) done: usize,
    pub(crate) total: usize,
}

#[derive(Serialize)]
pub(crate) struct CompactionDetail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<&'a Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct RawDetail<'a> {
    pub(crate) raw: &'a Raw<'a>,
}

#[derive(Serialize)]
pub(crate) struct NoDetail {}

/// A command as takopi's own Codex runner has it; empty until it has ended.
#[derive(Serialize)]
pub(crate) struct CodexCommand {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<Option<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
}

#[derive(Serialize)]
pub(crate) struct CodexChanges<'a> {
    pub(crate) changes: Vec<Change<'a>>,
    pub(crate) status: &'static str,
}

#[derive(Serialize)]
pub(crate) struct CodexMcp<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) status: &'static str,
    pub(crate) arguments: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_summary: Option<CodexSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct CodexSummary {
    pub(crate) content_blocks: usize,
    pub(crate) has_structured: bool,
}

#[derive(Serialize)]
pub(crate) struct CodexSearch<'a> {
    pub(crate) query: Option<&'a Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct CodexPhase {
    pub(crate) phase: &'static str,
}

#[derive(Serialize)]
pub(crate) struct CodexError<'a> {
    pub(crate) message: &'a Text<'a>,
}

#[derive(Serialize)]
pub(crate) struct CodexRetry {
    pub(crate) attempt: Option<u64>,
    pub(crate) max: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct CodexUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) cached_input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// Token counts of an agent that has no usage object of its own; the names are Claude's.
#[derive(Serialize)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: u64,
    pub(crate) cache_creation_input_tokens: u64,
    pub(crate) cache_read_input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
}

/// Usage as takopi's own Claude runner wraps it.
#[derive(Serialize)]
pub(crate) struct UpstreamUsage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_cost_usd: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_api_ms: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) num_turns: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Raw<'a>>,
}

object! {
    /// What takopi reads of an agent's last frame.
    ResultFrame {
        subtype: Str<'a> = "subtype",
        is_error: Flag = "is_error",
        session_id: Str<'a> = "session_id",
        result: Any<'a> = "result",
        total_cost_usd: Any<'a> = "total_cost_usd",
        duration_ms: Any<'a> = "duration_ms",
        duration_api_ms: Any<'a> = "duration_api_ms",
        num_turns: Any<'a> = "num_turns",
        usage: Any<'a> = "usage",
        model_usage: Any<'a> = "modelUsage",
    }

    /// What takopi reads of a tool's input.
    ToolInput {
        command: Any<'a> = "command",
        file_path: Any<'a> = "file_path",
        path: Any<'a> = "path",
        pattern: Any<'a> = "pattern",
        query: Any<'a> = "query",
        url: Any<'a> = "url",
        description: Any<'a> = "description",
        prompt: Any<'a> = "prompt",
    }

    /// Where takopi looks for the path of an OpenCode tool.
    OpenCodeInput {
        file_path: Any<'a> = "file_path",
        file_path_camel: Any<'a> = "filePath",
    }
}
