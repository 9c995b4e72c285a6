//! What the benches with the real Claude Code have around it: the scripted model, an empty home, nothing
//! of the user's environment.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{model::Model, process::root, report::print_line};

/// What the model says again and again, a piece at a time.
pub(super) const PIECE: &str = "tick ";
/// From piece to piece: a fast model, and slow enough that each piece is read by itself.
const PACE_MILLIS: f64 = 0.5;

/// The model at its address, with the lanes `short`, a word, and `long`, so many pieces; gone when it is
/// dropped.
#[derive(Debug)]
pub(super) struct Sandbox {
    model: Model,
    folder: PathBuf,
    claude: PathBuf,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Err(err) = fs::remove_dir_all(&self.folder) {
            print_line(&format!("cannot tidy up {}: {err}", self.folder.display()));
        }
    }
}

impl Sandbox {
    /// `built` holds the programs that were built for speed, `agents` Claude Code.
    pub(super) fn build(built: &Path, agents: Option<&Path>, pieces: usize) -> Result<Self> {
        let agents = agents.map(Path::to_owned);
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
        let scenario = folder.join("scenario.json");
        let lanes = json!({
            "short": [{ "blocks": [{ "text": "hello" }] }],
            "long": [{
                "blocks": [{ "text": PIECE, "times": pieces }],
                "chunk": PIECE.len(),
                "chunk_delay_ms": PACE_MILLIS,
            }],
        });
        let script = json!({ "repeat": "last", "lanes": lanes });
        fs::write(&scenario, script.to_string())?;
        let sandbox = Self {
            model: Model::start(&built.join("scripted-model"), &scenario)?,
            claude: claude.canonicalize()?,
            folder,
        };
        let claude = sandbox.claude();
        let config = format!("[engines.claude]\nprogram = {claude:?}\nuse_api_billing = true\n");
        fs::write(sandbox.config(), config)?;
        Ok(sandbox)
    }

    /// The agent as it is installed.
    pub(super) fn claude(&self) -> &Path {
        &self.claude
    }

    /// The folder that sessions work in.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// linkspan's config file.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// A place for a file of this run.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A program in an empty home, with nothing but the way to the model.
    pub(super) fn command(&self, program: &Path) -> Result<Command> {
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
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("ANTHROPIC_API_KEY", "dummy")
            .env("ANTHROPIC_BASE_URL", self.model.address())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        Ok(command)
    }
}
