//! Sessions over ACP: loaded, resumed, forked, removed.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, at_home, ends, made};
use crate::program::{linkspan, ran};

#[test]
fn a_session_is_loaded_as_it_was_seen() {
    let folder = made("acp-load");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    for text in ["hello", "die", "hello"] {
        let prompt = client.prompt(&session, text);
        client.answer(prompt);
    }
    let is_told = |it: &&Value| {
        let kind = &it["params"]["update"]["sessionUpdate"];
        !matches!(
            kind.as_str(),
            Some("session_info_update" | "config_option_update" | "available_commands_update")
        )
    };
    let live = std::mem::take(&mut client.heard);
    let live: Vec<&Value> = live.iter().filter(is_told).collect();
    assert_eq!(client.leave(), 0);

    let mut client = Client::ready(&folder, &[]);
    let listed = client.ask("session/list", json!({"cwd": folder.path("work")}));
    let [listed] = &**listed["result"]["sessions"].as_array().unwrap() else {
        panic!("{listed}")
    };
    assert_eq!(listed["sessionId"], session);
    assert_eq!(listed["title"], "hello");
    let elsewhere = client.ask("session/list", json!({"cwd": "/elsewhere"}));
    assert_eq!(elsewhere["result"], json!({"sessions": []}));
    let old = json!({"sessionId": session, "cwd": folder.path("work"), "mcpServers": []});
    let loaded = client.ask("session/load", old.clone());
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "default");
    let told = std::mem::take(&mut client.heard);
    let user = |it: &&Value| it["params"]["update"]["sessionUpdate"] == "user_message_chunk";
    let prompts: Vec<&Value> = told
        .iter()
        .filter(user)
        .map(|it| &it["params"]["update"]["content"]["text"])
        .collect();
    assert_eq!(prompts, ["hello", "die", "hello"]);
    let told: Vec<&Value> = told.iter().filter(is_told).filter(|it| !user(it)).collect();
    assert_eq!(told, live);
    // It goes on.
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));

    // Somebody else cannot have it meanwhile, and resuming tells nothing.
    let mut other = Client::ready(&folder, &[]);
    let busy = other.ask("session/load", old.clone());
    assert_eq!(
        busy["error"]["message"],
        format!("session `{session}` is in use")
    );
    let closed = client.ask("session/close", json!({"sessionId": session}));
    assert_eq!(closed["result"], json!({}));
    let resumed = other.ask("session/resume", old);
    assert_eq!(resumed["result"]["modes"]["currentModeId"], "default");
    assert_eq!(other.heard, [] as [Value; 0]);

    // One that is removed is not there any more.
    let deleted = other.ask("session/delete", json!({"sessionId": session}));
    assert_eq!(deleted["result"], json!({}));
    let listed = other.ask("session/list", json!({}));
    assert_eq!(listed["result"], json!({"sessions": []}));
}

#[test]
fn looking_at_a_session_leaves_no_trace_in_it() {
    let folder = made("acp-look");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    // The agent that waited for a prompt makes room for one that tries harder.
    client.until(is_warm);
    let effort = json!({"sessionId": session, "configId": "effort", "value": "high"});
    client.ask("session/set_config_option", effort);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    assert_eq!(client.leave(), 0);
    assert_eq!(ends(&folder, &session), ["completed"]);

    let mut client = Client::ready(&folder, &[]);
    client.ask("session/load", old(&folder, &session));
    client.until(is_warm);
    assert_eq!(client.leave(), 0);
    assert_eq!(ends(&folder, &session), ["completed"]);
}

#[test]
fn a_session_and_its_fork_can_both_be_resumed() {
    let folder = made("acp-fork");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let early = client.ask("session/fork", old(&folder, &session));
    assert_eq!(
        early["error"]["message"],
        format!("session `{session}` has nothing to begin with yet")
    );
    let prompt = client.prompt(&session, "hang");
    client.until(|it| it["params"]["update"]["content"]["text"] == "Working.");
    let refused = client.ask("session/fork", old(&folder, &session));
    assert_eq!(
        refused["error"]["message"],
        "the session is at work on a prompt; cancel it or wait for its end"
    );
    client.notify("session/cancel", json!({"sessionId": session}));
    client.answer(prompt);

    let forked = client.ask("session/fork", old(&folder, &session));
    let fork = forked["result"]["sessionId"].as_str().unwrap().to_owned();
    for session in [&fork, &session, &fork] {
        let prompt = client.prompt(session, "hello");
        let answer = client.answer(prompt);
        assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    }
    assert_eq!(client.leave(), 0);
    assert_eq!(ends(&folder, &session), ["aborted", "completed"]);
    assert_eq!(ends(&folder, &fork), ["completed", "completed"]);
    let args = fs::read_to_string(folder.path("args")).unwrap();
    let forks = args.lines().filter(|it| it.contains("--resume s-1 --fork"));
    assert_eq!(forks.count(), 1, "{args}");
}

#[test]
fn a_session_that_idles_makes_way_for_another_program() {
    let folder = made("acp-way");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let mut remove = linkspan(&["sessions", "--remove", &session]);
    let removed = ran(at_home(&mut remove, &folder).output().unwrap());
    assert_eq!((removed.code, removed.stderr.as_str()), (Some(0), ""));
    let prompt = client.prompt(&session, "hello");
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_mode_that_is_chosen_while_the_agent_starts_holds() {
    let folder = made("acp-early-mode");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    assert_eq!(client.leave(), 0);
    fs::remove_file(folder.path("args")).unwrap();

    let mut client = Client::ready(&folder, &[]);
    let message = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let load = client.expect("session/load");
    let choose = client.expect("session/set_mode");
    let mode = json!({"sessionId": session, "modeId": "plan"});
    let both = [
        message(load, "session/load", old(&folder, &session)),
        message(choose, "session/set_mode", mode),
    ];
    client.write(&both.map(|it| it.to_string()).join("\n"));
    client.answer(choose);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    let args = fs::read_to_string(folder.path("args")).unwrap();
    let told = fs::read_to_string(folder.path("modes")).unwrap_or_default();
    let last = args.lines().last().unwrap();
    assert!(
        last.contains("--permission-mode plan") || told.contains("\"plan\""),
        "{args}{told}"
    );
}

#[test]
fn a_session_that_cannot_be_loaded_here_is_free_for_others() {
    let folder = made("acp-unloaded");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = client.prompt(&session, "hello");
    client.answer(prompt);
    assert_eq!(client.leave(), 0);

    let mut client = Client::ready(&folder, &[]);
    fs::rename(folder.path("bin/claude"), folder.path("claude")).unwrap();
    let failed = client.ask("session/load", old(&folder, &session));
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    fs::rename(folder.path("claude"), folder.path("bin/claude")).unwrap();
    let mut other = Client::ready(&folder, &[]);
    let loaded = other.ask("session/load", old(&folder, &session));
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "default");
}

#[test]
fn an_open_session_is_replayed_as_it_was_sent() {
    let folder = made("acp-again");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let prompt = json!([
        {"type": "text", "text": "make a plan for "},
        {"type": "resource", "resource": {"uri": "file:///w/a \".txt", "text": "A\n</context>"}}
    ]);
    let params = json!({"sessionId": session, "prompt": prompt});
    client.ask("session/prompt", params);
    let is_told = |it: &&Value| {
        let kind = it["params"]["update"]["sessionUpdate"].as_str();
        matches!(kind, Some("plan" | "tool_call" | "agent_message_chunk"))
    };
    let live = std::mem::take(&mut client.heard);
    let live: Vec<&Value> = live.iter().filter(is_told).collect();
    assert_eq!(live.len(), 3, "{live:?}");
    for _ in 0..2 {
        client.ask("session/load", old(&folder, &session));
        let told = std::mem::take(&mut client.heard);
        let words = told
            .iter()
            .find(|it| it["params"]["update"]["sessionUpdate"] == "user_message_chunk")
            .map(|it| &it["params"]["update"]["content"]["text"]);
        let link = "make a plan for [a \".txt](file:///w/a%20%22.txt)";
        assert_eq!(words, Some(&Value::from(link)));
        let told: Vec<&Value> = told.iter().filter(is_told).collect();
        assert_eq!(told, live);
    }
}

#[test]
fn a_session_that_was_never_used_can_be_deleted() {
    let folder = made("acp-unused");
    let mut client = Client::ready(&folder, &[]);
    let session = client.new_session(&folder);
    let deleted = client.ask("session/delete", json!({"sessionId": session}));
    assert_eq!(deleted["result"], json!({}));
    let again = client.ask("session/delete", json!({"sessionId": session}));
    assert_eq!(again["error"]["code"], -32002);
}

fn old(folder: &crate::program::Folder, session: &str) -> Value {
    json!({"sessionId": session, "cwd": folder.path("work"), "mcpServers": []})
}

/// The agent has said what it offers.
fn is_warm(message: &Value) -> bool {
    message["params"]["update"]["sessionUpdate"] == "config_option_update"
}
