//! Gemini: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse` and its whole and counting siblings.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Call, Dialect, Method, Names};
use crate::frames::{Frames, pieces};
use crate::scenario::{Block, Early, Failure, Message, Stop, Usage};

/// Takes a path apart: `/v1beta/models/MODEL:METHOD`.
pub(super) fn method(path: &str) -> Option<Method<'_>> {
    let rest = path
        .strip_prefix("/v1beta/models/")
        .or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, method) = rest.rsplit_once(':')?;
    match method {
        "streamGenerateContent" => Some(Method::Generate {
            model: Some(model),
            stream: Some(true),
        }),
        "generateContent" => Some(Method::Generate {
            model: Some(model),
            stream: Some(false),
        }),
        "countTokens" => Some(Method::CountTokens),
        _ => None,
    }
}

pub(super) fn call(body: &Value) -> Result<Call, String> {
    let contents = super::list(body, "contents")?;
    let of_user = contents.iter().filter(|it| it["role"] != "model");
    Ok(Call {
        // The path says it, and whether it is streamed.
        model: String::new(),
        is_stream: false,
        is_title: super::asks_for_title(body, &super::texts(&body["systemInstruction"]["parts"])),
        wants_usage: true,
        n_history: contents.len(),
        user_texts: of_user.flat_map(|it| super::texts(&it["parts"])).collect(),
    })
}

pub(super) fn stream(call: &Call, message: &Message, names: &Names<'_>, frames: &mut Frames) {
    for (index, block) in message.blocks.iter().enumerate() {
        parts(block, message.chunk.get(), names, index, |part| {
            frames.chunk(None, &envelope(call, names, &json!([part])));
        });
        match message.ending.after(index) {
            None => (),
            Some(Early::Cut) => return frames.cut(),
            Some(Early::Fails(Failure { kind, message })) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return frames.event(
                    None,
                    &Dialect::Gemini.error(status, kind.as_deref(), message),
                );
            }
        }
    }
    let mut last = envelope(call, names, &json!([{"text": ""}]));
    finish(&mut last, message);
    frames.event(None, &last);
}

pub(super) fn whole(call: &Call, message: &Message, names: &Names<'_>) -> Value {
    let mut all = Vec::new();
    for (index, block) in message.blocks.iter().enumerate() {
        parts(block, usize::MAX, names, index, |part| all.push(part));
    }
    let mut whole = envelope(call, names, &json!(all));
    finish(&mut whole, message);
    whole
}

pub(super) fn error_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

fn envelope(call: &Call, names: &Names<'_>, parts: &Value) -> Value {
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}],
        "modelVersion": call.model,
        "responseId": names.answer("resp"),
    })
}

fn finish(last: &mut Value, message: &Message) {
    last["candidates"][0]["finishReason"] = json!(finish_reason(message));
    last["usageMetadata"] = usage(&message.usage);
}

fn usage(usage: &Usage) -> Value {
    json!({
        "promptTokenCount": usage.all_input(),
        "cachedContentTokenCount": usage.cache_read_tokens,
        "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.all_input() + usage.output_tokens,
    })
}

fn finish_reason(message: &Message) -> String {
    let is_malformed =
        |it: &Block| matches!(it, Block::Tool { input, .. } if arguments(input).is_none());
    if message.stop.is_none() && message.blocks.iter().any(is_malformed) {
        return "MALFORMED_FUNCTION_CALL".to_owned();
    }
    match message.stop() {
        Stop::EndTurn | Stop::ToolUse => "STOP".to_owned(),
        Stop::MaxTokens => "MAX_TOKENS".to_owned(),
        Stop::Refusal => "SAFETY".to_owned(),
        Stop::Verbatim(word) => word,
    }
}

fn arguments(input: &str) -> Option<Value> {
    serde_json::from_str(input).ok().filter(Value::is_object)
}

fn parts(block: &Block, size: usize, names: &Names<'_>, index: usize, mut part: impl FnMut(Value)) {
    let call = |name: String, args: Value| json!({"functionCall": {"id": names.block("fc", index), "name": name, "args": args}});
    match block {
        Block::Text(text) | Block::Refusal(text) => {
            pieces(text, size).for_each(|it| part(json!({"text": it})))
        }
        Block::Thinking { text, signature } => {
            pieces(text, size).for_each(|it| part(json!({"text": it, "thought": true})));
            if let Some(signature) = signature {
                part(json!({"text": "", "thought": true, "thoughtSignature": signature}));
            }
        }
        // A call whose arguments are no object cannot be said here: the finish reason tells of it.
        Block::Tool {
            namespace,
            name,
            input,
        } => {
            let name = namespace
                .as_ref()
                .map_or_else(|| name.clone(), |space| format!("{space}__{name}"));
            arguments(input)
                .into_iter()
                .for_each(|args| part(call(name.clone(), args)));
        }
        Block::Custom { name, input } => part(call(name.clone(), json!({"input": input}))),
        Block::Raw(raw) => part(raw.clone()),
        Block::Redacted(_) => (), // Hidden thoughts do not travel here.
    }
}
