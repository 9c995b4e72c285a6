//! Gemini: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse` and its whole and counting siblings.

use axum::http::StatusCode;
use serde::Serialize;
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
    // The role may be absent, and is the user's then.
    let of_user = contents.iter().filter(|it| it["role"] != "model");
    Ok(Call {
        // The path says it, and whether it is streamed.
        model: String::new(),
        is_stream: false,
        is_title: super::asks_for_title(body, &super::texts(&body["systemInstruction"]["parts"])),
        wants_usage: true,
        previous: None,
        n_history: contents.len(),
        user_texts: of_user.flat_map(|it| super::texts(&it["parts"])).collect(),
    })
}

pub(super) fn stream(call: &Call, message: &Message, names: &Names<'_>, frames: &mut Frames) {
    let id = names.answer("resp");
    for (index, block) in message.blocks.iter().enumerate() {
        parts(block, message.chunk.get(), names, index, |part| {
            frames.chunk(None, &GeminiChunk::new(call, &id, vec![part]));
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
    // How it ended is part of the last chunk, which has no text of its own here.
    frames.event(
        None,
        &GeminiChunk::new(call, &id, vec![GeminiPart::text("")]).finish(message),
    );
}

pub(super) fn whole(call: &Call, message: &Message, names: &Names<'_>) -> Value {
    let id = names.answer("resp");
    let mut answer = GeminiChunk::new(call, &id, Vec::new()).finish(message);
    let all = &mut answer.candidates[0].content.parts;
    for (index, block) in message.blocks.iter().enumerate() {
        // In one piece: nothing is streamed.
        parts(block, usize::MAX, names, index, |part| all.push(part));
    }
    json!(answer)
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

/// Streamed by the thousand, and therefore written without a detour.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    candidates: [Candidate<'a>; 1],
    model_version: &'a str,
    response_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: usize,
    content: GeminiContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    role: &'static str,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum GeminiPart<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought: Option<bool>,
    },
    Other(Value),
}

impl<'a> GeminiPart<'a> {
    fn text(text: &'a str) -> GeminiPart<'a> {
        GeminiPart::Text {
            text,
            thought: None,
        }
    }
}

impl<'a> GeminiChunk<'a> {
    fn new(call: &'a Call, id: &'a str, parts: Vec<GeminiPart<'a>>) -> GeminiChunk<'a> {
        let content = GeminiContent {
            role: "model",
            parts,
        };
        GeminiChunk {
            candidates: [Candidate {
                index: 0,
                content,
                finish_reason: None,
            }],
            model_version: &call.model,
            response_id: id,
            usage_metadata: None,
        }
    }

    fn finish(mut self, message: &Message) -> GeminiChunk<'a> {
        self.candidates[0].finish_reason = Some(finish_reason(message));
        self.usage_metadata = Some(usage(&message.usage));
        self
    }
}

fn usage(usage: &Usage) -> Value {
    // Gemini counts thoughts beside the candidates; the other wires count them as output.
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

fn parts<'a>(
    block: &'a Block,
    size: usize,
    names: &Names<'_>,
    index: usize,
    mut part: impl FnMut(GeminiPart<'a>),
) {
    match block {
        Block::Text(text) | Block::Refusal(text) => {
            pieces(text, size).for_each(|it| part(GeminiPart::text(it)))
        }
        Block::Thinking { text, signature } => {
            pieces(text, size).for_each(|text| {
                part(GeminiPart::Text {
                    text,
                    thought: Some(true),
                })
            });
            if let Some(signature) = signature {
                part(GeminiPart::Other(
                    json!({"text": "", "thought": true, "thoughtSignature": signature}),
                ));
            }
        }
        // A call whose arguments are no object has no form here: the finish reason reports it.
        Block::Tool { .. } | Block::Custom { .. } => {
            let (name, input) = super::function(block).unwrap_or_default();
            if let Some(args) = arguments(&input) {
                let call = json!({"id": names.block("fc", index), "name": name, "args": args});
                part(GeminiPart::Other(json!({"functionCall": call})));
            }
        }
        Block::Raw(raw) => part(GeminiPart::Other(raw.clone())),
        Block::Redacted(_) => (), // Hidden thoughts do not travel here.
    }
}
