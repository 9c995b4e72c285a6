//! One child process from start to end: time on the clock, time on the processor, peak memory.
//!
//! The kernel keeps a dead child's times until it is waited for, and its memory only while it
//! lives; so `/proc` is watched until the child is dead and read once more before it is buried.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Short beside the runs, long beside what a look costs.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Nanoseconds per unit of the times in `/proc/<pid>/stat`, on every Linux of today.
const TICK: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub(crate) struct ProcessSample {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_kilobytes: u64,
    /// What it said on stdout or stderr: the counts that must not change between rounds.
    pub(crate) said: String,
}

/// Runs a command to its end and watches it.
pub(crate) fn watch(command: &mut Command) -> Result<ProcessSample> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    let pid = child.id();
    let mut peak_kilobytes = 0;
    while !is_dead(pid)? {
        peak_kilobytes = peak(pid)?.unwrap_or(0).max(peak_kilobytes);
        thread::sleep(LOOK_EVERY);
    }
    let wall = start.elapsed();
    let cpu = cpu(pid)?;
    let mut said = String::new();
    for pipe in [
        child.stdout.take().map(|it| Box::new(it) as Box<dyn Read>),
        child.stderr.take().map(|it| Box::new(it) as Box<dyn Read>),
    ] {
        pipe.context("the pipe is ours")?
            .read_to_string(&mut said)?;
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{command:?} failed: {status}\n{said}");
    }
    Ok(ProcessSample {
        wall,
        cpu,
        peak_kilobytes,
        said: said.trim().to_owned(),
    })
}

pub(super) fn is_dead(pid: u32) -> Result<bool> {
    Ok(stat(pid)?.first().is_some_and(|state| state == "Z"))
}

/// The fields of `/proc/<pid>/stat` from the state on; the name before it may hold anything.
fn stat(pid: u32) -> Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat
        .rsplit_once(')')
        .context("/proc/<pid>/stat has a name")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

/// The most memory it has had so far, in kilobytes; nothing once it is dead.
pub(super) fn peak(pid: u32) -> Result<Option<u64>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    Ok(peak.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok()))
}

/// What it has used itself, without its children.
///
/// The scheduler counts nanoseconds of the first thread, the ticks count all threads.
pub(super) fn cpu(pid: u32) -> Result<Duration> {
    let ticks = ticks(&stat(pid)?)?;
    let scheduled = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let scheduled = scheduled.split_whitespace().next().unwrap_or_default();
    let nanoseconds: u64 = scheduled.parse().unwrap_or(0);
    let is_one_thread = nanoseconds + 3 * TICK > ticks * TICK;
    let nanoseconds = if is_one_thread {
        nanoseconds
    } else {
        ticks * TICK
    };
    Ok(Duration::from_nanos(nanoseconds))
}

/// What all threads of a process have used, those that have ended too, to a hundredth of a second.
pub(super) fn whole_cpu(pid: u32) -> Result<Duration> {
    Ok(Duration::from_nanos(ticks(&stat(pid)?)? * TICK))
}

/// What it has in memory, in kilobytes.
pub(super) fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
    resident.context("a process that lives has memory")
}

/// User and system time.
fn ticks(stat: &[String]) -> Result<u64> {
    let ticks = |at: usize| stat.get(at).and_then(|it| it.parse::<u64>().ok());
    Ok(ticks(11).context("user time")? + ticks(12).context("system time")?)
}

/// How much of the processors' time the host gave to others.
#[derive(Debug)]
pub(crate) struct Steal {
    before: (u64, u64),
}

impl Steal {
    pub(crate) fn begin() -> Result<Self> {
        Ok(Self { before: times()? })
    }

    /// From 0 to 1, since the beginning.
    pub(crate) fn share(&self) -> Result<f64> {
        let (stolen, all) = times()?;
        let all = all.saturating_sub(self.before.1).max(1);
        Ok(stolen.saturating_sub(self.before.0) as f64 / all as f64)
    }
}

/// Stolen and all ticks since the machine started.
fn times() -> Result<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().context("/proc/stat has a line")?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // The last two, guest times, are also part of the first two.
    let all = ticks.iter().take(8).sum();
    Ok((ticks.get(7).copied().unwrap_or(0), all))
}
