//! Tries the npm package: its parts, its archive and its types, and its client against the real server, under this
//! Node, under a newer one that has a WebSocket of its own, and in Chromium.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Validator, built, install, installed};
use crate::process::{root, run as run_command};
use crate::report::{Warnings, print_line};

/// What also differs by the version of Node: how it gets its WebSocket.
const BY_NODE: &str = "server.test.mjs";

/// What needs a browser.
const IN_BROWSER: &str = "browser.test.mjs";

pub(super) fn run() -> Result<Warnings> {
    let interpreters = installed()?;
    // Each of them is a warning of the installation already, and an error in CI.
    let node = interpreters.of(Validator::Thread);
    let Some(node) = node.filter(|_| interpreters.has_npm_judges()) else {
        return Ok(Warnings::new());
    };
    let linkspan = built()?;
    let has_browser = interpreters.of(Validator::Html).is_some();
    let mut files = Vec::new();
    let folder = root().join("packages/npm/tests");
    for entry in folder
        .read_dir()
        .context("cannot read `packages/npm/tests`")?
    {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.mjs") && (has_browser || name != IN_BROWSER) {
            files.push(name);
        }
    }
    files.sort();
    run_command(&mut tests(node, &linkspan, &files))?;
    if let Some(modules) = interpreters.acp_clients() {
        print_line("the same under a Node with a WebSocket");
        let newer = install::node_of(modules)?;
        run_command(&mut tests(&newer, &linkspan, &[BY_NODE.to_owned()]))?;
    }
    Ok(Warnings::new())
}

fn tests(node: &Path, linkspan: &Path, files: &[String]) -> Command {
    let mut command = Command::new(node);
    command.args(["--test", "--test-reporter=spec"]);
    // Most of them wait; one that hangs is named.
    command.args(["--test-concurrency=2", "--test-timeout=300000"]);
    let folder = root().join("packages/npm/tests");
    command.args(files.iter().map(|it| folder.join(it)));
    command.env("LINKSPAN", linkspan).current_dir(root());
    command
}
