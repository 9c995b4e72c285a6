//! A prompt that is sent again with the same key is run once.

use serde_json::{Value, json};
use tokio::join;

use crate::test_server::{Answer, TestServer};

async fn send(test_server: &TestServer, role: &str, key: &str, body: &Value) -> Answer {
    let headers = format!("{}Idempotency-Key: {key}\r\n", test_server.bearer(role));
    let body = body.to_string();
    test_server
        .request("POST", "/api/runs", &headers, &body)
        .await
}

async fn n_sessions(test_server: &TestServer) -> usize {
    let page = test_server.get("/api/sessions").await.json();
    page["sessions"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_prompt_with_a_key_is_run_once() {
    let test_server = TestServer::new().await;
    let prompt = json!({ "prompt": "x", "engine": "replay:tools" });
    // At once, and later.
    let (first, second) = join!(
        send(&test_server, "prompt", "k", &prompt),
        send(&test_server, "prompt", "k", &prompt)
    );
    let third = send(&test_server, "prompt", "k", &prompt).await;
    assert_eq!((first.status, second.status, third.status), (202, 202, 202));
    assert_eq!(first.json(), second.json());
    assert_eq!(first.json(), third.json());
    let is_marked = |it: &Answer| it.head.contains("idempotent-replayed: true");
    assert_ne!(is_marked(&first), is_marked(&second));
    assert!(is_marked(&third));
    assert_eq!(n_sessions(&test_server).await, 1);
    let id = first.json()["session"].as_str().unwrap().to_owned();
    let session = test_server.ended(&id, 1).await;
    assert_eq!(session["runs"].as_array().unwrap().len(), 1);

    let other = json!({ "prompt": "y", "engine": "replay:tools" });
    let refused = send(&test_server, "prompt", "k", &other).await;
    assert_eq!((refused.status, &*refused.code()), (409, "key_reused"));
    assert_eq!(n_sessions(&test_server).await, 1);
    // The keys of another token are others, and so is every prompt without one.
    assert_eq!(send(&test_server, "approve", "k", &other).await.status, 202);
    assert_eq!(test_server.post("/api/runs", &prompt).await.status, 202);
    assert_eq!(test_server.post("/api/runs", &prompt).await.status, 202);
    assert_eq!(n_sessions(&test_server).await, 4);
    test_server.stop().await;
}

#[tokio::test]
async fn a_refused_prompt_leaves_its_key_free_and_a_bad_key_is_refused() {
    let test_server = TestServer::new().await;
    let wrong = json!({ "prompt": "x", "engine": "none" });
    assert_eq!(send(&test_server, "prompt", "k", &wrong).await.status, 400);
    let right = json!({ "prompt": "x", "engine": "replay:tools" });
    assert_eq!(send(&test_server, "prompt", "k", &right).await.status, 202);
    for key in ["", &*"x".repeat(256), "\u{e9}", "a\r\nIdempotency-Key: b"] {
        let refused = send(&test_server, "prompt", key, &right).await;
        assert_eq!((refused.status, &*refused.code()), (400, "bad_request"));
    }
    assert_eq!(n_sessions(&test_server).await, 1);
    test_server.stop().await;
}

#[tokio::test]
async fn the_bridge_runs_a_repeated_request_once() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("?subscribe=none", "prompt").await;
    let submit = |text: &str, request: Value| {
        json!({
            "control": "run.submit", "text": text, "provider": "replay:tools", "requestId": request,
        })
    };
    let mut replies = Vec::new();
    for (text, request) in [
        ("x", json!("a")),
        ("x", json!("a")),
        ("y", json!("a")),
        ("x", json!(7)),
    ] {
        socket.send(&submit(text, request.clone())).await;
        loop {
            let reply = socket.next().await.unwrap();
            if reply["requestId"] == request {
                replies.push(reply);
                break;
            }
        }
    }
    let mut repeated = replies[0].clone();
    repeated["repeated"] = json!(true);
    assert_eq!(replies[1], repeated);
    assert_eq!(
        (&replies[2]["type"], &replies[2]["code"]),
        (&json!("bridge.error"), &json!("key_reused"))
    );
    assert_ne!(replies[3]["sessionId"], replies[0]["sessionId"]);
    assert_eq!(n_sessions(&test_server).await, 2);

    // Another connection counts anew: the same `requestId` is another prompt there, unless it has a key.
    let mut other = test_server.socket("?subscribe=none", "prompt").await;
    let keyed = json!({
        "control": "run.submit", "text": "z", "provider": "replay:tools", "idempotencyKey": "k",
    });
    let first = socket.call(keyed.clone()).await;
    let mut again = other.call(keyed).await;
    assert_eq!(again["repeated"], true);
    again.as_object_mut().unwrap().remove("repeated");
    assert_eq!(again, first);
    assert_eq!(n_sessions(&test_server).await, 3);
    other.send(&submit("x", json!("a"))).await;
    let reply = other.next_of("bridge.run_submit").await;
    assert_ne!(reply["sessionId"], replies[0]["sessionId"]);
    assert_eq!(n_sessions(&test_server).await, 4);
    test_server.stop().await;
}
