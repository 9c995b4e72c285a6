//! The client: one process from its start to its end, over three prompts.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::AcpContender;
use crate::bench::{
    measure::{cpu, peak},
    run::guard,
    sandbox::PIECE,
};

#[derive(Clone, Debug)]
pub(super) struct AcpSample {
    /// From the start of the process to the answer to `initialize`.
    pub(super) initialize: Duration,
    /// From the start of the process to the first words of the first prompt.
    pub(super) first: Duration,
    /// From the second prompt to its first words.
    pub(super) second: Duration,
    /// Of the contender alone, with its guard, for all pieces of text.
    pub(super) cpu: Duration,
    /// The same, at most.
    pub(super) kilobytes: u64,
    /// In how many updates the pieces came.
    pub(super) n_updates: usize,
}

pub(super) struct Client {
    contender: AcpContender,
    start: Instant,
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    n_asked: u64,
}

/// What a prompt was answered with.
struct Turn {
    /// From the prompt to its first words, and when these came.
    first: Duration,
    at: Instant,
    n_updates: usize,
    n_pieces: usize,
}

impl Client {
    pub(super) fn start(command: &mut Command, contender: AcpContender) -> Result<Self> {
        let start = Instant::now();
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {contender:?}"))?;
        let stdin = process.stdin.take().context("the pipe is ours")?;
        let stdout = process.stdout.take().context("the pipe is ours")?;
        Ok(Self {
            contender,
            start,
            process,
            stdin,
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            n_asked: 0,
        })
    }

    pub(super) fn measure(mut self, work: &Path, pieces: usize) -> Result<AcpSample> {
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        self.ask("initialize", &hello, |_| ())?;
        let initialize = self.start.elapsed();
        let new = json!({ "cwd": work, "mcpServers": [] });
        let session = self.ask("session/new", &new, |_| ())?;
        let session = session["sessionId"].as_str().context("no session id")?;
        let session = session.to_owned();
        let first = self.prompt(&session, "[[lane:short]] say hello")?;
        let second = self.prompt(&session, "[[lane:short]] say it again")?;
        let before = self.cpu()?;
        let long = self.prompt(&session, "[[lane:long]] count")?;
        let cpu = self.cpu()?.saturating_sub(before);
        // A faster run that left something out does not count.
        let n_pieces = long.n_pieces;
        ensure!(n_pieces == pieces, "{n_pieces} pieces came, not {pieces}");
        let pid = self.process.id();
        let own = peak(pid)?.context("it is gone")?;
        let guard = self.guard().map_or(0, |it| it.private_kilobytes);
        drop(self.stdin);
        let status = self.process.wait()?;
        if self.contender == AcpContender::Linkspan && !status.success() {
            bail!("linkspan left with {status}");
        }
        Ok(AcpSample {
            initialize,
            first: first.at - self.start,
            second: second.first,
            cpu,
            kilobytes: own + guard,
            n_updates: long.n_updates,
        })
    }

    fn guard(&self) -> Option<guard::Guard> {
        let is_ours = self.contender == AcpContender::Linkspan;
        is_ours
            .then(|| guard::find_guard(self.process.id()))
            .flatten()
    }

    fn cpu(&self) -> Result<Duration> {
        let guard = self.guard().map_or(Duration::ZERO, |it| it.cpu);
        Ok(cpu(self.process.id())? + guard)
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<Turn> {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        let (sent, mut first) = (Instant::now(), None);
        let (mut n_updates, mut n_pieces) = (0, 0);
        self.ask("session/prompt", &params, |message| {
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                first.get_or_insert_with(Instant::now);
                let text = update["content"]["text"].as_str().unwrap_or_default();
                n_updates += 1;
                n_pieces += text.matches(PIECE.trim_end()).count();
            }
        })?;
        let at = first.context("nothing was said")?;
        Ok(Turn {
            first: at - sent,
            at,
            n_updates,
            n_pieces,
        })
    }

    /// Waits for the answer to a request; all else is shown.
    fn ask(&mut self, method: &str, params: &Value, mut look: impl FnMut(&Value)) -> Result<Value> {
        self.n_asked += 1;
        let id = self.n_asked;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stdin, "{message}")?;
        let mut line = String::new();
        loop {
            line.clear();
            let n_read = self.stdout.read_line(&mut line)?;
            ensure!(n_read > 0, "{:?} left during {method}", self.contender);
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] != id || message.get("method").is_some() {
                look(&message);
            } else if message.get("error").is_some() {
                bail!("{:?} refused {method}: {line}", self.contender);
            } else {
                return Ok(message["result"].take());
            }
        }
    }
}
