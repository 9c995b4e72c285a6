//! OpenAI Responses: `POST /v1/responses`, in the order and with the keys of the Open Responses schema 2026-04-24.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CREATED, Call, Dialect, Names};
use crate::frames::{Frames, pieces};
use crate::scenario::{Block, Early, Failure, Message, Stop, Usage};

pub(super) fn call(body: &Value) -> Result<Call, String> {
    let input = match &body["input"] {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        Value::Array(items) => items.clone(),
        _ => return Err("`input` is missing, or neither a string nor a list".to_owned()),
    };
    Ok(Call {
        model: super::model(body)?,
        is_stream: body["stream"] == true,
        is_title: super::asks_for_title(body, &super::texts(&body["instructions"])),
        wants_usage: true,
        previous: body["previous_response_id"].as_str().map(str::to_owned),
        n_history: input.len(),
        user_texts: super::text_of_role("user", &input),
    })
}

pub(super) fn stream(call: &Call, message: &Message, names: &Names<'_>, frames: &mut Frames) {
    let mut events = Events { frames, n: 0 };
    events.event(
        json!({"type": "response.created", "response": resource(call, names, "in_progress")}),
    );
    events.event(
        json!({"type": "response.in_progress", "response": resource(call, names, "in_progress")}),
    );
    let mut output = Vec::new();
    for (index, block) in message.blocks.iter().enumerate() {
        let item = item(block, names, index);
        events.event(
            json!({"type": "response.output_item.added", "output_index": index, "item": opened(block, &item)}),
        );
        if let Some(content) = content(block) {
            fill(&mut events, &content, index, &item, message.chunk.get());
        }
        events.event(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
        output.push(item);
        match message.ending.after(index) {
            None => (),
            Some(Early::Cut) => return events.frames.cut(),
            Some(Early::Fails(failure)) => {
                return fail(
                    &mut events,
                    resource(call, names, "failed"),
                    output,
                    failure,
                );
            }
        }
    }
    let response = finished(call, message, names, output);
    let kind = format!(
        "response.{}",
        response["status"].as_str().unwrap_or_default()
    );
    events.event(json!({"type": kind, "response": response}));
    events.frames.done();
}

pub(super) fn whole(call: &Call, message: &Message, names: &Names<'_>) -> Value {
    let blocks = message.blocks.iter().enumerate();
    let output = blocks
        .map(|(index, block)| item(block, names, index))
        .collect();
    finished(call, message, names, output)
}

/// Events carry a number each.
struct Events<'a> {
    frames: &'a mut Frames,
    n: u64,
}

impl Events<'_> {
    fn event(&mut self, mut data: Value) {
        data["sequence_number"] = json!(self.number());
        self.frames.event(data["type"].as_str(), &data);
    }

    fn number(&mut self) -> u64 {
        self.n += 1;
        self.n - 1
    }
}

/// An error, and then the response that failed by it.
fn fail(events: &mut Events<'_>, mut response: Value, output: Vec<Value>, failure: &Failure) {
    let code = failure.kind.as_deref().unwrap_or("server_error");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let mut error = Dialect::Responses.error(status, Some(code), &failure.message);
    error["type"] = json!("error");
    error["error"]["code"] = json!(code);
    events.event(error);
    response["output"] = json!(output);
    response["error"] = json!({"code": code, "message": failure.message});
    events.event(json!({"type": "response.failed", "response": response}));
    events.frames.done();
}

/// The response with its output, its end and its tokens.
fn finished(call: &Call, message: &Message, names: &Names<'_>, output: Vec<Value>) -> Value {
    let has_refusal = (message.blocks.iter()).any(|it| matches!(it, Block::Refusal(_)));
    let reason = match (message.stop(), has_refusal) {
        (Stop::MaxTokens, _) => Some("max_output_tokens".to_owned()),
        // A refusal with a text is an answer; one without is a filter.
        (Stop::Refusal, false) => Some("content_filter".to_owned()),
        (Stop::Verbatim(word), _) => Some(word),
        (Stop::EndTurn | Stop::ToolUse | Stop::Refusal, _) => None,
    };
    let status = match reason {
        Some(_) => "incomplete",
        None => "completed",
    };
    let mut response = resource(call, names, status);
    response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    response["completed_at"] = json!(CREATED);
    response["output"] = json!(output);
    response["usage"] = usage(&message.usage);
    response
}

/// Every key the schema requires; what a script does not say has the API's default.
fn resource(call: &Call, names: &Names<'_>, status: &str) -> Value {
    json!({
        "id": names.answer("resp"), "object": "response", "created_at": CREATED, "completed_at": null,
        "status": status, "incomplete_details": null, "model": call.model, "previous_response_id": call.previous,
        "instructions": null, "output": [], "error": null, "tools": [], "tool_choice": "auto",
        "truncation": "disabled", "parallel_tool_calls": true, "text": {"format": {"type": "text"}},
        "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "temperature": 1.0,
        "reasoning": null, "usage": null, "max_output_tokens": null, "max_tool_calls": null, "store": false,
        "background": false, "service_tier": "default", "metadata": {}, "safety_identifier": null,
        "prompt_cache_key": null,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.all_input(),
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.all_input() + usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

/// The finished item of a block.
fn item(block: &Block, names: &Names<'_>, index: usize) -> Value {
    let message = |part: Value| {
        json!({
            "type": "message", "id": names.block("msg", index), "status": "completed", "role": "assistant",
            "content": [part],
        })
    };
    let reasoning = |summary: Value, encrypted: Option<&str>| {
        let id = names.block("rs", index);
        match encrypted {
            Some(data) => {
                json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": data})
            }
            None => json!({"type": "reasoning", "id": id, "summary": summary}),
        }
    };
    match block {
        Block::Text(text) => {
            message(json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}))
        }
        Block::Refusal(text) => message(json!({"type": "refusal", "refusal": text})),
        Block::Thinking { text, signature } => reasoning(
            json!([{"type": "summary_text", "text": text}]),
            signature.as_deref(),
        ),
        Block::Redacted(data) => reasoning(json!([]), Some(data)),
        Block::Tool {
            name,
            namespace,
            input,
        } => {
            let mut call = json!({
                "type": "function_call", "id": names.block("fc", index), "call_id": names.block("call", index),
                "name": name, "arguments": input, "status": "completed",
            });
            if let Some(namespace) = namespace {
                call["namespace"] = json!(namespace);
            }
            call
        }
        Block::Custom { name, input } => json!({
            "type": "custom_tool_call", "id": names.block("ctc", index), "call_id": names.block("call", index),
            "name": name, "input": input, "status": "completed",
        }),
        Block::Raw(raw) => {
            let mut item = raw.clone();
            // The events of an item refer to it by its id.
            if item["id"].is_null() {
                item["id"] = json!(names.block("item", index));
            }
            item
        }
    }
}

/// The item as it is added: in progress, and empty where deltas follow.
fn opened(block: &Block, item: &Value) -> Value {
    let mut item = item.clone();
    let (key, empty) = match block {
        Block::Text(_) | Block::Refusal(_) => ("content", json!([])),
        Block::Thinking { .. } | Block::Redacted(_) => ("summary", json!([])),
        Block::Tool { .. } => ("arguments", json!("")),
        Block::Custom { .. } => ("input", json!("")),
        Block::Raw(_) => return item,
    };
    item[key] = empty;
    // Reasoning has no status.
    if item["status"].is_string() {
        item["status"] = json!("in_progress");
    }
    item
}

/// How the content of an item travels: the words around its deltas.
struct ContentFrames<'a> {
    text: &'a str,
    /// `EVENT.delta` fills it, `EVENT.done` says it whole under `key`.
    event: &'static str,
    key: &'static str,
    /// The part that holds the text, unless the item itself does.
    part: Option<&'static PartFrames>,
}

/// A list of parts in an item: the events about one of them, the list, and the key of its index.
struct PartFrames {
    event: &'static str,
    list: &'static str,
    index: &'static str,
}

const CONTENT: PartFrames = PartFrames {
    event: "response.content_part",
    list: "content",
    index: "content_index",
};
const SUMMARY: PartFrames = PartFrames {
    event: "response.reasoning_summary_part",
    list: "summary",
    index: "summary_index",
};

fn content(block: &Block) -> Option<ContentFrames<'_>> {
    let (text, event, key, part) = match block {
        Block::Text(text) => (text, "output_text", "text", Some(&CONTENT)),
        Block::Refusal(text) => (text, "refusal", "refusal", Some(&CONTENT)),
        Block::Thinking { text, .. } => (text, "reasoning_summary_text", "text", Some(&SUMMARY)),
        Block::Tool { input, .. } => (input, "function_call_arguments", "arguments", None),
        Block::Custom { input, .. } => (input, "custom_tool_call_input", "input", None),
        Block::Redacted(_) | Block::Raw(_) => return None,
    };
    Some(ContentFrames {
        text,
        event,
        key,
        part,
    })
}

/// A delta; streamed by the thousand, and therefore written without a detour.
#[derive(Serialize)]
struct ResponsesDelta<'a> {
    r#type: &'a str,
    sequence_number: u64,
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
    delta: &'a str,
}

/// Fills an item: its one part is added, streamed and done.
fn fill(
    events: &mut Events<'_>,
    content: &ContentFrames<'_>,
    output_index: usize,
    item: &Value,
    size: usize,
) {
    let ContentFrames {
        text,
        event,
        key,
        part,
    } = content;
    let at = |event: String| {
        let mut data = json!({"type": event, "item_id": item["id"], "output_index": output_index});
        if let Some(part) = part {
            data[part.index] = json!(0);
        }
        data
    };
    if let Some(part) = part {
        let mut added = at(format!("{}.added", part.event));
        added["part"] = item[part.list][0].clone();
        added["part"][key] = json!("");
        events.event(added);
    }
    let r#type = format!("response.{event}.delta");
    let is_in = |list: &PartFrames| part.is_some_and(|it| it.list == list.list);
    for delta in pieces(text, size) {
        let delta = ResponsesDelta {
            r#type: &r#type,
            sequence_number: events.number(),
            item_id: item["id"].as_str().unwrap_or_default(),
            output_index,
            content_index: is_in(&CONTENT).then_some(0),
            summary_index: is_in(&SUMMARY).then_some(0),
            delta,
        };
        events.frames.chunk(Some(&r#type), &delta);
    }
    let mut done = at(format!("response.{event}.done"));
    done[key] = json!(text);
    events.event(done);
    if let Some(part) = part {
        let mut done = at(format!("{}.done", part.event));
        done["part"] = item[part.list][0].clone();
        events.event(done);
    }
}
