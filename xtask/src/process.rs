//! Starting other programs, with errors that name the command.

use std::{
    env, iter,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::report;

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// The cargo that runs this task, from the workspace's folder.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Where cargo builds, wherever a config or the environment has put it.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = cargo_metadata(&root().join("Cargo.toml"))?;
    let dir = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(dir))
}

pub(crate) fn cargo_metadata(manifest: &Path) -> Result<serde_json::Value> {
    let mut command = cargo();
    command
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--manifest-path",
        ])
        .arg(manifest);
    serde_json::from_slice(&capture(&mut command)?.stdout).context("cargo metadata is not JSON")
}

/// Runs a command to its end and shows its output; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = name(command);
    if let Some(log) = report::log_file() {
        command.stdout(log.try_clone()?).stderr(log);
    }
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{name}`"))?;
    if !status.success() {
        bail!("`{name}` failed: {status}");
    }
    Ok(())
}

/// Runs a command silently; its output is shown only inside the error.
pub(crate) fn capture(command: &mut Command) -> Result<Output> {
    let name = name(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{name}`"))?;
    if !output.status.success() {
        bail!(
            "`{name}` failed: {}\n{}",
            output.status,
            tail(&String::from_utf8_lossy(&output.stderr))
        );
    }
    Ok(output)
}

/// Tries a command that uses the network again after a pause, as registries have bad minutes.
pub(crate) fn run_with_retries(mut command: impl FnMut() -> Command) -> Result<()> {
    let mut result = run(&mut command());
    for pause in PAUSES {
        let Err(err) = &result else { break };
        report::print_line(&format!("{err:#}; trying again in {} s", pause.as_secs()));
        thread::sleep(pause);
        result = run(&mut command());
    }
    result
}

const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// The end of a long text: enough to see the reason, not enough to bury the summary.
pub(crate) fn tail(text: &str) -> String {
    const MAX_LINES: usize = 15;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(MAX_LINES)..].join("\n")
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = iter::once(program).chain(command.get_args());
    words
        .map(|it| it.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
