//! Processes as Linux lists them under `/proc`.

use std::fs;

use rustix::process::{Pid, getpid};

/// All processes, in no order.
pub(crate) fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| pid(it.file_name().to_str()?))
}

/// The children of this process, which must have one thread only.
pub(crate) fn own_children() -> Vec<Pid> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(text) => text.split_whitespace().filter_map(pid).collect(),
        // Kernels can be built without that file.
        Err(_) => pids().filter(|it| parent(*it) == Some(getpid())).collect(),
    }
}

/// The bytes of the environment a process was started with; a zombie has none.
pub(crate) fn environ(pid: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()
}

fn parent(child: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", child.as_raw_nonzero())).ok()?;
    // The name is in parentheses and may hold anything: parentheses, spaces, bytes that are no text.
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    let rest = str::from_utf8(after_name).ok()?;
    pid(rest.split_whitespace().nth(1)?)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use rustix::process::getppid;

    use super::*;

    #[test]
    fn parents_and_environments_are_read() {
        let mut child = Command::new("sleep")
            .arg("10")
            .env_clear()
            .env("A", "1")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        // A program that is just being loaded has no environment yet.
        while environ(pid) == Some(Vec::new()) {
            thread::yield_now();
        }
        let found = (parent(pid), parent(getpid()), environ(pid));
        let is_listed = pids().any(|it| it == pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, (Some(getpid()), getppid(), Some(b"A=1\0".to_vec())));
        assert!(is_listed);
    }
}
