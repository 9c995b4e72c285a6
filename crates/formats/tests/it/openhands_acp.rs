//! What an editor sees of an OpenHands conversation: whole lines, in the default shape and in the
//! one the OpenHands CLI has.

use expect_test::{Expect, expect};
use model::End;

use crate::fixtures::convert;

/// Converts a conversation and shows the updates, without the envelope that all of them share.
fn show(lines: &[&str], profile: Option<&str>) -> String {
    let input = lines.join("\n");
    let out = convert(
        "openhands",
        "acp",
        profile,
        input.as_bytes(),
        &End::default(),
    );
    let envelope =
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":"#;
    let lines = out.lines().map(|line| match line.strip_prefix(envelope) {
        Some(update) => update.strip_suffix("}}").unwrap(),
        None => line,
    });
    lines.map(|it| format!("{it}\n")).collect()
}

fn check(lines: &[&str], expect: Expect) {
    expect.assert_eq(&show(lines, None));
}

const SYSTEM: &str = r#"{"kind":"SystemPromptEvent","id":"e0","source":"agent","system_prompt":{"type":"text","text":"You are an agent."},"tools":[]}"#;
const USER: &str = r#"{"kind":"MessageEvent","id":"e1","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"fix it"}]}}"#;
const FINISHED: &str = r#"{"kind":"ConversationStateUpdateEvent","id":"e9","source":"environment","key":"execution_status","value":"finished"}"#;

/// An action by its tool and fields.
fn action(call: &str, tool: &str, action: &str) -> String {
    format!(
        r#"{{"kind":"ActionEvent","id":"a-{call}","source":"agent","thought":[],"action":{action},"tool_name":"{tool}","tool_call_id":"{call}","tool_call":{{"id":"{call}","name":"{tool}","arguments":"{{}}","origin":"completion"}},"llm_response_id":"r-{call}"}}"#
    )
}

fn observation(call: &str, tool: &str, observation: &str) -> String {
    format!(
        r#"{{"kind":"ObservationEvent","id":"o-{call}","source":"environment","tool_name":"{tool}","tool_call_id":"{call}","action_id":"a-{call}","observation":{observation}}}"#
    )
}

#[test]
fn reasoning_thought_call_and_result() {
    let action = r#"{"kind":"ActionEvent","id":"e2","source":"agent","thought":[{"type":"text","text":"I'll look."}],"reasoning_content":"Look first.","action":{"kind":"TerminalAction","command":"ls"},"tool_name":"terminal","tool_call_id":"c1","tool_call":{"id":"c1","name":"terminal","arguments":"{\"command\":\"ls\"}","origin":"completion"},"llm_response_id":"r1","summary":"listing files"}"#;
    let observation = observation(
        "c1",
        "terminal",
        r#"{"kind":"TerminalObservation","content":[{"type":"text","text":"a.py"}],"is_error":false,"command":"ls","exit_code":0}"#,
    );
    let lines = [SYSTEM, USER, action, &observation, FINISHED];
    check(
        &lines,
        expect![[r#"
        {"sessionUpdate":"user_message_chunk","messageId":"e1","content":{"type":"text","text":"fix it"}}
        {"sessionUpdate":"agent_thought_chunk","messageId":"e2.reasoning0","content":{"type":"text","text":"Look first."}}
        {"sessionUpdate":"agent_message_chunk","messageId":"e2.thought0","content":{"type":"text","text":"I'll look."}}
        {"sessionUpdate":"tool_call","toolCallId":"c1","title":"listing files","name":"terminal","kind":"execute","status":"in_progress","rawInput":{"command":"ls"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a.py"}}],"rawOutput":{"kind":"TerminalObservation","content":[{"type":"text","text":"a.py"}],"is_error":false,"command":"ls","exit_code":0}}
        {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
    "#]],
    );
    // As the OpenHands CLI: reasoning is a message, a call is pending, the user is not repeated.
    expect![[r#"
        {"sessionUpdate":"agent_message_chunk","messageId":"e2.reasoning0","content":{"type":"text","text":"Look first."}}
        {"sessionUpdate":"agent_message_chunk","messageId":"e2.reasoning0","content":{"type":"text","text":"\n\n"},"_meta":{"separator":true}}
        {"sessionUpdate":"agent_message_chunk","messageId":"e2.thought0","content":{"type":"text","text":"I'll look."}}
        {"sessionUpdate":"tool_call","toolCallId":"c1","title":"listing files","name":"terminal","kind":"execute","status":"pending","rawInput":{"command":"ls"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a.py"}}],"rawOutput":{"kind":"TerminalObservation","content":[{"type":"text","text":"a.py"}],"is_error":false,"command":"ls","exit_code":0}}
        {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
    "#]].assert_eq(&show(&lines, Some("seed")));
}

#[test]
fn kinds_titles_and_locations() {
    let calls = [
        action(
            "c1",
            "file_editor",
            r#"{"kind":"FileEditorAction","command":"view","path":"/w/a.py","view_range":[10,20]}"#,
        ),
        action(
            "c2",
            "file_editor",
            r#"{"kind":"FileEditorAction","command":"insert","path":"/w/a.py","insert_line":4,"new_str":"x"}"#,
        ),
        action(
            "c3",
            "list",
            r#"{"kind":"ListAction","directory":"/w/src"}"#,
        ),
        action(
            "c4",
            "grep",
            r#"{"kind":"GrepAction","pattern":"TODO","path":"/w"}"#,
        ),
        action(
            "c5",
            "read_file",
            r#"{"kind":"ReadFileAction","file_path":"/w/a.py","offset":3}"#,
        ),
        action(
            "c6",
            "browser_navigate",
            r#"{"kind":"BrowserNavigateAction","url":"http://localhost"}"#,
        ),
        action(
            "c7",
            "delegate",
            r#"{"kind":"DelegateAction","command":"spawn","ids":["tests"]}"#,
        ),
        action(
            "c8",
            "unheard_of",
            r#"{"kind":"MCPToolAction","data":{"x":1}}"#,
        ),
    ];
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    check(
        &calls,
        expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read /w/a.py (10 - 20)","name":"file_editor","kind":"read","status":"in_progress","locations":[{"path":"/w/a.py","line":10}],"rawInput":{"command":"view","path":"/w/a.py","view_range":[10,20]}}
        {"sessionUpdate":"tool_call","toolCallId":"c2","title":"Edit /w/a.py","name":"file_editor","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/a.py","oldText":"","newText":"x"}],"locations":[{"path":"/w/a.py","line":4}],"rawInput":{"command":"insert","path":"/w/a.py","insert_line":4,"new_str":"x"}}
        {"sessionUpdate":"tool_call","toolCallId":"c3","title":"list /w/src","name":"list","kind":"search","status":"in_progress","locations":[{"path":"/w/src"}],"rawInput":{"directory":"/w/src"}}
        {"sessionUpdate":"tool_call","toolCallId":"c4","title":"grep TODO in /w","name":"grep","kind":"search","status":"in_progress","locations":[{"path":"/w"}],"rawInput":{"pattern":"TODO","path":"/w"}}
        {"sessionUpdate":"tool_call","toolCallId":"c5","title":"Read /w/a.py (from line 3)","name":"read_file","kind":"read","status":"in_progress","locations":[{"path":"/w/a.py","line":3}],"rawInput":{"file_path":"/w/a.py","offset":3}}
        {"sessionUpdate":"tool_call","toolCallId":"c6","title":"Fetch http://localhost","name":"browser_navigate","kind":"fetch","status":"in_progress","rawInput":{"url":"http://localhost"}}
        {"sessionUpdate":"tool_call","toolCallId":"c7","title":"delegate spawn","name":"delegate","kind":"think","status":"in_progress","rawInput":{"command":"spawn","ids":["tests"]}}
        {"sessionUpdate":"tool_call","toolCallId":"c8","title":"unheard_of","name":"unheard_of","kind":"other","status":"in_progress","rawInput":{"x":1}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c8","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c7","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c6","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c5","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c4","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c3","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed","_meta":{"status":"lost"}}
        {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream ended without a result","data":{"code":"missing_end","outcome":"lost"}}}
    "#]],
    );
    expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read /w/a.py (10 - 20)","name":"file_editor","kind":"edit","status":"pending","locations":[{"path":"/w/a.py","line":10}],"rawInput":{"command":"view","path":"/w/a.py","view_range":[10,20]}}
        {"sessionUpdate":"tool_call","toolCallId":"c2","title":"Edit /w/a.py","name":"file_editor","kind":"edit","status":"pending","content":[{"type":"diff","path":"/w/a.py","oldText":"","newText":"x"}],"locations":[{"path":"/w/a.py","line":4}],"rawInput":{"command":"insert","path":"/w/a.py","insert_line":4,"new_str":"x"}}
        {"sessionUpdate":"tool_call","toolCallId":"c3","title":"list /w/src","name":"list","kind":"other","status":"pending","locations":[{"path":"/w/src"}],"rawInput":{"directory":"/w/src"}}
        {"sessionUpdate":"tool_call","toolCallId":"c4","title":"grep TODO in /w","name":"grep","kind":"other","status":"pending","locations":[{"path":"/w"}],"rawInput":{"pattern":"TODO","path":"/w"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c4","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c3","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","_meta":{"status":"lost"}}
        {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed","_meta":{"status":"lost"}}
        {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the stream ended without a result","data":{"code":"missing_end","outcome":"lost"}}}
    "#]].assert_eq(&show(&calls[..4], Some("seed")));
}

#[test]
fn an_edit_ends_with_the_file_before_and_after() {
    check(
        &[
            &action(
                "c1",
                "file_editor",
                r#"{"kind":"FileEditorAction","command":"str_replace","path":"/w/a.py","old_str":"-","new_str":"+"}"#,
            ),
            &observation(
                "c1",
                "file_editor",
                r#"{"kind":"FileEditorObservation","content":[{"type":"text","text":"edited"}],"command":"str_replace","path":"/w/a.py","prev_exist":true,"old_content":"a - b","new_content":"a + b"}"#,
            ),
            &action(
                "c2",
                "file_editor",
                r#"{"kind":"FileEditorAction","command":"create","path":"/w/n.md","file_text":"n"}"#,
            ),
            &observation(
                "c2",
                "file_editor",
                r#"{"kind":"FileEditorObservation","content":[{"type":"text","text":"created"}],"command":"create","path":"/w/n.md","prev_exist":false,"new_content":"n"}"#,
            ),
            FINISHED,
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit /w/a.py","name":"file_editor","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/a.py","oldText":"-","newText":"+"}],"locations":[{"path":"/w/a.py"}],"rawInput":{"command":"str_replace","path":"/w/a.py","old_str":"-","new_str":"+"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","path":"/w/a.py","oldText":"a - b","newText":"a + b"}],"rawOutput":{"kind":"FileEditorObservation","content":[{"type":"text","text":"edited"}],"command":"str_replace","path":"/w/a.py","prev_exist":true,"old_content":"a - b","new_content":"a + b"},"_meta":{"result":"edited"}}
            {"sessionUpdate":"tool_call","toolCallId":"c2","title":"Write /w/n.md","name":"file_editor","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/n.md","newText":"n"}],"locations":[{"path":"/w/n.md"}],"rawInput":{"command":"create","path":"/w/n.md","file_text":"n"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"completed","rawOutput":{"kind":"FileEditorObservation","content":[{"type":"text","text":"created"}],"command":"create","path":"/w/n.md","prev_exist":false,"new_content":"n"},"_meta":{"result":"created"}}
            {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn failed_calls_are_failed() {
    check(
        &[
            &action(
                "c1",
                "file_editor",
                r#"{"kind":"FileEditorAction","command":"view","path":"/w/no"}"#,
            ),
            &observation(
                "c1",
                "file_editor",
                r#"{"kind":"FileEditorObservation","content":[{"type":"text","text":"no such file"}],"is_error":true,"command":"view"}"#,
            ),
            &action(
                "c2",
                "terminal",
                r#"{"kind":"TerminalAction","command":"rm -rf build"}"#,
            ),
            r#"{"kind":"UserRejectObservation","id":"o-c2","source":"environment","tool_name":"terminal","tool_call_id":"c2","action_id":"a-c2","rejection_reason":"keep it","rejection_source":"user"}"#,
            &action("c3", "terminal", "null"),
            r#"{"kind":"AgentErrorEvent","id":"o-c3","source":"agent","tool_name":"terminal","tool_call_id":"c3","error":"command is required"}"#,
            &action(
                "c4",
                "terminal",
                r#"{"kind":"TerminalAction","command":"sleep 9"}"#,
            ),
            r#"{"kind":"ConversationErrorEvent","id":"e8","source":"environment","code":"LLMRateLimitError","detail":"429"}"#,
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read /w/no","name":"file_editor","kind":"read","status":"in_progress","locations":[{"path":"/w/no"}],"rawInput":{"command":"view","path":"/w/no"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no such file"}}],"rawOutput":{"kind":"FileEditorObservation","content":[{"type":"text","text":"no such file"}],"is_error":true,"command":"view"}}
            {"sessionUpdate":"tool_call","toolCallId":"c2","title":"rm -rf build","name":"terminal","kind":"execute","status":"in_progress","rawInput":{"command":"rm -rf build"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"keep it"}}],"rawOutput":"keep it","_meta":{"status":"denied"}}
            {"sessionUpdate":"tool_call","toolCallId":"c3","title":"terminal","name":"terminal","kind":"execute","status":"in_progress","rawInput":{}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c3","status":"failed","content":[{"type":"content","content":{"type":"text","text":"command is required"}}],"rawOutput":"command is required"}
            {"sessionUpdate":"tool_call","toolCallId":"c4","title":"sleep 9","name":"terminal","kind":"execute","status":"in_progress","rawInput":{"command":"sleep 9"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c4","status":"failed","_meta":{"status":"lost"}}
            {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"429","data":{"code":"rate_limited"}}}
        "#]],
    );
}

#[test]
fn text_and_images() {
    check(
        &[
            r#"{"kind":"MessageEvent","id":"m1","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"See:"},{"type":"image","image_urls":["data:image/png;base64,aGk=","https://example.com/a.png"]}]},"llm_response_id":"r1"}"#,
            r#"{"kind":"MessageEvent","id":"m2","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"  \n"}]},"llm_response_id":"r2"}"#,
            &action(
                "c1",
                "think",
                r#"{"kind":"ThinkAction","thought":"Now it works."}"#,
            ),
            &observation(
                "c1",
                "think",
                r#"{"kind":"ThinkObservation","content":[{"type":"text","text":"Your thought has been logged."}]}"#,
            ),
            &action(
                "c2",
                "finish",
                r#"{"kind":"FinishAction","message":"Done."}"#,
            ),
            &observation(
                "c2",
                "finish",
                r#"{"kind":"FinishObservation","content":[{"type":"text","text":"Done."}]}"#,
            ),
        ],
        expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"See:"}}
            {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}
            {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"resource_link","name":"https://example.com/a.png","uri":"https://example.com/a.png"}}
            {"sessionUpdate":"agent_thought_chunk","messageId":"a-c1","content":{"type":"text","text":"Now it works."}}
            {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"\n\n"},"_meta":{"separator":true}}
            {"sessionUpdate":"agent_message_chunk","messageId":"a-c2","content":{"type":"text","text":"Done."}}
            {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn a_plan_and_its_card() {
    check(
        &[
            &action(
                "c1",
                "task_tracker",
                r#"{"kind":"TaskTrackerAction","command":"plan","task_list":[{"title":"Fix","status":"done"},{"title":"Test","status":"todo"}]}"#,
            ),
            &observation(
                "c1",
                "task_tracker",
                r#"{"kind":"TaskTrackerObservation","content":[{"type":"text","text":"updated"}],"command":"plan","task_list":[{"title":"Fix","status":"done"},{"title":"Test","status":"todo"}]}"#,
            ),
            FINISHED,
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"c1","title":"task_tracker","name":"task_tracker","kind":"think","status":"in_progress","rawInput":{"command":"plan","task_list":[{"title":"Fix","status":"done"},{"title":"Test","status":"todo"}]}}
            {"sessionUpdate":"plan","entries":[{"content":"Fix","priority":"medium","status":"completed"},{"content":"Test","priority":"medium","status":"pending"}]}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"updated"}}],"rawOutput":{"kind":"TaskTrackerObservation","content":[{"type":"text","text":"updated"}],"command":"plan","task_list":[{"title":"Fix","status":"done"},{"title":"Test","status":"todo"}]}}
            {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn a_confirmation_is_a_request_about_the_call() {
    check(
        &[
            &action(
                "c1",
                "terminal",
                r#"{"kind":"TerminalAction","command":"make"}"#,
            ),
            r#"{"kind":"ConversationStateUpdateEvent","id":"s1","source":"environment","key":"execution_status","value":"waiting_for_confirmation"}"#,
            r#"{"kind":"ConversationStateUpdateEvent","id":"s2","source":"environment","key":"execution_status","value":"running"}"#,
            &observation(
                "c1",
                "terminal",
                r#"{"kind":"TerminalObservation","content":[{"type":"text","text":"ok"}],"command":"make","exit_code":0}"#,
            ),
            FINISHED,
        ],
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"c1","title":"make","name":"terminal","kind":"execute","status":"in_progress","rawInput":{"command":"make"}}
            {"jsonrpc":"2.0","id":"ask-c1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"make","kind":"execute","status":"pending","rawInput":{"command":"make"}},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
            {"jsonrpc":"2.0","id":"ask-c1","result":{"outcome":{"outcome":"selected","optionId":"allow"}}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}],"rawOutput":{"kind":"TerminalObservation","content":[{"type":"text","text":"ok"}],"command":"make","exit_code":0}}
            {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
        "#]],
    );
}

#[test]
fn cards_streams_costs_and_condensations() {
    check(
        &[
            r#"{"kind":"StreamingDeltaEvent","id":"d1","source":"agent","content":"Hel"}"#,
            r#"{"kind":"StreamingDeltaEvent","id":"d2","source":"agent","content":"lo."}"#,
            r#"{"kind":"MessageEvent","id":"m1","source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"Hello."}]},"llm_response_id":"r1"}"#,
            r#"{"kind":"ACPToolCallEvent","id":"k1","source":"agent","tool_call_id":"c1","title":"Edit a.py","status":"in_progress","tool_kind":"edit","raw_input":{"file_path":"/w/a.py"},"content":[{"type":"diff","path":"/w/a.py","old_text":"a","new_text":"b"}],"is_error":false}"#,
            r#"{"kind":"ACPToolCallEvent","id":"k2","source":"agent","tool_call_id":"c1","title":"Edit a.py","status":"failed","tool_kind":"edit","raw_input":{"file_path":"/w/a.py"},"raw_output":"not found","is_error":true}"#,
            r#"{"kind":"CondensationRequest","id":"q1","source":"environment"}"#,
            r#"{"kind":"Condensation","id":"q2","source":"environment","forgotten_event_ids":["m1"],"summary":"Said hello.","llm_response_id":"r2"}"#,
            r#"{"kind":"ConversationStateUpdateEvent","id":"s1","source":"environment","key":"stats","value":{"usage_to_metrics":{"agent":{"model_name":"m","accumulated_cost":0.5,"accumulated_token_usage":{"model":"m","prompt_tokens":100,"completion_tokens":20,"cache_read_tokens":60,"cache_write_tokens":10,"context_window":2000,"per_turn_token":120}}}}}"#,
            FINISHED,
        ],
        expect![[r#"
            {"sessionUpdate":"agent_message_chunk","messageId":"stream-1","content":{"type":"text","text":"Hel"}}
            {"sessionUpdate":"agent_message_chunk","messageId":"stream-1","content":{"type":"text","text":"lo."}}
            {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit a.py","name":"edit","kind":"edit","status":"in_progress","content":[{"type":"diff","path":"/w/a.py","oldText":"a","newText":"b"}],"locations":[{"path":"/w/a.py"}],"rawInput":{"file_path":"/w/a.py"}}
            {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"not found"}}],"rawOutput":"not found"}
            {"sessionUpdate":"compaction_update","compactionId":"q1","status":"in_progress"}
            {"sessionUpdate":"compaction_update","compactionId":"q1","status":"completed","summary":[{"type":"text","text":"Said hello."}]}
            {"sessionUpdate":"usage_update","used":120,"size":2000,"cost":{"amount":0.5,"currency":"USD"}}
            {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","usage":{"totalTokens":120,"inputTokens":30,"outputTokens":20,"cachedReadTokens":60,"cachedWriteTokens":10}}}
        "#]],
    );
}
