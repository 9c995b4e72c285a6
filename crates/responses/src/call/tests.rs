//! Requests to endpoints that misbehave, over real sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use formats::History;

use super::*;
use crate::endpoint::tests::endpoint;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {}\n\n";

/// An endpoint that does with each connection what `answer` does, and how many there were.
fn serve(answer: fn(usize, &mut TcpStream)) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let n_asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let n = counted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                // The head and the body come in one piece, or soon after each other.
                let n_read = stream.read(&mut [0; 65536]).unwrap();
                assert!(n_read > 0);
                answer(n, &mut stream);
            });
        }
    });
    (url, n_asked)
}

fn say(stream: &mut TcpStream, text: &str) {
    // Whoever has hung up already hears nothing.
    stream.write_all(text.as_bytes()).ok();
}

fn call(url: &str, patience: Duration) -> Call {
    let mut endpoint = endpoint(url);
    endpoint.limits.first_byte = patience;
    endpoint.limits.idle = patience;
    endpoint.max_retries = 1;
    let conversation = Conversation::of_prompt("t", History::default(), "hi");
    Call::new(&endpoint, &conversation).unwrap()
}

/// The text of an answer, its notices and its end.
async fn ask(url: &str) -> (String, Vec<&'static str>, Result<(), CallError>) {
    let mut call = call(url, Duration::from_millis(300));
    let (mut text, mut notices) = (String::new(), Vec::new());
    loop {
        match call.next().await {
            CallEvent::Bytes(bytes) => text.push_str(str::from_utf8(&bytes).unwrap()),
            CallEvent::Notice(code, _) => notices.push(code),
            CallEvent::End(end) => return (text, notices, end),
        }
    }
}

fn code(end: Result<(), CallError>) -> String {
    end.expect_err("it went well").code
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let (other, n_asked) = serve(|_, stream| say(stream, STREAM));
    static ELSEWHERE: OnceLock<String> = OnceLock::new();
    ELSEWHERE.set(other).unwrap();
    let (url, _) = serve(|_, stream| {
        let place = ELSEWHERE.get().unwrap();
        say(
            stream,
            &format!(
                "HTTP/1.1 307 Away\r\nlocation: {place}/v1/responses\r\ncontent-length: 0\r\n\r\n"
            ),
        );
    });
    let (_, _, end) = ask(&url).await;
    assert_eq!(code(end), "redirected");
    assert_eq!(n_asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn silence_has_its_limits() {
    let (url, _) = serve(|_, _| thread::sleep(Duration::from_secs(5)));
    let (_, _, end) = ask(&url).await;
    assert_eq!(code(end), "first_byte_timeout");
    let (url, n_asked) = serve(|_, stream| {
        say(stream, STREAM);
        thread::sleep(Duration::from_secs(5));
    });
    let (text, _, end) = ask(&url).await;
    assert_eq!(
        (text.as_str(), code(end).as_str()),
        ("data: {}\n\n", "idle_timeout")
    );
    assert_eq!(
        n_asked.load(Ordering::SeqCst),
        1,
        "what has begun is not begun again"
    );
}

#[tokio::test]
async fn silence_counts_while_no_one_polls() {
    let (slow, _) = serve(|_, stream| {
        thread::sleep(Duration::from_millis(900));
        say(stream, HEAD);
        thread::sleep(Duration::from_secs(8));
    });
    let (mute, _) = serve(|_, stream| {
        say(stream, STREAM);
        thread::sleep(Duration::from_secs(8));
    });
    for (url, expected) in [(slow, "first_byte_timeout"), (mute, "idle_timeout")] {
        let mut call = call(&url, Duration::from_secs(1));
        let begun = Instant::now();
        let end = loop {
            // Whoever listens looks up every now and then, as the supervisor does.
            match timeout(Duration::from_millis(50), call.next()).await {
                Ok(CallEvent::End(end)) => break end,
                Ok(_) | Err(_) => assert!(begun.elapsed() < Duration::from_secs(4), "{expected}"),
            }
        };
        assert_eq!(code(end), expected);
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(1700), "{expected} {took:?}");
    }
}

#[tokio::test]
async fn a_connection_that_closes_before_the_first_byte_is_tried_again() {
    let (url, n_asked) = serve(|n, stream| match n {
        0 => (),
        _ => say(stream, STREAM),
    });
    let (text, notices, end) = ask(&url).await;
    assert_eq!(
        (text.as_str(), notices, end),
        ("data: {}\n\n", vec!["api_retry"], Ok(()))
    );
    assert_eq!(n_asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_page_is_no_answer() {
    let (url, n_asked) = serve(|_, stream| {
        say(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
        );
    });
    let (_, _, end) = ask(&url).await;
    assert_eq!(code(end), "bad_answer");
    assert_eq!(n_asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_long_wait_is_not_waited_for() {
    let (url, n_asked) = serve(|_, stream| {
        say(
            stream,
            "HTTP/1.1 429 Busy\r\nretry-after: 3600\r\ncontent-length: 4\r\n\r\nbusy",
        );
    });
    let (_, notices, end) = ask(&url).await;
    let expected = CallError {
        code: "http_429".to_owned(),
        message: "the endpoint answered HTTP 429: busy".to_owned(),
    };
    assert_eq!((notices, end), (Vec::new(), Err(expected)));
    assert_eq!(n_asked.load(Ordering::SeqCst), 1);
}
