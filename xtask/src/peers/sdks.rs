//! Lets the SDKs of other agents drive the built program in place of their own: `exec` and `claude-sdk`, with a
//! recording, the real Claude Code on the scripted model, and a model of an Open Responses endpoint.

use std::path::Path;

use anyhow::Result;

use super::live::{LivePrograms, TestEnv};
use crate::process::{root, run};

/// The script, beside the packages that it imports.
const SCRIPT: &str = "peers/sdks/sdks.mjs";

pub(super) fn drive(linkspan: &Path, node: &Path, agents: &Path) -> Result<()> {
    let programs = LivePrograms {
        linkspan,
        model: &linkspan.with_file_name("scripted-model"),
        agents,
        python: None,
    };
    let world = TestEnv::with_scenario(programs, "peers/sdks/scenario.json")?;
    let mut client = std::process::Command::new(node);
    client.arg(root().join(SCRIPT)).arg(linkspan);
    run(world.sandbox(&mut client))
}
