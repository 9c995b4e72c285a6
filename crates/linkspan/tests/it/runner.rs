//! Agents as hostile as they come, under the real guard: whatever they do, nothing of them is left.

mod agents;
mod arguments;
mod hostile;
mod locks;

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use runner::process::{Guard, Process, ProcessTag};
use runner::{Launch, Stdin};

/// The guard is the program itself.
fn guard() -> Guard {
    Guard::Exe(env!("CARGO_BIN_EXE_linkspan").into())
}

/// A program under `examples/`, which `cargo test` builds next to the tests.
fn example(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let path = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name);
    assert!(
        path.exists(),
        "`cargo build --examples` builds {}",
        path.display()
    );
    path
}

fn launch(args: &[&str], stdin: Stdin) -> Launch {
    Launch {
        program: example("scripted_agent"),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        env_remove: Vec::new(),
        cwd: env::temp_dir(),
        stdin,
        private: None,
    }
}

fn start(script: &str, guard: &Guard) -> Process {
    start_marked(script, guard, ProcessTag::random().unwrap())
}

fn start_marked(script: &str, guard: &Guard, marker: ProcessTag) -> Process {
    let args: Vec<&str> = script.split_whitespace().collect();
    Process::spawn(&launch(&args, Stdin::Closed), guard, marker).unwrap()
}

/// How many hostile agents the fast tier can afford; the soak asks for more, and for more of all else.
const RUNS: usize = 200;

/// Set by `cargo xtask soak` to how many there are then.
const SOAK: &str = "LINKSPAN_SOAK_RUNS";

/// How often something is done that the fast tier does `fast` times.
fn rounds(fast: usize) -> usize {
    match env::var(SOAK) {
        Ok(runs) => fast * runs.parse::<usize>().unwrap() / RUNS,
        Err(_) => fast,
    }
}

/// Says what a test of the soak did, and how long it took.
fn soaked(began: Instant, what: &str) {
    if env::var_os(SOAK).is_some() {
        // Not by a macro: what those print is kept from whoever watches a test that passes.
        let seconds = began.elapsed().as_secs_f64();
        let line = format!("soak: {what}, {seconds:.1} s\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
    }
}

/// Waits for something that must become true.
fn within(limit: Duration, what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_true() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
