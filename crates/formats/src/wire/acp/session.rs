//! Agent Client Protocol, version 1: what a client and an agent send each other about sessions.
//!
//! linkspan is both: `acp` reads the requests and answers them, `runner` sends them and reads the answers.
//! Requests are read strictly, because their sender gets the error. Answers are read leniently: agents of
//! any age send them, and what is not understood must not cost the session.
//! `session/fork`, `session/set_model` and the list of models are older or newer than the schema of
//! version 1; agents that have them announce it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol.
pub const VERSION: u64 = 1;

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    pub protocol_version: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub client_capabilities: ClientCapabilities,
    // Only sent: nothing here depends on which client it is.
    #[serde(skip_deserializing)]
    pub client_info: Option<Implementation>,
}

/// What a client can do; what it does not mention it cannot.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ClientCapabilities {
    // Only sent: linkspan has no `fs/*` and no `terminal/*` that an agent could call.
    #[serde(skip_deserializing)]
    pub fs: FileSystem,
    #[serde(skip_deserializing)]
    pub terminal: bool,
    #[serde(deserialize_with = "or_default")]
    pub session: SessionExtras,
    #[serde(deserialize_with = "or_default", skip_serializing)]
    pub elicitation: Elicitation,
    #[serde(deserialize_with = "or_default", skip_serializing)]
    pub auth: Auth,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSystem {
    pub read_text_file: bool,
    pub write_text_file: bool,
}

/// Updates that agents send only to clients that opt in.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionExtras {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Supported,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notices: Supported,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Elicitation {
    pub form: Supported,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Auth {
    /// It can start us in a terminal.
    #[serde(deserialize_with = "or_default")]
    pub terminal: bool,
}

/// Any object means yes, whatever is in it.
pub type Supported = Option<Value>;

pub fn supported(is_supported: bool) -> Supported {
    is_supported.then(|| Value::Object(Map::new()))
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Implementation {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub version: &'static str,
}

/// An answer without a result.
#[derive(Debug, Default, Serialize)]
pub struct Empty {}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialized {
    pub protocol_version: u64,
    #[serde(deserialize_with = "or_default")]
    pub agent_capabilities: AgentCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub auth_methods: Vec<AuthMethod>,
    #[serde(skip_deserializing)]
    pub agent_info: Implementation,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    pub load_session: bool,
    #[serde(skip_deserializing)]
    pub prompt_capabilities: PromptCapabilities,
    #[serde(skip_deserializing)]
    pub mcp_capabilities: McpCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub session_capabilities: SessionCapabilities,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptCapabilities {
    pub image: bool,
    pub audio: bool,
    pub embedded_context: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct McpCapabilities {
    pub http: bool,
    pub sse: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Supported,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Supported,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Supported,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Supported,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Supported,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AuthMethod {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// With which the agent's own command logs in, in a terminal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(rename = "_meta", deserialize_with = "or_default", skip_serializing)]
    pub meta: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Authenticate {
    pub method_id: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub cwd: PathBuf,
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServer>,
}

/// The parameters of `session/load`, `session/resume` and `session/fork`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OldSession {
    pub session_id: String,
    pub cwd: PathBuf,
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServer>,
}

/// Untagged, because a server without a type is a program.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum McpServer {
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

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Remote {
    Http,
    Sse,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Pair {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListSessions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionList {
    #[serde(deserialize_with = "or_default")]
    pub sessions: Vec<SessionInfo>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionInfo {
    pub session_id: String,
    pub cwd: PathBuf,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub updated_at: Option<String>,
}

/// The answer to a session that was opened in any way.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Opened {
    /// Told where the client does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub modes: Option<Modes>,
    pub config_options: Option<Vec<ConfigOption>>,
    /// Of agents before config options.
    #[serde(skip_serializing)]
    pub models: Option<Models>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Modes {
    pub current_mode_id: String,
    #[serde(deserialize_with = "or_default")]
    pub available_modes: Vec<ModeInfo>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ModeInfo {
    pub id: Cow<'static, str>,
    #[serde(deserialize_with = "lenient")]
    pub name: Cow<'static, str>,
    #[serde(deserialize_with = "lenient")]
    pub description: Cow<'static, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Models {
    pub current_model_id: String,
    #[serde(deserialize_with = "or_default")]
    pub available_models: Vec<ModelInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelInfo {
    pub model_id: String,
    pub name: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigOption {
    pub id: Cow<'static, str>,
    #[serde(deserialize_with = "lenient")]
    pub name: Cow<'static, str>,
    pub category: Option<Cow<'static, str>>,
    #[serde(deserialize_with = "lenient")]
    pub r#type: Cow<'static, str>,
    pub current_value: Value,
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<Choice>,
}

/// A value, or a group of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Choice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOptions {
    pub config_options: Vec<ConfigOption>,
}

/// The parameters of what is about a session, and nothing else.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfSession {
    pub session_id: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetMode {
    pub session_id: String,
    pub mode_id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModel {
    pub session_id: String,
    pub model_id: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOption {
    pub session_id: String,
    pub config_id: String,
    pub value: Value,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt<'a> {
    pub session_id: Cow<'a, str>,
    pub prompt: Vec<Block<'a>>,
}

/// Borrowed where it is sent: an image may be large.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        mime_type: Cow<'a, str>,
        data: Cow<'a, str>,
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

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Resource {
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
pub struct CancelRequest {
    // Compared by value with `Id::is`: the client may spell the id differently from its request.
    pub request_id: Value,
}

/// A request for a permission, as far as its answer depends on it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PermissionRequest {
    #[serde(deserialize_with = "or_default")]
    pub options: Vec<PermissionOption<String>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionOption<S> {
    pub option_id: S,
    // What is chosen depends on the kind alone; agents word the names as they like.
    #[serde(skip_deserializing)]
    pub name: S,
    pub kind: S,
}

#[derive(Debug, Serialize)]
pub struct PermissionAnswer<'a> {
    pub outcome: PermissionOutcome<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PermissionOutcome<'a> {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: &'a str,
    },
}

/// Some write `null` for what they could leave out.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What nothing here depends on must not fail the rest.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bad value that nothing depends on does not fail the session.
    #[test]
    fn answers_are_read_leniently() {
        let json = r#"{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":7}]},
            "configOptions":[{"id":"m","type":null,"currentValue":1,"options":null}]}"#;
        let opened: Opened = serde_json::from_str(json).unwrap();
        let written = serde_json::to_string(&opened).unwrap();
        let expected = r#"{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"","description":""}]},"configOptions":[{"id":"m","name":"","category":null,"type":"","currentValue":1,"options":[]}]}"#;
        assert_eq!(written, expected);
    }
}
