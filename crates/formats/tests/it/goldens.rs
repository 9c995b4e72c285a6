//! Recordings in, golden files out. `UPDATE_EXPECT=1` rewrites them; the diff is the review.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use formats::registry::FORMATS;
use model::{Body, End, Event};

use crate::fixtures::{convert, recordings, root};
use crate::test_notation::event_line;

/// What every writer is shown; together they hold everything the model can say.
const CORPUS: &[&str] = &[
    "model/everything",
    "claude/api_error_401",
    "claude/control_permissions.duplex",
    "claude/max_turns",
    "claude/multi_tool.partial",
    "claude/notebook_and_image",
    "claude/odd_lines",
    "claude/redacted_thinking",
    "claude/sigint_during_bash",
    "claude/sigkill_during_bash",
    "claude/slash_compact_ok",
    "claude/subagent_forward_text.partial",
    "claude/task_tools",
];
/// The cases that every profile is shown too.
const IN_EVERY_PROFILE: &[&str] = &[
    "model/everything",
    "claude/control_permissions.duplex",
    "claude/multi_tool.partial",
];

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

/// The formats that are read, apart from our own.
fn readers() -> impl Iterator<Item = &'static str> {
    let readers = FORMATS.iter().filter(|it| it.reader.is_some());
    readers.map(|it| it.name).filter(|it| *it != "linkspan")
}

#[test]
fn recordings_become_canonical_events() {
    let mut failures = Vec::new();
    for from in readers() {
        for recording in recordings(from) {
            let actual = convert(from, "linkspan", None, &recording.bytes, &recording.end);
            let golden = recording
                .path
                .with_file_name(format!("{}.events.jsonl", recording.name));
            failures.extend(differs(&golden, &actual));
            failures.extend(differs(&golden.with_extension("txt"), &in_short(&actual)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Characters of a line in a short golden file: enough to see what changed, and the long one beside
/// it has the rest.
const MAX_LINE: usize = 160;

/// Canonical events as a person reviews them: a short line for each, and one for the pieces of a text.
fn in_short(events: &str) -> String {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for line in events.lines() {
        let event = Event::from_json(line).unwrap();
        let mut line = event_line(&event);
        if let Body::ItemDelta(delta) = &event.body {
            let n = line.find(&format!(". {} ", delta.item)).unwrap();
            line.truncate(n);
            line.push_str(&format!(". {} {:?}", delta.item, delta.channel));
        }
        let line: String = line.chars().take(MAX_LINE).collect();
        match lines.last_mut() {
            Some((last, n)) if *last == line => *n += 1,
            _ => lines.push((line, 1)),
        }
    }
    let lines = lines.into_iter().map(|(line, n)| match n {
        1 => line + "\n",
        n => format!("{line} ×{n}\n"),
    });
    lines.collect()
}

#[test]
fn canonical_events_round_trip() {
    for (from, recording) in
        readers().flat_map(|from| recordings(from).into_iter().map(move |it| (from, it)))
    {
        let events = convert(from, "linkspan", None, &recording.bytes, &recording.end);
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

#[test]
fn events_become_every_protocol() {
    let mut failures = Vec::new();
    for case in CORPUS {
        let events = fs::read(root().join(format!("{case}.events.jsonl"))).unwrap();
        let name = case.split_once('/').unwrap().1;
        for format in FORMATS {
            if format.writer.is_none() || format.name == "linkspan" {
                continue;
            }
            let profiles = format.profiles.iter().map(|it| Some(it.name));
            let profiles = profiles.filter(|_| IN_EVERY_PROFILE.contains(case));
            for profile in std::iter::once(None).chain(profiles) {
                let actual = convert("linkspan", format.name, profile, &events, &End::default());
                let extension = match format.name {
                    "ag-ui" => "sse",
                    "text" => "txt",
                    "markdown" => "md",
                    "html" => "html",
                    _ => "jsonl",
                };
                let profile = profile.map(|it| format!(".{it}")).unwrap_or_default();
                let folder = root().join(format.name);
                fs::create_dir_all(&folder).unwrap();
                let golden = folder.join(format!("{name}{profile}.{}.{extension}", format.name));
                failures.extend(differs(&golden, &actual));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_corpus_covers_the_whole_model() {
    let mut seen = BTreeSet::new();
    for case in CORPUS {
        let events = fs::read_to_string(root().join(format!("{case}.events.jsonl"))).unwrap();
        for line in events.lines() {
            let event = Event::from_json(line).unwrap();
            seen.insert(event.body.name().to_owned());
            match &event.body {
                Body::ItemOpened(item) => {
                    seen.insert(format!("item {}", item.kind()));
                }
                Body::ItemClosed(closed) => {
                    seen.insert(format!("status {:?}", closed.status).to_lowercase());
                }
                Body::RunEnded(ended) => {
                    seen.insert(format!("outcome {:?}", ended.outcome).to_lowercase());
                }
                Body::NoticeRaised(notice) => {
                    seen.insert(format!("level {:?}", notice.level).to_lowercase());
                }
                Body::AskSettled(settled) => {
                    seen.insert(format!("decision {:?}", settled.decision).to_lowercase());
                }
                _ => (),
            }
        }
    }
    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
    expect_test::expect![[r#"
        ask.opened
        ask.settled
        decision allowed
        decision allowedalways
        decision denied
        decision lost
        frame.unmapped
        item compaction
        item message
        item other
        item plan
        item reasoning
        item subagent
        item tool
        item.closed
        item.delta
        item.opened
        item.updated
        level debug
        level error
        level info
        level warning
        notice.raised
        outcome aborted
        outcome completed
        outcome failed
        outcome limit
        outcome lost
        outcome refused
        run.ended
        run.started
        session.bound
        status cancelled
        status denied
        status error
        status lost
        status ok
        usage.reported"#]]
    .assert_eq(&seen.join("\n"));
}

#[test]
fn every_format_has_a_page() {
    for format in FORMATS {
        let page = root().join(format!("../docs/{}.md", format.name));
        assert!(page.exists(), "docs/{}.md is missing", format.name);
        let text = fs::read_to_string(page).unwrap();
        for profile in format.profiles {
            let name = format!("`{}`", profile.name);
            assert!(
                text.contains(&name),
                "docs/{}.md does not tell of {name}",
                format.name
            );
        }
    }
}
