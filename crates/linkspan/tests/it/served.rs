//! A server that is a process of its own, and the plainest of clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::program::{Folder, linkspan};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
    /// What it says after it has said where it listens.
    words: JoinHandle<String>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        json["error"]["code"].as_str().unwrap_or("none").to_owned()
    }
}

/// A server that keeps its sessions in `folder`, and has its agents there.
pub(crate) fn serve(folder: &Folder) -> Command {
    serve_at(folder, "127.0.0.1:0")
}

pub(crate) fn serve_at(folder: &Folder, listen: &str) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut command = linkspan(&["serve", "--listen", listen]);
    command
        .args(["--data-dir", &folder.path("data")])
        .env("PATH", format!("{}:{path}", folder.path("bin")))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env_remove("LINKSPAN_TOKEN");
    command
}

impl Served {
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::from(&mut serve(folder), folder)
    }

    pub(crate) fn from(command: &mut Command, folder: &Folder) -> Self {
        Self::spawn(command, || {
            std::fs::read_to_string(folder.path("data/token")).unwrap()
        })
    }

    /// Waits until it listens; `token` is asked for after that.
    pub(crate) fn spawn(command: &mut Command, token: impl FnOnce() -> String) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        // What a journal says when it is opened comes before.
        while stderr.read_line(&mut line).unwrap() > 0 && line.starts_with("linkspan: the disk") {
            line.clear();
        }
        let address = line.trim().strip_prefix("listening on http");
        let address = address.and_then(|it| it.trim_start_matches('s').strip_prefix("://"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        // Whatever else it says must not fill the pipe.
        let words = thread::spawn(move || {
            let mut words = String::new();
            stderr.read_to_string(&mut words).unwrap();
            words
        });
        Self {
            child,
            address,
            token: token().trim().to_owned(),
            words,
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn connect(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (host, token, length) = (&self.address, &self.token, body.len());
        // The old version of HTTP has no chunks.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    }

    /// What a server answers that may be killed meanwhile.
    pub(crate) fn try_request(&self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        let mut text = String::new();
        let mut stream = self.connect(method, path, "", body)?;
        stream.read_to_string(&mut text)?;
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        Ok(Answer {
            status: status.ok_or_else(cut)?,
            body: body.to_owned(),
        })
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Answer {
        self.try_request(method, path, body).unwrap()
    }

    pub(crate) fn body(&self, method: &str, path: &str, body: &str) -> String {
        self.request(method, path, body).body
    }

    pub(crate) fn submit(&self, fields: &Value) -> String {
        let answer = self.request("POST", "/api/runs", &fields.to_string());
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["session"].as_str().unwrap().to_owned()
    }

    pub(crate) fn events(&self, session: &str) -> Vec<String> {
        let body = self.body("GET", &format!("/api/sessions/{session}/events"), "");
        body.lines().map(str::to_owned).collect()
    }

    pub(crate) fn session(&self, session: &str) -> Value {
        let answer = self.request("GET", &format!("/api/sessions/{session}"), "");
        answer.json()
    }

    /// Waits until a session is as wanted.
    pub(crate) fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let found = self.session(session);
            if wanted(&found) {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "it never came to that: {found}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a session has nothing more to do.
    pub(crate) fn idle(&self, session: &str) -> Value {
        self.until(session, |it| {
            let is_empty = it["queue"].as_array().is_some_and(Vec::is_empty);
            let runs = it["runs"].as_array().map_or(&[][..], Vec::as_slice);
            let all_ended = runs.iter().all(|it| !it["outcome"].is_null());
            is_empty && all_ended && !runs.is_empty() && it["state"] == "idle"
        })
    }

    /// All sessions.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let listed = self.request("GET", "/api/sessions?limit=500", "").json();
        assert_eq!(listed["next"], Value::Null, "there are more");
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Follows a session over SSE from behind event `after`.
    pub(crate) fn sse(&self, session: &str, after: &str) -> BufReader<TcpStream> {
        let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {after}\r\n");
        let path = format!("/api/sessions/{session}/events");
        BufReader::new(self.connect("GET", &path, &headers, "").unwrap())
    }

    pub(crate) fn socket(&self, format: &str) -> Socket {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        self.socket_over(stream, "ws", format)
    }

    /// A client of the bridge on a stream that is there already.
    pub(crate) fn socket_over<S: Read + Write>(
        &self,
        stream: S,
        scheme: &str,
        format: &str,
    ) -> Socket<S> {
        let url = format!("{scheme}://{}/ws?format={format}", self.address);
        let mut request = url.into_client_request().unwrap();
        let token = format!("Bearer {}", self.token).parse().unwrap();
        request.headers_mut().insert("Authorization", token);
        match client(request, stream) {
            Ok((socket, _)) => Socket(socket),
            Err(err) => panic!("{err}"),
        }
    }

    /// Ends it, and gives back what it has said.
    pub(crate) fn stop(mut self) -> String {
        kill_process(self.pid(), Signal::TERM).unwrap();
        self.child.wait().unwrap();
        let words = std::mem::replace(&mut self.words, thread::spawn(String::new));
        words.join().unwrap()
    }

    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(self.pid(), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client of the bridge.
pub(crate) struct Socket<S = TcpStream>(pub(crate) WebSocket<S>);

impl<S: Read + Write> Socket<S> {
    /// The next message; none when the server is gone, or has said goodbye.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.read().ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => (),
            }
        }
    }

    /// Follows what is named from these cursors on, and waits until that was heard.
    pub(crate) fn subscribe(&mut self, mut control: Value) {
        control["control"] = "subscribe".into();
        self.0.send(Message::text(control.to_string())).unwrap();
        // What comes before the answer is for everybody.
        loop {
            let message = self.next().expect("the server hung up");
            assert_ne!(message["type"], "bridge.error", "{message}");
            if message["type"] == "bridge.subscribed" {
                return;
            }
        }
    }

    /// Everything that is stored behind a cursor.
    pub(crate) fn rest(&mut self, session: &str, since: &Value) -> Vec<Value> {
        self.subscribe(json!({ "sessionId": session, "since": since }));
        let mut heard = Vec::new();
        loop {
            let message = self.next().expect("the server hung up");
            if message["type"] == "bridge.caught_up" {
                return heard;
            }
            heard.extend(Some(message).filter(is_event));
        }
    }
}

/// Whether a message is an event of a session, and not the bridge's own.
pub(crate) fn is_event(message: &Value) -> bool {
    let kind = message["type"].as_str().unwrap_or_default();
    !kind.starts_with("bridge.") || kind == "bridge.event"
}

pub(crate) fn kind(line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap();
    event["type"].as_str().unwrap().to_owned()
}

/// Every event once and in order, every run with one end.
pub(crate) fn check(events: &[String]) {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for (n, line) in events.iter().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["seq"].as_u64(), Some(n as u64 + 1));
        let run = event["run"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "run.started" => runs.push((run.to_owned(), 0)),
            "run.ended" => runs.iter_mut().find(|it| it.0 == run).unwrap().1 += 1,
            _ => (),
        }
    }
    let all: std::collections::HashSet<&str> = runs.iter().map(|it| &*it.0).collect();
    assert_eq!(all.len(), runs.len(), "a run began twice");
    assert!(runs.iter().all(|it| it.1 == 1), "{runs:?}");
}
