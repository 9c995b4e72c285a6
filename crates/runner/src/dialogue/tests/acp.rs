//! What ACP agents are sent, against recordings of OpenCode and Gemini, and what no recording shows.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::{Acp, NotSettled};
use super::{DialogueTest, recording};
use crate::options::RunOptions;
use crate::request::{Answer, Interaction, Mode, Permissions, Request, Resume};

fn request(resume: Resume) -> Request {
    Request {
        prompt: String::new(),
        resume,
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        cwd: "/workspace".into(),
        permissions: Permissions {
            mode: Mode::Ask,
            ..Permissions::default()
        },
        talk: Interaction::Dialogue,
    }
}

fn stage(request: &Request) -> DialogueTest {
    let expect = match &request.resume {
        Resume::Session(id) => Some(id.as_str()),
        Resume::Fresh | Resume::Latest | Resume::Fork(_) => None,
    };
    DialogueTest::new(Acp::new(request), "acp", expect)
}

const ALLOW: Answer = Answer::Allow { input: None };

fn replay(name: &str, events: Expect) {
    let mut stage = stage(&request(Resume::Fresh));
    // It may come before the handshake is over.
    stage.act(|dialogue, out| dialogue.prompt(&"go".into(), out));
    let mut recorded: Vec<Value> = Vec::new();
    for step in recording(name) {
        let message: Value = serde_json::from_str(&step.line).unwrap();
        if step.is_sent {
            recorded.push(message);
            continue;
        }
        stage.receive(&step.line);
        if message["method"] == "session/request_permission" {
            let ask = message["id"].to_string();
            stage.settle(&ask, &ALLOW).unwrap();
        }
    }
    // Each client has its name, and linkspan also wants notices and compactions.
    let params = &mut recorded[0]["params"];
    params["clientInfo"] = json!({"name": "linkspan", "version": env!("CARGO_PKG_VERSION")});
    params["clientCapabilities"]["session"] = json!({"compaction": {}, "notices": {}});
    assert_eq!(stage.sent, recorded);
    events.assert_eq(&stage.events);
}

#[test]
fn opencode_is_talked_with_as_recorded() {
    replay(
        "acp/opencode.duplex.jsonl",
        expect![[r#"
            session Init ses_e1f9044b9ffeKPnEjNCx573XEI
            run started
            user: go
            session Repeat ses_e1f9044b9ffeKPnEjNCx573XEI
            ask 0 Permission: touch z && echo ok
            settled 0 Allowed
            tool bash Ok
            run ended Completed
        "#]],
    );
}

#[test]
fn gemini_is_talked_with_as_recorded() {
    replay(
        "acp/gemini.duplex.jsonl",
        expect![[r#"
            session Init 1f32c47d-307b-4f14-9a72-38af2a223f54
            run started
            user: go
            session Repeat 1f32c47d-307b-4f14-9a72-38af2a223f54
            ask 0 Permission: Writing to acp.txt: /workspace/acp.txt
            settled 0 Allowed
            tool write_file Ok
            run ended Completed
        "#]],
    );
}

impl DialogueTest {
    /// The agent answers the last request with a result.
    fn result(&mut self, result: Value) {
        let id = self.sent.last().unwrap()["id"].clone();
        self.receive(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    fn error(&mut self, code: i64, message: &str) {
        let id = self.sent.last().unwrap()["id"].clone();
        let error = json!({"code": code, "message": message});
        self.receive(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }
}

/// An agent that has introduced itself.
fn handshake(request: &Request, capabilities: Value) -> DialogueTest {
    let mut stage = stage(request);
    stage.result(json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
    stage.sent.remove(0);
    stage
}

/// An agent that works on a prompt.
fn working() -> DialogueTest {
    let mut stage = handshake(&request(Resume::Fresh), json!({}));
    stage.result(json!({"sessionId": "s"}));
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage.sent.clear();
    stage
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"ls","kind":"execute"},"options":[{"optionId":"y","kind":"allow_once","name":"Yes"},{"optionId":"a","kind":"allow_always","name":"Always"},{"optionId":"n","kind":"reject_once","name":"No"}]}}"#;

#[test]
fn answers_are_options_by_their_kind() {
    let answers = [
        ALLOW,
        Answer::AllowAlways { input: None },
        Answer::Deny {
            message: "no".to_owned(),
        },
    ];
    let mut sent = String::new();
    for answer in answers {
        let mut stage = working();
        stage.receive(ASK);
        stage.settle("0", &answer).unwrap();
        sent += &stage.take_sent();
        sent += stage.events.lines().last().unwrap();
        sent += "\n";
    }
    expect![[r#"
        0 {"outcome":{"optionId":"y","outcome":"selected"}}null
        settled 0 Allowed
        0 {"outcome":{"optionId":"a","outcome":"selected"}}null
        settled 0 AllowedAlways
        0 {"outcome":{"optionId":"n","outcome":"selected"}}null
        settled 0 Denied
    "#]]
    .assert_eq(&sent);
}

#[test]
fn an_input_cannot_be_changed() {
    let mut stage = working();
    stage.receive(ASK);
    let input = Some("{}".to_owned());
    let settled = stage.settle("0", &Answer::Allow { input });
    assert_eq!(settled, Err(NotSettled::FixedInput));
}

#[test]
fn a_cancel_withdraws_asks_before_and_after_it() {
    let mut stage = working();
    stage.receive(ASK);
    assert!(stage.act(|it, out| it.interrupt(out)));
    stage.receive(&ASK.replace("\"id\":0", "\"id\":1"));
    expect![[r#"
        session/cancel {"sessionId":"s"}
        0 {"outcome":{"outcome":"cancelled"}}null
        1 {"outcome":{"outcome":"cancelled"}}null
    "#]]
    .assert_eq(&stage.take_sent());
    stage.receive(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#);
    assert!(!stage.act(|it, out| it.interrupt(out)));
    stage.act(|it, out| it.prompt(&"next".into(), out));
    stage.result(json!({"stopReason": "end_turn"}));
    expect![[r#"
        session Init s
        run started
        user: go
        ask 0 Permission: ls
        settled 0 Withdrawn
        ask 1 Permission: ls
        settled 1 Withdrawn
        tool execute Cancelled
        run ended Aborted aborted: aborted
        run started
        user: next
        run ended Completed
    "#]]
    .assert_eq(&stage.events);
}

#[test]
fn what_the_client_does_not_offer_is_refused() {
    let mut stage = working();
    stage.receive(r#"{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}}"#);
    expect![[r#"
        7 null{"code":-32601,"message":"method not found: fs/read_text_file"}
    "#]]
    .assert_eq(&stage.take_sent());
}

#[test]
fn a_session_is_resumed_rather_than_loaded() {
    let request = request(Resume::Session("s".to_owned()));
    let both = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}});
    let mut sent = handshake(&request, both).take_sent();
    sent += &handshake(&request, json!({"loadSession": true})).take_sent();
    expect![[r#"
        session/resume {"cwd":"/workspace","mcpServers":[],"sessionId":"s"}
        session/load {"cwd":"/workspace","mcpServers":[],"sessionId":"s"}
    "#]]
    .assert_eq(&sent);
    let failure = handshake(&request, json!({})).failure();
    expect!["cannot_resume: the agent cannot resume sessions; start a new one"].assert_eq(&failure);
}

#[test]
fn a_loaded_session_emits_only_the_new_run() {
    let request = request(Resume::Session("s".to_owned()));
    let mut stage = handshake(&request, json!({"loadSession": true}));
    stage.act(|it, out| it.prompt(&"go".into(), out));
    let chunk = |who: &str, text: &str| {
        let update = json!({"sessionUpdate": who, "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "s", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    };
    stage.receive(&chunk("user_message_chunk", "before"));
    stage.receive(&chunk("agent_message_chunk", "yes"));
    stage.result(json!({"modes": {"currentModeId": "m", "availableModes": [{"id": "m"}]}}));
    stage.receive(&chunk("agent_message_chunk", "told too late"));
    stage.result(Value::Null);
    stage.receive(&chunk("agent_message_chunk", "done"));
    stage.result(json!({"stopReason": "end_turn"}));
    expect![[r#"
        session Resume s
        session Repeat s
        run started
        user: go
        run ended Completed
    "#]]
    .assert_eq(&stage.events);
}

#[test]
fn an_unknown_session_is_a_failure() {
    let mut stage = handshake(
        &request(Resume::Session("nope".to_owned())),
        json!({"loadSession": true}),
    );
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage.error(-32602, "no session `nope`");
    stage.read_end();
    expect![[r#"
        session/load {"cwd":"/workspace","mcpServers":[],"sessionId":"nope"}
        request_failed: session `nope` was not opened: no session `nope`
        run started
        run ended Failed not_found: no session `nope`
    "#]]
    .assert_eq(&(stage.take_sent() + &stage.failure() + "\n" + &stage.events));
}

#[test]
fn the_latest_session_of_the_directory_is_found() {
    let can = json!({"loadSession": true, "sessionCapabilities": {"list": {}}});
    let mut stage = handshake(&request(Resume::Latest), can);
    stage.result(json!({"sessions": [
        {"sessionId": "old", "cwd": "/workspace", "updatedAt": "2026-01-01T00:00:00Z"},
        {"sessionId": "new", "cwd": "/workspace", "updatedAt": "2026-01-02T00:00:00Z"},
        {"sessionId": "elsewhere", "cwd": "/", "updatedAt": "2026-01-03T00:00:00Z"},
    ]}));
    expect![[r#"
        session/list {"cwd":"/workspace"}
        session/load {"cwd":"/workspace","mcpServers":[],"sessionId":"new"}
    "#]]
    .assert_eq(&stage.take_sent());
}

#[test]
fn a_fork_is_a_session_of_its_own() {
    let can = json!({"sessionCapabilities": {"fork": {}}});
    let mut stage = handshake(&request(Resume::Fork("s".to_owned())), can);
    stage.result(json!({"sessionId": "t"}));
    expect![[r#"
        session/fork {"cwd":"/workspace","mcpServers":[],"sessionId":"s"}
        session Fork t
    "#]]
    .assert_eq(&(stage.take_sent() + &stage.events));
    let failure = handshake(&request(Resume::Fork("s".to_owned())), json!({})).failure();
    expect!["cannot_fork: the agent cannot fork sessions; resume it instead"].assert_eq(&failure);
}

#[test]
fn a_key_logs_in_and_a_user_does_not() {
    let login =
        json!({"id": "login", "name": "Log in", "description": "in a browser", "_meta": null});
    let key = json!({"id": "key", "name": "API key", "_meta": {"api-key": {}}});
    let meet = |methods: Value| {
        let mut stage = stage(&request(Resume::Fresh));
        stage.result(json!({"protocolVersion": 1, "authMethods": methods}));
        stage.error(-32000, "Authentication required");
        stage
    };
    let mut stage = meet(json!([login, key]));
    stage.result(json!({}));
    expect![[r#"
        initialize {"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"session":{"compaction":{},"notices":{}},"terminal":false},"clientInfo":{"name":"linkspan","version":"0.1.0"},"protocolVersion":1}
        session/new {"cwd":"/workspace","mcpServers":[]}
        authenticate {"methodId":"key"}
        session/new {"cwd":"/workspace","mcpServers":[]}
    "#]].assert_eq(&stage.take_sent());
    expect![
        "authentication_required: Authentication required; log in first: Log in (in a browser) [`login`]; linkspan does it with the method that `auth_method` in `[engines.acp.NAME]` of the config names"
    ]
    .assert_eq(&meet(json!([login])).failure());
}

#[test]
fn the_chosen_login_is_used_or_the_reason_is_reported() {
    let methods = json!([
        {"id": "browser", "name": "Sign in", "description": "opens a browser"},
        {"type": "terminal", "id": "tty", "name": "Terminal", "args": ["auth", "login"]},
    ]);
    let meet = |chosen: &str| {
        let dialogue = Acp::new(&request(Resume::Fresh)).with_login(Some(chosen.to_owned()));
        let mut stage = DialogueTest::new(dialogue, "acp", None);
        stage.result(json!({"protocolVersion": 1, "authMethods": methods}));
        stage.error(-32000, "Authentication required");
        stage
    };
    let mut stage = meet("browser");
    stage.result(json!({}));
    expect![[r#"
        initialize {"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"session":{"compaction":{},"notices":{}},"terminal":false},"clientInfo":{"name":"linkspan","version":"0.1.0"},"protocolVersion":1}
        session/new {"cwd":"/workspace","mcpServers":[]}
        authenticate {"methodId":"browser"}
        session/new {"cwd":"/workspace","mcpServers":[]}
    "#]].assert_eq(&stage.take_sent());
    expect!["authentication_required: Authentication required; log in first: Terminal: run the agent's command with `auth login` in a terminal"]
        .assert_eq(&meet("tty").failure());
    expect!["authentication_required: Authentication required; the agent has no login method `key`, but: Sign in (opens a browser) [`browser`], or Terminal: run the agent's command with `auth login` in a terminal"]
        .assert_eq(&meet("key").failure());
}

#[test]
fn model_and_mode_are_set_before_the_first_prompt() {
    let mut request = request(Resume::Fresh);
    request.options.model = Some("big".to_owned());
    request.permissions.mode = Mode::Plan;
    let meet = |session: Value| {
        let mut stage = handshake(&request, json!({}));
        stage.act(|it, out| it.prompt(&"go".into(), out));
        stage.take_sent();
        // The first request after the handshake has this number.
        stage.receive(&json!({"jsonrpc": "2.0", "id": 2, "result": session}).to_string());
        for id in [3, 4] {
            stage.receive(&json!({"jsonrpc": "2.0", "id": id, "result": null}).to_string());
        }
        stage.take_sent()
    };
    let choices =
        |current: &str, other: &str| json!([{"value": current}, {"options": [{"value": other}]}]);
    let options = json!([
        {"id": "m", "category": "model", "currentValue": "small", "options": choices("small", "big")},
        {"id": "mode", "category": "mode", "currentValue": "build", "options": choices("build", "plan")},
    ]);
    let mut sent = meet(json!({"sessionId": "s", "configOptions": options}));
    sent += &meet(json!({
        "sessionId": "s",
        "models": {"currentModelId": "small", "availableModels": []},
        "modes": {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}]},
    }));
    expect![[r#"
        session/set_config_option {"configId":"m","sessionId":"s","value":"big"}
        session/set_config_option {"configId":"mode","sessionId":"s","value":"plan"}
        session/prompt {"prompt":[{"text":"go","type":"text"}],"sessionId":"s"}
        session/set_model {"modelId":"big","sessionId":"s"}
        session/set_mode {"modeId":"plan","sessionId":"s"}
        session/prompt {"prompt":[{"text":"go","type":"text"}],"sessionId":"s"}
    "#]]
    .assert_eq(&sent);
}

#[test]
fn invalid_choices_are_reported() {
    let mut request = request(Resume::Fresh);
    request.options.model = Some("big".to_owned());
    let mut stage = handshake(&request, json!({}));
    stage.result(json!({"sessionId": "s"}));
    request.permissions.mode = Mode::Plan;
    let mut planning = handshake(&request, json!({}));
    planning.result(json!({"sessionId": "s"}));
    expect![[r#"
        session Init s
        warning not_set: model `big` was not set: the agent does not offer a choice
        no_plan_mode: the agent has no mode for plans; let it ask instead"#]]
    .assert_eq(&(stage.events + &planning.failure()));
}

#[test]
fn a_session_that_was_left_planning_works_again() {
    let modes =
        json!({"currentModeId": "plan", "availableModes": [{"id": "build"}, {"id": "plan"}]});
    let mut stage = handshake(&request(Resume::Fresh), json!({}));
    stage.result(json!({"sessionId": "s", "modes": modes}));
    stage.error(-32603, "not today");
    expect![[r#"
        session/new {"cwd":"/workspace","mcpServers":[]}
        session/set_mode {"modeId":"build","sessionId":"s"}
        session Init s
        warning not_set: mode `build` was not set: not today
    "#]]
    .assert_eq(&(stage.take_sent() + &stage.events));
}

#[test]
fn an_agent_that_will_not_plan_is_not_let_loose() {
    let mut request = request(Resume::Fresh);
    request.permissions.mode = Mode::Plan;
    let modes =
        json!({"currentModeId": "build", "availableModes": [{"id": "build"}, {"id": "plan"}]});
    let mut stage = handshake(&request, json!({}));
    stage.act(|it, out| it.prompt(&"go".into(), out));
    stage.result(json!({"sessionId": "s", "modes": modes}));
    stage.error(-32603, "not today");
    expect![[r#"
        session/new {"cwd":"/workspace","mcpServers":[]}
        session/set_mode {"modeId":"plan","sessionId":"s"}
        not_set: mode `plan` was not set: not today"#]]
    .assert_eq(&(stage.take_sent() + &stage.failure()));
}
