//! Messages of `codex app-server` as they travel, as far as this client says or needs them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engines::codex_limits;
use crate::request::{Image, Interaction, Permissions, Prompt};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    client_info: ClientInfo,
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

impl Default for Initialize {
    fn default() -> Self {
        Self {
            client_info: ClientInfo {
                name: "linkspan",
                title: "linkspan",
                version: env!("CARGO_PKG_VERSION"),
            },
        }
    }
}

/// The parameters of `account/login/start`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogIn<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<&'a str>,
}

impl Default for LogIn<'_> {
    /// Without the key, to be shown.
    fn default() -> Self {
        Self {
            r#type: "apiKey",
            api_key: None,
        }
    }
}

impl<'a> LogIn<'a> {
    pub(super) fn with(key: &'a str) -> Self {
        Self {
            api_key: Some(key),
            ..Self::default()
        }
    }
}

/// The parameters of `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenThread<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<String>,
    pub(super) cwd: &'a Path,
    #[serde(flatten)]
    pub(super) limits: Limits<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The history is long and not needed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exclude_turns: Option<bool>,
}

/// What a thread may do without asking, and whether it may ask.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Limits<'a> {
    approval_policy: &'static str,
    sandbox: &'a str,
}

impl<'a> Limits<'a> {
    pub(super) fn of(permissions: &Permissions, sandbox: Option<&'a str>) -> Self {
        let limits = codex_limits(permissions, Interaction::Dialogue, sandbox);
        Self {
            approval_policy: limits.approval,
            sandbox: limits.sandbox,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Opened {
    pub(super) thread: Thread,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    pub(super) id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListThreads<'a> {
    cwd: &'a Path,
    limit: u32,
    sort_key: &'static str,
    /// All of them.
    model_providers: [&'static str; 0],
    source_kinds: [&'static str; 4],
}

impl<'a> ListThreads<'a> {
    pub(super) fn newest(cwd: &'a Path) -> Self {
        Self {
            cwd,
            limit: 1,
            sort_key: "updated_at",
            model_providers: [],
            // Without these, only what a person began by hand is listed.
            source_kinds: ["cli", "vscode", "exec", "appServer"],
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ThreadList {
    pub(super) data: Vec<Thread>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartTurn<'a> {
    thread_id: &'a str,
    input: Vec<Input<'a>>,
    #[serde(flatten)]
    changes: Changes,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Input<'a> {
    Text { text: &'a str },
    Image { url: String },
}

/// What this turn and those after it do otherwise.
#[derive(Serialize)]
pub(super) struct Changes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(flatten)]
    pub(super) limits: Option<TurnLimits>,
}

/// The limits once more: a turn spells the sandbox otherwise than a thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnLimits {
    approval_policy: &'static str,
    sandbox_policy: SandboxPolicy,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SandboxPolicy {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude_slash_tmp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude_tmpdir_env_var: Option<bool>,
}

impl TurnLimits {
    pub(super) fn of(permissions: &Permissions, sandbox: Option<&str>) -> Self {
        let limits = codex_limits(permissions, Interaction::Dialogue, sandbox);
        let (r#type, has_folders) = match limits.sandbox {
            "danger-full-access" => ("dangerFullAccess", false),
            "workspace-write" => ("workspaceWrite", true),
            _ => ("readOnly", false),
        };
        let excludes = has_folders.then_some(limits.is_below_cwd);
        Self {
            approval_policy: limits.approval,
            sandbox_policy: SandboxPolicy {
                r#type,
                exclude_slash_tmp: excludes,
                exclude_tmpdir_env_var: excludes,
            },
        }
    }
}

impl<'a> StartTurn<'a> {
    pub(super) fn new(thread_id: &'a str, prompt: &'a Prompt, changes: Changes) -> Self {
        let image = |Image { media_type, data }: &Image| Input::Image {
            url: format!("data:{media_type};base64,{data}"),
        };
        let text = Input::Text { text: &prompt.text };
        let images = prompt.images.iter().map(image);
        Self {
            thread_id,
            input: std::iter::once(text).chain(images).collect(),
            changes,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnStarted {
    pub(super) turn: Turn,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    pub(super) id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt<'a> {
    pub(super) thread_id: &'a str,
    pub(super) turn_id: &'a str,
}

/// A notification.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Notification {
    pub(super) thread_id: Option<String>,
    pub(super) request_id: Value,
}

#[derive(Serialize)]
pub(super) struct ListModels {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelList {
    pub(super) data: Vec<Model>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) display_name: String,
    pub(super) description: Option<String>,
    pub(super) is_default: bool,
}
