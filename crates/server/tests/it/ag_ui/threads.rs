//! Coming back to a run, and coming late to a thread.

use std::sync::Arc;

use formats::ag_ui::{PROTO_TYPE, proto};
use futures_util::future::join_all;
use journal::{Config, Sqlite, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{end, events, ids, input, types, user};
use crate::test_server::TestServer;

#[tokio::test]
async fn the_same_run_again_is_the_same_run() {
    let test_server = TestServer::new().await;
    let request = input("t", "r1", json!([user("m1", "go")]));
    let first = test_server.run("replay:tools", &request).await;
    let again = test_server.run("replay:tools", &request).await;
    assert_eq!(first, again);
    let sessions = test_server.get("/api/sessions").await.json();
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    let detail = test_server.get(&format!("/api/sessions/{id}")).await.json();
    assert_eq!(detail["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_run_asked_for_at_once_is_one_run() {
    // A journal that takes its time, as the real one does.
    let dir = TempDir::new().unwrap();
    let config = Config {
        clock: Arc::new(SystemClock::default()),
        cut: None,
    };
    let journal = Sqlite::open(&dir.path().join("journal.db"), config).await;
    let journal = Arc::new(journal.unwrap());
    let test_server = TestServer::with(|config| config.hub.journal = journal).await;
    for n in 0..8 {
        let thread = format!("t{n}");
        let request = input(&thread, "r1", json!([user("m1", "hello")]));
        let told = join_all((0..8).map(|_| test_server.run("claude", &request))).await;
        for events in &told {
            assert_eq!(events, &told[0], "{thread}");
        }
    }
    let sessions = test_server.get("/api/sessions").await.json();
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let detail = test_server.get(&format!("/api/sessions/{id}")).await.json();
        assert_eq!(detail["runs"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn last_event_id_resumes_the_stream() {
    let test_server = TestServer::new().await;
    let request = input("t", "r1", json!([user("m1", "go")]));
    let whole = test_server.post("/ag-ui/replay:tools", &request).await;
    let (all, cursors) = (events(&whole), ids(&whole));
    assert_eq!(
        all.len(),
        cursors.len() + 1,
        "all but RUN_STARTED have an id"
    );
    for (n, cursor) in cursors.iter().enumerate() {
        let headers = format!("{}Last-Event-ID: {cursor}\r\n", test_server.bearer("first"));
        let rest = test_server
            .request(
                "POST",
                "/ag-ui/replay:tools",
                &headers,
                &request.to_string(),
            )
            .await;
        assert_eq!(events(&rest), all[n + 2..], "after {cursor}");
    }
    let headers = format!("{}Last-Event-ID: x\r\n", test_server.bearer("first"));
    let wrong = test_server
        .request(
            "POST",
            "/ag-ui/replay:tools",
            &headers,
            &request.to_string(),
        )
        .await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn a_late_client_gets_the_thread() {
    let test_server = TestServer::new().await;
    test_server
        .run("claude", &input("t", "r1", json!([user("m1", "hello")])))
        .await;
    let late = test_server
        .run("claude", &input("t", "r2", json!([])))
        .await;
    assert_eq!(
        types(&late),
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    );
    let messages = late[1]["messages"].as_array().unwrap();
    let told: Vec<(&str, &str)> = messages
        .iter()
        .map(|it| {
            (
                it["role"].as_str().unwrap(),
                it["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("user", "hello"), ("assistant", "done")]);
}

#[tokio::test]
async fn a_client_that_joins_during_a_run_gets_its_state() {
    let test_server = TestServer::new().await;
    let asked = test_server
        .run("claude", &input("t", "r1", json!([user("m1", "hello")])))
        .await;
    end(&asked);
    let request = input("t", "r2", json!([user("m2", "wait")]));
    let running = test_server.run("claude", &request);
    let late = async {
        loop {
            let sessions = test_server.get("/api/sessions").await.json();
            if sessions["sessions"][0]["state"] == "running" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let join = input("t", "r3", json!([]));
        let joined = test_server.run("claude", &join);
        let abort = async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            test_server
                .post("/ag-ui/claude/abort", &json!({ "threadId": "t" }))
                .await;
        };
        tokio::join!(joined, abort).0
    };
    let (running, late) = tokio::join!(running, late);
    assert_eq!(end(&running)["outcome"]["type"], "cancelled");
    assert_eq!(end(&late)["outcome"]["type"], "cancelled");
    assert_eq!(late[1]["type"], "MESSAGES_SNAPSHOT");
    let prompts: Vec<&Value> = late.iter().filter(|it| it["role"] == "user").collect();
    assert_eq!(prompts.len(), 1, "the prompt that runs is news to it");
}

#[tokio::test]
async fn two_engines_and_two_threads_are_kept_apart() {
    let test_server = TestServer::new().await;
    for (engine, thread) in [("claude", "a"), ("claude", "b"), ("replay:tools", "a")] {
        let request = input(thread, "r", json!([user("m", "hello")]));
        end(&test_server.run(engine, &request).await);
    }
    let sessions = test_server.get("/api/sessions").await.json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn protobuf_is_sent_on_request() {
    let test_server = TestServer::new().await;
    let request = input("t", "r1", json!([user("m1", "go")]));
    let accept = |kind: &str| format!("{}Accept: {kind}\r\n", test_server.bearer("first"));
    let proto = "application/vnd.ag-ui.event+proto";
    let rows = [("*/*", "text/event-stream"), (proto, proto)];
    for (accepted, kind) in rows {
        let answer = test_server
            .request(
                "POST",
                "/ag-ui/replay:tools",
                &accept(accepted),
                &request.to_string(),
            )
            .await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.head.contains(&format!("content-type: {kind}")),
            "{}",
            answer.head
        );
    }
}

#[tokio::test]
async fn protobuf_and_text_are_equal() {
    let test_server = TestServer::new().await;
    let body = input("t", "r1", json!([user("m1", "go")])).to_string();
    let told = test_server
        .run("replay:tools", &serde_json::from_str(&body).unwrap())
        .await;
    // The old version of HTTP has no chunks.
    let request = format!(
        "POST /ag-ui/replay:tools HTTP/1.0\r\nHost: {}\r\nAccept: {PROTO_TYPE}\r\nContent-Length: {}\r\n{}\r\n{body}",
        test_server.address,
        body.len(),
        test_server.bearer("first")
    );
    let mut stream = TcpStream::connect(test_server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let head = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    // The encoder is held against the vendor's own elsewhere.
    let mut expected = Vec::new();
    for event in &told {
        assert!(proto::encode(event.to_string().as_bytes(), &mut expected));
    }
    assert_eq!(answer[head + 4..], expected);
}

#[tokio::test]
async fn the_thinking_profile_can_be_chosen() {
    let test_server = TestServer::new().await;
    let request = input("t", "r1", json!([user("m1", "go")]));
    let events = test_server
        .run("replay:tools?profile=thinking", &request)
        .await;
    assert!(!types(&events).iter().any(|it| it.starts_with("REASONING")));
    end(&events);
}

#[tokio::test]
async fn an_abort_names_a_thread() {
    let test_server = TestServer::new().await;
    for thread in ["", "a\nb", &"x".repeat(513)] {
        let body = json!({ "threadId": thread });
        let answer = test_server.post("/ag-ui/replay:tools/abort", &body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "bad_input"),
            "{thread:?}"
        );
    }
    let body = json!({ "threadId": "none" });
    let answer = test_server.post("/ag-ui/replay:tools/abort", &body).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({ "aborted": false }))
    );
}
