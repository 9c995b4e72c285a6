//! The two programs beside linkspan: the least that can stand between an agent and its reader, and
//! an agent that says what a real one has said, at a pace of its own.

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

/// What linkspan reads at once, so that both read as often.
const READ_SIZE: usize = 64 * 1024;

/// Starts a program and hands its output on, as it comes.
pub(crate) fn copy(program: &str, args: &[&str]) -> Result<()> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let mut from = child.stdout.take().context("the pipe is ours")?;
    let mut stdout = io::stdout().lock();
    let mut buf = vec![0; READ_SIZE];
    // By hand: `io::copy` lets the kernel move the bytes, which nobody who looks at them can do.
    loop {
        let n = from.read(&mut buf)?;
        if n == 0 {
            break;
        }
        stdout.write_all(&buf[..n])?;
        stdout.flush()?;
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{program}` failed: {status}");
    }
    Ok(())
}

/// Prints a recording, line by line with a pause after each, or in large pieces when there is none.
pub(crate) fn play(recording: &Path, micros: u64) -> Result<()> {
    let recording = fs::read(recording)?;
    let mut stdout = io::stdout().lock();
    if micros == 0 {
        stdout.write_all(&recording)?;
        return Ok(stdout.flush()?);
    }
    for line in recording.split_inclusive(|byte| *byte == b'\n') {
        stdout.write_all(line)?;
        stdout.flush()?;
        thread::sleep(Duration::from_micros(micros));
    }
    Ok(())
}
