use expect_test::{Expect, expect};
use model::End;

use super::*;
use crate::readers::ReaderConfig;
use crate::readers::machine;
use crate::readers::test_support::read_lines;

fn read_all(config: &ReaderConfig, lines: &str) -> String {
    let lines: Vec<&str> = lines.trim().lines().map(str::trim).collect();
    read_lines(machine::<AgUi>(config), &lines, &End::default())
}

#[track_caller]
fn check(lines: &str, expect: Expect) {
    expect.assert_eq(&read_all(&ReaderConfig::default(), lines));
}

#[test]
fn chunks_end_with_any_other_event_of_their_agent() {
    check(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"s","delta":"sub","subagentRunId":"x"}
        {"type":"RAW","event":{"a":1}}
        {"type":"TEXT_MESSAGE_CHUNK","delta":"b"}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"n","role":"user","delta":"next"}
        {"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"Bash","delta":"{\"command\":"}
        {"type":"TOOL_CALL_CHUNK","delta":"\"ls\"}"}
        {"type":"REASONING_MESSAGE_CHUNK","messageId":"q","delta":"hm"}
        {"type":"CUSTOM","name":"x","value":1}
        {"type":"TOOL_CALL_CHUNK","delta":"of nothing"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
        expect![[r#"
            session t init
            run.started prompt
            + message m "" group=m role=assistant
            . m text a
            [x] + message s "" group=s role=assistant
            [x] . s text sub
            unmapped "raw event of another protocol"
            . m text b
            - ok message m ab group=m role=assistant
            + message n "" role=user
            . n text next
            - ok message n next role=user
            + tool c class={shell Bash} group=c name=Bash
            . c input "{\"command\":"
            . c input "\"ls\"}"
            ~ tool c class={shell ls command=ls} group=c input={"command":"ls"} name=Bash
            + reasoning q ""
            . q text hm
            - ok reasoning q hm
            unmapped "custom event `x`"
            unmapped "chunk without an id"
            [x] - ok message s sub group=s role=assistant
            - lost tool c class={shell ls command=ls} group=c input={"command":"ls"} name=Bash (left_open)
            run.ended completed answer=ab
        "#]],
    );
}

#[test]
fn thoughts_learn_their_hidden_form_at_the_end() {
    check(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"REASONING_START","messageId":"span"}
        {"type":"REASONING_MESSAGE_START","messageId":"a","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"one"}
        {"type":"REASONING_MESSAGE_END","messageId":"a"}
        {"type":"REASONING_MESSAGE_START","messageId":"b","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"two"}
        {"type":"REASONING_MESSAGE_END","messageId":"b"}
        {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"a","encryptedValue":"x"}
        {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"b","encryptedValue":"y","metadata":{"linkspan":{"kind":"signature"}}}
        {"type":"REASONING_END","messageId":"span"}
        {"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c","encryptedValue":"z"}
        {"type":"THINKING_START","title":"Plan"}
        {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"old"}
        {"type":"THINKING_END"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
        expect![[r#"
            session t init
            run.started prompt
            + reasoning a "" group=span
            . a text one
            + reasoning b "" group=span
            . b text two
            - ok reasoning a one encrypted=x group=span
            - ok reasoning b two group=span signature=y
            unmapped "hidden value of something else"
            notice debug unread "fields nobody reads" extra={"title":"Plan"}
            + reasoning thinking.1 ""
            . thinking.1 text old
            - ok reasoning thinking.1 old
            run.ended completed
        "#]],
    );
}

#[test]
fn messages_and_calls_may_share_an_id() {
    check(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"x","role":"developer"}
        {"type":"TOOL_CALL_START","toolCallId":"x","toolCallName":"get","parentMessageId":"x"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"x","delta":"words"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"x","delta":"{}"}
        {"type":"ACTIVITY_SNAPSHOT","messageId":"x","activityType":"map","content":{"zoom":1}}
        {"type":"TEXT_MESSAGE_END","messageId":"x","metadata":{"annotations":[{"type":"url_citation"}]}}
        {"type":"TOOL_CALL_END","toolCallId":"x"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"x","delta":"late"}
        {"type":"TOOL_CALL_RESULT","messageId":"y","toolCallId":"x","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"data","value":"aGk=","mimeType":"image/gif"}},{"type":"image","source":{"type":"url","value":"https://example.com/a.png"}},{"type":"document","source":{"type":"url","value":"u"}}]}
        {"type":"TOOL_CALL_RESULT","messageId":"z","toolCallId":"nobody","content":"orphan"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}
        "#,
        expect![[r#"
            session t init
            run.started prompt
            + message x "" role=harness
            + tool call:x class={other get} group=x name=get
            . x text words
            . call:x input "{}"
            + other activity:x data={"zoom":1} name=map
            - ok message x words parts=[{other={type=url_citation}}] role=harness
            ~ tool call:x class={other get} group=x input={} name=get
            notice debug late "arguments behind the last"
            - ok tool call:x class={other get} group=x input={} name=get result={content=[{"text":"a","type":"text"},{"source":{"data":"aGk=","media_type":"image/gif","type":"base64"},"type":"image"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"},{"source":{"type":"url","value":"u"},"type":"document"}]}
            + tool nobody class={other unknown} group=nobody name=unknown (never_opened)
            - ok tool nobody class={other unknown} group=nobody name=unknown result={content="orphan"}
            - ok other activity:x data={"zoom":1} name=map
            run.ended completed
        "#]],
    );
}

#[test]
fn a_snapshot_shows_what_was_not_shown() {
    check(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[{"id":"0","role":"user","content":"old"},{"id":"1","role":"assistant","content":"older"},{"id":"2","role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"url","value":"https://example.com/a.png"}}]}]}}
        {"type":"TEXT_MESSAGE_START","messageId":"3"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"3","delta":"seen"}
        {"type":"TEXT_MESSAGE_END","messageId":"3"}
        {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"2","role":"user","content":"look"},{"id":"3","role":"assistant","content":"seen","toolCalls":[{"id":"c","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]},{"id":"4","role":"tool","toolCallId":"c","content":"no","error":"failed"},{"id":"5","role":"reasoning","content":"hm","encryptedValue":"x"},{"id":"6","role":"activity","activityType":"map","content":{}},{"id":"7","role":"assistant","content":"new"}]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
        expect![[r#"
            session t init extra={"input":{"messages":[{"content":"old","id":"0","role":"user"},{"content":"older","id":"1","role":"assistant"},{"content":[{"text":"look","type":"text"},{"source":{"type":"url","value":"https://example.com/a.png"},"type":"image"}],"id":"2","role":"user"}],"runId":"r","threadId":"t"}}
            run.started prompt
            + message 2 "" role=user
            - ok message 2 look parts=[{image_url={url=https://example.com/a.png}}] role=user
            + message 3 "" group=3 role=assistant
            . 3 text seen
            - ok message 3 seen group=3 role=assistant
            + tool c class={other get} group=3 name=get
            ~ tool c class={other get} group=3 input={"a":1} name=get
            - error tool c class={other get} group=3 input={"a":1} name=get result={content="no" is_error=true}
            + reasoning 5 ""
            - ok reasoning 5 hm encrypted=x
            + other 6 data={} name=map (never_opened)
            - ok other 6 data={} name=map
            + message 7 "" group=7 role=assistant
            - ok message 7 new group=7 role=assistant
            run.ended completed answer=new
        "#]],
    );
}

#[test]
fn sub_agents_are_paths() {
    check(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"SUBAGENT_STARTED","subagentRunId":"A","name":"look","parentToolCallId":"call"}
        {"type":"SUBAGENT_STARTED","subagentRunId":"B","name":"deep","parentSubagentRunId":"A","parentToolCallId":"call"}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"deep","subagentRunId":"B"}
        {"type":"STEP_STARTED","stepName":"one","subagentRunId":"A"}
        {"type":"STEP_FINISHED","stepName":"one","subagentRunId":"A"}
        {"type":"STEP_FINISHED","stepName":"never started"}
        {"type":"SUBAGENT_FINISHED","subagentRunId":"B","result":"seen"}
        {"type":"SUBAGENT_ERROR","subagentRunId":"A","message":"cancelled","code":"cancelled"}
        {"type":"CUSTOM","name":"x","value":1,"subagentRunId":"unknown"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
        expect![[r#"
            session t init
            run.started prompt
            + subagent A:agent call=call name=look
            [call] + subagent B:agent call=B name=deep
            [call/B] + message m "" group=m role=assistant
            [call/B] . m text deep
            [call] + other "step A/one" one data={"stepName":"one"} name=step
            [call] - ok other "step A/one" one data={"stepName":"one"} name=step
            + other "step /never started" "never started" data={"stepName":"never started"} name=step (never_opened)
            - ok other "step /never started" "never started" data={"stepName":"never started"} name=step
            [call/B] - ok message m deep group=m role=assistant
            [call] - ok subagent B:agent call=B name=deep report=seen
            - cancelled subagent A:agent call=call name=look
            [unknown] unmapped "custom event `x`"
            run.ended completed
        "#]],
    );
}

#[test]
fn runs_end_in_many_ways() {
    for (line, expect) in [
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}"#,
            expect![[r#"
                - cancelled tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended aborted error={aborted aborted}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["c"]},"usage":[{"inputTokens":9,"cachedInputTokens":4,"cacheWriteInputTokens":2,"outputTokens":1},{"model":"m","inputTokens":1}]}"#,
            expect![[r#"
                ~ tool c class={other get} group=c input="{\"a" name=get
                - ok tool c class={other get} group=c input="{\"a" name=get
                run.ended completed models=[{model=m tokens={cache_read=0 cache_write=0 input=1}}] usage={run delta tokens={cache_read=4 cache_write=2 input=4 output=1}}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call","toolCallId":"c","message":"Allow?"},{"id":"j","reason":"input_required","responseSchema":{}}]}}"#,
            expect![[r#"
                ask permission i "Allow?" item=c tool=get
                ask question j input_required input={} tool=input_required
                ask.settled i lost (left_open)
                ask.settled j lost (left_open)
                - lost tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended completed stop_reason=interrupt
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"status":"incomplete","reason":"max_output_tokens"}}"#,
            expect![[r#"
                - lost tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended limit stop_reason=max_output_tokens
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":"forty-two","outcome":null}"#,
            expect![[r#"
                - lost tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended completed answer=forty-two
            "#]],
        ),
        (
            r#"{"type":"RUN_ERROR","message":"boom"}
            {"type":"RUN_ERROR","message":"again"}"#,
            expect![[r#"
                - lost tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended failed error={failed boom}
                unmapped "end of a run that has ended"
            "#]],
        ),
        (
            r#"{"type":"RUN_ERROR","message":"gone","code":"abort"}"#,
            expect![[r#"
                - cancelled tool c class={other get} group=c input="{\"a" name=get (left_open)
                run.ended aborted error={abort gone}
            "#]],
        ),
        (
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r2"}"#,
            expect![[r#"
                - lost tool c class={other get} group=c input="{\"a" name=get (missing_end)
                run.ended lost error={missing_end "the next run began before this one had a result"} (missing_end)
                run.started prompt
                run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
            "#]],
        ),
    ] {
        let lines = format!(
            r#"{{"type":"RUN_STARTED","threadId":"t","runId":"r"}}
            {{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"get"}}
            {{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{{\"a"}}
            {line}"#
        );
        let told = read_all(&ReaderConfig::default(), &lines);
        let told: Vec<_> = told.lines().skip(4).collect();
        expect.assert_eq(&(told.join("\n") + "\n"));
    }
}

#[test]
fn the_thread_that_was_asked_for_has_to_answer() {
    let config = ReaderConfig {
        expected_session: Some("wanted".to_owned()),
        ..ReaderConfig::default()
    };
    let run = |thread: &str| {
        format!(
            r#"{{"type":"RUN_STARTED","threadId":"{thread}","runId":"r"}}
            {{"type":"RUN_FINISHED","threadId":"{thread}","runId":"r"}}"#
        )
    };
    expect![[r#"
        session wanted resume
        run.started prompt
        run.ended completed
    "#]]
    .assert_eq(&read_all(&config, &run("wanted")));
    expect![[r#"
        run.started prompt (wrong_session)
        session other mismatch
        run.ended failed error={wrong_session "session `wanted` was asked for, the agent answered as `other`"} (wrong_session)
        notice warning ignored "1 lines after the end were ignored"
    "#]].assert_eq(&read_all(&config, &run("other")));
    expect![[r#"
        session wanted resume (missing_end)
        run.started prompt (missing_end)
        run.ended lost error={missing_end "the stream ended without a result"} (missing_end)
    "#]]
    .assert_eq(&read_all(&config, ""));
}

#[test]
fn its_frames_are_known() {
    for line in [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"delta":"x","messageId":"m","type":"TEXT_MESSAGE_CONTENT"}"#,
        r#"{"type":"THINKING_START"}"#,
        r#"{"type":"CUSTOM","name":"x","value":1}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":{}}"#,
    ] {
        assert!(recognises(line), "{line}");
    }
    for line in [
        r#"{"type":"response.created","response":{}}"#,
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"system","subtype":"init"}"#,
        r#"{"type":"CUSTOM"}"#,
        r#"{"jsonrpc":"2.0","method":"session/update"}"#,
        "not JSON",
    ] {
        assert!(!recognises(line), "{line}");
    }
}
