//! Anthropic Messages: `POST /v1/messages`, as the API's reference and Claude Code's own traffic have it.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Call, Dialect, Names};
use crate::frames::{Frames, pieces};
use crate::scenario::{Block, Early, Message, Stop, Usage};

/// Thinking must be signed; the signature is not checked here.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub(super) fn call(body: &Value) -> Result<Call, String> {
    let messages = super::list(body, "messages")?;
    Ok(Call {
        model: super::model(body)?,
        is_stream: body["stream"] == true,
        is_title: super::asks_for_title(body, &super::texts(&body["system"])),
        wants_usage: true,
        previous: None,
        n_history: messages.len(),
        user_texts: super::text_of_role("user", messages),
    })
}

pub(super) fn stream(call: &Call, message: &Message, names: &Names<'_>, frames: &mut Frames) {
    let event = |frames: &mut Frames, data: Value| {
        frames.event(data["type"].as_str(), &data);
    };
    let mut start = head(call, names);
    // As the API has it: the real number of output tokens comes with `message_delta`.
    start["usage"] = usage(&message.usage, 1);
    event(frames, json!({"type": "message_start", "message": start}));
    for (index, block) in message.blocks.iter().enumerate() {
        let empty = empty(block, names, index);
        event(
            frames,
            json!({"type": "content_block_start", "index": index, "content_block": empty}),
        );
        deltas(block, message.chunk.get(), |delta| {
            let r#type = "content_block_delta";
            frames.chunk(
                Some(r#type),
                &BlockDelta {
                    r#type,
                    index,
                    delta,
                },
            );
        });
        event(
            frames,
            json!({"type": "content_block_stop", "index": index}),
        );
        match message.ending.after(index) {
            None => (),
            Some(Early::Cut) => return frames.cut(),
            Some(Early::Fails(failure)) => {
                let kind = failure.kind.as_deref().unwrap_or("overloaded_error");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return event(
                    frames,
                    Dialect::Anthropic.error(status, Some(kind), &failure.message),
                );
            }
        }
    }
    let delta = json!({"stop_reason": stop_reason(message), "stop_sequence": null});
    let usage = json!({"output_tokens": message.usage.output_tokens});
    event(
        frames,
        json!({"type": "message_delta", "delta": delta, "usage": usage}),
    );
    event(frames, json!({"type": "message_stop"}));
}

pub(super) fn whole(call: &Call, message: &Message, names: &Names<'_>) -> Value {
    let blocks = message.blocks.iter().enumerate();
    let mut whole = head(call, names);
    whole["content"] = blocks
        .map(|(index, block)| full(block, names, index))
        .collect();
    whole["stop_reason"] = json!(stop_reason(message));
    whole["usage"] = usage(&message.usage, message.usage.output_tokens);
    whole
}

pub(super) fn error_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

fn head(call: &Call, names: &Names<'_>) -> Value {
    json!({
        "id": names.answer("msg"), "type": "message", "role": "assistant", "model": call.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

fn usage(usage: &Usage, output_tokens: u64) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    })
}

fn stop_reason(message: &Message) -> String {
    match message.stop() {
        Stop::EndTurn => "end_turn".to_owned(),
        Stop::ToolUse => "tool_use".to_owned(),
        Stop::MaxTokens => "max_tokens".to_owned(),
        Stop::Refusal => "refusal".to_owned(),
        Stop::Verbatim(word) => word,
    }
}

/// A block as it is opened: what the deltas fill is still empty.
fn empty(block: &Block, names: &Names<'_>, index: usize) -> Value {
    match block {
        // Clients append the deltas to what the block begins with.
        Block::Text(_) | Block::Refusal(_) => json!({"type": "text", "text": ""}),
        Block::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Block::Tool { .. } | Block::Custom { .. } | Block::Redacted(_) | Block::Raw(_) => {
            let mut opened = full(block, names, index);
            // A call begins with an empty object, and its input is streamed as text.
            if let Some(input) = opened.get_mut("input") {
                *input = json!({});
            }
            opened
        }
    }
}

fn full(block: &Block, names: &Names<'_>, index: usize) -> Value {
    match block {
        Block::Text(text) | Block::Refusal(text) => json!({"type": "text", "text": text}),
        Block::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or(SIGNATURE)})
        }
        Block::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Block::Tool { .. } | Block::Custom { .. } => {
            let (name, input) = super::function(block).unwrap_or_default();
            // Input that is no JSON cannot stand in JSON; only a stream carries it.
            let input: Value = serde_json::from_str(&input).unwrap_or_default();
            json!({"type": "tool_use", "id": names.block("toolu", index), "name": name, "input": input})
        }
        Block::Raw(raw) => raw.clone(),
    }
}

/// Streamed by the thousand, and therefore written without a detour.
#[derive(Serialize)]
struct BlockDelta<'a> {
    r#type: &'static str,
    index: usize,
    delta: AnthropicDelta<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the wire's own words")]
enum AnthropicDelta<'a> {
    TextDelta { text: &'a str },
    ThinkingDelta { thinking: &'a str },
    SignatureDelta { signature: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

fn deltas(block: &Block, size: usize, mut delta: impl FnMut(AnthropicDelta<'_>)) {
    let mut input_deltas = |input: &str| {
        pieces(input, size)
            .for_each(|partial_json| delta(AnthropicDelta::InputJsonDelta { partial_json }));
    };
    match block {
        Block::Tool { .. } | Block::Custom { .. } => {
            input_deltas(&super::function(block).unwrap_or_default().1);
        }
        // The vendor's own tools are called like the others.
        Block::Raw(raw) => {
            input_deltas(&raw.get("input").map(Value::to_string).unwrap_or_default())
        }
        Block::Text(text) | Block::Refusal(text) => {
            pieces(text, size).for_each(|text| delta(AnthropicDelta::TextDelta { text }));
        }
        Block::Thinking { text, signature } => {
            pieces(text, size)
                .for_each(|thinking| delta(AnthropicDelta::ThinkingDelta { thinking }));
            // It signs the whole thought, and so comes last.
            delta(AnthropicDelta::SignatureDelta {
                signature: signature.as_deref().unwrap_or(SIGNATURE),
            });
        }
        Block::Redacted(_) => (),
    }
}
