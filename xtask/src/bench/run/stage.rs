//! What every run of the bench has around it: the scripted model, an empty home, nothing of the
//! user's environment.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::Options;
use crate::{
    model::Model,
    process::{capture, root},
    report::say,
};

/// What the model says again and again, a piece at a time.
pub(super) const PIECE: &str = "tick ";
/// From piece to piece: a fast model, and slow enough that each piece is read by itself.
const PACE_MILLIS: f64 = 0.5;

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

/// The model at its address, and the folders of the runs.
#[derive(Debug)]
pub(super) struct Stage {
    model: Model,
    folder: PathBuf,
    claude: PathBuf,
    linkspan: PathBuf,
    xtask: PathBuf,
    warm: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_dir_all(&self.folder) {
            say(&format!("cannot tidy up {}: {err}", self.folder.display()));
        }
    }
}

impl Stage {
    /// `built` holds the programs that were built for speed.
    pub(super) fn set(built: &Path, options: &Options) -> Result<Self> {
        let agents = options.agents.clone();
        let agents = agents.unwrap_or_else(|| root().join("peers/agents/node_modules/.bin"));
        let claude = agents.join("claude");
        ensure!(
            claude.exists(),
            "{} is not there; `cargo xtask peers` installs it, `--agents FOLDER` names another place",
            claude.display()
        );
        // Not in the tree: an agent looks at the repository it is started in.
        let folder = env::temp_dir().join(format!("linkspan-bench-{}", process::id()));
        fs::create_dir_all(folder.join("work"))?;
        fs::write(
            folder.join("config.toml"),
            "[engines.claude]\nuse_api_billing = true\n",
        )?;
        let scenario = folder.join("scenario.json");
        let lanes = json!({
            "short": [{ "blocks": [{ "text": "hello" }] }],
            "long": [{
                "blocks": [{ "text": PIECE, "times": options.pieces }],
                "chunk": PIECE.len(),
                "chunk_delay_ms": PACE_MILLIS,
            }],
        });
        let script = json!({ "repeat": "last", "lanes": lanes });
        fs::write(&scenario, script.to_string())?;
        Ok(Self {
            model: Model::start(&built.join("scripted-model"), &scenario)?,
            folder,
            claude: claude.canonicalize()?,
            linkspan: built.join("linkspan"),
            xtask: built.join("xtask"),
            warm: built.join("examples/warm"),
        })
    }

    /// The agent as it is installed.
    pub(super) fn claude(&self) -> &Path {
        &self.claude
    }

    pub(super) fn claude_version(&self) -> Result<String> {
        let said = capture(self.command(&self.claude)?.arg("--version"))?.stdout;
        Ok(String::from_utf8(said)?.trim().to_owned())
    }

    /// An agent that plays a recording. It has no arguments of its own: linkspan gives it those of
    /// the agent whose recording it is.
    pub(super) fn player(&self, recording: &Path, micros: u64) -> Result<PathBuf> {
        let player = self.folder.join(format!("play-{micros}"));
        let (xtask, recording) = (self.xtask.display(), recording.display());
        let script = format!("#!/bin/sh\nexec '{xtask}' bench play '{recording}' {micros}\n");
        fs::write(&player, script)?;
        fs::set_permissions(&player, fs::Permissions::from_mode(0o755))?;
        Ok(player)
    }

    /// The agent's program alone, with the arguments that linkspan gives it.
    pub(super) fn bare(&self, agent: &Path, lane: Lane) -> Result<Command> {
        let mut command = self.command(agent)?;
        command.args(ARGS).arg(lane.prompt());
        Ok(command)
    }

    /// The same behind a program that copies its output.
    pub(super) fn copied(&self, agent: &Path, lane: Lane) -> Result<Command> {
        let mut command = self.command(&self.xtask)?;
        command.args(["bench", "copy"]).arg(agent);
        command.args(ARGS).arg(lane.prompt());
        Ok(command)
    }

    /// The same behind linkspan.
    pub(super) fn linkspan(&self, agent: &Path, lane: Lane, to: &str) -> Result<Command> {
        let mut command = self.command(&self.linkspan)?;
        command
            .args(["run", "--engine", "claude", "--to", to, "--program"])
            .arg(agent)
            .arg("--config")
            .arg(self.folder.join("config.toml"))
            .arg("--cwd")
            .arg(self.folder.join("work"))
            .args(["--", lane.prompt()]);
        Ok(command)
    }

    /// Two prompts in one session; see `crates/runner/examples/warm.rs`.
    pub(super) fn warm(&self) -> Result<Command> {
        let mut command = self.command(&self.warm)?;
        command.arg(&self.linkspan).arg(&self.claude);
        command.args([Lane::Short.prompt(); 2]);
        Ok(command)
    }

    /// A program in an empty home, with nothing but the way to the model.
    fn command(&self, program: &Path) -> Result<Command> {
        let home = self.folder.join("home");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir(&home)?;
        // Linux shares the processors out among sessions first, and linkspan's guard begins one: an
        // agent in ours would have to share it with whatever else runs in it.
        let mut command = Command::new("setsid");
        command
            .arg(program)
            .current_dir(self.folder.join("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("ANTHROPIC_API_KEY", "dummy")
            .env("ANTHROPIC_BASE_URL", self.model.address())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
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
