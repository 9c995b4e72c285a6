//! The data directory, the token files and the locks.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runner::state_folder;

use super::Finding;
use crate::exit::chain;

/// Below this a server soon cannot take prompts.
const LITTLE_ROOM: u64 = 100 << 20;

/// What others may do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OthersAccess {
    Nothing,
    Read,
    Write,
}

pub(super) fn others(path: &Path) -> OthersAccess {
    match fs::metadata(path).map_or(0, |it| it.mode()) & 0o077 {
        0 => OthersAccess::Nothing,
        bits if bits & 0o022 != 0 => OthersAccess::Write,
        _ => OthersAccess::Read,
    }
}

pub(super) fn check(folder: &Path, findings: &mut Vec<Finding>) {
    let about = "data";
    let place = folder.display();
    let found = match fs::metadata(folder) {
        Ok(found) => found,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
            let text =
                format!("`{place}` is not there yet; the first run or `linkspan serve` makes it");
            return findings.push(Finding::ok(about, text));
        }
        Err(err) => {
            let text = format!("`{place}` cannot be read: {}", chain(&err));
            return findings.push(Finding::problem(about, text));
        }
    };
    findings.push(rights(folder, &found));
    findings.push(room(folder));
    for running in server::running(folder) {
        let (url, pid) = (running.url, running.pid);
        let text = format!("a server of it listens on {url} (process {pid})");
        findings.push(Finding::ok(about, text));
    }
}

fn rights(folder: &Path, found: &Metadata) -> Finding {
    let about = "data";
    let place = folder.display();
    // Asked of the kernel: mode bits do not know of read-only mounts.
    let may_write = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok();
    let mine = rustix::process::geteuid().as_raw();
    if !found.is_dir() {
        return Finding::problem(about, format!("`{place}` is not a directory"))
            .hint("name another with `--data-dir`");
    }
    if !may_write {
        return Finding::problem(about, format!("you may not write to `{place}`"))
            .hint("sessions can be looked at, and no prompt is taken");
    }
    match others(folder) {
        OthersAccess::Write => Finding::problem(about, format!("others can write to `{place}`"))
            .hint("`chmod 700` it: tokens and sessions are kept there"),
        OthersAccess::Read => Finding::warn(about, format!("others can enter `{place}`"))
            .hint("`chmod 700` it; what is in it is readable by you alone"),
        OthersAccess::Nothing if found.uid() != mine => {
            Finding::warn(about, format!("`{place}` belongs to another user"))
        }
        OthersAccess::Nothing => Finding::ok(about, format!("`{place}` is yours alone")),
    }
}

fn room(folder: &Path) -> Finding {
    let about = "data";
    let free = match rustix::fs::statvfs(folder) {
        // Not `f_bfree`, a part of which is reserved for root.
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(err) => {
            let err = chain(&std::io::Error::from(err));
            return Finding::warn(about, format!("its free space is not known: {err}"));
        }
    };
    let text = format!("{} are free on its disk", size(free));
    match free {
        0 => {
            Finding::problem(about, "its disk is full").hint("make room; no prompt is taken before")
        }
        free if free < LITTLE_ROOM => Finding::warn(about, text).hint("make room"),
        _ => Finding::ok(about, text),
    }
}

/// As a person would say it.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, bits) in units {
        if bytes >= 1 << bits {
            return format!("{:.1} {unit}", bytes as f64 / (1_u64 << bits) as f64);
        }
    }
    format!("{bytes} bytes")
}

pub(super) fn check_tokens(folder: &Path, file: Option<&Path>, findings: &mut Vec<Finding>) {
    let about = "tokens";
    let finding = match server::Keys::examine(folder, file) {
        Ok(None) => Finding::ok(about, "none yet; the first `linkspan serve` makes one"),
        Ok(Some(n)) => {
            let text = format!("the token file is readable by you alone; {n} more were handed out");
            Finding::ok(about, text)
        }
        Err(err) => Finding {
            hint: err.hint().map(str::to_owned),
            ..Finding::problem(about, chain(&err))
        },
    };
    findings.push(finding);
}

pub(super) fn check_locks(findings: &mut Vec<Finding>) {
    let about = "locks";
    let Some(folder) = state_folder().map(|it| it.join("locks")) else {
        let text =
            "there is no home directory to keep them in: two programs may run in one session";
        return findings.push(Finding::warn(about, text));
    };
    let place = folder.display();
    // A missing directory is created on demand, if its parent is writable.
    let nearest = folder.ancestors().find(|it| it.exists());
    let may_write =
        nearest.is_some_and(|it| rustix::fs::access(it, rustix::fs::Access::WRITE_OK).is_ok());
    findings.push(match may_write {
        true => Finding::ok(about, format!("`{place}` can be used")),
        false => Finding::problem(about, format!("you may not write to `{place}`"))
            .hint("no run can start: two could meet in one session"),
    });
}
