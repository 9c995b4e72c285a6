//! The floor under the bridge: what is read, line by line, goes to everybody as it is.
//!
//! Nothing is stored, rendered, checked or bounded, and nobody is heard. `cargo xtask bench serve` measures
//! the server beside it. Prints its address, and ends with its input.

#![expect(clippy::print_stdout, reason = "the address is for whoever started it")]

use std::io::{self, BufRead};
use std::thread;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, oneshot};

/// Lines a client may be behind, as in the hub.
const MAX_LINES: usize = 1024;

type Lines = broadcast::Sender<Utf8Bytes>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let lines = Lines::new(MAX_LINES);
    let app = Router::new()
        .route("/ws", any(upgrade))
        .with_state(lines.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // A connection that is gone already is found out with the first write.
        stream.set_nodelay(true).ok();
    });
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // Nobody may be there.
            lines.send(line.into()).ok();
        }
        ended.send(()).ok();
    });
    tokio::select! {
        served = axum::serve(listener, app) => served,
        _ = end => Ok(()),
    }
}

async fn upgrade(State(lines): State<Lines>, upgrade: WebSocketUpgrade) -> Response {
    let lines = lines.subscribe();
    upgrade.on_upgrade(|socket| forward(socket, lines))
}

async fn forward(mut socket: WebSocket, mut lines: broadcast::Receiver<Utf8Bytes>) {
    while let Ok(line) = lines.recv().await {
        if socket.send(Message::Text(line)).await.is_err() {
            return;
        }
    }
}
