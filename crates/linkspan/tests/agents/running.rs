//! A `linkspan run` that is under way: its events as they come, its terminal, signals to it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::finished_run::FinishedRun;
use crate::processes;
use crate::terminal::Terminal;
use crate::test_env::{PATIENCE, TestEnv};

pub(crate) struct Running<'a> {
    test_env: &'a TestEnv,
    prompt: &'a str,
    child: Reaped,
    lines: Receiver<String>,
    events: Vec<Value>,
    /// Everything said on stderr, which is the terminal where there is one.
    stderr: Words,
    terminal: Option<Terminal>,
    deadline: Instant,
}

impl<'a> Running<'a> {
    pub(crate) fn start(
        test_env: &'a TestEnv,
        mut command: Command,
        prompt: &'a str,
        terminal: Option<Terminal>,
    ) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(terminal) = &terminal {
            command.stdin(terminal.theirs()).stderr(terminal.theirs());
        }
        let mut child = command.spawn().unwrap();
        // Keeps copies of the terminal's other end, which would never be seen to close.
        drop(command);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tx, lines) = channel();
        thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .all(|it| tx.send(it).is_ok());
        });
        let stderr = match (&terminal, child.stderr.take()) {
            (Some(terminal), _) => Words::listen(terminal.ours()),
            (None, pipe) => Words::listen(pipe.unwrap()),
        };
        Self {
            test_env,
            prompt,
            child: Reaped(child),
            lines,
            events: Vec::new(),
            stderr,
            terminal,
            deadline: Instant::now() + PATIENCE,
        }
    }

    /// Waits for an event that is not there yet, or was already.
    pub(crate) fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut n_seen = 0;
        loop {
            if let Some(it) = self.events[n_seen..].iter().find(|it| is_it(it)) {
                return it.clone();
            }
            n_seen = self.events.len();
            assert!(self.hear(), "waited in vain for {what}\n{}", self.shown());
        }
    }

    /// Reads one more event; false when there is none.
    fn hear(&mut self) -> bool {
        self.read_until(self.deadline).is_ok()
    }

    fn read_until(&mut self, deadline: Instant) -> Result<(), RecvTimeoutError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left)?;
        let event = serde_json::from_str(&line);
        self.events.push(event.unwrap_or(Value::String(line)));
        Ok(())
    }

    fn shown(&self) -> String {
        self.events.iter().map(|it| format!("{it}\n")).collect()
    }

    /// Waits for something that is said to people.
    pub(crate) fn wait_for_text(&self, word: &str) {
        while !self.stderr.so_far().contains(word) {
            assert!(Instant::now() < self.deadline, "waited in vain for: {word}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The first Ctrl-C, and each further one.
    pub(crate) fn interrupt(&self) {
        kill_process(self.pid(), Signal::INT).unwrap();
    }

    pub(crate) fn kill_agent(&self) {
        let agent = processes::agent_of(self.pid()).unwrap();
        kill_process(agent, Signal::KILL).unwrap();
    }

    pub(crate) fn answer(&mut self, line: &str) {
        self.terminal.as_mut().unwrap().enter(line);
    }

    /// Answers every question with yes until the run ends, and returns what was asked: each question with
    /// what is known of the call that it is about.
    pub(crate) fn allow_all(&mut self) -> Vec<String> {
        let mut asked: Vec<(Value, String)> = Vec::new();
        while !self.events.iter().any(|it| it["type"] == "run.ended") {
            let n_shown = self.stderr.so_far().matches("[y] allow once").count();
            if n_shown > asked.len() {
                let open = self.open_ask(|id| asked.iter().any(|it| it.0 == *id));
                if let Some(open) = open {
                    asked.push(open);
                    self.answer("y");
                    continue;
                }
            }
            let soon = Instant::now() + Duration::from_millis(50);
            match self.read_until(soon) {
                Err(RecvTimeoutError::Timeout) => assert!(Instant::now() < self.deadline),
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(()) => (),
            }
        }
        asked.into_iter().map(|it| it.1).collect()
    }

    /// A question that waits, and is not one of those that are known.
    fn open_ask(&self, is_known: impl Fn(&Value) -> bool) -> Option<(Value, String)> {
        let of = |kind: &'static str| self.events.iter().filter(move |it| it["type"] == kind);
        let is_settled = |id: &Value| of("ask.settled").any(|it| it["data"]["id"] == *id);
        let mut asks = of("ask.opened").map(|it| &it["data"]);
        let ask = asks.find(|it| !is_settled(&it["id"]) && !is_known(&it["id"]))?;
        let calls = of("item.opened").chain(of("item.updated"));
        let calls = calls.filter(|it| it["data"]["id"] == ask["item"]);
        let words = calls.map(|it| it["data"].to_string());
        Some((
            ask["id"].clone(),
            words.fold(ask.to_string(), |all, it| all + &it),
        ))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child.0)
    }

    /// Waits for the end, and sees that it is one: see [`FinishedRun::is_lawful`].
    pub(crate) fn end(mut self) -> FinishedRun {
        while self.hear() {}
        let is_late = Instant::now() >= self.deadline;
        if is_late {
            self.child.0.kill().unwrap();
        }
        let code = self.child.0.wait().unwrap().code();
        drop(self.terminal.take());
        let ran = FinishedRun {
            prompt: self.prompt.to_owned(),
            code,
            events: std::mem::take(&mut self.events),
            stderr: self.stderr.all(),
        };
        self.test_env.say(&ran.shown());
        assert!(!is_late, "it has not ended within {PATIENCE:?}");
        processes::none_is_left(&self.test_env.mark, &self.test_env.path(""));
        ran
    }
}

/// A process that does not outlive its case. What it has started goes with it.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

/// What a program says to people, as it says it.
struct Words {
    bytes: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Words {
    fn listen(mut from: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&bytes);
        let listener = thread::spawn(move || {
            let mut some = [0; 4096];
            // Linux reports the end of a terminal as an error.
            while let Ok(n @ 1..) = from.read(&mut some) {
                heard.lock().unwrap().extend_from_slice(&some[..n]);
            }
        });
        Self { bytes, listener }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn all(self) -> String {
        let Self { bytes, listener } = self;
        listener.join().unwrap();
        String::from_utf8_lossy(&bytes.lock().unwrap()).into_owned()
    }
}
