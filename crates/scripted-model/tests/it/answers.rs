//! What is answered when there is no message to stream: scripted errors, mistakes, and the end of the script.

use std::num::NonZeroUsize;
use std::time::Duration;

use expect_test::{Expect, expect};
use scripted_model::{Block, Scenario, Server, Turn};
use serde_json::json;

use crate::http::{Response, post, send, server};

const HELLO: &str = r#"{"lanes": {"main": [{"blocks": [{"text": "Hello."}]}]}}"#;

fn check(response: &Response, expected: Expect) {
    let Response {
        status,
        headers,
        body,
        ..
    } = response;
    expected.assert_eq(&format!("{status}\n{}\n\n{body}", headers.join("\n")));
}

fn prompt() -> serde_json::Value {
    json!({"model": "m1", "messages": [{"role": "user", "content": "hi"}]})
}

#[test]
fn a_scripted_error_has_the_form_of_its_wire() {
    let turn =
        r#"{"status": 429, "message": "Too many requests", "headers": {"retry-after": "1"}}"#;
    let server = server(&format!(
        r#"{{"lanes": {{"main": [{turn}]}}, "repeat": "last"}}"#
    ));
    check(
        &post(&server, "/v1/messages", &prompt()),
        expect![[r#"
        HTTP/1.1 429 Too Many Requests
        content-type: application/json
        retry-after: 1
        content-length: 82
        connection: close

        {"error":{"message":"Too many requests","type":"rate_limit_error"},"type":"error"}"#]],
    );
    check(
        &post(&server, "/v1/chat/completions", &prompt()),
        expect![[r#"
            HTTP/1.1 429 Too Many Requests
            content-type: application/json
            retry-after: 1
            content-length: 92
            connection: close

            {"error":{"code":null,"message":"Too many requests","param":null,"type":"rate_limit_error"}}"#]],
    );
    check(
        &post(
            &server,
            "/v1/responses",
            &json!({"model": "m1", "input": "hi"}),
        ),
        expect![[r#"
            HTTP/1.1 429 Too Many Requests
            content-type: application/json
            retry-after: 1
            content-length: 92
            connection: close

            {"error":{"code":null,"message":"Too many requests","param":null,"type":"rate_limit_error"}}"#]],
    );
    check(
        &post(
            &server,
            "/v1beta/models/g:generateContent",
            &json!({"contents": []}),
        ),
        expect![[r#"
            HTTP/1.1 429 Too Many Requests
            content-type: application/json
            retry-after: 1
            content-length: 82
            connection: close

            {"error":{"code":429,"message":"Too many requests","status":"RESOURCE_EXHAUSTED"}}"#]],
    );
}

#[test]
fn a_scripted_error_can_have_any_body() {
    let turn = r#"{"status": 503, "body": {"detail": "maintenance"}}"#;
    let server = server(&format!(r#"{{"lanes": {{"main": [{turn}]}}}}"#));
    check(
        &post(&server, "/v1/messages", &prompt()),
        expect![[r#"
        HTTP/1.1 503 Service Unavailable
        content-type: application/json
        content-length: 24
        connection: close

        {"detail":"maintenance"}"#]],
    );
}

#[test]
fn a_finished_script_is_an_error() {
    let server = server(HELLO);
    post(&server, "/v1/messages", &prompt());
    check(
        &post(&server, "/v1/messages", &prompt()),
        expect![[r#"
        HTTP/1.1 500 Internal Server Error
        content-type: application/json
        x-should-retry: false
        content-length: 118
        connection: close

        {"error":{"message":"the script is over: all 1 turns of lane `main` were played","type":"script_over"},"type":"error"}"#]],
    );
}

#[test]
fn the_last_turn_is_repeated_on_request() {
    let server =
        Server::start(Scenario::main([Turn::text("one"), Turn::text("two")]).repeat_last())
            .unwrap();
    let texts = [(); 4].map(|()| {
        let response = post(&server, "/v1/messages", &prompt());
        let body: serde_json::Value = serde_json::from_str(&response.body).unwrap();
        body["content"][0]["text"].as_str().unwrap().to_owned()
    });
    assert_eq!(texts, ["one", "two", "two", "two"]);
}

#[test]
fn mistakes_are_reported_and_use_no_turn() {
    let server = server(HELLO);
    check(
        &send(&server, "POST", "/v1/messages", "{"),
        expect![[r#"
        HTTP/1.1 400 Bad Request
        content-type: application/json
        x-should-retry: false
        content-length: 138
        connection: close

        {"error":{"message":"the body is not JSON: EOF while parsing an object at line 1 column 1","type":"invalid_request_error"},"type":"error"}"#]],
    );
    check(
        &post(&server, "/v1/messages", &json!({"model": "m1"})),
        expect![[r#"
            HTTP/1.1 400 Bad Request
            content-type: application/json
            x-should-retry: false
            content-length: 103
            connection: close

            {"error":{"message":"`messages` is missing, or no list","type":"invalid_request_error"},"type":"error"}"#]],
    );
    check(
        &post(&server, "/v1/responses", &json!({"model": "m1"})),
        expect![[r#"
            HTTP/1.1 400 Bad Request
            content-type: application/json
            x-should-retry: false
            content-length: 130
            connection: close

            {"error":{"code":null,"message":"`input` is missing, or neither a string nor a list","param":null,"type":"invalid_request_error"}}"#]],
    );
    check(
        &post(&server, "/v1/chat/completions", &json!({"messages": []})),
        expect![[r#"
            HTTP/1.1 400 Bad Request
            content-type: application/json
            x-should-retry: false
            content-length: 112
            connection: close

            {"error":{"code":null,"message":"`model` is missing, or no string","param":null,"type":"invalid_request_error"}}"#]],
    );
    check(
        &send(&server, "GET", "/v1/models", ""),
        expect![[r#"
        HTTP/1.1 404 Not Found
        content-type: application/json
        x-should-retry: false
        content-length: 231
        connection: close

        {"error":{"message":"nothing is served at GET /v1/models; POST to one of /v1/messages, /v1/messages/count_tokens, /v1/responses, /v1/chat/completions, /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens"}}"#]],
    );
    assert_eq!(
        post(&server, "/v1/messages", &prompt()).status,
        "HTTP/1.1 200 OK"
    );
}

#[test]
fn tokens_are_counted_without_a_turn() {
    let server = server(HELLO);
    let anthropic = post(&server, "/v1/messages/count_tokens", &prompt());
    let gemini = post(
        &server,
        "/v1beta/models/g:countTokens",
        &json!({"contents": []}),
    );
    assert_eq!(
        [anthropic.body, gemini.body],
        [r#"{"input_tokens":14}"#, r#"{"totalTokens":3}"#]
    );
    assert_eq!(
        post(&server, "/v1/messages", &prompt()).status,
        "HTTP/1.1 200 OK"
    );
}

#[test]
fn requests_are_kept_without_their_secrets() {
    let server = server(HELLO);
    post(
        &server,
        "/v1beta/models/g:generateContent?key=secret&alt=sse",
        &json!({"contents": []}),
    );
    let requests = server.wait_for_requests(1, Duration::ZERO);
    let mut request = requests[0].clone();
    request.headers.retain(|(name, _)| name != "host");
    expect![[r#"
        {
          "method": "POST",
          "path": "/v1beta/models/g:generateContent?key=<redacted>&alt=sse",
          "headers": [
            [
              "x-api-key",
              "<redacted>"
            ],
            [
              "connection",
              "close"
            ],
            [
              "content-length",
              "15"
            ]
          ],
          "body": "{\"contents\":[]}",
          "lane": "main"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&request).unwrap());
}

#[test]
fn another_scenario_can_be_set_between_prompts() {
    let server = Server::start(Scenario::main([Turn::text("one")])).unwrap();
    let first = post(&server, "/v1/messages", &prompt()).body;
    let call = Block::tool("shell", &json!({"command": "ls"}));
    let chunk = NonZeroUsize::new(3).unwrap();
    server.set(Scenario::main([
        Turn::of([Block::text("two"), call]).chunk(chunk)
    ]));
    let second = post(&server, "/v1/messages", &prompt()).body;
    let ids = [first, second]
        .map(|it| serde_json::from_str::<serde_json::Value>(&it).unwrap()["id"].clone());
    assert_eq!(ids, ["msg_main_1_1", "msg_main_1_2"]);
    assert_eq!(server.requests().len(), 2);
}
