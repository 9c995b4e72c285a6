//! Recordings in, golden files out. `UPDATE_EXPECT=1` rewrites them; the diff is the review.

use std::fs;
use std::path::Path;

use crate::fixtures::{convert, recordings};

/// Compares with the file, or rewrites it; returns what differs.
fn differs(golden: &Path, actual: &str) -> Option<String> {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(golden, actual).unwrap();
        return None;
    }
    let expected = fs::read_to_string(golden).unwrap_or_default();
    if expected == actual {
        return None;
    }
    let line = expected
        .lines()
        .zip(actual.lines())
        .position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("<end>").to_owned();
    let (expected, actual) = (at(&expected), at(actual));
    Some(format!(
        "{}:{}\n  expected {expected}\n  actual   {actual}",
        golden.display(),
        line + 1
    ))
}

#[test]
fn claude_recordings_become_canonical_events() {
    let mut failures = Vec::new();
    for recording in recordings("claude") {
        let actual = convert("claude", "linkspan", None, &recording.bytes, &recording.end);
        let golden = recording
            .path
            .with_file_name(format!("{}.events.jsonl", recording.name));
        failures.extend(differs(&golden, &actual));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn canonical_events_round_trip() {
    for recording in recordings("claude") {
        let events = convert("claude", "linkspan", None, &recording.bytes, &recording.end);
        let again = convert(
            "linkspan",
            "linkspan",
            None,
            events.as_bytes(),
            &recording.end,
        );
        assert_eq!(events, again, "{}", recording.name);
    }
}
