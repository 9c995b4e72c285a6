//! Runs built test programs, several at a time, and lets no test hang.
//!
//! `cargo test` waits for ever for a test that does, and does not say which one it is. Here a test has
//! [`LIMIT`] from the moment libtest names it as slow; then it is named, and its program is ended with
//! everything it has started in its process group.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    process::{capture, cargo, run},
    report,
};

/// Added to the 60 s after which libtest names a test that still runs.
const LIMIT: Duration = Duration::from_secs(240);
/// How many programs run at once. Most tests of agents and servers wait, those of formats compute.
const N_AT_ONCE: usize = 2;

/// A test program that cargo has built.
#[derive(Clone, Debug)]
pub(crate) struct TestProgram {
    package: String,
    target: String,
    path: PathBuf,
    /// Where cargo would run it.
    folder: PathBuf,
}

/// Builds every program and test of the workspace. It is the only build: `cargo build` would leave out what
/// tests need of the dependencies, and so build everything once more.
pub(crate) fn build() -> Command {
    let mut command = cargo();
    command.args(["test", "--quiet", "--workspace", "--no-run"]);
    command
}

/// The test programs that `cargo test --workspace` would run.
pub(crate) fn programs() -> Result<Vec<TestProgram>> {
    built(&[])
}

/// One test program. Cargo would build its dependencies again for `--package`, with fewer features.
pub(crate) fn program(package: &str, target: &str) -> Result<TestProgram> {
    let built = built(&["--test", target])?;
    let found = built.into_iter().find(|it| it.package == package);
    found.with_context(|| format!("cargo built no test program `{target}` of `{package}`"))
}

fn built(targets: &[&str]) -> Result<Vec<TestProgram>> {
    let mut command = build();
    command.args(targets).arg("--message-format=json");
    built_by(command)
}

/// The test programs that a command of cargo names, which has to write JSON.
pub(crate) fn built_by(mut command: Command) -> Result<Vec<TestProgram>> {
    #[derive(serde::Deserialize)]
    struct Artifact {
        manifest_path: Option<PathBuf>,
        target: Option<Target>,
        executable: Option<PathBuf>,
        profile: Option<Profile>,
    }
    #[derive(serde::Deserialize)]
    struct Target {
        name: String,
    }
    #[derive(serde::Deserialize)]
    struct Profile {
        test: bool,
    }
    let printed = capture(&mut command)?.stdout;
    let artifacts = serde_json::Deserializer::from_slice(&printed).into_iter::<Artifact>();
    let program = |it: Artifact| {
        let folder = it.manifest_path?.parent()?.to_owned();
        let is_test = it.profile?.test;
        is_test.then_some(TestProgram {
            package: folder.file_name()?.to_string_lossy().into_owned(),
            target: it.target?.name,
            path: it.executable?,
            folder,
        })
    };
    Ok(artifacts.flatten().filter_map(program).collect())
}

impl TestProgram {
    /// To be run as cargo would run it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        // Two programs run at once: together they have as many tests under way as `cargo test` has.
        command.env("RUST_TEST_THREADS", "2");
        command
    }

    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// The larger ones begin first, so that none is left to run alone at the end.
    fn n_bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |it| it.len())
    }
}

/// Runs all programs, with the same arguments; fails when one of them does.
pub(crate) fn run_all(mut programs: Vec<TestProgram>, args: &[&str]) -> Result<()> {
    programs.sort_by_key(TestProgram::n_bytes);
    let (queue, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(program) = next else { break };
            let (printed, result) = watch(program.command().args(args));
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            report::print_line(&format!(
                "\n     Running {}\n{}",
                program.name(),
                printed.trim_end()
            ));
            if let Err(err) = result {
                failed.push(format!("{}: {err:#}", program.name()));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..N_AT_ONCE {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("{}", failed.join("\n")),
    }
}

/// Runs a program to its end, or until one of its tests takes too long.
fn watch(command: &mut Command) -> (String, Result<()>) {
    let mut printed = String::new();
    let result = watch_into(command, &mut printed);
    (printed, result)
}

fn watch_into(command: &mut Command, printed: &mut String) -> Result<()> {
    command.process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start it")?;
    let lines = lines(&mut child);
    let mut slow: HashMap<String, Instant> = HashMap::new();
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                note(&line, &mut slow);
                printed.push_str(&line);
                printed.push('\n');
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => (),
        }
        let stuck = slow.iter().find(|(_, since)| since.elapsed() > LIMIT);
        if let Some((name, _)) = stuck {
            end_group(&mut child)?;
            bail!("`{name}` did not end; its program was killed");
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("failed: {status}");
    }
    Ok(())
}

/// What a program prints, on both of its outputs.
fn lines(child: &mut Child) -> Receiver<String> {
    let (tx, rx) = mpsc::channel();
    let outputs = [
        child
            .stdout
            .take()
            .map(|it| Box::new(it) as Box<dyn Read + Send>),
        child
            .stderr
            .take()
            .map(|it| Box::new(it) as Box<dyn Read + Send>),
    ];
    for output in outputs.into_iter().flatten() {
        let tx = tx.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if tx
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    break;
                }
            }
        });
    }
    rx
}

/// libtest names a test after 60 s, and again when it has ended.
fn note(line: &str, slow: &mut HashMap<String, Instant>) {
    let Some(line) = line.strip_prefix("test ") else {
        return;
    };
    if let Some((name, _)) = line.split_once(" has been running for over ") {
        slow.insert(name.to_owned(), Instant::now());
    } else if let Some((name, _)) = line.rsplit_once(" ... ") {
        slow.remove(name);
    }
}

/// Kills a program that was started as a process group of its own, and what it has started.
pub(crate) fn end_group(child: &mut Child) -> Result<()> {
    let group = format!("-{}", child.id());
    run(Command::new("kill").args(["-KILL", "--", &group]))?;
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_test_is_known_until_it_ends() {
        let mut slow = HashMap::new();
        note("test a::b has been running for over 60 seconds", &mut slow);
        note("test c ... ok", &mut slow);
        assert_eq!(slow.keys().collect::<Vec<_>>(), ["a::b"]);
        note("test a::b ... FAILED", &mut slow);
        assert!(slow.is_empty());
    }
}
