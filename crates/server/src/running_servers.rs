//! Which servers run on a data directory: one note for each, which its server holds locked.
//!
//! A single note for all servers would name the last writer: a program that started its own server
//! could read the address of another one and send its prompts there. The kernel releases the lock
//! when a server dies, so an unlocked note belongs to a dead one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use model::Timestamp;
use serde::{Deserialize, Serialize};

/// The folder of the notes.
const FOLDER: &str = "servers";
/// Bytes of a note; ours are far shorter.
const MAX_NOTE: u64 = 64 << 10;
/// Notes that are looked at.
const MAX_NOTES: usize = 1000;

/// A server that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// Where it can be reached on this machine.
    pub url: String,
    /// Where people open the page: the same, unless it was given another name.
    pub page: String,
    pub pid: u32,
    pub started_at: Timestamp,
}

impl RunningServer {
    pub(crate) fn own(url: String, page: String) -> Self {
        Self {
            url,
            page,
            pid: process::id(),
            started_at: SystemTime::now().into(),
        }
    }
}

/// The note of this process, which is removed with it.
#[derive(Debug)]
pub(crate) struct RunningNote {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl RunningNote {
    pub(crate) fn write(dir: &Path, server: &RunningServer) -> io::Result<Self> {
        let folder = dir.join(FOLDER);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let path = folder.join(format!("{}.json", runner::new_id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        // Locked before it has content, so that readable notes belong to running servers.
        file.lock()?;
        let json = serde_json::to_vec(server).expect("a note is plain data");
        match file.write_all(&json) {
            Ok(()) => Ok(Self { path, _file: file }),
            Err(err) => {
                fs::remove_file(&path).ok();
                Err(err)
            }
        }
    }
}

impl Drop for RunningNote {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// The servers that run on a data directory, the oldest first.
pub fn running(dir: &Path) -> Vec<RunningServer> {
    let Ok(entries) = fs::read_dir(dir.join(FOLDER)) else {
        return Vec::new();
    };
    let entries = entries.flatten().take(MAX_NOTES);
    let mut servers: Vec<_> = entries.filter_map(|it| read(&it.path())).collect();
    servers.sort_by_key(|it| (it.started_at.millis(), it.pid));
    servers
}

/// The note of a running server; that of a dead one is removed.
fn read(path: &Path) -> Option<RunningServer> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        // Locked exclusively by its server, which is alive.
        Err(TryLockError::WouldBlock) => (),
        Ok(()) => {
            // Empty is one that is just being made.
            let is_whole = file.metadata().is_ok_and(|it| it.len() > 0);
            if is_whole {
                fs::remove_file(path).ok();
            }
            return None;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    let mut text = Vec::new();
    file.take(MAX_NOTE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_note_for_as_long_as_it_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running(dir.path()), []);
        let server = |port: u16, at: i64| RunningServer {
            url: format!("http://127.0.0.1:{port}"),
            page: format!("http://127.0.0.1:{port}"),
            pid: 1,
            started_at: Timestamp::from_millis(at),
        };
        let (first, second) = (server(1, 10), server(2, 20));
        let second_note = RunningNote::write(dir.path(), &second).unwrap();
        let first_note = RunningNote::write(dir.path(), &first).unwrap();
        // A note left behind by a killed server.
        let left = dir.path().join(FOLDER).join("left.json");
        fs::write(&left, serde_json::to_vec(&server(3, 5)).unwrap()).unwrap();
        assert_eq!(running(dir.path()), [first.clone(), second]);
        assert!(!left.exists());
        drop(second_note);
        assert_eq!(running(dir.path()), [first]);
        drop(first_note);
        assert_eq!(running(dir.path()), []);
        let rest = fs::read_dir(dir.path().join(FOLDER)).unwrap().count();
        assert_eq!(rest, 0);
    }
}
