//! Claude Code's stream-json as it is written: the fields that 2.1.325 prints, and those that the
//! types of its SDK require.

use std::borrow::Cow;

use model::{Raw, Text, Timestamp, Tokens};
use serde::{Serialize, Serializer};

use crate::wire::uuid::Uuid;

/// A line of any type: what is its own, then what every line has.
#[derive(Debug, Serialize)]
pub(crate) struct OutputLine<'a, B: Serialize> {
    pub(crate) r#type: &'static str,
    #[serde(flatten)]
    pub(crate) body: B,
    pub(crate) session_id: &'a str,
    pub(crate) uuid: LineId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<Timestamp>,
    #[serde(flatten)]
    pub(crate) extra: Fields<'a>,
}

/// The agent's own id of a line, or one that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineId<'a> {
    Native(&'a str),
    Made(Uuid),
}

impl Serialize for LineId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Native(id) => serializer.serialize_str(id),
            Self::Made(id) => id.serialize(serializer),
        }
    }
}

/// Fields as they came, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(&'a str, Raw<'a>)>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A `system` line of any subtype.
#[derive(Debug, Serialize)]
pub(crate) struct SystemLine<B: Serialize> {
    pub(crate) subtype: &'static str,
    #[serde(flatten)]
    pub(crate) body: B,
}

/// Of `init`: what every agent may have said of itself.
#[derive(Debug, Serialize)]
pub(crate) struct InitBody<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) tools: &'a [String],
    pub(crate) model: &'a str,
    #[serde(rename = "permissionMode")]
    pub(crate) permission_mode: &'a str,
    pub(crate) slash_commands: &'a [String],
    pub(crate) claude_code_version: &'a str,
}

#[derive(Debug, Serialize)]
pub(crate) struct StatusBody<'a> {
    pub(crate) status: Option<&'static str>,
    #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct InformationalBody<'a> {
    pub(crate) content: &'a Text<'a>,
    pub(crate) level: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct StateBody {
    pub(crate) state: &'static str,
    pub(crate) sdk_host_only: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct TaskBody<'a> {
    pub(crate) task_id: &'a str,
    pub(crate) tool_use_id: &'a str,
    #[serde(flatten)]
    pub(crate) phase: TaskPhase<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum TaskPhase<'a> {
    Started {
        description: Text<'a>,
        task_type: &'static str,
        subagent_type: &'a str,
        prompt: Text<'a>,
        is_backgrounded: bool,
    },
    Ended {
        status: &'static str,
        summary: Text<'a>,
        // Where Claude Code keeps what the task printed.
        output_file: &'static str,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct CompactBody<'a> {
    pub(crate) compact_metadata: CompactMetadata<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CompactMetadata<'a> {
    pub(crate) trigger: &'a str,
    pub(crate) pre_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) post_tokens: Option<u64>,
}

/// Of `assistant` and `user` lines.
#[derive(Debug, Serialize)]
pub(crate) struct TurnBody<'a, M: Serialize> {
    pub(crate) message: M,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    #[serde(flatten)]
    pub(crate) flags: TurnFlags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_result: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_result_meta: Option<Raw<'a>>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct TurnFlags {
    #[serde(rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_synthetic: bool,
    #[serde(rename = "isReplay", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_replay: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_api_error_message: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) aborted: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct AssistantMessage<'a, C: Serialize> {
    pub(crate) id: &'a str,
    pub(crate) r#type: &'static str,
    pub(crate) role: &'static str,
    pub(crate) model: &'a str,
    pub(crate) content: C,
    pub(crate) usage: &'a UsageObject,
    #[serde(flatten)]
    pub(crate) extra: Fields<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct UserMessage<C: Serialize> {
    pub(crate) role: &'static str,
    pub(crate) content: C,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputBlock<'a> {
    Text {
        text: Text<'a>,
    },
    Thinking {
        thinking: Text<'a>,
        signature: Text<'a>,
    },
    RedactedThinking {
        data: Text<'a>,
    },
    ToolUse(ToolUse<'a>),
    ServerToolUse(ToolUse<'a>),
    ToolResult {
        tool_use_id: &'a str,
        content: Raw<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        source: ImageData<'a>,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolUse<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) input: Raw<'a>,
}

/// What a tool of the provider gave; the type is that of the tool.
#[derive(Debug, Serialize)]
pub(crate) struct ServerToolResult<'a> {
    pub(crate) r#type: Cow<'a, str>,
    pub(crate) tool_use_id: &'a str,
    pub(crate) content: Raw<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_error: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ImageData<'a> {
    Base64 { media_type: &'a str, data: Text<'a> },
    Url { url: Text<'a> },
}

/// Counts as the Messages API spells them, or the agent's own object.
#[derive(Clone, Debug)]
pub(crate) enum UsageObject {
    Counts(Tokens),
    Native(Raw<'static>),
}

impl Serialize for UsageObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Counts {
            input_tokens: u64,
            cache_creation_input_tokens: u64,
            cache_read_input_tokens: u64,
            output_tokens: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_tokens_details: Option<Details>,
        }
        #[derive(Serialize)]
        struct Details {
            thinking_tokens: u64,
        }
        match self {
            Self::Native(raw) => raw.serialize(serializer),
            Self::Counts(tokens) => Counts {
                input_tokens: tokens.input,
                cache_creation_input_tokens: tokens.cache_write,
                cache_read_input_tokens: tokens.cache_read,
                output_tokens: tokens.output.unwrap_or_default(),
                output_tokens_details: tokens
                    .reasoning
                    .map(|thinking_tokens| Details { thinking_tokens }),
            }
            .serialize(serializer),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct StreamBody<'a, E: Serialize> {
    pub(crate) event: E,
    pub(crate) parent_tool_use_id: Option<&'a str>,
    pub(crate) api_message_id: &'a str,
}

/// The Messages API's own events.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ApiEvent<'a> {
    MessageStart {
        message: AssistantMessage<'a, [(); 0]>,
    },
    ContentBlockStart {
        index: usize,
        content_block: OutputBlock<'a>,
    },
    ContentBlockDelta {
        index: usize,
        delta: ApiDelta<'a>,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: StopDelta,
        usage: &'a UsageObject,
    },
    MessageStop,
}

#[expect(clippy::enum_variant_names, reason = "these are the words of the API")]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ApiDelta<'a> {
    TextDelta { text: &'a Text<'a> },
    ThinkingDelta { thinking: &'a Text<'a> },
    InputJsonDelta { partial_json: &'a Text<'a> },
}

#[derive(Debug, Serialize)]
pub(crate) struct StopDelta {
    pub(crate) stop_reason: &'static str,
    pub(crate) stop_sequence: Option<()>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ResultBody<'a> {
    pub(crate) subtype: &'static str,
    pub(crate) is_error: bool,
    pub(crate) duration_ms: u64,
    pub(crate) duration_api_ms: u64,
    pub(crate) num_turns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<Text<'a>>,
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) total_cost_usd: f64,
    pub(crate) usage: &'a UsageObject,
    #[serde(rename = "modelUsage")]
    pub(crate) model_usage: &'a ModelTable,
    pub(crate) model_usage_since_last_result: &'a ModelTable,
    pub(crate) permission_denials: Raw<'a>,
    pub(crate) terminal_reason: &'static str,
    pub(crate) result_index: u64,
}

/// Counts by model.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelTable(pub(crate) Vec<(String, ModelCounts)>);

impl Serialize for ModelTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(model, counts)| (model, counts)))
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelCounts {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cache_read_input_tokens: u64,
    pub(crate) cache_creation_input_tokens: u64,
    pub(crate) web_search_requests: u64,
    #[serde(rename = "costUSD")]
    pub(crate) cost_usd: f64,
    pub(crate) context_window: u64,
    pub(crate) max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking_tokens: Option<u64>,
}

/// One of `permission_denials`.
#[derive(Debug, Serialize)]
pub(crate) struct DeniedCall<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) tool_use_id: &'a str,
    pub(crate) tool_input: Raw<'a>,
}

/// One of `tool_result_meta`: the call did not run.
#[derive(Debug, Serialize)]
pub(crate) struct NotRun<'a> {
    pub(crate) id: &'a str,
    pub(crate) non_execution_kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_decision: Option<RejectedBy>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RejectedBy {
    pub(crate) decision: &'static str,
    pub(crate) source: &'static str,
}

/// A question to the host.
#[derive(Debug, Serialize)]
pub(crate) struct ControlQuestion<'a> {
    pub(crate) r#type: &'static str,
    pub(crate) request_id: &'a str,
    pub(crate) request: CanUseTool<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CanUseTool<'a> {
    pub(crate) subtype: &'static str,
    pub(crate) tool_name: &'a str,
    pub(crate) display_name: &'a str,
    pub(crate) input: Raw<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<&'a Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_suggestions: Option<&'a Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ControlCancel<'a> {
    pub(crate) r#type: &'static str,
    pub(crate) request_id: &'a str,
}
