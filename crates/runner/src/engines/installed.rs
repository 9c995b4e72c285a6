//! Detects the installed agents and their versions.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::select::default_order;
use super::{ENGINES, Engine, EngineConfig};
use crate::config::Config;
use crate::process::NotFound;

/// Time limit for printing a version; the slowest program needs about two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than any version line; what follows is not read.
const MAX_ANSWER: u64 = 4096;

/// An engine, and where its program is.
#[derive(Debug)]
pub struct Installed {
    pub engine: &'static Engine,
    pub path: Option<PathBuf>,
    /// None when it is not installed, or does not say in time.
    pub version: Option<String>,
}

/// The default engine among these, where the config names none.
pub fn first_of(survey: &[Installed]) -> Option<&'static str> {
    let is_installed = |name: &&str| {
        let mut rows = survey.iter();
        rows.any(|it| it.engine.name == *name && it.path.is_some())
    };
    default_order().into_iter().find(is_installed)
}

/// Looks for every engine's program without starting any of them. A program that has other users is no sign of the
/// agent.
pub fn find_installed(config: &Config, find: &FindProgram<'_>) -> Vec<Installed> {
    let found = programs(config, find).map(|(engine, _, path)| Installed {
        engine,
        // A Python that is there says nothing about OpenHands.
        path: path.filter(|_| !is_shared(engine)),
        version: None,
    });
    found.collect()
}

/// Looks for every engine's program, and asks all of them for their versions at once.
pub fn detect_installed(config: &Config, find: &FindProgram<'_>) -> Vec<Installed> {
    thread::scope(|scope| {
        let mut asked = Vec::new();
        for (engine, config, path) in programs(config, find) {
            let program = path.clone();
            // All at once: the slowest needs seconds, and they would add up.
            let answer = program.map(|it| scope.spawn(move || version(engine, &it, &config)));
            asked.push((engine, path, answer));
        }
        let answered = asked.into_iter().map(|(engine, path, answer)| {
            let version = answer.and_then(|it| it.join().ok().flatten());
            Installed {
                engine,
                path: path.filter(|_| version.is_some() || !is_shared(engine)),
                version,
            }
        });
        answered.collect()
    })
}

type FindProgram<'a> = dyn Fn(&str) -> Result<PathBuf, NotFound> + 'a;

/// The engines that have a program, with their configs and where the program is.
fn programs(
    config: &Config,
    find: &FindProgram<'_>,
) -> impl Iterator<Item = (&'static Engine, EngineConfig, Option<PathBuf>)> {
    let engines = ENGINES
        .iter()
        .filter_map(|it| Some((it, it.program.as_ref()?)));
    engines.map(|(engine, program)| {
        let config = config.engine(engine.name);
        let path = find(config.program.as_deref().unwrap_or(program.name)).ok();
        (engine, config, path)
    })
}

fn is_shared(engine: &Engine) -> bool {
    engine.program.as_ref().is_some_and(|it| it.is_shared)
}

fn version(engine: &Engine, path: &Path, config: &EngineConfig) -> Option<String> {
    let program = engine.program.as_ref()?;
    let mut child = Command::new(path)
        .args(program.version)
        .envs(program.env.iter().copied())
        .envs(&config.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A group of its own, so that a wrapper is ended together with what it has started.
        .process_group(0)
        .spawn()
        .ok()?;
    let answer = child.stdout.take().and_then(answer);
    end(&mut child);
    answer
}

/// The version in what it prints, if it comes in time.
fn answer(stdout: ChildStdout) -> Option<String> {
    let (tx, rx) = mpsc::channel();
    // Not joined: a grandchild may hold the pipe for as long as it likes.
    thread::spawn(move || {
        let lines = BufReader::new(stdout.take(MAX_ANSWER)).lines();
        let version = lines.map_while(Result::ok).find_map(|it| number(&it));
        // An error means that the receiver is gone.
        tx.send(version).ok()
    });
    rx.recv_timeout(PATIENCE).ok().flatten()
}

/// Wrappers start the real program as a child, so the whole group is ended.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // An error means that it is gone already.
        kill_process_group(group, Signal::KILL).ok();
    }
    child.wait().ok();
}

/// The first word that looks like a version.
fn number(text: &str) -> Option<String> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '+');
    let is_version = |it: &&str| {
        it.starts_with(|it: char| it.is_ascii_digit())
            && it.contains('.')
            && it.chars().all(is_part)
    };
    let mut words = text.split_whitespace().map(|it| it.trim_start_matches('v'));
    words.find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_each_program_prints() {
        let check = |text, version: Option<&str>| assert_eq!(number(text).as_deref(), version);
        check("2.1.325 (Claude Code)\n", Some("2.1.325"));
        check("codex-cli 0.166.0\n", Some("0.166.0"));
        check("1.18.33\n", Some("1.18.33"));
        check(
            "v0.61.0-nightly.20261101\n",
            Some("0.61.0-nightly.20261101"),
        );
        check("1.0\u{1b}[2J\n", None);
        check("usage: claude\n", None);
        check("", None);
    }
}
