//! `linkspan acp` as a client meets it: lines in, lines out, and nothing but messages.

mod agents;
pub(crate) mod client;
mod ends;
mod schema;
mod sessions;
mod turns;

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};

use self::client::{Client, answers, at_home, check, made};
use crate::program::linkspan;

#[test]
fn a_client_receives_capabilities_and_updates() {
    let folder = made("acp-whole");
    let mut client = Client::new(&folder, &[]);
    let hello = client.ask("initialize", json!({"protocolVersion": 99}));
    let mut hello = hello["result"].clone();
    hello["agentInfo"]["version"] = Value::from("V");
    expect![[r#"{"agentCapabilities":{"loadSession":true,"mcpCapabilities":{"http":true,"sse":true},"promptCapabilities":{"audio":false,"embeddedContext":true,"image":true},"sessionCapabilities":{"close":{},"delete":{},"fork":{},"list":{},"resume":{}}},"agentInfo":{"name":"linkspan","title":"linkspan (claude)","version":"V"},"authMethods":[{"description":"run `claude /login` in a terminal, then try again","id":"claude-login","name":"Log in with claude"}],"protocolVersion":1}"#]].assert_eq(&hello.to_string());
    let session = client.new_session(&folder);
    client.until(|it| it["params"]["update"]["sessionUpdate"] == "config_option_update");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    for message in &mut client.heard {
        if let Some(id) = message["params"]["update"].get_mut("messageId") {
            *id = Value::from("ID");
        }
    }
    check(
        &client.heard,
        &session,
        expect![[r#"
            {"availableCommands":[{"description":"Free up context","input":{"hint":"[focus]"},"name":"compact"}],"sessionUpdate":"available_commands_update"}
            {"configOptions":[{"category":"mode","currentValue":"default","id":"mode","name":"Permissions","options":[{"description":"asks before it changes files or runs commands","name":"Ask","value":"default"},{"description":"changes files without asking, and asks for the rest","name":"Accept edits","value":"acceptEdits"},{"description":"looks and plans, and changes nothing","name":"Plan","value":"plan"},{"description":"never asks; runs only what you listed, and denies the rest","name":"Deny","value":"dontAsk"},{"description":"never asks; runs the allowed tools, and denies the rest","name":"Allowed tools","value":"listed"},{"description":"never asks, and may do anything","name":"Allow everything","value":"bypassPermissions"}],"type":"select"},{"category":"model","currentValue":"default","id":"model","name":"Model","options":[{"name":"Default","value":"default"},{"description":"the best","name":"Opus","value":"opus"}],"type":"select"},{"category":"thought_level","currentValue":"default","id":"effort","name":"Effort","options":[{"name":"Default","value":"default"},{"name":"low","value":"low"},{"name":"medium","value":"medium"},{"name":"high","value":"high"},{"name":"xhigh","value":"xhigh"},{"name":"max","value":"max"}],"type":"select"}],"sessionUpdate":"config_option_update"}
            {"sessionUpdate":"session_info_update","title":"hello"}
            {"content":{"text":"Hello.","type":"text"},"messageId":"ID","sessionUpdate":"agent_message_chunk"}
        "#]],
    );
    assert_eq!(client.leave(), 0);
}

#[test]
fn what_the_user_decides_reaches_the_agent() {
    let folder = made("acp-asks");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    for option in ["allow", "reject"] {
        let prompt = client.prompt(&session, "ask me");
        let request = client.until(|it| it["method"] == "session/request_permission");
        assert_eq!(
            request["params"]["toolCall"]["rawInput"],
            json!({"command": "ls"})
        );
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome});
        client.write(&answer.to_string());
        let answer = client.answer(prompt);
        assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    }
    let expected = [
        json!({"behavior": "allow", "updatedInput": {"command": "ls"}}),
        json!({"behavior": "deny", "message": "the user rejected it"}),
    ];
    assert_eq!(answers(&folder), expected);
}

#[test]
fn an_ask_that_the_user_does_not_answer_in_time_is_answered_by_the_default() {
    let folder = made("acp-deadline");
    let flags = ["--ask-timeout", "0.1", "--ask-default", "allow"];
    let mut client = Client::ready(&folder, &flags);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "ask me");
    client.until(|it| it["method"] == "session/request_permission");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let expected = [json!({"behavior": "allow", "updatedInput": {"command": "ls"}})];
    assert_eq!(answers(&folder), expected);
}

#[test]
fn rules_and_modes_answer_without_the_user() {
    let folder = made("acp-rules");
    let mut client = Client::ready(&folder, &["--allow", "Bash"]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "ask me");
    client.answer(prompt);
    let asked = client.heard.iter().filter(|it| it.get("id").is_some());
    assert_eq!(asked.count(), 0);
    let mode = json!({"sessionId": session, "modeId": "nonsense"});
    let refused = client.ask("session/set_mode", mode);
    assert_eq!(
        refused["error"]["message"],
        "there is no mode `nonsense` to choose"
    );
    let effort = json!({"sessionId": session, "configId": "effort", "value": "high"});
    let options = client.ask("session/set_config_option", effort);
    let options = options["result"]["configOptions"]
        .as_array()
        .unwrap()
        .clone();
    let values: Vec<&Value> = options.iter().map(|it| &it["currentValue"]).collect();
    assert_eq!(values, ["default", "default", "high"]);
}

#[test]
fn a_mode_that_the_agent_cannot_be_switched_to_starts_it_anew() {
    let folder = made("acp-modes");
    let mut client = Client::ready(&folder, &["--permissions", "listed"]);
    let session = client.new_session(&folder);
    for mode in ["listed", "default", "plan", "dontAsk"] {
        let mode = json!({"sessionId": session, "modeId": mode});
        assert_eq!(client.ask("session/set_mode", mode)["result"], json!({}));
        let prompt = client.prompt(&session, "hello");
        client.answer(prompt);
    }
    let args = fs::read_to_string(folder.path("args")).unwrap();
    let flags = |line: &str| {
        let words = line.split(' ').skip_while(|it| *it != "--permission-mode");
        words.take(3).collect::<Vec<_>>().join(" ")
    };
    let started: Vec<String> = args.lines().map(flags).collect();
    // What it was told at its start, it would keep to: `Bash` must not run in `default`.
    assert_eq!(
        started,
        [
            "--permission-mode dontAsk --allowedTools=Bash,Read,Edit,Write",
            "--permission-mode manual --settings",
        ]
    );
    assert_eq!(
        fs::read_to_string(folder.path("keys")).unwrap(),
        "none\nnone\n"
    );
}

#[test]
fn a_key_alone_is_enough() {
    let folder = made("acp-key");
    let mut command = linkspan(&["acp", "--engine", "claude"]);
    at_home(&mut command, &folder).env("ANTHROPIC_API_KEY", "k");
    let mut client = Client::begun(&mut command);
    client.ask("initialize", json!({"protocolVersion": 1}));
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    assert_eq!(fs::read_to_string(folder.path("keys")).unwrap(), "k\n");
}

#[test]
fn bad_clients_get_errors_and_block_no_one() {
    let folder = made("acp-bad");
    let mut client = Client::new(&folder, &[]);
    let early = client.ask("session/list", json!({}));
    assert_eq!(
        early["error"],
        json!({"code": -32600, "message": "say `initialize` first"})
    );
    let wrong = client.ask("initialize", json!({"protocolVersion": "one"}));
    assert_eq!(wrong["error"]["code"], -32602);
    client.ask(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": null}),
    );
    let session = client.new_session(&folder);
    let cwd = folder.path("work");
    let relative = "cwd `work` is not absolute";
    let nowhere = "cwd `/nowhere/at/all` is no directory";
    let cases = [
        ("nonsense", json!({}), -32601, "unknown method `nonsense`"),
        ("session/new", json!({}), -32602, "missing field `cwd`"),
        (
            "session/new",
            json!({"cwd": "work", "mcpServers": []}),
            -32602,
            relative,
        ),
        (
            "session/new",
            json!({"cwd": "/nowhere/at/all", "mcpServers": []}),
            -32602,
            nowhere,
        ),
        (
            "session/new",
            json!([]),
            -32602,
            "invalid length 0, expected struct NewSession with 2 elements",
        ),
        (
            "session/load",
            json!({"sessionId": "x", "cwd": cwd, "mcpServers": []}),
            -32002,
            "no session matches `x`",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": "hi"}),
            -32602,
            "invalid type: string \"hi\", expected a sequence",
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
            -32602,
            "the prompt is empty",
        ),
        (
            "session/prompt",
            json!({"sessionId": "x", "prompt": [{"type": "text", "text": "hi"}]}),
            -32002,
            "no session matches `x`",
        ),
        (
            "session/set_mode",
            json!({"sessionId": "x", "modeId": "plan"}),
            -32002,
            "no session matches `x`",
        ),
        (
            "session/close",
            json!({"sessionId": "x"}),
            -32002,
            "no session matches `x`",
        ),
        (
            "session/list",
            json!({"cursor": "x"}),
            -32602,
            "the cursor is none of ours",
        ),
        (
            "authenticate",
            json!({"methodId": "x"}),
            -32602,
            "unknown method `x`",
        ),
    ];
    for (method, params, code, message) in cases {
        let answer = client.ask(method, params);
        assert_eq!(
            answer["error"],
            json!({"code": code, "message": message}),
            "{method}"
        );
    }
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("{\"id\":[]}", -32600),
        ("\u{feff}hi", -32700),
    ] {
        client.write(line);
        let answer = client.until(|it| it["id"].is_null() && it.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    // Nobody answers these, and nothing breaks.
    client.notify("nonsense", json!({}));
    client.notify("session/cancel", json!({"sessionId": "x"}));
    client.write(r#"{"jsonrpc":"2.0","id":"x/y","result":{}}"#);
    client.write("");
    let long = "a".repeat(50 << 20);
    let prompt = client.prompt(&session, &long);
    let answer = client.answer(prompt);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn impossible_options_fail_at_once() {
    let folder = made("acp-none");
    fs::remove_file(folder.path("bin/claude")).unwrap();
    let mut client = Client::ready(&folder, &[]);
    let params = json!({"cwd": folder.path("work"), "mcpServers": []});
    let answer = client.ask("session/new", params);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("npm install -g @anthropic-ai/claude-code"),
        "{message}"
    );
}

#[test]
fn images_and_embedded_files_reach_the_agent() {
    let folder = made("acp-images");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource", "resource": {"uri": "file:///w/a.txt", "text": "A"}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    ]);
    client.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    let said = fs::read_to_string(folder.path("prompts")).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    let text =
        "look at [a.txt](file:///w/a.txt)\n\n<context ref=\"file:///w/a.txt\">\nA\n</context>";
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let expected = json!([{"type": "image", "source": source}, {"type": "text", "text": text}]);
    assert_eq!(said["message"]["content"], expected);
}

#[test]
fn a_login_is_reported_only_when_complete() {
    let folder = made("acp-login");
    let mut client = Client::new(&folder, &[]);
    let with = |terminal: bool| json!({"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": terminal}}});
    let hello = client.ask("initialize", with(true));
    let advice = "run `claude /login` in a terminal, then try again";
    let expected = json!([{"type": "terminal", "id": "claude-login", "name": "Log in with claude", "description": advice, "args": ["--login"]}]);
    assert_eq!(hello["result"]["authMethods"], expected);
    let method = json!({"methodId": "claude-login"});
    let refused = client.ask("authenticate", method.clone());
    assert_eq!(refused["error"], json!({"code": -32000, "message": advice}));
    folder.file(".claude.json", r#"{"oauthAccount": {}}"#);
    let done = client.ask("authenticate", method);
    assert_eq!(done["result"], json!({}));
    // What is done is not offered: clients would do it again.
    let mut again = Client::new(&folder, &[]);
    let hello = again.ask("initialize", with(true));
    assert_eq!(hello["result"]["authMethods"], json!([]));

    let mut command = linkspan(&["acp", "--engine", "claude", "--login"]);
    let output = at_home(&mut command, &folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let args = fs::read_to_string(folder.path("args")).unwrap();
    assert_eq!(args, "/login\n");
}
