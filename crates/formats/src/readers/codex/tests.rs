use std::fmt::Write as _;

use expect_test::{Expect, expect};
use model::{Body, End, Event, Exit, Frame, ItemId};

use super::*;
use crate::readers::machine;

/// Lines in, events out, one short line for each.
fn check(lines: &str, end: End, expect: Expect) {
    check_as(None, lines, end, expect);
}

fn check_as(wanted: Option<&str>, lines: &str, end: End, expect: Expect) {
    let mut reader = machine::<Codex>(&ReaderConfig {
        expected_session: wanted.map(str::to_owned),
        ..ReaderConfig::default()
    });
    let mut out = String::new();
    let mut sink = |event: &Event<'_>| write_event(event, &mut out);
    for line in lines.lines().map(str::trim).filter(|it| !it.is_empty()) {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&end, &mut sink);
    expect.assert_eq(&out);
}

fn write_event(event: &Event<'_>, out: &mut String) {
    let json = serde_json::to_string(event).unwrap();
    let (_, data) = json.split_once("\"data\":").unwrap();
    let why = event.why.map(|it| format!(" ({it:?})"));
    let why = why.unwrap_or_default().to_lowercase();
    let data = match &event.body {
        Body::NoticeRaised(notice) => format!("{} {}", notice.code, notice.text),
        _ => data.trim_end_matches('}').to_owned(),
    };
    writeln!(out, "{}{why} {data}", event.body.name()).unwrap();
}

fn exit(code: i32) -> End {
    End {
        exit: Some(Exit::Code(code)),
        aborted: false,
    }
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
            run.started {"cause":"prompt"
            item.opened {"kind":"tool","id":"item_0","name":"web_search","input":{"query":"","action":{"type":"other"}},"class":{"kind":"web_search","title":"web_search","query":""},"server_side":true
            item.updated {"kind":"tool","id":"item_0","name":"web_search","input":{"query":"q","action":{"type":"search","query":"q"}},"class":{"kind":"web_search","title":"Search \"q\"","query":"q"},"server_side":true
            item.closed {"status":"ok","item":{"kind":"tool","id":"item_0","name":"web_search","input":{"query":"q","action":{"type":"search","query":"q"}},"class":{"kind":"web_search","title":"Search \"q\"","query":"q"},"server_side":true,"result":{"content":""
            run.ended (processexit) {"outcome":"failed","error":{"code":"no_session","message":"codex exec finished but no session_id/thread_id was captured"
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
            run.started (neveropened) {"cause":"prompt"
            item.opened (neveropened) {"kind":"tool","id":"item_0","name":"web_search","input":{"query":"","action":{"type":"open_page","url":"https://a.b"}},"class":{"kind":"web_search","title":"Search \"https://a.b\"","query":"https://a.b"},"server_side":true
            item.closed {"status":"ok","item":{"kind":"tool","id":"item_0","name":"web_search","input":{"query":"","action":{"type":"open_page","url":"https://a.b"}},"class":{"kind":"web_search","title":"Search \"https://a.b\"","query":"https://a.b"},"server_side":true,"result":{"content":""
            usage.reported {"scope":"session","basis":"cumulative","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":2},"detail":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2
            run.ended {"outcome":"completed","usage":{"scope":"session","basis":"cumulative","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":2},"detail":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2}},"detail":{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":2
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
            run.started {"cause":"prompt"
            notice.raised api_retry Reconnecting... 1/5
            notice.raised api_retry Reconnecting... 2/5
            item.opened {"kind":"message","id":"item_0","role":"assistant","text":""
            item.closed {"status":"ok","item":{"kind":"message","id":"item_0","role":"assistant","text":"ok"
            usage.reported {"scope":"session","basis":"cumulative","tokens":{"input":5,"cache_read":4,"cache_write":1,"output":2,"reasoning":1},"detail":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":1
            run.ended {"outcome":"completed","answer":"ok","usage":{"scope":"session","basis":"cumulative","tokens":{"input":5,"cache_read":4,"cache_write":1,"output":2,"reasoning":1},"detail":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":1}},"detail":{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":1
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
        run.started {"cause":"prompt"
        item.opened {"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
        item.closed (processexit) {"status":"lost","item":{"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
        run.ended (processexit) {"outcome":"failed","error":{"code":"crashed","message":"codex exec failed (rc=1)"
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
        run.started {"cause":"prompt"
        item.opened {"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
        item.closed (abort) {"status":"cancelled","item":{"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
        run.ended (abort) {"outcome":"aborted","error":{"code":"aborted","message":"aborted"
    "#]],
    );
    check(
        lines,
        End::default(),
        expect![[r#"
            run.started {"cause":"prompt"
            item.opened {"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
            item.closed (missingend) {"status":"lost","item":{"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
            run.ended (missingend) {"outcome":"lost","error":{"code":"missing_end","message":"the stream ended without a result"
        "#]],
    );
    let again = format!("{lines}\n{{\"type\":\"turn.started\"}}");
    check(
        &again,
        End::default(),
        expect![[r#"
            run.started {"cause":"prompt"
            item.opened {"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
            item.closed (missingend) {"status":"lost","item":{"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
            run.ended (missingend) {"outcome":"lost","error":{"code":"missing_end","message":"the next run began before this one had a result"
            run.started {"cause":"prompt"
            run.ended (missingend) {"outcome":"lost","error":{"code":"missing_end","message":"the stream ended without a result"
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
            session.bound {"native":"t","how":"init"
            run.started {"cause":"prompt"
            usage.reported {"scope":"session","basis":"cumulative","tokens":{"input":60,"cache_read":40,"cache_write":0,"output":20},"detail":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20
            run.ended {"outcome":"completed","usage":{"scope":"session","basis":"cumulative","tokens":{"input":60,"cache_read":40,"cache_write":0,"output":20},"detail":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20}},"detail":{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20
            run.started {"cause":"prompt"
            usage.reported {"scope":"session","basis":"cumulative","tokens":{"input":160,"cache_read":90,"cache_write":0,"output":50},"detail":{"input_tokens":250,"cached_input_tokens":90,"output_tokens":50
            run.ended {"outcome":"completed","usage":{"scope":"run","basis":"delta","tokens":{"input":100,"cache_read":50,"cache_write":0,"output":30},"detail":{"input_tokens":250,"cached_input_tokens":90,"output_tokens":50}},"detail":{"type":"turn.completed","usage":{"input_tokens":250,"cached_input_tokens":90,"output_tokens":50
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
            run.started (neveropened) {"cause":"prompt"
            item.opened (neveropened) {"kind":"tool","id":"i1","name":"command_execution","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls"
            item.closed {"status":"denied","item":{"kind":"tool","id":"i1","name":"command_execution","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls"},"result":{"content":"","is_error":true
            item.opened (neveropened) {"kind":"tool","id":"i2","name":"file_change","input":{"changes":[{"path":"a","kind":"add"},{"path":"b","kind":"delete"}]},"class":{"kind":"edit","title":"Edit a and b","paths":[{"path":"a"},{"path":"b"}]
            item.closed {"status":"error","item":{"kind":"tool","id":"i2","name":"file_change","input":{"changes":[{"path":"a","kind":"add"},{"path":"b","kind":"delete"}]},"class":{"kind":"edit","title":"Edit a and b","paths":[{"path":"a"},{"path":"b"}]},"result":{"content":"","is_error":true
            item.opened (neveropened) {"kind":"tool","id":"i3","name":"mcp__s__t","input":null,"class":{"kind":"mcp","title":"t","mcp":{"server":"s","tool":"t"
            item.closed {"status":"error","item":{"kind":"tool","id":"i3","name":"mcp__s__t","input":null,"class":{"kind":"mcp","title":"t","mcp":{"server":"s","tool":"t"}},"result":{"content":"bad","is_error":true
            item.opened (neveropened) {"kind":"plan","id":"i4","entries":[{"text":"a","status":"completed"}]
            item.closed {"status":"ok","item":{"kind":"plan","id":"i4","entries":[{"text":"a","status":"completed"}]
            run.ended {"outcome":"completed","denials":[{"tool":"command_execution","item":"i1","input":{"command":"ls"}}],"detail":{"type":"turn.completed","usage":null
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
            run.started {"cause":"prompt"
            item.opened (neveropened) {"kind":"tool","id":"i1","name":"command_execution","input":{"command":["bash","-lc","echo a b"]},"class":{"kind":"shell","title":"bash -lc 'echo a b'","command":"bash -lc 'echo a b'","exit_code":0
            item.closed {"status":"ok","item":{"kind":"tool","id":"i1","name":"command_execution","input":{"command":["bash","-lc","echo a b"]},"class":{"kind":"shell","title":"bash -lc 'echo a b'","command":"bash -lc 'echo a b'","exit_code":0},"result":{"content":"a b\n"
            run.ended {"outcome":"failed","error":{"code":"failed","message":"no"},"detail":{"type":"turn.failed","error":{"message":"no"
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
            run.started {"cause":"prompt"
            item.opened {"kind":"message","id":"i1","role":"assistant","text":""
            item.closed {"status":"ok","item":{"kind":"message","id":"i1","role":"assistant","text":"c"
            item.opened {"kind":"message","id":"i2","role":"assistant","text":""
            item.closed {"status":"ok","item":{"kind":"message","id":"i2","role":"assistant","text":"f"
            item.opened {"kind":"message","id":"i3","role":"assistant","text":""
            item.closed {"status":"ok","item":{"kind":"message","id":"i3","role":"assistant","text":"z"
            frame.unmapped {"what":"item `new_thing`","raw":{"type":"item.completed","item":{"id":"i4","type":"new_thing","x":1
            run.ended {"outcome":"completed","answer":"f","detail":{"type":"turn.completed","usage":{
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
            run.started (wrongsession) {"cause":"prompt"
            session.bound {"native":"th1","how":"mismatch"
            run.ended (wrongsession) {"outcome":"failed","error":{"code":"wrong_session","message":"session `zz` was asked for, the agent answered as `th1`"
            notice.raised ignored 2 lines after the end were ignored
        "#]],
    );
    check_as(
        Some("zz"),
        "",
        exit(1),
        expect![[r#"
            session.bound (processexit) {"native":"zz","how":"resume"
            run.started (processexit) {"cause":"prompt"
            run.ended (processexit) {"outcome":"failed","error":{"code":"crashed","message":"codex exec failed (rc=1)"
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
            notice.raised request the host asked: thread/start
            session.bound {"native":"t1","how":"fork","model":"m","cwd":"/w"
            run.started {"cause":"prompt"
            item.opened {"kind":"reasoning","id":"r1","text":""
            item.delta {"item":"r1","channel":"text","text":"one"
            item.delta {"item":"r1","channel":"text","text":"\n"
            item.delta {"item":"r1","channel":"text","text":"two"
            item.closed {"status":"ok","item":{"kind":"reasoning","id":"r1","text":"one\ntwo"
            item.opened {"kind":"tool","id":"c1","name":"command_execution","input":{"command":"ls /w/a"},"class":{"kind":"shell","title":"ls /w/a","command":"ls /w/a"
            ask.opened {"id":"7","kind":"permission","item":"c1","tool":"command_execution","title":"ls /w/a","input":{"itemId":"c1","command":"ls /w/a"
            ask.settled {"id":"7","decision":"allowed_always","remembered":{"acceptWithExecpolicyAmendment":{
            item.delta {"item":"c1","channel":"output","text":"x"
            item.closed {"status":"ok","item":{"kind":"tool","id":"c1","name":"command_execution","input":{"command":"ls /w/a"},"class":{"kind":"shell","title":"ls /w/a","command":"ls /w/a","exit_code":0},"result":{"content":"x"
            ask.opened {"id":"8","kind":"question","tool":"item/tool/requestUserInput","title":"Why?","input":{"questions":[{"question":"Why?"}]
            ask.settled {"id":"8","decision":"lost"
            item.opened {"kind":"plan","id":"plan.1","entries":[{"text":"a","status":"in_progress"}]
            frame.unmapped {"what":"`item/started` of another thread","raw":{"method":"item/started","params":{"threadId":"t9","item":{"type":"agentMessage","id":"m9"
            notice.raised api_retry slow
            notice.raised request_failed no such method
            frame.unmapped {"what":"method `never/heard`","raw":{"method":"never/heard","params":{
            item.closed (leftopen) {"status":"ok","item":{"kind":"plan","id":"plan.1","entries":[{"text":"a","status":"in_progress"}]
            run.ended {"outcome":"failed","error":{"code":"failed","message":"boom"},"detail":{"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"boom"
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
            run.started {"cause":"prompt"
            notice.raised interrupt the host asked for an interrupt
            run.ended (abort) {"outcome":"aborted","error":{"code":"aborted","message":"aborted"
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
            notice.raised request the host asked: thread/resume
            notice.raised request_failed no rollout found
            run.started (processexit) {"cause":"prompt"
            run.ended (processexit) {"outcome":"failed","error":{"code":"not_found","message":"no rollout found"
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
            notice.raised request the host asked: turn/start
            notice.raised request_failed too long
            run.started (neveropened) {"cause":"prompt"
            run.ended {"outcome":"failed","error":{"code":"failed","message":"too long"
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
            notice.raised request the host asked: thread/resume
            session.bound {"native":"t","how":"resume"
            run.started {"cause":"prompt"
            run.ended {"outcome":"completed","detail":{"method":"turn/completed","params":{"threadId":"t","turn":{"status":"completed"
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
            session.bound {"native":"t","how":"init"
            run.started {"cause":"prompt"
            item.opened {"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"
            item.closed {"status":"cancelled","item":{"kind":"tool","id":"item_0","name":"command_execution","input":{"command":"sleep 9"},"class":{"kind":"shell","title":"sleep 9","command":"sleep 9"},"result":{"content":"","is_error":true
            usage.reported {"scope":"session","basis":"cumulative","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":1},"detail":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1
            run.ended {"outcome":"completed","usage":{"scope":"session","basis":"cumulative","tokens":{"input":1,"cache_read":0,"cache_write":0,"output":1},"detail":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}},"detail":{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1
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
