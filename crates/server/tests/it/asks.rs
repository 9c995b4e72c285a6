//! What agents ask is answered once, whoever is faster and over whichever door.

use std::fs;

use model::Timestamp;
use serde_json::{Value, json};

use crate::ag_ui;
use crate::test_server::TestServer;

async fn wait_for_ask(test_server: &TestServer) -> (String, Value) {
    let id = test_server.ask_agent("ask").await;
    let session = test_server.until(&id, |it| it["state"] == "waiting").await;
    (id, session["asks"][0].clone())
}

#[tokio::test]
async fn an_ask_is_listed_and_its_answer_reaches_the_agent() {
    let test_server = TestServer::new().await;
    let (id, ask) = wait_for_ask(&test_server).await;
    assert_eq!(ask["data"]["tool"], "Bash");
    assert_eq!(ask["data"]["input"], json!({ "command": "ls" }));
    assert_eq!(ask["id"], format!("{id}:{}", ask["seq"]));
    assert_eq!(
        test_server.get("/api/asks").await.json(),
        json!({ "asks": [ask] })
    );
    let path = format!("/api/asks/{}", ask["id"].as_str().unwrap());
    let bad = test_server
        .post(&path, &json!({ "decision": "maybe" }))
        .await;
    assert_eq!(bad.code(), "bad_request");
    assert_eq!(
        test_server
            .post(&path, &json!({ "decision": "deny", "message": "no" }))
            .await
            .status,
        200
    );
    test_server.ended(&id, 1).await;
    let events = test_server
        .get(&format!("/api/sessions/{id}/events"))
        .await
        .body;
    let settled: Vec<Value> = events
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .filter(|it: &Value| it["type"] == "ask.settled")
        .collect();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["data"]["decision"], "denied");
    assert_eq!(
        test_server.get("/api/asks").await.json(),
        json!({ "asks": [] })
    );
    test_server.stop().await;
}

#[tokio::test]
async fn of_many_answers_one_is_taken() {
    let test_server = TestServer::new().await;
    let (id, ask) = wait_for_ask(&test_server).await;
    let ask = ask["id"].as_str().unwrap();
    let path = format!("/api/asks/{ask}");
    let mut socket = test_server.socket("?format=linkspan", "approve").await;
    let allow = json!({ "decision": "allow" });
    let deny = json!({ "decision": "deny" });
    let answers = tokio::join!(
        test_server.post(&path, &allow),
        test_server.post(&path, &deny),
        test_server.post(&path, &allow),
        test_server.post(&path, &deny),
        socket.call(json!({ "control": "ask.settle", "askId": ask, "decision": "allow" })),
    );
    let statuses = [
        answers.0.status,
        answers.1.status,
        answers.2.status,
        answers.3.status,
    ];
    let over_socket = usize::from(answers.4["type"] == "bridge.ask_settled");
    let taken = statuses.iter().filter(|it| **it == 200).count() + over_socket;
    let refused = statuses.iter().filter(|it| **it == 409).count()
        + usize::from(answers.4["code"] == "already_settled");
    assert_eq!((taken, refused), (1, 4));
    test_server.ended(&id, 1).await;
    let late = test_server.post(&path, &allow).await;
    assert_eq!(
        (late.status, late.code().as_str()),
        (409, "already_settled")
    );
    test_server.stop().await;
}

#[tokio::test]
async fn what_a_recording_asks_is_not_answered_by_anybody_else() {
    let test_server = TestServer::new().await;
    // A recording in which the answer comes an hour after the question.
    let engine = recording(&test_server, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": engine, "speed": 1 }))
        .await;
    let asks =
        async |test_server: &TestServer| test_server.get("/api/asks").await.json()["asks"].clone();
    test_server.until(&id, |it| it["state"] == "waiting").await;
    let before = asks(&test_server).await;
    let ask = before[0]["id"].as_str().unwrap();
    let mut socket = test_server.socket("", "approve").await;
    let words = "this ask belongs to a recording, which has its own answer";
    for decision in ["allow", "allow_always", "deny"] {
        let answer = json!({ "decision": decision });
        let refused = test_server.post(&format!("/api/asks/{ask}"), &answer).await;
        let expected = json!({ "error": { "code": "recorded_ask", "message": words } });
        assert_eq!((refused.status, refused.json()), (409, expected));
        let settle = json!({ "control": "ask.settle", "askId": ask, "decision": decision });
        let expected = json!({ "type": "bridge.error", "code": "recorded_ask", "message": words });
        assert_eq!(socket.call(settle).await, expected);
    }
    assert_eq!(asks(&test_server).await, before);
    let nothing = test_server
        .post(
            &format!("/api/asks/{id}:1"),
            &json!({ "decision": "allow" }),
        )
        .await;
    assert_eq!((nothing.status, &*nothing.code()), (404, "no_such_ask"));
    test_server.stop().await;
}

#[tokio::test]
async fn an_ag_ui_client_is_not_interrupted_by_what_a_recording_asks() {
    let test_server = TestServer::new().await;
    let (soon, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let engine = recording(&test_server, soon, later).replace('/', "%2F");
    let mut input = ag_ui::input("t", "r", json!([ag_ui::user("1", "x")]));
    input["forwardedProps"] = json!({ "linkspan": { "speed": 5 } });
    let events = test_server.run(&engine, &input).await;
    let asked = events.iter().filter(|it| it["name"] == "linkspan.ask");
    assert!(asked.count() > 0, "{events:#?}");
    let end = ag_ui::end(&events);
    assert_eq!(
        (&end["type"], &end["outcome"]["type"]),
        (&json!("RUN_FINISHED"), &json!("success")),
        "{end}"
    );
    test_server.stop().await;
}

/// The engine that plays a recording in which something is asked at `wait_for_ask` and answered at `answered`.
fn recording(test_server: &TestServer, asked: &str, answered: &str) -> String {
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "s", "timestamp": asked }),
        json!({ "type": "control_request", "request_id": "q", "timestamp": asked, "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
        } }),
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "done",
            "session_id": "s", "timestamp": answered }),
    ];
    let path = test_server.dir.path().join("recording.jsonl");
    fs::write(&path, lines.map(|it| format!("{it}\n")).concat()).unwrap();
    format!("replay:{}", path.display())
}

#[tokio::test]
async fn an_ask_tells_until_when_it_waits() {
    let test_server = TestServer::with_settings("ask_timeout = 3600").await;
    let mut socket = test_server.socket("?format=thread", "watch").await;
    let (_, ask) = wait_for_ask(&test_server).await;
    let at = Timestamp::parse(ask["at"].as_str().unwrap()).unwrap();
    let deadline = json!({ "at": at.plus_millis(3_600_000).to_string(), "decision": "denied" });
    assert_eq!(ask["data"]["deadline"], deadline);
    let pushed = socket.next_of("bridge.ask").await;
    assert_eq!(pushed["deadline"], deadline);
    test_server.stop().await;
}

#[tokio::test]
async fn a_recording_is_not_replied_to() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "play", "engine": "replay:tools" }))
        .await;
    let ended = test_server.ended(&id, 1).await;
    let refused = json!({
        "code": "recording",
        "message": format!("session `{id}` is a recording: it can be watched, but not replied to"),
        "hint": "a prompt for the engine `replay:tools` without a session plays it again",
    });
    let native = &ended["native"];
    for target in [
        json!({ "session": id }),
        json!({ "fork": id }),
        json!({ "resume": native, "engine": "replay:tools" }),
    ] {
        let mut body = target.clone();
        body["prompt"] = "and now?".into();
        let answer = test_server.post("/api/runs", &body).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (409, &refused),
            "{target}"
        );
    }
    let mut socket = test_server.socket("", "prompt").await;
    let submit = json!({ "control": "run.submit", "text": "and now?", "sessionId": id });
    let answer = socket.call(submit).await;
    assert_eq!(answer["code"], "recording");
    let after = test_server.get(&format!("/api/sessions/{id}")).await.json();
    assert_eq!(
        (&after["runs"], &after["queue"]),
        (&ended["runs"], &json!([]))
    );
    test_server.stop().await;
}
