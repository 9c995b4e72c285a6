use expect_test::{Expect, expect};
use model::{End, Writer};

use super::*;
use crate::convert::Converter;
use crate::framing::Framing;
use crate::readers::ReaderConfig;
use crate::readers::linkspan::Linkspan;

/// Each line of `script` is `[path/of/calls] type data`; `{"jsonrpc":"2.0",` is left out of what is compared.
fn converted(profile: Option<&str>, script: &str) -> (String, Losses) {
    let config = WriterConfig {
        profile: profile.map(str::to_owned),
        ..WriterConfig::default()
    };
    let reader = Linkspan::new(&ReaderConfig::default());
    let writer = Acp::new(&config);
    let mut converter = Converter::new(Framing::Lines, Box::new(reader), Box::new(writer));
    let mut out = Vec::new();
    for (n, line) in script.lines().map(str::trim).enumerate() {
        let (path, line) = match line.strip_prefix('[').and_then(|it| it.split_once("] ")) {
            Some((path, line)) => (path.split('/').collect(), line),
            None => (Vec::new(), line),
        };
        let (name, data) = line.split_once(' ').unwrap();
        let path = serde_json::to_string(&path).unwrap();
        let line = format!(
            r#"{{"v":1,"seq":{},"session":"s1","run":"r1","engine":"claude","path":{path},"origin":"agent","frame":1,"type":"{name}","data":{data}}}"#,
            n + 1
        );
        converter.push(line.as_bytes(), &mut out);
        converter.push(b"\n", &mut out);
    }
    converter.end(&End::default(), &mut out);
    let out = String::from_utf8(out).unwrap();
    let short = out.replace(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#,
        "{",
    );
    (
        short.replace(r#"{"jsonrpc":"2.0","#, "{"),
        converter.losses().clone(),
    )
}

#[track_caller]
fn check(script: &str, expect: Expect) {
    expect.assert_eq(&converted(None, script.trim()).0);
}

#[track_caller]
fn check_losses(script: &str, expect: Expect) {
    let losses: Vec<_> = converted(None, script.trim()).1.iter().collect();
    expect.assert_eq(&format!("{losses:?}"));
}

const TEXT: &str = r#"
    session.bound {"native":"n1","how":"init","model":"m","cwd":"/w","permission_mode":"default","commands":["help"]}
    run.started {"cause":"prompt"}
    item.opened {"kind":"message","id":"u","role":"user","text":""}
    item.closed {"status":"ok","item":{"kind":"message","id":"u","role":"user","text":"hi\n"}}
    item.opened {"kind":"reasoning","id":"t","text":""}
    item.delta {"item":"t","channel":"text","text":"hm"}
    item.closed {"status":"ok","item":{"kind":"reasoning","id":"t","text":"hm"}}
    item.opened {"kind":"message","id":"a","role":"assistant","text":""}
    item.delta {"item":"a","channel":"text","text":"he"}
    item.delta {"item":"a","channel":"text","text":"llo"}
    item.closed {"status":"ok","item":{"kind":"message","id":"a","role":"assistant","text":"hello"}}
    run.ended {"outcome":"completed","answer":"hello"}
"#;

#[test]
fn texts_are_written_once() {
    check(
        TEXT,
        expect![[r#"
        {"n1","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"help","description":"/help"}]}}}
        {"n1","update":{"sessionUpdate":"current_mode_update","currentModeId":"default"}}}
        {"n1","update":{"sessionUpdate":"user_message_chunk","messageId":"u","content":{"type":"text","text":"hi\n"}}}}
        {"n1","update":{"sessionUpdate":"agent_thought_chunk","messageId":"t","content":{"type":"text","text":"hm"}}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"he"}}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"llo"}}}}
        {"id":1,"result":{"stopReason":"end_turn"}}
    "#]],
    );
}

#[test]
fn the_seed_profile_sends_thoughts_and_omits_the_user() {
    expect![[r#"
        {"n1","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"help","description":"/help"}]}}}
        {"n1","update":{"sessionUpdate":"current_mode_update","currentModeId":"default"}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"t","content":{"type":"text","text":"hm"}}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"t","content":{"type":"text","text":"\n\n"},"_meta":{"separator":true}}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"he"}}}}
        {"n1","update":{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"llo"}}}}
        {"id":1,"result":{"stopReason":"end_turn"}}
    "#]].assert_eq(&converted(Some("seed"), TEXT.trim()).0);
}

const EDIT: &str = r#"
    session.bound {"native":"n1","how":"init","cwd":"/w"}
    run.started {"cause":"prompt"}
    item.opened {"kind":"tool","id":"e","name":"Edit","input":{"file_path":"a.py"},"class":{"kind":"edit","title":"Edit a.py","paths":[{"path":"a.py","line":3}],"diffs":[{"path":"a.py","old":"x","new":"y"}]}}
    item.closed {"status":"ok","item":{"kind":"tool","id":"e","name":"Edit","input":{"file_path":"a.py"},"class":{"kind":"edit","title":"Edit a.py","diffs":[{"path":"a.py","old":"x","new":"y"}]},"result":{"content":"done","structured":{"ok":true}}}}
    run.ended {"outcome":"completed"}
"#;

#[test]
fn an_edit_is_its_diff() {
    check(
        EDIT,
        expect![[r#"
            {"n1","update":{"sessionUpdate":"tool_call","toolCallId":"e","title":"Edit a.py","name":"Edit","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/a.py","oldText":"x","newText":"y"}],"locations":[{"path":"/w/a.py","line":3}],"rawInput":{"file_path":"a.py"}}}}
            {"n1","update":{"sessionUpdate":"tool_call_update","toolCallId":"e","status":"completed","rawOutput":{"ok":true},"_meta":{"result":"done"}}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn the_seed_profile_leaves_calls_pending() {
    expect![[r#"
        {"n1","update":{"sessionUpdate":"tool_call","toolCallId":"e","title":"Edit a.py","name":"Edit","kind":"edit","status":"pending","content":[{"type":"diff","path":"/w/a.py","oldText":"x","newText":"y"}],"locations":[{"path":"/w/a.py","line":3}],"rawInput":{"file_path":"a.py"}}}}
        {"n1","update":{"sessionUpdate":"tool_call_update","toolCallId":"e","status":"completed","rawOutput":{"ok":true},"_meta":{"result":"done"}}}}
        {"id":1,"result":{"stopReason":"end_turn"}}
    "#]].assert_eq(&converted(Some("seed"), EDIT.trim()).0);
}

#[test]
fn streamed_input_is_sent_when_it_is_whole() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"b","name":"Bash","class":{"kind":"shell","title":"Terminal"}}
        item.delta {"item":"b","channel":"input","text":"{\"command\":"}
        item.delta {"item":"b","channel":"input","text":"\"ls\"}"}
        item.updated {"kind":"tool","id":"b","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls","command":"ls"}}
        item.closed {"status":"error","item":{"kind":"tool","id":"b","name":"Bash","input":{"command":"ls"},"class":{"kind":"shell","title":"ls"},"result":{"content":"Exit code 1","is_error":true}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"b","title":"Terminal","name":"Bash","kind":"execute","status":"pending"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","title":"ls","kind":"execute","status":"in_progress","rawInput":{"command":"ls"}}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"failed","content":[{"type":"content","content":{"type":"text","text":"Exit code 1"}}],"rawOutput":"Exit code 1"}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn results_keep_their_pictures_and_pages() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"r","name":"Read","input":{},"class":{"kind":"read","title":"Read a.png"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"r","name":"Read","input":{},"class":{"kind":"read","title":"Read a.png"},"result":{"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"AA==","media_type":"image/png"}},{"type":"web_search_result","title":"T","url":"https://t/"},{"type":"odd"}]}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"r","title":"Read a.png","name":"Read","kind":"read","status":"in_progress","rawInput":{}}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"r","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a"}},{"type":"content","content":{"type":"image","data":"AA==","mimeType":"image/png"}},{"type":"content","content":{"type":"resource_link","name":"T","uri":"https://t/"}},{"type":"content","content":{"type":"text","text":"{\"type\":\"odd\"}"}}],"rawOutput":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","data":"AA==","media_type":"image/png"}},{"type":"web_search_result","title":"T","url":"https://t/"},{"type":"odd"}]}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn a_denied_call_waits_for_its_answer_and_fails() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"b","name":"Bash","input":{"command":"rm a"},"class":{"kind":"shell","title":"rm a"}}
        ask.opened {"id":"q","kind":"permission","item":"b","tool":"Bash","title":"rm a","input":{"command":"rm a"},"suggestions":[{"type":"addRules"}]}
        ask.settled {"id":"q","decision":"denied"}
        item.closed {"status":"denied","item":{"kind":"tool","id":"b","name":"Bash","input":{"command":"rm a"},"class":{"kind":"shell","title":"rm a"},"result":{"content":"no","is_error":true}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"b","title":"rm a","name":"Bash","kind":"execute","status":"in_progress","rawInput":{"command":"rm a"}}}}
            {"id":"ask-q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"b","title":"rm a","kind":"execute","status":"pending","rawInput":{"command":"rm a"}},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"allow_always","name":"Always allow","kind":"allow_always"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
            {"id":"ask-q","result":{"outcome":{"outcome":"selected","optionId":"reject"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no"}}],"rawOutput":"no","_meta":{"status":"denied"}}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn an_allowed_call_continues() {
    check(
        r#"
        run.started {"cause":"prompt"}
        ask.opened {"id":"q","kind":"permission","item":"b","tool":"Bash","title":"ls"}
        item.opened {"kind":"tool","id":"b","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        ask.settled {"id":"q","decision":"allowed_always"}
        item.closed {"status":"ok","item":{"kind":"tool","id":"b","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"},"result":{"content":""}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"id":"ask-q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"b","title":"ls","status":"pending"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"b","title":"ls","name":"Bash","kind":"execute","status":"pending","rawInput":{}}}}
            {"id":"ask-q","result":{"outcome":{"outcome":"selected","optionId":"allow"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"in_progress"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed","rawOutput":""}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn an_input_changed_with_the_permission_is_sent() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"b","name":"Bash","input":{"command":"a"},"class":{"kind":"shell","title":"a"}}
        ask.opened {"id":"q","kind":"permission","item":"b","tool":"Bash","title":"a","input":{"command":"a"}}
        ask.settled {"id":"q","decision":"allowed","input":{"command":"b"}}
        ask.opened {"id":"q","kind":"permission","item":"b","tool":"Bash","title":"a","input":{"command":"b"}}
        ask.settled {"id":"q","decision":"allowed","input":{"command":"b"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"b","name":"Bash","input":{"command":"b"},"class":{"kind":"shell","title":"a"},"result":{"content":[{"type":"tool_reference","tool_name":"Read"}]}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"b","title":"a","name":"Bash","kind":"execute","status":"in_progress","rawInput":{"command":"a"}}}}
            {"id":"ask-q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"b","title":"a","kind":"execute","status":"pending","rawInput":{"command":"a"}},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
            {"id":"ask-q","result":{"outcome":{"outcome":"selected","optionId":"allow"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"in_progress","rawInput":{"command":"b"}}}}
            {"id":"ask-q~2","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"b","title":"a: b","kind":"execute","status":"pending","rawInput":{"command":"b"}},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
            {"id":"ask-q~2","result":{"outcome":{"outcome":"selected","optionId":"allow"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"in_progress"}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed","content":[{"type":"content","content":{"type":"text","text":"Read"}}],"rawOutput":[{"type":"tool_reference","tool_name":"Read"}]}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn a_file_that_was_not_new_gets_its_old_text() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"w","name":"Write","input":{},"class":{"kind":"write","title":"Write a","diffs":[{"path":"/w/a","new":"y"}]}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"w","name":"Write","input":{},"class":{"kind":"write","title":"Write a","diffs":[{"path":"/w/a","old":"x","new":"y"}]},"result":{"content":"done"}}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"w","title":"Write a","name":"Write","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/a","newText":"y"}],"rawInput":{}}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"w","status":"completed","content":[{"type":"diff","path":"/w/a","oldText":"x","newText":"y"}],"rawOutput":"done"}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn a_sub_agents_updates_name_the_call() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"tool","id":"A","name":"Agent","input":{},"class":{"kind":"task","title":"look"}}
        item.opened {"kind":"subagent","id":"S","call":"A","name":"general-purpose"}
        [A] item.opened {"kind":"message","id":"u","role":"user","text":""}
        [A] item.closed {"status":"ok","item":{"kind":"message","id":"u","role":"user","text":"look"}}
        [A] item.opened {"kind":"message","id":"m","role":"assistant","text":""}
        [A] item.closed {"status":"ok","item":{"kind":"message","id":"m","role":"assistant","text":"seen"}}
        item.closed {"status":"ok","item":{"kind":"subagent","id":"S","call":"A","name":"general-purpose","report":"seen"}}
        item.closed {"status":"ok","item":{"kind":"tool","id":"A","name":"Agent","input":{},"class":{"kind":"task","title":"look"},"result":{"content":"seen"}}}
        run.ended {"outcome":"completed","answer":"all seen"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"tool_call","toolCallId":"A","title":"look","name":"Agent","kind":"think","status":"in_progress","rawInput":{}}}}
            {"s1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"seen"},"_meta":{"parentToolUseId":"A"}}}}
            {"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"A","status":"completed","content":[{"type":"content","content":{"type":"text","text":"seen"}}],"rawOutput":"seen"}}}
            {"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"all seen"}}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn plans_show_what_is_being_done_and_are_not_repeated() {
    check(
        r#"
        run.started {"cause":"prompt"}
        item.opened {"kind":"plan","id":"p","entries":[{"text":"Fix add","status":"in_progress","doing":"Fixing add"},{"text":"Test","status":"pending"}]}
        item.updated {"kind":"plan","id":"p","entries":[{"text":"Fix add","status":"completed"},{"text":"Test","status":"pending"}]}
        item.closed {"status":"ok","item":{"kind":"plan","id":"p","entries":[{"text":"Fix add","status":"completed"},{"text":"Test","status":"pending"}]}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"plan","entries":[{"content":"Fixing add","priority":"medium","status":"in_progress"},{"content":"Test","priority":"medium","status":"pending"}]}}}
            {"s1","update":{"sessionUpdate":"plan","entries":[{"content":"Fix add","priority":"medium","status":"completed"},{"content":"Test","priority":"medium","status":"pending"}]}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn usage_is_sent_once_the_window_is_known() {
    check(
        r#"
        run.started {"cause":"prompt"}
        usage.reported {"scope":"call","basis":"delta","tokens":{"input":10,"cache_read":5,"output":2},"model":"m"}
        run.ended {"outcome":"completed","models":[{"model":"m","tokens":{},"context_window":200000}],"session_cost_usd":0.5}
        run.started {"cause":"prompt"}
        usage.reported {"scope":"call","basis":"delta","tokens":{"input":20},"model":"m"}
        run.ended {"outcome":"limit","error":{"code":"error_max_turns","message":"too many turns"}}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"usage_update","used":17,"size":200000,"cost":{"amount":0.5,"currency":"USD"}}}}
            {"id":1,"result":{"stopReason":"end_turn","usage":{"totalTokens":0,"inputTokens":0,"outputTokens":0,"cachedReadTokens":0,"cachedWriteTokens":0}}}
            {"s1","update":{"sessionUpdate":"usage_update","used":20,"size":200000,"cost":{"amount":0.5,"currency":"USD"}}}}
            {"id":2,"result":{"stopReason":"max_turn_requests","_meta":{"code":"error_max_turns","message":"too many turns"}}}
        "#]],
    );
}

#[test]
fn every_outcome_has_a_response() {
    check(
        r#"
        run.started {"cause":"prompt"}
        run.ended {"outcome":"completed","stop_reason":"max_tokens"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"refused"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"aborted"}
        run.started {"cause":"prompt"}
        run.ended {"outcome":"failed","error":{"code":"auth","message":"who are you?"}}
        run.started {"cause":"prompt"}
        "#,
        expect![[r#"
            {"id":1,"result":{"stopReason":"max_tokens"}}
            {"id":2,"result":{"stopReason":"refusal"}}
            {"id":3,"result":{"stopReason":"cancelled"}}
            {"id":4,"error":{"code":-32000,"message":"who are you?","data":{"code":"auth"}}}
            {"id":5,"error":{"code":-32603,"message":"the recording stops before the run ended","data":{"code":"missing_end","outcome":"lost"}}}
        "#]],
    );
}

#[test]
fn warnings_and_compactions_are_sent() {
    check(
        r#"
        run.started {"cause":"prompt"}
        notice.raised {"level":"warning","code":"api_retry","text":"again"}
        notice.raised {"level":"error","code":"odd","text":""}
        item.opened {"kind":"compaction","id":"c"}
        item.closed {"status":"ok","item":{"kind":"compaction","id":"c","summary":"short"}}
        run.ended {"outcome":"completed"}
        "#,
        expect![[r#"
            {"s1","update":{"sessionUpdate":"notice","severity":"warning","title":"again"}}}
            {"s1","update":{"sessionUpdate":"notice","severity":"error","title":"error odd"}}}
            {"s1","update":{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}}}
            {"s1","update":{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"text","text":"short"}]}}}
            {"id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn unsupported_events_are_counted_as_losses() {
    check_losses(
        r#"
        run.started {"cause":"prompt"}
        notice.raised {"level":"debug","code":"x","text":"x"}
        notice.raised {"level":"info","code":"x","text":"x"}
        frame.unmapped {"what":"type `x`","raw":{}}
        item.opened {"kind":"message","id":"h","role":"harness","text":""}
        item.closed {"status":"ok","item":{"kind":"message","id":"h","role":"harness","text":"go on"}}
        item.opened {"kind":"other","id":"o","name":"x","data":1}
        item.opened {"kind":"tool","id":"b","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}
        item.delta {"item":"b","channel":"output","text":"a"}
        run.ended {"outcome":"lost"}
        "#,
        expect![[
            r#"[("debug notice", 1), ("harness message", 1), ("info notice", 1), ("other item", 1), ("output without a result", 1), ("unmapped frame", 1)]"#
        ]],
    );
}

#[test]
fn a_writer_that_is_cut_off_still_answers() {
    let mut acp = Acp::new(&WriterConfig::default());
    let mut out = Vec::new();
    let lines = [
        r#"{"v":1,"seq":1,"session":"s1","run":"r1","engine":"claude","origin":"agent","type":"run.started","data":{"cause":"prompt"}}"#,
        r#"{"v":1,"seq":2,"session":"s1","run":"r1","engine":"claude","origin":"agent","type":"item.opened","data":{"kind":"tool","id":"b","name":"Bash","input":{},"class":{"kind":"shell","title":"ls"}}}"#,
        r#"{"v":1,"seq":3,"session":"s1","run":"r1","engine":"claude","origin":"agent","type":"ask.opened","data":{"id":"q","kind":"permission","item":"b","tool":"Bash","title":"ls"}}"#,
    ];
    for line in lines {
        acp.event(&Event::from_json(line).unwrap(), &mut out);
    }
    acp.end(&mut out);
    expect![[r#"
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"b","title":"ls","name":"Bash","kind":"execute","status":"in_progress","rawInput":{}}}}
        {"jsonrpc":"2.0","id":"ask-q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"b","title":"ls","kind":"execute","status":"pending"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
        {"jsonrpc":"2.0","id":"ask-q","result":{"outcome":{"outcome":"cancelled"}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"failed","_meta":{"status":"lost"}}}}
        {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the events stop before the run ended","data":{"code":"missing_end","outcome":"lost"}}}
    "#]].assert_eq(&String::from_utf8(out).unwrap());
}
