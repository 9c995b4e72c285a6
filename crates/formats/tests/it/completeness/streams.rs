//! Everything that was said and done, in each protocol.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Call, StreamContent, check, lines, push, recorded_content, result_text, squeezed};
use crate::fixtures::{convert, recordings};

#[test]
fn in_canonical_events() {
    check(
        "linkspan",
        None,
        |it| it,
        |output| {
            let mut content = StreamContent::default();
            for event in lines(output).filter(|it| it["type"] == "item.closed") {
                let item = &event["data"]["item"];
                let text = item["text"].as_str().unwrap_or_default();
                match item["kind"].as_str().unwrap() {
                    "message" if item["role"] == "assistant" => push(&mut content.texts, text),
                    "reasoning" => push(&mut content.thoughts, text),
                    "tool" => {
                        let result = item.get("result").map(|it| result_text(&it["content"]));
                        let call = Call {
                            name: item["name"].as_str().unwrap().to_owned(),
                            input: item["input"].clone(),
                            result,
                            is_mixed: false,
                        };
                        let before = content
                            .calls
                            .insert(item["id"].as_str().unwrap().to_owned(), call);
                        assert_eq!(before, None, "the call is told twice");
                    }
                    _ => (),
                }
            }
            content
        },
    );
}

#[test]
fn in_takopi() {
    // Takopi shows no words but the answer.
    let expected = |mut content: StreamContent| {
        content.texts.clear();
        content
    };
    check("takopi", None, expected, |output| {
        let mut content = StreamContent::default();
        for event in lines(output).filter(|it| it["type"] == "action" && it["phase"] == "completed")
        {
            let action = &event["action"];
            let detail = &action["detail"];
            let id = action["id"].as_str().unwrap();
            if id.starts_with("claude.thinking.") {
                push(&mut content.thoughts, action["title"].as_str().unwrap());
            } else if let Some(name) = detail["tool_name"]
                .as_str()
                .filter(|_| action["kind"] != "warning")
            {
                let result = detail.get("content").map(result_text);
                let call = Call {
                    name: name.to_owned(),
                    input: detail["tool_input"].clone(),
                    result,
                    is_mixed: false,
                };
                assert_eq!(
                    content.calls.insert(id.to_owned(), call),
                    None,
                    "the call is told twice"
                );
            }
        }
        content
    });
}

#[test]
fn in_openhands() {
    // Words before a call are its thought; a refused call has its reason as the result.
    let words = |content: &mut StreamContent, value: &Value| {
        for part in value.as_array().into_iter().flatten() {
            push(
                &mut content.texts,
                part["text"].as_str().unwrap_or_default(),
            );
        }
    };
    let expected = |content: StreamContent| {
        let mut content = content.with_answer_as_text();
        content.texts.sort();
        content.thoughts = vec![squeezed(&content.thoughts)];
        content
    };
    check("openhands", None, expected, |output| {
        let mut content = StreamContent::default();
        for event in lines(output) {
            let id = event["tool_call_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            match event["kind"].as_str().unwrap() {
                "MessageEvent" if event["source"] == "agent" => {
                    let message = &event["llm_message"];
                    push(
                        &mut content.thoughts,
                        message["reasoning_content"].as_str().unwrap_or_default(),
                    );
                    words(&mut content, &message["content"]);
                }
                "ActionEvent" => {
                    push(
                        &mut content.thoughts,
                        event["reasoning_content"].as_str().unwrap_or_default(),
                    );
                    words(&mut content, &event["thought"]);
                    let call = Call {
                        name: event["tool_name"].as_str().unwrap().to_owned(),
                        input: event["action"]["data"].clone(),
                        result: None,
                        is_mixed: false,
                    };
                    assert_eq!(
                        content.calls.insert(id, call),
                        None,
                        "the call is told twice"
                    );
                }
                "ObservationEvent" => {
                    let text = result_text(&event["observation"]["content"]);
                    content.calls.entry(id).or_default().result = Some(text);
                }
                "UserRejectObservation" => {
                    let text = event["rejection_reason"].as_str().unwrap().to_owned();
                    content.calls.entry(id).or_default().result = Some(text);
                }
                _ => (),
            }
        }
        // Words of the main agent may wait while a sub-agent speaks.
        content.texts.sort();
        content.thoughts = vec![squeezed(&content.thoughts)];
        content
    });
}

#[test]
fn in_acp() {
    // The result of an edit is its diff; the text beside it says no more than that it worked.
    let expected = |content: StreamContent| {
        let mut content = content.with_answer_as_text();
        for call in content.calls.values_mut() {
            (call.result, call.is_mixed) = (None, false);
        }
        content
    };
    check("acp", None, expected, |output| {
        let mut content = StreamContent::default();
        let mut chunks: Vec<(String, bool, String)> = Vec::new();
        for message in lines(output) {
            let update = &message["params"]["update"];
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            match kind {
                // A break between two messages, for clients that join them.
                _ if update["_meta"]["separator"] == true => (),
                "agent_message_chunk" | "agent_thought_chunk" => {
                    let is_thought = kind == "agent_thought_chunk";
                    let id = update["messageId"].as_str().unwrap_or_default().to_owned();
                    let text = update["content"]["text"].as_str().unwrap_or_default();
                    match chunks.iter_mut().find(|(it, _, _)| *it == id) {
                        Some((_, _, content)) => content.push_str(text),
                        None => chunks.push((id, is_thought, text.to_owned())),
                    }
                }
                "tool_call" => {
                    let call = Call {
                        name: update["name"].as_str().unwrap().to_owned(),
                        input: update["rawInput"].clone(),
                        result: None,
                        is_mixed: false,
                    };
                    let id = update["toolCallId"].as_str().unwrap().to_owned();
                    assert_eq!(
                        content.calls.insert(id, call),
                        None,
                        "the call is told twice"
                    );
                }
                "tool_call_update" if update.get("rawInput").is_some() => {
                    let call = content
                        .calls
                        .get_mut(update["toolCallId"].as_str().unwrap())
                        .unwrap();
                    // A later one is what a person made of it before allowing it.
                    if call.input.is_null() {
                        call.input = update["rawInput"].clone();
                    }
                }
                _ => (),
            }
        }
        for (_, is_thought, text) in chunks {
            push(
                if is_thought {
                    &mut content.thoughts
                } else {
                    &mut content.texts
                },
                &text,
            );
        }
        content
    });
}

#[test]
fn results_in_acp() {
    for recording in recordings("claude") {
        let output = convert("claude", "acp", None, &recording.bytes, &recording.end);
        let content = recorded_content(&recording).without_foreign_items();
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for message in lines(&output) {
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "tool_call_update" && update["status"].is_string() {
                let contents = update["content"].as_array().cloned().unwrap_or_default();
                let texts: Vec<String> = contents
                    .iter()
                    .filter_map(|it| it["content"]["text"].as_str().map(str::to_owned))
                    .collect();
                found.insert(
                    update["toolCallId"].as_str().unwrap().to_owned(),
                    texts.join("\n"),
                );
            }
        }
        for (id, call) in content.calls {
            let is_edit = matches!(&*call.name, "Edit" | "Write" | "NotebookEdit");
            if let Some(result) = call.result.filter(|it| !it.is_empty() && !is_edit) {
                assert_eq!(found.get(&id), Some(&result), "{}: {id}", recording.name);
            }
        }
    }
}

#[test]
fn in_ag_ui() {
    // The arguments are the model's own words: equal as JSON, but for what the agent added to them.
    let expected = |content: StreamContent| {
        let mut content = content.with_answer_as_text();
        for call in content.calls.values_mut() {
            if let Some(input) = call.input.as_object_mut() {
                input.remove("replace_all");
            }
            if call.input.get("__unparsedToolInput").is_some() {
                call.input = Value::Null;
            }
        }
        content
    };
    check("ag-ui", None, expected, |output| {
        let mut content = StreamContent::default();
        let mut messages: Vec<(String, bool, String)> = Vec::new();
        let mut arguments: BTreeMap<String, String> = BTreeMap::new();
        for event in lines(output) {
            let kind = event["type"].as_str().unwrap();
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            match kind {
                "TEXT_MESSAGE_START" if text("role") != "user" && text("role") != "developer" => {
                    messages.push((text("messageId"), false, String::new()));
                }
                "REASONING_MESSAGE_START" => {
                    messages.push((text("messageId"), true, String::new()))
                }
                "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                    if let Some((_, _, content)) = messages
                        .iter_mut()
                        .find(|(id, _, _)| *id == text("messageId"))
                    {
                        content.push_str(&text("delta"));
                    }
                }
                "TOOL_CALL_START" => {
                    let call = Call {
                        name: text("toolCallName"),
                        ..Call::default()
                    };
                    assert_eq!(
                        content.calls.insert(text("toolCallId"), call),
                        None,
                        "the call is told twice"
                    );
                }
                "TOOL_CALL_ARGS" => arguments
                    .entry(text("toolCallId"))
                    .or_default()
                    .push_str(&text("delta")),
                "TOOL_CALL_RESULT" => {
                    content.calls.get_mut(&text("toolCallId")).unwrap().result =
                        Some(result_text(&event["content"]));
                }
                _ => (),
            }
        }
        for (id, json) in arguments {
            let mut input: Value = serde_json::from_str(&json).unwrap_or_default();
            if let Some(input) = input.as_object_mut() {
                input.remove("replace_all");
                if input.contains_key("__unparsedToolInput") {
                    input.clear();
                }
            }
            content.calls.get_mut(&id).unwrap().input =
                if input == Value::Object(serde_json::Map::new()) && json.contains("__unparsed") {
                    Value::Null
                } else {
                    input
                };
        }
        for (_, is_thought, text) in messages {
            push(
                if is_thought {
                    &mut content.thoughts
                } else {
                    &mut content.texts
                },
                &text,
            );
        }
        content
    });
}

#[test]
fn in_thread() {
    // Adjacent texts are one item there, and most typed items have no place for a tool's name.
    let expected = |content: StreamContent| {
        let mut content = content.with_answer_as_text();
        content.texts = vec![squeezed(&content.texts)];
        content.thoughts = vec![squeezed(&content.thoughts)];
        let is_plan = |name: &str| name.starts_with("Task") || name.starts_with("Todo");
        content.calls.retain(|_, call| !is_plan(&call.name));
        for call in content.calls.values_mut() {
            *call = Call {
                name: "call".to_owned(),
                ..Call::default()
            };
        }
        content
    };
    check("thread", None, expected, |output| {
        let mut content = StreamContent::default();
        for event in lines(output).filter(|it| it["type"] == "item.completed") {
            let item = &event["item"];
            let text = item["text"].as_str().unwrap_or_default();
            match item["type"].as_str().unwrap() {
                "agent_message" => push(&mut content.texts, text),
                "reasoning" => push(&mut content.thoughts, text),
                "todo_list" | "error" => (),
                _ if item["command"] == "unknown" => (),
                // A background agent is waited for in an item of its own.
                _ if item["id"].as_str().unwrap().starts_with("item_") => (),
                _ => {
                    let call = Call {
                        name: "call".to_owned(),
                        ..Call::default()
                    };
                    let id = item["id"].as_str().unwrap().to_owned();
                    assert_eq!(
                        content.calls.insert(id, call),
                        None,
                        "the call is told twice"
                    );
                }
            }
        }
        content.texts = vec![squeezed(&content.texts)];
        content.thoughts = vec![squeezed(&content.thoughts)];
        content
    });
}
