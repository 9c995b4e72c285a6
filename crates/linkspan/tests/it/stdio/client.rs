//! A program that has started `linkspan stdio`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::acp::client::{CLAUDE, at_home};
use crate::crash::survivors;
use crate::program::{Folder, linkspan, machine};

const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with an agent that does what the prompt says, in a session of its own.
pub(super) fn made(name: &str) -> Folder {
    let own = "s=s-$$\nlast=\nfor arg in \"$@\"; do\n  if [ \"$last\" = --resume ]; then s=$arg; fi\n  last=$arg\ndone\n";
    let agent = CLAUDE.replace("s=s-1\n", own);
    let folder = machine(name, &[("claude", &agent)], "interrupt_grace = 1\n");
    fs::create_dir_all(folder.path("work")).unwrap();
    folder
}

/// The agent says that it is at work, in a canonical event.
pub(super) fn is_working(message: &Value) -> bool {
    message["type"] == "item.closed" && message["data"].to_string().contains("Working.")
}

pub(super) struct Client {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    n_sent: u64,
    /// The first line.
    pub(super) ready: Value,
    /// Everything else, in order.
    pub(super) heard: Vec<Value>,
}

impl Client {
    pub(super) fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut command = linkspan(&["stdio", "--data-dir", &folder.path("data")]);
        let mut child = at_home(command.args(args), folder).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tx, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if tx.send(message).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            n_sent: 0,
            ready: Value::Null,
            heard: Vec::new(),
        };
        client.ready = client.lines.recv_timeout(PATIENCE).unwrap();
        client
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Waits for a message.
    pub(super) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.lines.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("not in {:#?}", self.heard));
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    pub(super) fn until_type(&mut self, kind: &str) -> Value {
        self.until(|it| it["type"] == kind && it.get("requestId").is_none())
    }

    /// Sends a control and waits for its reply.
    pub(super) fn call(&mut self, mut control: Value) -> Value {
        self.n_sent += 1;
        let id = json!(self.n_sent);
        control["requestId"] = id.clone();
        self.write(control.to_string().as_bytes());
        let mut reply = self.until(|it| it["requestId"] == id);
        reply.as_object_mut().unwrap().remove("requestId");
        reply
    }

    /// Gives a prompt; the id of its session.
    pub(super) fn submit(&mut self, prompt: &str) -> String {
        let reply =
            self.call(json!({ "control": "run.submit", "prompt": prompt, "engine": "claude" }));
        session(&reply)
    }

    /// Closes stdin, and gives back the exit code and what came last.
    pub(super) fn leave(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.stdin.take());
        self.rest()
    }

    /// Waits for the end.
    pub(super) fn rest(mut self) -> (Option<i32>, Vec<Value>) {
        let code = exit_code(&mut self.child);
        (code, self.lines.iter().collect())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may be gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The session that a reply is about.
pub(super) fn session(reply: &Value) -> String {
    let id = reply["sessionId"].as_str();
    id.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

pub(super) fn exit_code(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(began.elapsed() < PATIENCE, "it stays");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until nothing is left of what was started in a folder.
pub(super) fn nothing_is_left(folder: &Folder) {
    let home = format!("HOME={}", folder.path(""));
    let began = Instant::now();
    while !survivors(&home).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", survivors(&home));
        thread::sleep(Duration::from_millis(5));
    }
}

/// The messages of a type, without what differs from run to run.
pub(super) fn of_type<'a>(messages: &'a [Value], kind: &str) -> Vec<&'a Value> {
    messages.iter().filter(|it| it["type"] == kind).collect()
}
