//! Messages of the Agent Client Protocol as they travel, as far as this client says or needs them.
//!
//! `session/fork` and `session/set_model` are older or newer than the schema of version 1; agents
//! that have them say so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::request::{Image, McpServer, McpVia};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    protocol_version: u64,
    client_capabilities: ClientCapabilities,
    client_info: ClientInfo,
}

#[derive(Default, Serialize)]
struct ClientCapabilities {
    fs: FileSystem,
    terminal: bool,
    session: SessionExtras,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileSystem {
    read_text_file: bool,
    write_text_file: bool,
}

/// Updates that agents send only to clients that opt in.
#[derive(Default, Serialize)]
struct SessionExtras {
    compaction: Empty,
    notices: Empty,
}

#[derive(Default, Serialize)]
struct Empty {}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    version: &'static str,
}

impl Default for Initialize {
    fn default() -> Self {
        Self {
            protocol_version: super::VERSION,
            client_capabilities: ClientCapabilities::default(),
            client_info: ClientInfo {
                name: "linkspan",
                version: env!("CARGO_PKG_VERSION"),
            },
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialized {
    pub(super) protocol_version: u64,
    #[serde(deserialize_with = "or_default")]
    pub(super) agent_capabilities: AgentCapabilities,
    #[serde(deserialize_with = "or_default")]
    pub(super) auth_methods: Vec<AuthMethod>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentCapabilities {
    pub(super) load_session: bool,
    #[serde(deserialize_with = "or_default")]
    session_capabilities: SessionCapabilities,
}

/// An empty object means yes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionCapabilities {
    pub(super) list: Option<Value>,
    pub(super) resume: Option<Value>,
    pub(super) fork: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthMethod {
    pub(super) id: String,
    name: String,
    description: Option<String>,
    r#type: Option<String>,
    /// With which the agent's own command logs in, in a terminal.
    #[serde(deserialize_with = "or_default")]
    args: Vec<String>,
    #[serde(rename = "_meta", deserialize_with = "or_default")]
    meta: BTreeMap<String, Value>,
}

impl Initialized {
    pub(super) fn can(&self) -> &SessionCapabilities {
        &self.agent_capabilities.session_capabilities
    }
}

impl AuthMethod {
    /// False for a key that the agent finds in its environment.
    pub(super) fn needs_user(&self) -> bool {
        self.r#type.as_deref() != Some("env_var") && !self.meta.contains_key("api-key")
    }

    /// True for a login that only a person at a terminal can do.
    pub(super) fn is_terminal(&self) -> bool {
        self.r#type.as_deref() == Some("terminal")
    }

    /// Its name, how it is done, and the id by which it is chosen.
    pub(super) fn description(&self) -> String {
        let mut words = match &self.description {
            Some(description) => format!("{} ({description})", self.name),
            None => self.name.clone(),
        };
        if self.is_terminal() {
            let args = self.args.join(" ");
            words += &format!(": run the agent's command with `{args}` in a terminal");
        } else if !self.id.is_empty() {
            words += &format!(" [`{}`]", self.id);
        }
        words
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Authenticate<'a> {
    pub(super) method_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession<'a> {
    cwd: &'a Path,
    mcp_servers: Vec<Server<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldSession<'a> {
    session_id: &'a str,
    cwd: &'a Path,
    mcp_servers: Vec<Server<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Server<'a> {
    Stdio {
        name: &'a str,
        command: &'a str,
        args: &'a [String],
        env: Vec<Pair<'a>>,
    },
    Remote {
        r#type: &'static str,
        name: &'a str,
        url: &'a str,
        headers: Vec<Pair<'a>>,
    },
}

#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

fn servers(servers: &[McpServer]) -> Vec<Server<'_>> {
    servers.iter().map(Server::from).collect()
}

fn pairs(pairs: &[(String, String)]) -> Vec<Pair<'_>> {
    pairs
        .iter()
        .map(|(name, value)| Pair { name, value })
        .collect()
}

impl<'a> From<&'a McpServer> for Server<'a> {
    fn from(McpServer { name, via }: &'a McpServer) -> Self {
        let remote = |r#type, url, headers| Self::Remote {
            r#type,
            name,
            url,
            headers: pairs(headers),
        };
        match via {
            McpVia::Stdio { command, args, env } => Self::Stdio {
                name,
                command,
                args,
                env: pairs(env),
            },
            McpVia::Http { url, headers } => remote("http", url, headers),
            McpVia::Sse { url, headers } => remote("sse", url, headers),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ListSessions<'a> {
    pub(super) cwd: &'a Path,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionList {
    #[serde(deserialize_with = "or_default")]
    pub(super) sessions: Vec<SessionInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SessionInfo {
    pub(super) session_id: String,
    pub(super) cwd: PathBuf,
    pub(super) updated_at: Option<String>,
}

impl<'a> NewSession<'a> {
    pub(super) fn new(cwd: &'a Path, mcp_servers: &'a [McpServer]) -> Self {
        Self {
            cwd,
            mcp_servers: servers(mcp_servers),
        }
    }
}

impl<'a> OldSession<'a> {
    pub(super) fn new(session_id: &'a str, cwd: &'a Path, mcp_servers: &'a [McpServer]) -> Self {
        Self {
            session_id,
            cwd,
            mcp_servers: servers(mcp_servers),
        }
    }
}

/// The answer to `session/new`, `load`, `resume` and `fork`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Opened {
    pub(super) session_id: Option<String>,
    pub(super) config_options: Option<Vec<ConfigOption>>,
    pub(super) modes: Option<Modes>,
    pub(super) models: Option<Models>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    pub(super) id: String,
    pub(super) category: Option<String>,
    pub(super) current_value: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) options: Vec<Choice>,
}

/// A value, or a group of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub(super) value: Option<String>,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) options: Vec<Choice>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    pub(super) current_mode_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) available_modes: Vec<ModeInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModeInfo {
    pub(super) id: String,
}

/// Agents before config options offer their models like this.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    pub(super) current_model_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) available_models: Vec<ModelInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ModelInfo {
    pub(super) model_id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetConfigOption<'a> {
    pub(super) session_id: &'a str,
    pub(super) config_id: &'a str,
    pub(super) value: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModel<'a> {
    pub(super) session_id: &'a str,
    pub(super) model_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode<'a> {
    pub(super) session_id: &'a str,
    pub(super) mode_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    session_id: &'a str,
    prompt: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        mime_type: &'a str,
        data: &'a str,
    },
}

impl<'a> Prompt<'a> {
    pub(super) fn new(session_id: &'a str, prompt: &'a crate::request::Prompt) -> Self {
        let image = |Image { media_type, data }: &'a Image| Block::Image {
            mime_type: media_type,
            data,
        };
        let text = Block::Text { text: &prompt.text };
        let images = prompt.images.iter().map(image);
        Self {
            session_id,
            prompt: std::iter::once(text).chain(images).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancel<'a> {
    pub(super) session_id: &'a str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RequestPermission {
    #[serde(deserialize_with = "or_default")]
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    pub(super) kind: String,
}

#[derive(Serialize)]
pub(super) struct PermissionAnswer<'a> {
    pub(super) outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Outcome<'a> {
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: &'a str,
    },
    Cancelled,
}

/// Some agents write `null` for what they could leave out.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
