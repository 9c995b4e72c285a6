//! The tests of the copy: how long each takes, and which mutants it reaches, in all the processes that it starts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    libtest::{TestProgram, end_group},
    process::capture,
    report::print_line,
};

/// How many processes with tests run at once.
pub(super) const N_AT_ONCE: usize = 2;
/// A test that takes this long alone, without a mutant, is left out.
const TOO_LONG: Duration = Duration::from_secs(60);

/// A program and its tests.
pub(super) struct Suite {
    pub(super) program: TestProgram,
    pub(super) tests: BTreeMap<String, Reach>,
}

/// What is known of a test.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Reach {
    pub(super) took: Duration,
    pub(super) mutants: BTreeSet<usize>,
}

/// How a process with tests ended.
#[derive(Debug, PartialEq)]
pub(super) enum TestRun {
    Passed,
    /// With the first test that failed, if the process lived to name it.
    Failed(Option<String>),
    TimedOut,
}

impl Suite {
    /// Runs each test alone, unless that was done with the same program and the same mutants (`stamp`) before.
    pub(super) fn record(
        program: TestProgram,
        folder: &Path,
        scratch: &Path,
        stamp: u64,
    ) -> Result<Suite> {
        let mut hasher = DefaultHasher::new();
        hasher.write(&fs::read(program.path())?);
        hasher.write_u64(stamp);
        let cache = folder.join(format!("reach-{:016x}.json", hasher.finish()));
        if let Ok(bytes) = fs::read(&cache) {
            let tests = serde_json::from_slice(&bytes).context("a file of this program")?;
            return Ok(Suite { program, tests });
        }
        print_line(&format!("running the tests of {} alone", program.name()));
        let tests = record_all(&program, scratch)?;
        fs::write(&cache, serde_json::to_vec(&tests)?)?;
        Ok(Suite { program, tests })
    }
}

fn record_all(program: &TestProgram, scratch: &Path) -> Result<BTreeMap<String, Reach>> {
    let names = names(program)?;
    let next = AtomicUsize::new(0);
    let work = |worker: usize| -> Result<Vec<(String, Reach)>> {
        let mut recorded = Vec::new();
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            match record_one(program, name, &scratch.join(format!("seen-{worker}")))? {
                Some(reach) => recorded.push((name.clone(), reach)),
                None => print_line(&format!("left out, it does not pass alone: {name}")),
            }
        }
        Ok(recorded)
    };
    let recorded: Vec<Result<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..N_AT_ONCE)
            .map(|it| scope.spawn(move || work(it)))
            .collect();
        let joined = workers.into_iter().map(|it| it.join());
        joined
            .map(|it| it.expect("a worker does not panic"))
            .collect()
    });
    let recorded: Result<Vec<Vec<_>>> = recorded.into_iter().collect();
    Ok(recorded?.into_iter().flatten().collect())
}

fn names(program: &TestProgram) -> Result<Vec<String>> {
    let listed = capture(program.command().args(["--list", "--format", "terse"]))?;
    let listed = String::from_utf8(listed.stdout)?;
    let names = listed.lines().filter_map(|it| it.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

fn record_one(program: &TestProgram, name: &str, seen: &Path) -> Result<Option<Reach>> {
    // The second try is for those that a busy machine has made fail.
    for _ in 0..2 {
        fs::write(seen, "")?;
        let start = Instant::now();
        let mut command = program.command();
        command.env("MUTANTS_SEEN", seen).args(["--exact", name]);
        if run(&mut command, &seen.with_extension("log"), TOO_LONG)? == TestRun::Passed {
            let mutants = fs::read_to_string(seen)?;
            return Ok(Some(Reach {
                took: start.elapsed(),
                mutants: mutants.lines().filter_map(|it| it.parse().ok()).collect(),
            }));
        }
    }
    Ok(None)
}

/// Runs a command for at most `limit`; what it prints goes to `log`.
pub(super) fn run(command: &mut Command, log: &PathBuf, limit: Duration) -> Result<TestRun> {
    let start = Instant::now();
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(log)?)
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a test program")?;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.success() {
                true => TestRun::Passed,
                false => TestRun::Failed(first_failed(&String::from_utf8_lossy(&fs::read(log)?))),
            });
        }
        if start.elapsed() > limit {
            end_group(&mut child)?;
            return Ok(TestRun::TimedOut);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn first_failed(printed: &str) -> Option<String> {
    let mut lines = printed.lines();
    let name = lines.find_map(|it| it.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_named() {
        let printed = "running 2 tests\ntest a::b ... ok\ntest c ... FAILED\n\nfailures:\n";
        assert_eq!(first_failed(printed).as_deref(), Some("c"));
        assert_eq!(first_failed("running 1 test\n"), None);
    }
}
