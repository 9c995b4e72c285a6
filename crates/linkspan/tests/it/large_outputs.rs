//! What a giant line of an agent costs: at most three times its length, and never the server.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Folder, machine};
use crate::served::{PATIENCE, Served};

const MEGABYTE: usize = 1 << 20;
const LENGTH: usize = 60 * MEGABYTE;
/// What the store's own pages and the rest of the program may need meanwhile.
const ROOM: usize = 8 * MEGABYTE;

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","num_turns":1}"#;

/// A machine whose `claude` prints a line of that length between its first and its last one. It waits for the
/// answer to what it asks.
fn machine_with(name: &str, line: &str) -> Folder {
    // The shell would read a long answer byte by byte.
    let script = format!(
        r#"PATH=/usr/bin:/bin
while read -r line; do
  case $line in *'"type":"user"'*) cat "$LINES_FILE" ;; *) continue ;; esac
  if grep -q can_use_tool "$LINES_FILE"; then
    head -n 1 > "$LINES_FILE.answer"
    echo '{RESULT}'
  fi
done"#
    );
    let folder = machine(name, &[("claude", &script)], "");
    folder.file("lines", &format!("{INIT}\n{line}\n{RESULT}\n"));
    folder
}

fn peak(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse::<usize>().unwrap() * 1024
}

/// Lets the agent print the line: what it cost, and all events of the session. The run has to complete.
fn costs(name: &str, line: &str) -> (usize, String) {
    let folder = machine_with(name, "");
    let mut command = crate::served::serve(&folder);
    command.env("LINES_FILE", folder.path("lines"));
    let served = Served::from(&mut command, &folder);
    let session = served.submit(&json!({"engine": "claude", "prompt": "hi"}));
    let ended = |n: usize| {
        served.until(&session, |it| {
            let runs = it["runs"].as_array().map_or(&[][..], Vec::as_slice);
            runs.len() == n && runs.iter().all(|it| it["outcome"] == "completed")
        })
    };
    // What is loaded for the first run is no cost of the line.
    ended(1);
    let before = peak(served.child.id());
    folder.file("lines", &format!("{INIT}\n{line}\n{RESULT}\n"));
    served.submit(&json!({"session": session, "engine": "claude", "prompt": "hi"}));
    ended(2);
    let cost = peak(served.child.id()) - before;
    let path = format!("/api/sessions/{session}/events?after=0");
    (cost, served.body("GET", &path, ""))
}

fn is_bounded(name: &str, cost: usize) {
    assert!(
        cost <= 3 * LENGTH + ROOM,
        "{name}: {} MB for a line of {} MB",
        cost / MEGABYTE,
        LENGTH / MEGABYTE
    );
}

#[test]
fn a_giant_text_costs_three_times_its_length() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let line = json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": text}]}, "session_id": "s-1"});
    let (cost, events) = costs("giant-text", &line.to_string());
    is_bounded("giant-text", cost);
    assert!(events.len() > LENGTH, "{} bytes", events.len());
}

#[test]
fn a_giant_result_of_a_tool_costs_three_times_its_length() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let call = json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}, "session_id": "s-1"});
    let result = json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]}, "session_id": "s-1"});
    let (cost, events) = costs("giant-result", &format!("{call}\n{result}"));
    is_bounded("giant-result", cost);
    assert!(events.len() > LENGTH, "{} bytes", events.len());
}

#[test]
fn a_giant_line_that_is_no_message_is_shown_by_its_beginning() {
    let (cost, events) = costs("giant-words", &"lorem ipsum ".repeat(LENGTH / 12));
    is_bounded("giant-words", cost);
    assert!(events.contains("of its bytes are left out"));
}

fn call(input: &Value, name: &str) -> String {
    json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": name, "input": input}]}, "session_id": "s-1"}).to_string()
}

/// The calls of these events as they were when they closed: each with the length of its input and of the
/// first diff.
fn closed_calls(events: &str) -> Vec<(usize, usize)> {
    let closed = events.lines().filter(|it| it.contains(r#""item.closed""#));
    let items = closed.map(|it| serde_json::from_str::<Value>(it).unwrap());
    let items = items.map(|it| it["data"]["item"].clone());
    let length = |it: &Value| it.as_str().unwrap().len();
    items
        .filter(|it| it["kind"] == "tool")
        .map(|it| {
            let diff = &it["class"]["diffs"][0]["new"];
            (length(&it["input"]["content"]), length(diff))
        })
        .collect()
}

/// The length of a text of which so much is kept.
fn cut_to(text: &str, kept: usize) -> usize {
    kept + format!("… [{} bytes cut]", text.len() - kept).len()
}

/// The content of a file that is written is the input and the change: the change is shortened, and the call
/// is stored whole once, when it closes.
#[test]
fn a_giant_input_of_a_tool_costs_three_times_its_length() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let line = call(&json!({"file_path": "/w/a", "content": text}), "Write");
    let (cost, events) = costs("giant-input", &line);
    is_bounded("giant-input", cost);
    assert_eq!(
        closed_calls(&events),
        [(text.len(), cut_to(&text, 64 << 10))]
    );
}

/// What Claude Code says of a file that it has written repeats the file: input and result are together longer
/// than what the log takes for one event.
#[test]
fn a_giant_input_with_a_giant_result_is_shortened_and_loses_no_run() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let line = call(&json!({"file_path": "/w/a", "content": text}), "Write");
    let result = json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]}, "tool_use_result": {"type": "create", "filePath": "/w/a", "content": text}, "session_id": "s-1"});
    let (cost, events) = costs("giant-written", &format!("{line}\n{result}"));
    is_bounded("giant-written", cost);
    let expected = (cut_to(&text, 8 << 20), cut_to(&text, 64 << 10));
    assert_eq!(closed_calls(&events), [expected]);
}

/// A command is the input, the command and the title of its call.
#[test]
fn a_giant_command_costs_three_times_its_length() {
    let text = "echo lorem; ".repeat(LENGTH / 12);
    let (cost, events) = costs("giant-command", &call(&json!({"command": text}), "Bash"));
    is_bounded("giant-command", cost);
    assert!(events.len() > LENGTH, "{} bytes", events.len());
}

/// The input is part of the answer too, so it is kept until then.
#[test]
fn a_giant_input_that_is_approved_costs_three_times_its_length() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let input = json!({"file_path": "/w/a", "content": text});
    let request = json!({"subtype": "can_use_tool", "tool_name": "Write", "input": input, "tool_use_id": "t1"});
    let ask = json!({"type": "control_request", "request_id": "r1", "request": request});
    for (name, call) in [
        ("giant-ask", String::new()),
        ("giant-call-ask", call(&input, "Write")),
    ] {
        let folder = machine_with(name, "");
        let mut command = crate::served::serve(&folder);
        command.env("LINES_FILE", folder.path("lines"));
        let served = Served::from(&mut command, &folder);
        let session = served.submit(&json!({"engine": "claude", "prompt": "hi"}));
        served.idle(&session);
        let before = peak(served.child.id());
        folder.file("lines", &format!("{INIT}\n{call}\n{ask}\n"));
        served.submit(&json!({"session": session, "engine": "claude", "prompt": "hi"}));
        is_listed_as(&served, &session, "waiting");
        let asks = served.request("GET", "/api/asks", "").json();
        let id = asks["asks"][0]["id"].as_str().unwrap();
        let answer = served.request(
            "POST",
            &format!("/api/asks/{id}"),
            r#"{"decision":"allow"}"#,
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        is_listed_as(&served, &session, "idle");
        let cost = peak(served.child.id()) - before;
        is_bounded(name, cost);
        let answer: Value =
            serde_json::from_str(&fs::read_to_string(folder.path("lines.answer")).unwrap())
                .unwrap();
        assert_eq!(answer["response"]["response"]["updatedInput"], input);
    }
}

/// Waits for a state without reading what the agent asks, which is a cost of its own.
fn is_listed_as(served: &Served, session: &str, state: &str) {
    let began = Instant::now();
    loop {
        let listed = served.request("GET", "/api/sessions", "").json();
        let sessions = listed["sessions"].as_array().unwrap();
        if sessions
            .iter()
            .any(|it| it["id"] == session && it["state"] == state)
        {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "it never came to that: {listed}"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// All the memory that the server may map, however it is used: code, stacks and reserves of the allocator
/// count as well.
const ADDRESS_SPACE: usize = 830 * MEGABYTE;

#[test]
fn a_server_with_little_memory_outlives_a_giant_line() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let line = call(&json!({"file_path": "/w/a", "content": text}), "Write");
    let folder = machine_with("giant-limited", &line);
    let mut command = limited(&crate::served::serve(&folder), ADDRESS_SPACE);
    // Every thread reserves address space; how many there are must not depend on the machine.
    command.env("TOKIO_WORKER_THREADS", "2");
    command.env("LINES_FILE", folder.path("lines"));
    let served = Served::from(&mut command, &folder);
    let limits = fs::read_to_string(format!("/proc/{}/limits", served.child.id())).unwrap();
    let is_limited = |it: &str| {
        it.starts_with("Max address space") && it.contains(&format!(" {ADDRESS_SPACE} "))
    };
    assert!(limits.lines().any(is_limited), "{limits}");
    let session = served.submit(&json!({"engine": "claude", "prompt": "hi"}));
    for n in 1..=3 {
        served.until(&session, |it| {
            let runs = it["runs"].as_array().map_or(&[][..], Vec::as_slice);
            runs.len() == n && runs.iter().all(|it| it["outcome"] == "completed")
        });
        if n < 3 {
            served.submit(&json!({"session": session, "engine": "claude", "prompt": "hi"}));
        }
    }
    assert_eq!(served.request("GET", "/healthz", "").status, 200);
}

/// The command in a process that may map that much memory.
fn limited(command: &Command, bytes: usize) -> Command {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\""])
        .arg((bytes / 1024).to_string())
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}
