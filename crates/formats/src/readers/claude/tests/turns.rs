//! Turns: how they begin, what their result says, what follows it, and streams that stop.

use expect_test::expect;
use model::{Event, Exit, Frame};

use super::*;
use crate::readers::RunEnds;

fn live() -> ReaderConfig {
    ReaderConfig {
        run_ends: RunEnds::AtResult,
        ..ReaderConfig::default()
    }
}

#[test]
fn a_result_says_how_the_turn_went() {
    let with = |fields: Value| {
        let mut line = json!({"type": "result", "session_id": "s1", "is_error": true});
        line.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        line
    };
    let ends = [
        with(
            json!({"subtype": "success", "is_error": false, "result": "fine", "num_turns": 2, "duration_ms": 5}),
        ),
        with(
            json!({"subtype": "success", "is_error": false, "result": "no", "stop_reason": "refusal"}),
        ),
        with(json!({"subtype": "error_max_turns"})),
        with(
            json!({"subtype": "error_during_execution", "terminal_reason": "aborted_by_user", "errors": ["a"]}),
        ),
        with(json!({"subtype": "error_during_execution", "errors": ["a", "b"]})),
        with(json!({"subtype": "success", "result": "API Error: 500"})),
    ];
    let ended = ends.map(|end| {
        let lines = [init().to_string(), end.to_string()];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let events = read_lines(machine::<Claude>(&live()), &lines, &exit(0));
        events.lines().last().unwrap().to_owned()
    });
    expect![[r#"
        run.ended completed answer=fine duration_ms=5
        run.ended refused answer=no error={refused no} stop_reason=refusal
        run.ended limit error={error_max_turns "claude run failed (error_max_turns)"}
        run.ended aborted error={aborted aborted}
        run.ended failed error={failed "a; b" native=error_during_execution}
        run.ended failed error={server_error "API Error: 500"}
    "#]]
    .assert_eq(&(ended.join("\n") + "\n"));
}

#[test]
fn an_api_failure_gives_the_error_its_code() {
    let mut failed = text("m1", "Credit balance is too low");
    failed["error"] = json!("billing_error");
    failed["is_api_error_message"] = json!(true);
    let mut end = result("Credit balance is too low");
    end["is_error"] = json!(true);
    check(
        &[
            init(),
            system(
                "api_retry",
                json!({"attempt": 1, "max_retries": 10, "retry_delay_ms": 500, "error": "server_error", "error_status": 529}),
            ),
            failed,
            end,
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            notice warning api_retry "retry 1 of 10 in 0.5 s: server_error 529"
            notice error api_error "Credit balance is too low" extra={"error":"billing_error"}
            run.ended failed error={billing "Credit balance is too low" native=billing_error}
        "#]],
    );
}

#[test]
fn what_a_background_task_wakes_the_model_for_belongs_to_the_run_before() {
    let mut woken = result("Second.");
    woken["origin"] = json!({"kind": "task-notification"});
    woken["permission_denials"] = json!([{"tool_name": "Write"}]);
    let mut first = result("First.");
    first["permission_denials"] = json!([{"tool_name": "Bash"}]);
    check(
        &[
            init(),
            text("m1", "First."),
            first,
            system(
                "task_notification",
                json!({"task_id": "k", "status": "completed", "summary": "built"}),
            ),
            init(),
            text("m2", "Second."),
            woken,
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + message m1.0 "" group=m1 role=assistant
            - ok message m1.0 First. group=m1 role=assistant
            notice info task_notification built
            session s1 repeat cwd=/w model=m
            + message m2.0 "" group=m2 role=assistant
            - ok message m2.0 Second. group=m2 role=assistant
            run.ended completed answer=Second. denials=[{tool=Bash} {tool=Write}]
        "#]],
    );
}

#[test]
fn a_client_that_waits_gets_each_end_with_its_result() {
    let lines = [
        prompt("one"),
        init(),
        result("1"),
        text("m9", "late"),
        prompt("two"),
        result("2"),
    ];
    check_with(
        &live(),
        &lines,
        &exit(0),
        expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        + message prompt.0 "" role=user
        - ok message prompt.0 one role=user
        run.ended completed answer=1
        notice debug after_end "a line after the end of the run"
        run.started prompt
        + message prompt.1 "" role=user
        - ok message prompt.1 two role=user
        run.ended completed answer=2
    "#]],
    );
}

#[test]
fn prompts_that_wait_for_their_turn_are_not_lost() {
    let lines = [prompt("one"), prompt("two"), init(), text("m1", "half")];
    let end = End {
        exit: Some(Exit::Signal(9)),
        aborted: false,
    };
    check_with(
        &ReaderConfig::default(),
        &lines,
        &end,
        expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        + message prompt.0 "" role=user
        - ok message prompt.0 one role=user
        + message m1.0 "" group=m1 role=assistant
        - ok message m1.0 half group=m1 role=assistant
        run.ended failed answer=half error={crashed "claude was ended by signal 9"} (process_exit)
        run.started prompt
        + message prompt.1 "" role=user
        - ok message prompt.1 two role=user
        run.ended failed error={crashed "claude was ended by signal 9"} (process_exit)
    "#]],
    );
}

#[test]
fn an_interrupt_makes_the_missing_end_an_abort() {
    let interrupt =
        json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}});
    check(
        &[
            init(),
            call("t1", "Bash", json!({"command": "sleep 9"})),
            sent(interrupt),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            + tool t1 class={shell "sleep 9" command="sleep 9"} group=m1 input={"command":"sleep 9"} name=Bash
            notice info interrupt "the host asked for an interrupt"
            - cancelled tool t1 class={shell "sleep 9" command="sleep 9"} group=m1 input={"command":"sleep 9"} name=Bash (abort)
            run.ended aborted error={aborted aborted} (abort)
        "#]],
    );
    let marker = json!({"type": "user", "session_id": "s1", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}});
    check(
        &[init(), marker],
        expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        notice info interrupted "Request interrupted by user"
        run.ended aborted error={aborted aborted} (abort)
    "#]],
    );
}

#[test]
fn an_error_line_fails_the_turn_with_or_without_a_result() {
    let error = json!({"type": "error", "message": "the proxy is gone"});
    check(
        &[init(), text("m1", "half"), error.clone()],
        expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        + message m1.0 "" group=m1 role=assistant
        - ok message m1.0 half group=m1 role=assistant
        notice error error "the proxy is gone"
        run.ended failed answer=half error={failed "the proxy is gone"} (process_exit)
    "#]],
    );
    check(
        &[init(), error, result("done")],
        expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        notice error error "the proxy is gone"
        run.ended failed answer=done error={failed "the proxy is gone"}
    "#]],
    );
}

#[test]
fn bad_lines_cost_only_themselves() {
    let lines = [
        &init().to_string(),
        "Warning: something plain",
        r#"{"type":"assistant","message":"#,
        "[1,2]",
        r#"{"type":"hologram"}"#,
        r#"{"subtype":"init"}"#,
        &text("m1", "still here").to_string(),
        "last words",
    ];
    let events = read_lines(
        machine::<Claude>(&ReaderConfig::default()),
        &lines,
        &exit(1),
    );
    expect![[r#"
        session s1 init cwd=/w model=m
        run.started prompt
        notice warning bad_line "not JSON: Warning: something plain"
        notice warning bad_line "not JSON: EOF while parsing a value at line 1 column 30"
        notice warning bad_line "not a Claude message: no object"
        unmapped "type `hologram`"
        unmapped "no type"
        + message m1.0 "" group=m1 role=assistant
        - ok message m1.0 "still here" group=m1 role=assistant
        notice warning bad_line "not JSON: last words"
        run.ended failed answer="still here" error={crashed "claude failed (rc=1)\nlast words"} (process_exit)
    "#]].assert_eq(&events);
}

#[test]
fn the_session_that_was_asked_for_has_to_answer() {
    let config = ReaderConfig {
        expected_session: Some("s2".to_owned()),
        ..ReaderConfig::default()
    };
    check_with(
        &config,
        &[init(), text("m1", "hi"), result("hi")],
        &exit(0),
        expect![[r#"
            run.started prompt (wrong_session)
            session s1 mismatch
            run.ended failed error={wrong_session "session `s2` was asked for, the agent answered as `s1`"} (wrong_session)
            notice warning ignored "2 lines after the end were ignored"
        "#]],
    );
}

#[test]
fn a_session_that_changes_within_a_turn_fails_it() {
    let of = |session: &str, mut line: Value| {
        line["session_id"] = json!(session);
        line
    };
    check(
        &[
            init(),
            of("s2", text("m1", "of a sub-agent's own session")),
            of("s2", text("m2", "again")),
            of("s3", result("done")),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            notice warning other_session "lines of another session, `s2`"
            + message m1.0 "" group=m1 role=assistant
            - ok message m1.0 "of a sub-agent's own session" group=m1 role=assistant
            + message m2.0 "" group=m2 role=assistant
            - ok message m2.0 again group=m2 role=assistant
            session s3 mismatch
            run.ended failed answer=again error={wrong_session "the agent changed its session from `s1` to `s3`"} (wrong_session)
        "#]],
    );
    // Two recordings in one file.
    check(
        &[
            init(),
            result("one"),
            of("s2", init()),
            of("s2", result("two")),
        ],
        expect![[r#"
            session s1 init cwd=/w model=m
            run.started prompt
            run.ended completed answer=one
            session s2 init cwd=/w model=m
            run.started prompt
            run.ended completed answer=two
        "#]],
    );
}

#[test]
fn qwen_is_told_apart_by_its_version() {
    let mut line = init();
    line["qwen_code_version"] = json!("0.9.0");
    let mut engines = Vec::new();
    let mut reader = machine::<Claude>(&ReaderConfig::default());
    let mut sink = |event: &Event<'_>| engines.push(event.engine.to_string());
    for line in [init(), line] {
        reader.frame(Frame::Data(line.to_string().as_bytes()), &mut sink);
    }
    engines.dedup();
    assert_eq!(engines, ["claude", "qwen"]);
}
