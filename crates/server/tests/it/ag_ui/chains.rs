//! Threads that an endpoint remembers: what it is told again, and what it is not.

use serde_json::{Value, json};

use super::models::{World, text};
use super::{end, input, texts, user};

/// A thread before the model has said `one`.
fn first() -> Value {
    json!([user("m1", "first")])
}

/// The thread behind it.
fn second() -> Value {
    json!([
        user("m1", "first"),
        { "id": "a", "role": "assistant", "content": "one" },
        user("m2", "second"),
    ])
}

/// The same for an endpoint that knows nothing of it.
fn whole() -> Value {
    json!([
        { "type": "message", "role": "user", "content": "first" },
        { "type": "message", "role": "assistant", "content": "one" },
        { "type": "message", "role": "user", "content": "second" },
    ])
}

#[tokio::test]
async fn only_what_is_new_is_sent_with_the_response_before() {
    let world = World::new(json!([text("one"), text("two"), text("three")])).await;
    let mut messages = vec![user("m1", "first")];
    for (n, word) in ["one", "two", "three"].iter().enumerate() {
        let request = input("t", &format!("r{n}"), messages.clone().into());
        let events = world.run(&request).await;
        assert_eq!(texts(&events), *word);
        let start = events
            .iter()
            .find(|it| it["type"] == "TEXT_MESSAGE_START")
            .unwrap();
        messages.push(json!({ "id": start["messageId"], "role": "assistant", "content": word }));
        messages.push(user(&format!("n{n}"), &format!("after {word}")));
    }
    let requests = world.requests();
    assert_eq!(requests[0].get("previous_response_id"), None);
    assert!(requests[1]["previous_response_id"].is_string());
    assert!(requests[2]["previous_response_id"].is_string());
    assert_ne!(
        requests[1]["previous_response_id"],
        requests[2]["previous_response_id"]
    );
    let message = |text: &str| json!([{ "type": "message", "role": "user", "content": text }]);
    assert_eq!(requests[1]["input"], message("after one"));
    assert_eq!(requests[2]["input"], message("after two"));
}

/// A response that the provider says it does not have.
fn forgotten(status: u16, code: Option<&str>) -> Value {
    json!({ "status": status, "body": { "error": { "code": code, "message": "gone", "type": "invalid_request_error" } } })
}

#[tokio::test]
async fn a_provider_that_forgot_gets_the_whole_thread_once() {
    for gone in [
        forgotten(400, Some("previous_response_not_found")),
        forgotten(404, None),
    ] {
        let world = World::new(json!([text("one"), gone, text("two")])).await;
        end(&world.run(&input("t", "r1", first())).await);
        let events = world.run(&input("t", "r2", second())).await;
        assert_eq!(texts(&events), "two");
        let is_notice = |it: &&Value| it["name"] == "linkspan.notice";
        let notice = events.iter().find(is_notice).unwrap();
        assert_eq!(notice["value"]["code"], "history_resent");
        let requests = world.requests();
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[1]["previous_response_id"], "resp_main_1_1");
        assert_eq!(requests[2].get("previous_response_id"), None);
        assert_eq!(requests[2]["input"], whole());
    }
}

#[tokio::test]
async fn a_thread_forgotten_mid_answer_is_resent_with_the_next_prompt() {
    let gone = json!({
        "blocks": [{ "text": "half" }],
        "failed": { "code": "previous_response_not_found", "message": "gone" },
    });
    let world = World::new(json!([text("one"), gone, text("two")])).await;
    end(&world.run(&input("t", "r1", first())).await);
    let failed = world.run(&input("t", "r2", second())).await;
    assert_eq!(end(&failed)["code"], "previous_response_not_found");
    let events = world.run(&input("t", "r3", second())).await;
    assert_eq!(texts(&events), "two");
    let requests = world.requests();
    assert_eq!(requests[1]["previous_response_id"], "resp_main_1_1");
    assert_eq!(requests[2].get("previous_response_id"), None);
    assert_eq!(requests[2]["input"], whole());
}

#[tokio::test]
async fn equal_threads_continue_from_their_own_responses() {
    let world = World::new(json!([text("one"), text("one"), text("two"), text("two")])).await;
    for (thread, run, messages) in [
        ("t", "r1", first()),
        ("u", "r1", first()),
        ("t", "r2", second()),
        ("u", "r2", second()),
    ] {
        end(&world.run(&input(thread, run, messages)).await);
    }
    let requests = world.requests();
    assert_eq!(requests[2]["previous_response_id"], "resp_main_1_1");
    assert_eq!(requests[3]["previous_response_id"], "resp_main_1_2");
    assert_eq!(requests[2]["input"], requests[3]["input"]);
}

#[tokio::test]
async fn what_the_applications_tools_answered_is_part_of_the_thread() {
    let call = json!({ "blocks": [{ "text": "one" }, { "tool": "f", "input": {} }] });
    let failed = json!({ "status": 400, "message": "no" });
    let world = World::new(json!([call, text("two"), failed, text("three")])).await;
    let called = world.run(&input("t", "r1", first())).await;
    let call = &end(&called)["outcome"]["pendingToolCallIds"][0];
    let calls =
        json!([{ "id": call, "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    let answered = json!([
        user("m1", "first"),
        { "id": "a", "role": "assistant", "content": "one", "toolCalls": calls },
        { "id": "x1", "role": "tool", "toolCallId": call, "content": "cold" },
    ]);
    assert_eq!(texts(&world.run(&input("t", "r2", answered)).await), "two");
    let late = world.run(&input("t", "r3", json!([]))).await;
    let messages = late[1]["messages"].as_array().unwrap();
    let told: Vec<(&str, &Value)> = messages
        .iter()
        .map(|it| (it["role"].as_str().unwrap(), &it["content"]))
        .collect();
    let words = ["first", "one", "cold", "two"].map(Value::from);
    let roles = ["user", "assistant", "tool", "assistant"];
    assert_eq!(told, roles.into_iter().zip(&words).collect::<Vec<_>>());
    // A failed run goes on from nothing, so the next prompt has to tell everything.
    let sessions = world.test_server.get("/api/sessions").await.json();
    let session = sessions["sessions"][0]["id"].as_str().unwrap();
    for n in [3, 4] {
        let prompt = json!({ "session": session, "prompt": "go on" });
        assert_eq!(
            world.test_server.post("/api/runs", &prompt).await.status,
            202
        );
        world.test_server.ended(session, n).await;
    }
    let output = json!({ "type": "function_call_output", "call_id": call, "output": "cold" });
    let whole = &world.requests()[3]["input"];
    assert!(whole.as_array().unwrap().contains(&output), "{whole:#}");
}

#[tokio::test]
async fn an_unanswered_call_does_not_block_the_thread() {
    let call = json!({ "blocks": [{ "text": "one" }, { "tool": "f", "input": {} }] });
    let world = World::new(json!([call, text("two"), text("three")])).await;
    let called = world.run(&input("t", "r1", first())).await;
    let call = &end(&called)["outcome"]["pendingToolCallIds"][0];
    let mut messages = second();
    messages[1]["toolCalls"] =
        json!([{ "id": call, "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    let events = world.run(&input("t", "r2", messages)).await;
    assert_eq!(texts(&events), "two");
    let requests = world.requests();
    assert_eq!(requests[1].get("previous_response_id"), None);
    assert_eq!(requests[1]["input"], whole());
    // A prompt that comes by another door meets the same history.
    let sessions = world.test_server.get("/api/sessions").await.json();
    let session = &sessions["sessions"][0]["id"];
    let prompt = json!({ "session": session, "prompt": "third" });
    let answer = world.test_server.post("/api/runs", &prompt).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    world.test_server.ended(session.as_str().unwrap(), 3).await;
    assert_eq!(world.requests()[2]["previous_response_id"], "resp_main_3_2");
}

#[tokio::test]
async fn an_edited_thread_and_another_thread_are_sent_in_full() {
    let world = World::new(json!([text("one"), text("two"), text("three")])).await;
    end(&world
        .run(&input("t", "r1", json!([user("m1", "first")])))
        .await);
    let changed = json!([
        user("m1", "something else"),
        { "id": "a", "role": "assistant", "content": "one" },
        user("m2", "second"),
    ]);
    end(&world.run(&input("t", "r2", changed.clone())).await);
    end(&world.run(&input("other", "r1", changed)).await);
    for request in &world.requests()[1..] {
        assert_eq!(request.get("previous_response_id"), None);
        assert_eq!(request["input"].as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn stateless_endpoints_get_the_whole_history() {
    let world = World::with(json!([text("one"), text("two")]), "stateful = false").await;
    end(&world
        .run(&input("t", "r1", json!([user("m1", "first")])))
        .await);
    let messages = json!([
        user("m1", "first"),
        { "id": "a", "role": "assistant", "content": "one" },
        user("m2", "second"),
    ]);
    end(&world.run(&input("t", "r2", messages)).await);
    let requests = world.requests();
    assert_eq!(requests[1]["store"], false);
    assert_eq!(requests[1]["input"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_state_of_a_client_is_patched_and_never_replaced() {
    for (state, kind) in [
        (json!({ "mine": 1 }), Some("STATE_DELTA")),
        (Value::Null, Some("STATE_SNAPSHOT")),
        (json!(["mine"]), None),
    ] {
        let world = World::with(json!([text("one")]), "client_state = true").await;
        let mut request = input("t", "r1", first());
        request["state"] = state.clone();
        let events = world.run(&request).await;
        end(&events);
        let types = events.iter().filter_map(|it| it["type"].as_str());
        let told: Vec<&str> = types.filter(|it| it.starts_with("STATE")).collect();
        assert_eq!(told, kind.into_iter().collect::<Vec<_>>(), "{state}");
    }
}
