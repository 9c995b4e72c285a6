//! AG-UI clients at the door: agents and models, threads and runs, questions and answers.

mod agents;
mod chains;
mod models;
mod threads;

use serde_json::{Value, json};

use crate::test_server::{Answer, TestServer};

/// A request of a client, as the real one sends it.
pub(crate) fn input(thread: &str, run: &str, messages: Value) -> Value {
    json!({
        "threadId": thread, "runId": run, "messages": messages, "protocolVersion": "1.0",
        "tools": [], "context": [], "forwardedProps": {}, "state": {},
    })
}

/// What the user says.
pub(crate) fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

impl TestServer {
    /// The events of a run.
    pub(crate) async fn run(&self, engine: &str, input: &Value) -> Vec<Value> {
        let answer = self.post(&format!("/ag-ui/{engine}"), input).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        events(&answer)
    }
}

/// The events in an answer.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let lines = answer.body.lines();
    let data = lines.filter_map(|it| it.strip_prefix("data: "));
    data.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The ids of the events, as the lines before them say.
pub(crate) fn ids(answer: &Answer) -> Vec<String> {
    let lines = answer.body.lines();
    let ids = lines.filter_map(|it| it.strip_prefix("id: "));
    ids.map(str::to_owned).collect()
}

pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect()
}

/// All that the model said.
pub(crate) fn texts(events: &[Value]) -> String {
    let content = events
        .iter()
        .filter(|it| it["type"] == "TEXT_MESSAGE_CONTENT");
    content.map(|it| it["delta"].as_str().unwrap()).collect()
}

/// The one end of a run, after checking that it is one.
pub(crate) fn end(events: &[Value]) -> &Value {
    let is_end = |it: &&Value| it["type"] == "RUN_FINISHED" || it["type"] == "RUN_ERROR";
    assert_eq!(events.iter().filter(is_end).count(), 1, "{events:#?}");
    assert_eq!(events[0]["type"], "RUN_STARTED", "{events:#?}");
    events.last().filter(is_end).unwrap()
}
