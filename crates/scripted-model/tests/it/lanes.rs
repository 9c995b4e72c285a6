//! Which lane answers: main, the one a prompt names, or the one for titles.

use serde_json::{Value, json};

use crate::http::{post, server};

const LANES: &str = r#"{"lanes": {
    "main": [{"blocks": [{"text": "from main"}]}],
    "kid": [{"blocks": [{"text": "from kid"}]}]
}, "repeat": "last"}"#;

const CHAT: &str = "/v1/chat/completions";

fn check(script: &str, path: &str, request: &Value, text_at: &str, text: &str) {
    let response = post(&server(script), path, request);
    let body: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(body.pointer(text_at), Some(&json!(text)), "{body}");
}

fn check_chat(messages: &Value, text: &str) {
    check(
        LANES,
        CHAT,
        &json!({"model": "m", "messages": messages}),
        "/choices/0/message/content",
        text,
    );
}

#[test]
fn a_prompt_names_its_lane_on_every_wire() {
    let said = "[[lane:kid]] count the files";
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": said}]}]);
    check_chat(&messages, "from kid");
    check(
        LANES,
        "/v1/messages",
        &json!({"model": "m", "messages": messages}),
        "/content/0/text",
        "from kid",
    );
    let input = json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": said}]}]});
    check(
        LANES,
        "/v1/responses",
        &input,
        "/output/0/content/0/text",
        "from kid",
    );
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": said}]}]});
    check(
        LANES,
        "/v1beta/models/g:generateContent",
        &contents,
        "/candidates/0/content/parts/0/text",
        "from kid",
    );
}

#[test]
fn the_newest_prompt_counts_and_calls_of_tools_do_not() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let call = json!({"role": "assistant", "content": "[[lane:kid]]"});
    check_chat(&json!([user("hi"), call]), "from main");
    check_chat(
        &json!([user("[[lane:kid]] hi"), user("[[lane:main]] again")]),
        "from main",
    );
}

#[test]
fn a_title_costs_no_turn_of_another_lane() {
    let system = json!({"role": "system", "content": "You are a title generator. You output ONLY a thread title."});
    let user = json!({"role": "user", "content": "[[lane:kid]] hi"});
    check_chat(&json!([system, user]), "Scripted title");
    let titled = r#"{"lanes": {"title": [{"blocks": [{"text": "My title"}]}]}}"#;
    let request = json!({"model": "m", "messages": [system, user]});
    check(
        titled,
        CHAT,
        &request,
        "/choices/0/message/content",
        "My title",
    );
}

#[test]
fn an_unknown_lane_is_an_error() {
    let request =
        json!({"model": "m", "messages": [{"role": "user", "content": "[[lane:nobody]]"}]});
    check(
        LANES,
        "/v1/messages",
        &request,
        "/error/message",
        "the script has no lane `nobody`",
    );
}
