//! The owner of an agent. Every agent has the name of its linkspan process in its environment, so
//! that agents of a killed one are found without a list: those of a dead owner are orphans.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::process;
use std::str::FromStr;

use super::tag::{ProcessTag, VARIABLE};
use super::{GRACE, SWEEP_LIMIT};

/// The variable that carries the name.
pub const OWNER: &str = "LINKSPAN_OWNER";

/// The unique identity of a process that starts agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// In ticks since the machine was started: process ids are used again.
    started: u64,
    /// The machine's start and the namespace: ids of others mean nothing here.
    space: String,
}

impl Owner {
    /// This process.
    pub fn own() -> Self {
        let pid = process::id();
        Self {
            pid,
            started: started(pid).unwrap_or_default(),
            space: space(),
        }
    }

    /// Whether it still runs; none when that cannot be seen from here.
    pub fn is_alive(&self) -> Option<bool> {
        // The ids of another boot or another container say nothing about this one.
        let can_tell = !self.space.is_empty() && self.space == space();
        can_tell.then(|| started(self.pid) == Some(self.started))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            started,
            space,
        } = self;
        write!(f, "{pid}.{started}.{space}")
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a process")]
pub struct NotAnOwner;

impl FromStr for Owner {
    type Err = NotAnOwner;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The last part has dots of its own.
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or(NotAnOwner);
        let (pid, started, space) = (next()?, next()?, next()?);
        Ok(Self {
            pid: pid.parse().map_err(|_| NotAnOwner)?,
            started: started.parse().map_err(|_| NotAnOwner)?,
            space: space.to_owned(),
        })
    }
}

/// Ends the agents whose linkspan is dead, and everything they started. Blocks for as long as that
/// takes; returns how many there were.
#[cfg(target_os = "linux")]
pub fn end_orphans() -> usize {
    let own = std::env::var(VARIABLE).ok();
    // By tag, because all processes of an agent carry the same one.
    let mut orphans = BTreeMap::new();
    for environ in super::proc::pids().filter_map(super::proc::environ) {
        let owner = find(&environ, OWNER).and_then(|it| it.parse::<Owner>().ok());
        let tag = find(&environ, VARIABLE);
        if let (Some(owner), Some(tag)) = (owner, tag)
            && owner.is_alive() == Some(false)
            // A process that was started by an orphan must not end itself.
            && own.as_deref() != Some(tag)
            && let Ok(parsed) = tag.parse::<ProcessTag>()
        {
            orphans.insert(tag.to_owned(), parsed);
        }
    }
    let ended = orphans.values().map(|it| it.end(GRACE, SWEEP_LIMIT));
    ended.count()
}

#[cfg(not(target_os = "linux"))]
pub fn end_orphans() -> usize {
    0
}

#[cfg(target_os = "linux")]
fn find<'a>(environ: &'a [u8], name: &str) -> Option<&'a str> {
    let entries = environ.split(|byte| *byte == 0);
    let mut values = entries.filter_map(|it| {
        let (key, value) = str::from_utf8(it).ok()?.split_once('=')?;
        (key == name).then_some(value)
    });
    values.next()
}

fn started(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    let after_name = stat.rsplit(|byte| *byte == b')').next()?;
    let mut fields = str::from_utf8(after_name).ok()?.split_whitespace();
    let state = fields.next()?;
    // The dead wait for their parent as zombies.
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The start time is field 22; the id, the name and the state are taken off already.
    fields.nth(18)?.parse().ok()
}

fn space() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{}.{}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
