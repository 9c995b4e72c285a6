//! What agents ask is answered once, whoever is faster and over whichever door.

use std::fs;

use model::Timestamp;
use serde_json::{Value, json};

use crate::ag_ui;
use crate::house::House;

async fn asked(house: &House) -> (String, Value) {
    let id = house.ask_agent("ask").await;
    let session = house.until(&id, |it| it["state"] == "waiting").await;
    (id, session["asks"][0].clone())
}

#[tokio::test]
async fn an_ask_is_listed_and_its_answer_reaches_the_agent() {
    let house = House::new().await;
    let (id, ask) = asked(&house).await;
    assert_eq!(ask["data"]["tool"], "Bash");
    assert_eq!(ask["data"]["input"], json!({ "command": "ls" }));
    assert_eq!(ask["id"], format!("{id}:{}", ask["seq"]));
    assert_eq!(
        house.get("/api/asks").await.json(),
        json!({ "asks": [ask] })
    );
    let path = format!("/api/asks/{}", ask["id"].as_str().unwrap());
    let bad = house.post(&path, &json!({ "decision": "maybe" })).await;
    assert_eq!(bad.code(), "bad_request");
    assert_eq!(
        house
            .post(&path, &json!({ "decision": "deny", "message": "no" }))
            .await
            .status,
        200
    );
    house.ended(&id, 1).await;
    let events = house.get(&format!("/api/sessions/{id}/events")).await.body;
    let settled: Vec<Value> = events
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .filter(|it: &Value| it["type"] == "ask.settled")
        .collect();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0]["data"]["decision"], "denied");
    assert_eq!(house.get("/api/asks").await.json(), json!({ "asks": [] }));
    house.stop().await;
}

#[tokio::test]
async fn of_many_answers_one_is_taken() {
    let house = House::new().await;
    let (id, ask) = asked(&house).await;
    let ask = ask["id"].as_str().unwrap();
    let path = format!("/api/asks/{ask}");
    let mut socket = house.socket("?format=linkspan", "approve").await;
    let allow = json!({ "decision": "allow" });
    let deny = json!({ "decision": "deny" });
    let answers = tokio::join!(
        house.post(&path, &allow),
        house.post(&path, &deny),
        house.post(&path, &allow),
        house.post(&path, &deny),
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
    house.ended(&id, 1).await;
    let late = house.post(&path, &allow).await;
    assert_eq!(
        (late.status, late.code().as_str()),
        (409, "already_settled")
    );
    house.stop().await;
}

#[tokio::test]
async fn what_a_recording_asks_is_not_answered_by_anybody_else() {
    let house = House::new().await;
    // A recording in which the answer comes an hour after the question.
    let engine = recording(&house, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    let id = house
        .submit(json!({ "prompt": "x", "engine": engine, "speed": 1 }))
        .await;
    let asks = async |house: &House| house.get("/api/asks").await.json()["asks"].clone();
    house.until(&id, |it| it["state"] == "waiting").await;
    let before = asks(&house).await;
    let ask = before[0]["id"].as_str().unwrap();
    let mut socket = house.socket("", "approve").await;
    let words = "this ask belongs to a recording, which has its own answer";
    for decision in ["allow", "allow_always", "deny"] {
        let answer = json!({ "decision": decision });
        let refused = house.post(&format!("/api/asks/{ask}"), &answer).await;
        let expected = json!({ "error": { "code": "recorded_ask", "message": words } });
        assert_eq!((refused.status, refused.json()), (409, expected));
        let settle = json!({ "control": "ask.settle", "askId": ask, "decision": decision });
        let expected = json!({ "type": "bridge.error", "code": "recorded_ask", "message": words });
        assert_eq!(socket.call(settle).await, expected);
    }
    assert_eq!(asks(&house).await, before);
    let nothing = house
        .post(
            &format!("/api/asks/{id}:1"),
            &json!({ "decision": "allow" }),
        )
        .await;
    assert_eq!((nothing.status, &*nothing.code()), (404, "no_such_ask"));
    house.stop().await;
}

#[tokio::test]
async fn an_ag_ui_client_is_not_interrupted_by_what_a_recording_asks() {
    let house = House::new().await;
    let (soon, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let engine = recording(&house, soon, later).replace('/', "%2F");
    let mut input = ag_ui::input("t", "r", json!([ag_ui::user("1", "x")]));
    input["forwardedProps"] = json!({ "linkspan": { "speed": 5 } });
    let events = house.run(&engine, &input).await;
    let asked = events.iter().filter(|it| it["name"] == "linkspan.ask");
    assert!(asked.count() > 0, "{events:#?}");
    let end = ag_ui::end(&events);
    assert_eq!(
        (&end["type"], &end["outcome"]["type"]),
        (&json!("RUN_FINISHED"), &json!("success")),
        "{end}"
    );
    house.stop().await;
}

/// The engine that plays a recording in which something is asked at `asked` and answered at `answered`.
fn recording(house: &House, asked: &str, answered: &str) -> String {
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "s", "timestamp": asked }),
        json!({ "type": "control_request", "request_id": "q", "timestamp": asked, "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
        } }),
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "done",
            "session_id": "s", "timestamp": answered }),
    ];
    let path = house.dir.path().join("recording.jsonl");
    fs::write(&path, lines.map(|it| format!("{it}\n")).concat()).unwrap();
    format!("replay:{}", path.display())
}

#[tokio::test]
async fn an_ask_tells_until_when_it_waits() {
    let house = House::with_settings("ask_timeout = 3600").await;
    let mut socket = house.socket("?format=thread", "watch").await;
    let (_, ask) = asked(&house).await;
    let at = Timestamp::parse(ask["at"].as_str().unwrap()).unwrap();
    let deadline = json!({ "at": at.plus_millis(3_600_000).to_string(), "decision": "denied" });
    assert_eq!(ask["data"]["deadline"], deadline);
    let pushed = socket.next_of("bridge.ask").await;
    assert_eq!(pushed["deadline"], deadline);
    house.stop().await;
}

#[tokio::test]
async fn a_recording_is_not_replied_to() {
    let house = House::new().await;
    let id = house
        .submit(json!({ "prompt": "play", "engine": "replay:tools" }))
        .await;
    let ended = house.ended(&id, 1).await;
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
        let answer = house.post("/api/runs", &body).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (409, &refused),
            "{target}"
        );
    }
    let mut socket = house.socket("", "prompt").await;
    let submit = json!({ "control": "run.submit", "text": "and now?", "sessionId": id });
    let answer = socket.call(submit).await;
    assert_eq!(answer["code"], "recording");
    let after = house.get(&format!("/api/sessions/{id}")).await.json();
    assert_eq!(
        (&after["runs"], &after["queue"]),
        (&ended["runs"], &json!([]))
    );
    house.stop().await;
}
