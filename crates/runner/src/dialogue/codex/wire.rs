//! Messages of `codex app-server` as they travel, as far as this client sends or needs them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::engines::codex_limits;
use crate::request::{Interaction, Permissions, Prompt};

pub(super) fn initialize() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({"clientInfo": {"name": "linkspan", "title": "linkspan", "version": version}})
}

/// The parameters of `thread/start`, and with a thread those of `thread/resume` and `thread/fork`.
pub(super) fn open_thread(
    thread: Option<&str>,
    cwd: &Path,
    permissions: &Permissions,
    sandbox: Option<&str>,
    model: Option<String>,
) -> Value {
    let limits = codex_limits(permissions, Interaction::Dialogue, sandbox);
    let mut params =
        json!({"cwd": cwd, "approvalPolicy": limits.approval, "sandbox": limits.sandbox});
    if let Some(thread) = thread {
        params["threadId"] = json!(thread);
        // The history is long and not needed here.
        params["excludeTurns"] = json!(true);
    }
    if let Some(model) = model {
        params["model"] = json!(model);
    }
    params
}

/// The parameters of `thread/list` for the newest thread.
pub(super) fn newest_thread(cwd: &Path) -> Value {
    json!({
        "cwd": cwd,
        "limit": 1,
        "sortKey": "updated_at",
        // All of them.
        "modelProviders": [],
        // Without these, only what a person began by hand is listed.
        "sourceKinds": ["cli", "vscode", "exec", "appServer"],
    })
}

/// What a turn and those after it do otherwise.
pub(super) struct Changes<'a> {
    pub(super) model: Option<String>,
    pub(super) limits: Option<(&'a Permissions, Option<&'a str>)>,
}

pub(super) fn start_turn(thread: &str, prompt: &Prompt, changes: Changes<'_>) -> Value {
    let mut input = vec![json!({"type": "text", "text": prompt.text})];
    input.extend(prompt.images.iter().map(|it| {
        let url = format!("data:{};base64,{}", it.media_type, it.data);
        json!({"type": "image", "url": url})
    }));
    let mut params = json!({"threadId": thread, "input": input});
    if let Some(model) = changes.model {
        params["model"] = json!(model);
    }
    if let Some((permissions, sandbox)) = changes.limits {
        let limits = codex_limits(permissions, Interaction::Dialogue, sandbox);
        params["approvalPolicy"] = json!(limits.approval);
        // A turn spells the sandbox otherwise than a thread.
        params["sandboxPolicy"] = match limits.sandbox {
            "danger-full-access" => json!({"type": "dangerFullAccess"}),
            "workspace-write" => json!({
                "type": "workspaceWrite",
                "excludeSlashTmp": limits.is_below_cwd,
                "excludeTmpdirEnvVar": limits.is_below_cwd,
            }),
            _ => json!({"type": "readOnly"}),
        };
    }
    params
}

/// The id of the thread, or of the turn, that an answer is about; empty when there is none.
pub(super) fn id_of(what: &Value) -> String {
    what["id"].as_str().unwrap_or_default().to_owned()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Notification {
    pub(super) thread_id: Option<String>,
    pub(super) request_id: Value,
}

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
