//! What a giant line of an agent costs: at most three times its length, and never the server.

#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::program::{Folder, machine};
use crate::served::Served;

const MEGABYTE: usize = 1 << 20;
const LENGTH: usize = 60 * MEGABYTE;
/// What the store's own pages and the rest of the program may need meanwhile.
const ROOM: usize = 8 * MEGABYTE;

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","num_turns":1}"#;

/// A machine whose `claude` prints a line of that length between its first and its last one.
fn machine_with(name: &str, line: &str) -> Folder {
    let script = r#"PATH=/usr/bin:/bin
while read -r line; do
  case $line in *'"type":"user"'*) cat "$LINES_FILE" ;; esac
done"#;
    let folder = machine(name, &[("claude", script)], "");
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

/// An event repeats the content of a file that is written, as the input and as a change: together they are
/// longer than what the log takes for one event.
#[test]
fn a_giant_input_of_a_tool_is_shortened_and_loses_no_run() {
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let call = json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "/w/a", "content": text}}]}, "session_id": "s-1"});
    let (_, events) = costs("giant-input", &call.to_string());
    assert!(events.contains(" bytes cut]"));
}
