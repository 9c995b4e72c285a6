//! What agents ask is answered once, whoever is faster and over whichever door.

use serde_json::{Value, json};

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
