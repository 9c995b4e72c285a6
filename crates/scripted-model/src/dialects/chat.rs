//! OpenAI Chat Completions: `POST /v1/chat/completions`, with the `reasoning_content` of compatible servers.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CREATED, Call, Dialect, Names};
use crate::frames::{Frames, pieces};
use crate::scenario::{Block, Early, Failure, Message, Stop, Usage};

pub(super) fn call(body: &Value) -> Result<Call, String> {
    let messages = super::list(body, "messages")?;
    Ok(Call {
        model: super::model(body)?,
        is_stream: body["stream"] == true,
        is_title: super::asks_for_title(body, &super::text_of_role("system", messages)),
        wants_usage: body["stream_options"]["include_usage"] == true,
        previous: None,
        n_history: messages.len(),
        user_texts: super::text_of_role("user", messages),
    })
}

pub(super) fn stream(call: &Call, message: &Message, names: &Names<'_>, frames: &mut Frames) {
    let id = names.answer("chatcmpl");
    let once = |frames: &mut Frames, message_json: Value, finish_reason: Option<String>| {
        frames.event(
            None,
            &Chunk::new(&id, call, ChatDelta::Other(message_json), finish_reason),
        );
    };
    // The role has a first chunk of its own.
    once(frames, json!({"role": "assistant", "content": ""}), None);
    let mut n_calls = 0;
    for (index, block) in message.blocks.iter().enumerate() {
        let opening = tool_call(block, names, index);
        if let Some(mut opening) = opening.clone() {
            // Calls are numbered among themselves, and clients append later arguments to these.
            opening["index"] = json!(n_calls);
            opening["function"]["arguments"] = json!("");
            once(frames, json!({"tool_calls": [opening]}), None);
        }
        deltas(block, message.chunk.get(), n_calls, |delta| {
            frames.chunk(None, &Chunk::new(&id, call, delta, None))
        });
        n_calls += usize::from(opening.is_some());
        match message.ending.after(index) {
            None => (),
            Some(Early::Cut) => return frames.cut(),
            Some(Early::Fails(Failure { kind, message })) => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return frames.event(None, &Dialect::Chat.error(status, kind.as_deref(), message));
            }
        }
    }
    once(frames, json!({}), Some(finish_reason(message)));
    // The usage has a chunk of its own, without choices.
    if call.wants_usage {
        let mut last = envelope(call, names, "chat.completion.chunk", &json!([]));
        last["usage"] = usage(&message.usage);
        frames.event(None, &last);
    }
    frames.done();
}

pub(super) fn whole(call: &Call, message: &Message, names: &Names<'_>) -> Value {
    let mut message_json = json!({"role": "assistant", "content": null});
    let mut add = |key: &str, text: &str| {
        let before = message_json[key].as_str().unwrap_or_default();
        message_json[key] = json!(format!("{before}{text}"));
    };
    for block in &message.blocks {
        match block {
            Block::Text(text) => add("content", text),
            Block::Thinking { text, .. } => add("reasoning_content", text),
            Block::Refusal(text) => add("refusal", text),
            Block::Tool { .. } | Block::Custom { .. } | Block::Redacted(_) | Block::Raw(_) => (),
        }
    }
    let blocks = message.blocks.iter().enumerate();
    let calls: Vec<Value> = blocks
        .filter_map(|(index, block)| tool_call(block, names, index))
        .collect();
    if !calls.is_empty() {
        message_json["tool_calls"] = json!(calls);
    }
    let choice =
        json!({"index": 0, "message": message_json, "finish_reason": finish_reason(message)});
    let mut whole = envelope(call, names, "chat.completion", &json!([choice]));
    whole["usage"] = usage(&message.usage);
    whole
}

fn envelope(call: &Call, names: &Names<'_>, object: &str, choices: &Value) -> Value {
    json!({
        "id": names.answer("chatcmpl"), "object": object, "created": CREATED, "model": call.model, "choices": choices,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.all_input() + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

fn finish_reason(message: &Message) -> String {
    match message.stop() {
        Stop::EndTurn => "stop".to_owned(),
        Stop::ToolUse => "tool_calls".to_owned(),
        Stop::MaxTokens => "length".to_owned(),
        Stop::Refusal => "content_filter".to_owned(),
        Stop::Verbatim(word) => word,
    }
}

fn tool_call(block: &Block, names: &Names<'_>, index: usize) -> Option<Value> {
    let (name, arguments) = super::function(block)?;
    let function = json!({"name": name, "arguments": arguments});
    Some(json!({"id": names.block("call", index), "type": "function", "function": function}))
}

/// Streamed by the thousand, and therefore written without a detour.
#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
}

impl<'a> Chunk<'a> {
    fn new(
        id: &'a str,
        call: &'a Call,
        delta: ChatDelta<'a>,
        finish_reason: Option<String>,
    ) -> Chunk<'a> {
        let choice = Choice {
            index: 0,
            delta,
            finish_reason,
        };
        Chunk {
            id,
            object: "chat.completion.chunk",
            created: CREATED,
            model: &call.model,
            choices: [choice],
        }
    }
}

#[derive(Serialize)]
struct Choice<'a> {
    index: usize,
    delta: ChatDelta<'a>,
    finish_reason: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ChatDelta<'a> {
    Content(&'a str),
    ReasoningContent(&'a str),
    Refusal(&'a str),
    ToolCalls([ToolCall<'a>; 1]),
    /// Said once, and as it is.
    #[serde(untagged)]
    Other(Value),
}

#[derive(Serialize)]
struct ToolCall<'a> {
    index: usize,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    arguments: &'a str,
}

fn deltas(block: &Block, size: usize, n_calls: usize, mut delta: impl FnMut(ChatDelta<'_>)) {
    let call = |arguments| {
        ChatDelta::ToolCalls([ToolCall {
            index: n_calls,
            function: Function { arguments },
        }])
    };
    match block {
        Block::Text(text) => pieces(text, size).for_each(|it| delta(ChatDelta::Content(it))),
        Block::Thinking { text, .. } => {
            pieces(text, size).for_each(|it| delta(ChatDelta::ReasoningContent(it)))
        }
        Block::Refusal(text) => pieces(text, size).for_each(|it| delta(ChatDelta::Refusal(it))),
        Block::Tool { .. } | Block::Custom { .. } => {
            let (_, input) = super::function(block).unwrap_or_default();
            pieces(&input, size).for_each(|it| delta(call(it)));
        }
        Block::Raw(raw) => delta(ChatDelta::Other(raw.clone())),
        Block::Redacted(_) => (), // This wire has no hidden reasoning.
    }
}
