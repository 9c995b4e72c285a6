use expect_test::{Expect, expect};

use super::*;
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::read_lines;

fn read_all(config: &ReaderConfig, lines: &str, end: &End) -> String {
    let lines: Vec<&str> = lines.trim().lines().map(str::trim).collect();
    read_lines(machine::<OpenResponses>(config), &lines, end)
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
            run.started prompt
            + reasoning r/c0 "" group=response
            . r/c0 text a
            . r/c0 text b
            - ok reasoning r/c0 ab group=response
            + reasoning r/c1 "" group=response
            . r/c1 text "second part"
            - ok reasoning r/c1 "second part" group=response
            + reasoning r/s0 "" group=response
            . r/s0 text s
            - ok reasoning r/s0 s group=response
            + reasoning r/s1 "" group=response
            . r/s1 text "not streamed"
            - ok reasoning r/s1 "not streamed" group=response
            + reasoning r/s2 "" group=response
            - ok reasoning r/s2 last encrypted=hidden group=response
            + reasoning e "" group=response
            - ok reasoning e "" encrypted="only hidden" group=response
            notice debug no_reasoning "reasoning that nobody may read"
            + reasoning w/c0 "" group=response
            - ok reasoning w/c0 whole group=response
            run.ended completed
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
            session a init model=m
            run.started prompt
            + message 1 "" group=a role=assistant
            . 1 text "one "
            + message 3 "" group=a role=assistant
            . 3 text other
            . 1 text text
            . 1 text ", and the rest"
            - ok message 1 "one text, and the rest" group=a role=assistant
            - ok message 3 other group=a role=assistant
            run.ended completed answer=other
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
            session r init
            run.started prompt
            + tool partly class={shell Bash} group=r name=Bash
            . partly input "{\"command\":"
            . partly input "\"ls\"}"
            ~ tool partly class={shell ls command=ls} group=r input={"command":"ls"} name=Bash
            + tool differs class={other x} group=r name=x
            . differs input "[1]"
            notice warning input_differs "the streamed arguments are not the final ones"
            ~ tool differs class={other x} group=r input=[2] name=x
            + tool none class={other x} group=r name=x
            ~ tool none class={other x} group=r input={} name=x
            + tool cut class={other x} group=r name=x
            ~ tool cut class={other x} group=r input="{\"a" name=x
            + tool f4 class={other unknown} group=r input={"nobody":1} name=unknown (never_opened)
            - ok tool partly class={shell ls command=ls} group=r input={"command":"ls"} name=Bash
            - ok tool differs class={other x} group=r input=[2] name=x
            - ok tool none class={other x} group=r input={} name=x
            - lost tool f4 class={other unknown} group=r input={"nobody":1} name=unknown (left_open)
            - lost tool cut class={other x} group=r input="{\"a" name=x (left_open)
            run.ended completed
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
            session r init
            run.started prompt
            + tool c class={other x} group=r name=x
            ~ tool c class={other x} group=r input={} name=x
            - ok tool c class={other x} group=r input={} name=x result={content=[{"text":"yes","type":"text"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"}]}
            + tool nobody class={other unknown} group=r name=unknown (never_opened)
            - ok tool nobody class={other unknown} group=r name=unknown result={content="no"}
            run.ended completed
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
            session r init
            run.started prompt
            + tool w class={web_search "Open https://example.com" query=https://example.com} group=r input={"type":"open_page","url":"https://example.com"} name=web_search server_side=true extra={"item":{"action":{"type":"open_page","url":"https://example.com"},"id":"w","status":"completed","type":"web_search_call"}}
            - ok tool w class={web_search "Open https://example.com" query=https://example.com} group=r input={"type":"open_page","url":"https://example.com"} name=web_search server_side=true
            + tool f class={search "Search files for a, b" query="a, b"} group=r input={"queries":["a","b"]} name=file_search server_side=true extra={"item":{"id":"f","queries":["a","b"],"results":[{"file":"x"}],"status":"completed","type":"file_search_call"}}
            - ok tool f class={search "Search files for a, b" query="a, b"} group=r input={"queries":["a","b"]} name=file_search result={content="[{\"file\":\"x\"}]" structured=[{"file":"x"}]} server_side=true
            + tool m class={mcp shorten mcp={server=zip1 tool=shorten}} group=r name=mcp__zip1__shorten server_side=true extra={"item":{"arguments":"","id":"m","name":"shorten","server_label":"zip1","type":"mcp_call"}}
            . m input "{}"
            ~ tool m class={mcp shorten mcp={server=zip1 tool=shorten}} group=r input={} name=mcp__zip1__shorten server_side=true extra={"item":{"arguments":"{}","id":"m","name":"shorten","output":"done","server_label":"zip1","type":"mcp_call"}}
            - ok tool m class={mcp shorten mcp={server=zip1 tool=shorten}} group=r input={} name=mcp__zip1__shorten result={content="done"} server_side=true
            + tool n class={mcp shorten mcp={server=zip1 tool=shorten}} group=r input={} name=mcp__zip1__shorten server_side=true extra={"item":{"arguments":"{}","error":{"message":"no"},"id":"n","name":"shorten","server_label":"zip1","type":"mcp_call"}}
            - error tool n class={mcp shorten mcp={server=zip1 tool=shorten}} group=r input={} name=mcp__zip1__shorten result={content="{\"message\":\"no\"}" is_error=true} server_side=true
            + tool sc class={shell "ls; pwd" command="ls\npwd"} group=r input={"commands":["ls","pwd"]} name=shell extra={"item":{"action":{"commands":["ls","pwd"]},"call_id":"sc","id":"s","status":"completed","type":"shell_call"}}
            - ok tool sc class={shell "ls; pwd" command="ls\npwd" exit_code=3} group=r input={"commands":["ls","pwd"]} name=shell result={content="a\nb"}
            + tool lc class={shell "echo hi" command="echo hi"} group=r input={"command":["echo","hi"]} name=local_shell extra={"item":{"action":{"command":["echo","hi"]},"call_id":"lc","id":"l","type":"local_shell_call"}}
            + tool pc class={edit "Edit a.md" change=update diffs=[{new="b\n" old="a\n" path=a.md}] paths=[{path=a.md}]} group=r input={"diff":"@@\n-a\n+b\n","path":"a.md","type":"update_file"} name=apply_patch extra={"item":{"call_id":"pc","id":"p","operation":{"diff":"@@\n-a\n+b\n","path":"a.md","type":"update_file"},"type":"apply_patch_call"}}
            + tool i class={other "Run code"} group=r input={"code":"1+1"} name=code_interpreter server_side=true extra={"item":{"code":"1+1","id":"i","outputs":[{"logs":"2"}],"type":"code_interpreter_call"}}
            - ok tool i class={other "Run code"} group=r input={"code":"1+1"} name=code_interpreter result={content="[{\"logs\":\"2\"}]" structured=[{"logs":"2"}]} server_side=true
            + tool g class={other image_generation} group=r name=image_generation server_side=true extra={"item":{"id":"g","result":"aGk=","type":"image_generation_call"}}
            - ok tool g class={other image_generation} group=r name=image_generation result={content=[{"source":{"data":"aGk=","media_type":"image/png","type":"base64"},"type":"image"}]} server_side=true
            + tool tc class={other sql} group=r name=sql
            ~ tool tc class={other sql} group=r input="SELECT 1" name=sql
            + compaction k (never_opened)
            - ok compaction k
            + other a data={"id":"a","n":1,"type":"acme:thing"} name=acme:thing
            - error other a data={"id":"a","n":2,"status":"failed","type":"acme:thing"} name=acme:thing
            - ok tool lc class={shell "echo hi" command="echo hi"} group=r input={"command":["echo","hi"]} name=local_shell
            - ok tool pc class={edit "Edit a.md" change=update diffs=[{new="b\n" old="a\n" path=a.md}] paths=[{path=a.md}]} group=r input={"diff":"@@\n-a\n+b\n","path":"a.md","type":"update_file"} name=apply_patch
            - ok tool tc class={other sql} group=r input="SELECT 1" name=sql
            run.ended completed
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
                run.ended lost error={upstream_truncated "the stream ended before the response did"} (missing_end)
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
                run.ended lost error={upstream_truncated "the stream ended before the response did"} (missing_end)
                run.ended completed
                notice debug after_end "a line after the end of the run"
                notice debug after_end "a line after the end of the run"
            "#]],
        ),
        (
            r#"{"type":"error","sequence_number":1,"error":{"type":"too_many_requests","code":"rate_limit","message":"slow down"}}
            {"type":"response.failed","response":{"id":"r","error":{"code":"rate_limit_exceeded","message":"slower"}}}"#,
            expect![[r#"
                run.ended failed error={rate_limited slower native=rate_limit_exceeded} extra={"error_event":{"error":{"code":"rate_limit","message":"slow down","type":"too_many_requests"},"sequence_number":1,"type":"error"}}
            "#]],
        ),
        (
            r#"{"type":"error","code":"flat","message":"flat words","param":null}"#,
            expect![[r#"
                run.ended failed error={flat "flat words"}
            "#]],
        ),
        (
            r#"{"error":{"message":"no such model","type":"invalid_request_error","code":null}}"#,
            expect![[r#"
                run.ended failed error={bad_request "no such model" native=invalid_request_error}
            "#]],
        ),
        (
            r#"{"type":"error","error":{"message":"only a hiccup"}}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                notice error error "only a hiccup"
                run.ended completed
            "#]],
        ),
        (
            r#"{"type":"response.incomplete","response":{"id":"r","incomplete_details":{"reason":"content_filter"}}}"#,
            expect![[r#"
                run.ended refused stop_reason=content_filter
            "#]],
        ),
        (
            r#"{"type":"response.failed","response":{"id":"r","error":null}}"#,
            expect![[r#"
                run.ended failed error={failed "the response failed"}
            "#]],
        ),
        (
            r#"{"type":"response.cancelled","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended aborted error={aborted aborted}
            "#]],
        ),
        (
            r#"{"type":"response.refusal.done","output_index":0,"refusal":"I will not."}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended refused answer="I will not."
            "#]],
        ),
        (
            r#"{"type":"response.output_text.done","output_index":0,"text":"Well."}
            {"type":"response.refusal.done","output_index":1,"refusal":"I will not."}
            {"type":"response.completed","response":{"id":"r"}}"#,
            expect![[r#"
                run.ended completed answer="I will not."
            "#]],
        ),
        (
            r#"{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"not streamed"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2}}"#,
            expect![[r#"
                run.ended completed answer="not streamed" usage={run delta model=m tokens={cache_read=4 cache_write=0 input=5 output=2}}
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
        session before resume
        run.started prompt
        run.ended completed
        notice debug after_end "a line after the end of the run"
    "#]]
    .assert_eq(&answer("\"before\""));
    expect![[r#"
        session before resume
        run.started prompt
        run.ended completed
        notice debug after_end "a line after the end of the run"
    "#]]
    .assert_eq(&answer("null"));
    expect![[r#"
        session before resume
        run.started prompt
        notice debug other_chain "`before` was to be followed, the response names `other`"
        run.ended completed
        notice debug after_end "a line after the end of the run"
    "#]]
    .assert_eq(&answer("\"other\""));
    expect![[r#"
        session before resume (missing_end)
        run.started prompt (missing_end)
        run.ended lost error={upstream_truncated "the stream ended before the response did"} (missing_end)
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
            run.started prompt
            + message x "" group=response role=assistant
            . x text words
            - lost message x words group=response role=assistant (left_open)
            + other x~2 data={"id":"x","type":"lessage"} name=lessage (never_opened)
            - ok other x~2 data={"id":"x","type":"lessage"} name=lessage
            notice warning never_opened "a piece of `x`, which was never opened"
            run.ended completed
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
        run.started prompt
        + message m "" group=response role=assistant
        . m text hm
        - cancelled message m hm group=response role=assistant (abort)
        run.ended aborted error={aborted aborted} (abort)
    "#]]
    .assert_eq(&read_all(&ReaderConfig::default(), lines, &end));
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
