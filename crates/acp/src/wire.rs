//! Messages of the Agent Client Protocol, version 1, as they travel: what the client says, and what it
//! is answered. What happens in a session is written by `formats`.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The version of the protocol that is spoken here.
pub(crate) const VERSION: u64 = 1;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialize {
    #[expect(dead_code, reason = "it has to be there; what is answered is ours")]
    protocol_version: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) client_capabilities: ClientCapabilities,
}

/// What a client can do; what it does not mention it cannot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    #[serde(deserialize_with = "or_default")]
    pub(crate) session: SessionExtras,
    #[serde(deserialize_with = "or_default")]
    pub(crate) elicitation: Elicitation,
    #[serde(deserialize_with = "or_default")]
    pub(crate) auth: Auth,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Auth {
    /// It can start us in a terminal.
    #[serde(deserialize_with = "or_default")]
    pub(crate) terminal: bool,
}

/// An object says yes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SessionExtras {
    pub(crate) compaction: Option<Value>,
    pub(crate) notices: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Elicitation {
    pub(crate) form: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    pub(crate) protocol_version: u64,
    pub(crate) agent_capabilities: AgentCapabilities,
    pub(crate) auth_methods: Vec<AuthMethod>,
    pub(crate) agent_info: AgentInfo,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentCapabilities {
    pub(crate) load_session: bool,
    pub(crate) prompt_capabilities: PromptCapabilities,
    pub(crate) mcp_capabilities: McpCapabilities,
    pub(crate) session_capabilities: SessionCapabilities,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptCapabilities {
    pub(crate) image: bool,
    pub(crate) audio: bool,
    pub(crate) embedded_context: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct McpCapabilities {
    pub(crate) http: bool,
    pub(crate) sse: bool,
}

/// What is there is possible.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SessionCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) list: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) close: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delete: Option<Empty>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Empty {}

#[derive(Debug, Serialize)]
pub(crate) struct AuthMethod {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) r#type: Option<&'static str>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Added to those that the client starts us with.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) args: &'static [&'static str],
}

#[derive(Debug, Serialize)]
pub(crate) struct AgentInfo {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) version: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Authenticate {
    pub(crate) method_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) cwd: PathBuf,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) mcp_servers: Vec<McpServer>,
}

/// The parameters of `session/load`, `session/resume` and `session/fork`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OldSession {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) mcp_servers: Vec<McpServer>,
}

/// Untagged, because a server without a type is a program.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum McpServer {
    Remote {
        r#type: Remote,
        name: String,
        url: String,
        #[serde(default)]
        headers: Vec<Pair>,
    },
    Program {
        name: String,
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: Vec<Pair>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Remote {
    Http,
    Sse,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListSessions {
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<SessionInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionInfo {
    pub(crate) session_id: String,
    pub(crate) cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) updated_at: String,
}

/// The answer to a session that was opened in any way.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened<'a> {
    /// Told where the client does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<&'a str>,
    pub(crate) modes: Modes,
    pub(crate) config_options: Vec<ConfigOption>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Modes {
    pub(crate) current_mode_id: &'static str,
    pub(crate) available_modes: Vec<ModeInfo>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ModeInfo {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOption {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) category: &'static str,
    pub(crate) r#type: &'static str,
    pub(crate) current_value: String,
    pub(crate) options: Vec<Choice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOptions {
    pub(crate) config_options: Vec<ConfigOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfSession {
    pub(crate) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetConfigOption {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    pub(crate) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Prompt {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<Block>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    Audio {},
    ResourceLink {
        name: String,
        uri: String,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Resource {
    Text {
        uri: String,
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Blob {
        uri: String,
        blob: String,
        mime_type: Option<String>,
    },
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequest {
    pub(crate) request_id: Value,
}

/// A `session/update` that is not about a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) update: About<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(crate) enum About<'a> {
    #[serde(rename_all = "camelCase")]
    AvailableCommandsUpdate { available_commands: Vec<Command> },
    #[serde(rename_all = "camelCase")]
    CurrentModeUpdate { current_mode_id: &'a str },
    #[serde(rename_all = "camelCase")]
    ConfigOptionUpdate { config_options: Vec<ConfigOption> },
    #[serde(rename_all = "camelCase")]
    SessionInfoUpdate { title: &'a str },
    Notice {
        severity: &'static str,
        title: &'a str,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Hint>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Hint {
    pub(crate) hint: String,
}

/// Some clients write `null` for what they could leave out.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
