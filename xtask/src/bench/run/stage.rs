//! The agent alone, behind a bare copy, and behind linkspan, all in the same house.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::RunOptions;
use crate::{bench::sandbox::Sandbox, process::capture};

/// What a prompt is answered with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lane {
    /// One word.
    Short,
    /// Thousands of pieces.
    Long,
}

impl Lane {
    fn prompt(self) -> &'static str {
        match self {
            Self::Short => "[[lane:short]] say hello",
            Self::Long => "[[lane:long]] count",
        }
    }
}

/// The programs of the runs.
#[derive(Debug)]
pub(super) struct RunSetup {
    sandbox: Sandbox,
    linkspan: PathBuf,
    xtask: PathBuf,
    warm: PathBuf,
}

impl RunSetup {
    /// `built` holds the programs that were built for speed.
    pub(super) fn set(built: &Path, options: &RunOptions) -> Result<Self> {
        Ok(Self {
            sandbox: Sandbox::build(built, options.agents.as_deref(), options.pieces)?,
            linkspan: built.join("linkspan"),
            xtask: built.join("xtask"),
            warm: built.join("examples/warm"),
        })
    }

    /// The agent as it is installed.
    pub(super) fn claude(&self) -> &Path {
        self.sandbox.claude()
    }

    pub(super) fn claude_version(&self) -> Result<String> {
        let said = capture(self.sandbox.command(self.claude())?.arg("--version"))?.stdout;
        Ok(String::from_utf8(said)?.trim().to_owned())
    }

    /// An agent that plays a recording. It has no arguments of its own: linkspan gives it those of
    /// the agent whose recording it is.
    pub(super) fn player(&self, recording: &Path, micros: u64) -> Result<PathBuf> {
        let player = self.sandbox.file(&format!("play-{micros}"));
        let (xtask, recording) = (self.xtask.display(), recording.display());
        let script = format!("#!/bin/sh\nexec '{xtask}' bench play '{recording}' {micros}\n");
        fs::write(&player, script)?;
        fs::set_permissions(&player, fs::Permissions::from_mode(0o755))?;
        Ok(player)
    }

    /// The agent's program alone, with the arguments that linkspan gives it.
    pub(super) fn bare(&self, agent: &Path, lane: Lane) -> Result<Command> {
        let mut command = self.sandbox.command(agent)?;
        command.args(ARGS).arg(lane.prompt());
        Ok(command)
    }

    /// The same behind a program that copies its output.
    pub(super) fn copied(&self, agent: &Path, lane: Lane) -> Result<Command> {
        let mut command = self.sandbox.command(&self.xtask)?;
        command.args(["bench", "copy"]).arg(agent);
        command.args(ARGS).arg(lane.prompt());
        Ok(command)
    }

    /// The same behind linkspan.
    pub(super) fn linkspan(&self, agent: &Path, lane: Lane, to: &str) -> Result<Command> {
        let mut command = self.sandbox.command(&self.linkspan)?;
        command
            .args(["run", "--engine", "claude", "--to", to, "--program"])
            .arg(agent)
            .arg("--config")
            .arg(self.sandbox.config())
            .arg("--cwd")
            .arg(self.sandbox.work())
            .args(["--", lane.prompt()]);
        Ok(command)
    }

    /// Two prompts in one session; see `crates/runner/examples/warm.rs`.
    pub(super) fn warm(&self) -> Result<Command> {
        let mut command = self.sandbox.command(&self.warm)?;
        command.arg(&self.linkspan).arg(self.claude());
        command.args([Lane::Short.prompt(); 2]);
        Ok(command)
    }
}

/// What linkspan starts Claude Code with, up to the prompt.
const ARGS: [&str; 9] = [
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--forward-subagent-text",
    "--permission-mode=dontAsk",
    "--allowedTools=Bash,Read,Edit,Write",
    "--",
];
