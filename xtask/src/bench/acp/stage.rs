//! How both contenders are started, with the same Claude Code.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{AcpContender, AcpOptions};
use crate::{
    bench::sandbox::Sandbox,
    peers::{install_adapter, node_of},
    process::root,
};

#[derive(Debug)]
pub(super) struct AcpSetup {
    sandbox: Sandbox,
    linkspan: PathBuf,
    node: PathBuf,
    adapter: PathBuf,
}

impl AcpSetup {
    /// `built` holds the programs that were built for speed.
    pub(super) fn set(built: &Path, options: &AcpOptions) -> Result<Self> {
        Ok(Self {
            sandbox: Sandbox::build(built, options.agents.as_deref(), options.pieces)?,
            linkspan: built.join("linkspan"),
            adapter: install_adapter()?,
            node: node_of(&root().join("peers/acp/node_modules"))?,
        })
    }

    /// The folder that sessions work in.
    pub(super) fn work(&self) -> PathBuf {
        self.sandbox.work()
    }

    pub(super) fn command(&self, contender: AcpContender) -> Result<Command> {
        match contender {
            AcpContender::Linkspan => {
                let mut command = self.sandbox.command(&self.linkspan)?;
                command.args(["acp", "--engine", "claude", "--config"]);
                command.arg(self.sandbox.config());
                Ok(command)
            }
            AcpContender::Adapter => {
                let mut command = self.sandbox.command(&self.node)?;
                command.arg(&self.adapter);
                command.env("CLAUDE_CODE_EXECUTABLE", self.sandbox.claude());
                Ok(command)
            }
        }
    }
}
