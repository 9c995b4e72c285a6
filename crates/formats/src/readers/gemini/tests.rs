//! What no recording shows by itself.

use expect_test::{Expect, expect};
use model::{End, Exit};

use super::{Gemini, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::read_lines;

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-15T18:17:16.193Z","session_id":"s1","model":"m"}"#;

fn check(lines: &[&str], exit: Option<Exit>, expect: Expect) {
    let reader = machine::<Gemini>(&ReaderConfig::default());
    let aborted = false;
    expect.assert_eq(&read_lines(reader, lines, &End { exit, aborted }));
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
            run.started prompt
            + message message.1 "" role=assistant
            . message.1 text a
            . message.1 text b
            - ok message message.1 ab role=assistant
            + message message.2 "" role=assistant
            - ok message message.2 whole role=assistant
            + message message.3 "" role=assistant
            . message.3 text c
            - ok message message.3 c role=assistant
            run.ended completed answer=c
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
            session s1 init model=m
            run.started prompt
            + tool a class={read "Read x" paths=[{path=x}]} input={"file_path":"x"} name=read_file
            + tool b class={shell ls command=ls} input={"command":"ls"} name=run_shell_command
            - denied tool b class={shell ls command=ls} input={"command":"ls"} name=run_shell_command result={content="not allowed" is_error=true structured={"message":"not allowed","type":"policy_violation"}}
            + tool zzz class={other "tool result"} name=unknown (never_opened)
            - ok tool zzz class={other "tool result"} name=unknown result={content="o"}
            - ok tool a class={read "Read x" paths=[{path=x}]} input={"file_path":"x"} name=read_file result={content=""}
            + tool t class={todo write_todos} input={"todos":[{"description":"A","status":"in_progress"}]} name=write_todos
            + plan plan entries=[{in_progress A}]
            - ok tool t class={todo write_todos} input={"todos":[{"description":"A","status":"in_progress"}]} name=write_todos result={content=""}
            - ok plan plan entries=[{in_progress A}] (process_exit)
            run.ended failed error={missing_result "gemini finished without a result event"} (process_exit)
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
            run.started prompt
            run.ended limit error={FatalTurnLimitedError why} usage={run delta tokens={cache_read=0 cache_write=0 input=0}}
            notice debug after_end "a line after the end of the run"
            notice debug after_end "a line after the end of the run"
            notice debug after_end "a line after the end of the run"
        "#]],
    );
    check(
        &[],
        Some(Exit::Code(42)),
        expect![[r#"
            run.started prompt (process_exit)
            run.ended failed error={crashed "gemini failed (rc=42)"} (process_exit)
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
            session s1 init model=m
            run.started prompt
            run.ended completed
            session s2 init model=m
            run.started prompt
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
    check(
        &[INIT, &other],
        None,
        expect![[r#"
            session s1 init model=m
            run.started prompt
            session s2 mismatch
            run.ended failed error={wrong_session "the agent changed its session from `s1` to `s2`"} (wrong_session)
        "#]],
    );
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let reader = machine::<Gemini>(&ReaderConfig {
        expected_session: Some("s9".to_owned()),
        ..ReaderConfig::default()
    });
    let shown = read_lines(reader, &[INIT, INIT], &End::default());
    expect![[r#"
        run.started prompt (wrong_session)
        session s1 mismatch
        run.ended failed error={wrong_session "session `s9` was asked for, the agent answered as `s1`"} (wrong_session)
        notice warning ignored "1 lines after the end were ignored"
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
            notice warning bad_line "not JSON: not json"
            notice warning bad_line "not a Gemini event: no object"
            unmapped "type `novel`"
            unmapped "message of another role"
            unmapped "message to the agent"
            run.started prompt (missing_end)
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
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
