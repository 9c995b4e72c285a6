//! What `codex exec --json` printed comes back as it was: `codex` read, `thread` written.
//!
//! Compared line by line as JSON. Apart from that are the second `id` key of a `web_search`, which
//! is written once, and what an interrupted stream never said: the end of its turn and of the items
//! that were open.

use std::collections::BTreeSet;

use model::End;
use serde_json::Value;

use crate::fixtures::{Recording, convert, recordings};

#[test]
fn exec_recordings_come_back_as_they_were() {
    let mut failures = Vec::new();
    let mut n_compared = 0;
    for recording in exec() {
        let end = &recording.end;
        let written = convert("codex", "thread", None, &recording.bytes, end);
        let text = String::from_utf8(recording.bytes.clone()).unwrap();
        let recorded: Vec<Value> = text.lines().map(recorded).collect();
        let written = without_made_up(lines(&written), &recorded);
        n_compared += recorded.len();
        for at in 0..recorded.len().max(written.len()) {
            let (before, after) = (recorded.get(at), written.get(at));
            if before != after {
                let name = &recording.name;
                let (before, after) = (text_of(before), text_of(after));
                failures.push(format!("{name}:{}\n  {before}\n  {after}", at + 1));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(n_compared > 150, "only {n_compared} lines were compared");
}

#[test]
fn a_second_time_changes_nothing() {
    for recording in exec() {
        let once = convert("codex", "thread", None, &recording.bytes, &recording.end);
        let twice = convert("codex", "thread", None, once.as_bytes(), &End::default());
        assert_eq!(once, twice, "{}", recording.name);
    }
}

fn exec() -> impl Iterator<Item = Recording> {
    let all = recordings("codex").into_iter();
    all.filter(|it| !it.name.ends_with(".duplex"))
}

/// A recorded line with the first `id` of its item, where a plain parser keeps the last.
fn recorded(line: &str) -> Value {
    let mut event: Value = serde_json::from_str(line).unwrap();
    if event["item"]["type"] == "web_search" {
        let (_, rest) = line.split_once("\"id\":\"").unwrap();
        event["item"]["id"] = Value::from(rest.split('"').next().unwrap());
    }
    event
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

/// The written lines without the ends that the recording does not have.
fn without_made_up(mut written: Vec<Value>, recorded: &[Value]) -> Vec<Value> {
    let is_end = |it: &Value| it["type"] == "turn.completed" || it["type"] == "turn.failed";
    if !recorded.iter().any(is_end) {
        let end = written.pop().unwrap();
        assert_eq!(
            end["type"], "turn.failed",
            "an end that is made up is no success"
        );
    }
    let completed = recorded.iter().filter(|it| it["type"] == "item.completed");
    let completed: BTreeSet<&str> = completed
        .filter_map(|it| it["item"]["id"].as_str())
        .collect();
    written.retain(|it| {
        let is_made_up = it["type"] == "item.completed"
            && !completed.contains(it["item"]["id"].as_str().unwrap());
        assert!(!is_made_up || it["item"]["status"] == "failed");
        !is_made_up
    });
    written
}

fn text_of(event: Option<&Value>) -> String {
    let text = event.map_or("<nothing>".to_owned(), Value::to_string);
    text.chars().take(400).collect()
}
