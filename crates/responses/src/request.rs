//! A conversation as a request: `CreateResponseBody` of the Open Responses schema 2026-04-24.
//!
//! Where providers differ, each gets its own shape: OpenClaw's `source` objects and nested tools,
//! the data addresses that OpenAI wants for files. Item ids are left out, because OpenAI refuses
//! those it did not give; assistant text stays beside its calls; unanswered calls are omitted,
//! because every provider refuses them. What has no place in a request is refused by the name of its field,
//! never dropped.

mod content;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use model::{ContextEntry, MessageContent, ThreadMessage, ToolDefinition};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use self::content::{content, output};
use crate::endpoint::{Endpoint, EndpointError, Provider};
use crate::thread::Conversation;

/// The longest id of a call that the schema takes.
const MAX_CALL_ID: usize = 64;
/// The longest name of a tool that the schema takes.
const MAX_TOOL_NAME: usize = 64;
/// The fewest tokens that may be asked for.
const MIN_TOKENS: u64 = 16;

/// What a client may say about the request itself, in `forwardedProps`, under the schema's names.
const PASSED_ON: &[&str] = &[
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "reasoning",
    "text",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
    "truncation",
    "service_tier",
    "metadata",
    "include",
    "safety_identifier",
    "prompt_cache_key",
];

/// A field that no request to this endpoint can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {message}")]
pub struct UnsupportedInput {
    /// Such as `messages[2].content[0]`.
    pub field: String,
    pub message: String,
}

impl UnsupportedInput {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl From<EndpointError> for UnsupportedInput {
    fn from(err: EndpointError) -> Self {
        Self::new("model", err.to_string())
    }
}

/// The whole conversation, or what is new behind the response that `previous` names.
pub(crate) fn body(
    endpoint: &Endpoint,
    conversation: &Conversation,
    previous: Option<(&str, usize)>,
) -> Result<Value, UnsupportedInput> {
    let first = previous.map_or(0, |it| it.1);
    let thread = &conversation.thread;
    let mut body = json!({
        "model": model(endpoint, conversation)?,
        "stream": true,
        "input": input(endpoint.provider, &thread.messages, first)?,
    });
    // Sent every time: providers do not carry instructions over from the previous response.
    if let Some(instructions) = instructions(&thread.messages, &thread.context) {
        body["instructions"] = instructions.into();
    }
    if !thread.tools.is_empty() {
        body["tools"] = tools(endpoint, &thread.tools)?;
    }
    if let Some(effort) = &conversation.effort {
        body["reasoning"] = json!({ "effort": effort });
    }
    // After the effort, so that a client's own `reasoning` replaces it.
    for name in PASSED_ON {
        if let Some(value) = thread.props.get(*name).filter(|it| !it.is_null()) {
            body[*name] = value.clone();
        }
    }
    if let Some(tokens) = max_tokens(&thread.props)? {
        body["max_output_tokens"] = tokens.into();
    }
    match endpoint.provider {
        // It tells conversations apart by their user.
        Provider::OpenClaw => body["user"] = conversation.name.as_str().into(),
        Provider::OpenAi | Provider::Azure | Provider::Custom => {
            // Said in either case, because OpenAI keeps responses by default.
            body["store"] = endpoint.is_stateful.into();
        }
        Provider::HuggingFace => (),
    }
    if let Some((response, _)) = previous {
        body["previous_response_id"] = response.into();
    }
    Ok(body)
}

fn model(endpoint: &Endpoint, conversation: &Conversation) -> Result<String, UnsupportedInput> {
    let prop = |name: &str| match conversation.thread.props.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(it)) if !it.is_empty() => Ok(Some(it.clone())),
        Some(_) => {
            let field = format!("forwardedProps.{name}");
            Err(UnsupportedInput::new(field, "is not a string"))
        }
    };
    if let Some(model) = prop("model")? {
        return Ok(model);
    }
    if endpoint.provider == Provider::OpenClaw
        && let Some(agent) = prop("agent_id")?
    {
        return Ok(format!("openclaw:{agent}"));
    }
    match &conversation.model {
        Some(model) => Ok(model.clone()),
        None => Ok(endpoint.model()?.to_owned()),
    }
}

fn max_tokens(props: &Map<String, Value>) -> Result<Option<u64>, UnsupportedInput> {
    // The first is the name that clients know from older interfaces.
    let names = ["max_tokens", "max_output_tokens"];
    let prop = |name| props.get(name).filter(|it| !it.is_null());
    let Some((name, value)) = names.iter().find_map(|it| Some((it, prop(*it)?))) else {
        return Ok(None);
    };
    match value.as_u64() {
        Some(tokens) if tokens >= MIN_TOKENS => Ok(Some(tokens)),
        _ => Err(UnsupportedInput::new(
            format!("forwardedProps.{name}"),
            format!("is not a number of tokens, {MIN_TOKENS} or more"),
        )),
    }
}

/// The instructions of the application, and the context that it gives.
fn instructions(messages: &[ThreadMessage], context: &[ContextEntry]) -> Option<String> {
    let system = messages.iter().filter_map(|it| match &it.content {
        MessageContent::Instructions(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    let known = context.iter().map(|it| match it.description.as_str() {
        "" => it.value.clone(),
        description => format!("{description}:\n{}", it.value),
    });
    let all: Vec<String> = system.chain(known).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

fn tools(endpoint: &Endpoint, tools: &[ToolDefinition]) -> Result<Value, UnsupportedInput> {
    let is_nested = endpoint.provider == Provider::OpenClaw && endpoint.openclaw.nested_tools;
    let mut all = Vec::new();
    for (n, tool) in tools.iter().enumerate() {
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let is_name = (1..=MAX_TOOL_NAME).contains(&tool.name.len());
        if !is_name || !tool.name.chars().all(is_part) {
            return Err(UnsupportedInput::new(
                format!("tools[{n}].name"),
                "is no name of a tool: letters, digits, `_` and `-`, 64 at most",
            ));
        }
        let mut function = json!({ "name": tool.name, "description": tool.description });
        function["parameters"] = match &tool.parameters {
            Some(it @ Value::Object(_)) => it.clone(),
            Some(_) => {
                let field = format!("tools[{n}].parameters");
                return Err(UnsupportedInput::new(field, "is not an object"));
            }
            // A tool without parameters still needs a schema.
            None => json!({ "type": "object", "properties": {} }),
        };
        all.push(match is_nested {
            true => json!({ "type": "function", "function": function }),
            false => {
                function["type"] = "function".into();
                function
            }
        });
    }
    Ok(all.into())
}

/// The messages from `first` on, as items.
fn input(
    provider: Provider,
    messages: &[ThreadMessage],
    first: usize,
) -> Result<Vec<Value>, UnsupportedInput> {
    let new = &messages[first.min(messages.len())..];
    // A call without a result is refused by every provider.
    let answered: HashSet<&str> = new
        .iter()
        .filter_map(|it| match &it.content {
            MessageContent::Tool { call, .. } => Some(call.as_str()),
            _ => None,
        })
        .collect();
    let mut items = Vec::new();
    for (n, message) in new.iter().enumerate() {
        let field = || format!("messages[{}].content", first + n);
        match &message.content {
            MessageContent::Instructions(_) | MessageContent::Activity => (),
            MessageContent::User(text) => items.push(json!({
                "type": "message", "role": "user", "content": content(provider, text, &field)?,
            })),
            MessageContent::Assistant {
                content,
                tool_calls,
            } => {
                if let Some(text) = content.as_ref().filter(|it| !it.is_empty()) {
                    items.push(json!({ "type": "message", "role": "assistant", "content": text }));
                }
                let calls = tool_calls
                    .iter()
                    .filter(|it| answered.contains(it.id.as_str()));
                items.extend(calls.map(|call| {
                    json!({
                        "type": "function_call", "call_id": call_id(&call.id),
                        "name": call.name, "arguments": call.arguments,
                    })
                }));
            }
            MessageContent::Tool {
                call,
                content,
                error,
            } => items.push(json!({
                "type": "function_call_output", "call_id": call_id(call),
                "output": output(provider, content, error.as_deref(), &field)?,
            })),
            // A thought in words is for people; what only the provider can read is for the provider.
            MessageContent::Reasoning { encrypted, .. } => {
                items.extend(encrypted.as_ref().map(
                    |it| json!({ "type": "reasoning", "summary": [], "encrypted_content": it }),
                ))
            }
        }
    }
    Ok(items)
}

/// An id of a call that the schema takes, and that is the same every time.
fn call_id(id: &str) -> String {
    if (1..=MAX_CALL_ID).contains(&id.len()) {
        return id.to_owned();
    }
    // A hash, so that the call and its result still match, in this request and in the next.
    let hash = Sha256::digest(id.as_bytes());
    let hex: String = hash.iter().take(16).map(|it| format!("{it:02x}")).collect();
    format!("call_{hex}")
}
