use expect_test::{Expect, expect};
use model::End;

use super::*;
use crate::convert::Converter;
use crate::framing::Framing;
use crate::readers::ReaderConfig;
use crate::readers::linkspan::Linkspan;

/// Each line of `script` is `[path/of/calls] type data`, with ` extra={…}` behind it if need be.
fn converted(profile: Option<&str>, script: &str) -> (String, Losses) {
    let config = WriterConfig {
        profile: profile.map(str::to_owned),
        ..WriterConfig::default()
    };
    let reader = Linkspan::new(&ReaderConfig::default());
    let writer = AgUi::new(&config);
    let mut converter = Converter::new(Framing::Lines, Box::new(reader), Box::new(writer));
    let mut out = Vec::new();
    for (n, line) in script.trim().lines().map(str::trim).enumerate() {
        let (path, line) = match line.strip_prefix('[').and_then(|it| it.split_once("] ")) {
            Some((path, line)) => (path.split('/').collect(), line),
            None => (Vec::new(), line),
        };
        let (name, data) = line.split_once(' ').unwrap();
        let (data, extra) = data.split_once(" extra=").unwrap_or((data, "{}"));
        let path = serde_json::to_string(&path).unwrap();
        let line = format!(
            r#"{{"v":1,"seq":{},"session":"s1","run":"r1","engine":"claude","path":{path},"origin":"agent","frame":1,"extra":{extra},"type":"{name}","data":{data}}}"#,
            n + 1
        );
        converter.push(line.as_bytes(), &mut out);
        converter.push(b"\n", &mut out);
    }
    converter.end(&End::default(), &mut out);
    let out = String::from_utf8(out).unwrap();
    (out, converter.losses().clone())
}

/// Compares without `data: ` and blank lines.
#[track_caller]
fn check_as(profile: Option<&str>, script: &str, expect: Expect) {
    let out = converted(profile, script).0;
    let frames = out.replace("\n\n", "\n");
    let frames: Vec<_> = frames
        .lines()
        .map(|it| it.strip_prefix("data: ").unwrap())
        .collect();
    expect.assert_eq(&(frames.join("\n") + "\n"));
}

#[track_caller]
fn check(script: &str, expect: Expect) {
    check_as(None, script, expect);
}

#[test]
fn a_frame_is_one_data_line_and_a_blank_one() {
    let script = r#"
        run.started {"cause":"prompt"}
        run.ended {"outcome":"aborted"}
    "#;
    expect![[r#"
        data: {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}

        data: {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"cancelled"}}

    "#]]
    .assert_eq(&converted(None, script).0);
}

const TEXT: &str = r#"
    session.bound {"native":"n1","how":"init","model":"m","cwd":"/w","mcp_servers":[{"name":"x"}]}
    run.started {"cause":"prompt"}
    item.opened {"kind":"message","id":"u","role":"user","text":""}
    item.closed {"status":"ok","item":{"kind":"message","id":"u","role":"user","text":"hi\n"}}
    item.opened {"kind":"reasoning","id":"t","text":""}
    item.delta {"item":"t","channel":"text","text":"hm"}
    item.closed {"status":"ok","item":{"kind":"reasoning","id":"t","text":"hm","signature":"sig"}}
    item.opened {"kind":"reasoning","id":"h","text":""}
    item.closed {"status":"ok","item":{"kind":"reasoning","id":"h","text":"","encrypted":"xyz"}}
    item.opened {"kind":"message","id":"a","role":"assistant","text":""}
    item.delta {"item":"a","channel":"text","text":"he"}
    item.delta {"item":"a","channel":"text","text":"llo"}
    item.closed {"status":"ok","item":{"kind":"message","id":"a","role":"assistant","text":"hello"}}
    item.opened {"kind":"message","id":"e","role":"assistant","text":""}
    item.closed {"status":"ok","item":{"kind":"message","id":"e","role":"assistant","text":""}}
    run.ended {"outcome":"completed","answer":"hello","models":[{"model":"m","tokens":{"input":1,"cache_read":2,"cache_write":3,"output":4,"reasoning":1}}],"session_cost_usd":0.5,"duration_ms":7}
"#;

#[test]
fn texts_are_written_once_and_empty_ones_never() {
    check(
        TEXT,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"n1","runId":"n1:r1","protocolVersion":"1.0"}
            {"type":"CUSTOM","name":"linkspan.session","value":{"engine":"claude","sessionId":"n1","model":"m","cwd":"/w","mcpServers":[{"name":"x"}]}}
            {"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"hi\n"}
            {"type":"TEXT_MESSAGE_END","messageId":"u"}
            {"type":"REASONING_START","messageId":"t"}
            {"type":"REASONING_MESSAGE_START","messageId":"t","role":"reasoning"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"t","delta":"hm"}
            {"type":"REASONING_MESSAGE_END","messageId":"t"}
            {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"t","encryptedValue":"sig","metadata":{"linkspan":{"kind":"signature"}}}
            {"type":"REASONING_END","messageId":"t"}
            {"type":"REASONING_START","messageId":"h"}
            {"type":"REASONING_MESSAGE_START","messageId":"h","role":"reasoning"}
            {"type":"REASONING_MESSAGE_END","messageId":"h"}
            {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"h","encryptedValue":"xyz"}
            {"type":"REASONING_END","messageId":"h"}
            {"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"he"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"llo"}
            {"type":"TEXT_MESSAGE_END","messageId":"a"}
            {"type":"RUN_FINISHED","threadId":"n1","runId":"n1:r1","result":{"sessionCostUsd":0.5,"durationMs":7},"outcome":{"type":"success"},"usage":[{"provider":"anthropic","model":"m","inputTokens":6,"outputTokens":4,"totalTokens":10,"reasoningTokens":1,"cachedInputTokens":2,"cacheWriteInputTokens":3}]}
        "#]],
    );
}

#[test]
fn the_thinking_profile_has_the_names_of_0_0_45() {
    check_as(
        Some("thinking"),
        TEXT,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"n1","runId":"n1:r1","protocolVersion":"1.0"}
            {"type":"CUSTOM","name":"linkspan.session","value":{"engine":"claude","sessionId":"n1","model":"m","cwd":"/w","mcpServers":[{"name":"x"}]}}
            {"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"hi\n"}
            {"type":"TEXT_MESSAGE_END","messageId":"u"}
            {"type":"THINKING_START"}
            {"type":"THINKING_TEXT_MESSAGE_START"}
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"hm"}
            {"type":"THINKING_TEXT_MESSAGE_END"}
            {"type":"THINKING_END"}
            {"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"he"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"llo"}
            {"type":"TEXT_MESSAGE_END","messageId":"a"}
            {"type":"RUN_FINISHED","threadId":"n1","runId":"n1:r1","result":{"sessionCostUsd":0.5,"durationMs":7},"outcome":{"type":"success"},"usage":[{"provider":"anthropic","model":"m","inputTokens":6,"outputTokens":4,"totalTokens":10,"reasoningTokens":1,"cachedInputTokens":2,"cacheWriteInputTokens":3}]}
        "#]],
    );
}

#[test]
fn two_thoughts_at_once_take_turns_in_the_thinking_profile() {
    check_as(
        Some("thinking"),
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"reasoning","id":"a","text":""}
        [A] item.opened {"kind":"reasoning","id":"b","text":""}
        item.delta {"item":"a","channel":"text","text":"1"}
        [A] item.closed {"status":"ok","item":{"kind":"reasoning","id":"b","text":"2"}}
        item.delta {"item":"a","channel":"text","text":"3"}
        item.closed {"status":"ok","item":{"kind":"reasoning","id":"a","text":"13"}}
        run.ended {"outcome":"aborted"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"THINKING_START"}
            {"type":"THINKING_TEXT_MESSAGE_START"}
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"1"}
            {"type":"THINKING_TEXT_MESSAGE_END"}
            {"type":"THINKING_END"}
            {"type":"THINKING_START"}
            {"type":"THINKING_TEXT_MESSAGE_START"}
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"2"}
            {"type":"THINKING_TEXT_MESSAGE_END"}
            {"type":"THINKING_END"}
            {"type":"THINKING_START"}
            {"type":"THINKING_TEXT_MESSAGE_START"}
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"3"}
            {"type":"THINKING_TEXT_MESSAGE_END"}
            {"type":"THINKING_END"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"cancelled"}}
        "#]],
    );
}

#[test]
fn calls_of_one_response_share_a_message() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"message","id":"m","role":"assistant","group":"g","text":""}
        item.closed {"status":"ok","item":{"kind":"message","id":"m","role":"assistant","group":"g","text":"look"}}
        item.opened {"kind":"tool","id":"a","group":"g","name":"Bash","input":{"command":"ls \"x\""},"class":{"kind":"shell","title":"ls"}}
        item.opened {"kind":"tool","id":"b","group":"h","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        item.opened {"kind":"tool","id":"c","group":"h","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"a","group":"g","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"},"result":{"content":"one\ntwo"}}}
        item.closed {"status":"error","item":{"kind":"tool","id":"b","group":"h","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"},"result":{"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}],"is_error":true}}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"c","group":"h","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"},"result":{"content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","data":"AA==","media_type":"image/png"}},{"type":"odd"}]}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"look"}
            {"type":"TEXT_MESSAGE_END","messageId":"m"}
            {"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"Bash","parentMessageId":"m"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"{\"command\":\"ls \\\"x\\\"\"}"}
            {"type":"TOOL_CALL_END","toolCallId":"a"}
            {"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"Bash"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"b"}
            {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"Bash","parentMessageId":"b"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"c"}
            {"type":"TOOL_CALL_RESULT","messageId":"a:result","toolCallId":"a","content":"one\ntwo"}
            {"type":"TOOL_CALL_RESULT","messageId":"b:result","toolCallId":"b","content":"x\ny","metadata":{"linkspan":{"status":"error"}}}
            {"type":"TOOL_CALL_RESULT","messageId":"c:result","toolCallId":"c","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}},{"type":"text","text":"{\"type\":\"odd\"}","metadata":{"linkspan":{"block":true}}}]}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success"}}
        "#]],
    );
}

#[test]
fn streamed_arguments_are_not_repeated() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"b","name":"Bash","class":{"kind":"shell","title":"Bash"}}
        item.delta {"item":"b","channel":"input","text":"{\"command\":"}
        item.delta {"item":"b","channel":"input","text":"\"ls\"}"}
        item.updated {"kind":"tool","id":"b","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls"}}
        item.opened {"kind":"tool","id":"c","name":"Now","class":{"kind":"other","title":"Now"}}
        item.updated {"kind":"tool","id":"c","name":"Now","input":{},"class":{"kind":"other","title":"Now"}}
        item.opened {"kind":"tool","id":"d","name":"Cut","class":{"kind":"other","title":"Cut"}}
        item.delta {"item":"d","channel":"input","text":"{\"a"}
        run.ended {"outcome":"lost"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"Bash"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"{\"command\":"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"\"ls\"}"}
            {"type":"TOOL_CALL_END","toolCallId":"b"}
            {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"Now"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"c"}
            {"type":"TOOL_CALL_START","toolCallId":"d","toolCallName":"Cut"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"d","delta":"{\"a"}
            {"type":"TOOL_CALL_END","toolCallId":"d"}
            {"type":"RUN_ERROR","message":"the run failed","code":"lost","metadata":{"linkspan":{"outcome":"lost"}}}
        "#]],
    );
}

#[test]
fn sub_agents_are_introduced_and_end() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"A","name":"Agent","input":{},"class":{"kind":"task","title":"look"}}
        item.opened {"kind":"subagent","id":"S","call":"A","name":"general-purpose","description":"look"}
        [A] item.opened {"kind":"tool","id":"t","group":"g","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        [A/B] item.opened {"kind":"message","id":"m","role":"assistant","text":""}
        [A/B] item.delta {"item":"m","channel":"text","text":"deep"}
        [A/B] item.closed {"status":"ok","item":{"kind":"message","id":"m","role":"assistant","text":"deep"}}
        [A] item.closed {"status":"ok","item":{"kind":"tool","id":"t","group":"g","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"},"result":{"content":"a"}}}
        item.closed {"status":"ok","item":{"kind":"subagent","id":"S","call":"A","name":"general-purpose","report":"seen"}}
        [A] notice.raised {"level":"info","code":"late","text":"still here"}
        item.opened {"kind":"subagent","id":"S2","call":"C","name":"x"}
        item.closed {"status":"error","item":{"kind":"subagent","id":"S2","call":"C","name":"x"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"A","name":"Agent","input":{},"class":{"kind":"task","title":"look"},"result":{"content":"seen"}}}
        run.ended {"outcome":"completed","answer":"all seen"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"TOOL_CALL_START","toolCallId":"A","toolCallName":"Agent"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"A","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"A"}
            {"type":"SUBAGENT_STARTED","subagentRunId":"A","name":"general-purpose","description":"look","parentToolCallId":"A"}
            {"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"Bash","subagentRunId":"A"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"{}","subagentRunId":"A"}
            {"type":"TOOL_CALL_END","toolCallId":"t","subagentRunId":"A"}
            {"type":"SUBAGENT_STARTED","subagentRunId":"B","name":"sub-agent","parentSubagentRunId":"A","parentToolCallId":"B"}
            {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","subagentRunId":"B"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"deep","subagentRunId":"B"}
            {"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"B"}
            {"type":"TOOL_CALL_RESULT","messageId":"t:result","toolCallId":"t","content":"a","subagentRunId":"A"}
            {"type":"SUBAGENT_FINISHED","subagentRunId":"A","result":"seen"}
            {"type":"CUSTOM","name":"linkspan.notice","value":{"level":"info","code":"late","text":"still here"},"subagentRunId":"A"}
            {"type":"SUBAGENT_STARTED","subagentRunId":"C","name":"x","parentToolCallId":"C"}
            {"type":"SUBAGENT_ERROR","subagentRunId":"C","message":"error","code":"error"}
            {"type":"TOOL_CALL_RESULT","messageId":"A:result","toolCallId":"A","content":"seen"}
            {"type":"SUBAGENT_FINISHED","subagentRunId":"B"}
            {"type":"TEXT_MESSAGE_START","messageId":"s1:r1:answer","role":"assistant"}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"s1:r1:answer","delta":"all seen"}
            {"type":"TEXT_MESSAGE_END","messageId":"s1:r1:answer"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success"}}
        "#]],
    );
}

#[test]
fn plans_asks_compactions_and_unknown_items_are_sent() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"plan","id":"p","entries":[{"text":"Fix","status":"in_progress","doing":"Fixing"}]}
        item.updated {"kind":"plan","id":"p","entries":[{"text":"Fix","status":"completed"}]}
        ask.opened {"id":"q","kind":"permission","item":"b","tool":"Bash","title":"ls","input":{"command":"ls"}}
        ask.settled {"id":"q","decision":"denied","message":"no"}
        item.opened {"kind":"compaction","id":"c","trigger":"auto"}
        item.closed {"status":"ok","item":{"kind":"compaction","id":"c","trigger":"auto","summary":"short","tokens_before":9,"tokens_after":1}}
        item.opened {"kind":"other","id":"o","name":"x","data":1}
        item.closed {"status":"ok","item":{"kind":"other","id":"o","name":"x","text":"odd","data":1}}
        frame.unmapped {"what":"type `x`","raw":{"type":"x"}}
        notice.raised {"level":"warning","code":"bad_line","text":"bad","detail":"{"}
        run.ended {"outcome":"aborted"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"PLAN","content":{"entries":[{"content":"Fix","status":"in_progress","doing":"Fixing"}]}}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"PLAN","content":{"entries":[{"content":"Fix","status":"completed"}]}}
            {"type":"CUSTOM","name":"linkspan.ask","value":{"id":"q","kind":"permission","toolCallId":"b","toolCallName":"Bash","title":"ls","input":{"command":"ls"}}}
            {"type":"CUSTOM","name":"linkspan.ask_settled","value":{"id":"q","decision":"denied","message":"no"}}
            {"type":"CUSTOM","name":"linkspan.compaction","value":{"id":"c","status":"in_progress","trigger":"auto"}}
            {"type":"CUSTOM","name":"linkspan.compaction","value":{"id":"c","status":"ok","trigger":"auto","summary":"short","tokensBefore":9,"tokensAfter":1}}
            {"type":"CUSTOM","name":"linkspan.item","value":{"id":"o","name":"x","status":"ok","text":"odd","data":1}}
            {"type":"RAW","event":{"type":"x"},"source":"claude"}
            {"type":"CUSTOM","name":"linkspan.notice","value":{"level":"warning","code":"bad_line","text":"bad","detail":"{"}}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"cancelled"}}
        "#]],
    );
}

#[test]
fn provider_specific_items_are_activities() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"w","name":"web_search","class":{"kind":"web_search","title":"Search"},"server_side":true} extra={"item":{"type":"web_search_call","status":"in_progress"}}
        item.delta {"item":"w","channel":"input","text":"{}"}
        item.updated {"kind":"tool","id":"w","name":"web_search","input":{},"class":{"kind":"web_search","title":"Search"},"server_side":true} extra={"item":{"type":"web_search_call","status":"searching"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"w","name":"web_search","input":{},"class":{"kind":"web_search","title":"Search"},"server_side":true}}
        item.opened {"kind":"other","id":"o","name":"map","data":{"zoom":1}}
        item.closed {"status":"error","item":{"kind":"other","id":"o","name":"map","data":{"zoom":2}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"w","activityType":"web_search_call","content":{"type":"web_search_call","status":"in_progress"}}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"w","activityType":"web_search_call","content":{"type":"web_search_call","status":"searching"}}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"o","activityType":"map","content":{"zoom":1}}
            {"type":"ACTIVITY_SNAPSHOT","messageId":"o","activityType":"map","content":{"zoom":2},"metadata":{"linkspan":{"status":"error"}}}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success"}}
        "#]],
    );
}

#[test]
fn messages_carry_their_role_and_attachments() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"message","id":"a","role":"assistant","text":""} extra={"phase":"commentary","refusal":true}
        item.delta {"item":"a","channel":"text","text":"no"}
        item.closed {"status":"ok","item":{"kind":"message","id":"a","role":"assistant","text":"no","parts":[{"other":{"type":"url_citation","url":"u"}},{"other":{"type":"file","id":1}}]}}
        item.opened {"kind":"message","id":"b","role":"user","text":""}
        item.closed {"status":"ok","item":{"kind":"message","id":"b","role":"user","text":"","parts":[{"image_url":{"url":"https://example.com/a.png"}}]}}
        run.ended {"outcome":"refused","answer":"no"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant","metadata":{"phase":"commentary","refusal":true}}
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"no"}
            {"type":"TEXT_MESSAGE_END","messageId":"a","metadata":{"annotations":[{"type":"url_citation","url":"u"}],"linkspan":{"parts":[{"other":{"type":"file","id":1}}]}}}
            {"type":"TEXT_MESSAGE_START","messageId":"b","role":"user"}
            {"type":"TEXT_MESSAGE_END","messageId":"b","metadata":{"linkspan":{"parts":[{"image_url":{"url":"https://example.com/a.png"}}]}}}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success"},"metadata":{"linkspan":{"outcome":"refused"}}}
        "#]],
    );
}

#[test]
fn thoughts_of_one_response_are_one_reasoning() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"reasoning","id":"a","group":"g","text":""}
        item.delta {"item":"a","channel":"text","text":"one"}
        item.closed {"status":"ok","item":{"kind":"reasoning","id":"a","group":"g","text":"one"}}
        item.opened {"kind":"reasoning","id":"b","group":"g","text":""}
        item.delta {"item":"b","channel":"text","text":"two"}
        item.closed {"status":"ok","item":{"kind":"reasoning","id":"b","group":"g","text":"two","encrypted":"x"}}
        notice.raised {"level":"debug","code":"x","text":"x"}
        item.opened {"kind":"reasoning","id":"c","group":"h","text":""}
        item.closed {"status":"ok","item":{"kind":"reasoning","id":"c","group":"h","text":"three"}}
        [A] item.opened {"kind":"reasoning","id":"d","group":"h","text":""}
        [A] item.closed {"status":"ok","item":{"kind":"reasoning","id":"d","group":"h","text":"four"}}
        run.ended {"outcome":"limit","stop_reason":"max_output_tokens"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"REASONING_START","messageId":"a"}
            {"type":"REASONING_MESSAGE_START","messageId":"a","role":"reasoning"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"a","delta":"one"}
            {"type":"REASONING_MESSAGE_END","messageId":"a"}
            {"type":"REASONING_MESSAGE_START","messageId":"b","role":"reasoning"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"b","delta":"two"}
            {"type":"REASONING_MESSAGE_END","messageId":"b"}
            {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"b","encryptedValue":"x"}
            {"type":"REASONING_END","messageId":"a"}
            {"type":"REASONING_START","messageId":"c"}
            {"type":"REASONING_MESSAGE_START","messageId":"c","role":"reasoning"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"c","delta":"three"}
            {"type":"REASONING_MESSAGE_END","messageId":"c"}
            {"type":"SUBAGENT_STARTED","subagentRunId":"A","name":"sub-agent","parentToolCallId":"A"}
            {"type":"REASONING_END","messageId":"c"}
            {"type":"REASONING_START","messageId":"d","subagentRunId":"A"}
            {"type":"REASONING_MESSAGE_START","messageId":"d","role":"reasoning","subagentRunId":"A"}
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"d","delta":"four","subagentRunId":"A"}
            {"type":"REASONING_MESSAGE_END","messageId":"d","subagentRunId":"A"}
            {"type":"REASONING_END","messageId":"d","subagentRunId":"A"}
            {"type":"SUBAGENT_FINISHED","subagentRunId":"A"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","result":{"status":"incomplete","reason":"max_output_tokens"},"outcome":{"type":"success"},"metadata":{"linkspan":{"outcome":"limit"}}}
        "#]],
    );
}

#[test]
fn calls_without_a_result_wait_for_the_application() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"a","name":"get","input":{},"class":{"kind":"other","title":"get"}}
        item.opened {"kind":"tool","id":"b","name":"get","input":{},"class":{"kind":"other","title":"get"}}
        item.closed {"status":"lost","item":{"kind":"tool","id":"b","name":"get","input":{},"class":{"kind":"other","title":"get"}}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"a","name":"get","input":{},"class":{"kind":"other","title":"get"}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"get"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"a"}
            {"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"get"}
            {"type":"TOOL_CALL_ARGS","toolCallId":"b","delta":"{}"}
            {"type":"TOOL_CALL_END","toolCallId":"b"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success","pendingToolCallIds":["a"]}}
        "#]],
    );
}

#[test]
fn failures_are_run_errors() {
    check(
        r#"
        run.started {"cause":"prompt"}
        run.ended {"outcome":"failed","error":{"code":"api_error","message":"no"},"usage":{"scope":"run","basis":"delta","tokens":{"input":1}}}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"limit"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"refused"}
        run.started {"cause":"prompt"}
        "#,
        expect![[r#"
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"RUN_ERROR","message":"no","code":"api_error","usage":[{"provider":"anthropic","inputTokens":1,"cachedInputTokens":0}],"metadata":{"linkspan":{"outcome":"failed","code":"server_error"}}}
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","result":{"status":"incomplete"},"outcome":{"type":"success"},"metadata":{"linkspan":{"outcome":"limit"}}}
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"RUN_FINISHED","threadId":"s1","runId":"s1:r1","outcome":{"type":"success"},"metadata":{"linkspan":{"outcome":"refused"}}}
            {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0"}
            {"type":"RUN_ERROR","message":"the recording stops before the run ended","code":"missing_end","metadata":{"linkspan":{"outcome":"lost"}}}
        "#]],
    );
}

#[test]
fn unsupported_events_are_counted_as_losses() {
    let script = r#"
        session.bound {"native":"n0","how":"init"}
        session.bound {"native":"n1","how":"init"}
        notice.raised {"level":"warning","code":"x","text":"x"}
        run.started {"cause":"prompt"}
        notice.raised {"level":"debug","code":"x","text":"x"}
        item.opened {"kind":"message","id":"m","role":"user","text":""}
        item.closed {"status":"ok","item":{"kind":"message","id":"m","role":"user","text":"x","parts":[{"image_url":{"url":"https://x/"}}]}}
        item.opened {"kind":"tool","id":"b","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        item.delta {"item":"b","channel":"output","text":"a"}
        run.ended {"outcome":"lost"}
        session.bound {"native":"n2","how":"init"}
    "#;
    let losses: Vec<_> = converted(None, script)
        .1
        .iter()
        .map(|(what, n)| format!("{n} {what}"))
        .collect();
    expect!["1 call without a result, 1 debug notice, 1 notice between runs, 1 output without a result, 2 session without a run"].assert_eq(&losses.join(", "));
}

#[test]
fn a_writer_that_is_cut_off_still_ends() {
    let mut ag_ui = AgUi::new(&WriterConfig::default());
    let mut out = Vec::new();
    let event = |ty: &str, path: &str, data: &str| {
        format!(
            r#"{{"v":1,"seq":1,"at":"2026-01-01T00:00:00Z","session":"s1","run":"r1","engine":"claude","path":{path},"origin":"agent","type":"{ty}","data":{data}}}"#
        )
    };
    for line in [
        event("run.started", "[]", r#"{"cause":"prompt"}"#),
        event(
            "item.opened",
            "[]",
            r#"{"kind":"tool","id":"b","name":"Bash","class":{"kind":"shell","title":"ls"}}"#,
        ),
        event(
            "item.opened",
            r#"["A"]"#,
            r#"{"kind":"message","id":"m","role":"assistant","text":""}"#,
        ),
        event(
            "item.delta",
            r#"["A"]"#,
            r#"{"item":"m","channel":"text","text":"x"}"#,
        ),
    ] {
        ag_ui.event(&Event::from_json(&line).unwrap(), &mut out);
    }
    ag_ui.end(&mut out);
    expect![[r#"
        data: {"type":"RUN_STARTED","threadId":"s1","runId":"s1:r1","protocolVersion":"1.0","timestamp":1767225600000}

        data: {"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"Bash","timestamp":1767225600000}

        data: {"type":"SUBAGENT_STARTED","subagentRunId":"A","name":"sub-agent","parentToolCallId":"A","timestamp":1767225600000}

        data: {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","subagentRunId":"A","timestamp":1767225600000}

        data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","subagentRunId":"A","timestamp":1767225600000}

        data: {"type":"TEXT_MESSAGE_END","messageId":"m"}

        data: {"type":"TOOL_CALL_END","toolCallId":"b"}

        data: {"type":"SUBAGENT_FINISHED","subagentRunId":"A"}

        data: {"type":"RUN_ERROR","message":"the events stop before the run ended","code":"missing_end","metadata":{"linkspan":{"outcome":"lost"}}}

    "#]].assert_eq(&String::from_utf8(out).unwrap());
}
