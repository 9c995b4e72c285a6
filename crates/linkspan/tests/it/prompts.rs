//! A prompt is told once, also when the agent fails before it does so.

use std::process::Stdio;

use serde_json::Value;

use crate::program::{Folder, Ran, linkspan, machine, ran};

fn run(folder: &Folder, engine: &str) -> Ran {
    let output = linkspan(&["run", "--engine", engine, "--to", "linkspan", "Hello?"])
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .output();
    ran(output.unwrap())
}

/// Who said what, and how it ended.
fn prompt_events(ran: &Ran) -> Vec<String> {
    let events = ran
        .stdout
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let told = events.filter_map(|it| {
        let data = &it["data"];
        let item = &data["item"];
        match it["type"].as_str()? {
            "item.closed" => Some(format!("{}: {}", item["role"], item["text"])),
            "run.ended" => Some(format!("{}: {}", data["outcome"], data["error"]["message"])),
            _ => None,
        }
    });
    told.collect()
}

#[test]
fn linkspan_emits_the_prompt_when_the_agent_fails_before_echoing_it() {
    let script = "echo 'no such session' >&2; exit 42";
    let folder = machine("prompts-echo", &[("gemini", script)], "");
    let ran = run(&folder, "gemini");
    let expected = [
        r#""user": "Hello?""#,
        r#""failed": "gemini failed (rc=42)\nno such session""#,
    ];
    assert_eq!(
        (prompt_events(&ran), ran.code),
        (expected.map(str::to_owned).to_vec(), Some(1))
    );
}

#[test]
fn a_prompt_is_emitted_when_the_agent_fails_before_reading_it() {
    let script = "echo 'no login' >&2; exit 1";
    let folder = machine("prompts-dialogue", &[("agent", script)], "");
    let ran = run(&folder, "acp:agent");
    let told = prompt_events(&ran);
    assert_eq!(told[0], r#""user": "Hello?""#);
    assert!(told[1].contains("no login"), "{}", told[1]);
    assert_eq!((told.len(), ran.code), (2, Some(1)));
}

/// An ACP agent that wants a login, and logs at length that it has refused.
const WANTS_LOGIN: &str = r#"
    read -r line
    echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"web","name":"Sign in"}]}}'
    read -r line
    echo 'Error handling request { method: session/new } RequestError: at Connection.handle' >&2
    echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}'
    read -r line
"#;

#[test]
fn a_login_failure_is_reported_without_its_log() {
    let folder = machine("prompts-login", &[("agent", WANTS_LOGIN)], "");
    let ran = run(&folder, "acp:agent");
    let expected = [
        r#""user": "Hello?""#,
        r#""failed": "Authentication required; log in first: Sign in [`web`]; linkspan does it with the method that `auth_method` in `[engines.acp.NAME]` of the config names""#,
    ];
    assert_eq!(
        (prompt_events(&ran), ran.code),
        (expected.map(str::to_owned).to_vec(), Some(1))
    );
    // The log itself is kept.
    assert!(ran.stdout.contains("RequestError"), "{}", ran.stdout);
}
