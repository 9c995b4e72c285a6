//! A conversation as messages: what models that remember nothing are given, and what clients that come
//! late are shown.
//!
//! The serialised form is stored with queued prompts, and hashed to recognise a thread: a changed name
//! makes stored threads unknown.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Body, Event};

/// A whole conversation, and what its client adds to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// In order, the newest last.
    pub messages: Vec<ThreadMessage>,
    /// Tools that the client runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// What the model should know besides the messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextEntry>,
    /// Parameters of the request itself, such as the temperature.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub props: Map<String, Value>,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// A JSON Schema.
    pub parameters: Option<Value>,
}

/// A named piece of knowledge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextEntry {
    pub description: String,
    pub value: String,
}

/// One message of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadMessage {
    pub id: String,
    #[serde(rename = "said")] // The digests of stored threads use this name.
    pub content: MessageContent,
}

/// The role and content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageContent {
    /// `system` and `developer`.
    Instructions(String),
    User(Content),
    Assistant {
        content: Option<String>,
        tool_calls: Vec<ToolCall>,
    },
    /// The result of a call.
    Tool {
        call: String,
        content: Content,
        error: Option<String>,
    },
    Reasoning {
        content: String,
        /// What only the provider can read.
        encrypted: Option<String>,
    },
    /// Something to look at, which no model has to know.
    Activity,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentPart {
    Text(String),
    Media {
        media: Media,
        source: MediaSource,
        filename: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Media {
    Image,
    Audio,
    Video,
    Document,
}

/// Where the bytes of a part are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaSource {
    /// In Base64.
    Data { value: String, mime_type: String },
    Url {
        value: String,
        mime_type: Option<String>,
    },
    /// A handle that some provider gave.
    File { value: String },
}

impl Content {
    /// The text alone.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|it| match it {
                    ContentPart::Text(text) => Some(text.as_str()),
                    ContentPart::Media { .. } => None,
                });
                texts.collect()
            }
        }
    }

    /// Whether there is more than text.
    pub fn has_media(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Parts(parts) => parts
                .iter()
                .any(|it| matches!(it, ContentPart::Media { .. })),
        }
    }
}

impl ThreadMessage {
    /// The text alone.
    pub fn text(&self) -> String {
        match &self.content {
            MessageContent::Instructions(text) => text.clone(),
            MessageContent::User(content) | MessageContent::Tool { content, .. } => content.text(),
            MessageContent::Assistant { content, .. } => content.clone().unwrap_or_default(),
            MessageContent::Reasoning { content, .. } => content.clone(),
            MessageContent::Activity => String::new(),
        }
    }
}

/// A run as the client that asked for it knows it; kept beside the run as a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRun {
    /// The client's own id of the run.
    pub id: String,
    /// How many messages the client sent.
    pub n_messages: usize,
    /// A hash of them.
    pub digest: String,
    /// The answers of the client's own tools for this run, which no event carries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<ToolAnswer>,
}

/// The answer of one of the client's own tools, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// The client's id of the message.
    pub id: String,
    pub call: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ToolAnswer {
    /// The new part of a request: the results after the model's last message.
    pub fn of(messages: &[ThreadMessage]) -> Vec<Self> {
        let is_assistant =
            |it: &ThreadMessage| matches!(it.content, MessageContent::Assistant { .. });
        // Clients send the whole thread again; earlier answers were stored with their own runs.
        let first = messages
            .iter()
            .rposition(is_assistant)
            .map_or(0, |it| it + 1);
        let answers = messages[first..].iter().filter_map(|it| match &it.content {
            MessageContent::Tool {
                call,
                content,
                error,
            } => Some(Self {
                id: it.id.clone(),
                call: call.clone(),
                text: content.text(),
                error: error.clone(),
            }),
            MessageContent::Instructions(_)
            | MessageContent::User(_)
            | MessageContent::Assistant { .. }
            | MessageContent::Reasoning { .. }
            | MessageContent::Activity => None,
        });
        answers.collect()
    }
}

impl ClientRun {
    /// The code of the notice.
    pub const CODE: &'static str = "client_run";

    /// The run that a notice speaks of.
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let Body::NoticeRaised(notice) = &event.body else {
            return None;
        };
        let detail = notice
            .detail
            .as_ref()
            .filter(|_| notice.code == Self::CODE)?;
        serde_json::from_str(detail.get()).ok()
    }
}
