//! `linkspan serve` as a program: what it says, what it keeps, and what a crash leaves behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Folder, linkspan, machine, ran, run};

const PATIENCE: Duration = Duration::from_secs(60);
/// How often the server is killed in the middle of its work.
const N_KILLS: u64 = 10;

/// A running server.
pub(crate) struct Served {
    child: Child,
    address: String,
    token: String,
    /// What it says after it has said where it listens.
    words: JoinHandle<String>,
}

/// The command that serves the sessions of this folder, with its config.
pub(crate) fn serve(folder: &Folder) -> Command {
    let mut command = linkspan(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .args(["--data-dir", &folder.path("data")])
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env_remove("LINKSPAN_TOKEN")
        .stderr(Stdio::piped());
    command
}

impl Served {
    fn start(folder: &Folder) -> Self {
        let token = || std::fs::read_to_string(folder.path("data/token")).unwrap();
        Self::spawn(&mut serve(folder), token)
    }

    /// Waits until it listens; `token` is asked for after that.
    pub(crate) fn spawn(command: &mut Command, token: impl FnOnce() -> String) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
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

    fn connect(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (host, token, length) = (&self.address, &self.token, body.len());
        // The old version of HTTP has no chunks.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn body(&self, method: &str, path: &str, body: &str) -> String {
        let mut text = String::new();
        let mut stream = self.connect(method, path, "", body);
        stream.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    pub(crate) fn submit(&self, fields: &Value) -> String {
        let answer = self.body("POST", "/api/runs", &fields.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["session"].as_str().unwrap().to_owned()
    }

    pub(crate) fn events(&self, session: &str) -> Vec<String> {
        let body = self.body("GET", &format!("/api/sessions/{session}/events"), "");
        body.lines().map(str::to_owned).collect()
    }

    /// Follows a session until the server is gone; what was heard after event `after`.
    fn follow(&self, session: &str, after: usize) -> JoinHandle<Vec<String>> {
        let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {after}\r\n");
        let path = format!("/api/sessions/{session}/events");
        let stream = self.connect("GET", &path, &headers, "");
        thread::spawn(move || {
            // A line that was cut in the middle was not heard.
            let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
            let mut heard: Vec<String> = Vec::new();
            let mut last = None;
            for line in lines {
                let line = String::from_utf8_lossy(&line).into_owned();
                match (line.strip_prefix("data: "), line.is_empty(), last.take()) {
                    (Some(data), _, _) => last = Some(data.to_owned()),
                    (None, true, Some(data)) if data.contains("\"seq\":") => heard.push(data),
                    _ => (),
                }
            }
            heard
        })
    }

    /// Ends it, and gives back what it has said.
    pub(crate) fn stop(mut self) -> String {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap();
        let words = std::mem::replace(&mut self.words, thread::spawn(String::new));
        words.join().unwrap()
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn kind(line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap();
    event["type"].as_str().unwrap().to_owned()
}

/// Every event once and in order, every run with one end, save those that go on.
fn check(events: &[String], n_running: usize) {
    for (n, line) in events.iter().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["seq"].as_u64(), Some(n as u64 + 1));
    }
    let count = |wanted: &str| events.iter().filter(|it| kind(it) == wanted).count();
    let n_open = count("run.started") - count("run.ended");
    assert!(n_open <= n_running, "{n_open} runs are open");
}

#[test]
fn a_killed_server_loses_nothing_it_has_shown() {
    let folder = Folder::new("serve-kill");
    let mut known: Vec<(String, Vec<String>)> = Vec::new();
    for seed in 1..=N_KILLS {
        let served = Served::start(&folder);
        for (session, heard) in &known {
            let events = served.events(session);
            // A prompt that was taken and not done is worked on already.
            check(&events, 1);
            assert_eq!(&events[..heard.len()], heard, "kill {seed}");
        }
        // An old session goes on, and a new one begins.
        let again = known.last().map(|it| it.0.clone());
        let mut prompt = json!({ "prompt": "go", "engine": "replay:tools", "speed": 10 });
        let fresh = served.submit(&prompt);
        prompt["session"] = again.clone().into();
        let sessions: Vec<String> = match again {
            Some(_) => vec![served.submit(&prompt), fresh],
            None => vec![fresh],
        };
        let followers: Vec<_> = sessions
            .iter()
            .map(|id| {
                let known = known.iter().find(|it| it.0 == *id);
                (id, served.follow(id, known.map_or(0, |it| it.1.len())))
            })
            .collect();
        // Anywhere between the first event and well after the end of a run.
        thread::sleep(Duration::from_millis(seed * 2_654_435_761 % 400));
        assert_eq!(served.end(Signal::KILL), None);
        for (id, follower) in followers {
            let more = follower.join().unwrap();
            match known.iter_mut().find(|it| it.0 == *id) {
                Some(it) => it.1.extend(more),
                None => known.push((id.clone(), more)),
            }
        }
    }
    let served = Served::start(&folder);
    let began = Instant::now();
    for (session, heard) in &known {
        // Prompts that were taken and not begun are worked on now.
        let events = loop {
            let events = served.events(session);
            let count = |wanted: &str| events.iter().filter(|it| kind(it) == wanted).count();
            let is_done = count("run.started") == count("run.ended") && !events.is_empty();
            if is_done || began.elapsed() > PATIENCE {
                break events;
            }
            thread::sleep(Duration::from_millis(20));
        };
        check(&events, 0);
        assert_eq!(&events[..heard.len()], heard);
    }
}

#[test]
fn it_says_where_it_listens_and_leaves_in_peace() {
    let folder = Folder::new("serve-life");
    let served = Served::start(&folder);
    assert_eq!(served.body("GET", "/healthz", ""), "ok\n");
    let id = served.submit(&json!({ "prompt": "hello", "engine": "replay:tools" }));
    let began = Instant::now();
    while served
        .events(&id)
        .last()
        .is_none_or(|it| kind(it) != "run.ended")
    {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let events = served.events(&id);
    let data = folder.path("data");
    // Others read the same journal while it is served.
    let replayed = run(
        &["replay", &id, "--to", "linkspan", "--data-dir", &data],
        b"",
    );
    assert_eq!(replayed.stdout.lines().collect::<Vec<_>>(), events);
    let shown = run(&["show", &id, "--data-dir", &data], b"");
    assert!(shown.stdout.contains("› hello"), "{}", shown.stdout);
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed["id"], &listed["title"]),
        (&json!(id), &json!("hello"))
    );
    let page = run(&["token", "--data-dir", &data], b"");
    let url = format!("http://{}/#token={}\n", served.address, served.token);
    assert_eq!((page.stdout, page.code), (url, Some(0)));
    let address = served.address.clone();
    assert_eq!(served.end(Signal::TERM), Some(0));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn what_would_be_open_to_all_is_not_started() {
    let folder = Folder::new("serve-open");
    let data = folder.path("data");
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let ran = run(&["serve", "--listen", listen, "--data-dir", &data], b"");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("nothing would be encrypted"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("hint: give `--tls-cert`"),
            "{}",
            ran.stderr
        );
    }
    let half = run(&["serve", "--tls-cert", "x.pem", "--data-dir", &data], b"");
    assert_eq!(half.code, Some(2));
    let none = run(
        &["replay", "none", "--to", "text", "--data-dir", &data],
        b"",
    );
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(
        none.stderr.contains("no session is called `none`"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_run_is_found_where_the_server_looks() {
    let folder = Folder::new("serve-run");
    let data = folder.path("data");
    let args = ["run", "--engine", "replay:tools", "--speed", "0"];
    let ran = run(
        &[
            &args[..],
            &["--to", "linkspan", "--data-dir", &data, "hello"],
        ]
        .concat(),
        b"",
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed["title"], &listed["engine"], &listed["state"]),
        (&json!("hello"), &json!("replay:tools"), &json!("idle"))
    );
    let served = Served::start(&folder);
    let events = served.events(listed["id"].as_str().unwrap());
    assert_eq!(events, ran.stdout.lines().collect::<Vec<_>>());
    check(&events, 0);
}

#[test]
fn a_run_in_another_process_is_stopped_from_the_server() {
    let script = r#"echo '{"type":"system","subtype":"init","session_id":"s-9","model":"m","cwd":"/w","uuid":"u1"}'
while :; do sleep 0.1; done"#;
    let folder = machine("serve-stop", &[("claude", script)], "interrupt_grace = 1\n");
    let data = folder.path("data");
    let path = std::env::var("PATH").unwrap();
    let running = linkspan(&["run", "--engine", "claude", "--to", "linkspan", "work"])
        .args(["--data-dir", &data])
        .env("PATH", format!("{}:{path}", folder.path("bin")))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .current_dir(folder.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let served = Served::start(&folder);
    let began = Instant::now();
    // By the agent's own name for it, as soon as it is known.
    let aborted = loop {
        let answer = served.body("POST", "/api/sessions/s-9/abort", "");
        if answer.contains("aborted") {
            break answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer}");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(aborted, r#"{"aborted":true}"#);
    let ran = ran(running.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let events = served.events("s-9");
    assert_eq!(events, ran.stdout.lines().collect::<Vec<_>>());
    check(&events, 0);
}

#[test]
fn a_session_of_the_server_is_shown_as_it_happens() {
    let folder = Folder::new("serve-attach");
    let served = Served::start(&folder);
    let prompt = json!({ "prompt": "hello", "engine": "replay:tools", "speed": 5 });
    let id = served.submit(&prompt);
    let data = folder.path("data");
    let attached = run(
        &[
            "run",
            "--attach",
            &id,
            "--to",
            "linkspan",
            "--data-dir",
            &data,
        ],
        b"",
    );
    assert_eq!((attached.code, attached.stderr.as_str()), (Some(0), ""));
    let events = served.events(&id);
    assert_eq!(attached.stdout.lines().collect::<Vec<_>>(), events);
    assert_eq!(kind(&events[events.len() - 1]), "run.ended");
    let none = run(&["run", "--attach", "none", "--data-dir", &data], b"");
    assert_eq!(none.code, Some(2), "{}", none.stderr);
}
