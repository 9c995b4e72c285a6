//! Something to kill in place of linkspan: the tests of the runner start it as a process of its own.
//!
//! `stand_in lock DIR TASKS ROUNDS`: that many tasks enter one session that often (0: for ever), and check
//! that they are alone in it. Each round adds one to the number in `DIR/rounds`.
//!
//! `stand_in run DIR MARKER GUARD PROGRAM ARGS…`: locks the session, runs an agent in it, and says how it
//! ended; an empty GUARD means none.

#![expect(clippy::unwrap_used, reason = "only the tests see it fail")]
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, process};

use runner::locks::Locks;
use runner::process::{Guard, Process};
use runner::{Launch, Stdin};
use tokio::task::{JoinSet, yield_now};

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["lock", dir, tasks, rounds] => {
            let rounds = match rounds.parse().unwrap() {
                0 => u64::MAX,
                it => it,
            };
            let mut running = JoinSet::new();
            for _ in 0..tasks.parse().unwrap() {
                let dir = PathBuf::from(dir);
                running.spawn(async move {
                    for _ in 0..rounds {
                        enter(&dir).await;
                    }
                });
            }
            while let Some(ended) = running.join_next().await {
                ended.unwrap();
            }
        }
        ["run", dir, marker, guard, program, args @ ..] => {
            run(dir, marker, guard, program, args).await;
        }
        other => panic!("unknown arguments {other:?}"),
    }
}

/// Being in the session twice is noticed by [`Alone`], or loses a count.
async fn enter(dir: &Path) {
    let locks = Locks::new(dir.join("locks"));
    let place = locks.queue("scripted", "s1", "a round").await.unwrap();
    let lock = place.wait().await.unwrap();
    let alone = Alone::new(&dir.join("alone"));
    let rounds = match fs::read_to_string(dir.join("rounds")) {
        Err(err) if err.kind() == ErrorKind::NotFound => 0,
        // Somebody may have been killed while it was written.
        text => text.unwrap().parse().unwrap_or(0_u64),
    };
    yield_now().await;
    fs::write(dir.join("rounds"), (rounds + 1).to_string()).unwrap();
    drop(alone);
    drop(lock);
}

/// A file that is locked by who is in the session, and says who that is.
struct Alone(File);

impl Alone {
    fn new(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).unwrap();
        let start = Instant::now();
        while file.try_lock().is_err() {
            assert!(start.elapsed() < Duration::from_secs(5), "stuck");
            // The files of a killed process are closed one by one, and this one may be the last.
            if let Ok(pid) = fs::read_to_string(path).unwrap().parse() {
                assert!(is_dying(pid), "{pid} is in the session too");
            }
        }
        file.set_len(0).unwrap();
        file.write_all_at(process::id().to_string().as_bytes(), 0)
            .unwrap();
        Self(file)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.set_len(0).unwrap();
    }
}

/// Gone, or on its way out in the kernel: it does nothing any more.
fn is_dying(pid: u32) -> bool {
    const PF_EXITING: u64 = 4;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let flags = fields.split_whitespace().nth(6).unwrap();
    flags.parse::<u64>().unwrap() & PF_EXITING != 0
}

async fn run(dir: &str, marker: &str, guard: &str, program: &str, args: &[&str]) {
    let marker = marker.parse().unwrap();
    let guard = match guard {
        "" => Guard::None,
        exe => Guard::Exe(exe.into()),
    };
    let launch = Launch {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        env_remove: Vec::new(),
        cwd: dir.into(),
        stdin: Stdin::Closed,
        private: None,
    };
    let locks = Locks::new(Path::new(dir).join("locks"));
    let place = locks.queue("scripted", "s1", "an agent").await.unwrap();
    let lock = place.wait().await.unwrap();
    lock.protect(marker).unwrap();
    let mut process = Process::spawn(&launch, &guard, marker).unwrap();
    println!("running");
    println!("{:?}", process.wait().await);
    drop(lock);
}
