//! How both contenders are started, with the same Claude Code.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{Contender, Options};
use crate::{
    bench::house::House,
    peers::{install_adapter, node_of},
    process::root,
};

#[derive(Debug)]
pub(super) struct Stage {
    house: House,
    linkspan: PathBuf,
    node: PathBuf,
    adapter: PathBuf,
}

impl Stage {
    /// `built` holds the programs that were built for speed.
    pub(super) fn set(built: &Path, options: &Options) -> Result<Self> {
        Ok(Self {
            house: House::build(built, options.agents.as_deref(), options.pieces)?,
            linkspan: built.join("linkspan"),
            adapter: install_adapter()?,
            node: node_of(&root().join("peers/acp/node_modules"))?,
        })
    }

    /// The folder that sessions work in.
    pub(super) fn work(&self) -> PathBuf {
        self.house.work()
    }

    pub(super) fn command(&self, contender: Contender) -> Result<Command> {
        match contender {
            Contender::Linkspan => {
                let mut command = self.house.command(&self.linkspan)?;
                command.args(["acp", "--engine", "claude", "--config"]);
                command.arg(self.house.config());
                Ok(command)
            }
            Contender::Adapter => {
                let mut command = self.house.command(&self.node)?;
                command.arg(&self.adapter);
                command.env("CLAUDE_CODE_EXECUTABLE", self.house.claude());
                Ok(command)
            }
        }
    }
}
