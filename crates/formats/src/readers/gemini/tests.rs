//! What no recording shows by itself.

use expect_test::{Expect, expect};
use model::{End, Exit};

use super::{Gemini, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_summary::summarize;

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-15T18:17:16.193Z","session_id":"s1","model":"m"}"#;

fn check(lines: &[&str], exit: Option<Exit>, expect: Expect) {
    let reader = machine::<Gemini>(&ReaderConfig::default());
    let aborted = false;
    expect.assert_eq(&summarize(reader, lines, &End { exit, aborted }));
}

#[test]
fn any_other_event_ends_the_chunks() {
    check(
        &[
            r#"{"type":"message","role":"assistant","content":"a","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"b","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"whole"}"#,
            r#"{"type":"message","role":"assistant","content":"c","delta":true}"#,
            r#"{"type":"result","status":"success"}"#,
        ],
        None,
        expect![[r#"
            started
            + Assistant message.1 ""
              message.1 Text "a"
              message.1 Text "b"
            - Ok Assistant message.1 "ab"
            + Assistant message.2 ""
            - Ok Assistant message.2 "whole"
            + Assistant message.3 ""
              message.3 Text "c"
            - Ok Assistant message.3 "c"
            ended Completed answer="c"
        "#]],
    );
}

#[test]
fn results_without_a_call_and_in_any_order() {
    check(
        &[
            INIT,
            r#"{"type":"tool_use","tool_name":"read_file","tool_id":"a","parameters":{"file_path":"x"}}"#,
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"b","parameters":{"command":"ls"}}"#,
            r#"{"type":"tool_result","tool_id":"b","status":"error","output":"","error":{"type":"policy_violation","message":"not allowed"}}"#,
            r#"{"type":"tool_result","tool_id":"zzz","status":"success","output":"o"}"#,
            r#"{"type":"tool_result","tool_id":"a","status":"success"}"#,
            r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"t","parameters":{"todos":[{"description":"A","status":"in_progress"}]}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"success"}"#,
        ],
        Some(Exit::Code(0)),
        expect![[r#"
            bound s1 Init m
            started
            + Read a "Read x"
            + Shell b "ls"
            - Denied Shell b "ls" = "not allowed"
            + Other zzz "tool result"  (NeverOpened)
            - Ok Other zzz "tool result" = "o"
            - Ok Read a "Read x" = ""
            + Todo t "write_todos"
            + plan plan A:InProgress
            - Ok Todo t "write_todos" = ""
            - Ok plan plan A:InProgress  (ProcessExit)
            ended Failed missing_result: gemini finished without a result event  (ProcessExit)
        "#]],
    );
}

#[test]
fn how_a_run_fails() {
    let result = |kind: &str| {
        format!(
            r#"{{"type":"result","status":"error","error":{{"type":"{kind}","message":"why"}},"stats":{{}}}}"#
        )
    };
    let (limit, cancelled, other) = (
        result("FatalTurnLimitedError"),
        result("FatalCancellationError"),
        result("unknown"),
    );
    check(
        &[
            &limit,
            &cancelled,
            &other,
            r#"{"type":"error","severity":"warning","message":"Loop detected"}"#,
        ],
        Some(Exit::Code(53)),
        expect![[r#"
            started
            ended Limit FatalTurnLimitedError: why
            Debug after_end: a line after the end of the run
            Debug after_end: a line after the end of the run
            Debug after_end: a line after the end of the run
        "#]],
    );
    check(
        &[],
        Some(Exit::Code(42)),
        expect![[r#"
            started  (ProcessExit)
            ended Failed crashed: gemini failed (rc=42)  (ProcessExit)
        "#]],
    );
}

#[test]
fn two_recordings_in_one_file_are_two_runs() {
    let other = INIT.replace("s1", "s2");
    check(
        &[INIT, r#"{"type":"result","status":"success"}"#, &other],
        None,
        expect![[r#"
            bound s1 Init m
            started
            ended Completed
            bound s2 Init m
            started
            ended Lost missing_end: the stream ended without a result  (MissingEnd)
        "#]],
    );
    check(
        &[INIT, &other],
        None,
        expect![[r#"
        bound s1 Init m
        started
        bound s2 Mismatch -
        ended Failed wrong_session: the agent changed its session from `s1` to `s2`  (WrongSession)
    "#]],
    );
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let reader = machine::<Gemini>(&ReaderConfig {
        expected_session: Some("s9".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = summarize(reader, &[INIT, INIT], &End::default());
    expect![[r#"
        started  (WrongSession)
        bound s1 Mismatch -
        ended Failed wrong_session: session `s9` was asked for, the agent answered as `s1`  (WrongSession)
        Warning ignored: 1 lines after the end were ignored
    "#]].assert_eq(&shown);
}

#[test]
fn odd_lines_are_kept() {
    check(
        &[
            "not json",
            "7",
            r#"{"type":"novel","a":1}"#,
            r#"{"type":"message","role":"tool","content":"x"}"#,
            r#"{"t":1,"dir":"in","msg":{"type":"message","role":"user"}}"#,
        ],
        None,
        expect![[r#"
            Warning bad_line: not JSON: not json
            Warning bad_line: not a Gemini event: no object
            unmapped type `novel`
            unmapped message of another role
            unmapped message to the agent
            started  (MissingEnd)
            ended Lost missing_end: the stream ended without a result  (MissingEnd)
        "#]],
    );
}

#[test]
fn its_own_frames_are_recognised() {
    assert!(recognises(INIT));
    assert!(recognises(&format!(
        r#"{{"t":1,"dir":"out","msg":{INIT}}}"#
    )));
    for recording in [
        include_str!("../../../../../fixtures/gemini/text.jsonl"),
        include_str!("../../../../../fixtures/gemini/tools.jsonl"),
        include_str!("../../../../../fixtures/gemini/error_400.jsonl"),
    ] {
        assert!(recording.lines().all(recognises));
        assert!(!recording.lines().any(crate::readers::opencode::recognises));
    }
    let claude = include_str!("../../../../../fixtures/claude/multi_tool.partial.jsonl");
    assert!(!claude.lines().any(recognises));
    assert!(!claude.lines().any(crate::readers::opencode::recognises));
    for other in [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#,
        r#"{"type":"tool_use","timestamp":1,"sessionID":"ses_1","part":{}}"#,
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"kind":"MessageEvent","timestamp":"2026-11-15T18:17:16"}"#,
        "{}",
        "x",
    ] {
        assert!(!recognises(other), "{other}");
    }
}
