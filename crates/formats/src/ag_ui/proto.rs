//! AG-UI events in protobuf: an event's JSON in, its bytes out, behind their length.
//!
//! Numbers are those of npm `@ag-ui/proto` 1.0.0; its encoder's recorded output is the test. Fields that
//! have no number, such as ones of a later version, are left out.

use serde_json::{Map, Value};

use FieldKind::{
    Any, Calls, Flag, Interrupts, Messages, Object, Parts, Patch, Text, Texts, Usages,
};

/// Appends one event, given as JSON; false when it has no form in protobuf.
pub fn encode(event: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(Value::Object(event)) = serde_json::from_slice(event) else {
        return false;
    };
    let name = event.get("type").and_then(Value::as_str);
    let Some(row) = EVENTS.iter().find(|it| Some(it.name) == name) else {
        return false;
    };
    let mut body = MessageWriter::default();
    // What all events have is the first field of each.
    body.message(1, base(row, &event));
    fields(row.fields, &event, &mut body);
    let mut envelope = MessageWriter::default();
    envelope.message(row.number, body);
    // No event comes near it.
    let length = u32::try_from(envelope.0.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&envelope.0);
    true
}

/// An event that is not encoded field by field.
struct EventRow {
    name: &'static str,
    /// In the envelope.
    number: u64,
    /// In the enumeration of types.
    kind: u64,
    fields: &'static [(&'static str, u64, FieldKind)],
}

/// How a field is encoded.
#[derive(Clone, Copy)]
enum FieldKind {
    Text,
    Flag,
    Texts,
    /// Any JSON.
    Any,
    /// A JSON object.
    Object,
    Messages,
    Calls,
    Parts,
    Patch,
    Usages,
    Interrupts,
}

const fn row(
    name: &'static str,
    number: u64,
    kind: u64,
    fields: &'static [(&'static str, u64, FieldKind)],
) -> EventRow {
    EventRow {
        name,
        number,
        kind,
        fields,
    }
}

const SUBAGENT: &str = "subagentRunId";

// A table is read in columns: name, number in the envelope, number of the type, fields.
// 17, 18 and 29 in the envelope are the chunk events: no writer here sends them.
#[rustfmt::skip]
const EVENTS: &[EventRow] = &[
    row("TEXT_MESSAGE_START", 1, 0, &[("messageId", 2, Text), ("role", 3, Text), ("name", 4, Text), (SUBAGENT, 5, Text)]),
    row("TEXT_MESSAGE_CONTENT", 2, 1, &[("messageId", 2, Text), ("delta", 3, Text), (SUBAGENT, 4, Text)]),
    row("TEXT_MESSAGE_END", 3, 2, &[("messageId", 2, Text), (SUBAGENT, 3, Text)]),
    row("TOOL_CALL_START", 4, 3, &[("toolCallId", 2, Text), ("toolCallName", 3, Text), ("parentMessageId", 4, Text), (SUBAGENT, 5, Text)]),
    row("TOOL_CALL_ARGS", 5, 4, &[("toolCallId", 2, Text), ("delta", 3, Text), (SUBAGENT, 4, Text)]),
    row("TOOL_CALL_END", 6, 5, &[("toolCallId", 2, Text), (SUBAGENT, 3, Text)]),
    row("STATE_SNAPSHOT", 7, 6, &[("snapshot", 2, Any), (SUBAGENT, 3, Text)]),
    row("STATE_DELTA", 8, 7, &[("delta", 2, Patch), (SUBAGENT, 3, Text)]),
    row("MESSAGES_SNAPSHOT", 9, 8, &[("messages", 2, Messages)]),
    row("RAW", 10, 9, &[("event", 2, Any), ("source", 3, Text), (SUBAGENT, 4, Text)]),
    row("CUSTOM", 11, 10, &[("name", 2, Text), ("value", 3, Any), (SUBAGENT, 4, Text)]),
    row("RUN_STARTED", 12, 11, &[("threadId", 2, Text), ("runId", 3, Text), ("parentRunId", 4, Text), ("protocolVersion", 6, Text)]),
    row("RUN_FINISHED", 13, 12, &[("threadId", 2, Text), ("runId", 3, Text), ("result", 4, Any), ("outcome.type", 5, Text), ("outcome.interrupts", 6, Interrupts), ("usage", 7, Usages), ("outcome.pendingToolCallIds", 8, Texts)]),
    row("RUN_ERROR", 14, 13, &[("code", 2, Text), ("message", 3, Text), ("usage", 4, Usages)]),
    row("STEP_STARTED", 15, 14, &[("stepName", 2, Text), (SUBAGENT, 3, Text)]),
    row("STEP_FINISHED", 16, 15, &[("stepName", 2, Text), (SUBAGENT, 3, Text)]),
    row("SUBAGENT_STARTED", 19, 16, &[(SUBAGENT, 2, Text), ("name", 3, Text), ("description", 4, Text), ("parentSubagentRunId", 5, Text), ("parentToolCallId", 6, Text), ("parentMessageId", 7, Text)]),
    row("SUBAGENT_FINISHED", 20, 17, &[(SUBAGENT, 2, Text), ("result", 3, Any), ("outcome.type", 4, Text), ("outcome.interruptIds", 5, Texts)]),
    row("SUBAGENT_ERROR", 21, 18, &[(SUBAGENT, 2, Text), ("message", 3, Text), ("code", 4, Text)]),
    row("TOOL_CALL_RESULT", 22, 21, &[(SUBAGENT, 2, Text), ("messageId", 3, Text), ("toolCallId", 4, Text), ("content", 5, Text), ("role", 6, Text), ("content", 7, Parts)]),
    row("ACTIVITY_SNAPSHOT", 23, 22, &[(SUBAGENT, 2, Text), ("messageId", 3, Text), ("activityType", 4, Text), ("content", 5, Object), ("replace", 6, Flag)]),
    row("ACTIVITY_DELTA", 24, 23, &[(SUBAGENT, 2, Text), ("messageId", 3, Text), ("activityType", 4, Text), ("patch", 5, Patch)]),
    row("REASONING_START", 25, 24, &[(SUBAGENT, 2, Text), ("messageId", 3, Text)]),
    row("REASONING_MESSAGE_START", 26, 25, &[(SUBAGENT, 2, Text), ("messageId", 3, Text), ("role", 4, Text)]),
    row("REASONING_MESSAGE_CONTENT", 27, 26, &[(SUBAGENT, 2, Text), ("messageId", 3, Text), ("delta", 4, Text)]),
    row("REASONING_MESSAGE_END", 28, 27, &[(SUBAGENT, 2, Text), ("messageId", 3, Text)]),
    row("REASONING_END", 30, 29, &[(SUBAGENT, 2, Text), ("messageId", 3, Text)]),
    row("REASONING_ENCRYPTED_VALUE", 31, 30, &[(SUBAGENT, 2, Text), ("subtype", 3, Text), ("entityId", 4, Text), ("encryptedValue", 5, Text)]),
];

const MESSAGE: &[(&str, u64, FieldKind)] = &[
    ("id", 1, Text),
    ("role", 2, Text),
    // One row for each type that `content` may have: each has a number of its own.
    ("content", 3, Text),
    ("name", 4, Text),
    ("toolCalls", 5, Calls),
    ("toolCallId", 6, Text),
    ("error", 7, Text),
    ("content", 8, Parts),
    ("metadata", 9, Object),
    (SUBAGENT, 10, Text),
    ("encryptedValue", 11, Text),
    ("activityType", 12, Text),
    ("content", 13, Object),
];

const INTERRUPT: &[(&str, u64, FieldKind)] = &[
    ("id", 1, Text),
    ("reason", 2, Text),
    ("message", 3, Text),
    ("toolCallId", 4, Text),
    ("responseSchema", 5, Any),
    ("expiresAt", 6, Text),
    ("metadata", 7, Any),
    (SUBAGENT, 8, Text),
];

const USAGE: &[&str] = &[
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "reasoningTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
];

const OPERATIONS: &[&str] = &["add", "remove", "replace", "move", "copy", "test"];

fn base(row: &EventRow, event: &Map<String, Value>) -> MessageWriter {
    let mut base = MessageWriter::default();
    // Zero is what is absent.
    if row.kind != 0 {
        base.number(1, row.kind);
    }
    if let Some(at) = event.get("timestamp").and_then(Value::as_u64) {
        base.number(2, at);
    }
    if let Some(raw) = event.get("rawEvent") {
        base.message(3, any(raw));
    }
    if let Some(Value::Object(metadata)) = event.get("metadata") {
        base.message(4, object(metadata));
    }
    base
}

fn fields(rows: &[(&str, u64, FieldKind)], from: &Map<String, Value>, out: &mut MessageWriter) {
    for (name, number, kind) in rows {
        let value = match name.split_once('.') {
            Some((outer, inner)) => from.get(outer).and_then(|it| it.get(inner)),
            None => from.get(*name),
        };
        if let Some(value) = value {
            field(*number, *kind, value, out);
        }
    }
}

fn field(number: u64, kind: FieldKind, value: &Value, out: &mut MessageWriter) {
    let list = || value.as_array().into_iter().flatten();
    match (kind, value) {
        (Text, Value::String(text)) => out.text(number, text),
        // Written even when false: an absent `replace` counts as true.
        (Flag, Value::Bool(is_set)) => out.number(number, u64::from(*is_set)),
        (Texts, Value::Array(_)) => {
            list()
                .filter_map(Value::as_str)
                .for_each(|it| out.text(number, it));
        }
        (Any, value) => out.message(number, any(value)),
        (Object, Value::Object(it)) => out.message(number, object(it)),
        (Messages, _) => list().for_each(|it| out.message(number, message(it))),
        (Calls, _) => list().for_each(|it| out.message(number, call(it))),
        (Parts, _) => list().for_each(|it| out.message(number, part(it))),
        (Patch, _) => list().for_each(|it| out.message(number, operation(it))),
        (Usages, _) => list().for_each(|it| out.message(number, usage(it))),
        (Interrupts, _) => {
            let objects = list().filter_map(Value::as_object);
            objects.for_each(|it| out.message(number, from(INTERRUPT, it)));
        }
        (Text | Flag | Texts | Object, _) => (),
    }
}

fn from(rows: &[(&str, u64, FieldKind)], object: &Map<String, Value>) -> MessageWriter {
    let mut out = MessageWriter::default();
    fields(rows, object, &mut out);
    out
}

fn message(value: &Value) -> MessageWriter {
    let object = value.as_object();
    object.map_or_else(MessageWriter::default, |it| from(MESSAGE, it))
}

fn call(value: &Value) -> MessageWriter {
    let mut function = MessageWriter::default();
    function.find_text(1, &value["function"], "name");
    function.find_text(2, &value["function"], "arguments");
    let mut out = MessageWriter::default();
    out.find_text(1, value, "id");
    out.find_text(2, value, "type");
    out.message(3, function);
    out.find_text(5, value, "encryptedValue");
    out
}

fn part(value: &Value) -> MessageWriter {
    let mut body = MessageWriter::default();
    let number = match value["type"].as_str() {
        Some("text") => {
            body.find_text(1, value, "text");
            body.find_text(2, value, "id");
            body.find_any(3, value, "metadata");
            1
        }
        Some(kind) => {
            body.message(1, source(&value["source"]));
            body.find_any(2, value, "metadata");
            body.find_text(3, value, "id");
            match kind {
                "image" => 2,
                "audio" => 3,
                "video" => 4,
                _ => 5,
            }
        }
        None => return MessageWriter::default(),
    };
    let mut out = MessageWriter::default();
    out.message(number, body);
    out
}

fn source(value: &Value) -> MessageWriter {
    let mut body = MessageWriter::default();
    body.find_text(1, value, "value");
    let number = match value["type"].as_str() {
        Some("data") => 1,
        Some("url") => 2,
        _ => 3,
    };
    body.find_text(if number == 3 { 3 } else { 2 }, value, "mimeType");
    let mut out = MessageWriter::default();
    out.message(number, body);
    out
}

fn operation(value: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    let place = OPERATIONS.iter().position(|it| value["op"] == *it);
    // `add` is zero, which protobuf leaves out.
    if let Some(place) = place.filter(|it| *it > 0) {
        out.number(1, place as u64);
    }
    out.find_text(2, value, "path");
    out.find_text(3, value, "from");
    out.find_any(4, value, "value");
    out
}

fn usage(value: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    out.find_text(1, value, "provider");
    out.find_text(2, value, "model");
    for (place, name) in USAGE.iter().enumerate() {
        if let Some(count) = value[*name].as_u64() {
            out.number(3 + place as u64, count);
        }
    }
    out
}

/// `google.protobuf.Value`.
fn any(value: &Value) -> MessageWriter {
    let mut out = MessageWriter::default();
    match value {
        // Written although it is zero: without it the value would have no kind at all.
        Value::Null => out.number(1, 0),
        Value::Bool(it) => out.number(4, u64::from(*it)),
        Value::Number(it) => out.double(2, it.as_f64().unwrap_or_default()),
        Value::String(it) => out.text(3, it),
        Value::Object(it) => out.message(5, object(it)),
        Value::Array(items) => {
            let mut list = MessageWriter::default();
            items.iter().for_each(|it| list.message(1, any(it)));
            out.message(6, list);
        }
    }
    out
}

/// `google.protobuf.Struct`.
fn object(value: &Map<String, Value>) -> MessageWriter {
    let mut out = MessageWriter::default();
    for (key, value) in value {
        let mut entry = MessageWriter::default();
        entry.text(1, key);
        entry.message(2, any(value));
        out.message(1, entry);
    }
    out
}

/// A message that is being written.
#[derive(Default)]
struct MessageWriter(Vec<u8>);

impl MessageWriter {
    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: MessageWriter) {
        self.bytes(field, &message.0);
    }

    fn find_text(&mut self, field: u64, object: &Value, name: &str) {
        if let Some(text) = object[name].as_str() {
            self.text(field, text);
        }
    }

    fn find_any(&mut self, field: u64, object: &Value, name: &str) {
        if let Some(value) = object.get(name) {
            self.message(field, any(value));
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::encode;

    /// Recorded from the vendor's encoder.
    macro_rules! recorded {
        ($name:literal) => {
            (
                include_str!(concat!(
                    "../../../../fixtures/ag-ui/proto/",
                    $name,
                    ".jsonl"
                )),
                include_bytes!(concat!("../../../../fixtures/ag-ui/proto/", $name, ".bin"))
                    .as_slice(),
            )
        };
    }

    #[test]
    fn the_vendors_encoder_writes_the_same_bytes() {
        for (lines, expected) in [
            recorded!("ok"),
            recorded!("interrupt"),
            recorded!("reasoning-encrypted"),
            recorded!("commentary-tool-final"),
        ] {
            let mut out = Vec::new();
            for line in lines.lines() {
                assert!(encode(line.as_bytes(), &mut out), "{line}");
            }
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn unencodable_values_are_omitted() {
        let mut out = Vec::new();
        assert!(!encode(br#"{"type":"THINKING_START"}"#, &mut out));
        assert!(!encode(b"[]", &mut out));
        assert!(out.is_empty());
    }
}
