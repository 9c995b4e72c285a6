//! The Python package, from the tree: its tests with the built program, the real SDK of OpenHands and the
//! real Claude Code on the scripted model, and what ruff, mypy and pyright say of it (the last two are
//! among the tests).

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::process::{root, run, target_dir};

/// `linkspan` has `scripted-model` beside it; `python` has the SDK.
pub(super) fn try_package(linkspan: &Path, python: &Path, agents: &Path) -> Result<()> {
    let work = target_dir()?.join("peers");
    let command = |module: &str, args: &[&str]| {
        let mut command = Command::new(python);
        command
            .args(["-m", module])
            .args(args)
            .current_dir(root().join("packages/python"))
            .env("LINKSPAN_BIN", linkspan)
            .env(
                "LINKSPAN_SCRIPTED_MODEL",
                linkspan.with_file_name("scripted-model"),
            )
            .env("LINKSPAN_AGENTS", agents)
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .env("OPENHANDS_SUPPRESS_BANNER", "1")
            // Python and its checkers would otherwise leave files in the tree.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("MYPY_CACHE_DIR", work.join("mypy"))
            .env("RUFF_CACHE_DIR", work.join("ruff"))
            .env("PYRIGHT_PYTHON_CACHE_DIR", work.join("pyright"));
        command
    };
    run(&mut command("ruff", &["check", "--quiet", "."]))?;
    run(&mut command("ruff", &["format", "--quiet", "--check", "."]))?;
    // Two at once: they wait for agents more than they work.
    run(&mut command(
        "pytest",
        &["--quiet", "--numprocesses=2", "--durations=5"],
    ))
}
