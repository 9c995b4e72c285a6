//! Clients of a server, all in one process; see `crates/server/examples/crowd.rs`.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{
    EventFormat,
    contenders::{BenchServer, ServeSetup, TOKEN},
};
use crate::report::print_line;

/// What the clients have seen together.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CrowdReport {
    pub(super) n_events: usize,
    pub(super) n_delivered: usize,
    seconds: f64,
    pub(super) lag_millis: Vec<f64>,
    pub(super) delay_millis: Option<f64>,
}

impl CrowdReport {
    /// From event to event.
    pub(super) fn pace(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / (self.n_events - 1).max(1) as f64)
    }
}

/// They are there as long as this is.
#[derive(Debug)]
pub(super) struct Crowd {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if let Err(err) = self.process.wait() {
            print_line(&format!("cannot wait for the clients: {err}"));
        }
    }
}

impl Crowd {
    /// Connects them. They listen to a stream, whose events may be kept, or to nothing.
    pub(super) fn gather(
        stage: &ServeSetup,
        server: &BenchServer,
        n_clients: usize,
        stream: Option<(EventFormat, Option<&Path>)>,
    ) -> Result<Self> {
        let mut command = stage.crowd();
        let path = match stream {
            Some((format, _)) => format!("/ws?format={}", format.name),
            None => "/ws".to_owned(),
        };
        command.args([server.address(), &path, &n_clients.to_string()]);
        if let Some((format, keep)) = stream {
            command.args([format.begin, format.end]).args(keep);
        }
        let mut process = command
            .env("LINKSPAN_TOKEN", TOKEN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the clients")?;
        let stdout = process.stdout.take().context("the pipe is ours")?;
        let stdout = BufReader::new(stdout);
        let mut crowd = Self { process, stdout };
        let said = crowd.line()?;
        ensure!(said.trim() == "ready", "the clients said `{said}`");
        Ok(crowd)
    }

    /// Waits until each of them has had the last event.
    pub(super) fn report(&mut self) -> Result<CrowdReport> {
        let said = self.line()?;
        serde_json::from_str(&said).with_context(|| format!("the clients said `{said}`"))
    }

    fn line(&mut self) -> Result<String> {
        let mut said = String::new();
        self.stdout.read_line(&mut said)?;
        Ok(said)
    }
}
