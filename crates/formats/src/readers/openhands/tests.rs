//! Special cases, one per test.

mod calls;
mod live;

use expect_test::{Expect, expect};
use model::{End, Reader};

use super::{OpenHands, recognises};
use crate::readers::machine;
use crate::readers::test_support::read_lines;
use crate::readers::{ReaderConfig, RunEnds};

const USER: &str = r#"{"kind":"MessageEvent","id":"u","source":"user","llm_message":{"role":"user","content":"go"}}"#;
const SAID: &str = r#"{"kind":"MessageEvent","id":"m","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"done"}]},"llm_response_id":"r"}"#;
const ACTION: &str = r#"{"kind":"ActionEvent","id":"a","source":"agent","thought":[],"action":{"kind":"TerminalAction","command":"ls"},"tool_name":"terminal","tool_call_id":"c","tool_call":{"id":"c","name":"terminal","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"r"}"#;
const INTERRUPT: &str = r#"{"kind":"InterruptEvent","id":"i","source":"user"}"#;
const RUNNING: &str = r#"{"kind":"ConversationStateUpdateEvent","id":"s1","source":"environment","key":"execution_status","value":"running"}"#;
const FINISHED: &str = r#"{"kind":"ConversationStateUpdateEvent","id":"s2","source":"environment","key":"execution_status","value":"finished"}"#;

fn reader(config: &ReaderConfig) -> Box<dyn Reader> {
    machine::<OpenHands>(config)
}

fn check(lines: &[&str], expect: Expect) {
    expect.assert_eq(&read_lines(
        reader(&ReaderConfig::default()),
        lines,
        &End::default(),
    ));
}

#[test]
fn a_message_of_the_user_begins_a_run_and_ends_the_one_before() {
    check(
        &[USER, SAID, USER, ACTION, FINISHED, RUNNING, USER, SAID],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
            run.started prompt
            + message u~2 "" role=user
            - ok message u~2 go role=user
            + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal
            - lost tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal (left_open)
            run.ended completed
            run.started prompt
            + message u~3 "" role=user
            - ok message u~3 go role=user
            + message m~4 "" group=r role=assistant
            - ok message m~4 done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn a_run_that_continues_after_a_message_is_one_run() {
    check(
        &[USER, SAID, ACTION],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal
            - lost tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal (missing_end)
            run.ended lost answer=done error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn an_interrupt_at_the_end_is_an_abort() {
    check(
        &[USER, ACTION, INTERRUPT],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal
            notice info interrupt "the user interrupted the agent"
            - cancelled tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal (left_open)
            run.ended aborted error={aborted aborted}
        "#]],
    );
}

#[test]
fn an_interrupt_that_was_taken_back_is_none() {
    check(
        &[USER, INTERRUPT, RUNNING, SAID],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            notice info interrupt "the user interrupted the agent"
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn errors_of_the_conversation() {
    let error = |code: &str| {
        format!(
            r#"{{"kind":"ConversationErrorEvent","id":"e","source":"environment","code":"{code}","detail":"why"}}"#
        )
    };
    check(
        &[USER, &error("MaxIterationsReached")],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            run.ended limit error={MaxIterationsReached why}
        "#]],
    );
    check(
        &[USER, &error("LLMError"), SAID],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            notice error LLMError why
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
    let stuck = FINISHED.replace("finished", "stuck");
    check(
        &[USER, &stuck],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            run.ended failed error={stuck "the agent repeats itself"}
        "#]],
    );
}

#[test]
fn a_waiting_client_sees_the_end_with_its_status() {
    let config = ReaderConfig {
        run_ends: RunEnds::AtResult,
        ..ReaderConfig::default()
    };
    let late = r#"{"kind":"TokenEvent","id":"t","source":"agent","prompt_token_ids":[1],"response_token_ids":[2]}"#;
    let emitted = read_lines(
        reader(&config),
        &[USER, SAID, FINISHED, late],
        &End::default(),
    );
    expect![[r#"
        run.started prompt
        + message u "" role=user
        - ok message u go role=user
        + message m "" group=r role=assistant
        - ok message m done group=r role=assistant
        run.ended completed answer=done
        notice debug token_ids "tokens of a call"
    "#]]
    .assert_eq(&emitted);
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let config = ReaderConfig {
        expected_session: Some("mine".to_owned()),
        ..ReaderConfig::default()
    };
    let state = r#"{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"full_state","value":{"id":"other","execution_status":"idle"}}"#;
    let emitted = read_lines(reader(&config), &[state, USER, SAID], &End::default());
    expect![[r#"
        run.started prompt (wrong_session)
        session other mismatch
        run.ended failed error={wrong_session "session `mine` was asked for, the agent answered as `other`"} (wrong_session)
        notice warning ignored "2 lines after the end were ignored"
    "#]].assert_eq(&emitted);
}

#[test]
fn the_state_names_the_session_its_folder_and_model() {
    let state = r#"{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"full_state","value":{"id":"c1","execution_status":"idle","workspace":{"working_dir":"/w"},"agent":{"llm":{"model":"m"}}}}"#;
    check(
        &[state, state, USER, SAID],
        expect![[r#"
            session c1 init cwd=/w model=m
            notice debug state "state: full_state"
            session c1 repeat cwd=/w model=m
            notice debug state "state: full_state"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn an_end_that_was_not_accepted_is_none() {
    let finish = r#"{"kind":"ActionEvent","id":"f","source":"agent","thought":[],"action":{"kind":"FinishAction","message":"bye"},"tool_name":"finish","tool_call_id":"fc","tool_call":{"id":"fc","name":"finish","arguments":"{}","origin":"completion"},"llm_response_id":"r"}"#;
    let rejected = r#"{"kind":"UserRejectObservation","id":"x","source":"environment","tool_name":"finish","tool_call_id":"fc","action_id":"f","rejection_reason":"not yet","rejection_source":"hook"}"#;
    check(
        &[USER, finish, rejected],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + message f "" group=r role=assistant
            - ok message f bye group=r role=assistant
            notice warning rejected "not yet"
            run.ended lost answer=bye error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn streamed_text_becomes_the_thought_of_an_action() {
    check(
        &[
            r#"{"kind":"StreamingDeltaEvent","id":"d1","source":"agent","reasoning_content":"Hm"}"#,
            r#"{"kind":"StreamingDeltaEvent","id":"d2","source":"agent","content":"I "}"#,
            r#"{"kind":"StreamingDeltaEvent","id":"d3","source":"agent","content":"look."}"#,
            r#"{"kind":"ActionEvent","id":"a","source":"agent","thought":[{"type":"text","text":"I look."}],"reasoning_content":"Hm","thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":"s"}],"action":{"kind":"TerminalAction","command":"ls"},"tool_name":"terminal","tool_call_id":"c","tool_call":{"id":"c","name":"terminal","arguments":"{}","origin":"completion"},"llm_response_id":"r"}"#,
        ],
        expect![[r#"
            run.started prompt
            + reasoning stream-1 ""
            . stream-1 text Hm
            + message stream-2 "" role=assistant
            . stream-2 text "I "
            . stream-2 text look.
            - ok reasoning stream-1 Hm group=r signature=s
            - ok message stream-2 "I look." group=r role=assistant
            + tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal
            - lost tool c class={shell ls command=ls} group=r input={"command":"ls"} name=terminal (missing_end)
            run.ended lost answer="I look." error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn thinking_is_shown_once() {
    let message = |thinking: &str| {
        format!(
            r#"{{"kind":"MessageEvent","id":"m","source":"agent","llm_message":{{"role":"assistant","content":[],{thinking}}}}}"#
        )
    };
    // All of it is signed.
    check(
        &[&message(
            r#""reasoning_content":"a\n\nb","thinking_blocks":[{"type":"thinking","thinking":"a","signature":"1"},{"type":"thinking","thinking":"b","signature":"2"}]"#,
        )],
        expect![[r#"
            run.started prompt
            + reasoning m.reasoning0 ""
            - ok reasoning m.reasoning0 a signature=1
            + reasoning m.reasoning1 ""
            - ok reasoning m.reasoning1 b signature=2
            run.ended completed
        "#]],
    );
    // Some of it is.
    check(
        &[&message(
            r#""reasoning_content":"a\n\nb","thinking_blocks":[{"type":"thinking","thinking":"b","signature":"2"},{"type":"redacted_thinking","data":"x"}]"#,
        )],
        expect![[r#"
            run.started prompt
            + reasoning m.reasoning0 ""
            - ok reasoning m.reasoning0 "a\n\nb"
            + reasoning m.reasoning1 ""
            - ok reasoning m.reasoning1 "" signature=2
            + reasoning m.reasoning2 ""
            - ok reasoning m.reasoning2 "" encrypted=x
            run.ended completed
        "#]],
    );
    // The Responses API has a form of its own.
    check(
        &[&message(
            r#""reasoning_content":"a","responses_reasoning_item":{"id":"rs","summary":["a"],"encrypted_content":"x"}"#,
        )],
        expect![[r#"
            run.started prompt
            + reasoning m.reasoning0 ""
            - ok reasoning m.reasoning0 a
            + reasoning m.reasoning1 ""
            - ok reasoning m.reasoning1 "" encrypted=x
            run.ended completed
        "#]],
    );
}

#[test]
fn what_the_agent_adds_to_a_message_is_not_the_users() {
    let message = USER.replace(r#""source":"user""#, r#""source":"user","extended_content":[{"type":"text","text":"a skill"}],"activated_skills":["s"]"#);
    check(
        &[&message, SAID],
        expect![[r#"
            run.started prompt extra={"activated_skills":["s"]}
            + message u "" role=user
            - ok message u go role=user
            + message u.extended "" role=harness
            - ok message u.extended "a skill" role=harness
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn each_run_has_used_what_was_added() {
    let stats = |prompt: u32, cost: f64| {
        format!(
            r#"{{"kind":"ConversationStateUpdateEvent","id":"t","source":"environment","key":"stats","value":{{"usage_to_metrics":{{"agent":{{"model_name":"m","accumulated_cost":{cost},"accumulated_token_usage":{{"prompt_tokens":{prompt},"completion_tokens":5,"cache_read_tokens":40,"context_window":1000}}}}}}}}}}"#
        )
    };
    check(
        &[USER, SAID, &stats(100, 0.5), USER, SAID, &stats(160, 0.75)],
        expect![[r#"
            run.started prompt
            + message u "" role=user
            - ok message u go role=user
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            usage session cumulative cost_usd=0.5 tokens={cache_read=40 cache_write=0 input=60 output=5}
            run.ended completed answer=done models=[{context_window=1000 cost_usd=0.5 model=m tokens={cache_read=40 cache_write=0 input=60 output=5}}] session_cost_usd=0.5 usage={run delta tokens={cache_read=40 cache_write=0 input=60 output=5}}
            run.started prompt
            + message u~2 "" role=user
            - ok message u~2 go role=user
            + message m~3 "" group=r role=assistant
            - ok message m~3 done group=r role=assistant
            usage session cumulative cost_usd=0.75 tokens={cache_read=40 cache_write=0 input=120 output=5}
            run.ended completed answer=done models=[{context_window=1000 cost_usd=0.25 model=m tokens={cache_read=0 cache_write=0 input=60 output=0}}] session_cost_usd=0.75 usage={run delta tokens={cache_read=0 cache_write=0 input=60 output=0}}
        "#]],
    );
}

#[test]
fn unknown_frames_are_kept() {
    check(
        &[
            r#"{"kind":"NewEvent","id":"n","source":"agent","x":1}"#,
            r#"{"id":"n","source":"agent"}"#,
            "[1]",
            "nonsense",
            &SAID.replace(
                r#""source":"agent""#,
                r#""source":"agent","critic_result":{"score":1}"#,
            ),
        ],
        expect![[r#"
            unmapped "kind `NewEvent`"
            unmapped "no kind"
            notice warning bad_line "not an OpenHands event: no object"
            notice warning bad_line "not JSON: nonsense"
            run.started prompt extra={"critic_result":{"score":1}}
            + message m "" group=r role=assistant
            - ok message m done group=r role=assistant
            run.ended completed answer=done
        "#]],
    );
}

#[test]
fn only_its_own_events_are_recognised() {
    assert!(recognises(USER) && recognises(ACTION) && recognises(FINISHED));
    assert!(recognises(&format!(
        r#"{{"t":1,"dir":"out","msg":{USER}}}"#
    )));
    for recording in [
        include_str!("../../../../../fixtures/openhands/real-fix-bug.jsonl"),
        include_str!("../../../../../fixtures/openhands/real-acp-agent.jsonl"),
        include_str!("../../../../../fixtures/openhands/websocket-stream.jsonl"),
        include_str!("../../../../../fixtures/openhands/claude-mapped-mcp.jsonl"),
    ] {
        assert!(recording.lines().all(recognises));
    }
    for recording in [
        include_str!("../../../../../fixtures/acp/opencode.duplex.jsonl"),
        include_str!("../../../../../fixtures/claude/text.jsonl"),
    ] {
        assert!(!recording.lines().any(recognises));
    }
    for other in [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"kind":"tool","source":"agent"}"#,
        r#"{"kind":"MessageEvent"}"#,
        "kind",
        "",
    ] {
        assert!(!recognises(other), "{other}");
    }
}
