//! The operator's log of `linkspan serve`: what it says, and what it never says.

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::program::{Folder, machine};
use crate::served::{Served, serve};

/// What must never be in the log.
const SECRET: &str = "hush-4711";

/// The lines of the log, without what differs from run to run; not those for people.
fn lines(stderr: &str) -> Vec<Value> {
    let lines = stderr.lines().filter(|it| it.starts_with('{'));
    let lines = lines.map(|it| serde_json::from_str::<Value>(it).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("timestamp").unwrap().is_string());
        for key in ["seconds", "pid", "address", "session", "first"] {
            if let Some(value) = fields.get_mut(key) {
                *value = json!(key);
            }
        }
    }
    lines
}

#[test]
fn one_line_for_each_thing_and_no_secret_in_any() {
    let folder = machine("serve-log", &[], "");
    let mut command = serve(&folder);
    let mut served = Served::from(
        command.args(["--log-format", "json", "--log-level", "debug"]),
        &folder,
    );
    let prompt = format!("say {SECRET}");
    let id = served.submit(&json!({ "prompt": prompt, "engine": "replay:tools" }));
    served.idle(&id);
    let path = format!("/api/sessions/{SECRET}?{SECRET}");
    assert_eq!(served.request("GET", &path, "").status, 404);
    assert_eq!(served.request("GET", &format!("/{SECRET}"), "").status, 404);
    let body = json!({ "prompt": prompt, "engine": "none", "cwd": format!("/{SECRET}") });
    let refused = served.request("POST", "/api/runs", &body.to_string());
    assert_eq!(refused.status, 400);
    let mut socket = served.socket("linkspan");
    let control = json!({ "control": "run.submit", "prompt": prompt, "engine": "none" });
    socket.0.send(Message::text(control.to_string())).unwrap();
    while socket.next().expect("an answer")["type"] != "bridge.error" {}
    let good = std::mem::replace(
        &mut served.token,
        format!("wrong-{SECRET}-wrong-wrong-wrong"),
    );
    // A page that retries makes one line.
    for _ in 0..3 {
        assert_eq!(served.request("GET", "/api/asks", "").status, 401);
    }
    served.token = good.clone();
    drop(socket);
    let said = served.stop();
    assert!(!said.contains(SECRET), "{said}");
    assert!(!said.contains(&good), "{said}");
    assert!(said.contains("linkspan: stopping; a second signal stops at once\n"));
    let line = |level: &str, message: &str, fields: Value| {
        let mut line = json!({ "level": level, "message": message });
        let fields = fields.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(fields);
        line
    };
    let run = json!({ "session": "session", "run": "r1", "engine": "replay" });
    let mut ended = run.clone();
    (ended["outcome"], ended["seconds"]) = (json!("completed"), json!("seconds"));
    let refused = |method: &str, status: u16, code: &str| json!({ "method": method, "peer": "127.0.0.1", "status": status, "code": code });
    let at = |route: &str, mut fields: Value| {
        fields["route"] = json!(route);
        fields
    };
    let mut unknown = refused("GET", 404, "not_found");
    unknown["path"] = json!("/…");
    let told = lines(&said);
    let told: Vec<&Value> = told
        .iter()
        .filter(|it| it["message"] != "request answered")
        .collect();
    let told: Vec<Value> = told.into_iter().cloned().collect();
    let at_start = json!({ "address": "address", "tls": false, "pid": "pid" });
    assert_eq!(
        told,
        [
            line("INFO", "server started", at_start),
            line("INFO", "run started", run),
            line("INFO", "run ended", ended),
            line(
                "INFO",
                "request refused",
                at("/api/sessions/{id}", refused("GET", 404, "no_such_session"))
            ),
            line("INFO", "request refused", unknown),
            line(
                "INFO",
                "request refused",
                at("/api/runs", refused("POST", 400, "bad_engine"))
            ),
            line(
                "INFO",
                "request refused",
                json!({ "route": "/ws", "control": "run.submit", "status": 400, "code": "bad_engine" })
            ),
            line(
                "WARN",
                "request refused",
                at("/api/asks", refused("GET", 401, "unauthorized"))
            ),
            line("INFO", "server stopping", json!({})),
            line("INFO", "server stopped", json!({})),
        ]
    );
}

#[test]
fn a_run_that_failed_is_a_warning_with_the_code_of_the_agent_and_an_abort_has_none() {
    let folder = Folder::new("serve-log-failed");
    let served = Served::from(serve(&folder).args(["--log-format", "json"]), &folder);
    let failed = served.submit(&json!({ "prompt": "hello", "engine": "replay:failure" }));
    served.idle(&failed);
    let slow = json!({ "prompt": "hello", "engine": "replay:tools", "speed": 0.01 });
    let aborted = served.submit(&slow);
    served.until(&aborted, |it| it["state"] == "running");
    let path = format!("/api/sessions/{aborted}/abort");
    assert_eq!(served.request("POST", &path, "").status, 200);
    served.idle(&aborted);
    let ended = lines(&served.stop()).into_iter();
    let ended: Vec<Value> = ended.filter(|it| it["message"] == "run ended").collect();
    let run = json!({
        "message": "run ended", "session": "session", "run": "r1", "engine": "replay",
        "seconds": "seconds",
    });
    let line = |level: &str, outcome: &str| {
        let mut line = run.clone();
        (line["level"], line["outcome"]) = (json!(level), json!(outcome));
        line
    };
    let mut failed = line("WARN", "failed");
    failed["code"] = json!("auth");
    assert_eq!(ended, [failed, line("INFO", "aborted")]);
}

#[test]
fn a_crash_is_followed_by_a_line_for_the_run_it_cost() {
    let folder = Folder::new("serve-log-crash");
    let served = Served::start(&folder);
    let id = served.submit(&json!({ "prompt": "hello", "engine": "replay:tools", "speed": 0.01 }));
    served.until(&id, |it| it["state"] == "running");
    served.end(Signal::KILL);
    let served = Served::from(serve(&folder).args(["--log-format", "json"]), &folder);
    served.idle(&id);
    let told = lines(&served.stop());
    let lost = json!({
        "level": "WARN",
        "message": "run of a dead owner closed as lost",
        "session": "session",
        "first": "first",
    });
    assert_eq!(told[0], lost, "{told:?}");
}

#[test]
fn a_log_in_text_is_one_line_too_and_off_is_none() {
    let folder = Folder::new("serve-log-text");
    let text = Served::start(&folder).stop();
    let started: Vec<&str> = text.lines().filter(|it| it.contains(" INFO ")).collect();
    let words = [
        "server started address=127.0.0.1:",
        "server stopping",
        "server stopped",
    ];
    assert_eq!(started.len(), words.len(), "{text}");
    assert!(
        started
            .iter()
            .zip(words)
            .all(|(it, word)| it.contains(word)),
        "{text}"
    );
    let mut off = serve(&folder);
    off.env("LINKSPAN_LOG_LEVEL", "off");
    let said = Served::from(&mut off, &folder).stop();
    assert_eq!(said, "linkspan: stopping; a second signal stops at once\n");
}

#[test]
fn a_server_whose_stderr_nobody_reads_serves_and_stops() {
    let folder = Folder::new("serve-log-unread");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = serve(&folder).stderr(writer).spawn().unwrap();
    let mut first = [0; 64];
    let n = std::io::Read::read(&mut &reader, &mut first).unwrap();
    let line = String::from_utf8_lossy(&first[..n]).into_owned();
    let address = line.strip_prefix("listening on http://").unwrap();
    let address = address.split('\n').next().unwrap().to_owned();
    // More lines than a pipe and the queue hold.
    let requests = "GET /none HTTP/1.1\r\nHost: ADDRESS\r\n\r\n".replace("ADDRESS", &address);
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    for _ in 0..3_000 {
        std::io::Write::write_all(&mut stream, requests.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        let n = std::io::Read::read(&mut stream, &mut answer).unwrap();
        assert!(answer[..n].starts_with(b"HTTP/1.1 404"));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(reader);
}
