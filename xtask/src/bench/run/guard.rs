//! linkspan's guard, which is the first child of what is watched.

use std::{fs, time::Duration};

use crate::bench::measure::cpu;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bench) struct Guard {
    pub(in crate::bench) cpu: Duration,
    /// Most of what it has is linkspan's own code, which is in memory once for both.
    pub(in crate::bench) private_kilobytes: u64,
}

/// Nothing while the guard is not there, or has just gone.
pub(in crate::bench) fn find_guard(parent: u32) -> Option<Guard> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let pid: u32 = children.split_whitespace().next()?.parse().ok()?;
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let private = memory.lines().filter_map(|it| {
        let size = it.strip_prefix("Private_Clean:");
        let size = size.or_else(|| it.strip_prefix("Private_Dirty:"))?;
        size.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    let private_kilobytes = private.sum();
    Some(Guard {
        cpu: cpu(pid).ok()?,
        private_kilobytes,
    })
    // A zombie no longer has any memory.
    .filter(|it| it.private_kilobytes > 0)
}
