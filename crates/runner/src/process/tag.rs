//! The mark that every process of a run carries in its environment, and the sweep that finds them by it.
//!
//! The sweep is the last resort: for a guard that was killed, for programs that have no guard, and for
//! agents whose linkspan died. It misses only what was started with another environment on purpose.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

#[cfg(target_os = "linux")]
use crate::process::proc;

/// The variable that carries the mark.
pub const VARIABLE: &str = "LINKSPAN_RUN";

/// Signals need a moment to act.
const PAUSE: Duration = Duration::from_millis(5);

/// Looking costs a millisecond or two.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A program that is just being loaded has no environment yet, and can be overlooked.
const EMPTY_LOOKS: u32 = 2;

/// A random mark: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProcessTag(u128);

impl ProcessTag {
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(u128::from_ne_bytes(bytes)))
    }

    /// Whether any process carries the mark.
    pub fn is_alive(&self) -> bool {
        self.signal(None) > 0
    }

    /// Terminates all processes with the tag, and kills those that remain after `grace`. False if
    /// some are still alive after another `limit`.
    pub(crate) fn end(&self, grace: Duration, limit: Duration) -> bool {
        let start = Instant::now();
        if !grace.is_zero() && self.signal(Some(Signal::TERM)) > 0 {
            self.wait(grace);
        }
        let mut n_empty = 0;
        while start.elapsed() < grace + limit {
            // Each round looks anew, because processes may start others until they are killed.
            if self.signal(Some(Signal::KILL)) == 0 {
                n_empty += 1;
                if n_empty == EMPTY_LOOKS {
                    return true;
                }
            } else {
                n_empty = 0;
            }
            thread::sleep(PAUSE);
        }
        false
    }

    /// Kills all processes with the tag in the background, after giving their guard time to do so.
    pub(crate) fn end_later(self, patience: Duration, limit: Duration) {
        let work = move || {
            self.wait(patience);
            self.end(Duration::ZERO, limit);
        };
        // Without threads it has to be done here.
        if thread::Builder::new().spawn(work).is_err() {
            self.end(Duration::ZERO, limit);
        }
    }

    /// Waits until no process has the tag, up to this limit.
    pub(crate) fn wait(&self, limit: Duration) {
        let start = Instant::now();
        while start.elapsed() < limit && self.is_alive() {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Signals all processes with the tag and returns their number.
    #[cfg(target_os = "linux")]
    fn signal(&self, signal: Option<Signal>) -> usize {
        let entry = format!("{VARIABLE}={self}");
        let carries = |pid| {
            let environ = proc::environ(pid);
            environ.is_some_and(|it| it.split(|byte| *byte == 0).any(|it| it == entry.as_bytes()))
        };
        let send = |pid: Pid, signal| {
            // The id could be another's by now; the descriptor cannot.
            let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
                return;
            };
            // Looked at again, now that the descriptor holds the process fast.
            if carries(pid) {
                pidfd_send_signal(&pidfd, signal).ok();
            }
        };
        let mut n_found = 0;
        for pid in proc::pids().filter(|it| carries(*it)) {
            n_found += 1;
            if let Some(signal) = signal {
                send(pid, signal);
            }
        }
        n_found
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _: Option<Signal>) -> usize {
        0
    }
}

impl fmt::Display for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessTag({self})")
    }
}

impl FromStr for ProcessTag {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
