//! What reaches the agent behind `linkspan acp`, and an agent that is another `linkspan acp`.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, ends, made};
use crate::program::linkspan;

#[test]
fn servers_and_choices_reach_the_agent_and_secrets_stay_out_of_its_arguments() {
    let folder = made("acp-servers");
    let mut client = Client::ready(&folder, &["--model", "small"]);
    let servers = json!([
        {"name": "files", "command": "/bin/files", "args": ["--root", "/w"], "env": [{"name": "KEY", "value": "secret-1"}]},
        {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": [{"name": "Authorization", "value": "Bearer secret-2"}]}
    ]);
    let params = json!({"cwd": folder.path("work"), "mcpServers": servers});
    let answer = client.ask("session/new", params);
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    for (option, value) in [("mode", "plan"), ("effort", "high")] {
        let choice = json!({"sessionId": session, "configId": option, "value": value});
        client.ask("session/set_config_option", choice);
    }
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let args = fs::read_to_string(folder.path("args")).unwrap();
    let last = args.lines().last().unwrap();
    for part in ["--model small", "--effort high", "--permission-mode plan"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert!(!args.contains("secret"), "{args}");
    let config = fs::read_to_string(folder.path("mcp")).unwrap();
    let (mode, config) = config.split_once('\n').unwrap();
    assert_eq!(mode, "600");
    let expected = json!({"mcpServers": {
        "files": {"type": "stdio", "command": "/bin/files", "args": ["--root", "/w"], "env": {"KEY": "secret-1"}},
        "web": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer secret-2"}}
    }});
    assert_eq!(serde_json::from_str::<Value>(config).unwrap(), expected);
    assert_eq!(client.leave(), 0);
    let file = fs::read_to_string(folder.path("mcp-file")).unwrap();
    assert!(!fs::exists(file.trim()).unwrap(), "{file}");
}

#[test]
fn an_agent_of_the_protocol_is_passed_through_and_recorded() {
    let folder = made("acp-proxy");
    let program = env!("CARGO_BIN_EXE_linkspan");
    let inner = format!("acp:{program} acp --engine replay:tools");
    let mut command = linkspan(&["acp", "--engine", &inner, "--permissions", "allow"]);
    let mut client = Client::started(&mut command, &folder);
    client.ask("initialize", json!({"protocolVersion": 1}));
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let through = texts(&client.heard);
    assert_eq!(client.leave(), 0);
    assert_eq!(ends(&folder, &session), ["completed"]);

    let mut command = linkspan(&["acp", "--engine", "replay:tools"]);
    let mut client = Client::started(&mut command, &folder);
    client.ask("initialize", json!({"protocolVersion": 1}));
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    assert_eq!(through, texts(&client.heard));
}

#[test]
fn what_a_recording_asks_is_not_asked_again() {
    let folder = made("acp-recorded-asks");
    let mut command = linkspan(&["acp", "--engine", "replay:approval"]);
    let mut client = Client::started(&mut command, &folder);
    client.ask("initialize", json!({"protocolVersion": 1}));
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let requests: Vec<&Value> = client
        .heard
        .iter()
        .filter(|it| it.get("id").is_some() && it.get("method").is_some())
        .collect();
    assert_eq!(requests, Vec::<&Value>::new());
    // The recording allows one of its two calls, and denies the other.
    assert_eq!(texts(&client.heard).matches("completed\n").count(), 1);
}

/// What was said, in one piece, and which calls came to which end.
fn texts(heard: &[Value]) -> String {
    let mut told = String::new();
    for message in heard {
        let update = &message["params"]["update"];
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                told.push_str(update["content"]["text"].as_str().unwrap());
            }
            Some("tool_call") => {
                let (title, kind) = (&update["title"], &update["kind"]);
                told.push_str(&format!("\n{title} {kind}\n"));
            }
            Some("tool_call_update") if update["status"] == "completed" => {
                told.push_str("completed\n");
            }
            _ => (),
        }
    }
    told
}
