//! One run from start to end: when its first line came, what the program itself used, and what its
//! guard did.
//!
//! The times of `/proc/PID/stat` are a process's own; its children's are counted apart, so the agent
//! is not in them. linkspan's are read when it has ended and before it is waited for, and are whole.
//! Its guard is waited for by linkspan: what it used is what the last look saw, a few milliseconds
//! before its end.

use std::{
    io::{self, BufRead, BufReader},
    process::{ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use memchr::memmem;

use super::guard::{Guard, find_guard};
use crate::bench::{
    measure::{cpu, is_dead, peak},
    sandbox::PIECE,
};

/// Short beside a guard's life, long beside what a look costs.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(super) struct RunSample {
    /// Until the first line was printed.
    pub(super) first: Duration,
    /// Without the agent and without the guard.
    pub(super) cpu: Duration,
    pub(super) peak_kilobytes: u64,
    pub(super) guard: Guard,
    /// How often the piece of text was printed: who says less has done less.
    pub(super) n_pieces: usize,
}

/// Whether the first child of what is watched is linkspan's guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    Guard,
    Agent,
}

/// Runs a command to its end and watches it.
pub(super) fn watch(command: &mut Command, below: Below) -> Result<RunSample> {
    let start = Instant::now();
    let mut process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    let stdout = process.stdout.take().context("the pipe is ours")?;
    let reader = thread::spawn(move || read(stdout, start));
    let pid = process.id();
    let (mut peak_kilobytes, mut guard) = (0, Guard::default());
    while !is_dead(pid)? {
        peak_kilobytes = peak(pid)?.unwrap_or(0).max(peak_kilobytes);
        if below == Below::Guard {
            guard = find_guard(pid).unwrap_or(guard);
        }
        thread::sleep(LOOK_EVERY);
    }
    let cpu = cpu(pid)?;
    let printed = reader.join();
    let printed = printed.map_err(|_| anyhow!("the reader of its output has failed"))??;
    let output = process.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed: {}\n{said}", output.status);
    }
    Ok(RunSample {
        first: printed.first.context("nothing was printed")?,
        cpu,
        peak_kilobytes,
        guard,
        n_pieces: printed.n_pieces,
    })
}

/// What came out of the pipe.
#[derive(Debug, Default)]
struct Printed {
    first: Option<Duration>,
    n_pieces: usize,
}

fn read(stdout: ChildStdout, start: Instant) -> io::Result<Printed> {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let finder = memmem::Finder::new(PIECE.trim_end());
    let mut printed = Printed::default();
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line)? > 0 {
        printed.first.get_or_insert_with(|| start.elapsed());
        printed.n_pieces += finder.find_iter(&line).count();
        line.clear();
    }
    Ok(printed)
}
