//! What the goldens do not show: a live connection, and odd inputs.

use model::Event;
use serde_json::{Value, json};

use super::*;

fn event(seq: u64, name: &str, data: &Value) -> String {
    json!({
        "v": 1, "seq": seq, "session": "ours", "run": "r1", "engine": "other", "origin": "agent",
        "type": name, "data": data,
    })
    .to_string()
}

/// A run in which a tool is asked about.
fn asked() -> Vec<String> {
    let call = json!({"kind": "tool", "id": "t", "name": "shell", "input": "ls -l", "class": {"kind": "shell", "title": "ls"}});
    let mut closed = call.clone();
    closed["result"] = json!({"content": "a"});
    let bodies = [
        ("run.started", json!({"cause": "prompt"})),
        (
            "item.opened",
            json!({"kind": "message", "id": "p", "role": "user", "text": ""}),
        ),
        (
            "item.closed",
            json!({"status": "ok", "item": {"kind": "message", "id": "p", "role": "user", "text": "go"}}),
        ),
        ("item.opened", call),
        (
            "ask.opened",
            json!({"id": "q", "kind": "permission", "item": "t", "tool": "shell", "title": "ls"}),
        ),
        ("ask.settled", json!({"id": "q", "decision": "allowed"})),
        ("item.closed", json!({"status": "ok", "item": closed})),
        (
            "run.ended",
            json!({"outcome": "completed", "answer": "done"}),
        ),
    ];
    let numbered = bodies.iter().zip(1..);
    numbered
        .map(|((name, data), seq)| event(seq, name, data))
        .collect()
}

fn types(lines: &[u8]) -> Vec<String> {
    let lines = lines.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    let lines = lines.map(|it| serde_json::from_slice::<Value>(it).unwrap());
    lines
        .map(|it| match it["type"].as_str().unwrap() {
            "system" => it["subtype"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        })
        .collect()
}

#[test]
fn a_file_has_the_prompt_and_the_questions() {
    let mut writer = Claude::new(&WriterConfig::default());
    let mut out = Vec::new();
    for line in asked() {
        writer.event(&Event::from_json(&line).unwrap(), &mut out);
    }
    writer.end(&mut out);
    let expected = [
        "init",
        "user",
        "assistant",
        "control_request",
        "user",
        "result",
    ];
    assert_eq!(types(&out), expected);
    let losses: Vec<_> = writer.losses().iter().collect();
    assert_eq!(losses, [("answer to an ask", 1)]);
    // A tool takes an object.
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(r#""input":{"input":"ls -l"}"#), "{text}");
}

#[test]
fn a_host_gets_its_questions_apart_and_not_its_own_prompts() {
    let mut writer = ClaudeAgent::new("ours", ClaudeClient::default());
    writer.introduce("/w", Some("m"), "plan");
    let mut out = Vec::new();
    let mut asked_for = Vec::new();
    for line in asked() {
        writer.event(&Event::from_json(&line).unwrap(), &mut out);
        asked_for.extend(writer.take_requests());
    }
    assert_eq!(types(&out), ["init", "assistant", "user", "result"]);
    assert_eq!(types(&asked_for[0].line), ["control_request"]);
    assert_eq!((asked_for.len(), &*asked_for[0].ask), (1, "q"));
    let init: Value = serde_json::from_slice(out.split(|it| *it == b'\n').next().unwrap()).unwrap();
    let known = json!([
        init["cwd"],
        init["model"],
        init["permissionMode"],
        init["skills"]
    ]);
    assert_eq!(known, json!(["/w", "m", "plan", []]));
}

#[test]
fn a_turn_that_no_event_ends_has_a_result() {
    let mut writer = ClaudeAgent::new("ours", ClaudeClient::default());
    let mut out = Vec::new();
    writer.fail(model::Outcome::Failed, "no agent", &mut out);
    assert_eq!(types(&out), ["init", "result"]);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(r#""errors":["no agent"]"#), "{text}");
}
