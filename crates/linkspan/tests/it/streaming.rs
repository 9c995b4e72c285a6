//! Live streams: nothing waits for what has not been said yet, and nothing is kept that has.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::program::{Folder, event, fixture, kinds, linkspan, run};

/// A conversion that is fed line by line.
struct Live {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Live {
    fn start(from: &str, to: &str) -> Self {
        let mut child = linkspan(&["convert", "--from", from, "--to", to])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn say(&mut self, line: &str) {
        self.stdin.write_all(line.as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn read_rest(mut self) -> (String, Option<i32>) {
        drop(self.stdin);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

const OPENED: &str = r#"{"kind":"message","id":"m1","role":"assistant","text":""}"#;

#[test]
fn a_consumer_sees_each_event_before_the_next_line_is_sent() {
    let mut live = Live::start("linkspan", "linkspan");
    let lines = [
        event(1, "run.started", r#"{"cause":"prompt"}"#),
        event(2, "item.opened", OPENED),
        event(
            3,
            "item.delta",
            r#"{"item":"m1","channel":"text","text":"a"}"#,
        ),
        event(
            4,
            "item.delta",
            r#"{"item":"m1","channel":"text","text":"b"}"#,
        ),
    ];
    for line in lines {
        live.say(&line);
        assert_eq!(live.hear(), line);
    }
    let (rest, code) = live.read_rest();
    assert_eq!(kinds(&rest), ["item.closed", "run.ended"]);
    assert_eq!(code, Some(0));
}

#[test]
fn every_frame_of_an_agent_is_answered_before_the_next() {
    let recording = fs::read_to_string(fixture("claude/text.partial.jsonl")).unwrap();
    let mut live = Live::start("claude", "linkspan");
    for line in recording.split_inclusive('\n') {
        live.say(line);
        if line.contains(r#""text_delta""#) {
            while !live.hear().contains(r#""item.delta""#) {}
        }
    }
    let (rest, code) = live.read_rest();
    assert_eq!(kinds(&rest).last().map(String::as_str), Some("run.ended"));
    assert_eq!(code, Some(0));
}

#[test]
fn what_is_meant_to_pass_is_only_written_live() {
    let path = fixture("claude/text.partial.jsonl");
    let recording = fs::read(&path).unwrap();
    let folder = Folder::new("live");
    let file = folder.path("out.jsonl");
    let is_live = |events: &str| events.contains("StreamingDeltaEvent");
    let flags = ["convert", "--from", "claude", "--to", "openhands"];
    assert!(is_live(&run(&flags, &recording).stdout));
    assert!(!is_live(&run(&[&flags[..], &[&path]].concat(), b"").stdout));
    run(&[&flags[..], &["-o", &file]].concat(), &recording);
    assert!(!is_live(&fs::read_to_string(file).unwrap()));
}

#[test]
fn half_a_line_waits_for_its_end() {
    let mut live = Live::start("linkspan", "linkspan");
    let line = event(1, "run.started", r#"{"cause":"prompt"}"#);
    let (head, tail) = line.split_at(20);
    live.say(head);
    live.say(tail);
    assert_eq!(live.hear(), line);
    assert_eq!(live.read_rest().1, Some(0));
}

#[test]
#[cfg(unix)]
fn an_interrupt_ends_the_output_and_exits_with_130() {
    let mut live = Live::start("linkspan", "linkspan");
    live.say(&event(1, "run.started", r#"{"cause":"prompt"}"#));
    live.say(&event(2, "item.opened", OPENED));
    live.hear();
    live.hear();
    let pid = live.child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    // Its stdin stays open: it does not wait for more.
    let mut rest = String::new();
    live.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(kinds(&rest), ["item.closed", "run.ended"]);
    assert_eq!(live.child.wait().unwrap().code(), Some(130));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_input() {
    let mut live = Live::start("linkspan", "linkspan");
    let mut at_start = 0;
    for n in 1..=64 {
        live.say(&block(n));
        for _ in 0..3 {
            live.hear();
        }
        if n == 8 {
            at_start = peak_kilobytes(live.child.id());
        }
    }
    let at_end = peak_kilobytes(live.child.id());
    assert!(
        at_end < at_start + 4 * 1024,
        "{at_start} KB, then {at_end} KB"
    );
    assert_eq!(live.read_rest().1, Some(0));
}

/// A run around a message of a quarter of a megabyte.
#[cfg(target_os = "linux")]
fn block(n: u64) -> String {
    let text = "lorem ipsum ".repeat(20_000);
    let notice = format!(r#"{{"level":"info","code":"status","text":"{text}"}}"#);
    [
        event(3 * n - 2, "run.started", r#"{"cause":"prompt"}"#),
        event(3 * n - 1, "notice.raised", &notice),
        event(3 * n, "run.ended", r#"{"outcome":"completed"}"#),
    ]
    .concat()
}

#[cfg(target_os = "linux")]
fn peak_kilobytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status
        .lines()
        .find_map(|it| it.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
