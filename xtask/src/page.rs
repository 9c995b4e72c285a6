//! Tries the page of the server: its types, its parts under Node, and Chromium against a mock and
//! against the real server. The scripts are in `web/tests`; what they need is installed with the peers.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::peers::{built, install};
use crate::process::{root, run as run_command};
use crate::report::{Warnings, print_line};

pub(crate) fn run() -> Result<Warnings> {
    let (stage, warnings) = install::install_stage()?;
    // Each of them is a warning already, and an error in CI.
    let Some(node) = &stage.node else {
        return Ok(warnings);
    };
    print_line("the types of web/assets");
    run_command(&mut script(
        node,
        "peers/js/node_modules/typescript/bin/tsc",
        &["-p", "web"],
    ))?;
    print_line("the parts of the page");
    run_command(&mut parts(node)?)?;
    let Some(browser) = &stage.browser else {
        return Ok(warnings);
    };
    let linkspan = built()?;
    let mut mock = script(node, "web/tests/browser.mjs", &[]);
    mock.env("CHROMIUM", browser);
    let mut serve = script(node, "web/tests/serve.mjs", &[]);
    serve.env("CHROMIUM", browser);
    serve.env("SCRIPTED_MODEL", linkspan.with_file_name("scripted-model"));
    serve.env("LINKSPAN", linkspan);
    if let Some(programs) = &stage.agents {
        serve.env("LINKSPAN_AGENTS", programs);
    }
    print_line("Chromium against the mock");
    run_command(&mut mock)?;
    print_line("Chromium against the real server");
    run_command(&mut serve)?;
    Ok(warnings)
}

fn script(node: &Path, path: &str, words: &[&str]) -> Command {
    let mut command = Command::new(node);
    command.arg(root().join(path)).args(words);
    command.current_dir(root());
    command
}

/// All tests that need no browser; Node 20 does not look for them by itself.
fn parts(node: &Path) -> Result<Command> {
    let folder = root().join("web/tests");
    let mut command = Command::new(node);
    command.args(["--test", "--test-reporter=dot"]);
    for entry in folder.read_dir().context("cannot read `web/tests`")? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".test.mjs") {
            command.arg(path);
        }
    }
    command.current_dir(root());
    Ok(command)
}
