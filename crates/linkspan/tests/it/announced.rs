//! A prompt of `linkspan run` or `linkspan acp` is in the journal before its agent prints anything.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints nothing before the file `go` is there.
const SILENT: &str = r#"PATH=/usr/bin:/bin
until [ -e "$HOME/go" ]; do sleep 0.05; done
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w"}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Hello."}]},"session_id":"s-1"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"Hello.","session_id":"s-1","num_turns":1}'
"#;

fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = linkspan(args);
    command
        .env_clear()
        .env("PATH", folder.path("bin"))
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null());
    command
}

fn lines(folder: &Folder, args: &[&str]) -> Vec<Value> {
    let output = command(folder, args).output().unwrap();
    let stdout = ran(output).stdout;
    let lines = stdout.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// The state and the title of every session.
fn sessions(folder: &Folder) -> Vec<(Value, Value)> {
    let sessions = lines(folder, &["sessions", "--json"]);
    let fields = |it: Value| (it["state"].clone(), it["title"].clone());
    sessions.into_iter().map(fields).collect()
}

/// What the only session holds: the kind of each event, who caused it, and the words in it.
fn stored(folder: &Folder) -> Vec<(String, String, String)> {
    let id = lines(folder, &["sessions", "--json"])[0]["id"].clone();
    let events = lines(
        folder,
        &["replay", id.as_str().unwrap(), "--to", "linkspan"],
    );
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let told = events.iter().map(|it| {
        let data = &it["data"];
        let words = match it["type"].as_str() {
            Some("run.ended") => match data["error"]["code"].as_str() {
                Some(code) => code.to_owned(),
                None => word(&data["outcome"]),
            },
            _ => word(&data["item"]["text"]),
        };
        (word(&it["type"]), word(&it["origin"]), words)
    });
    told.collect()
}

fn expected(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let own = |it: &(&str, &str, &str)| (it.0.to_owned(), it.1.to_owned(), it.2.to_owned());
    rows.iter().map(own).collect()
}

const PROMPT: [(&str, &str, &str); 3] = [
    ("run.started", "linkspan", ""),
    ("item.opened", "client", ""),
    ("item.closed", "client", "say hello"),
];

#[test]
fn a_prompt_is_stored_before_its_agent_says_anything() {
    let folder = machine("announced-silent", &[("claude", SILENT)], "");
    let mut child = command(
        &folder,
        &["run", "--engine", "claude", "--to", "linkspan", "say hello"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let starting = [(json!("starting"), json!("say hello"))];
    while sessions(&folder) != starting {
        assert!(Instant::now() < deadline, "{:?}", sessions(&folder));
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(50));
    }
    // What is there of it is a session whose owner is alive: nobody ends its run.
    let stored_early = stored(&folder);
    assert_eq!(stored_early[..3], expected(&PROMPT));
    fs::write(folder.path("go"), "").unwrap();
    let shown = ran(child.wait_with_output().unwrap());
    assert_eq!(shown.code, Some(0));
    let rest = [
        ("session.bound", "agent", ""),
        ("item.opened", "agent", ""),
        ("item.closed", "agent", "Hello."),
        ("run.ended", "agent", "completed"),
    ];
    assert_eq!(stored(&folder), expected(&[&PROMPT[..], &rest].concat()));
    assert_eq!(
        sessions(&folder),
        [(json!("idle"), json!("say hello"))],
        "{shown:?}"
    );
    // Whoever watches has seen the same.
    let numbers = shown.stdout.lines().map(|it| {
        let event: Value = serde_json::from_str(it).unwrap();
        event["seq"].as_u64().unwrap()
    });
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
}

#[test]
fn a_run_whose_agent_cannot_be_started_ends_as_such() {
    // No system takes a variable of that length.
    let config = format!("[engines.claude.env]\nLONG = \"{}\"\n", "x".repeat(4 << 20));
    let folder = machine("announced-failed", &[("claude", SILENT)], &config);
    let output = command(&folder, &["run", "--engine", "claude", "say hello"]).output();
    let shown = ran(output.unwrap());
    assert_eq!((shown.code, &*shown.stdout), (Some(1), ""));
    assert!(shown.stderr.contains("cannot start"), "{}", shown.stderr);
    let failed = [("run.ended", "linkspan", "start_failed")];
    assert_eq!(stored(&folder), expected(&[&PROMPT[..], &failed].concat()));
}

/// Reads everything and prints nothing.
const MUTE: &str = "while read -r line; do :; done";

#[test]
fn a_prompt_of_acp_is_stored_before_its_agent_prints_anything() {
    let config = "interrupt_grace = 1\n";
    let folder = machine("announced-acp", &[("claude", MUTE)], config);
    let mut child = command(&folder, &["acp", "--engine", "claude"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut send = |id: u64, method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{line}").unwrap();
    };
    let mut answer = |id: u64| {
        let messages = lines.by_ref().map(|it| it.unwrap());
        let mut messages = messages.map(|it| serde_json::from_str::<Value>(&it).unwrap());
        messages.find(|it| it["id"] == id).unwrap()["result"].clone()
    };
    send(1, "initialize", json!({"protocolVersion": 1}));
    let here = json!({"cwd": folder.path(""), "mcpServers": []});
    send(2, "session/new", here);
    let session = answer(2)["sessionId"].clone();
    let prompt = json!([{"type": "text", "text": "say hello"}]);
    let params = json!({"sessionId": session, "prompt": prompt});
    send(3, "session/prompt", params);
    let deadline = Instant::now() + PATIENCE;
    let starting = [(json!("starting"), json!("say hello"))];
    while sessions(&folder) != starting {
        assert!(Instant::now() < deadline, "{:?}", sessions(&folder));
        thread::sleep(Duration::from_millis(50));
    }
    // The messages of the handshake are notices.
    let without_notices = || -> Vec<_> {
        let events = stored(&folder).into_iter();
        events.filter(|it| it.0 != "notice.raised").collect()
    };
    assert_eq!(without_notices(), expected(&PROMPT));
    // The agent does not stop, either: it is killed, and the run has its one end.
    send(4, "session/close", json!({"sessionId": session}));
    assert_eq!(answer(3), json!({"stopReason": "cancelled"}));
    assert_eq!(answer(4), json!({}));
    let end = [("run.ended", "linkspan", "aborted")];
    assert_eq!(without_notices(), expected(&[&PROMPT[..], &end].concat()));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
