//! The lines of the host, and the answers to it.

use std::borrow::Cow;

use model::json_line;
use runner::{Image, Prompt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of the host.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum HostLine {
    User {
        message: UserMessage,
    },
    ControlRequest {
        request_id: String,
        request: Value,
    },
    ControlResponse {
        response: HostAnswer,
    },
    /// The host no longer waits for the answer; every request is answered immediately.
    ControlCancelRequest {},
    KeepAlive {},
}

#[derive(Debug, Deserialize)]
pub(crate) struct UserMessage {
    content: UserContent,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum UserContent {
    Text(String),
    Blocks(Vec<UserBlock>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UserBlock {
    Text {
        text: String,
    },
    Image {
        source: ImageSource,
    },
    #[serde(untagged)]
    Other(Value),
}

#[derive(Debug, Deserialize)]
struct ImageSource {
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    data: String,
}

/// The host's answer to a question of ours.
#[derive(Debug, Deserialize)]
pub(crate) struct HostAnswer {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) subtype: String,
    #[serde(default)]
    pub(crate) response: Value,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

impl UserMessage {
    /// Fails on content that no engine accepts, and names it.
    pub(crate) fn prompt(self) -> Result<Prompt, String> {
        let blocks = match self.content {
            UserContent::Text(text) => return Ok(Prompt::from(&*text)),
            UserContent::Blocks(blocks) => blocks,
        };
        let mut texts = Vec::new();
        let mut images = Vec::new();
        for block in blocks {
            match block {
                UserBlock::Text { text } => texts.push(text),
                UserBlock::Image { source } if !source.data.is_empty() => images.push(Image {
                    media_type: source.media_type,
                    data: source.data,
                }),
                UserBlock::Image { .. } => {
                    return Err("an image needs its data; an address is not fetched".to_owned());
                }
                UserBlock::Other(block) => {
                    let kind = block["type"].as_str().unwrap_or("without a type");
                    return Err(format!("a block `{kind}` cannot be given to the agent"));
                }
            }
        }
        let text = texts.join("\n");
        Ok(Prompt { text, images })
    }
}

#[derive(Serialize)]
struct ControlResponse<'a> {
    r#type: &'static str,
    response: ControlOutcome<'a>,
}

#[derive(Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum ControlOutcome<'a> {
    Success {
        request_id: &'a str,
        response: &'a Value,
    },
    Error {
        request_id: &'a str,
        error: Cow<'a, str>,
    },
}

/// The answer to a request of the host.
pub(crate) fn answer(request_id: &str, answer: &Result<Value, String>) -> Vec<u8> {
    let response = match answer {
        Ok(response) => ControlOutcome::Success {
            request_id,
            response,
        },
        Err(error) => ControlOutcome::Error {
            request_id,
            error: Cow::Borrowed(error),
        },
    };
    let message = ControlResponse {
        r#type: "control_response",
        response,
    };
    json_line(&message).expect("keys are strings, and memory takes everything")
}
