//! OpenAI Responses: `POST /v1/responses`, in the order and with the keys of the Open Responses schema 2026-04-24.

use axum::http::StatusCode;
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
        n_history: input.len(),
        user_texts: super::said_by("user", &input),
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
        content(block, message.chunk.get(), index, &item, &mut events);
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
        self.number(&mut data);
        self.frames.event(data["type"].as_str(), &data);
    }

    fn chunk(&mut self, mut data: Value) {
        self.number(&mut data);
        self.frames.chunk(data["type"].as_str(), &data);
    }

    fn number(&mut self, data: &mut Value) {
        data["sequence_number"] = json!(self.n);
        self.n += 1;
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
    let reason = match (
        message.stop(),
        message
            .blocks
            .iter()
            .any(|it| matches!(it, Block::Refusal(_))),
    ) {
        (Stop::MaxTokens, _) => Some("max_output_tokens".to_owned()),
        // A refusal that is said is an answer; one that is not is a filter.
        (Stop::Refusal, false) => Some("content_filter".to_owned()),
        (Stop::Verbatim(word), _) => Some(word),
        (Stop::EndTurn | Stop::ToolUse | Stop::Refusal, _) => None,
    };
    let mut response = resource(
        call,
        names,
        if reason.is_some() {
            "incomplete"
        } else {
            "completed"
        },
    );
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
        "status": status, "incomplete_details": null, "model": call.model, "previous_response_id": null,
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
    if item["status"].is_string() {
        item["status"] = json!("in_progress");
    }
    item
}

fn content(block: &Block, size: usize, index: usize, item: &Value, events: &mut Events<'_>) {
    let at = |kind: &str| json!({"type": kind, "item_id": item["id"], "output_index": index});
    match block {
        Block::Text(text) => {
            let names = ["response.content_part", "response.output_text"];
            part(
                events,
                &at,
                names,
                ["content_index", "text"],
                &item["content"][0],
                text,
                size,
            );
        }
        Block::Refusal(text) => {
            let names = ["response.content_part", "response.refusal"];
            part(
                events,
                &at,
                names,
                ["content_index", "refusal"],
                &item["content"][0],
                text,
                size,
            );
        }
        Block::Thinking { text, .. } => {
            let names = [
                "response.reasoning_summary_part",
                "response.reasoning_summary_text",
            ];
            part(
                events,
                &at,
                names,
                ["summary_index", "text"],
                &item["summary"][0],
                text,
                size,
            );
        }
        Block::Tool { input, .. } => {
            argument(
                events,
                &at,
                "response.function_call_arguments",
                "arguments",
                input,
                size,
            );
        }
        Block::Custom { input, .. } => {
            argument(
                events,
                &at,
                "response.custom_tool_call_input",
                "input",
                input,
                size,
            );
        }
        Block::Redacted(_) | Block::Raw(_) => (),
    }
}

/// The one part of a message or of a reasoning: added, filled, done.
fn part(
    events: &mut Events<'_>,
    at: &impl Fn(&str) -> Value,
    [part_name, text_name]: [&str; 2],
    [index_key, text_key]: [&str; 2],
    part: &Value,
    text: &str,
    size: usize,
) {
    let at = |kind: String| {
        let mut event = at(&kind);
        event[index_key] = json!(0);
        event
    };
    let mut added = at(format!("{part_name}.added"));
    added["part"] = part.clone();
    added["part"][text_key] = json!("");
    events.event(added);
    for piece in pieces(text, size) {
        let mut delta = at(format!("{text_name}.delta"));
        delta["delta"] = json!(piece);
        events.chunk(delta);
    }
    let mut done = at(format!("{text_name}.done"));
    done[text_key] = json!(text);
    events.event(done);
    let mut done = at(format!("{part_name}.done"));
    done["part"] = part.clone();
    events.event(done);
}

fn argument(
    events: &mut Events<'_>,
    at: &impl Fn(&str) -> Value,
    name: &str,
    key: &str,
    input: &str,
    size: usize,
) {
    for piece in pieces(input, size) {
        let mut delta = at(&format!("{name}.delta"));
        delta["delta"] = json!(piece);
        events.chunk(delta);
    }
    let mut done = at(&format!("{name}.done"));
    done[key] = json!(input);
    events.event(done);
}
