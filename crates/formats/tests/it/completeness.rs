//! Everything an agent said and did can be found again in each output, exactly once, where the
//! target has a place for it. What was said is taken from the recording without our reader.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixtures::{Recording, convert, recordings};

/// What one stream holds: texts in order, and calls by id.
#[derive(Debug, Default, PartialEq)]
struct StreamContent {
    texts: Vec<String>,
    thoughts: Vec<String>,
    calls: BTreeMap<String, Call>,
    /// The answer of a run that said nothing else.
    answer: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Call {
    name: String,
    input: Value,
    /// The text of the result; `None` when there is none.
    result: Option<String>,
    is_mixed: bool,
}

/// Recordings whose text has no whole line to be taken from.
const LEFT_OUT: &[&str] = &["odd_lines", "sigterm_during_text.partial"];

/// Reads a recording as a person would: only whole lines, no partial ones.
fn recorded_content(recording: &Recording) -> StreamContent {
    let mut said = StreamContent::default();
    let mut answer = None;
    let mut questions = BTreeMap::new();
    for line in String::from_utf8_lossy(&recording.bytes).lines() {
        let Ok(mut line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if line.get("msg").is_some() {
            if line["dir"] != "out" {
                continue;
            }
            line = line["msg"].take();
        }
        if line["is_api_error_message"] == true {
            continue;
        }
        if line["type"] == "result" && line["is_error"] == false {
            answer = line["result"].as_str().map(str::to_owned);
        }
        let message = if line["message"].is_object() {
            &line["message"]
        } else {
            &line
        };
        let is_assistant =
            line["type"] == "assistant" || line["type"].is_null() && line["model"].is_string();
        for block in message["content"].as_array().into_iter().flatten() {
            said.block(block, is_assistant);
        }
        note_question(&mut questions, &line);
        if let Some(id) = interrupted_call(&line, &questions)
            && let Some(call) = said.calls.get_mut(id)
        {
            call.result = Some(String::new());
        }
    }
    if said.texts.is_empty() {
        said.answer = answer.filter(|it| !it.is_empty());
    }
    said
}

/// Keeps the questions that wait for an answer: the call that each is about, by request.
fn note_question(questions: &mut BTreeMap<String, String>, line: &Value) {
    let request = line["request_id"].as_str().unwrap_or_default();
    match line["type"].as_str() {
        Some("control_request") => {
            let call = line["request"]["tool_use_id"].as_str().unwrap_or_default();
            questions.insert(request.to_owned(), call.to_owned());
        }
        Some("control_cancel_request") => {
            questions.remove(request);
        }
        _ => (),
    }
}

/// The call that an interrupt stopped. Claude tells its model so in place of a result, and those
/// words are left out. Where a person decided, by a rule or a question, they are the reason.
fn interrupted_call<'l>(line: &'l Value, questions: &BTreeMap<String, String>) -> Option<&'l str> {
    const WORDS: &str = "The user doesn't want to proceed with this tool use.";
    let block = &line["message"]["content"][0];
    let note = &line["tool_result_meta"][0];
    let id = block["tool_use_id"].as_str()?;
    let is_stopped = block["content"].as_str()?.starts_with(WORDS)
        && note["id"] == id
        && note["non_execution_kind"] == "user-rejected"
        && note["permission_decision"].is_null();
    (is_stopped && !questions.values().any(|it| it == id)).then_some(id)
}

impl StreamContent {
    fn block(&mut self, block: &Value, is_assistant: bool) {
        if let Some(id) = block["tool_use_id"].as_str() {
            let has_more = block["content"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|it| it["type"] != "text");
            if has_more {
                // Blocks that are no text are shown in each target's own way.
                self.calls.entry(id.to_owned()).or_default().is_mixed = true;
            }
            self.calls.entry(id.to_owned()).or_default().result =
                Some(result_text(&block["content"]));
        } else if let Some(id) = block["id"].as_str() {
            let call = self.calls.entry(id.to_owned()).or_default();
            call.name = block["name"].as_str().unwrap_or_default().to_owned();
            call.input = block["input"].clone();
        } else if is_assistant && let Some(text) = block["text"].as_str() {
            push(&mut self.texts, text);
        } else if let Some(thought) = block["thinking"].as_str() {
            push(&mut self.thoughts, thought);
        }
    }

    /// A target that shows messages shows such an answer as one.
    fn with_answer_as_text(mut self) -> Self {
        self.texts.extend(self.answer.take());
        self
    }

    /// A result without a call is shown under a made-up name.
    fn without_foreign_items(mut self) -> Self {
        self.calls
            .retain(|_, call| !call.name.is_empty() && call.name != "unknown");
        self
    }
}

fn push(list: &mut Vec<String>, text: &str) {
    if !text.is_empty() {
        list.push(text.to_owned());
    }
}

/// The texts of a result, joined by line ends.
fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|it| it["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn lines(output: &str) -> impl Iterator<Item = Value> {
    let json = output
        .lines()
        .filter(|it| !it.is_empty())
        .map(|it| it.strip_prefix("data: ").unwrap_or(it));
    json.map(|it| serde_json::from_str(it).unwrap())
}

/// Compares with what `read` finds in the output of a writer.
fn check(
    to: &str,
    profile: Option<&str>,
    expected: impl Fn(StreamContent) -> StreamContent,
    read: impl Fn(&str) -> StreamContent,
) {
    let mut failures = Vec::new();
    for recording in recordings("claude")
        .iter()
        .filter(|it| !LEFT_OUT.contains(&&*it.name))
    {
        let output = convert("claude", to, profile, &recording.bytes, &recording.end);
        let mut expected = expected(recorded_content(recording).without_foreign_items());
        let mut found = read(&output).without_foreign_items();
        for (id, call) in &mut expected.calls {
            if std::mem::take(&mut call.is_mixed) {
                call.result = found.calls.get_mut(id).and_then(|it| it.result.clone());
            }
        }
        if expected.answer.take().is_some() && found.texts.is_empty() {
            found.answer = None;
        }
        if found != expected {
            failures.push(format!(
                "{}\n  said  {expected:?}\n  found {found:?}",
                recording.name
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn in_canonical_events() {
    check(
        "linkspan",
        None,
        |it| it,
        |output| {
            let mut said = StreamContent::default();
            for event in lines(output).filter(|it| it["type"] == "item.closed") {
                let item = &event["data"]["item"];
                let text = item["text"].as_str().unwrap_or_default();
                match item["kind"].as_str().unwrap() {
                    "message" if item["role"] == "assistant" => push(&mut said.texts, text),
                    "reasoning" => push(&mut said.thoughts, text),
                    "tool" => {
                        let result = item.get("result").map(|it| result_text(&it["content"]));
                        let call = Call {
                            name: item["name"].as_str().unwrap().to_owned(),
                            input: item["input"].clone(),
                            result,
                            is_mixed: false,
                        };
                        let before = said
                            .calls
                            .insert(item["id"].as_str().unwrap().to_owned(), call);
                        assert_eq!(before, None, "the call is told twice");
                    }
                    _ => (),
                }
            }
            said
        },
    );
}

#[test]
fn in_takopi() {
    // Takopi shows no words but the answer.
    let expected = |mut said: StreamContent| {
        said.texts.clear();
        said
    };
    check("takopi", None, expected, |output| {
        let mut said = StreamContent::default();
        for event in lines(output).filter(|it| it["type"] == "action" && it["phase"] == "completed")
        {
            let action = &event["action"];
            let detail = &action["detail"];
            let id = action["id"].as_str().unwrap();
            if id.starts_with("claude.thinking.") {
                push(&mut said.thoughts, action["title"].as_str().unwrap());
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
                    said.calls.insert(id.to_owned(), call),
                    None,
                    "the call is told twice"
                );
            }
        }
        said
    });
}

#[test]
fn in_openhands() {
    // Words before a call are its thought; a refused call has its reason as the result.
    let words = |said: &mut StreamContent, value: &Value| {
        for part in value.as_array().into_iter().flatten() {
            push(&mut said.texts, part["text"].as_str().unwrap_or_default());
        }
    };
    let expected = |said: StreamContent| {
        let mut said = said.with_answer_as_text();
        said.texts.sort();
        said.thoughts = vec![squeezed(&said.thoughts)];
        said
    };
    check("openhands", None, expected, |output| {
        let mut said = StreamContent::default();
        for event in lines(output) {
            let id = event["tool_call_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            match event["kind"].as_str().unwrap() {
                "MessageEvent" if event["source"] == "agent" => {
                    let message = &event["llm_message"];
                    push(
                        &mut said.thoughts,
                        message["reasoning_content"].as_str().unwrap_or_default(),
                    );
                    words(&mut said, &message["content"]);
                }
                "ActionEvent" => {
                    push(
                        &mut said.thoughts,
                        event["reasoning_content"].as_str().unwrap_or_default(),
                    );
                    words(&mut said, &event["thought"]);
                    let call = Call {
                        name: event["tool_name"].as_str().unwrap().to_owned(),
                        input: event["action"]["data"].clone(),
                        result: None,
                        is_mixed: false,
                    };
                    assert_eq!(said.calls.insert(id, call), None, "the call is told twice");
                }
                "ObservationEvent" => {
                    let text = result_text(&event["observation"]["content"]);
                    said.calls.entry(id).or_default().result = Some(text);
                }
                "UserRejectObservation" => {
                    let text = event["rejection_reason"].as_str().unwrap().to_owned();
                    said.calls.entry(id).or_default().result = Some(text);
                }
                _ => (),
            }
        }
        // Words of the main agent may wait while a sub-agent speaks.
        said.texts.sort();
        said.thoughts = vec![squeezed(&said.thoughts)];
        said
    });
}

#[test]
fn in_acp() {
    // The result of an edit is its diff; the text beside it says no more than that it worked.
    let expected = |said: StreamContent| {
        let mut said = said.with_answer_as_text();
        for call in said.calls.values_mut() {
            (call.result, call.is_mixed) = (None, false);
        }
        said
    };
    check("acp", None, expected, |output| {
        let mut said = StreamContent::default();
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
                        Some((_, _, said)) => said.push_str(text),
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
                    assert_eq!(said.calls.insert(id, call), None, "the call is told twice");
                }
                "tool_call_update" if update.get("rawInput").is_some() => {
                    let call = said
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
                    &mut said.thoughts
                } else {
                    &mut said.texts
                },
                &text,
            );
        }
        said
    });
}

#[test]
fn results_in_acp() {
    for recording in recordings("claude") {
        let output = convert("claude", "acp", None, &recording.bytes, &recording.end);
        let said = recorded_content(&recording).without_foreign_items();
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
        for (id, call) in said.calls {
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
    let expected = |said: StreamContent| {
        let mut said = said.with_answer_as_text();
        for call in said.calls.values_mut() {
            if let Some(input) = call.input.as_object_mut() {
                input.remove("replace_all");
            }
            if call.input.get("__unparsedToolInput").is_some() {
                call.input = Value::Null;
            }
        }
        said
    };
    check("ag-ui", None, expected, |output| {
        let mut said = StreamContent::default();
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
                    if let Some((_, _, said)) = messages
                        .iter_mut()
                        .find(|(id, _, _)| *id == text("messageId"))
                    {
                        said.push_str(&text("delta"));
                    }
                }
                "TOOL_CALL_START" => {
                    let call = Call {
                        name: text("toolCallName"),
                        ..Call::default()
                    };
                    assert_eq!(
                        said.calls.insert(text("toolCallId"), call),
                        None,
                        "the call is told twice"
                    );
                }
                "TOOL_CALL_ARGS" => arguments
                    .entry(text("toolCallId"))
                    .or_default()
                    .push_str(&text("delta")),
                "TOOL_CALL_RESULT" => {
                    said.calls.get_mut(&text("toolCallId")).unwrap().result =
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
            said.calls.get_mut(&id).unwrap().input =
                if input == Value::Object(serde_json::Map::new()) && json.contains("__unparsed") {
                    Value::Null
                } else {
                    input
                };
        }
        for (_, is_thought, text) in messages {
            push(
                if is_thought {
                    &mut said.thoughts
                } else {
                    &mut said.texts
                },
                &text,
            );
        }
        said
    });
}

#[test]
fn in_thread() {
    // Adjacent texts are one item there, and most typed items have no place for a tool's name.
    let expected = |said: StreamContent| {
        let mut said = said.with_answer_as_text();
        said.texts = vec![squeezed(&said.texts)];
        said.thoughts = vec![squeezed(&said.thoughts)];
        let is_plan = |name: &str| name.starts_with("Task") || name.starts_with("Todo");
        said.calls.retain(|_, call| !is_plan(&call.name));
        for call in said.calls.values_mut() {
            *call = Call {
                name: "call".to_owned(),
                ..Call::default()
            };
        }
        said
    };
    check("thread", None, expected, |output| {
        let mut said = StreamContent::default();
        for event in lines(output).filter(|it| it["type"] == "item.completed") {
            let item = &event["item"];
            let text = item["text"].as_str().unwrap_or_default();
            match item["type"].as_str().unwrap() {
                "agent_message" => push(&mut said.texts, text),
                "reasoning" => push(&mut said.thoughts, text),
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
                    assert_eq!(said.calls.insert(id, call), None, "the call is told twice");
                }
            }
        }
        said.texts = vec![squeezed(&said.texts)];
        said.thoughts = vec![squeezed(&said.thoughts)];
        said
    });
}

/// Texts without white space, in a row: equal however they were joined.
fn squeezed(texts: &[String]) -> String {
    texts.iter().flat_map(|it| it.split_whitespace()).collect()
}

#[test]
fn in_html() {
    in_page("html", |page| {
        let body = page.split_once("<body>").unwrap().1;
        let mut text = String::new();
        for piece in body.split('<') {
            text.push_str(piece.split_once('>').map_or(piece, |it| it.1));
        }
        for (name, sign) in [
            ("lt", "<"),
            ("gt", ">"),
            ("quot", "\""),
            ("#39", "'"),
            ("amp", "&"),
        ] {
            text = text.replace(&format!("&{name};"), sign);
        }
        text
    });
}

#[test]
fn in_markdown() {
    in_page("markdown", |page| {
        let mut text = rendered(page);
        for (name, sign) in [
            ("lt", "<"),
            ("gt", ">"),
            ("quot", "\""),
            ("#39", "'"),
            ("amp", "&"),
        ] {
            text = text.replace(&format!("&{name};"), sign);
        }
        text
    });
}

/// Every word, name, input and result stands somewhere on the page.
fn in_page(to: &str, text_of: impl Fn(&str) -> String) {
    /// A page cuts what is longer, and says so.
    const SHOWN: usize = 30_000;
    let flat = |text: &str| -> String { formats::display_safe(text).split_whitespace().collect() };
    let mut failures = Vec::new();
    for recording in recordings("claude") {
        if LEFT_OUT.contains(&&*recording.name) {
            continue;
        }
        let said = recorded_content(&recording)
            .without_foreign_items()
            .with_answer_as_text();
        let page = convert("claude", to, None, &recording.bytes, &recording.end);
        let page = flat(&text_of(&page));
        let mut need = |what: &str, text: &str| {
            let text = flat(text);
            let start = &text[..text.floor_char_boundary(SHOWN)];
            if !page.contains(start) {
                failures.push(format!("{}: no {what} {start:.200}", recording.name));
            }
        };
        for text in said.texts.iter().chain(&said.thoughts) {
            need("words", &rendered(text));
        }
        for call in said.calls.values() {
            // A name that people do not need stands apart: `server/tool` is `mcp__server__tool`.
            need("name", &call.name);
            for leaf in leaves(&call.input) {
                leaf.lines().for_each(|line| need("input", line));
            }
            if let Some(result) = call.result.as_ref().filter(|_| !call.is_mixed) {
                need("result", unwrapped(result));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a value is made of, whatever the order of its fields.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(nested).collect(),
        Value::Object(map) => map
            .values()
            .flat_map(|it| match it {
                Value::String(text) => vec![text.clone()],
                other => nested(other),
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

/// The same, inside of a value that is shown as JSON.
fn nested(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().flat_map(nested).collect(),
        Value::Object(map) => map.values().flat_map(nested).collect(),
        other => vec![other.to_string()],
    }
}

/// A reason that is wrapped for a model, without the wrapping.
fn unwrapped(text: &str) -> &str {
    let inner = text
        .strip_prefix("<tool_use_error>")
        .and_then(|it| it.strip_suffix("</tool_use_error>"));
    inner.unwrap_or(text)
}

/// Markdown as the words that are seen.
fn rendered(markdown: &str) -> String {
    use pulldown_cmark::{Event, Parser, Tag};
    let mut text = String::new();
    for event in Parser::new_ext(markdown, crate::pages::OPTIONS) {
        match event {
            Event::Text(it) | Event::Code(it) => text.push_str(&it),
            Event::Html(it) | Event::InlineHtml(it) => text.push_str(&it),
            Event::TaskListMarker(is_done) => text.push(if is_done { '☑' } else { '☐' }),
            Event::Start(Tag::Image { .. }) => text.push_str("picture: "),
            _ => text.push(' '),
        }
    }
    text
}
