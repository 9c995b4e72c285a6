//! The real agents, at pinned versions, driven by the real program against a scripted model.
//!
//! `cargo xtask peers` installs the agents and runs this; by hand it is
//! `LINKSPAN_AGENTS=DIR cargo test -p linkspan --test agents -- [WORD…]`, where DIR holds the programs
//! (`peers/agents/node_modules/.bin` unless given) and only cases that hold every word are run.
//! `LINKSPAN_PYTHON` names a Python with the SDK of OpenHands; without one that agent is left out, and
//! it is said.
//! What is tried with which agent, and what none of them can do, is the table in `table.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod aborts;
mod crashes;
mod errors;
mod finished_run;
mod keys;
mod modes;
mod openhands;
mod peers;
mod permissions;
mod processes;
mod prompts;
mod running;
mod sessions;
mod table;
mod terminal;
mod test_env;
mod tools;

use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, thread};

use crate::peers::{PEERS, Peer};
use crate::table::{BEHAVIOURS, Behaviour, Cell, ENGINES};
use crate::test_env::TestEnv;

/// The agents are heavy; more at a time only makes each of them slower.
const THREADS: usize = 3;

/// Cases that may fail beside others and pass alone. The agents race with themselves on a busy machine (Codex
/// lists a session some time after it has ended); more than that is a fault of ours.
const MAX_FLAKY: usize = 2;

/// One behaviour of one agent.
struct Case {
    behaviour: &'static str,
    peer: &'static Peer,
}

impl Case {
    fn name(&self) -> String {
        format!("{}: {}", self.peer.engine, self.behaviour)
    }

    fn try_out(&self) -> Result<(), String> {
        let test = try_of(self.behaviour).ok_or("there is no test of this name")?;
        let test_env = TestEnv::new(self.peer);
        let tried = panic::catch_unwind(AssertUnwindSafe(|| test(&test_env)));
        tried.map_err(|_| {
            let why = PANIC.with(|it| it.take());
            format!("{why}\n{}", test_env.transcript())
        })
    }
}

fn try_of(behaviour: &str) -> Option<fn(&TestEnv)> {
    let tests = [
        prompts::TESTS,
        keys::TESTS,
        tools::TESTS,
        permissions::TESTS,
        modes::TESTS,
        sessions::TESTS,
        aborts::TESTS,
        crashes::TESTS,
        errors::TESTS,
        openhands::TESTS,
    ];
    let mut tests = tests.into_iter().flatten();
    tests.find(|it| it.0 == behaviour).map(|it| it.1)
}

thread_local! {
    /// Why the case of this thread has failed.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn main() -> ExitCode {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|it| *it.borrow_mut() = info.to_string());
    }));
    // Flags are for the usual harness; words choose cases.
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let mut cases = cases(&words);
    if test_env::python().is_none() {
        let n_before = cases.len();
        cases.retain(|it| it.peer.engine != "openhands");
        let n_left_out = n_before - cases.len();
        if n_left_out > 0 {
            print_line(&format!(
                "NOT TRIED: {n_left_out} cases of openhands, because LINKSPAN_PYTHON is not set"
            ));
        }
    }
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let tried = case.try_out();
                    let verdict = if tried.is_ok() { "ok" } else { "FAILED" };
                    let took = began.elapsed().as_secs_f64();
                    print_line(&format!("{verdict:6} {took:5.1} s  {}", case.name()));
                    if let Err(why) = tried {
                        failures.lock().unwrap().push((case, why));
                    }
                }
            });
        }
    });
    let mut failures: Vec<(&Case, String)> = failures.into_inner().unwrap();
    for (case, why) in &failures {
        print_line(&format!("\n---- {}\n{why}", case.name()));
    }
    if failures.len() <= MAX_FLAKY {
        failures.retain(|(case, _)| {
            let tried = case.try_out();
            let verdict = if tried.is_ok() { "FLAKY" } else { "FAILED" };
            print_line(&format!("{verdict:6} alone    {}", case.name()));
            tried.is_err()
        });
    }
    let n_failed = failures.len();
    print_line(&format!(
        "{} passed, {n_failed} failed",
        cases.len() - n_failed
    ));
    ExitCode::from(u8::from(n_failed > 0 || cases.is_empty()))
}

/// The slowest agents first, so that no thread is left with them alone.
fn cases(words: &[String]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (column, peer) in PEERS.iter().enumerate() {
        assert_eq!(peer.engine, ENGINES[column]);
        let can = |it: &&Behaviour| it.cells[column] == Cell::Yes;
        let all = BEHAVIOURS.iter().filter(can).map(|it| it.name);
        let alone = openhands::TESTS.iter().map(|it| it.0);
        let alone = alone.filter(|_| peer.engine == "openhands");
        let own = all.chain(alone).map(|behaviour| Case { behaviour, peer });
        cases.extend(own.filter(|case| {
            let name = case.name();
            words.iter().all(|it| name.contains(it.as_str()))
        }));
    }
    cases.sort_by_key(|it| std::cmp::Reverse(it.peer.slowness));
    cases
}

fn print_line(line: &str) {
    writeln!(io::stdout().lock(), "{line}").unwrap();
}
