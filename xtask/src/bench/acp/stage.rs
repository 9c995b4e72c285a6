//! What both contenders have around them: the scripted model, an empty home, the same Claude Code.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Contender, Options, client::PIECE};
use crate::{
    model::Model,
    peers::{install_adapter, node_of},
    process::root,
    report::say,
};

/// From piece to piece: a fast model, and slow enough that each piece is read by itself.
const PACE_MILLIS: f64 = 0.5;

#[derive(Debug)]
pub(super) struct Stage {
    model: Model,
    folder: PathBuf,
    claude: PathBuf,
    linkspan: PathBuf,
    node: PathBuf,
    adapter: PathBuf,
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
        let adapter = install_adapter()?;
        // Not in the tree: an agent looks at the repository it is started in.
        let folder = env::temp_dir().join(format!("linkspan-bench-acp-{}", process::id()));
        fs::create_dir_all(folder.join("work"))?;
        let config = format!("[engines.claude]\nprogram = {claude:?}\nuse_api_billing = true\n");
        fs::write(folder.join("config.toml"), config)?;
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
            node: node_of(&root().join("peers/acp/node_modules"))?,
            adapter,
        })
    }

    /// The folder that sessions work in.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    pub(super) fn command(&self, contender: Contender) -> Result<Command> {
        let home = self.folder.join("home");
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir(&home)?;
        // Linux shares the processors out among sessions first: each contender has one.
        let mut command = Command::new("setsid");
        match contender {
            Contender::Linkspan => {
                command.arg(&self.linkspan);
                command.args(["acp", "--engine", "claude", "--config"]);
                command.arg(self.folder.join("config.toml"));
            }
            Contender::Adapter => {
                command.arg(&self.node).arg(&self.adapter);
            }
        }
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("ANTHROPIC_API_KEY", "dummy")
            .env("ANTHROPIC_BASE_URL", self.model.address())
            .env("CLAUDE_CODE_EXECUTABLE", &self.claude)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        Ok(command)
    }
}
