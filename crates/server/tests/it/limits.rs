//! The numbers of the manual hold: how large, how many, how long.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use journal::NewSession;
use model::SessionId;
use serde_json::json;
use server::{Exposure, Keys, Listen, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::auth::UPGRADE;
use crate::test_server::{PATIENCE, TestServer};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_body_and_a_prompt_have_their_lengths() {
    let test_server = TestServer::new().await;
    let token = test_server.bearer("first");
    let prompt =
        |length| json!({ "prompt": "x".repeat(length), "engine": "replay:tools" }).to_string();
    let padded = |length: usize| {
        let body = prompt(1);
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    for (body, status) in [
        (prompt(MIB), 202),
        (prompt(MIB + 1), 413),
        (padded(4 * MIB), 202),
        (padded(4 * MIB + 1), 413),
    ] {
        let answer = test_server
            .request("POST", "/api/runs", &token, &body)
            .await;
        assert_eq!(answer.status, status, "{} bytes: {answer:?}", body.len());
    }
}

#[tokio::test]
async fn a_message_has_its_length() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    let empty = json!({ "control": "echo", "payload": "" })
        .to_string()
        .len();
    let echo = |length: usize| json!({ "control": "echo", "payload": "x".repeat(length - empty) });
    socket.send(&echo(MIB)).await;
    let reply = socket.next_of("bridge.echo").await;
    assert_eq!(reply["payload"].as_str().unwrap().len(), MIB - empty);
    socket.send(&echo(MIB + 1)).await;
    let closed = loop {
        match timeout(PATIENCE, socket.socket.next()).await.unwrap() {
            Some(Ok(Message::Close(frame))) => break frame.unwrap().code,
            Some(Ok(_)) => (),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(closed, CloseCode::Size);
}

#[tokio::test]
async fn one_socket_follows_sixty_four_sessions() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    let mut replies = Vec::new();
    for n in 0..65 {
        let id = format!("s{n}");
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new(id.clone()),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        };
        test_server.journal.create(session).await.unwrap();
        let control = json!({ "control": "subscribe", "sessionId": id });
        replies.push(socket.call(control).await["type"].clone());
    }
    let mut expected = vec![json!("bridge.subscribed"); 64];
    expected.push(json!("bridge.error"));
    assert_eq!(replies, expected);
}

#[tokio::test]
async fn there_are_as_many_clients_as_there_may_be() {
    let test_server = TestServer::with(|it| it.max_clients = 3).await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(test_server.socket("", "watch").await);
    }
    let token = test_server.bearer("watch");
    let answer = test_server
        .request("GET", "/ws", &format!("{UPGRADE}{token}"), "")
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "too_many_clients")
    );
    // Who leaves makes room.
    drop(sockets.pop());
    let come = async {
        let bearer = format!("Bearer {}", test_server.token("watch"));
        while test_server
            .try_socket("", &[("Authorization", &bearer)])
            .await
            .is_err()
        {}
    };
    timeout(PATIENCE, come).await.unwrap();
    // Connections count as well: more of them wait until one is gone.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpStream::connect(test_server.address).await.unwrap());
    }
    let waiting = test_server.request("GET", "/healthz", "", "");
    tokio::pin!(waiting);
    let early = timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    held.pop();
    assert_eq!(timeout(PATIENCE, waiting).await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_do_not_exhaust_the_limit() {
    let test_server = TestServer::new().await;
    let mut known = TcpStream::connect(test_server.address).await.unwrap();
    let ask = format!(
        "GET /api/asks HTTP/1.1\r\nHost: {}\r\n{}\r\n",
        test_server.address,
        test_server.bearer("watch")
    );
    let mut buf = vec![0; 4096];
    known.write_all(ask.as_bytes()).await.unwrap();
    assert!(known.read(&mut buf).await.unwrap() > 0);
    let mut silent = Vec::new();
    for _ in 0..256 {
        silent.push(TcpStream::connect(test_server.address).await.unwrap());
    }
    // One more, and the one that has been there the longest is closed.
    assert_eq!(test_server.get("/api/asks").await.status, 200);
    let read = timeout(PATIENCE, silent[0].read(&mut buf)).await;
    assert_eq!(read.unwrap().unwrap(), 0);
    let still_open = timeout(Duration::from_millis(50), silent[255].read(&mut buf)).await;
    assert!(still_open.is_err(), "{still_open:?}");
    known.write_all(ask.as_bytes()).await.unwrap();
    let read = timeout(PATIENCE, known.read(&mut buf)).await;
    assert!(read.unwrap().unwrap() > 0);
}

#[tokio::test]
async fn a_short_token_is_looked_at_once_a_second_after_ten_wrong_ones() {
    let test_server = TestServer::with(|it| {
        let given = Some(Secret::new("hunter2"));
        it.listen = Listen::Tcp {
            address: "127.0.0.1:0".parse().unwrap(),
            keys: Keys::open(&it.data_dir, None, given).unwrap(),
        };
    })
    .await;
    let knock = async |token: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        let answer = test_server.request("GET", "/api/asks", &headers, "").await;
        answer.status
    };
    assert_eq!(knock("hunter2").await, 200);
    for _ in 0..10 {
        assert_eq!(knock("hunter1").await, 401);
    }
    assert_eq!(knock("hunter2").await, 429);
    // One that cannot be found by trying is never refused.
    let long = test_server.token("watch").to_owned();
    assert_eq!(knock(&long).await, 200);
    let began = std::time::Instant::now();
    while knock("hunter2").await != 200 {
        assert!(began.elapsed() < PATIENCE);
    }
    assert!(began.elapsed() > Duration::from_millis(500));
    assert_eq!(knock("hunter2").await, 429);
}

/// How long the server keeps a connection that sends these bytes and no more, and what it says.
async fn kept(address: SocketAddr, bytes: &str) -> (Duration, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let began = Instant::now();
    let mut heard = Vec::new();
    // Some are reset, because what they sent was not read.
    stream.read_to_end(&mut heard).await.ok();
    let heard = String::from_utf8_lossy(&heard).into_owned();
    (began.elapsed(), heard)
}

fn check_kept(kept: Duration, seconds: u64) {
    let range = Duration::from_secs(seconds)..Duration::from_secs(seconds + 2);
    assert!(range.contains(&kept), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_comes_in_time_or_not_at_all() {
    let test_server = TestServer::new().await;
    let host = test_server.address;
    for bytes in [
        String::new(),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n"),
    ] {
        let (time, heard) = kept(host, &bytes).await;
        check_kept(time, 30);
        assert!(!heard.contains(" 200 "), "{heard}");
    }
    let token = test_server.bearer("first");
    let head =
        format!("POST /api/runs HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n{token}\r\n{{");
    let (time, heard) = kept(host, &head).await;
    assert!(heard.contains("too_slow"), "{heard}");
    check_kept(time, 30);
}

#[tokio::test(start_paused = true)]
async fn encryption_begins_in_time_or_not_at_all() {
    let file = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls");
        std::path::Path::new(folder).join(name)
    };
    let test_server = TestServer::with(|it| {
        it.exposure = Exposure::Tls {
            cert: file("cert.pem"),
            key: file("key.pem"),
        };
    })
    .await;
    let (time, heard) = kept(test_server.address, "").await;
    check_kept(time, 5);
    assert_eq!(heard, "");
    // What is not encrypted is not answered.
    let (_, heard) = kept(test_server.address, "GET /healthz HTTP/1.1\r\n\r\n").await;
    assert!(!heard.contains("HTTP"), "{heard}");
}

/// Opens a WebSocket that never answers.
async fn deaf(test_server: &TestServer, query: &str) -> TcpStream {
    let mut stream = TcpStream::connect(test_server.address).await.unwrap();
    let (host, token) = (test_server.address, test_server.bearer("watch"));
    let upgrade = format!(
        "GET /ws{query} HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\n{UPGRADE}{token}\r\n"
    );
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected_after_a_minute() {
    let test_server = TestServer::new().await;
    let mut stream = deaf(&test_server, "").await;
    let began = Instant::now();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.ok();
    // The first look after a minute finds it.
    let kept = began.elapsed();
    let range = Duration::from_secs(60)..Duration::from_secs(82);
    assert!(range.contains(&kept), "{kept:?}");
    let n_pings = heard.windows(2).filter(|it| *it == [0x89, 0]).count();
    assert!((3..=4).contains(&n_pings), "{n_pings}");
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_ten_seconds_for_its_client() {
    let test_server = TestServer::new().await;
    let mut socket = test_server.socket("", "watch").await;
    let echo = json!({ "control": "echo", "payload": "x".repeat(MIB / 2) }).to_string();
    let began = Instant::now();
    // It says a lot and hears nothing, until its own words are not read any more.
    while socket.socket.send(Message::text(&*echo)).await.is_ok() {}
    check_kept(began.elapsed(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_waits_ten_seconds_for_clients() {
    let test_server = TestServer::new().await;
    let mut slow = TcpStream::connect(test_server.address).await.unwrap();
    let (host, token) = (test_server.address, test_server.bearer("first"));
    let head =
        format!("POST /api/runs HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n{token}\r\n{{");
    slow.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(test_server.get("/healthz").await.status, 200);
    let began = Instant::now();
    test_server.stop().await;
    check_kept(began.elapsed(), 10);
}

#[test]
fn the_manual_matches() {
    let manual = include_str!("../../../../docs/serve.md");
    for row in [
        "| a request's body | 4 MiB; 32 MiB from an AG-UI client |",
        "| a WebSocket message, a prompt | 1 MiB |",
        "| clients | 4096, of which at most 256 without a token, or a quarter of the files that the process may open if that is less |",
        "| sessions that one WebSocket follows individually | 64 |",
        "| the TLS handshake, a request's head, its body | 5 s, 30 s, 30 s |",
        "| an idle WebSocket | pinged every 20 s, closed after 60 s without an answer |",
        "| a client that stops reading | disconnected after 10 s |",
        "| shutdown | 10 s for clients, 20 s for runs |",
    ] {
        assert!(manual.contains(row), "docs/serve.md lacks: {row}");
    }
}
