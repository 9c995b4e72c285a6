//! What Claude is sent, against the recordings of both directions.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::{Claude, NotSettled, Offer, Offers, SlashCommand};
use super::{DialogueTest, recording};
use crate::request::{Answer, Image, Mode, Prompt};

/// Does what the host of a recording did, and returns what that host sent and what was sent now.
fn replay(name: &str) -> (DialogueTest, Vec<Value>) {
    let mut stage = DialogueTest::new(Claude::default(), "claude", None);
    let mut recorded = Vec::new();
    for step in recording(&format!("claude/{name}.duplex.jsonl")) {
        if !step.is_sent {
            stage.receive(&step.line);
            continue;
        }
        let message: Value = serde_json::from_str(&step.line).unwrap();
        if message["type"] == "control_response" {
            let response = &message["response"];
            let ask = response["request_id"].as_str().unwrap();
            stage.settle(ask, &answer(response)).unwrap();
            recorded.push(message);
            continue;
        }
        stage.act(|dialogue, out| match message["type"].as_str().unwrap() {
            "user" => dialogue.prompt(&text_of(&message["message"]["content"]).into(), out),
            _ => match message["request"]["subtype"].as_str().unwrap() {
                "interrupt" => drop(dialogue.interrupt(out)),
                "set_model" => {
                    let model = message["request"]["model"].as_str().unwrap();
                    assert!(dialogue.set_model(model, out));
                }
                "set_permission_mode" if message["request"]["mode"] == "acceptEdits" => {
                    assert!(dialogue.set_mode(Mode::AcceptEdits, out));
                }
                _ => (),
            },
        });
        recorded.push(message);
    }
    (stage, recorded)
}

fn text_of(content: &Value) -> &str {
    content.as_str().or(content[0]["text"].as_str()).unwrap()
}

fn answer(response: &Value) -> Answer {
    let given = &response["response"];
    let input = Some(given["updatedInput"].to_string());
    match given["behavior"].as_str() {
        Some("allow") if given["updatedPermissions"].is_array() => {
            Answer::AllowAlways { input: None }
        }
        Some("allow") => Answer::Allow { input },
        _ => Answer::Deny {
            message: given["message"]
                .as_str()
                .unwrap_or("host failed")
                .to_owned(),
        },
    }
}

/// Holds a recorded conversation again; `change` names where linkspan says it otherwise.
fn check(name: &str, change: impl FnOnce(&mut Vec<Value>), events: Expect) {
    let (stage, mut recorded) = replay(name);
    change(&mut recorded);
    assert_eq!(stage.sent, recorded);
    events.assert_eq(&stage.events);
}

fn as_recorded(_: &mut Vec<Value>) {}

/// Who asked gives the number of a request.
fn renumber(recorded: &mut [Value]) {
    let requests = recorded
        .iter_mut()
        .filter(|it| it["type"] == "control_request");
    for (n, request) in requests.enumerate() {
        request["request_id"] = json!((n + 1).to_string());
    }
}

#[test]
fn permissions_are_allowed_denied_and_changed() {
    let without_initialize = |recorded: &mut Vec<Value>| drop(recorded.remove(0));
    check(
        "control_permissions",
        without_initialize,
        expect![[r#"
            session Init 91fbc607-c6e5-4412-af06-fb7894c1711b
            run started
            user: do it
            ask c7079e87-e2a0-4438-9f3c-af77579ce068 Permission: Write /workspace/a.txt
            settled c7079e87-e2a0-4438-9f3c-af77579ce068 Allowed
            tool Write Ok
            ask a3119e08-449a-4bbb-a708-51c54f453192 Permission: touch forbidden && echo did
            settled a3119e08-449a-4bbb-a708-51c54f453192 Denied
            tool Bash Denied
            ask 99d9ea86-1fcd-4d14-8c6b-1446d8ac18e0 Permission: mkdir original
            settled 99d9ea86-1fcd-4d14-8c6b-1446d8ac18e0 Allowed
            tool Bash Ok
            run ended Completed
        "#]],
    );
}

#[test]
fn a_lasting_permission_takes_the_rules_the_agent_suggested() {
    check(
        "control_allow_always",
        as_recorded,
        expect![[r#"
            session Init 0a70ccc6-5b2c-4f0c-8d35-71b33bc5a2d2
            run started
            user: x
            ask 1d7e220f-fdaf-44bb-8666-8798f9501990 Permission: Write /workspace/1.txt
            settled 1d7e220f-fdaf-44bb-8666-8798f9501990 AllowedAlways
            session Repeat 0a70ccc6-5b2c-4f0c-8d35-71b33bc5a2d2
            tool Write Ok
            tool Write Ok
            run ended Completed
        "#]],
    );
}

#[test]
fn a_question_is_answered_with_its_whole_input() {
    check(
        "control_ask_user_question",
        as_recorded,
        expect![[r#"
        session Init a586a876-4214-4c71-9b17-8cc1310c37e3
        run started
        user: x
        ask b1257c11-4ba3-4a24-be74-ec561b132dc8 Question: Which color?
        settled b1257c11-4ba3-4a24-be74-ec561b132dc8 Allowed
        tool AskUserQuestion Ok
        run ended Completed
    "#]],
    );
}

#[test]
fn a_plan_is_approved() {
    check(
        "control_plan_mode",
        as_recorded,
        expect![[r#"
        session Init 733e92cd-d901-4f50-b290-64bbd8883ce3
        run started
        user: x
        ask 750b3017-b8e1-4837-ad1c-fa4c079e0dda Plan: ExitPlanMode
        settled 750b3017-b8e1-4837-ad1c-fa4c079e0dda Allowed
        session Repeat 733e92cd-d901-4f50-b290-64bbd8883ce3
        tool ExitPlanMode Ok
        run ended Completed
    "#]],
    );
}

#[test]
fn an_interrupt_withdraws_what_is_asked() {
    let change = |recorded: &mut Vec<Value>| renumber(recorded);
    check(
        "control_cancel_pending",
        change,
        expect![[r#"
        session Init c7854965-0f34-483e-a2c4-38e2d7e90345
        run started
        user: x
        ask 27e2285a-4322-40c7-b165-8d636407ea14 Permission: touch z
        settled 27e2285a-4322-40c7-b165-8d636407ea14 Withdrawn
        tool Bash Cancelled
        run ended Aborted aborted: aborted
    "#]],
    );
}

#[test]
fn interrupts_end_runs_and_the_next_prompt_has_its_own() {
    // The host also interrupted when nothing ran.
    let change = |recorded: &mut Vec<Value>| {
        recorded.pop();
        renumber(recorded);
    };
    check(
        "control_interrupt",
        change,
        expect![[r#"
        session Init 8778e6ee-8b47-48e7-b4c4-c6ee2810fd5e
        run started
        user: go
        run ended Aborted aborted: aborted
        session Repeat 8778e6ee-8b47-48e7-b4c4-c6ee2810fd5e
        run started
        user: second
        run ended Completed
        session Repeat 8778e6ee-8b47-48e7-b4c4-c6ee2810fd5e
        run started
        user: third
        tool Bash Cancelled
        run ended Aborted aborted: aborted
    "#]],
    );
}

#[test]
fn a_denial_continues_when_the_host_also_ended_the_turn() {
    let change = |recorded: &mut Vec<Value>| {
        let response = recorded[1]["response"]["response"].as_object_mut().unwrap();
        response.remove("interrupt");
    };
    check(
        "control_deny_interrupt",
        change,
        expect![[r#"
        session Init 653eb065-41b1-454f-99da-2324db09aa7d
        run started
        user: x
        ask 1a120fc5-6852-4ffc-9783-6914831b8931 Permission: touch z
        settled 1a120fc5-6852-4ffc-9783-6914831b8931 Denied
        tool Bash Denied
        run ended Aborted aborted: aborted
    "#]],
    );
}

#[test]
fn a_denial_stands_for_a_host_that_failed() {
    let change = |recorded: &mut Vec<Value>| {
        let response = &mut recorded[1]["response"];
        *response = json!({
            "subtype": "success",
            "request_id": response["request_id"],
            "response": {"behavior": "deny", "message": "host failed"},
        });
    };
    check(
        "control_permission_host_error",
        change,
        expect![[r#"
        session Init 56013e5d-1c1e-420f-8891-d0f52c2f298c
        run started
        user: x
        ask 716bbbd6-a7e8-425f-bebb-9b4494b0eb04 Permission: touch z
        settled 716bbbd6-a7e8-425f-bebb-9b4494b0eb04 Denied
        tool Bash Denied
        run ended Completed
    "#]],
    );
}

#[test]
fn model_and_mode_are_set_between_prompts() {
    let change = |recorded: &mut Vec<Value>| {
        // The host also introduced itself, and asked for what the agent refuses or only tells.
        let ours = ["set_model", "acceptEdits"];
        let is_ours = |it: &Value| ours.iter().any(|our| it.to_string().contains(our));
        recorded.retain(|it| it["type"] == "user" || is_ours(it));
        renumber(recorded);
    };
    check(
        "control_settings",
        change,
        expect![[r#"
        session Init 9c6f1363-578e-4901-9837-32000dd4e2a7
        run started
        user: one
        run ended Completed
        session Repeat 9c6f1363-578e-4901-9837-32000dd4e2a7
        session Repeat 9c6f1363-578e-4901-9837-32000dd4e2a7
        run started
        user: two
        tool Write Ok
        run ended Completed
    "#]],
    );
}

#[test]
fn prompts_wait_for_the_result_before_them() {
    // The host sent all three at once and got two answers; here the third waits for the second.
    check(
        "stdin_queued_turns",
        as_recorded,
        expect![[r#"
        session Init 612d6acc-35bc-4eb6-a220-ced86f87317e
        run started
        user: one
        run ended Completed
        session Repeat 612d6acc-35bc-4eb6-a220-ced86f87317e
        run started
        user: two
        user: two
        three
        run ended Completed
    "#]],
    );
}

#[test]
fn each_prompt_has_a_run() {
    let change = |recorded: &mut Vec<Value>| {
        // Blocks become plain text.
        recorded[2]["message"]["content"] = json!("three");
    };
    check(
        "stdin_multi_turn",
        change,
        expect![[r#"
        session Init 8b3af6e4-8a5e-4d6c-b3e8-3c2d04a9c653
        run started
        user: one
        run ended Completed
        session Repeat 8b3af6e4-8a5e-4d6c-b3e8-3c2d04a9c653
        run started
        user: two
        run ended Completed
        session Repeat 8b3af6e4-8a5e-4d6c-b3e8-3c2d04a9c653
        run started
        user: three
        run ended Completed
    "#]],
    );
}

#[test]
fn a_command_is_a_prompt_too() {
    check(
        "slash_compact_ok",
        as_recorded,
        expect![[r#"
        session Init a0e46504-b955-4be8-8619-e4caacd5c262
        run started
        user: tell me about calc
        run ended Completed
        run started
        user: /compact
        session Repeat a0e46504-b955-4be8-8619-e4caacd5c262
        run ended Completed
        session Repeat a0e46504-b955-4be8-8619-e4caacd5c262
        run started
        user: go on
        run ended Completed
    "#]],
    );
}

const ASK: &str = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls","n":1.0},"tool_use_id":"t1"}}"#;

fn with_open_ask() -> DialogueTest {
    let mut stage = DialogueTest::new(Claude::default(), "claude", None);
    stage.act(|dialogue, out| dialogue.prompt(&"go".into(), out));
    stage.receive(ASK);
    stage.sent.clear();
    stage
}

fn allow(input: Option<&str>) -> Answer {
    let input = input.map(str::to_owned);
    Answer::Allow { input }
}

#[test]
fn an_edited_input_of_many_lines_is_sent_as_one() {
    let mut stage = with_open_ask();
    let edited = allow(Some("{\n  \"command\": \"ls -l\"\n}"));
    stage.settle("q1", &edited).unwrap();
    let response = json!({"behavior": "allow", "updatedInput": {"command": "ls -l"}});
    let response = json!({"subtype": "success", "request_id": "q1", "response": response});
    let expected = json!({"type": "control_response", "response": response});
    assert_eq!(stage.sent, [expected]);
}

#[test]
fn an_ask_is_settled_once_and_only_with_json() {
    let mut stage = with_open_ask();
    let bad = stage.settle("q1", &allow(Some("{")));
    let first = stage.settle("q1", &allow(None));
    let second = stage.settle("q1", &allow(None));
    let expected = [Err(NotSettled::BadInput), Ok(()), Err(NotSettled::NotOpen)];
    assert_eq!([bad, first, second], expected);
}

/// What is granted for good, if the agent suggests this.
fn granted(suggestions: &Value) -> Value {
    let mut ask: Value = serde_json::from_str(ASK).unwrap();
    ask["request"]["permission_suggestions"] = suggestions.clone();
    let mut stage = DialogueTest::new(Claude::default(), "claude", None);
    stage.act(|dialogue, out| dialogue.prompt(&"go".into(), out));
    stage.receive(&ask.to_string());
    let always = Answer::AllowAlways { input: None };
    stage.settle("q1", &always).unwrap();
    stage.sent[1]["response"]["response"]["updatedPermissions"].take()
}

#[test]
fn always_is_for_this_session_and_for_what_was_asked() {
    let rule = |destination| json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls *"}], "behavior": "allow", "destination": destination});
    let directory = |destination| json!({"type": "addDirectories", "directories": ["/tmp"], "destination": destination});
    let mode =
        |destination| json!({"type": "setMode", "mode": "acceptEdits", "destination": destination});
    let other = json!({"type": "removeRules", "rules": [], "destination": "userSettings"});

    let suggested = json!([
        mode("session"),
        rule("localSettings"),
        directory("userSettings"),
        other
    ]);
    assert_eq!(
        granted(&suggested),
        json!([rule("session"), directory("session")])
    );
    assert_eq!(
        granted(&json!([mode("projectSettings")])),
        json!([mode("session")])
    );
    assert_eq!(granted(&json!([other])), Value::Null);
    assert_eq!(granted(&json!("none")), Value::Null);
}

#[test]
fn what_the_host_does_not_offer_is_refused() {
    let mut stage = with_open_ask();
    stage.receive(r#"{"type":"control_request","request_id":"q2","request":{"subtype":"mcp_message","server_name":"x"}}"#);
    let error = "unsupported request: mcp_message";
    let response = json!({"subtype": "error", "request_id": "q2", "error": error});
    let expected = json!({"type": "control_response", "response": response});
    assert_eq!(stage.sent, [expected]);
}

#[test]
fn asks_that_the_run_leaves_behind_are_refused() {
    let mut stage = with_open_ask();
    stage.receive(r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"done"}"#);
    let error = "the run is over";
    let response = json!({"subtype": "error", "request_id": "q1", "error": error});
    let expected = json!({"type": "control_response", "response": response});
    assert_eq!(stage.sent, [expected]);
}

#[test]
fn a_setting_that_is_refused_is_a_warning() {
    let mut stage = DialogueTest::new(Claude::default(), "claude", None);
    stage.act(|it, out| it.set_model("nonsense", out));
    stage.receive(r#"{"type":"control_response","response":{"subtype":"error","request_id":"1","error":"no such model"}}"#);
    expect![[r#"
        warning not_set: model `nonsense` was not set: no such model
    "#]]
    .assert_eq(&stage.events);
}

#[test]
fn options_are_sent_before_the_first_prompt() {
    let mut stage = DialogueTest::new(Claude::new(true), "claude", None);
    let result = json!({
        "commands": [
            {"name": "compact", "description": "Free up context", "argumentHint": "[focus]"},
            {"name": "init", "description": "Write CLAUDE.md", "argumentHint": ""}
        ],
        "models": [{"value": "opus", "displayName": "Opus", "description": "the best"}]
    });
    let response = json!({"subtype": "success", "request_id": "1", "response": result});
    stage.receive(&json!({"type": "control_response", "response": response}).to_string());
    let command = |name: &str, description: &str, hint: Option<&str>| SlashCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        hint: hint.map(str::to_owned),
    };
    let expected = Offers {
        models: vec![Offer {
            id: "opus".to_owned(),
            name: "Opus".to_owned(),
            description: Some("the best".to_owned()),
        }],
        model: None,
        commands: vec![
            command("compact", "Free up context", Some("[focus]")),
            command("init", "Write CLAUDE.md", None),
        ],
    };
    assert_eq!(stage.act(|it, _| it.offers()), expected);
    let request = json!({"subtype": "initialize"});
    let asked = json!({"type": "control_request", "request_id": "1", "request": request});
    assert_eq!(stage.sent, [asked]);
}

#[test]
fn images_come_before_the_text() {
    let mut stage = DialogueTest::new(Claude::default(), "claude", None);
    let prompt = Prompt {
        text: "what is it?".to_owned(),
        images: vec![Image {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        }],
    };
    stage.act(|it, out| it.prompt(&prompt, out));
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let content =
        json!([{"type": "image", "source": source}, {"type": "text", "text": "what is it?"}]);
    let message = json!({"role": "user", "content": content});
    assert_eq!(stage.sent, [json!({"type": "user", "message": message})]);
}
