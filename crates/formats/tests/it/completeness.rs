//! Everything an agent said and did can be found again in each output, exactly once, where the
//! target has a place for it. What was said is taken from the recording without our reader.

mod pages;
mod streams;

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
    let mut content = StreamContent::default();
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
            content.block(block, is_assistant);
        }
        note_question(&mut questions, &line);
        if let Some(id) = interrupted_call(&line, &questions)
            && let Some(call) = content.calls.get_mut(id)
        {
            call.result = Some(String::new());
        }
    }
    if content.texts.is_empty() {
        content.answer = answer.filter(|it| !it.is_empty());
    }
    content
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
                "{}\n  expected {expected:?}\n  found    {found:?}",
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

/// Texts without white space, in a row: equal however they were joined.
fn squeezed(texts: &[String]) -> String {
    texts.iter().flat_map(|it| it.split_whitespace()).collect()
}
