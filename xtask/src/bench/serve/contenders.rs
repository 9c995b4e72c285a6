//! The servers, each a process of its own, and how a stream begins on it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{EventFormat, recording};
use crate::{process::root, report::print_line};

/// It opens nothing but the servers of this bench, while they run.
pub(super) const TOKEN: &str = "bench-bench-bench-bench-bench-bench";
/// From frame to frame of a recording that tells no times.
const UNTIMED: Duration = Duration::from_millis(20);
/// A socket for each client, and some more.
const MAX_FILES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServeContender {
    Linkspan,
    Floor,
    Node,
}

impl ServeContender {
    pub(super) const ALL: [Self; 3] = [Self::Linkspan, Self::Floor, Self::Node];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linkspan => "linkspan serve",
            Self::Floor => "axum broadcast",
            Self::Node => "Node ws",
        }
    }
}

/// The programs, built for speed, and the folder of the runs.
#[derive(Debug)]
pub(super) struct ServeSetup {
    built: PathBuf,
    folder: PathBuf,
}

impl ServeSetup {
    pub(super) fn set(target: &Path) -> Result<Self> {
        let folder = target.join("bench/serve");
        fs::create_dir_all(&folder)?;
        Ok(Self {
            built: target.join("release"),
            folder,
        })
    }

    /// A session of so many events.
    pub(super) fn recording(&self, n_events: usize) -> Result<PathBuf> {
        let path = self.folder.join("recording.jsonl");
        fs::write(&path, recording::codex(n_events))?;
        Ok(path)
    }

    /// Where its events are kept.
    pub(super) fn events(&self, format: EventFormat) -> PathBuf {
        self.folder.join(format!("events.{}.jsonl", format.name))
    }

    pub(super) fn start(&self, contender: ServeContender) -> Result<BenchServer> {
        let mut command = match contender {
            ServeContender::Linkspan => {
                let data = self.folder.join("data");
                if data.exists() {
                    fs::remove_dir_all(&data)?;
                }
                let mut command = limited(&self.built.join("linkspan"));
                command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
                command.arg(data).env("LINKSPAN_TOKEN", TOKEN);
                command.env("HOME", &self.folder);
                command
            }
            ServeContender::Floor => limited(&self.built.join("examples/floor")),
            ServeContender::Node => {
                let mut command = limited(Path::new("node"));
                command.arg(root().join("peers/js/broadcast.mjs"));
                command
            }
        };
        BenchServer::start(&mut command, contender)
    }

    pub(super) fn crowd(&self) -> Command {
        limited(&self.built.join("examples/crowd"))
    }

    pub(super) fn rate(&self) -> Command {
        let mut command = Command::new(self.built.join("examples/rate"));
        command.arg(&self.folder);
        command
    }
}

/// A program that may open enough sockets.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {MAX_FILES} && exec \"$@\""), "sh"])
        .arg(program);
    command
}

/// A server that listens.
#[derive(Debug)]
pub(super) struct BenchServer {
    process: Child,
    address: String,
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(err) = ended {
            print_line(&format!("cannot end a server: {err}"));
        }
    }
}

impl BenchServer {
    fn start(command: &mut Command, contender: ServeContender) -> Result<Self> {
        command.stdin(Stdio::piped());
        let is_ours = contender == ServeContender::Linkspan;
        match is_ours {
            true => command.stderr(Stdio::piped()),
            false => command.stdout(Stdio::piped()),
        };
        let process = command.spawn();
        let process = process.with_context(|| format!("cannot start {}", contender.name()))?;
        let mut server = Self {
            process,
            address: String::new(),
        };
        let mut said = String::new();
        let process = &mut server.process;
        match is_ours {
            true => first_line(process.stderr.take(), &mut said)?,
            false => first_line(process.stdout.take(), &mut said)?,
        }
        let address = said.trim().strip_prefix("listening on http://");
        let address = address.with_context(|| format!("{} said `{said}`", contender.name()))?;
        server.address = address.to_owned();
        Ok(server)
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Has a recording played as if an agent ran.
    pub(super) fn submit(&self, recording: &Path, pace: Duration) -> Result<()> {
        let body = json!({
            "prompt": "go",
            "engine": format!("replay:{}", recording.display()),
            "cwd": recording.parent(),
            "speed": UNTIMED.as_secs_f64() / pace.as_secs_f64(),
        });
        let body = body.to_string();
        let (address, length) = (&self.address, body.len());
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "POST /api/runs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(
            answer.starts_with("HTTP/1.1 202 "),
            "the prompt was not taken: {answer}"
        );
        Ok(())
    }

    /// Hands it events to tell, one after the other.
    pub(super) fn feed(&mut self, events: &Path, pace: Duration) -> Result<()> {
        let events = fs::read(events)?;
        let input = self.process.stdin.as_mut().context("the pipe is ours")?;
        let start = Instant::now();
        for (event, n) in events.split_inclusive(|it| *it == b'\n').zip(0..) {
            let due = start + pace * n;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            input.write_all(event)?;
        }
        Ok(())
    }
}

fn first_line(from: Option<impl Read>, line: &mut String) -> Result<()> {
    BufReader::new(from.context("the pipe is ours")?).read_line(line)?;
    Ok(())
}
