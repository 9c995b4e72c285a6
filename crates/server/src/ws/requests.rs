//! The fields of each control. Those that several versions of the bridge's apps call otherwise have
//! aliases; what is not here is refused.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A control that takes nothing.
#[derive(Debug, Deserialize)]
pub(super) struct Nothing {}

/// Of `run.submit`, beside those of a prompt.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Submit {
    /// The client's own name for the conversation.
    #[serde(alias = "threadId", alias = "thread_id")]
    pub(super) thread_doc_id: Option<String>,
    #[serde(alias = "project_id")]
    pub(super) project_id: Option<String>,
    /// `new`, `none`, `last`, or the id of a session.
    #[serde(alias = "resume_id")]
    pub(super) resume_id: Option<String>,
    /// The prompt of this key is run once, however often it is sent.
    #[serde(alias = "idempotency_key")]
    pub(super) idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Abort {
    #[serde(alias = "session", alias = "session_id")]
    pub(super) session_id: Option<String>,
    #[serde(alias = "threadId", alias = "thread_id")]
    pub(super) thread_doc_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveQueued {
    #[serde(alias = "session", alias = "session_id")]
    pub(super) session_id: String,
    pub(super) number: u64,
}

/// Of `ask.settle`, beside those of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settle {
    #[serde(alias = "ask_id", alias = "id")]
    pub(super) ask_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct SelectProvider {
    #[serde(alias = "engine")]
    pub(super) provider: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeSession {
    pub(super) enabled: bool,
    #[serde(alias = "engine")]
    pub(super) provider: Option<String>,
    #[serde(alias = "workingDir")]
    pub(super) cwd: Option<String>,
    #[serde(alias = "session_id")]
    pub(super) session_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SaveProject {
    pub(super) project: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeleteProject {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct History {
    pub(super) limit: Option<u32>,
    /// Old apps send it to read files again that have changed since; the list has no files.
    #[expect(dead_code, reason = "it is taken and means nothing")]
    since_mtime: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Thread {
    #[serde(alias = "sessionId", alias = "session", alias = "session_id")]
    pub(super) id: String,
    /// Old apps send the file that `bridge.history` named; ours names none.
    #[expect(dead_code, reason = "it is taken and means nothing")]
    path: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Echo {
    pub(super) tag: Option<Value>,
    pub(super) payload: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subscribe {
    #[serde(alias = "session", alias = "session_id")]
    pub(super) session_id: Option<String>,
    /// A cursor, or an object of ids and cursors.
    pub(super) since: Option<Value>,
    #[serde(alias = "new_since")]
    pub(super) new_since: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unsubscribe {
    #[serde(alias = "session", alias = "session_id")]
    pub(super) session_id: Option<String>,
}
