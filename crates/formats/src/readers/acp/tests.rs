//! Special cases, one per test.

mod adapters;
mod calls;
mod live;

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use model::{End, Event, Frame, Reader};

use super::{Acp, recognises};
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::read_lines;

fn reader(config: &ReaderConfig) -> Box<dyn Reader> {
    machine::<Acp>(config)
}

fn check(lines: &[&str], expect: Expect) {
    expect.assert_eq(&read_lines(
        reader(&ReaderConfig::default()),
        lines,
        &End::default(),
    ));
}

fn update(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

fn chunk(voice: &str, text: &str) -> String {
    update(&format!(
        r#"{{"sessionUpdate":"{voice}","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn prompt(id: u32, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"s","prompt":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn stop(id: u32, reason: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"{reason}"}}}}"#)
}

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;

#[test]
fn a_cancelled_prompt_is_aborted() {
    check(
        &[
            &prompt(1, "go"),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"sleep","kind":"execute","status":"in_progress"}"#,
            ),
            CANCEL,
            &stop(1, "cancelled"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + tool c class={shell sleep} name=execute
            notice info cancel "the client asked for a stop"
            - cancelled tool c class={shell sleep} name=execute (left_open)
            run.ended aborted error={aborted aborted} stop_reason=cancelled
        "#]],
    );
    check(
        &[&prompt(1, "go"), CANCEL],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            notice info cancel "the client asked for a stop"
            run.ended aborted error={aborted aborted} (abort)
        "#]],
    );
}

#[test]
fn a_prompt_that_its_client_cancelled_is_aborted_whatever_the_agent_calls_it() {
    check(
        &[
            &prompt(1, "go"),
            CANCEL,
            &stop(1, "end_turn"),
            &prompt(2, "on"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            notice info cancel "the client asked for a stop"
            run.ended aborted error={aborted aborted} stop_reason=end_turn
            run.started prompt
            + message prompt-2 "" role=user
            - ok message prompt-2 on role=user
            run.ended completed stop_reason=end_turn
        "#]],
    );
    let completed = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","_meta":{"outcome":"completed"}}}"#;
    check(
        &[&prompt(1, "go"), CANCEL, completed],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            notice info cancel "the client asked for a stop"
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn stop_reasons() {
    let lines = [
        prompt(1, "a"),
        stop(1, "max_tokens"),
        prompt(2, "b"),
        stop(2, "refusal"),
        prompt(3, "c"),
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_turn_requests","_meta":{"code":"error_max_turns","message":"5 turns"}}}"#.to_owned(),
        prompt(4, "d"),
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"log in"}}"#.to_owned(),
        prompt(5, "e"),
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"gone","data":{"code":"missing_end","outcome":"lost"}}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 a role=user
            run.ended limit error={limit "a limit was reached"} stop_reason=max_tokens
            run.started prompt
            + message prompt-2 "" role=user
            - ok message prompt-2 b role=user
            run.ended refused error={refused "the model refused"} stop_reason=refusal
            run.started prompt
            + message prompt-3 "" role=user
            - ok message prompt-3 c role=user
            run.ended limit error={error_max_turns "5 turns"} stop_reason=max_turn_requests
            run.started prompt
            + message prompt-4 "" role=user
            - ok message prompt-4 d role=user
            run.ended failed error={auth "log in" native=authentication_required}
            run.started prompt
            + message prompt-5 "" role=user
            - ok message prompt-5 e role=user
            run.ended lost error={missing_end gone}
        "#]],
    );
}

#[test]
fn a_prompt_during_a_run_waits_for_its_turn() {
    check(
        &[
            &prompt(1, "one"),
            &prompt(2, "two"),
            &chunk("agent_message_chunk", "1"),
            &stop(1, "end_turn"),
            &chunk("agent_message_chunk", "2"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 one role=user
            + message text-1 "" role=assistant
            . text-1 text 1
            - ok message text-1 1 role=assistant
            run.ended completed answer=1 stop_reason=end_turn
            run.started prompt
            + message prompt-2 "" role=user
            - ok message prompt-2 two role=user
            + message text-2 "" role=assistant
            . text-2 text 2
            - ok message text-2 2 role=assistant
            run.ended completed answer=2 stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_loaded_session_is_history() {
    check(
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#,
            &chunk("user_message_chunk", "one"),
            &chunk("agent_message_chunk", "1"),
            &chunk("user_message_chunk", "two"),
            &chunk("agent_message_chunk", "2"),
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            &prompt(2, "three"),
            &stop(2, "end_turn"),
        ],
        expect![[r#"
            notice debug request "the client asked: session/load"
            session s resume
            run.started prompt
            + message text-1 "" role=user
            . text-1 text one
            - ok message text-1 one role=user
            + message text-2 "" role=assistant
            . text-2 text 1
            - ok message text-2 1 role=assistant
            run.ended completed answer=1
            run.started prompt
            + message text-3 "" role=user
            . text-3 text two
            - ok message text-3 two role=user
            + message text-4 "" role=assistant
            . text-4 text 2
            session s repeat cwd=/w extra={"result":{}}
            - ok message text-4 2 role=assistant
            run.ended completed answer=2
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 three role=user
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_prompt_that_is_repeated_counts_once() {
    check(
        &[
            &prompt(1, "hello there"),
            &chunk("user_message_chunk", "hello "),
            &chunk("user_message_chunk", "there"),
            &chunk("user_message_chunk", "and more"),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 "hello there" role=user
            + message text-1 "" role=user
            . text-1 text "and more"
            - ok message text-1 "and more" role=user
            run.ended completed stop_reason=end_turn
        "#]],
    );
}

#[test]
fn a_chunk_continues_until_role_or_message_changes() {
    let with_id = |id: &str, text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    check(
        &[
            &chunk("agent_thought_chunk", "h"),
            &chunk("agent_thought_chunk", "m"),
            &with_id("a", "x"),
            &with_id("a", "y"),
            &with_id("b", "z"),
            &update(
                r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"resource_link","name":"a.py","uri":"file:///w/a.py"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"completed"}"#,
            ),
            &with_id("b", "after"),
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + reasoning text-1 ""
            . text-1 text h
            . text-1 text m
            - ok reasoning text-1 hm
            + message a "" role=assistant
            . a text x
            . a text y
            - ok message a xy role=assistant
            + message b "" role=assistant
            . b text z
            - ok message b z parts=[{image={data="aGk=" media_type=image/png}} {other={name=a.py type=resource_link uri=file:///w/a.py}}] role=assistant
            + tool c class={other t} name=tool
            - ok tool c class={other t} name=tool result={content=""}
            + message b~2 "" role=assistant
            . b~2 text after
            - ok message b~2 after role=assistant
            run.ended completed answer=after stop_reason=end_turn
        "#]],
    );
}

#[test]
fn bare_updates() {
    check(
        &[
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#,
            r#"{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}}"#,
        ],
        expect![[r#"
            run.started prompt
            + message text-1 "" role=assistant
            . text-1 text a
            session s init
            . text-1 text b
            - ok message text-1 ab role=assistant (missing_end)
            run.ended lost answer=ab error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn the_draft_of_version_2() {
    check(
        &[
            &prompt(1, "go"),
            r#"{"jsonrpc":"2.0","id":1,"result":{"messageId":"u1"}}"#,
            &update(r#"{"sessionUpdate":"state_update","state":"running"}"#),
            &update(
                r#"{"sessionUpdate":"agent_message","messageId":"m1","content":[{"type":"text","text":"whole"}]}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"make","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"content","content":{"type":"text","text":"line"}}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"cancelled"}"#,
            ),
            &update(r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#),
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            + message m1 "" role=assistant
            - ok message m1 whole role=assistant
            + tool c class={shell make command=make} input={"command":"make"} name=execute (never_opened)
            . c output line
            - cancelled tool c class={shell make command=make} input={"command":"make"} name=execute result={content="line" is_error=true}
            run.ended completed answer=whole stop_reason=end_turn
        "#]],
    );
}

#[test]
fn the_rest_of_the_updates() {
    check(
        &[
            &update(
                r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init","description":"d"}]}"#,
            ),
            &update(r#"{"sessionUpdate":"current_mode_update","currentModeId":"plan"}"#),
            &update(
                r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","category":"model","type":"select","currentValue":"m2","options":[]}]}"#,
            ),
            &update(r#"{"sessionUpdate":"session_info_update","title":"A title"}"#),
            &update(
                r#"{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"completed"},{"content":"b","priority":"low","status":"pending"}]}"#,
            ),
            &update(r#"{"sessionUpdate":"notice","severity":"warning","title":"careful"}"#),
            &update(
                r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}"#,
            ),
            &update(
                r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"k","content":{"type":"text","text":"short"}}"#,
            ),
            &update(
                r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}"#,
            ),
            &update(
                r#"{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.5,"currency":"USD"}}"#,
            ),
            &update(r#"{"sessionUpdate":"brand_new","x":1}"#),
            r#"{"jsonrpc":"2.0","method":"_vendor/thing","params":{}}"#,
            r#"{"jsonrpc":"2.0"}"#,
            "nonsense",
            &stop(1, "end_turn"),
        ],
        expect![[r#"
            session s init
            session s repeat commands=[init]
            notice debug available_commands "commands of the agent"
            session s repeat commands=[init] permission_mode=plan
            session s repeat commands=[init] model=m2 permission_mode=plan
            notice debug config_options "the options have changed"
            notice info session_info "A title"
            run.started prompt extra={"entries":[{"content":"a","priority":"high","status":"completed"},{"content":"b","priority":"low","status":"pending"}]}
            + plan plan entries=[{completed a} {pending b}]
            notice warning notice careful
            + compaction k
            - ok compaction k summary=short
            usage call cumulative model=m2 tokens={cache_read=0 cache_write=0 input=10}
            unmapped "update `brand_new`"
            notice debug extension "the agent's own notification: _vendor/thing"
            unmapped "no message of ACP"
            notice warning bad_line "not JSON: nonsense"
            - ok plan plan entries=[{completed a} {pending b}] (left_open)
            run.ended completed models=[{context_window=100 model=m2 tokens={cache_read=0 cache_write=0 input=0}}] session_cost_usd=0.5 stop_reason=end_turn
        "#]],
    );
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let config = ReaderConfig {
        expected_session: Some("mine".to_owned()),
        ..ReaderConfig::default()
    };
    let lines = [chunk("agent_message_chunk", "hi"), stop(1, "end_turn")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expect![[r#"
        run.started prompt (wrong_session)
        session s mismatch
        run.ended failed error={wrong_session "session `mine` was asked for, the agent answered as `s`"} (wrong_session)
        notice warning ignored "1 lines after the end were ignored"
    "#]].assert_eq(&read_lines(reader(&config), &lines, &End::default()));
}

#[test]
fn only_its_own_messages_are_recognised() {
    assert!(recognises(&prompt(1, "go")));
    assert!(recognises(&stop(1, "end_turn")));
    assert!(recognises(&chunk("agent_message_chunk", "x")));
    assert!(recognises(r#"{"sessionUpdate":"plan","entries":[]}"#));
    assert!(recognises(
        r#"{"t": 0.01, "dir": "in", "msg": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}}"#
    ));
    for recording in [
        include_str!("../../../../../fixtures/acp/opencode.duplex.jsonl"),
        include_str!("../../../../../fixtures/acp/gemini.duplex.jsonl"),
        include_str!("../../../../../fixtures/acp/everything.acp.jsonl"),
    ] {
        assert!(recording.lines().take(1).all(recognises));
    }
    for recording in [
        include_str!("../../../../../fixtures/openhands/real-fix-bug.jsonl"),
        include_str!("../../../../../fixtures/claude/control_permissions.duplex.jsonl"),
    ] {
        assert!(!recording.lines().any(recognises));
    }
    for other in [
        r#"{"method":"initialize","id":0,"params":{"clientInfo":{"name":"codex"}}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"kind":"MessageEvent","source":"user"}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        "x",
    ] {
        assert!(!recognises(other), "{other}");
    }
}

#[test]
fn the_error_for_a_cancelled_request_is_an_abort() {
    check(
        &[
            &prompt(1, "go"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"Request cancelled"}}"#,
        ],
        expect![[r#"
            session s init
            run.started prompt
            + message prompt-1 "" role=user
            - ok message prompt-1 go role=user
            run.ended aborted error={aborted "Request cancelled"}
        "#]],
    );
}
