//! The four wires. Each dialect reads a request into a [`Call`] and puts a scripted [`Message`] on its wire.
//!
//! What a dialect cannot express is left out; `docs/scripted-model.md` lists it.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::borrow::Cow;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::frames::Frames;
use crate::scenario::{Block, Message};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method<'a> {
    /// `model` is known here already when the path names it.
    Generate {
        model: Option<&'a str>,
        stream: Option<bool>,
    },
    CountTokens,
}

/// A request of the model, as far as the script needs it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) model: String,
    pub(crate) is_stream: bool,
    /// Asks for the title of a session; see [`asks_for_title`].
    pub(crate) is_title: bool,
    /// The chat dialect reports the tokens of a stream only on request.
    pub(crate) wants_usage: bool,
    /// The answer to continue.
    pub(crate) previous: Option<String>,
    /// How many messages the request carries.
    pub(crate) n_history: usize,
    /// The user's messages, without the results of tools.
    pub(crate) user_texts: Vec<String>,
}

/// Names of things in one answer: the same script gives the same names.
///
/// The length of the history and the number of the turn make a name new in its conversation,
/// also when the conversation is resumed against another server.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) lane: &'a str,
    pub(crate) n_history: usize,
    pub(crate) turn: usize,
}

impl Names<'_> {
    fn answer(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}_{}", self.lane, self.n_history, self.turn)
    }

    fn block(&self, prefix: &str, index: usize) -> String {
        format!("{}_{index}", self.answer(prefix))
    }
}

/// The model has no clock: what must have a time has this one (2026-01-01).
const CREATED: u64 = 1_767_225_600;

/// The paths that are served, for those who asked for another.
pub(crate) const PATHS: &str = "/v1/messages, /v1/messages/count_tokens, /v1/responses, /v1/chat/completions, \
     /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens";

impl Dialect {
    pub(crate) fn of(path: &str) -> Option<(Dialect, Method<'_>)> {
        let generate = Method::Generate {
            model: None,
            stream: None,
        };
        match path {
            "/v1/messages" => Some((Dialect::Anthropic, generate)),
            "/v1/messages/count_tokens" => Some((Dialect::Anthropic, Method::CountTokens)),
            "/v1/responses" => Some((Dialect::Responses, generate)),
            "/v1/chat/completions" => Some((Dialect::Chat, generate)),
            _ => gemini::method(path).map(|method| (Dialect::Gemini, method)),
        }
    }

    /// Reads a request; the error is a message for its sender.
    pub(crate) fn call(self, body: &Value) -> Result<Call, String> {
        match self {
            Dialect::Anthropic => anthropic::call(body),
            Dialect::Responses => responses::call(body),
            Dialect::Chat => chat::call(body),
            Dialect::Gemini => gemini::call(body),
        }
    }

    pub(crate) fn stream(self, call: &Call, message: &Message, names: &Names<'_>) -> Frames {
        let mut frames = Frames::new(&message.ending);
        match self {
            Dialect::Anthropic => anthropic::stream(call, message, names, &mut frames),
            Dialect::Responses => responses::stream(call, message, names, &mut frames),
            Dialect::Chat => chat::stream(call, message, names, &mut frames),
            Dialect::Gemini => gemini::stream(call, message, names, &mut frames),
        }
        frames
    }

    /// The same answer in one piece of JSON.
    pub(crate) fn whole(self, call: &Call, message: &Message, names: &Names<'_>) -> Value {
        match self {
            Dialect::Anthropic => anthropic::whole(call, message, names),
            Dialect::Responses => responses::whole(call, message, names),
            Dialect::Chat => chat::whole(call, message, names),
            Dialect::Gemini => gemini::whole(call, message, names),
        }
    }

    /// An error; `kind` is the vendor's usual word for the status unless the script has one.
    pub(crate) fn error(self, status: StatusCode, kind: Option<&str>, message: &str) -> Value {
        let kind = kind.unwrap_or_else(|| self.error_kind(status));
        match self {
            Dialect::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Dialect::Responses | Dialect::Chat => {
                json!({"error": {"type": kind, "message": message, "param": null, "code": null}})
            }
            Dialect::Gemini => {
                json!({"error": {"code": status.as_u16(), "message": message, "status": kind}})
            }
        }
    }

    fn error_kind(self, status: StatusCode) -> &'static str {
        match self {
            Dialect::Anthropic => anthropic::error_kind(status),
            Dialect::Responses | Dialect::Chat => openai_error_kind(status),
            Dialect::Gemini => gemini::error_kind(status),
        }
    }

    /// The size of a request in tokens: four bytes each, which is as good a guess as any.
    pub(crate) fn count(self, body: &str) -> Value {
        let n = body.len() / 4;
        match self {
            Dialect::Gemini => json!({"totalTokens": n}),
            Dialect::Anthropic | Dialect::Responses | Dialect::Chat => json!({"input_tokens": n}),
        }
    }
}

fn openai_error_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

/// A list that a request cannot be without.
fn list<'a>(body: &'a Value, key: &str) -> Result<&'a [Value], String> {
    body[key]
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| format!("`{key}` is missing, or no list"))
}

fn model(body: &Value) -> Result<String, String> {
    body["model"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| "`model` is missing, or no string".to_owned())
}

/// The texts of a message's content, which is a string or a list of parts.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|it| it["text"].as_str())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// What the messages with this role say.
fn text_of_role(role: &str, messages: &[Value]) -> Vec<String> {
    let of_role = messages.iter().filter(|it| it["role"] == role);
    of_role.flat_map(|it| texts(&it["content"])).collect()
}

/// The name and the JSON input of a call, for wires that have functions only: a namespace is a part of the name,
/// and plain text is wrapped in an object.
fn function(block: &Block) -> Option<(String, Cow<'_, str>)> {
    match block {
        Block::Tool {
            namespace,
            name,
            input,
        } => {
            let name = match namespace {
                Some(space) => format!("{space}__{name}"),
                None => name.clone(),
            };
            Some((name, Cow::Borrowed(input)))
        }
        Block::Custom { name, input } => {
            let input = json!({"input": input}).to_string();
            Some((name.clone(), Cow::Owned(input)))
        }
        Block::Text(_)
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::Refusal(_)
        | Block::Raw(_) => None,
    }
}

/// OpenCode asks for a title beside the first prompt, with the prompt's own text and without tools.
fn asks_for_title(body: &Value, instructions: &[String]) -> bool {
    let offers_tools = body["tools"].as_array().is_some_and(|it| !it.is_empty());
    !offers_tools
        && instructions
            .iter()
            .any(|it| it.contains("You are a title generator"))
}
