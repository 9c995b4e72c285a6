//! Turns over ACP: asked, cancelled, failed, and how each of them ends.

use serde_json::{Value, json};

use super::client::{Client, answers, made};
use crate::program::{Folder, linkspan};

#[test]
fn a_cancelled_turn_ends_as_cancelled_and_the_next_one_works() {
    let folder = made("acp-cancel");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    // There is nothing to cancel yet.
    client.notify("session/cancel", json!({"sessionId": session}));
    let hanging = client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    let second = client.prompt(&session, "hello");
    let refused = client.answer(second);
    let message = "the session is at work on a prompt; cancel it or wait for its end";
    assert_eq!(
        refused["error"],
        json!({"code": -32600, "message": message})
    );
    client.notify("session/cancel", json!({"sessionId": session}));
    let cancelled = client.answer(hanging);
    assert_eq!(cancelled["result"], json!({"stopReason": "cancelled"}));
    let asked = client.prompt(&session, "ask me");
    client.until(|it| it["method"] == "session/request_permission");
    client.notify("$/cancel_request", json!({"requestId": asked}));
    let cancelled = client.answer(asked);
    assert_eq!(cancelled["result"], json!({"stopReason": "cancelled"}));
    let third = client.prompt(&session, "hello");
    let answer = client.answer(third);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn an_agent_that_dies_is_an_error_and_the_next_prompt_starts_another() {
    let folder = made("acp-dies");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "die");
    let answer = client.answer(prompt);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn a_request_that_is_over_cancels_nothing() {
    let folder = made("acp-over");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let first = client.prompt(&session, "hello");
    client.answer(first);
    let hanging = client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    client.notify("$/cancel_request", json!({"requestId": first}));
    // The agent hears one after the other: it would have stopped before it changes.
    let mode = json!({"sessionId": session, "modeId": "plan"});
    client.ask("session/set_mode", mode);
    client.until(|it| it["params"]["update"]["content"]["text"] == "Changed.");
    let is_answer = |it: &&Value| it["id"] == hanging && it.get("method").is_none();
    assert_eq!(client.heard.iter().filter(is_answer).count(), 0);
    client.notify("$/cancel_request", json!({"requestId": hanging}));
    let cancelled = client.answer(hanging);
    assert_eq!(cancelled["result"], json!({"stopReason": "cancelled"}));
}

#[test]
fn a_permission_is_shown_after_the_text_before_it() {
    let folder = made("acp-edit");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    client.prompt(&session, "edit it");
    let request = client.until(|it| it["method"] == "session/request_permission");
    let mut call = request["params"]["toolCall"].clone();
    call["toolCallId"] = Value::from("ID");
    let expected = json!({
        "toolCallId": "ID",
        "title": "Edit /w/a.rs",
        "kind": "edit",
        "status": "pending",
        "content": [{"type": "diff", "path": "/w/a.rs", "oldText": "a", "newText": "b"}],
        "locations": [{"path": "/w/a.rs"}],
        "rawInput": {"file_path": "/w/a.rs", "old_string": "a", "new_string": "b"},
    });
    assert_eq!(call, expected);
    let words: String = client
        .heard
        .iter()
        .filter_map(|it| it["params"]["update"]["content"]["text"].as_str())
        .collect();
    assert_eq!(words, "One.\n\nTwo.");
}

#[test]
fn a_question_is_a_form_or_one_choice_after_the_other() {
    let folder = made("acp-questions");
    let expected = json!({"Color?": "Blue", "Size?": "Small"});
    let mut client = Client::new(&folder, &[]);
    let forms = json!({"elicitation": {"form": {}}});
    let hello = json!({"protocolVersion": 1, "clientCapabilities": forms});
    client.ask("initialize", hello);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "wonder which");
    let form = client.until(|it| it["method"] == "elicitation/create");
    let content = json!({"q0": "Blue", "q1": "Small"});
    client.reply(&form, json!({"action": "accept", "content": content}));
    client.answer(prompt);
    assert_eq!(client.leave(), 0);
    assert_eq!(answers(&folder)[0]["updatedInput"]["answers"], expected);

    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "wonder which");
    let is_asked = |it: &Value| it["method"] == "session/request_permission";
    let chosen = |at: &str| json!({"outcome": {"outcome": "selected", "optionId": at}});
    let first = client.until(is_asked);
    client.reply(&first, chosen("1"));
    let second = client.until(is_asked);
    assert_ne!(first["id"], second["id"]);
    // An answer to what is over is nobody's.
    client.reply(&first, chosen("reject"));
    client.reply(&second, chosen("0"));
    client.answer(prompt);
    assert_eq!(answers(&folder)[1]["updatedInput"]["answers"], expected);
}

#[test]
fn every_end_has_its_reason() {
    let folder = made("acp-reasons");
    let result = |subtype: &str, stop: &str| {
        format!(
            "{}\n{}\n",
            json!({"type": "system", "subtype": "init", "session_id": "s-1", "model": "m", "cwd": "/w"}),
            json!({"type": "result", "subtype": subtype, "is_error": false, "stop_reason": stop, "result": "x", "session_id": "s-1"}),
        )
    };
    let cases = [
        ("success", "end_turn", "end_turn"),
        ("success", "max_tokens", "max_tokens"),
        ("success", "refusal", "refusal"),
        ("error_max_turns", "tool_use", "max_turn_requests"),
    ];
    for (subtype, stop, expected) in cases {
        let file = folder.file("recording.jsonl", &result(subtype, stop));
        assert_eq!(reason(&folder, &file), expected, "{subtype} {stop}");
    }
}

/// The stop reason of the one turn of a recording.
fn reason(folder: &Folder, recording: &str) -> String {
    let engine = format!("replay:{recording}");
    let mut command = linkspan(&["acp", "--engine", &engine]);
    let mut client = Client::started(&mut command, folder);
    client.ask("initialize", json!({"protocolVersion": 1}));
    let session = client.new_session(folder);
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    let reason = answer["result"]["stopReason"].as_str();
    reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
}
