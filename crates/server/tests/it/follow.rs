//! Following by cursor over real sockets: nothing is lost, nothing comes twice.

use formats::registry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::test_server::{PATIENCE, TestServer};

/// How often clients of a format leave and come back, all formats together.
const N_LEAVES: usize = 1000;

/// Numbers that look like chance, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn cursor(message: &Value) -> Value {
    match message.get("cursor") {
        Some(cursor) => cursor.clone(),
        None => message["seq"].clone(),
    }
}

fn is_event(message: &Value) -> bool {
    let kind = message["type"].as_str().unwrap_or_default();
    !kind.starts_with("bridge.") || kind == "bridge.event"
}

/// Everything after `since`, as far as a client hears it before it leaves after `n` events.
async fn receive(
    test_server: &TestServer,
    format: &str,
    id: &str,
    since: &Value,
    n: usize,
) -> (Vec<Value>, bool) {
    let mut socket = test_server
        .socket(&format!("?format={format}"), "watch")
        .await;
    let subscribe = json!({ "control": "subscribe", "sessionId": id, "since": since });
    socket.send(&subscribe).await;
    let mut heard = Vec::new();
    let mut is_subscribed = false;
    while heard.len() < n {
        let message = socket.next().await.unwrap();
        match message["type"].as_str().unwrap_or_default() {
            "bridge.subscribed" => is_subscribed = true,
            "bridge.caught_up" => return (heard, true),
            // What came before was for everybody.
            _ if is_subscribed && is_event(&message) => heard.push(message),
            _ => (),
        }
    }
    (heard, false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_disconnects_do_not_change_what_others_receive() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    let mut dice = Dice(7);
    let mut n_leaves = 0;
    for format in registry::live_formats().map(|it| it.name).cycle() {
        let (whole, _) = receive(&test_server, format, &id, &json!(0), usize::MAX).await;
        assert!(whole.len() > 5, "{format}");
        let mut heard: Vec<Value> = Vec::new();
        loop {
            let since = heard.last().map_or(json!(0), cursor);
            let n = 1 + usize::try_from(dice.roll(6)).unwrap();
            let (more, is_end) = receive(&test_server, format, &id, &since, n).await;
            heard.extend(more);
            n_leaves += 1;
            if is_end {
                break;
            }
        }
        assert_eq!(heard, whole, "{format}");
        if n_leaves >= N_LEAVES {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconnecting_client_sees_what_the_others_see() {
    let test_server = TestServer::new().await;
    let mut faithful = test_server.socket("?format=thread", "watch").await;
    faithful.call(json!({ "control": "echo" })).await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools", "speed": 20 }))
        .await;
    let mut dice = Dice(11);
    let mut heard: Vec<Value> = Vec::new();
    let is_end = |it: &Value| it["type"] == "turn.completed";
    while !heard.iter().any(is_end) {
        let mut socket = test_server.socket("?format=thread", "watch").await;
        let since = heard.last().map_or(json!(0), cursor);
        socket
            .call(json!({ "control": "subscribe", "sessionId": id, "since": since }))
            .await;
        for _ in 0..=dice.roll(4) {
            let Some(message) = socket.next().await else {
                break;
            };
            if is_event(&message) {
                heard.push(message);
            }
            if heard.last().is_some_and(is_end) {
                break;
            }
        }
    }
    let mut whole = Vec::new();
    while !whole.iter().any(is_end) {
        let message = faithful.next().await.unwrap();
        if is_event(&message) {
            whole.push(message);
        }
    }
    assert_eq!(heard, whole);
}

/// The events of an SSE stream until `n` of them were there, each as its id and data.
async fn sse(
    test_server: &TestServer,
    path: &str,
    last: Option<&str>,
    n: usize,
) -> Vec<(String, String)> {
    let mut stream = TcpStream::connect(test_server.address).await.unwrap();
    let last = last.map_or(String::new(), |it| format!("Last-Event-ID: {it}\r\n"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{}{last}\r\n",
        test_server.address,
        test_server.bearer("watch"),
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buf = vec![0; 1 << 16];
    loop {
        let read = timeout(PATIENCE, stream.read(&mut buf))
            .await
            .unwrap()
            .unwrap();
        text.push_str(str::from_utf8(&buf[..read]).unwrap());
        // Lengths of chunks are lines of their own, which is good enough to pass them over.
        let events: Vec<(String, String)> = text
            .split("id: ")
            .skip(1)
            .filter_map(|it| {
                let (id, rest) = it.split_once("\ndata: ")?;
                let (data, _) = rest.split_once("\n\n")?;
                Some((id.to_owned(), data.to_owned()))
            })
            .collect();
        if events.len() >= n {
            return events[..n].to_vec();
        }
        assert!(read > 0, "it ended early: {text}");
    }
}

#[tokio::test]
async fn a_reconnecting_browser_resumes_at_its_cursor() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    for (format, n) in [("linkspan", 40), ("thread", 12), ("ag-ui", 40)] {
        let path = format!("/api/sessions/{id}/events?format={format}");
        let whole = sse(&test_server, &path, None, n).await;
        for cut in 1..n - 1 {
            let rest = sse(&test_server, &path, Some(&whole[cut - 1].0), n - cut).await;
            assert_eq!(rest, whole[cut..], "{format} {cut}");
        }
    }
}

#[tokio::test]
async fn line_exports_resume_within_an_event() {
    let test_server = TestServer::new().await;
    let id = test_server
        .submit(json!({ "prompt": "x", "engine": "replay:tools" }))
        .await;
    test_server.ended(&id, 1).await;
    let path = format!("/api/sessions/{id}/events?format=acp");
    let whole = test_server.get(&path).await.body;
    let live = sse(&test_server, &path, None, whole.lines().count()).await;
    assert_eq!(
        whole.lines().collect::<Vec<_>>(),
        live.iter().map(|it| &*it.1).collect::<Vec<_>>()
    );
    for (n, (cursor, _)) in live.iter().enumerate() {
        let rest = test_server
            .get(&format!("{path}&after={cursor}"))
            .await
            .body;
        let expected: Vec<&str> = whole.lines().skip(n + 1).collect();
        assert_eq!(rest.lines().collect::<Vec<_>>(), expected, "{cursor}");
    }
}
