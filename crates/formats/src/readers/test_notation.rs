//! The one notation of events in tests: a line for each event, with everything but whole frames.
//!
//! `+` opens an item, `~` updates it, `.` adds to it and `-` closes it; other events have their
//! names. What every event of a kind has comes first, the rest as `key=value`; `(why)` marks what
//! linkspan made up, `[call]` the sub-agent it happened in. Long texts are cut.

use model::Event;
use serde_json::{Map, Value};

/// Characters shown of a text.
const MAX_TEXT: usize = 300;

/// Keys whose values stand for themselves, in the order they are shown.
const PLAIN: [&str; 16] = [
    "status", "kind", "id", "how", "cause", "outcome", "decision", "scope", "basis", "level",
    "code", "what", "channel", "title", "text", "message",
];
/// Payloads of others, shown as the JSON they are.
const RAW: [&str; 8] = [
    "input",
    "content",
    "structured",
    "meta",
    "suggestions",
    "remembered",
    "data",
    "extra",
];

pub(crate) fn event_line(event: &Event<'_>) -> String {
    let name = event.body.name();
    let head = match name {
        "item.opened" => "+",
        "item.updated" => "~",
        "item.delta" => ".",
        "item.closed" => "-",
        "session.bound" => "session",
        "ask.opened" => "ask",
        "notice.raised" => "notice",
        "usage.reported" => "usage",
        "frame.unmapped" => "unmapped",
        name => name,
    };
    let Ok(Value::Object(mut json)) = serde_json::to_value(event) else {
        return format!("{head} is nested too deeply to be shown");
    };
    let mut words = Vec::new();
    if let Some(Value::Array(path)) = json.remove("path") {
        let path: Vec<_> = path.iter().filter_map(Value::as_str).collect();
        words.push(format!("[{}]", path.join("/")));
    }
    words.push(head.to_owned());
    if let Some(Value::Object(mut data)) = json.remove("data") {
        // Elsewhere `item` is the id of one.
        if name == "item.closed"
            && let Some(Value::Object(item)) = data.remove("item")
        {
            data.extend(item);
        }
        if name == "item.delta"
            && let Some(item) = data.remove("item")
        {
            data.insert("id".to_owned(), item);
        }
        words.extend(fields(data));
    }
    if let Some(extra) = json.remove("extra") {
        words.push(format!("extra={}", cut(&extra.to_string())));
    }
    if let Some(why) = json.get("why").and_then(Value::as_str) {
        words.push(format!("({why})"));
    }
    words.join(" ")
}

fn fields(mut fields: Map<String, Value>) -> Vec<String> {
    // The whole frame, which the test itself has written.
    for whole in ["detail", "raw"] {
        fields.remove(whole);
    }
    // Of a session it is the name, of an error what the agent calls it.
    let native = fields.remove("native");
    let is_session = fields.contains_key("how");
    let key = if is_session { "id" } else { "native" };
    fields.extend(native.map(|it| (key.to_owned(), it)));
    let plain = PLAIN.iter().filter_map(|key| fields.remove(*key));
    let mut words: Vec<String> = plain.map(value).collect();
    words.extend(fields.into_iter().map(|(key, it)| {
        let shown = match &*key {
            raw if RAW.contains(&raw) => cut(&it.to_string()),
            _ => value(it),
        };
        format!("{key}={shown}")
    }));
    words
}

fn value(value: Value) -> String {
    match value {
        Value::Object(it) => format!("{{{}}}", fields(it).join(" ")),
        Value::Array(it) => {
            let all: Vec<_> = it.into_iter().map(self::value).collect();
            format!("[{}]", all.join(" "))
        }
        Value::String(it) if is_word(&it) => it,
        Value::String(it) => format!("{:?}", cut(&it)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    let is_plain = |it: char| it.is_alphanumeric() || "-_./:~".contains(it);
    !text.is_empty() && text.len() < MAX_TEXT && text.chars().all(is_plain)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}… {} more", &text[..at], text.len() - at),
        None => text.to_owned(),
    }
}
