use expect_test::{Expect, expect};
use model::{End, Event, Frame};
use serde_json::Value;

use super::*;
use crate::readers::machine;

/// Reads lines and prints the events, each with its type and data.
fn read_all(config: &ReaderConfig, lines: &str) -> String {
    let mut reader = machine::<AgUi>(config);
    let mut out = String::new();
    let mut sink = |event: &Event<'_>| {
        let json: Value = serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap();
        let kind = json["type"].as_str().unwrap();
        let mut data = json["data"].clone();
        if kind == "run.ended" {
            data.as_object_mut().unwrap().remove("detail");
        }
        let path = json["path"].as_array().map_or(String::new(), |path| {
            let path: Vec<_> = path.iter().filter_map(Value::as_str).collect();
            format!("[{}] ", path.join("/"))
        });
        let why = json["why"]
            .as_str()
            .map_or(String::new(), |it| format!(" ({it})"));
        out += &format!("{path}{kind}{why} {data}\n");
    };
    for line in lines.trim().lines().map(str::trim) {
        reader.frame(Frame::Data(line.as_bytes()), &mut sink);
    }
    reader.end(&End::default(), &mut sink);
    out
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
            session.bound {"how":"init","native":"t"}
            run.started {"cause":"prompt"}
            item.opened {"group":"m","id":"m","kind":"message","role":"assistant","text":""}
            item.delta {"channel":"text","item":"m","text":"a"}
            [x] item.opened {"group":"s","id":"s","kind":"message","role":"assistant","text":""}
            [x] item.delta {"channel":"text","item":"s","text":"sub"}
            frame.unmapped {"raw":{"a":1},"what":"raw event of another protocol"}
            item.delta {"channel":"text","item":"m","text":"b"}
            item.closed {"item":{"group":"m","id":"m","kind":"message","role":"assistant","text":"ab"},"status":"ok"}
            item.opened {"id":"n","kind":"message","role":"user","text":""}
            item.delta {"channel":"text","item":"n","text":"next"}
            item.closed {"item":{"id":"n","kind":"message","role":"user","text":"next"},"status":"ok"}
            item.opened {"class":{"kind":"shell","title":"Bash"},"group":"c","id":"c","kind":"tool","name":"Bash"}
            item.delta {"channel":"input","item":"c","text":"{\"command\":"}
            item.delta {"channel":"input","item":"c","text":"\"ls\"}"}
            item.updated {"class":{"command":"ls","kind":"shell","title":"ls"},"group":"c","id":"c","input":{"command":"ls"},"kind":"tool","name":"Bash"}
            item.opened {"id":"q","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"q","text":"hm"}
            item.closed {"item":{"id":"q","kind":"reasoning","text":"hm"},"status":"ok"}
            frame.unmapped {"raw":{"name":"x","type":"CUSTOM","value":1},"what":"custom event `x`"}
            frame.unmapped {"raw":{"delta":"of nothing","type":"TOOL_CALL_CHUNK"},"what":"chunk without an id"}
            [x] item.closed {"item":{"group":"s","id":"s","kind":"message","role":"assistant","text":"sub"},"status":"ok"}
            item.closed (left_open) {"item":{"class":{"command":"ls","kind":"shell","title":"ls"},"group":"c","id":"c","input":{"command":"ls"},"kind":"tool","name":"Bash"},"status":"lost"}
            run.ended {"answer":"ab","outcome":"completed"}
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
            session.bound {"how":"init","native":"t"}
            run.started {"cause":"prompt"}
            item.opened {"group":"span","id":"a","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"a","text":"one"}
            item.opened {"group":"span","id":"b","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"b","text":"two"}
            item.closed {"item":{"encrypted":"x","group":"span","id":"a","kind":"reasoning","text":"one"},"status":"ok"}
            item.closed {"item":{"group":"span","id":"b","kind":"reasoning","signature":"y","text":"two"},"status":"ok"}
            frame.unmapped {"raw":{"encryptedValue":"z","entityId":"c","subtype":"tool-call","type":"REASONING_ENCRYPTED_VALUE"},"what":"hidden value of something else"}
            notice.raised {"code":"unread","level":"debug","text":"fields nobody reads"}
            item.opened {"id":"thinking.1","kind":"reasoning","text":""}
            item.delta {"channel":"text","item":"thinking.1","text":"old"}
            item.closed {"item":{"id":"thinking.1","kind":"reasoning","text":"old"},"status":"ok"}
            run.ended {"outcome":"completed"}
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
            session.bound {"how":"init","native":"t"}
            run.started {"cause":"prompt"}
            item.opened {"id":"x","kind":"message","role":"harness","text":""}
            item.opened {"class":{"kind":"other","title":"get"},"group":"x","id":"call:x","kind":"tool","name":"get"}
            item.delta {"channel":"text","item":"x","text":"words"}
            item.delta {"channel":"input","item":"call:x","text":"{}"}
            item.opened {"data":{"zoom":1},"id":"activity:x","kind":"other","name":"map"}
            item.closed {"item":{"id":"x","kind":"message","parts":[{"other":{"type":"url_citation"}}],"role":"harness","text":"words"},"status":"ok"}
            item.updated {"class":{"kind":"other","title":"get"},"group":"x","id":"call:x","input":{},"kind":"tool","name":"get"}
            notice.raised {"code":"late","level":"debug","text":"arguments behind the last"}
            item.closed {"item":{"class":{"kind":"other","title":"get"},"group":"x","id":"call:x","input":{},"kind":"tool","name":"get","result":{"content":[{"text":"a","type":"text"},{"source":{"data":"aGk=","media_type":"image/gif","type":"base64"},"type":"image"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"},{"source":{"type":"url","value":"u"},"type":"document"}]}},"status":"ok"}
            item.opened (never_opened) {"class":{"kind":"other","title":"unknown"},"group":"nobody","id":"nobody","kind":"tool","name":"unknown"}
            item.closed {"item":{"class":{"kind":"other","title":"unknown"},"group":"nobody","id":"nobody","kind":"tool","name":"unknown","result":{"content":"orphan"}},"status":"ok"}
            item.closed {"item":{"data":{"zoom":1},"id":"activity:x","kind":"other","name":"map"},"status":"ok"}
            run.ended {"outcome":"completed"}
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
            session.bound {"how":"init","native":"t"}
            run.started {"cause":"prompt"}
            item.opened {"id":"2","kind":"message","role":"user","text":""}
            item.closed {"item":{"id":"2","kind":"message","parts":[{"image_url":{"url":"https://example.com/a.png"}}],"role":"user","text":"look"},"status":"ok"}
            item.opened {"group":"3","id":"3","kind":"message","role":"assistant","text":""}
            item.delta {"channel":"text","item":"3","text":"seen"}
            item.closed {"item":{"group":"3","id":"3","kind":"message","role":"assistant","text":"seen"},"status":"ok"}
            item.opened {"class":{"kind":"other","title":"get"},"group":"3","id":"c","kind":"tool","name":"get"}
            item.updated {"class":{"kind":"other","title":"get"},"group":"3","id":"c","input":{"a":1},"kind":"tool","name":"get"}
            item.closed {"item":{"class":{"kind":"other","title":"get"},"group":"3","id":"c","input":{"a":1},"kind":"tool","name":"get","result":{"content":"no","is_error":true}},"status":"error"}
            item.opened {"id":"5","kind":"reasoning","text":""}
            item.closed {"item":{"encrypted":"x","id":"5","kind":"reasoning","text":"hm"},"status":"ok"}
            item.opened (never_opened) {"data":{},"id":"6","kind":"other","name":"map"}
            item.closed {"item":{"data":{},"id":"6","kind":"other","name":"map"},"status":"ok"}
            item.opened {"group":"7","id":"7","kind":"message","role":"assistant","text":""}
            item.closed {"item":{"group":"7","id":"7","kind":"message","role":"assistant","text":"new"},"status":"ok"}
            run.ended {"answer":"new","outcome":"completed"}
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
            session.bound {"how":"init","native":"t"}
            run.started {"cause":"prompt"}
            item.opened {"call":"call","id":"A:agent","kind":"subagent","name":"look"}
            [call] item.opened {"call":"B","id":"B:agent","kind":"subagent","name":"deep"}
            [call/B] item.opened {"group":"m","id":"m","kind":"message","role":"assistant","text":""}
            [call/B] item.delta {"channel":"text","item":"m","text":"deep"}
            [call] item.opened {"data":{"stepName":"one"},"id":"step A/one","kind":"other","name":"step","text":"one"}
            [call] item.closed {"item":{"data":{"stepName":"one"},"id":"step A/one","kind":"other","name":"step","text":"one"},"status":"ok"}
            item.opened (never_opened) {"data":{"stepName":"never started"},"id":"step /never started","kind":"other","name":"step","text":"never started"}
            item.closed {"item":{"data":{"stepName":"never started"},"id":"step /never started","kind":"other","name":"step","text":"never started"},"status":"ok"}
            [call/B] item.closed {"item":{"group":"m","id":"m","kind":"message","role":"assistant","text":"deep"},"status":"ok"}
            [call] item.closed {"item":{"call":"B","id":"B:agent","kind":"subagent","name":"deep","report":"seen"},"status":"ok"}
            item.closed {"item":{"call":"call","id":"A:agent","kind":"subagent","name":"look"},"status":"cancelled"}
            [unknown] frame.unmapped {"raw":{"name":"x","subagentRunId":"unknown","type":"CUSTOM","value":1},"what":"custom event `x`"}
            run.ended {"outcome":"completed"}
        "#]],
    );
}

#[test]
fn runs_end_in_many_ways() {
    for (line, expect) in [
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}"#,
            expect![[r#"
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"cancelled"}
                run.ended {"error":{"code":"aborted","message":"aborted"},"outcome":"aborted"}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success","pendingToolCallIds":["c"]},"usage":[{"inputTokens":9,"cachedInputTokens":4,"cacheWriteInputTokens":2,"outputTokens":1},{"model":"m","inputTokens":1}]}"#,
            expect![[r#"
                item.updated {"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"}
                item.closed {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"ok"}
                run.ended {"models":[{"model":"m","tokens":{"cache_read":0,"cache_write":0,"input":1}}],"outcome":"completed","usage":{"basis":"delta","scope":"run","tokens":{"cache_read":4,"cache_write":2,"input":4,"output":1}}}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call","toolCallId":"c","message":"Allow?"},{"id":"j","reason":"input_required","responseSchema":{}}]}}"#,
            expect![[r#"
                ask.opened {"id":"i","item":"c","kind":"permission","title":"Allow?","tool":"get"}
                ask.opened {"id":"j","input":{},"kind":"question","title":"input_required","tool":"input_required"}
                ask.settled (left_open) {"decision":"lost","id":"i"}
                ask.settled (left_open) {"decision":"lost","id":"j"}
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"lost"}
                run.ended {"outcome":"completed","stop_reason":"interrupt"}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"status":"incomplete","reason":"max_output_tokens"}}"#,
            expect![[r#"
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"lost"}
                run.ended {"outcome":"limit","stop_reason":"max_output_tokens"}
            "#]],
        ),
        (
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":"forty-two","outcome":null}"#,
            expect![[r#"
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"lost"}
                run.ended {"answer":"forty-two","outcome":"completed"}
            "#]],
        ),
        (
            r#"{"type":"RUN_ERROR","message":"boom"}
            {"type":"RUN_ERROR","message":"again"}"#,
            expect![[r#"
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"lost"}
                run.ended {"error":{"code":"failed","message":"boom"},"outcome":"failed"}
                frame.unmapped {"raw":{"message":"again","type":"RUN_ERROR"},"what":"end of a run that has ended"}
            "#]],
        ),
        (
            r#"{"type":"RUN_ERROR","message":"gone","code":"abort"}"#,
            expect![[r#"
                item.closed (left_open) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"cancelled"}
                run.ended {"error":{"code":"abort","message":"gone"},"outcome":"aborted"}
            "#]],
        ),
        (
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r2"}"#,
            expect![[r#"
                item.closed (missing_end) {"item":{"class":{"kind":"other","title":"get"},"group":"c","id":"c","input":"{\"a","kind":"tool","name":"get"},"status":"lost"}
                run.ended (missing_end) {"error":{"code":"missing_end","message":"the next run began before this one had a result"},"outcome":"lost"}
                run.started {"cause":"prompt"}
                run.ended (missing_end) {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
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
        session.bound {"how":"resume","native":"wanted"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"completed"}
    "#]]
    .assert_eq(&read_all(&config, &run("wanted")));
    expect![[r#"
        run.started (wrong_session) {"cause":"prompt"}
        session.bound {"how":"mismatch","native":"other"}
        run.ended (wrong_session) {"error":{"code":"wrong_session","message":"session `wanted` was asked for, the agent answered as `other`"},"outcome":"failed"}
        notice.raised {"code":"ignored","level":"warning","text":"1 lines after the end were ignored"}
    "#]].assert_eq(&read_all(&config, &run("other")));
    expect![[r#"
        session.bound (missing_end) {"how":"resume","native":"wanted"}
        run.started (missing_end) {"cause":"prompt"}
        run.ended (missing_end) {"error":{"code":"missing_end","message":"the stream ended without a result"},"outcome":"lost"}
    "#]].assert_eq(&read_all(&config, ""));
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
