//! One fate, one outcome: whatever agent was read, a stream that stops without a result ends its run
//! in the same way. `docs/errors.md` has the same table.

use std::fmt::Write as _;

use formats::ReaderConfig;
use formats::registry::{FORMATS, find_reader};
use model::{Body, End, Event, Exit, Frame};

use crate::fixtures::root;

/// What became of the stream.
const FATES: [(&str, Option<Exit>, bool); 5] = [
    ("exit 0", Some(Exit::Code(0)), false),
    ("exit 3", Some(Exit::Code(3)), false),
    ("signal 9", Some(Exit::Signal(9)), false),
    ("cut", None, false),
    ("abort", Some(Exit::Signal(2)), true),
];

/// What is known of the session: which one was asked for, and which one answers.
const SESSIONS: [(&str, Option<&str>, Option<&str>); 5] = [
    ("none", None, None),
    ("known", None, Some("s1")),
    ("asked for", Some("s1"), None),
    ("resumed", Some("s1"), Some("s1")),
    ("wrong", Some("s1"), Some("s2")),
];

/// The outcome for every agent: by session, by fate.
const TABLE: [(&str, [&str; 5]); 5] = [
    (
        "none",
        [
            "failed no_session (ProcessExit)",
            "failed crashed (ProcessExit)",
            "failed crashed (ProcessExit)",
            "lost missing_end (MissingEnd)",
            "aborted aborted (Abort)",
        ],
    ),
    (
        "known",
        [
            "s1 Init, tool Lost, failed missing_result (ProcessExit)",
            "s1 Init, tool Lost, failed crashed (ProcessExit)",
            "s1 Init, tool Lost, failed crashed (ProcessExit)",
            "s1 Init, tool Lost, lost missing_end (MissingEnd)",
            "s1 Init, tool Cancelled, aborted aborted (Abort)",
        ],
    ),
    (
        "asked for",
        [
            "s1 Resume (ProcessExit), failed no_session (ProcessExit)",
            "s1 Resume (ProcessExit), failed crashed (ProcessExit)",
            "s1 Resume (ProcessExit), failed crashed (ProcessExit)",
            "s1 Resume (MissingEnd), lost missing_end (MissingEnd)",
            "s1 Resume (Abort), aborted aborted (Abort)",
        ],
    ),
    (
        "resumed",
        [
            "s1 Resume, tool Lost, failed missing_result (ProcessExit)",
            "s1 Resume, tool Lost, failed crashed (ProcessExit)",
            "s1 Resume, tool Lost, failed crashed (ProcessExit)",
            "s1 Resume, tool Lost, lost missing_end (MissingEnd)",
            "s1 Resume, tool Cancelled, aborted aborted (Abort)",
        ],
    ),
    (
        "wrong",
        ["s2 Mismatch, failed wrong_session (WrongSession), ignored"; 5],
    ),
];

/// Where a format differs, and why it must: format, session, fate, outcome, reason.
const EXCEPTIONS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "openresponses",
        "*",
        "cut",
        "lost upstream_truncated (MissingEnd)",
        "clients of model endpoints know this code and send the request again",
    ),
    (
        "openresponses",
        "wrong",
        "*",
        "as resumed",
        "gateways name responses by ids of their own, so another id is no other session",
    ),
];

/// The lines in which a session announces itself and calls a tool, without a result or an end.
fn stream(format: &str, session: &str) -> Vec<String> {
    let path = root().join("fates").join(format).with_extension("jsonl");
    let lines = std::fs::read_to_string(&path);
    let lines = lines.unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    (lines.lines().map(|it| it.replace("s1", session))).collect()
}

/// What the events say about the session, the tool and the end.
fn read(format: &str, expected: Option<&str>, lines: &[String], end: &End) -> String {
    let config = ReaderConfig {
        expected_session: expected.map(str::to_owned),
        ..ReaderConfig::default()
    };
    let mut reader = find_reader(format).unwrap().1(&config);
    let mut facts = Vec::new();
    let mut sink = |event: &Event<'_>| {
        let mut fact = match &event.body {
            Body::SessionBound(it) => format!("{} {:?}", it.native, it.how),
            Body::ItemClosed(it) => return facts.push(format!("tool {:?}", it.status)),
            Body::RunEnded(it) => {
                let outcome = format!("{:?}", it.outcome).to_lowercase();
                format!("{outcome} {}", it.error.as_ref().unwrap().code)
            }
            Body::NoticeRaised(it) if it.code == "ignored" => "ignored".to_owned(),
            _ => return,
        };
        if let Some(why) = event.why {
            write!(fact, " ({why:?})").unwrap();
        }
        facts.push(fact);
    };
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(end, &mut sink);
    facts.join(", ")
}

/// What the table says, with the exceptions of the format.
fn expected(format: &str, session: &str, fate: usize) -> String {
    let row = |session: &str| TABLE.iter().find(|it| it.0 == session).unwrap().1[fate];
    let is_about = |pattern: &str, name: &str| pattern == "*" || pattern == name;
    let mut outcome = row(session).to_owned();
    let of_format = EXCEPTIONS.iter().filter(|it| it.0 == format);
    for (_, sessions, fates, other, _) in of_format.rev() {
        if !is_about(sessions, session) || !is_about(fates, FATES[fate].0) {
            continue;
        }
        outcome = match other.strip_prefix("as ") {
            Some(session) => expected(format, session, fate),
            None => {
                let (before, _) = outcome.rsplit_once("lost ").unwrap_or(("", ""));
                format!("{before}{other}")
            }
        };
    }
    outcome
}

/// The formats of agents; `linkspan` is a log of what was read before.
fn agents() -> impl Iterator<Item = &'static str> {
    let readers = FORMATS.iter().filter(|it| it.reader.is_some());
    readers.map(|it| it.name).filter(|it| *it != "linkspan")
}

#[test]
fn one_fate_has_one_outcome_for_every_agent() {
    let mut failures = String::new();
    for format in agents() {
        for (session, asked_for, answers) in SESSIONS {
            let lines = answers.map(|it| stream(format, it)).unwrap_or_default();
            for (at, (fate, exit, aborted)) in FATES.into_iter().enumerate() {
                let actual = read(format, asked_for, &lines, &End { exit, aborted });
                let expected = expected(format, session, at);
                if actual != expected {
                    writeln!(
                        failures,
                        "{format}, session {session}, {fate}:\n  expected {expected}\n  actual   {actual}"
                    )
                    .unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn the_manual_gives_the_reason_of_each_exception() {
    let path = root().join("../docs/errors.md");
    let manual = std::fs::read_to_string(path).unwrap();
    for (format, .., reason) in EXCEPTIONS {
        let row = format!("| `{format}` |");
        let mut rows = manual.lines().filter(|it| it.starts_with(&row));
        assert!(rows.any(|it| it.contains(reason)), "{format}: {reason}");
    }
}

/// A log says itself how its runs ended, and how the program ended that printed it says nothing.
#[test]
fn a_log_that_stops_is_lost_whatever_its_printer_met() {
    let lines = [
        r#"{"v":1,"seq":1,"session":"x","run":"r1","engine":"claude","origin":"agent","type":"run.started","data":{"cause":"prompt"}}"#,
        r#"{"v":1,"seq":2,"session":"x","run":"r1","engine":"claude","origin":"agent","type":"item.opened","data":{"kind":"tool","id":"t","name":"Bash","class":{"kind":"shell","title":"ls"}}}"#,
    ]
    .map(str::to_owned);
    for (fate, exit, aborted) in FATES {
        let actual = read("linkspan", None, &lines, &End { exit, aborted });
        let expected = "tool Lost, lost missing_end (MissingEnd)";
        assert_eq!(actual, expected, "{fate}");
    }
}
