//! Lines and frames as consumers take them: of a bounded size, on one line for everybody, under one
//! session id, and with a name for every call.

use formats::registry::FORMATS;
use model::End;
use serde_json::{Value, json};

use crate::fixtures::{convert, recordings};

fn claude(lines: &[Value]) -> String {
    let init = json!({"type": "system", "subtype": "init", "session_id": "n", "cwd": "/w", "model": "m", "tools": []});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": "n"});
    let lines = [&init].into_iter().chain(lines).chain([&result]);
    lines.map(|it| format!("{it}\n")).collect()
}

fn assistant_line(id: &str, block: Value) -> Value {
    json!({"type": "assistant", "session_id": "n", "message": {"id": id, "content": [block]}})
}

fn written(to: &str, profile: Option<&str>, bytes: &str) -> String {
    convert("claude", to, profile, bytes.as_bytes(), &End::default())
}

/// Every JSON target, with each of its profiles.
fn targets() -> Vec<(&'static str, Option<&'static str>)> {
    let pages = ["text", "markdown", "html"];
    let formats = FORMATS
        .iter()
        .filter(|it| it.writer.is_some() && !pages.contains(&it.name));
    formats
        .flat_map(|it| {
            let profiles = it
                .profiles
                .iter()
                .map(|profile| (it.name, Some(profile.name)));
            std::iter::once((it.name, None)).chain(profiles)
        })
        .collect()
}

#[test]
fn a_text_larger_than_a_frame_goes_out_in_several() {
    let text = "é\u{1}x".repeat(3 * 1024 * 1024);
    let bytes = claude(&[
        assistant_line(
            "m1",
            json!({"type": "thinking", "thinking": text, "signature": ""}),
        ),
        assistant_line("m1", json!({"type": "text", "text": text})),
        assistant_line(
            "m2",
            json!({"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "/w/a", "content": text}}),
        ),
        json!({"type": "user", "session_id": "n", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]}}),
    ]);
    for profile in [None, Some("thinking")] {
        let out = written("ag-ui", profile, &bytes);
        let mut joined = [String::new(), String::new()];
        for frame in out.split("\n\n").filter(|it| !it.is_empty()) {
            assert!(frame.len() < 10_000_000, "a frame of {} bytes", frame.len());
            let event: Value = serde_json::from_str(&frame["data: ".len()..]).unwrap();
            let kind = event["type"].as_str().unwrap();
            let delta = event["delta"].as_str().unwrap_or_default();
            match kind {
                "TEXT_MESSAGE_CONTENT" => joined[0].push_str(delta),
                "REASONING_MESSAGE_CONTENT" | "THINKING_TEXT_MESSAGE_CONTENT" => {
                    joined[1].push_str(delta);
                }
                _ => (),
            }
        }
        assert!(
            joined.iter().all(|it| *it == text),
            "the pieces are the text"
        );
    }
}

#[test]
fn an_acp_stream_has_one_session_id() {
    for from in ["claude", "codex", "opencode", "gemini", "openhands"] {
        for recording in recordings(from) {
            let out = convert(from, "acp", None, &recording.bytes, &recording.end);
            let lines = out
                .lines()
                .map(|it| serde_json::from_str::<Value>(it).unwrap());
            let ids = lines.filter_map(|it| Some(it["params"]["sessionId"].as_str()?.to_owned()));
            let mut ids: Vec<String> = ids.collect();
            ids.dedup();
            assert!(ids.len() <= 1, "{from} {}: {ids:?}", recording.name);
        }
    }
}

#[test]
fn a_call_without_a_name_has_one_in_every_target() {
    let bytes = claude(&[
        assistant_line(
            "m1",
            json!({"type": "tool_use", "id": "t", "name": "", "input": {"a": 1}}),
        ),
        json!({"type": "user", "session_id": "n", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}}),
    ]);
    let keys = ["name", "toolCallName", "tool_name", "tool", "toolName"];
    for (to, profile) in targets() {
        let out = written(to, profile, &bytes);
        for line in out.lines().filter(|it| !it.is_empty()) {
            let json = line.strip_prefix("data: ").unwrap_or(line);
            let value: Value = serde_json::from_str(json).unwrap();
            each(&value, &mut |key, value| {
                let is_blank = value.as_str().is_some_and(|it| it.trim().is_empty());
                assert!(
                    !(keys.contains(&key) && is_blank),
                    "{to} {profile:?}: {line}"
                );
            });
        }
    }
}

fn each(value: &Value, found: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                found(key, value);
                each(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|it| each(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

#[test]
fn unicode_line_breaks_are_escaped() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d";
    let bytes = claude(&[
        assistant_line(odd, json!({"type": "text", "text": odd})),
        assistant_line(
            "m2",
            json!({"type": "tool_use", "id": odd, "name": odd, "input": {"command": odd, odd: odd}}),
        ),
        json!({"type": "user", "session_id": "n", "message": {"content": [{"type": "tool_result", "tool_use_id": odd, "content": odd}]}, "tool_use_result": {odd: odd}}),
        json!({"type": odd, "session_id": "n", odd: odd}),
    ]);
    for (to, profile) in targets() {
        let out = written(to, profile, &bytes);
        let raw = out.find(['\u{2028}', '\u{2029}', '\u{85}']);
        assert_eq!(raw, None, "{to} {profile:?}: {out}");
        assert!(
            out.contains("\\u2028"),
            "{to} {profile:?} says it escaped: {out}"
        );
    }
}

#[test]
fn messages_of_one_turn_are_apart_for_clients_that_join_them() {
    let bytes = claude(&[
        assistant_line("m1", json!({"type": "text", "text": "I will edit."})),
        assistant_line(
            "m2",
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}),
        ),
        json!({"type": "user", "session_id": "n", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}}),
        assistant_line("m3", json!({"type": "text", "text": "All done."})),
    ]);
    let out = written("acp", None, &bytes);
    let chunks = out.lines().filter_map(|it| {
        let line: Value = serde_json::from_str(it).unwrap();
        let update = &line["params"]["update"];
        let is_chunk = update["sessionUpdate"] == "agent_message_chunk";
        is_chunk.then(|| update["content"]["text"].as_str().unwrap().to_owned())
    });
    assert_eq!(chunks.collect::<String>(), "I will edit.\n\nAll done.");
    // Read back, it is what was said.
    let back = convert("acp", "linkspan", None, out.as_bytes(), &End::default());
    let texts = back.lines().filter_map(|it| {
        let event: Value = serde_json::from_str(it).unwrap();
        let item = &event["data"]["item"];
        let is_said = event["type"] == "item.closed" && item["role"] == "assistant";
        is_said.then(|| item["text"].as_str().unwrap().to_owned())
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["I will edit.", "All done."]);
}
