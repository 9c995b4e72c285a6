//! What Codex is sent, against a recording, and what no recording shows.

use expect_test::expect;
use serde_json::{Value, json};

use super::super::Codex;
use super::{DialogueTest, recording};
use crate::options::RunOptions;
use crate::request::{Answer, Interaction, Mode, Permissions, Request, Resume};

fn request(resume: Resume, mode: Mode) -> Request {
    Request {
        prompt: "go".to_owned(),
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

fn stage(resume: Resume, mode: Mode) -> DialogueTest {
    let mut stage = DialogueTest::new(Codex::new(&request(resume, mode), None), "codex", None);
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage
}

const ALLOW: Answer = Answer::Allow { input: None };
const ALWAYS: Answer = Answer::AllowAlways { input: None };

fn deny() -> Answer {
    Answer::Deny {
        message: "no".to_owned(),
    }
}

#[test]
fn codex_is_talked_with_as_recorded() {
    let mut stage = stage(Resume::Fresh, Mode::Ask);
    stage.act(|it, out| it.prompt(&"second".into(), out));
    let mut recorded: Vec<Value> = Vec::new();
    for step in recording("codex/app_server.duplex.jsonl") {
        let message: Value = serde_json::from_str(&step.line).unwrap();
        if !step.is_sent {
            stage.receive(&step.line);
            continue;
        }
        if message["method"] == "turn/interrupt" {
            assert!(stage.act(|it, out| it.interrupt(out)));
        }
        if let Some(decision) = message["result"]["decision"].as_str() {
            let answer = if decision == "accept" { ALLOW } else { deny() };
            let ask = message["id"].to_string();
            stage.settle(&ask, &answer).unwrap();
        }
        recorded.push(message);
    }
    // Each client has its name.
    let version = env!("CARGO_PKG_VERSION");
    recorded[0]["params"]["clientInfo"] =
        json!({"name": "linkspan", "title": "linkspan", "version": version});
    assert_eq!(stage.sent, recorded);
    expect![[r#"
        session Init 01a1e068-7ff8-7bb2-b2fe-a53b83b1ed87
        session Repeat 01a1e068-7ff8-7bb2-b2fe-a53b83b1ed87
        run started
        user: go
        ask 0 Permission: /bin/bash -lc 'touch outside.txt && echo ok'
        settled 0 Denied
        tool command_execution Denied
        ask 1 Permission: Write /workspace/p.txt
        settled 1 Allowed
        tool file_change Ok
        run ended Completed
        run started
        user: second
        run ended Aborted aborted: aborted
    "#]]
    .assert_eq(&stage.events);
}

/// What opens a thread, after the introduction.
fn opening(resume: Resume, mode: Mode) -> String {
    let mut stage = stage(resume, mode);
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage
        .take_sent()
        .lines()
        .skip(2)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n"
}

#[test]
fn threads_are_opened_by_what_was_asked_for() {
    let id = || "t".to_owned();
    let sent = opening(Resume::Session(id()), Mode::Deny)
        + &opening(Resume::Fork(id()), Mode::AcceptEdits)
        + &opening(Resume::Latest, Mode::Ask)
        + &opening(Resume::Fresh, Mode::Allow)
        + &opening(Resume::Fresh, Mode::Plan);
    expect![[r#"
        thread/resume {"approvalPolicy":"never","cwd":"/workspace","excludeTurns":true,"sandbox":"read-only","threadId":"t"}
        thread/fork {"approvalPolicy":"on-request","cwd":"/workspace","excludeTurns":true,"sandbox":"workspace-write","threadId":"t"}
        thread/list {"cwd":"/workspace","limit":1,"modelProviders":[],"sortKey":"updated_at","sourceKinds":["cli","vscode","exec","appServer"]}
        thread/start {"approvalPolicy":"never","cwd":"/workspace","sandbox":"danger-full-access"}
        thread/start {"approvalPolicy":"on-request","cwd":"/workspace","sandbox":"read-only"}
    "#]].assert_eq(&sent);
}

/// A thread that works on a turn.
fn working() -> DialogueTest {
    let mut stage = stage(Resume::Fresh, Mode::Ask);
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage.receive(r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    stage.receive(r#"{"id":3,"result":{"turn":{"id":"u"}}}"#);
    stage.receive(r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u"}}}"#);
    stage.sent.clear();
    stage
}

#[test]
fn every_question_has_its_kind_of_answer() {
    let questions = [
        r#"{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","command":"ls","availableDecisions":["accept",{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}},"cancel"]}}"#,
        r#"{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t"}}"#,
        r#"{"id":7,"method":"item/permissions/requestApproval","params":{"threadId":"t","permissions":{"network":{"enabled":true}}}}"#,
        r#"{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"t","questions":[{"id":"q","question":"Which?"}]}}"#,
        r#"{"id":7,"method":"mcpServer/elicitation/request","params":{"threadId":"t","serverName":"m","message":"May I?"}}"#,
    ];
    let mut sent = String::new();
    for question in questions {
        for mut answer in [ALLOW, ALWAYS, deny()] {
            let mut stage = working();
            stage.receive(question);
            if let (true, Answer::Allow { input }) = (question.contains("UserInput"), &mut answer) {
                *input = Some(r#"{"q":{"answers":["this"]}}"#.to_owned());
            }
            stage.settle("7", &answer).unwrap();
            let settled = stage.events.lines().last().unwrap().to_owned();
            sent += &format!("{settled}: {}", stage.take_sent());
        }
    }
    expect![[r#"
        settled 7 Allowed: 7 {"decision":"accept"}null
        settled 7 AllowedAlways: 7 {"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}}}null
        settled 7 Denied: 7 {"decision":"decline"}null
        settled 7 Allowed: 7 {"decision":"accept"}null
        settled 7 AllowedAlways: 7 {"decision":"acceptForSession"}null
        settled 7 Denied: 7 {"decision":"decline"}null
        settled 7 Allowed: 7 {"permissions":{"network":{"enabled":true}},"scope":"turn"}null
        settled 7 AllowedAlways: 7 {"permissions":{"network":{"enabled":true}},"scope":"session"}null
        settled 7 Denied: 7 {"permissions":{}}null
        settled 7 Allowed: 7 {"answers":{"q":{"answers":["this"]}}}null
        settled 7 Denied: 7 {"answers":{}}null
        settled 7 Denied: 7 {"answers":{}}null
        settled 7 Allowed: 7 {"action":"accept","content":null}null
        settled 7 Allowed: 7 {"action":"accept","content":null}null
        settled 7 Denied: 7 {"action":"decline"}null
    "#]].assert_eq(&sent);
}

#[test]
fn what_the_client_does_not_offer_is_refused() {
    let mut stage = working();
    stage.receive(r#"{"id":7,"method":"item/tool/call","params":{"threadId":"t"}}"#);
    expect![[r#"
        7 null{"code":-32601,"message":"method not found: item/tool/call"}
    "#]]
    .assert_eq(&stage.take_sent());
}

#[test]
fn a_turn_of_another_thread_ends_nothing() {
    let mut stage = working();
    stage.act(|it, out| it.prompt(&"next".into(), out));
    stage.receive(r#"{"method":"turn/completed","params":{"threadId":"x","turn":{"id":"v","status":"completed"}}}"#);
    assert_eq!(stage.take_sent(), "");
    stage.receive(r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#);
    expect![[r#"
        turn/start {"input":[{"text":"next","type":"text"}],"threadId":"t"}
        session Init t
        run started
        run ended Completed
    "#]]
    .assert_eq(&(stage.take_sent() + &stage.events));
}

#[test]
fn a_turn_without_an_id_is_interrupted_when_it_has_one() {
    let mut stage = stage(Resume::Fresh, Mode::Ask);
    assert!(!stage.act(|it, out| it.interrupt(out)));
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage.receive(r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    stage.sent.clear();
    assert!(stage.act(|it, out| it.interrupt(out)));
    stage.receive(r#"{"id":3,"result":{"turn":{"id":"u"}}}"#);
    expect![[r#"
        turn/interrupt {"threadId":"t","turnId":"u"}
    "#]]
    .assert_eq(&stage.take_sent());
}

#[test]
fn the_next_turn_changes_model_and_mode() {
    let mut stage = working();
    stage.act(|it, out| it.set_model("big", out));
    stage.act(|it, out| it.set_mode(Mode::AcceptEdits, out));
    stage.act(|it, out| it.prompt(&"next".into(), out));
    stage.receive(r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#);
    expect![[r#"
        turn/start {"approvalPolicy":"on-request","input":[{"text":"next","type":"text"}],"model":"big","sandboxPolicy":{"excludeSlashTmp":true,"excludeTmpdirEnvVar":true,"type":"workspaceWrite"},"threadId":"t"}
    "#]].assert_eq(&stage.take_sent());
}

#[test]
fn an_unknown_thread_is_a_failure() {
    let mut stage = stage(Resume::Session("nope".to_owned()), Mode::Ask);
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage.receive(r#"{"id":2,"error":{"code":-32600,"message":"no rollout found"}}"#);
    stage.read_end();
    expect![[r#"
        request_failed: no rollout found
        run started
        run ended Failed not_found: no rollout found
    "#]]
    .assert_eq(&(stage.failure() + "\n" + &stage.events));
}

#[test]
fn a_turn_that_is_refused_is_a_run_that_failed() {
    let mut stage = stage(Resume::Fresh, Mode::Ask);
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage.receive(r#"{"id":2,"result":{"thread":{"id":"t"}}}"#);
    stage.act(|it, out| it.prompt(&"next".into(), out));
    stage.receive(r#"{"id":3,"error":{"code":-32600,"message":"too long"}}"#);
    expect![[r#"
        session Init t
        run started
        run ended Failed failed: too long
    "#]]
    .assert_eq(&stage.events);
    assert_eq!(stage.sent.last().unwrap()["method"], "turn/start");
}

#[test]
fn codex_is_logged_in_with_a_key_that_is_shown_to_nobody() {
    let codex = Codex::new(&request(Resume::Fresh, Mode::Ask), None).with_key(Some("sk-canary"));
    assert!(!format!("{codex:?}").contains("sk-canary"));
    let mut stage = DialogueTest::new(codex, "codex", None);
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage.receive(r#"{"id":1,"result":{}}"#);
    expect![[r#"
        initialize {"clientInfo":{"name":"linkspan","title":"linkspan","version":"0.1.0"}}
        initialized null
    "#]]
    .assert_eq(&stage.take_sent());
    let private = std::mem::take(&mut stage.out.private);
    let lines = private
        .iter()
        .map(|it| (it.line.as_str(), it.shown.as_str()));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [(
            r#"{"id":2,"method":"account/login/start","params":{"apiKey":"sk-canary","type":"apiKey"}}"#,
            r#"{"id":2,"method":"account/login/start","params":{"type":"apiKey"}}"#,
        )]
    );
    assert!(!format!("{private:?}").contains("sk-canary"));
    // A thread is opened once the key is taken.
    stage.receive(r#"{"id":2,"result":{"type":"apiKey"}}"#);
    let opened = stage.take_sent();
    assert!(opened.starts_with("thread/start "), "{opened}");
    assert!(opened.lines().count() == 1, "{opened}");
}

#[test]
fn a_key_that_codex_does_not_take_ends_the_run() {
    let codex = Codex::new(&request(Resume::Fresh, Mode::Ask), None).with_key(Some("sk-canary"));
    let mut stage = DialogueTest::new(codex, "codex", None);
    stage.receive(r#"{"id":1,"result":{}}"#);
    stage.out.private.clear();
    stage.receive(r#"{"id":2,"error":{"code":-32600,"message":"API key login is disabled"}}"#);
    assert_eq!(
        stage.failure(),
        "auth: codex does not take the API key: API key login is disabled"
    );
}
