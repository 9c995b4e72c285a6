//! One turn with everything in it, on each of the four wires; and how streams end.

use std::time::{Duration, Instant};

use expect_test::{Expect, ExpectFile, expect, expect_file};
use serde_json::{Value, json};

use crate::http::{post, server};

const EVERYTHING: &str = r#"{"lanes": {"main": [{"blocks": [
    {"thinking": "Look at it first."},
    {"thinking": "", "signature": "c2ln"},
    {"redacted": "b3BhcXVl"},
    {"text": "Grüße 🙂, and now a call."},
    {"tool": "shell", "input": {"command": "ls", "description": "list"}},
    {"tool": "echo", "namespace": "mcp__demo", "input": {}},
    {"custom": "apply_patch", "input": "*** Begin Patch"},
    {"refusal": "I will not."}
]}]}}"#;

const ANTHROPIC: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/g1:streamGenerateContent?alt=sse";

fn request(path: &str) -> Value {
    let messages = json!([{"role": "user", "content": "do it"}]);
    match path {
        ANTHROPIC => json!({"model": "m1", "stream": true, "messages": messages}),
        RESPONSES => json!({"model": "m1", "stream": true, "input": "do it"}),
        CHAT => {
            let options = json!({"include_usage": true});
            json!({"model": "m1", "stream": true, "stream_options": options, "messages": messages})
        }
        _ => json!({"contents": [{"role": "user", "parts": [{"text": "do it"}]}]}),
    }
}

fn whole_request(path: &str) -> Value {
    let mut request = request(path);
    request["stream"] = json!(false);
    request
}

fn check(path: &str, golden: ExpectFile) {
    let response = post(&server(EVERYTHING), path, &request(path));
    assert_eq!(
        (response.status.as_str(), response.is_cut),
        ("HTTP/1.1 200 OK", false)
    );
    golden.assert_eq(&response.body);
}

fn check_whole(path: &str, golden: ExpectFile) {
    let response = post(&server(EVERYTHING), path, &whole_request(path));
    assert_eq!(response.status, "HTTP/1.1 200 OK");
    let body: Value = serde_json::from_str(&response.body).unwrap();
    golden.assert_eq(&format!("{body:#}\n"));
}

#[test]
fn a_message_is_streamed_as_anthropic_does() {
    check(ANTHROPIC, expect_file!["golden/anthropic.sse"]);
}

#[test]
fn a_message_is_streamed_as_openai_responses_does() {
    check(RESPONSES, expect_file!["golden/responses.sse"]);
}

#[test]
fn a_message_is_streamed_as_openai_chat_does() {
    check(CHAT, expect_file!["golden/chat.sse"]);
}

#[test]
fn a_message_is_streamed_as_gemini_does() {
    check(GEMINI, expect_file!["golden/gemini.sse"]);
}

#[test]
fn a_message_is_sent_whole_to_clients_that_do_not_stream() {
    check_whole(ANTHROPIC, expect_file!["golden/anthropic.json"]);
    check_whole(RESPONSES, expect_file!["golden/responses.json"]);
    check_whole(CHAT, expect_file!["golden/chat.json"]);
    check_whole(
        "/v1beta/models/g1:generateContent",
        expect_file!["golden/gemini.json"],
    );
}

/// The last event of a stream, and whether the connection was cut after it.
fn check_end(script: &str, path: &str, expected: Expect) {
    let response = post(&server(script), path, &request(path));
    let events: Vec<&str> = response.body.trim_end().split("\n\n").collect();
    let last = events[events.len() - 1];
    expected.assert_eq(&format!(
        "{last}\n{}",
        if response.is_cut { "cut" } else { "ended" }
    ));
}

#[test]
fn a_cut_stream_ends_after_its_block_without_an_end() {
    let turn = r#"{"blocks": [{"text": "one"}, {"text": "two"}], "cut_after": 0}"#;
    let script = format!(r#"{{"lanes": {{"main": [{turn}]}}}}"#);
    check_end(
        &script,
        ANTHROPIC,
        expect![[r#"
        event: content_block_stop
        data: {"index":0,"type":"content_block_stop"}
        ended"#]],
    );
    check_end(
        &script,
        RESPONSES,
        expect![[r#"
        event: response.output_item.done
        data: {"item":{"content":[{"annotations":[],"logprobs":[],"text":"one","type":"output_text"}],"id":"msg_main_1_1_0","role":"assistant","status":"completed","type":"message"},"output_index":0,"sequence_number":7,"type":"response.output_item.done"}
        ended"#]],
    );
    check_end(
        &script,
        CHAT,
        expect![[r#"
            data: {"id":"chatcmpl_main_1_1","object":"chat.completion.chunk","created":1767225600,"model":"m1","choices":[{"index":0,"delta":{"content":"one"},"finish_reason":null}]}
            ended"#]],
    );
    check_end(
        &script,
        GEMINI,
        expect![[r#"
            data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"one"}]}}],"modelVersion":"g1","responseId":"resp_main_1_1"}
            ended"#]],
    );
}

#[test]
fn a_connection_can_be_dropped_in_the_middle_of_a_block() {
    let turn =
        r#"{"blocks": [{"text": "0123456789"}], "chunk": 2, "cut_after_chunks": 3, "cut": "drop"}"#;
    let script = format!(r#"{{"lanes": {{"main": [{turn}]}}}}"#);
    check_end(
        &script,
        ANTHROPIC,
        expect![[r#"
            event: content_block_delta
            data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"45"}}
            cut"#]],
    );
}

#[test]
fn raw_blocks_belong_to_one_dialect() {
    let blocks = r#"[{"raw": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}}}]"#;
    let script = format!(r#"{{"lanes": {{"main": [{{"blocks": {blocks}}}]}}}}"#);
    let response = post(&server(&script), ANTHROPIC, &request(ANTHROPIC));
    let events: Vec<&str> = response.body.split("\n\n").collect();
    expect![[r#"
        event: content_block_start
        data: {"content_block":{"id":"s1","input":{},"name":"web_search","type":"server_tool_use"},"index":0,"type":"content_block_start"}
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#]].assert_eq(&events[1..3].join("\n"));
}

#[test]
fn a_model_can_fail_in_the_middle_of_a_stream() {
    let script = r#"{"lanes": {"main": [{"blocks": [{"text": "one"}, {"text": "two"}], "error_after": 0}]}}"#;
    check_end(
        script,
        ANTHROPIC,
        expect![[r#"
        event: error
        data: {"error":{"message":"Overloaded","type":"overloaded_error"},"type":"error"}
        ended"#]],
    );
    check_end(
        script,
        CHAT,
        expect![[r#"
        data: {"error":{"code":null,"message":"Overloaded","param":null,"type":"server_error"}}
        ended"#]],
    );
    check_end(
        script,
        GEMINI,
        expect![[r#"
        data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}
        ended"#]],
    );
    let response = post(&server(script), RESPONSES, &request(RESPONSES));
    let kinds: Vec<&str> = response
        .body
        .lines()
        .filter_map(|it| it.strip_prefix("event: "))
        .collect();
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["response.output_item.done", "error", "response.failed"]
    );
}

#[test]
fn what_would_break_a_stream_breaks_a_whole_answer() {
    let turns = r#"{"blocks": [{"text": "one"}], "error_after": 0, "message": "boom"}, {"blocks": [{"text": "one"}], "cut_after": 0}"#;
    let server = server(&format!(r#"{{"lanes": {{"main": [{turns}]}}}}"#));
    let [failed, cut] = [(); 2].map(|()| post(&server, ANTHROPIC, &whole_request(ANTHROPIC)));
    let error = r#"{"error":{"message":"boom","type":"api_error"},"type":"error"}"#;
    assert_eq!(
        (failed.status.as_str(), failed.body.as_str()),
        ("HTTP/1.1 500 Internal Server Error", error)
    );
    assert_eq!(
        (cut.status.as_str(), cut.body.as_str(), cut.is_cut),
        ("HTTP/1.1 200 OK", "", true)
    );
}

#[test]
fn stop_reasons_are_translated() {
    let script = r#"{"lanes": {"main": [{"blocks": [], "stop": "max_tokens"}]}}"#;
    let reason = |path: &str, pointer: &str| {
        let response = post(&server(script), path, &whole_request(path));
        let body: Value = serde_json::from_str(&response.body).unwrap();
        body.pointer(pointer).cloned().unwrap()
    };
    assert_eq!(reason(ANTHROPIC, "/stop_reason"), "max_tokens");
    assert_eq!(
        reason(RESPONSES, "/incomplete_details/reason"),
        "max_output_tokens"
    );
    assert_eq!(reason(CHAT, "/choices/0/finish_reason"), "length");
    assert_eq!(
        reason(
            "/v1beta/models/g1:generateContent",
            "/candidates/0/finishReason"
        ),
        "MAX_TOKENS"
    );
}

#[test]
fn every_event_is_one_write() {
    let script =
        r#"{"lanes": {"main": [{"blocks": [{"text": "tick ", "times": 20000}], "chunk": 5}]}}"#;
    let response = post(&server(script), ANTHROPIC, &request(ANTHROPIC));
    let events: Vec<usize> = response
        .body
        .split_inclusive("\n\n")
        .map(str::len)
        .collect();
    assert_eq!(events.len(), 20_005);
    assert_eq!(response.chunks, events);
}

#[test]
fn the_pace_holds_back_chunks_and_the_delay_the_first_byte() {
    let turn = r#"{"blocks": [{"text": "0123456789"}], "chunk": 1, "chunk_delay_ms": 10, "delay_ms": 100}"#;
    let server = server(&format!(r#"{{"lanes": {{"main": [{turn}]}}}}"#));
    let begun = Instant::now();
    post(&server, ANTHROPIC, &request(ANTHROPIC));
    assert!(
        begun.elapsed() >= Duration::from_millis(100 + 9 * 10),
        "{:?}",
        begun.elapsed()
    );
}
