//! Clients that do not read: nobody waits for them, and they lose nothing.

use std::fs;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::test_server::{PATIENCE, Socket, TestServer};

/// More than the hub keeps for anybody, and more than sockets hold.
const N_NOTICES: usize = 12_000;

/// A recording of a run that says a lot.
fn recording(test_server: &TestServer) -> String {
    let event = |seq: usize, kind: &str, data: &Value| {
        format!(
            r#"{{"v":1,"seq":{seq},"session":"s","run":"r1","engine":"claude","origin":"agent","frame":{seq},"type":"{kind}","data":{data}}}"#
        ) + "\n"
    };
    let mut text = event(1, "run.started", &json!({ "cause": "prompt" }));
    let words = "x".repeat(2000);
    for seq in 2..N_NOTICES + 2 {
        let notice = json!({ "level": "info", "code": "note", "text": words });
        text.push_str(&event(seq, "notice.raised", &notice));
    }
    let end = json!({ "outcome": "completed" });
    text.push_str(&event(N_NOTICES + 2, "run.ended", &end));
    let path = test_server.dir.path().join("long.jsonl");
    fs::write(&path, text).unwrap();
    format!("replay:{}", path.display())
}

/// The numbers of the events that come, until the run ends or the server hangs up.
async fn receive(socket: &mut Socket, heard: &mut Vec<u64>) -> bool {
    while let Some(message) = socket.next().await {
        if let Some(seq) = message["seq"].as_u64() {
            heard.push(seq);
        }
        if message["type"] == "run.ended" {
            return true;
        }
    }
    false
}

/// Comes back with its cursor, as often as it takes.
async fn come_back(test_server: &TestServer, id: &str, heard: &mut Vec<u64>) {
    loop {
        let mut socket = test_server.socket("?format=linkspan", "watch").await;
        let since = heard.last().copied().unwrap_or(0);
        let control = json!({ "control": "subscribe", "sessionId": id, "since": since });
        socket.send(&control).await;
        // What comes before the answer is for everybody.
        socket.next_of("bridge.subscribed").await;
        if receive(&mut socket, heard).await {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_is_let_go_and_comes_back_without_loss() {
    let test_server = TestServer::new().await;
    let engine = recording(&test_server);
    let mut stopped = test_server.socket("?format=linkspan", "watch").await;
    stopped.call(json!({ "control": "echo" })).await;
    let prompt = json!({ "prompt": "x", "engine": engine });
    let id = test_server.submit(prompt).await;
    let mut other = Vec::new();
    let followed = timeout(PATIENCE, come_back(&test_server, &id, &mut other)).await;
    followed.expect("somebody waits for the client that does not read");
    let head = test_server.ended(&id, 1).await["head"].as_u64().unwrap();
    let whole: Vec<u64> = (1..=head).collect();
    assert_eq!(other, whole);
    // What was under way when it stopped is still there; then the server has let go of it.
    let mut heard = Vec::new();
    let is_end = timeout(PATIENCE, receive(&mut stopped, &mut heard)).await;
    assert!(!is_end.unwrap(), "nothing is kept for it");
    assert!(heard.len() < whole.len());
    let back = timeout(PATIENCE, come_back(&test_server, &id, &mut heard)).await;
    back.unwrap();
    assert_eq!(heard, whole);
}
