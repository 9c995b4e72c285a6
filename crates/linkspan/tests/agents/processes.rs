//! Which processes a case has, as `/proc` tells it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::test_env::MARK;

/// What was killed needs a moment to be gone.
const LIMIT: Duration = Duration::from_secs(3);

/// Sees that no process of a case is left: none carries its mark, and none works in its folder.
pub(crate) fn none_is_left(mark: &str, folder: &Path) {
    let entry = format!("{MARK}={mark}");
    let deadline = Instant::now() + LIMIT;
    loop {
        let left: Vec<String> = pids()
            .filter(|pid| is_of(*pid, &entry, folder))
            .map(command_line)
            .collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn is_of(pid: i32, entry: &str, folder: &Path) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has_mark = environ
        .split(|it| *it == 0)
        .any(|it| it == entry.as_bytes());
    let cwd = fs::read_link(format!("/proc/{pid}/cwd"));
    has_mark || cwd.is_ok_and(|it| it.starts_with(folder))
}

fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
    format!("{pid} {words}")
}

/// The agent below a `linkspan run`: the child of its guard.
pub(crate) fn agent_of(linkspan: Pid) -> Option<Pid> {
    let child = |of: i32| pids().find(|pid| parent(*pid) == Some(of));
    let guard = child(linkspan.as_raw_nonzero().get())?;
    Pid::from_raw(child(guard)?)
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok())
}
