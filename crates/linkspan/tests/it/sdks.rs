//! What the SDKs of other agents start: `exec`, `claude-sdk`, and recordings as agents. The SDKs themselves are
//! tried by `cargo xtask peers sdks`.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Folder, Ran, linkspan, run};

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .unwrap_or_else(|err| panic!("{err}: {ran:?}"))
}

fn types(lines: &[Value]) -> Vec<&str> {
    let types = lines.iter().map(|it| it["type"].as_str().unwrap());
    types.collect()
}

#[test]
fn exec_writes_the_events_of_a_turn() {
    let engine = "linkspan.engine=\"replay:tools\"";
    let ran = run(&["exec", "--experimental-json", "--config", engine], b"go");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = lines(&ran);
    let types = types(&lines);
    assert_eq!(types[..2], ["thread.started", "turn.started"]);
    assert_eq!(types[types.len() - 1], "turn.completed");
    // A recording says the same in every turn.
    let id = lines[0]["thread_id"].as_str().unwrap();
    let again = run(&["exec", "--json", "--config", engine, "resume", id], b"go");
    assert_eq!((again.code, again.stdout), (Some(0), ran.stdout));
}

#[test]
fn exec_fails_after_the_turn_has() {
    let engine = "linkspan.engine=\"replay:failure\"";
    let ran = run(&["exec", "--json", "-c", engine], b"go");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(types(&lines(&ran)).pop(), Some("turn.failed"));
}

#[test]
fn exec_refuses_what_the_engine_cannot_keep() {
    let engine = "linkspan.engine=\"claude\"";
    let ran = run(
        &["exec", "--json", "-c", engine, "--output-schema", "f"],
        b"go",
    );
    let expected = "linkspan: `--output-schema` is not supported by claude\n\nhint: leave it out, or choose \
                    the engine `codex` with `--config linkspan.engine=codex`\nexit 2\n";
    assert_eq!(ran.shown(), expected);
}

/// The host of `claude-sdk`, as the SDK is one.
struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    heard: Vec<Value>,
}

const FLAGS: &[&str] = &[
    "--output-format",
    "stream-json",
    "--verbose",
    "--input-format",
    "stream-json",
    "--permission-prompt-tool=stdio",
    "--setting-sources=",
];

impl Host {
    fn new(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            stdin,
            stdout,
            heard: Vec::new(),
        }
    }

    fn of_engine(engine: &str) -> Self {
        // As the SDK starts it: with no command before the flags.
        let mut command = linkspan(FLAGS);
        command.env("LINKSPAN_ENGINE", engine);
        command.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
        Self::new(command)
    }

    fn say(&mut self, message: Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn ask(&mut self, request: Value) -> Value {
        self.say(json!({"type": "control_request", "request_id": "r", "request": request}));
        self.until(|it| it["type"] == "control_response")["response"].take()
    }

    fn prompt(&mut self, text: &str) {
        self.say(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.stdout.next().expect("it says more").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            self.heard.push(message.clone());
            if is_it(&message) {
                return message;
            }
        }
    }

    fn result(&mut self) -> Value {
        self.until(|it| it["type"] == "result")
    }

    /// Closes the pipe, and waits for the end; the exit code.
    fn leave(mut self) -> i32 {
        self.stdin = None;
        for line in self.stdout {
            line.unwrap();
        }
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn a_host_talks_with_any_engine() {
    let mut host = Host::of_engine("replay:tools");
    // The prompt does not wait for the answer.
    host.say(json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "systemPrompt": [""]}}));
    host.prompt("go");
    let first = host.result();
    assert_eq!(
        (&first["subtype"], &first["is_error"]),
        (&json!("success"), &json!(false))
    );
    assert_eq!(host.heard[0]["response"]["request_id"], "r1");
    let states: Vec<_> = host
        .heard
        .iter()
        .filter_map(|it| it["state"].as_str())
        .collect();
    assert_eq!(states, ["running"]);
    for message in &host.heard[1..] {
        assert!(
            message["uuid"].is_string() && message["session_id"].is_string(),
            "{message}"
        );
    }
    // What comes after the last prompt is not waited for: the turn is finished.
    host.prompt("again");
    assert_eq!(host.leave(), 0);
}

#[test]
fn settings_are_kept_or_refused_by_name() {
    let mut host = Host::of_engine("replay:tools");
    let mode = host.ask(json!({"subtype": "set_permission_mode", "mode": "plan"}));
    assert_eq!(mode["response"], json!({"mode": "plan"}));
    let model = host.ask(json!({"subtype": "set_model", "model": "m"}));
    assert_eq!(model["response"], json!({"model": "m"}));
    let idle = host.ask(json!({"subtype": "interrupt"}));
    assert_eq!(idle["response"], json!({"still_queued": []}));
    let unknown = host.ask(json!({"subtype": "rewind_files"}));
    assert_eq!(
        unknown["error"],
        "`rewind_files` cannot be done with this engine"
    );
    let refused = host.ask(json!({"subtype": "initialize", "hooks": {"PreToolUse": []}}));
    let expected = "`hooks` is not supported: linkspan cannot give hooks to replay:tools";
    assert_eq!(refused["error"], expected);
    // Nothing runs without them.
    host.prompt("go");
    assert_eq!(host.result()["errors"], json!([expected]));
    assert_eq!(host.leave(), 0);
}

#[test]
fn a_recording_waits_for_the_host() {
    let flags = ["replay", "approval", "--as", "claude", "--"];
    let mut host = Host::new(linkspan(&[&flags[..], FLAGS].concat()));
    host.prompt("go");
    let mut n_asked = 0;
    loop {
        let heard =
            host.until(|it| it["type"] == "result" || it["request"]["subtype"] == "can_use_tool");
        if heard["type"] == "result" {
            break;
        }
        n_asked += 1;
        let allow = json!({"behavior": "allow", "updatedInput": heard["request"]["input"]});
        host.say(json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": heard["request_id"], "response": allow,
        }}));
    }
    assert!(n_asked > 0, "nothing was asked");
    let withdrawn = host
        .heard
        .iter()
        .filter(|it| it["type"] == "control_cancel_request");
    assert_eq!(withdrawn.count(), 0);
    assert_eq!(host.leave(), 0);
}

#[test]
fn recordings_play_other_agents() {
    let claude = run(
        &["replay", "tools", "--as", "claude", "--", "-p", "go"],
        b"",
    );
    assert_eq!(claude.code, Some(0), "{claude:?}");
    let claude = lines(&claude);
    assert_eq!(claude[0]["subtype"], "init");
    assert_eq!(claude.last().unwrap()["type"], "result");
    let codex = run(
        &["replay", "tools", "--as", "codex", "--", "exec", "--json"],
        b"go",
    );
    assert_eq!(types(&lines(&codex)).pop(), Some("turn.completed"));
    let initialize =
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    let acp = run(
        &["replay", "tools", "--as", "acp"],
        &[initialize, &b"\n"[..]].concat(),
    );
    assert_eq!(lines(&acp)[0]["result"]["protocolVersion"], 1);
}

#[test]
fn a_session_of_the_journal_can_be_played() {
    let folder = Folder::new("sdks-session");
    let data = folder.path("data");
    let with_data = |args: &[&str]| {
        let mut command = linkspan(args);
        crate::program::ran(command.env("LINKSPAN_DATA_DIR", &data).output().unwrap())
    };
    let recorded = with_data(&[
        "run",
        "--engine",
        "replay:tools",
        "--to",
        "claude",
        "--speed",
        "0",
    ]);
    let listed = with_data(&["sessions", "--json"]);
    let session: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    let id = session["id"].as_str().unwrap();
    let played = with_data(&["replay", id, "--as", "claude"]);
    let talk = |ran: &Ran| -> Vec<Value> {
        let is_talk = |it: &Value| it["type"] != "system";
        lines(ran).into_iter().filter(is_talk).collect()
    };
    assert_eq!(types(&talk(&played)), types(&talk(&recorded)));
    // A fake agent leaves nothing behind.
    assert_eq!(with_data(&["sessions", "--json"]), listed);
}
