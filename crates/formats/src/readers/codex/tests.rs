use expect_test::{Expect, expect};
use model::{Body, End, Event, Exit, Frame, ItemId};

use super::*;
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::{exit, read_lines};

fn check(lines: &str, end: End, expect: Expect) {
    check_as(None, lines, end, expect);
}

fn check_as(wanted: Option<&str>, lines: &str, end: End, expect: Expect) {
    let reader = machine::<Codex>(&ReaderConfig {
        expected_session: wanted.map(str::to_owned),
        ..ReaderConfig::default()
    });
    let lines: Vec<&str> = lines.trim().lines().map(str::trim).collect();
    expect.assert_eq(&read_lines(reader, &lines, &end));
}

#[test]
fn the_first_of_two_ids_counts() {
    check(
        r#"
        {"type":"turn.started"}
        {"type":"item.started","item":{"id":"item_0","type":"web_search","id":"ws_1","query":"","action":{"type":"other"}}}
        {"type":"item.completed","item":{"id":"item_0","type":"web_search","id":"ws_1","query":"q","action":{"type":"search","query":"q"}}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt
            + tool item_0 class={web_search web_search query=""} input={"action":{"type":"other"},"query":""} name=web_search server_side=true
            ~ tool item_0 class={web_search "Search \"q\"" query=q} input={"action":{"query":"q","type":"search"},"query":"q"} name=web_search server_side=true
            - ok tool item_0 class={web_search "Search \"q\"" query=q} input={"action":{"query":"q","type":"search"},"query":"q"} name=web_search result={content=""} server_side=true
            run.ended failed error={no_session "codex exec finished but no session_id/thread_id was captured"} (process_exit)
        "#]],
    );
}

#[test]
fn a_search_that_opens_a_page_is_about_its_address() {
    check(
        r#"
        {"type":"item.completed","item":{"id":"item_0","type":"web_search","query":"","action":{"type":"open_page","url":"https://a.b"}}}
        {"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt (never_opened)
            + tool item_0 class={web_search "Search \"https://a.b\"" query=https://a.b} input={"action":{"type":"open_page","url":"https://a.b"},"query":""} name=web_search server_side=true (never_opened)
            - ok tool item_0 class={web_search "Search \"https://a.b\"" query=https://a.b} input={"action":{"type":"open_page","url":"https://a.b"},"query":""} name=web_search result={content=""} server_side=true
            usage session cumulative tokens={cache_read=0 cache_write=0 input=1 output=2}
            run.ended completed usage={session cumulative tokens={cache_read=0 cache_write=0 input=1 output=2}}
        "#]],
    );
}

#[test]
fn retries_end_nothing() {
    check(
        r#"
        {"type":"turn.started"}
        {"type":"error","message":"Reconnecting... 1/5"}
        {"type":"error","message":"Reconnecting... 2/5"}
        {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"ok"}}
        {"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":1}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt
            notice warning api_retry "Reconnecting... 1/5"
            notice warning api_retry "Reconnecting... 2/5"
            + message item_0 "" role=assistant
            - ok message item_0 ok role=assistant
            usage session cumulative tokens={cache_read=4 cache_write=1 input=5 output=2 reasoning=1}
            run.ended completed answer=ok usage={session cumulative tokens={cache_read=4 cache_write=1 input=5 output=2 reasoning=1}}
        "#]],
    );
}

#[test]
fn an_interrupted_turn_has_no_end_of_its_own() {
    let lines = r#"
        {"type":"turn.started"}
        {"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 9","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        "#;
    check(
        lines,
        exit(1),
        expect![[r#"
            run.started prompt
            + tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution
            - lost tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution (process_exit)
            run.ended failed error={crashed "codex exec failed (rc=1)"} (process_exit)
        "#]],
    );
    let aborted = End {
        exit: Some(Exit::Code(1)),
        aborted: true,
    };
    check(
        lines,
        aborted,
        expect![[r#"
            run.started prompt
            + tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution
            - cancelled tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution (abort)
            run.ended aborted error={aborted aborted} (abort)
        "#]],
    );
    check(
        lines,
        End::default(),
        expect![[r#"
            run.started prompt
            + tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution
            - lost tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution (missing_end)
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
    let again = format!("{lines}\n{{\"type\":\"turn.started\"}}");
    check(
        &again,
        End::default(),
        expect![[r#"
            run.started prompt
            + tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution
            notice warning bad_line "not JSON: "
            - lost tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution (missing_end)
            run.ended lost error={missing_end "the next run began before this one had a result"} (missing_end)
            run.started prompt
            run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
        "#]],
    );
}

#[test]
fn counts_are_of_the_whole_thread() {
    check(
        r#"
        {"type":"thread.started","thread_id":"t"}
        {"type":"turn.started"}
        {"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20}}
        {"type":"turn.started"}
        {"type":"turn.completed","usage":{"input_tokens":250,"cached_input_tokens":90,"output_tokens":50}}
        "#,
        exit(0),
        expect![[r#"
            session t init
            run.started prompt
            usage session cumulative tokens={cache_read=40 cache_write=0 input=60 output=20}
            run.ended completed usage={session cumulative tokens={cache_read=40 cache_write=0 input=60 output=20}}
            run.started prompt
            usage session cumulative tokens={cache_read=90 cache_write=0 input=160 output=50}
            run.ended completed usage={run delta tokens={cache_read=50 cache_write=0 input=100 output=30}}
        "#]],
    );
}

#[test]
fn counts_beside_the_cache_are_taken_as_they_are() {
    let usage = r#"{"input_tokens":10,"cached_input_tokens":300,"output_tokens":20}"#;
    let usage = serde_json::from_str(usage).unwrap();
    let tokens = end::tokens(crate::wire::lenient::Any(Some(usage))).unwrap();
    assert_eq!((tokens.input, tokens.cache_read), (10, 300));
}

#[test]
fn items_without_a_start_are_opened_first() {
    check(
        r#"
        {"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"declined"}}
        {"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a","kind":"add"},{"path":"b","kind":"delete"}],"status":"failed"}}
        {"type":"item.completed","item":{"id":"i3","type":"mcp_tool_call","server":"s","tool":"t","arguments":null,"result":null,"error":{"message":"bad"},"status":"failed"}}
        {"type":"item.completed","item":{"id":"i4","type":"todo_list","items":[{"text":"a","completed":true}]}}
        {"type":"turn.completed","usage":null}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt (never_opened)
            + tool i1 class={shell ls command=ls} input={"command":"ls"} name=command_execution (never_opened)
            - denied tool i1 class={shell ls command=ls} input={"command":"ls"} name=command_execution result={content="" is_error=true}
            + tool i2 class={edit "Edit a and b" paths=[{path=a} {path=b}]} input={"changes":[{"kind":"add","path":"a"},{"kind":"delete","path":"b"}]} name=file_change (never_opened)
            - error tool i2 class={edit "Edit a and b" paths=[{path=a} {path=b}]} input={"changes":[{"kind":"add","path":"a"},{"kind":"delete","path":"b"}]} name=file_change result={content="" is_error=true}
            + tool i3 class={mcp t mcp={server=s tool=t}} input=null name=mcp__s__t (never_opened)
            - error tool i3 class={mcp t mcp={server=s tool=t}} input=null name=mcp__s__t result={content="bad" is_error=true}
            + plan i4 entries=[{completed a}] (never_opened)
            - ok plan i4 entries=[{completed a}]
            run.ended completed denials=[{input={"command":"ls"} item=i1 tool=command_execution}]
        "#]],
    );
}

#[test]
fn commands_may_be_lists_of_arguments() {
    check(
        r#"
        {"type":"turn.started"}
        {"type":"item.completed","item":{"id":"i1","type":"command_execution","command":["bash","-lc","echo a b"],"aggregated_output":"a b\n","exit_code":0,"status":"completed"}}
        {"type":"turn.failed","error":{"message":"no"}}
        "#,
        exit(1),
        expect![[r#"
            run.started prompt
            + tool i1 class={shell "bash -lc 'echo a b'" command="bash -lc 'echo a b'" exit_code=0} input={"command":["bash","-lc","echo a b"]} name=command_execution (never_opened)
            - ok tool i1 class={shell "bash -lc 'echo a b'" command="bash -lc 'echo a b'" exit_code=0} input={"command":["bash","-lc","echo a b"]} name=command_execution result={content="a b\n"}
            run.ended failed error={failed no}
        "#]],
    );
}

#[test]
fn the_final_answer_is_the_answer() {
    check(
        r#"
        {"type":"turn.started"}
        {"type":"item.completed","item":{"id":"i1","type":"agent_message","phase":"commentary","text":"c"}}
        {"type":"item.completed","item":{"id":"i2","type":"agent_message","phase":"final_answer","text":"f"}}
        {"type":"item.completed","item":{"id":"i3","type":"agent_message","text":"z"}}
        {"type":"item.completed","item":{"id":"i4","type":"new_thing","x":1}}
        {"type":"turn.completed","usage":{}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt
            + message i1 "" role=assistant
            - ok message i1 c role=assistant extra={"phase":"commentary"}
            + message i2 "" role=assistant
            - ok message i2 f role=assistant extra={"phase":"final_answer"}
            + message i3 "" role=assistant
            - ok message i3 z role=assistant
            unmapped "item `new_thing`"
            run.ended completed answer=f
        "#]],
    );
}

#[test]
fn another_thread_than_the_one_asked_for_is_a_failure() {
    check_as(
        Some("zz"),
        r#"
        {"type":"thread.started","thread_id":"th1"}
        {"type":"turn.started"}
        {"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt (wrong_session)
            session th1 mismatch
            run.ended failed error={wrong_session "session `zz` was asked for, the agent answered as `th1`"} (wrong_session)
            notice warning ignored "2 lines after the end were ignored"
        "#]],
    );
    check_as(
        Some("zz"),
        "",
        exit(1),
        expect![[r#"
            session zz resume (process_exit)
            run.started prompt (process_exit)
            run.ended failed error={crashed "codex exec failed (rc=1)"} (process_exit)
        "#]],
    );
}

#[test]
fn a_log_without_directions_reads_as_well() {
    check(
        r#"
        {"id":2,"method":"thread/start","params":{"cwd":"/w"}}
        {"id":2,"result":{"thread":{"id":"t1","cwd":"/w","forkedFromId":"t0"},"model":"m"}}
        {"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}
        {"method":"item/started","params":{"threadId":"t1","item":{"type":"reasoning","id":"r1","summary":[],"content":[]}}}
        {"method":"item/reasoning/summaryTextDelta","params":{"itemId":"r1","delta":"one","summaryIndex":0}}
        {"method":"item/reasoning/summaryPartAdded","params":{"itemId":"r1","summaryIndex":1}}
        {"method":"item/reasoning/summaryTextDelta","params":{"itemId":"r1","delta":"two","summaryIndex":1}}
        {"method":"item/completed","params":{"threadId":"t1","item":{"type":"reasoning","id":"r1","summary":["one","two"],"content":[]}}}
        {"method":"item/started","params":{"item":{"type":"commandExecution","id":"c1","command":"ls /w/a","status":"inProgress"}}}
        {"method":"item/commandExecution/requestApproval","id":7,"params":{"itemId":"c1","command":"ls /w/a"}}
        {"id":7,"result":{"decision":{"acceptWithExecpolicyAmendment":{}}}}
        {"method":"item/commandExecution/outputDelta","params":{"itemId":"c1","delta":"x"}}
        {"method":"item/completed","params":{"item":{"type":"commandExecution","id":"c1","command":"ls /w/a","status":"completed","aggregatedOutput":"x","exitCode":0}}}
        {"method":"item/tool/requestUserInput","id":8,"params":{"questions":[{"question":"Why?"}]}}
        {"method":"serverRequest/resolved","params":{"requestId":8}}
        {"method":"turn/plan/updated","params":{"plan":[{"step":"a","status":"inProgress"}]}}
        {"method":"item/started","params":{"threadId":"t9","item":{"type":"agentMessage","id":"m9"}}}
        {"method":"error","params":{"error":{"message":"slow"},"willRetry":true}}
        {"id":9,"error":{"code":-1,"message":"no such method"}}
        {"method":"never/heard","params":{}}
        {"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"boom"}}}}
        "#,
        End::default(),
        expect![[r#"
            notice debug request "the host asked: thread/start"
            session t1 fork cwd=/w model=m
            run.started prompt
            + reasoning r1 ""
            . r1 text one
            . r1 text "\n"
            . r1 text two
            - ok reasoning r1 "one\ntwo"
            + tool c1 class={shell "ls /w/a" command="ls /w/a"} input={"command":"ls /w/a"} name=command_execution
            ask permission 7 "ls /w/a" input={"command":"ls /w/a","itemId":"c1"} item=c1 tool=command_execution
            ask.settled 7 allowed_always remembered={"acceptWithExecpolicyAmendment":{}}
            . c1 output x
            - ok tool c1 class={shell "ls /w/a" command="ls /w/a" exit_code=0} input={"command":"ls /w/a"} name=command_execution result={content="x"}
            ask question 8 "Why?" input={"questions":[{"question":"Why?"}]} tool=item/tool/requestUserInput
            ask.settled 8 lost
            + plan plan.1 entries=[{in_progress a}]
            unmapped "`item/started` of another thread"
            notice warning api_retry slow
            notice error request_failed "no such method"
            unmapped "method `never/heard`"
            - ok plan plan.1 entries=[{in_progress a}] (left_open)
            run.ended failed error={failed boom}
        "#]],
    );
}

#[test]
fn an_interrupt_without_an_end_is_an_abort() {
    check(
        r#"
        {"method":"turn/started","params":{}}
        {"id":5,"method":"turn/interrupt","params":{}}
        "#,
        exit(0),
        expect![[r#"
            run.started prompt
            notice info interrupt "the host asked for an interrupt"
            run.ended aborted error={aborted aborted} (abort)
        "#]],
    );
}

#[test]
fn its_own_lines_are_recognised_and_no_others() {
    let own = include_str!("../../../../../fixtures/codex/text.jsonl");
    assert!(own.lines().all(recognises));
    let duplex = include_str!("../../../../../fixtures/codex/app_server.duplex.jsonl");
    assert!(duplex.lines().filter(|it| recognises(it)).count() > 30);
    for other in [
        include_str!("../../../../../fixtures/claude/text.jsonl"),
        include_str!("../../../../../fixtures/claude/control_permissions.duplex.jsonl"),
        include_str!("../../../../../fixtures/model/everything.events.jsonl"),
        include_str!("../../../../../fixtures/acp/everything.acp.jsonl"),
        include_str!("../../../../../fixtures/takopi/everything.takopi.jsonl"),
        r#"{"type":"error","message":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        "[]",
        "nonsense",
    ] {
        for line in other.lines() {
            assert!(!recognises(line), "{line}");
        }
    }
}

#[test]
fn a_thread_that_is_refused_is_why_the_run_failed() {
    check(
        r#"{"id":2,"method":"thread/resume","params":{"threadId":"nope"}}
        {"id":2,"error":{"code":-32600,"message":"no rollout found"}}"#,
        exit(0),
        expect![[r#"
            notice debug request "the host asked: thread/resume"
            notice error request_failed "no rollout found"
            run.started prompt (process_exit)
            run.ended failed error={not_found "no rollout found"} (process_exit)
        "#]],
    );
}

#[test]
fn a_turn_that_is_refused_is_a_run_that_failed() {
    check(
        r#"{"id":3,"method":"turn/start","params":{"threadId":"t","input":[]}}
        {"id":3,"error":{"code":-32600,"message":"too long"}}"#,
        exit(0),
        expect![[r#"
            notice debug request "the host asked: turn/start"
            notice error request_failed "too long"
            run.started prompt (never_opened)
            run.ended failed error={failed "too long"}
        "#]],
    );
}

#[test]
fn a_fork_that_is_resumed_is_resumed() {
    check(
        r#"{"id":2,"method":"thread/resume","params":{"threadId":"t"}}
        {"id":2,"result":{"thread":{"id":"t","forkedFromId":"s"}}}
        {"method":"turn/started","params":{"threadId":"t"}}
        {"method":"turn/completed","params":{"threadId":"t","turn":{"status":"completed"}}}"#,
        exit(0),
        expect![[r#"
            notice debug request "the host asked: thread/resume"
            session t resume
            run.started prompt
            run.ended completed
        "#]],
    );
}

#[test]
fn a_later_process_of_a_session_uses_names_that_are_new() {
    let lines = [
        r#"{"type":"turn.started"}"#,
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hi"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"ho"}}"#,
    ];
    let mut config = ReaderConfig::default();
    config.previous.n_runs = 4;
    config.previous.items.reserve(&ItemId::new("item_0"));
    let mut reader = machine::<Codex>(&config);
    let mut names = Vec::new();
    let mut sink = |event: &Event<'_>| match &event.body {
        Body::RunStarted(_) => names.push(event.run.as_ref().unwrap().to_string()),
        Body::ItemClosed(it) => names.push(it.item.id().to_string()),
        _ => (),
    };
    for line in lines {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    assert_eq!(names, ["r5", "item_0~2", "item_1"]);
}

#[test]
fn an_interrupted_item_is_cancelled() {
    check(
        r#"
        {"type":"thread.started","thread_id":"t"}
        {"type":"turn.started"}
        {"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 9","aggregated_output":"","status":"in_progress"}}
        {"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"sleep 9","aggregated_output":"","status":"interrupted"}}
        {"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}
        "#,
        exit(0),
        expect![[r#"
            session t init
            run.started prompt
            + tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution
            - cancelled tool item_0 class={shell "sleep 9" command="sleep 9"} input={"command":"sleep 9"} name=command_execution result={content="" is_error=true}
            usage session cumulative tokens={cache_read=0 cache_write=0 input=1 output=1}
            run.ended completed usage={session cumulative tokens={cache_read=0 cache_write=0 input=1 output=1}}
        "#]],
    );
}

#[test]
fn of_too_many_open_items_the_oldest_is_closed() {
    let mut reader = machine::<Codex>(&ReaderConfig::default());
    let mut closed = Vec::new();
    let mut sink = |event: &Event<'_>| {
        if let Body::ItemClosed(it) = &event.body {
            closed.push((it.item.id().to_string(), it.status));
        }
    };
    for n in 0..=1024 {
        let line = format!(
            r#"{{"type":"item.started","item":{{"id":"item_{n}","type":"command_execution","command":"x","aggregated_output":"","status":"in_progress"}}}}"#
        );
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    assert_eq!(closed, [("item_0".to_owned(), model::Status::Lost)]);
}
