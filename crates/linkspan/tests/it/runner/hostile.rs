//! Many hostile agents at once, each ended in another way.

use std::collections::HashSet;
use std::fs;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runner::process::{GracePeriods, Guard, Process, ProcessTag};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::agents::abort;
use super::{RUNS, guard, rounds, soaked, start, start_marked, within};

const SCRIPTS: &[&str] = &[
    "say=hi",
    "start ( hold ) say=hi hold",
    "start ( start ( hold ) exit=0 ) hold",
    "start ( session hold ) start ( session start ( session hold ) ) hold",
    "ignore start ( ignore hold ) hold",
    "ignore start ( ignore session start ( ignore hold ) ) exit=0",
    "start ( ignore hold ) exit=1",
    "start ( flood=1000000 hold ) flood=4000000 exit=0",
    "stderr=2000000 flood=1000000 exit=2",
    "bomb=3 hold",
    "ignore bomb=3 exit=0",
    "start ( session bomb=2 hold ) signal=6",
    "forget ( ignore session hold ) hold",
    "forget ( session start ( ignore session hold ) ) exit=0",
    "start ( session hold ) kill-guard hold",
    "ignore start ( hold ) stop-guard hold",
    "read exit=0",
    "exit=0",
];

/// How many agents run at a time.
const AT_ONCE: usize = 8;

const PATIENCE: GracePeriods = GracePeriods {
    interrupted: Duration::from_millis(20),
    terminated: Duration::from_millis(20),
};

/// By turns: wait for the end (and kill whoever does not end), abort, kill, drop.
async fn end(mut process: Process, way: usize) {
    match way % 4 {
        0 => {
            if timeout(Duration::from_millis(400), process.wait())
                .await
                .is_err()
            {
                process.kill();
                process.wait().await;
            }
        }
        1 => {
            abort(&mut process, PATIENCE).await;
        }
        2 => {
            process.kill();
            process.wait().await;
        }
        _ => drop(process),
    }
}

async fn read(pipe: impl AsyncRead) {
    let mut pipe = Box::pin(pipe);
    let mut buf = vec![0; 1 << 16];
    while matches!(pipe.read(&mut buf).await, Ok(n) if n > 0) {}
}

async fn run(n: usize, script: &str) -> ProcessTag {
    let tag = ProcessTag::random().unwrap();
    // Some start others with an empty environment; their arguments give those away.
    let script = script.replace("hold", &format!("hold={tag}"));
    let mut process = start_marked(&script, &guard(), tag);
    let readers = [
        tokio::spawn(read(process.stdout.take().unwrap())),
        tokio::spawn(read(process.stderr.take().unwrap())),
    ];
    // Each script meets each way to end at several moments.
    sleep(Duration::from_millis(n as u64 * 7 % 40)).await;
    end(process, n / SCRIPTS.len()).await;
    for reader in readers {
        timeout(Duration::from_secs(10), reader)
            .await
            .unwrap()
            .unwrap();
    }
    tag
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_hostile_runs_leave_nothing_behind() {
    let began = Instant::now();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for n in 0..rounds(RUNS) {
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        runs.spawn(async move {
            let tag = run(n, SCRIPTS[n % SCRIPTS.len()]).await;
            drop(place);
            tag
        });
    }
    let markers = runs.join_all().await;
    let ended = Instant::now();
    let limit = Duration::from_secs(10);
    within(limit, "no process is left", || {
        let command_lines = command_lines();
        let is_held = |tag: &ProcessTag| {
            let argument = format!("hold={tag}");
            command_lines.iter().any(|it| it.contains(&argument))
        };
        !markers.iter().any(|it| it.is_alive() || is_held(it))
    });
    // Other tests have children that end at any moment; nobody's may stay unburied.
    let unburied = std::sync::Mutex::new(zombies());
    within(limit, "no zombie is left", || {
        let mut unburied = unburied.lock().unwrap();
        let now = zombies();
        unburied.retain(|it| now.contains(it));
        unburied.is_empty()
    });
    let (n_runs, late) = (markers.len(), ended.elapsed());
    let what = format!("{n_runs} hostile runs, no process and no zombie left {late:.1?} after");
    soaked(began, &what);
}

fn command_lines() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let files = processes.map(|it| fs::read(it.path().join("cmdline")).unwrap_or_default());
    files
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .collect()
}

/// The children of this process that have ended and that nobody has waited for.
fn zombies() -> HashSet<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().take(2).collect();
        fields == ["Z", &process::id().to_string()]
    })
    .collect()
}

#[tokio::test]
async fn a_gigabyte_without_a_newline_is_read_in_little_memory() {
    let began = Instant::now();
    let mut process = start("flood=1000000000", &Guard::None);
    let before = resident();
    let stdout = process.stdout.take().unwrap();
    tokio::join!(process.wait(), read(stdout));
    // Other tests run beside this one.
    let grown = resident().saturating_sub(before);
    assert!(grown < 256 << 20, "grew by {grown} bytes");
    let what = format!("1 GB without a newline, grew by {} KB", grown >> 10);
    soaked(began, &what);
}

fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = pages.split_whitespace().nth(1).unwrap();
    pages.parse::<u64>().unwrap() * 4096
}
