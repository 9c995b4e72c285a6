//! The plainest HTTP client: what is compared is what was on the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use scripted_model::{Scenario, Server};
use serde_json::Value;

/// A response whose body came to its end, or did not.
pub(crate) struct Response {
    pub(crate) status: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// The size of each HTTP chunk.
    pub(crate) chunks: Vec<usize>,
    pub(crate) is_cut: bool,
}

pub(crate) fn server(script: &str) -> Server {
    Server::start(Scenario::from_json(script).unwrap()).unwrap()
}

pub(crate) fn post(server: &Server, path: &str, body: &Value) -> Response {
    send(server, "POST", path, &body.to_string())
}

pub(crate) fn send(server: &Server, method: &str, path: &str, body: &str) -> Response {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut socket = TcpStream::connect(&address).unwrap();
    let length = body.len();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: secret\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}",
    )
    .unwrap();
    read(BufReader::new(socket))
}

fn read(mut socket: BufReader<TcpStream>) -> Response {
    let mut head = Vec::new();
    loop {
        let line = line(&mut socket);
        if line.is_empty() {
            break;
        }
        head.push(line);
    }
    let status = head.remove(0);
    head.retain(|it| !it.starts_with("date:"));
    let (mut body, mut chunks, mut is_cut) = (Vec::new(), Vec::new(), false);
    if head.iter().any(|it| it == "transfer-encoding: chunked") {
        loop {
            let size = line(&mut socket);
            let Ok(size) = usize::from_str_radix(&size, 16) else {
                is_cut = true;
                break;
            };
            let mut chunk = vec![0; size + 2];
            socket.read_exact(&mut chunk).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
            chunks.push(size);
        }
    } else {
        socket.read_to_end(&mut body).unwrap();
    }
    Response {
        status,
        headers: head,
        body: String::from_utf8(body).unwrap(),
        chunks,
        is_cut,
    }
}

/// A line without its end; empty at the end of the stream.
fn line(socket: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    socket.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}
