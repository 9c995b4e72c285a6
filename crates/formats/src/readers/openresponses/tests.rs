use expect_test::{Expect, expect};
use model::{Event, Frame};
use serde_json::Value;

use super::*;
use crate::readers::machine;

/// Reads lines and prints the events, each with its type and data.
fn read_all(config: &ReaderConfig, lines: &str, end: &End) -> String {
    let mut reader = machine::<OpenResponses>(config);
    let mut out = String::new();
    let mut sink = |event: &Event<'_>| {
        let json: Value = serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap();
        let kind = json["type"].as_str().unwrap();
        let mut data = json["data"].clone();
        if kind == "run.ended" {
            data.as_object_mut().unwrap().remove("detail");
        }
        let why = json["why"]
            .as_str()
            .map_or(String::new(), |it| format!(" ({it})"));
        out += &format!("{kind}{why} {data}\n");
    };
    for line in lines.trim().lines().map(str::trim) {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(end, &mut sink);
    out
}

#[track_caller]
fn check(lines: &str, expect: Expect) {
    expect.assert_eq(&read_all(&ReaderConfig::default(), lines, &End::default()));
}

#[test]
fn reasoning_has_three_names() {
    check(
        r#"
        {"type":"response.reasoning.delta","output_index":0,"item_id":"r","content_index":0,"delta":"a"}
        {"type":"response.reasoning_text.delta","output_index":0,"item_id":"other","content_index":1,"delta":"b"}
        {"type":"response.reasoning_text.done","output_index":0,"item_id":"r","text":"ab"}
        {"type":"response.reasoning_text.delta","output_index":0,"item_id":"r","delta":"second part"}
        {"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"r","summary_index":0,"delta":"s"}
        {"type":"response.reasoning_summary_text.done","output_index":0,"item_id":"r","summary_index":1,"text":"not streamed"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"x","summary":[{"text":"s"},{"text":"not streamed"},{"text":"last"}],"encrypted_content":"hidden"}}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"e","summary":[],"encrypted_content":"only hidden"}}
        {"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","id":"n","summary":[],"encrypted_content":null}}
        {"type":"response.output_item.done","output_index":3,"item":{"type":"reasoning","id":"w","content":[{"text":"whole"}],"summary":[]}}
        {"type":"response.completed","response":{"id":"resp"}}
        "#,
        expect![[r#"
            run.started {"cause":"prompt"}
            item.opened {"group":"response","id":"r/c0","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"r/c0","text":"a"}
            item.delta {"channel":"text","item":"r/c0","text":"b"}
            item.closed {"item":{"group":"response","id":"r/c0","kind":"reasoning","text":"ab"},"status":"ok"}
            item.opened {"group":"response","id":"r/c1","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"r/c1","text":"second part"}
            item.closed {"item":{"group":"response","id":"r/c1","kind":"reasoning","text":"second part"},"status":"ok"}
            item.opened {"group":"response","id":"r/s0","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"r/s0","text":"s"}
            item.closed {"item":{"group":"response","id":"r/s0","kind":"reasoning","text":"s"},"status":"ok"}
            item.opened {"group":"response","id":"r/s1","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"r/s1","text":"not streamed"}
            item.closed {"item":{"group":"response","id":"r/s1","kind":"reasoning","text":"not streamed"},"status":"ok"}
            item.opened {"group":"response","id":"r/s2","kind":"reasoning","text":""}
            item.closed {"item":{"encrypted":"hidden","group":"response","id":"r/s2","kind":"reasoning","text":"last"},"status":"ok"}
            item.opened {"group":"response","id":"e","kind":"reasoning","text":""}
            item.closed {"item":{"encrypted":"only hidden","group":"response","id":"e","kind":"reasoning","text":""},"status":"ok"}
            notice.raised {"code":"no_reasoning","level":"debug","text":"reasoning that nobody may read"}
            item.opened {"group":"response","id":"w/c0","kind":"reasoning","text":""}
            item.closed {"item":{"group":"response","id":"w/c0","kind":"reasoning","text":"whole"},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn items_are_known_by_their_place() {
    check(
        r#"
        {"type":"response.created","response":{"id":"a","model":"m"}}
        {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"1","role":"assistant","content":[]}}
        {"type":"response.output_text.delta","output_index":0,"item_id":"2","content_index":0,"delta":"one "}
        {"type":"response.output_text.delta","output_index":1,"item_id":"3","content_index":7,"delta":"other"}
        {"type":"response.output_text.delta","output_index":0,"item_id":"4","content_index":1,"delta":"text"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"5","content":[{"type":"output_text","text":"one text, and the rest"}]}}
        {"type":"response.completed","response":{"id":"b","output":[]}}
        "#,
        expect![[r#"
            session.bound {"how":"init","model":"m","native":"a"}
            run.started {"cause":"prompt"}
            item.opened {"group":"a","id":"1","kind":"message","role":"assistant","text":""}
            item.delta {"channel":"text","item":"1","text":"one "}
            item.opened {"group":"a","id":"3","kind":"message","role":"assistant","text":""}
            item.delta {"channel":"text","item":"3","text":"other"}
            item.delta {"channel":"text","item":"1","text":"text"}
            item.delta {"channel":"text","item":"1","text":", and the rest"}
            item.closed {"item":{"group":"a","id":"1","kind":"message","role":"assistant","text":"one text, and the rest"},"status":"ok"}
            item.closed {"item":{"group":"a","id":"3","kind":"message","role":"assistant","text":"other"},"status":"ok"}
            run.ended {"answer":"other","outcome":"completed"}
        "#]],
    );
}

#[test]
fn arguments_are_whole_however_they_come() {
    check(
        r#"
        {"type":"response.created","response":{"id":"r"}}
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f0","call_id":"partly","name":"Bash","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"command\":"}
        {"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"command\":\"ls\"}"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f0","call_id":"partly","name":"Bash","arguments":"{\"command\":\"ls\"}"}}
        {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"differs","name":"x","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":1,"delta":"[1]"}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f1","call_id":"differs","name":"x","arguments":"[2]"}}
        {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f2","call_id":"none","name":"x","arguments":""}}
        {"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"f3","call_id":"cut","name":"x","arguments":"{\"a","status":"incomplete"}}
        {"type":"response.function_call_arguments.delta","output_index":4,"item_id":"f4","delta":"{\"nobody\":1}"}
        {"type":"response.completed","response":{"id":"r"}}
        "#,
        expect![[r#"
            session.bound {"how":"init","native":"r"}
            run.started {"cause":"prompt"}
            item.opened {"class":{"kind":"shell","title":"Bash"},"group":"r","id":"partly","kind":"tool","name":"Bash"}
            item.delta {"channel":"input","item":"partly","text":"{\"command\":"}
            item.delta {"channel":"input","item":"partly","text":"\"ls\"}"}
            item.updated {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"partly","input":{"command":"ls"},"kind":"tool","name":"Bash"}
            item.opened {"class":{"kind":"other","title":"x"},"group":"r","id":"differs","kind":"tool","name":"x"}
            item.delta {"channel":"input","item":"differs","text":"[1]"}
            notice.raised {"code":"input_differs","level":"warning","text":"the streamed arguments are not the final ones"}
            item.updated {"class":{"kind":"other","title":"x"},"group":"r","id":"differs","input":[2],"kind":"tool","name":"x"}
            item.opened {"class":{"kind":"other","title":"x"},"group":"r","id":"none","kind":"tool","name":"x"}
            item.updated {"class":{"kind":"other","title":"x"},"group":"r","id":"none","input":{},"kind":"tool","name":"x"}
            item.opened {"class":{"kind":"other","title":"x"},"group":"r","id":"cut","kind":"tool","name":"x"}
            item.updated {"class":{"kind":"other","title":"x"},"group":"r","id":"cut","input":"{\"a","kind":"tool","name":"x"}
            item.opened (never_opened) {"class":{"kind":"other","title":"unknown"},"group":"r","id":"f4","input":{"nobody":1},"kind":"tool","name":"unknown"}
            item.closed {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"r","id":"partly","input":{"command":"ls"},"kind":"tool","name":"Bash"},"status":"ok"}
            item.closed {"item":{"class":{"kind":"other","title":"x"},"group":"r","id":"differs","input":[2],"kind":"tool","name":"x"},"status":"ok"}
            item.closed {"item":{"class":{"kind":"other","title":"x"},"group":"r","id":"none","input":{},"kind":"tool","name":"x"},"status":"ok"}
            item.closed (left_open) {"item":{"class":{"kind":"other","title":"unknown"},"group":"r","id":"f4","input":{"nobody":1},"kind":"tool","name":"unknown"},"status":"lost"}
            item.closed (left_open) {"item":{"class":{"kind":"other","title":"x"},"group":"r","id":"cut","input":"{\"a","kind":"tool","name":"x"},"status":"lost"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn a_call_may_be_answered_in_the_stream() {
    check(
        r#"
        {"type":"response.created","response":{"id":"r"}}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"x","arguments":"{}"}}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call_output","id":"o","call_id":"c","output":[{"type":"input_text","text":"yes"},{"type":"input_image","image_url":"https://example.com/a.png"}]}}
        {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call_output","id":"p","call_id":"nobody","output":"no"}}
        {"type":"response.completed","response":{"id":"r"}}
        "#,
        expect![[r#"
            session.bound {"how":"init","native":"r"}
            run.started {"cause":"prompt"}
            item.opened {"class":{"kind":"other","title":"x"},"group":"r","id":"c","kind":"tool","name":"x"}
            item.updated {"class":{"kind":"other","title":"x"},"group":"r","id":"c","input":{},"kind":"tool","name":"x"}
            item.closed {"item":{"class":{"kind":"other","title":"x"},"group":"r","id":"c","input":{},"kind":"tool","name":"x","result":{"content":[{"text":"yes","type":"text"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"}]}},"status":"ok"}
            item.opened (never_opened) {"class":{"kind":"other","title":"unknown"},"group":"r","id":"nobody","kind":"tool","name":"unknown"}
            item.closed {"item":{"class":{"kind":"other","title":"unknown"},"group":"r","id":"nobody","kind":"tool","name":"unknown","result":{"content":"no"}},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn hosted_tools_are_classified_by_what_they_do() {
    check(
        r#"
        {"type":"response.created","response":{"id":"r"}}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"w","status":"completed","action":{"type":"open_page","url":"https://example.com"}}}
        {"type":"response.output_item.done","output_index":1,"item":{"type":"file_search_call","id":"f","status":"completed","queries":["a","b"],"results":[{"file":"x"}]}}
        {"type":"response.output_item.added","output_index":2,"item":{"type":"mcp_call","id":"m","server_label":"zip1","name":"shorten","arguments":""}}
        {"type":"response.mcp_call_arguments.delta","output_index":2,"delta":"{}"}
        {"type":"response.output_item.done","output_index":2,"item":{"type":"mcp_call","id":"m","server_label":"zip1","name":"shorten","arguments":"{}","output":"done"}}
        {"type":"response.output_item.done","output_index":3,"item":{"type":"mcp_call","id":"n","server_label":"zip1","name":"shorten","arguments":"{}","error":{"message":"no"}}}
        {"type":"response.output_item.done","output_index":4,"item":{"type":"shell_call","id":"s","call_id":"sc","status":"completed","action":{"commands":["ls","pwd"]}}}
        {"type":"response.output_item.done","output_index":5,"item":{"type":"shell_call_output","id":"so","call_id":"sc","output":[{"stdout":"a\n","stderr":"b","outcome":{"type":"exit","exit_code":3}}]}}
        {"type":"response.output_item.done","output_index":6,"item":{"type":"local_shell_call","id":"l","call_id":"lc","action":{"command":["echo","hi"]}}}
        {"type":"response.output_item.done","output_index":7,"item":{"type":"apply_patch_call","id":"p","call_id":"pc","operation":{"type":"update_file","path":"a.md","diff":"@@\n-a\n+b\n"}}}
        {"type":"response.output_item.done","output_index":8,"item":{"type":"code_interpreter_call","id":"i","code":"1+1","outputs":[{"logs":"2"}]}}
        {"type":"response.output_item.done","output_index":9,"item":{"type":"image_generation_call","id":"g","result":"aGk="}}
        {"type":"response.output_item.done","output_index":10,"item":{"type":"custom_tool_call","id":"t","call_id":"tc","name":"sql","input":"SELECT 1"}}
        {"type":"response.output_item.done","output_index":11,"item":{"type":"compaction","id":"k","encrypted_content":"x"}}
        {"type":"response.output_item.added","output_index":12,"item":{"type":"acme:thing","id":"a","n":1}}
        {"type":"response.output_item.done","output_index":12,"item":{"type":"acme:thing","id":"a","n":2,"status":"failed"}}
        {"type":"response.completed","response":{"id":"r"}}
        "#,
        expect![[r#"
            session.bound {"how":"init","native":"r"}
            run.started {"cause":"prompt"}
            item.opened {"class":{"kind":"web_search","query":"https://example.com","title":"Open https://example.com"},"group":"r","id":"w","input":{"type":"open_page","url":"https://example.com"},"kind":"tool","name":"web_search","server_side":true}
            item.closed {"item":{"class":{"kind":"web_search","query":"https://example.com","title":"Open https://example.com"},"group":"r","id":"w","input":{"type":"open_page","url":"https://example.com"},"kind":"tool","name":"web_search","server_side":true},"status":"ok"}
            item.opened {"class":{"kind":"search","query":"a, b","title":"Search files for a, b"},"group":"r","id":"f","input":{"queries":["a","b"]},"kind":"tool","name":"file_search","server_side":true}
            item.closed {"item":{"class":{"kind":"search","query":"a, b","title":"Search files for a, b"},"group":"r","id":"f","input":{"queries":["a","b"]},"kind":"tool","name":"file_search","result":{"content":"[{\"file\":\"x\"}]","structured":[{"file":"x"}]},"server_side":true},"status":"ok"}
            item.opened {"class":{"kind":"mcp","mcp":{"server":"zip1","tool":"shorten"},"title":"shorten"},"group":"r","id":"m","kind":"tool","name":"mcp__zip1__shorten","server_side":true}
            item.delta {"channel":"input","item":"m","text":"{}"}
            item.updated {"class":{"kind":"mcp","mcp":{"server":"zip1","tool":"shorten"},"title":"shorten"},"group":"r","id":"m","input":{},"kind":"tool","name":"mcp__zip1__shorten","server_side":true}
            item.closed {"item":{"class":{"kind":"mcp","mcp":{"server":"zip1","tool":"shorten"},"title":"shorten"},"group":"r","id":"m","input":{},"kind":"tool","name":"mcp__zip1__shorten","result":{"content":"done"},"server_side":true},"status":"ok"}
            item.opened {"class":{"kind":"mcp","mcp":{"server":"zip1","tool":"shorten"},"title":"shorten"},"group":"r","id":"n","input":{},"kind":"tool","name":"mcp__zip1__shorten","server_side":true}
            item.closed {"item":{"class":{"kind":"mcp","mcp":{"server":"zip1","tool":"shorten"},"title":"shorten"},"group":"r","id":"n","input":{},"kind":"tool","name":"mcp__zip1__shorten","result":{"content":"{\"message\":\"no\"}","is_error":true},"server_side":true},"status":"error"}
            item.opened {"class":{"command":"ls\npwd","kind":"shell","title":"ls; pwd"},"group":"r","id":"sc","input":{"commands":["ls","pwd"]},"kind":"tool","name":"shell"}
            item.closed {"item":{"class":{"command":"ls\npwd","exit_code":3,"kind":"shell","title":"ls; pwd"},"group":"r","id":"sc","input":{"commands":["ls","pwd"]},"kind":"tool","name":"shell","result":{"content":"a\nb"}},"status":"ok"}
            item.opened {"class":{"command":"echo hi","kind":"shell","title":"echo hi"},"group":"r","id":"lc","input":{"command":["echo","hi"]},"kind":"tool","name":"local_shell"}
            item.opened {"class":{"change":"update","diffs":[{"new":"b\n","old":"a\n","path":"a.md"}],"kind":"edit","paths":[{"path":"a.md"}],"title":"Edit a.md"},"group":"r","id":"pc","input":{"diff":"@@\n-a\n+b\n","path":"a.md","type":"update_file"},"kind":"tool","name":"apply_patch"}
            item.opened {"class":{"kind":"other","title":"Run code"},"group":"r","id":"i","input":{"code":"1+1"},"kind":"tool","name":"code_interpreter","server_side":true}
            item.closed {"item":{"class":{"kind":"other","title":"Run code"},"group":"r","id":"i","input":{"code":"1+1"},"kind":"tool","name":"code_interpreter","result":{"content":"[{\"logs\":\"2\"}]","structured":[{"logs":"2"}]},"server_side":true},"status":"ok"}
            item.opened {"class":{"kind":"other","title":"image_generation"},"group":"r","id":"g","kind":"tool","name":"image_generation","server_side":true}
            item.closed {"item":{"class":{"kind":"other","title":"image_generation"},"group":"r","id":"g","kind":"tool","name":"image_generation","result":{"content":[{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}]},"server_side":true},"status":"ok"}
            item.opened {"class":{"kind":"other","title":"sql"},"group":"r","id":"tc","kind":"tool","name":"sql"}
            item.updated {"class":{"kind":"other","title":"sql"},"group":"r","id":"tc","input":"SELECT 1","kind":"tool","name":"sql"}
            item.opened (never_opened) {"detail":{"encrypted_content":"x","id":"k","type":"compaction"},"id":"k","kind":"compaction"}
            item.closed {"item":{"detail":{"encrypted_content":"x","id":"k","type":"compaction"},"id":"k","kind":"compaction"},"status":"ok"}
            item.opened {"data":{"id":"a","n":1,"type":"acme:thing"},"id":"a","kind":"other","name":"acme:thing"}
            item.closed {"item":{"data":{"id":"a","n":2,"status":"failed","type":"acme:thing"},"id":"a","kind":"other","name":"acme:thing"},"status":"error"}
            item.closed {"item":{"class":{"command":"echo hi","kind":"shell","title":"echo hi"},"group":"r","id":"lc","input":{"command":["echo","hi"]},"kind":"tool","name":"local_shell"},"status":"ok"}
            item.closed {"item":{"class":{"change":"update","diffs":[{"new":"b\n","old":"a\n","path":"a.md"}],"kind":"edit","paths":[{"path":"a.md"}],"title":"Edit a.md"},"group":"r","id":"pc","input":{"diff":"@@\n-a\n+b\n","path":"a.md","type":"update_file"},"kind":"tool","name":"apply_patch"},"status":"ok"}
            item.closed {"item":{"class":{"kind":"other","title":"sql"},"group":"r","id":"tc","input":"SELECT 1","kind":"tool","name":"sql"},"status":"ok"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

/// The run's end that a stream comes to.
fn ends(lines: &str) -> String {
    let told = read_all(&ReaderConfig::default(), lines, &End::default());
    let ends = told
        .lines()
        .filter(|it| it.starts_with("run.ended") || it.starts_with("notice"));
    ends.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn only_a_terminal_event_is_a_good_end() {
    for (lines, expect) in [
        (
            r#"{"type":"response.created","response":{"id":"r"}}
            [DONE]"#,
            expect![[r#"
                run.ended (missing_end) {"error":{"code":"upstream_truncated","message":"the stream ended before the response did"},"outcome":"lost"}
            "#]],
        ),
        (
            r#"{"type":"response.created","response":{"id":"r"}}
            {"type":"response.created","response":{"id":"r"}}
            {"type":"response.created","response":{"id":"s"}}
            {"type":"response.completed","response":{"id":"s"}}
            {"type":"response.completed","response":{"id":"s"}}
            {"type":"response.in_progress","response":{"id":"s"}}
            [DONE]"#,
            expect![[r#"
                run.ended (missing_end) {"error":{"code":"upstream_truncated","message":"the stream ended before the response did"},"outcome":"lost"}
                run.ended {"outcome":"completed"}
                notice.raised {"code":"after_end","detail":{"response":{"id":"s"},"type":"response.completed"},"level":"debug","text":"a line after the end of the run"}
                notice.raised {"code":"after_end","detail":{"response":{"id":"s"},"type":"response.in_progress"},"level":"debug","text":"a line after the end of the run"}
            "#]],
        ),
        (
            r#"{"type":"error","sequence_number":1,"error":{"type":"too_many_requests","code":"rate_limit","message":"slow down"}}
            {"type":"response.failed","response":{"id":"r","error":{"code":"rate_limit_exceeded","message":"slower"}}}"#,
            expect![[r#"
                run.ended {"error":{"code":"rate_limited","message":"slower","native":"rate_limit_exceeded"},"outcome":"failed"}
            "#]],
        ),
        (
            r#"{"type":"error","code":"flat","message":"flat words","param":null}"#,
            expect![[r#"
                run.ended {"error":{"code":"flat","message":"flat words"},"outcome":"failed"}
            "#]],
        ),
        (
            r#"{"error":{"message":"no such model","type":"invalid_request_error","code":null}}"#,
            expect![[r#"
                run.ended {"error":{"code":"bad_request","message":"no such model","native":"invalid_request_error"},"outcome":"failed"}
            "#]],
        ),
        (
            r#"{"type":"error","error":{"message":"only a hiccup"}}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                notice.raised {"code":"error","detail":{"error":{"message":"only a hiccup"},"type":"error"},"level":"error","text":"only a hiccup"}
                run.ended {"outcome":"completed"}
            "#]],
        ),
        (
            r#"{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"content_filter"}}}"#,
            expect![[r#"
                run.ended {"outcome":"refused","stop_reason":"content_filter"}
            "#]],
        ),
        (
            r#"{"type":"response.failed","response":{"id":"r","error":null}}"#,
            expect![[r#"
                run.ended {"error":{"code":"failed","message":"the response failed"},"outcome":"failed"}
            "#]],
        ),
        (
            r#"{"type":"response.cancelled","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended {"error":{"code":"aborted","message":"aborted"},"outcome":"aborted"}
            "#]],
        ),
        (
            r#"{"type":"response.refusal.done","output_index":0,"refusal":"I will not."}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended {"answer":"I will not.","outcome":"refused"}
            "#]],
        ),
        (
            r#"{"type":"response.output_text.done","output_index":0,"text":"Well."}
            {"type":"response.refusal.done","output_index":1,"refusal":"I will not."}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended {"answer":"I will not.","outcome":"completed"}
            "#]],
        ),
        (
            r#"{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"not streamed"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2}}"#,
            expect![[r#"
                run.ended {"answer":"not streamed","outcome":"completed","usage":{"basis":"delta","detail":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2},"model":"m","scope":"run","tokens":{"cache_read":4,"cache_write":0,"input":5,"output":2}}}
            "#]],
        ),
    ] {
        expect.assert_eq(&ends(lines));
    }
}

#[test]
fn a_response_that_names_a_previous_one_continues_it() {
    let config = ReaderConfig {
        expected_session: Some("before".to_owned()),
        ..ReaderConfig::default()
    };
    let answer = |id: &str| {
        let line = format!(
            r#"{{"type":"response.completed","response":{{"id":"r","previous_response_id":{id}}}}}"#
        );
        read_all(&config, &(line.clone() + "\n" + &line), &End::default())
    };
    expect![[r#"
        session.bound {"how":"resume","native":"before"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"completed"}
        notice.raised {"code":"after_end","detail":{"response":{"id":"r","previous_response_id":"before"},"type":"response.completed"},"level":"debug","text":"a line after the end of the run"}
    "#]]
    .assert_eq(&answer("\"before\""));
    expect![[r#"
        session.bound {"how":"resume","native":"before"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"completed"}
        notice.raised {"code":"after_end","detail":{"response":{"id":"r","previous_response_id":null},"type":"response.completed"},"level":"debug","text":"a line after the end of the run"}
    "#]]
    .assert_eq(&answer("null"));
    expect![[r#"
        session.bound {"how":"resume","native":"before"}
        run.started {"cause":"prompt"}
        notice.raised {"code":"other_chain","level":"debug","text":"`before` was to be followed, the response names `other`"}
        run.ended {"outcome":"completed"}
        notice.raised {"code":"after_end","detail":{"response":{"id":"r","previous_response_id":"other"},"type":"response.completed"},"level":"debug","text":"a line after the end of the run"}
    "#]].assert_eq(&answer("\"other\""));
    expect![[r#"
        session.bound (missing_end) {"how":"resume","native":"before"}
        run.started (missing_end) {"cause":"prompt"}
        run.ended (missing_end) {"error":{"code":"upstream_truncated","message":"the stream ended before the response did"},"outcome":"lost"}
    "#]].assert_eq(&read_all(&config, "", &End::default()));
}

#[test]
fn one_id_is_one_kind_of_thing() {
    check(
        r#"
        {"type":"response.output_text.delta","output_index":0,"item_id":"x","delta":"words"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"lessage","id":"x"}}
        {"type":"response.output_text.delta","output_index":0,"item_id":"x","delta":" more"}
        {"type":"response.completed","response":{"id":"r"}}
        "#,
        expect![[r#"
            run.started {"cause":"prompt"}
            item.opened {"group":"response","id":"x","kind":"message","role":"assistant","text":""}
            item.delta {"channel":"text","item":"x","text":"words"}
            item.closed (left_open) {"item":{"group":"response","id":"x","kind":"message","role":"assistant","text":"words"},"status":"lost"}
            item.opened (never_opened) {"data":{"id":"x","type":"lessage"},"id":"x~2","kind":"other","name":"lessage"}
            item.closed {"item":{"data":{"id":"x","type":"lessage"},"id":"x~2","kind":"other","name":"lessage"},"status":"ok"}
            notice.raised {"code":"never_opened","detail":" more","level":"warning","text":"a piece of `x`, which was never opened"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn an_aborted_stream_is_no_failure() {
    let end = End {
        exit: None,
        aborted: true,
    };
    let lines =
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"hm"}"#;
    expect![[r#"
        run.started {"cause":"prompt"}
        item.opened {"group":"response","id":"m","kind":"message","role":"assistant","text":""}
        item.delta {"channel":"text","item":"m","text":"hm"}
        item.closed (abort) {"item":{"group":"response","id":"m","kind":"message","role":"assistant","text":"hm"},"status":"cancelled"}
        run.ended (abort) {"error":{"code":"aborted","message":"aborted"},"outcome":"aborted"}
    "#]].assert_eq(&read_all(&ReaderConfig::default(), lines, &end));
}

#[test]
fn its_frames_are_known() {
    for line in [
        r#"{"type":"response.created","response":{}}"#,
        r#"{"delta":"x","type":"response.output_text.delta"}"#,
        r#"{"type":"error","sequence_number":2,"error":{"message":"no"}}"#,
        r#"{"object":"response","id":"r"}"#,
    ] {
        assert!(recognises(line), "{line}");
    }
    for line in [
        "[DONE]",
        r#"{"type":"error","message":"from codex"}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"system","subtype":"init"}"#,
        r#"{"jsonrpc":"2.0","method":"session/update"}"#,
        "not JSON",
    ] {
        assert!(!recognises(line), "{line}");
    }
}
