//! Requests as each provider gets them, and every one of them against the schema.

use serde_json::{Value, json};

use super::body;
use crate::endpoint::Endpoint;
use crate::endpoint::tests::endpoint;
use crate::thread::Conversation;

const SCHEMA: &str = include_str!("../../../../fixtures/openresponses/openapi.json");

fn conversation(messages: Value, more: Value) -> Conversation {
    let mut input = json!({ "threadId": "t", "runId": "r", "messages": messages });
    for (name, value) in more.as_object().unwrap() {
        input[name] = value.clone();
    }
    let thread = formats::read_thread(input.to_string().as_bytes()).unwrap();
    Conversation::of_client("t", thread, &Default::default())
}

fn request(endpoint: &Endpoint, messages: Value, more: Value) -> Value {
    body(endpoint, &conversation(messages, more), None).unwrap()
}

fn items(base: &str, messages: Value) -> Value {
    request(&endpoint(base), messages, json!({}))["input"].clone()
}

/// What the specification says of requests.
fn check(request: &Value) {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    schema["$ref"] = "#/components/schemas/CreateResponseBody".into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(request)
        .map(|it| format!("{}: {it}", it.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new(), "{request:#}");
}

const OPENAI: &str = "https://api.openai.com/v1";
const CUSTOM: &str = "http://127.0.0.1:1/v1";
const CLAW: &str = "http://127.0.0.1:18789";

fn everything() -> Value {
    json!([
        { "id": "1", "role": "system", "content": "Be kind." },
        { "id": "2", "role": "developer", "content": "Be brief." },
        { "id": "3", "role": "user", "content": [
            { "type": "text", "text": "look" },
            { "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": "image/png" } },
            { "type": "image", "source": { "type": "url", "value": "https://x/y.png" } },
            { "type": "document", "source": { "type": "data", "value": "aGk=", "mimeType": "application/pdf" },
              "metadata": { "filename": "a.pdf" } },
            { "type": "document", "source": { "type": "url", "value": "https://x/a.pdf" } },
            { "type": "audio", "source": { "type": "data", "value": "aGk=", "mimeType": "audio/mpeg" } },
            { "type": "binary", "mimeType": "image/gif", "data": "aGk=" },
        ] },
        { "id": "4", "role": "reasoning", "content": "Hm.", "encryptedValue": "xyz" },
        { "id": "5", "role": "assistant", "content": "I will.", "toolCalls": [
            { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            { "id": "c2", "type": "function", "function": { "name": "g", "arguments": "{}" } },
        ] },
        { "id": "6", "role": "tool", "toolCallId": "c1", "content": "done" },
        { "id": "7", "role": "activity", "activityType": "PLAN", "content": {} },
        { "id": "8", "role": "user", "content": "thanks" },
    ])
}

#[test]
fn every_kind_of_message_matches_the_schema() {
    let more = json!({
        "tools": [{ "name": "f", "description": "does", "parameters": { "type": "object" } }],
        "context": [{ "description": "The page", "value": "is empty" }],
        "forwardedProps": { "temperature": 0.5, "max_tokens": 100, "tool_choice": "auto", "base_url": "http://evil" },
    });
    let got = request(&endpoint(CUSTOM), everything(), more);
    let expected = json!({
        "model": "m", "stream": true, "store": true,
        "instructions": "Be kind.\n\nBe brief.\n\nThe page:\nis empty",
        "temperature": 0.5, "max_output_tokens": 100, "tool_choice": "auto",
        "tools": [{ "type": "function", "name": "f", "description": "does", "parameters": { "type": "object" } }],
        "input": [
            { "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "look" },
                { "type": "input_image", "image_url": "data:image/png;base64,aGk=" },
                { "type": "input_image", "image_url": "https://x/y.png" },
                { "type": "input_file", "filename": "a.pdf", "file_data": "aGk=" },
                { "type": "input_file", "file_url": "https://x/a.pdf" },
                { "type": "input_file", "filename": "file.mp3", "file_data": "aGk=" },
                { "type": "input_image", "image_url": "data:image/gif;base64,aGk=" },
            ] },
            { "type": "reasoning", "summary": [], "encrypted_content": "xyz" },
            { "type": "message", "role": "assistant", "content": "I will." },
            { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c1", "output": "done" },
            { "type": "message", "role": "user", "content": "thanks" },
        ],
    });
    assert_eq!(got, expected);
    check(&got);
}

#[test]
fn requests_for_every_provider_that_follows_the_schema_validate() {
    for base in [
        OPENAI,
        "https://x.openai.azure.com",
        "https://router.huggingface.co",
        CUSTOM,
    ] {
        check(&request(&endpoint(base), everything(), json!({})));
    }
}

#[test]
fn openai_gets_the_type_of_a_file() {
    let file = json!([{ "id": "1", "role": "user", "content": [
        { "type": "document", "source": { "type": "data", "value": "aGk=", "mimeType": "application/pdf" } },
    ] }]);
    assert_eq!(
        items(OPENAI, file)[0]["content"][0],
        json!({ "type": "input_file", "filename": "file.pdf", "file_data": "data:application/pdf;base64,aGk=" })
    );
}

#[test]
fn openclaw_has_its_own_sources_tools_and_routes() {
    let image = json!([{ "id": "1", "role": "user", "content": [
        { "type": "image", "source": { "type": "data", "value": "aGk=", "mimeType": "image/png" } },
        { "type": "document", "source": { "type": "url", "value": "https://x/a.pdf", "mimeType": "application/pdf" } },
    ] }]);
    let more = json!({
        "tools": [{ "name": "f", "description": "", "parameters": {} }],
        "forwardedProps": { "agent_id": "main" },
    });
    let mut claw = endpoint(CLAW);
    let got = request(&claw, image.clone(), more.clone());
    let expected = json!({
        "model": "openclaw:main", "stream": true, "user": "t",
        "tools": [{ "type": "function", "function": { "name": "f", "description": "", "parameters": {} } }],
        "input": [{ "type": "message", "role": "user", "content": [
            { "type": "input_image", "source": { "type": "base64", "data": "aGk=", "media_type": "image/png" } },
            { "type": "input_file", "source": { "type": "url", "url": "https://x/a.pdf", "media_type": "application/pdf" } },
        ] }],
    });
    assert_eq!(got, expected);
    claw.openclaw.nested_tools = false;
    let flat = json!([{ "type": "function", "name": "f", "description": "", "parameters": {} }]);
    assert_eq!(request(&claw, image.clone(), more)["tools"], flat);
    let named = json!({ "forwardedProps": { "agent_id": "main", "model": "mine" } });
    assert_eq!(request(&claw, image, named)["model"], "mine");
}

#[test]
fn models_come_from_the_request_then_the_config_then_the_provider() {
    let hello = || json!([{ "id": "1", "role": "user", "content": "hi" }]);
    let model =
        |endpoint: &Endpoint, more: Value| request(endpoint, hello(), more)["model"].clone();
    let mut openai = endpoint(OPENAI);
    let forwarded = json!({ "forwardedProps": { "model": "asked", "agent_id": "x" } });
    assert_eq!(model(&openai, forwarded), "asked");
    assert_eq!(model(&openai, json!({})), "m");
    openai.model = None;
    assert_eq!(model(&openai, json!({})), "gpt-4o");
    let mut custom = endpoint(CUSTOM);
    custom.model = None;
    let refused = body(&custom, &conversation(hello(), json!({})), None).unwrap_err();
    assert_eq!(refused.to_string(), "`model` endpoint `test` has no model");
}

#[test]
fn no_number_of_tokens_is_none() {
    let hello = json!([{ "id": "1", "role": "user", "content": "hi" }]);
    let props = json!({ "forwardedProps": { "max_tokens": null, "max_output_tokens": 20 } });
    let got = request(&endpoint(CUSTOM), hello, props);
    assert_eq!(got["max_output_tokens"], 20);
}

#[test]
fn unsupported_input_is_refused_by_its_field() {
    let part = |part: Value| json!([{ "id": "1", "role": "user", "content": [part] }]);
    let hello = json!([{ "id": "1", "role": "user", "content": "hi" }]);
    let rows = [
        (
            part(json!({ "type": "video", "source": { "type": "url", "value": "u" } })),
            json!({}),
            "`messages[0].content[0]` is a video, which no model takes from a user",
        ),
        (
            part(json!({ "type": "image", "source": { "type": "file", "value": "f-1" } })),
            json!({}),
            "`messages[0].content[0]` is a handle of a file, which only its provider knows",
        ),
        (
            hello.clone(),
            json!({ "tools": [{ "name": "no spaces", "description": "" }] }),
            "`tools[0].name` is no name of a tool: letters, digits, `_` and `-`, 64 at most",
        ),
        (
            hello,
            json!({ "forwardedProps": { "max_tokens": 3 } }),
            "`forwardedProps.max_tokens` is not a number of tokens, 16 or more",
        ),
    ];
    for (messages, more, expected) in rows {
        let refused = body(&endpoint(CUSTOM), &conversation(messages, more), None);
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
}

#[test]
fn long_ids_of_calls_are_shortened_alike_on_both_sides() {
    let id = "x".repeat(100);
    let messages = json!([
        { "id": "1", "role": "assistant", "toolCalls": [
            { "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } },
        ] },
        { "id": "2", "role": "tool", "toolCallId": id, "content": "", "error": "it broke" },
    ]);
    let items = items(CUSTOM, messages);
    assert_eq!(items[0]["call_id"], items[1]["call_id"]);
    assert_eq!(items[0]["call_id"].as_str().unwrap().len(), 37);
    assert_eq!(items[1]["output"], "error: it broke");
}
