//! The scripted model as a process of its own, until it is dropped.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

use crate::report::print_line;

#[derive(Debug)]
pub(crate) struct Model {
    process: Child,
    address: String,
}

impl Model {
    /// `program` is `scripted-model`.
    pub(crate) fn start(program: &Path, scenario: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .arg("--scenario")
            .arg(scenario)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `scripted-model`")?;
        let mut said = String::new();
        let stdout = process.stdout.take().context("the pipe is ours")?;
        BufReader::new(stdout).read_line(&mut said)?;
        let address = said.trim().strip_prefix("listening on ");
        let address = address.with_context(|| format!("scripted-model said `{said}`"))?;
        Ok(Self {
            address: address.to_owned(),
            process,
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let stopped = self.process.kill().and_then(|()| self.process.wait());
        if let Err(err) = stopped {
            print_line(&format!("cannot stop the scripted model: {err}"));
        }
    }
}
