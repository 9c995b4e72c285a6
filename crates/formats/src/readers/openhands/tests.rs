//! Special cases, one per test.

mod live;

use expect_test::{Expect, expect};
use model::{End, Reader};

use super::{OpenHands, recognises};
use crate::readers::machine;
use crate::readers::test_support::{config, read_lines};
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
    expect.assert_eq(&read_lines(reader(&config()), lines, &End::default()));
}

#[test]
fn a_message_of_the_user_begins_a_run_and_ends_the_one_before() {
    check(
        &[USER, SAID, USER, ACTION, FINISHED, RUNNING, USER, SAID],
        expect![[r#"
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            run.ended {"answer":"done","outcome":"completed"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"u~2","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"}
            item.closed why="left_open" {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"},"status":"lost"}
            run.ended {"outcome":"completed"}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"u~3","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.closed {"item":{"group":"r","id":"m~4","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            run.ended {"answer":"done","outcome":"completed"}
        "#]],
    );
}

#[test]
fn a_run_that_continues_after_a_message_is_one_run() {
    check(
        &[USER, SAID, ACTION],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"}
        item.closed why="missing_end" {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"},"status":"lost"}
        run.ended why="missing_end" {"answer":"done","error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]],
    );
}

#[test]
fn an_interrupt_at_the_end_is_an_abort() {
    check(
        &[USER, ACTION, INTERRUPT],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"}
        notice.raised {"code":"interrupt","level":"info","text":"the user interrupted the agent"}
        item.closed why="left_open" {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"},"status":"cancelled"}
        run.ended {"error":{"code":"aborted","message":"aborted"},"outcome":"aborted"}
    "#]],
    );
}

#[test]
fn an_interrupt_that_was_taken_back_is_none() {
    check(
        &[USER, INTERRUPT, RUNNING, SAID],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        notice.raised {"code":"interrupt","level":"info","text":"the user interrupted the agent"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
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
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        run.ended {"error":{"code":"MaxIterationsReached","message":"why"},"outcome":"limit"}
    "#]],
    );
    check(
        &[USER, &error("LLMError"), SAID],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        notice.raised {"code":"LLMError","level":"error","text":"why"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
    "#]],
    );
    let stuck = FINISHED.replace("finished", "stuck");
    check(
        &[USER, &stuck],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        run.ended {"error":{"code":"stuck","message":"the agent repeats itself"},"outcome":"failed"}
    "#]],
    );
}

#[test]
fn a_waiting_client_sees_the_end_with_its_status() {
    let mut config = config();
    config.run_ends = RunEnds::AtResult;
    let late = r#"{"kind":"TokenEvent","id":"t","source":"agent","prompt_token_ids":[1],"response_token_ids":[2]}"#;
    let emitted = read_lines(
        reader(&config),
        &[USER, SAID, FINISHED, late],
        &End::default(),
    );
    expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
    "#]].assert_eq(&emitted);
}

#[test]
fn another_session_than_the_one_asked_for_is_a_failure() {
    let mut config = config();
    config.expected_session = Some("mine".to_owned());
    let state = r#"{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"full_state","value":{"id":"other","execution_status":"idle"}}"#;
    let emitted = read_lines(reader(&config), &[state, USER, SAID], &End::default());
    expect![[r#"
        run.started why="wrong_session" {"cause":"prompt"}
        session.bound {"how":"mismatch","native":"other"}
        run.ended why="wrong_session" {"error":{"code":"wrong_session","message":"session `mine` was asked for, the agent answered as `other`"},"outcome":"failed"}
        notice.raised {"code":"ignored","level":"warning","text":"2 lines after the end were ignored"}
    "#]].assert_eq(&emitted);
}

#[test]
fn the_state_names_the_session_its_folder_and_model() {
    let state = r#"{"kind":"ConversationStateUpdateEvent","id":"s","source":"environment","key":"full_state","value":{"id":"c1","execution_status":"idle","workspace":{"working_dir":"/w"},"agent":{"llm":{"model":"m"}}}}"#;
    check(
        &[state, state, USER, SAID],
        expect![[r#"
        session.bound {"cwd":"/w","how":"init","model":"m","native":"c1"}
        session.bound {"cwd":"/w","how":"repeat","model":"m","native":"c1"}
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
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
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.closed {"item":{"group":"r","id":"f","kind":"message","role":"assistant","text":"bye"},"status":"ok"}
        notice.raised {"code":"rejected","level":"warning","text":"not yet"}
        run.ended why="missing_end" {"answer":"bye","error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
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
            run.started {"cause":"prompt"}
            item.delta {"channel":"text","item":"stream-1","text":"Hm"}
            item.delta {"channel":"text","item":"stream-2","text":"I "}
            item.delta {"channel":"text","item":"stream-2","text":"look."}
            item.closed {"item":{"group":"r","id":"stream-1","kind":"reasoning","signature":"s","text":"Hm"},"status":"ok"}
            item.closed {"item":{"group":"r","id":"stream-2","kind":"message","role":"assistant","text":"I look."},"status":"ok"}
            item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"}
            item.closed why="missing_end" {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"},"status":"lost"}
            run.ended why="missing_end" {"answer":"I look.","error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
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
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"m.reasoning0","kind":"reasoning","signature":"1","text":"a"},"status":"ok"}
            item.closed {"item":{"id":"m.reasoning1","kind":"reasoning","signature":"2","text":"b"},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
    // Some of it is.
    check(
        &[&message(
            r#""reasoning_content":"a\n\nb","thinking_blocks":[{"type":"thinking","thinking":"b","signature":"2"},{"type":"redacted_thinking","data":"x"}]"#,
        )],
        expect![[r#"
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"m.reasoning0","kind":"reasoning","text":"a\n\nb"},"status":"ok"}
            item.closed {"item":{"id":"m.reasoning1","kind":"reasoning","signature":"2","text":""},"status":"ok"}
            item.closed {"item":{"encrypted":"x","id":"m.reasoning2","kind":"reasoning","text":""},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
    // The Responses API has a form of its own.
    check(
        &[&message(
            r#""reasoning_content":"a","responses_reasoning_item":{"id":"rs","summary":["a"],"encrypted_content":"x"}"#,
        )],
        expect![[r#"
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"m.reasoning0","kind":"reasoning","text":"a"},"status":"ok"}
            item.closed {"item":{"encrypted":"x","id":"m.reasoning1","kind":"reasoning","text":""},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn a_result_without_a_call_still_counts() {
    check(
        &[
            r#"{"kind":"ObservationEvent","id":"o","source":"environment","tool_name":"terminal","tool_call_id":"c","action_id":"a","observation":{"kind":"TerminalObservation","content":[{"type":"text","text":"hi"}],"command":"x","exit_code":2}}"#,
        ],
        expect![[r#"
            run.started why="never_opened" {"cause":"prompt"}
            item.opened why="never_opened" {"class":{"kind":"shell","title":"terminal"},"id":"c","kind":"tool","name":"terminal"}
            item.closed {"item":{"class":{"exit_code":2,"kind":"shell","title":"terminal"},"id":"c","kind":"tool","name":"terminal","result":{"content":"hi","structured":{"command":"x","content":[{"text":"hi","type":"text"}],"exit_code":2,"kind":"TerminalObservation"}}},"status":"ok"}
            run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
        "#]],
    );
}

#[test]
fn arguments_that_hold_more_than_the_action_are_the_input() {
    let action = ACTION.replace(
        r#"{\"command\":\"ls\"}"#,
        r#"{\"command\":\"ls\",\"description\":\"List\",\"summary\":\"s\"}"#,
    );
    check(
        &[&action],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls","description":"List","summary":"s"},"kind":"tool","name":"terminal"}
        item.closed why="missing_end" {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls","description":"List","summary":"s"},"kind":"tool","name":"terminal"},"status":"lost"}
        run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]],
    );
    let broken = ACTION
        .replace(r#""action":{"kind":"TerminalAction","command":"ls"},"#, "")
        .replace(r#"{\"command\":\"ls\"}"#, r#"{\"command\":"#);
    check(
        &[&broken],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.opened {"class":{"kind":"shell","title":"terminal"},"group":"r","id":"c","input":"{\"command\":","kind":"tool","name":"terminal"}
        item.closed why="missing_end" {"item":{"class":{"kind":"shell","title":"terminal"},"group":"r","id":"c","input":"{\"command\":","kind":"tool","name":"terminal"},"status":"lost"}
        run.ended why="missing_end" {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]],
    );
}

#[test]
fn a_sender_that_is_a_call_is_its_sub_agent() {
    let task = ACTION
        .replace("terminal", "task")
        .replace("TerminalAction", "TaskAction")
        .replace(r#"{\"command\":\"ls\"}"#, "{}")
        .replace(
            r#""command":"ls""#,
            r#""prompt":"count","subagent_type":"explorer""#,
        );
    let inside = SAID.replace(r#""source":"agent""#, r#""source":"agent","sender":"c""#);
    let other = SAID.replace(
        r#""source":"agent""#,
        r#""source":"agent","sender":"reviewer""#,
    );
    let result = r#"{"kind":"ObservationEvent","id":"o","source":"environment","tool_name":"task","tool_call_id":"c","action_id":"a","observation":{"kind":"TaskObservation","content":[{"type":"text","text":"3"}],"task_id":"t","subagent":"explorer","status":"done"}}"#;
    check(
        &[&task, &inside, result, &other],
        expect![[r#"
            run.started {"cause":"prompt"}
            item.opened {"class":{"kind":"task","title":"count"},"group":"r","id":"c","input":{"prompt":"count","subagent_type":"explorer"},"kind":"tool","name":"task"}
            item.opened {"call":"c","id":"agent:c","kind":"subagent","name":"explorer","prompt":"count"}
            item.closed path=["c"] {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            item.closed {"item":{"call":"c","id":"agent:c","kind":"subagent","name":"explorer","prompt":"count"},"status":"ok"}
            item.closed {"item":{"class":{"kind":"task","title":"count"},"group":"r","id":"c","input":{"prompt":"count","subagent_type":"explorer"},"kind":"tool","name":"task","result":{"content":"3","structured":{"content":[{"text":"3","type":"text"}],"kind":"TaskObservation","status":"done","subagent":"explorer","task_id":"t"}}},"status":"ok"}
            item.closed {"item":{"group":"r","id":"m~2","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            run.ended {"answer":"done","outcome":"completed"}
        "#]],
    );
}

#[test]
fn what_the_agent_adds_to_a_message_is_not_the_users() {
    let message = USER.replace(r#""source":"user""#, r#""source":"user","extended_content":[{"type":"text","text":"a skill"}],"activated_skills":["s"]"#);
    check(
        &[&message, SAID],
        expect![[r#"
        run.started extra={"activated_skills":["s"]} {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.closed {"item":{"id":"u.extended","kind":"message","role":"harness","text":"a skill"},"status":"ok"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
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
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            usage.reported {"basis":"cumulative","cost_usd":0.5,"detail":{"usage_to_metrics":{"agent":{"accumulated_cost":0.5,"accumulated_token_usage":{"cache_read_tokens":40,"completion_tokens":5,"context_window":1000,"prompt_tokens":100},"model_name":"m"}}},"scope":"session","tokens":{"cache_read":40,"cache_write":0,"input":60,"output":5}}
            run.ended {"answer":"done","models":[{"context_window":1000,"cost_usd":0.5,"model":"m","tokens":{"cache_read":40,"cache_write":0,"input":60,"output":5}}],"outcome":"completed","session_cost_usd":0.5,"usage":{"basis":"delta","scope":"run","tokens":{"cache_read":40,"cache_write":0,"input":60,"output":5}}}
            run.started {"cause":"prompt"}
            item.closed {"item":{"id":"u~2","kind":"message","role":"user","text":"go"},"status":"ok"}
            item.closed {"item":{"group":"r","id":"m~3","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            usage.reported {"basis":"cumulative","cost_usd":0.75,"detail":{"usage_to_metrics":{"agent":{"accumulated_cost":0.75,"accumulated_token_usage":{"cache_read_tokens":40,"completion_tokens":5,"context_window":1000,"prompt_tokens":160},"model_name":"m"}}},"scope":"session","tokens":{"cache_read":40,"cache_write":0,"input":120,"output":5}}
            run.ended {"answer":"done","models":[{"context_window":1000,"cost_usd":0.25,"model":"m","tokens":{"cache_read":0,"cache_write":0,"input":60,"output":0}}],"outcome":"completed","session_cost_usd":0.75,"usage":{"basis":"delta","scope":"run","tokens":{"cache_read":0,"cache_write":0,"input":60,"output":0}}}
        "#]],
    );
}

#[test]
fn a_rejected_call_is_denied_and_its_question_settled() {
    let waiting = RUNNING.replace("running", "waiting_for_confirmation");
    let rejected = r#"{"kind":"UserRejectObservation","id":"x","source":"environment","tool_name":"terminal","tool_call_id":"c","action_id":"a","rejection_reason":"no"}"#;
    check(
        &[USER, ACTION, &waiting, rejected, SAID],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.closed {"item":{"id":"u","kind":"message","role":"user","text":"go"},"status":"ok"}
        item.opened {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal"}
        ask.opened {"id":"c","input":{"command":"ls"},"item":"c","kind":"permission","title":"ls","tool":"terminal"}
        ask.settled {"decision":"denied","id":"c"}
        item.closed {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"c","input":{"command":"ls"},"kind":"tool","name":"terminal","result":{"content":"no","is_error":true}},"status":"denied"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","denials":[{"input":{"command":"ls"},"item":"c","tool":"terminal"}],"outcome":"completed"}
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
            frame.unmapped {"raw":{"id":"n","kind":"NewEvent","source":"agent","x":1},"what":"kind `NewEvent`"}
            frame.unmapped {"raw":{"id":"n","source":"agent"},"what":"no kind"}
            notice.raised {"code":"bad_line","detail":"[1]","level":"warning","text":"not an OpenHands event: no object"}
            notice.raised {"code":"bad_line","detail":"nonsense","level":"warning","text":"not JSON: nonsense"}
            run.started extra={"critic_result":{"score":1}} {"cause":"prompt"}
            item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
            run.ended {"answer":"done","outcome":"completed"}
        "#]],
    );
}

#[test]
fn a_last_card_that_comes_twice_counts_once() {
    let card = r#"{"kind":"ACPToolCallEvent","id":"k","source":"agent","tool_call_id":"c","title":"pytest","status":"completed","tool_kind":"execute","raw_input":{"command":"pytest"},"content":[{"type":"content","content":{"type":"text","text":"ok"}}],"is_error":false}"#;
    check(
        &[card, card, SAID],
        expect![[r#"
        run.started {"cause":"prompt"}
        item.opened why="never_opened" {"class":{"command":"pytest","kind":"shell","title":"pytest"},"id":"c","input":{"command":"pytest"},"kind":"tool","name":"execute"}
        item.closed {"item":{"class":{"command":"pytest","kind":"shell","title":"pytest"},"id":"c","input":{"command":"pytest"},"kind":"tool","name":"execute","result":{"content":"ok"}},"status":"ok"}
        item.closed {"item":{"group":"r","id":"m","kind":"message","role":"assistant","text":"done"},"status":"ok"}
        run.ended {"answer":"done","outcome":"completed"}
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
