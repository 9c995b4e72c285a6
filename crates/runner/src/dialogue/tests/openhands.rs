//! What the shim of OpenHands is sent, and the events of it.
//!
//! The agent's lines are those of `openhands-sdk` 1.58.0, cut down to the fields that are read.

use expect_test::expect;
use serde_json::{Value, json};

use super::super::{NotSettled, OpenHands};
use super::DialogueTest;
use crate::engines::EngineConfig;
use crate::options::RunOptions;
use crate::request::{
    Answer, Image, Interaction, McpServer, McpVia, Mode, Permissions, Prompt, Request, Resume,
};

const ALLOW: Answer = Answer::Allow { input: None };
const ALWAYS: Answer = Answer::AllowAlways { input: None };

fn request(resume: Resume, mode: Mode) -> Request {
    Request {
        prompt: String::new(),
        resume,
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        cwd: "/workspace".into(),
        permissions: Permissions {
            mode,
            ..Permissions::default()
        },
        talk: Interaction::Dialogue,
    }
}

fn stage(request: &Request, config: &EngineConfig) -> DialogueTest {
    DialogueTest::new(OpenHands::new(request, config), "openhands", None)
}

/// A conversation that works on a prompt.
fn working() -> DialogueTest {
    let config = EngineConfig::default();
    let mut stage = stage(&request(Resume::Fresh, Mode::Ask), &config);
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage.receive(&state("full_state", json!({"id": "s"})));
    stage.receive(&user("go"));
    stage.receive(&status("running"));
    stage.sent.clear();
    stage
}

fn state(key: &str, value: Value) -> String {
    let kind = "ConversationStateUpdateEvent";
    json!({"source": "environment", "key": key, "value": value, "kind": kind}).to_string()
}

fn status(status: &str) -> String {
    state("execution_status", json!(status))
}

fn user(text: &str) -> String {
    let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    json!({"source": "user", "llm_message": message, "kind": "MessageEvent"}).to_string()
}

fn action(call: &str, tool: &str, action: Value) -> String {
    json!({
        "source": "agent",
        "thought": [],
        "action": action,
        "tool_name": tool,
        "tool_call_id": call,
        "llm_response_id": "r",
        "kind": "ActionEvent",
    })
    .to_string()
}

fn command(call: &str) -> String {
    let fields = json!({"command": "ls", "kind": "TerminalAction"});
    action(call, "terminal", fields)
}

fn rejection(call: &str) -> String {
    let kind = "UserRejectObservation";
    json!({"source": "environment", "tool_call_id": call, "tool_name": "terminal", "kind": kind})
        .to_string()
}

fn observation(call: &str) -> String {
    let kind = "ObservationEvent";
    let seen = json!({"content": [], "is_error": false, "kind": "TerminalObservation"});
    json!({"source": "environment", "tool_call_id": call, "observation": seen, "kind": kind})
        .to_string()
}

fn deny(message: &str) -> Answer {
    let message = message.to_owned();
    Answer::Deny { message }
}

#[test]
fn a_conversation_is_opened_as_asked_for() {
    let id = || "i".to_owned();
    let config = EngineConfig {
        model: Some("configured".to_owned()),
        allowed_tools: Some(vec!["browser".to_owned()]),
        ..EngineConfig::default()
    };
    let mut text = String::new();
    for (resume, mode) in [
        (Resume::Fresh, Mode::Ask),
        (Resume::Session(id()), Mode::Allow),
        (Resume::Fork(id()), Mode::Deny),
        (Resume::Latest, Mode::AcceptEdits),
        (Resume::Fresh, Mode::Plan),
    ] {
        for config in [&EngineConfig::default(), &config] {
            let mut request = request(resume.clone(), mode);
            request.permissions.deny = vec!["shell".to_owned()];
            let stage = stage(&request, config);
            text += &format!("{}\n", stage.sent[0]);
        }
    }
    expect![[r#"
        {"permissions":{"allow":[],"asks":true,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
        {"model":"configured","permissions":{"allow":["browser"],"asks":true,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
        {"permissions":{"allow":[],"asks":false,"deny":["terminal"],"edits":false,"everything":true},"session":"i","type":"open"}
        {"model":"configured","permissions":{"allow":[],"asks":false,"deny":["terminal"],"edits":false,"everything":true},"session":"i","type":"open"}
        {"fork":"i","permissions":{"allow":[],"asks":false,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
        {"fork":"i","model":"configured","permissions":{"allow":["browser"],"asks":false,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
        {"latest":true,"permissions":{"allow":[],"asks":true,"deny":["terminal"],"edits":true,"everything":false},"type":"open"}
        {"latest":true,"model":"configured","permissions":{"allow":["browser"],"asks":true,"deny":["terminal"],"edits":true,"everything":false},"type":"open"}
        {"permissions":{"allow":[],"asks":true,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
        {"model":"configured","permissions":{"allow":[],"asks":true,"deny":["terminal"],"edits":false,"everything":false},"type":"open"}
    "#]].assert_eq(&text);
}

#[test]
fn prompts_wait_for_the_run_before_them() {
    let mut stage = working();
    stage.act(|it, out| it.prompt(&"second".into(), out));
    stage.act(|it, out| it.prompt(&"third".into(), out));
    assert_eq!(stage.sent, [] as [Value; 0]);
    stage.receive(&status("finished"));
    assert_eq!(stage.sent, [json!({"type": "prompt", "text": "second"})]);
    stage.receive(&user("second"));
    assert!(stage.act(|it, out| it.interrupt(out)));
    stage.receive(r#"{"source":"user","kind":"InterruptEvent"}"#);
    stage.receive(&status("paused"));
    stage.receive(&user("third"));
    stage.receive(&status("error"));
    assert!(!stage.act(|it, out| it.interrupt(out)));
    let last = [
        json!({"type": "prompt", "text": "second"}),
        json!({"type": "interrupt"}),
        json!({"type": "prompt", "text": "third"}),
    ];
    assert_eq!(stage.sent, last);
    expect![[r#"
        session Init s
        run started
        user: go
        run ended Completed
        run started
        user: second
        run ended Aborted aborted: aborted
        run started
        user: third
        run ended Failed failed: the conversation failed
    "#]]
    .assert_eq(&stage.events);
}

#[test]
fn every_call_that_waits_is_answered_once() {
    let mut stage = working();
    for call in ["a", "b", "c", "d"] {
        stage.receive(&command(call));
    }
    // Words that OpenHands sends as calls, and a call that was refused before anybody was asked.
    let finish = json!({"message": "done", "kind": "FinishAction"});
    stage.receive(&action("f", "finish", finish));
    stage.receive(&rejection("d"));
    let settle = |stage: &mut DialogueTest, ask: &str, answer: &Answer| stage.settle(ask, answer);
    let early = settle(&mut stage, "a", &ALLOW);
    assert_eq!(early, Err(NotSettled::NotOpen));
    stage.receive(&status("waiting_for_confirmation"));
    let input = Some("{}".to_owned());
    let changed = settle(&mut stage, "a", &Answer::Allow { input });
    assert_eq!(changed, Err(NotSettled::FixedInput));
    assert_eq!(settle(&mut stage, "a", &ALLOW), Ok(()));
    assert_eq!(settle(&mut stage, "b", &ALWAYS), Ok(()));
    assert_eq!(settle(&mut stage, "c", &deny("not here")), Ok(()));
    for ask in ["a", "b", "c", "d", "f"] {
        let again = settle(&mut stage, ask, &ALLOW);
        assert_eq!(again, Err(NotSettled::NotOpen), "{ask}");
    }
    stage.receive(&rejection("c"));
    stage.receive(&status("running"));
    stage.receive(&observation("a"));
    stage.receive(&observation("b"));
    stage.receive(&status("finished"));
    let answers = [
        json!({"type": "answer", "call": "a", "allow": true}),
        json!({"type": "answer", "call": "b", "allow": true, "always": true}),
        json!({"type": "answer", "call": "c", "allow": false, "reason": "not here"}),
    ];
    assert_eq!(stage.sent, answers);
    expect![[r#"
        session Init s
        run started
        user: go
        tool terminal Denied
        ask a Permission: ls
        ask b Permission: ls
        ask c Permission: ls
        settled a Allowed
        settled b AllowedAlways
        settled c Denied
        tool terminal Denied
        tool terminal Ok
        tool terminal Ok
        run ended Completed
    "#]]
    .assert_eq(&stage.events);
}

#[test]
fn the_model_and_the_mode_of_later_runs_can_change() {
    let mut stage = working();
    assert!(stage.act(|it, out| it.set_model("m", out)));
    for mode in [Mode::Allow, Mode::Listed, Mode::Deny] {
        assert!(stage.act(|it, out| it.set_mode(mode, out)));
    }
    let (none, tools) = (json!([]), json!(["terminal", "file_editor"]));
    let permissions = |everything: bool, allow: &Value| {
        let it = json!({"everything": everything, "edits": false, "asks": false, "allow": allow, "deny": none});
        json!({"type": "permissions", "permissions": it})
    };
    let expected = [
        json!({"type": "model", "model": "m"}),
        permissions(true, &none),
        permissions(false, &tools),
        permissions(false, &none),
    ];
    assert_eq!(stage.sent, expected);
}

#[test]
fn pictures_effort_and_servers_of_tools_go_along() {
    let server = |name: &str, via| McpServer {
        name: name.to_owned(),
        via,
    };
    let pairs = || vec![("k".to_owned(), "v".to_owned())];
    let mut request = request(Resume::Fresh, Mode::Allow);
    request.options.effort = Some("low".to_owned());
    request.mcp_servers = vec![
        server(
            "here",
            McpVia::Stdio {
                command: "tools".to_owned(),
                args: vec!["-x".to_owned()],
                env: pairs(),
            },
        ),
        server(
            "there",
            McpVia::Http {
                url: "http://x".to_owned(),
                headers: pairs(),
            },
        ),
    ];
    let mut stage = stage(&request, &EngineConfig::default());
    let prompt = Prompt {
        text: "what is it?".to_owned(),
        images: vec![Image {
            media_type: "image/png".to_owned(),
            data: "iVBO".to_owned(),
        }],
    };
    stage.act(|it, out| it.prompt(&prompt, out));
    let limits =
        json!({"everything": true, "edits": false, "asks": false, "allow": [], "deny": []});
    let servers = json!({
        "here": {"transport": "stdio", "command": "tools", "args": ["-x"], "env": {"k": "v"}},
        "there": {"transport": "http", "url": "http://x", "headers": {"k": "v"}},
    });
    let images = json!(["data:image/png;base64,iVBO"]);
    let expected = [
        json!({"type": "open", "effort": "low", "mcp_servers": servers, "permissions": limits}),
        json!({"type": "prompt", "text": "what is it?", "images": images}),
    ];
    assert_eq!(stage.sent, expected);
}
