//! From start to stop: in plain tests, in async ones, and in the middle of a stream.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

use scripted_model::{Playback, Scenario, Server, Turn, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream as AsyncStream};

const REQUEST: &[u8] = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
    content-length: 46\r\n\r\n{\"model\": \"m\", \"stream\": true, \"messages\": []}";

fn slow() -> Scenario {
    Scenario::main([Turn::text("a long text in pieces").pace(Duration::from_secs(600))])
}

#[test]
fn a_server_that_is_dropped_closes_its_streams() {
    let server = Server::start(slow()).unwrap();
    let mut socket = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    socket.write_all(REQUEST).unwrap();
    let mut first = [0; 1];
    socket.read_exact(&mut first).unwrap();
    drop(server);
    let mut rest = String::new();
    socket.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("message_stop"), "{rest}");
}

#[test]
fn a_test_can_wait_for_the_agent_to_ask() {
    let held = Turn::text("late").delay(Duration::from_secs(600));
    let server = Server::start(Scenario::main([held])).unwrap();
    assert_eq!(
        server.wait_for_requests(1, Duration::from_millis(1)).len(),
        0
    );
    let mut socket = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    let asking = thread::spawn(move || {
        socket.write_all(REQUEST).unwrap();
        socket
    });
    assert_eq!(
        server.wait_for_requests(1, Duration::from_secs(60)).len(),
        1
    );
    drop(asking.join().unwrap());
}

#[tokio::test]
async fn a_stage_is_served_on_the_runtime_of_the_caller() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stage = Playback::new(Scenario::main([Turn::text("Hello.")]));
    let serving = tokio::spawn(serve(listener, stage.clone()));
    let mut socket = AsyncStream::connect(address).await.unwrap();
    socket.write_all(REQUEST).await.unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).await.unwrap();
    serving.abort();
    assert!(response.contains("Hello."), "{response}");
    assert_eq!(stage.requests().len(), 1);
}

#[tokio::test]
async fn a_server_lives_and_dies_inside_of_an_async_test() {
    drop(Server::start(slow()).unwrap());
}
