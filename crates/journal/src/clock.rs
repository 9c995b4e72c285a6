//! Time, injected: wall time as data, and a steady time that leases are measured in.
//!
//! Steady time does not follow changes of the wall clock, so that setting the clock neither ends a
//! lease early nor keeps a dead owner's alive for a year.

use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use model::Timestamp;

/// Where the journal takes its time from.
pub trait Clock: fmt::Debug + Send + Sync {
    fn now(&self) -> Timestamp;
    fn steady(&self) -> Moment;
}

/// A point in monotonic time. Moments of different eras cannot be compared: the machine was
/// rebooted in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub era: String,
    pub millis: i64,
}

impl Moment {
    pub(crate) fn plus(&self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self {
            era: self.era.clone(),
            millis: self.millis.saturating_add(millis),
        }
    }

    /// Whether `self` has passed at `now`; an owner from another era cannot be alive.
    pub(crate) fn is_over(&self, now: &Self) -> bool {
        self.era != now.era || self.millis <= now.millis
    }
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    /// Absent where the boot time is unknown; then wall time is used.
    boot: Option<String>,
}

impl SystemClock {
    pub fn new() -> Self {
        // Another value after every boot, when monotonic time begins again.
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Self {
            boot: boot.map(|it| it.trim().to_owned()),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn steady(&self) -> Moment {
        match (&self.boot, since_boot()) {
            (Some(boot), Some(millis)) => Moment {
                era: boot.clone(),
                millis,
            },
            // Wall time has no era: a reboot does not end leases there, only their time does.
            _ => Moment {
                era: String::new(),
                millis: self.now().millis(),
            },
        }
    }
}

/// It advances during suspend, as leases do for the other owners.
#[cfg(target_os = "linux")]
fn since_boot() -> Option<i64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Some(time.tv_sec * 1000 + time.tv_nsec / 1_000_000)
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Option<i64> {
    None
}

/// A clock that is advanced by hand.
#[derive(Debug)]
pub struct ManualClock(Mutex<(Timestamp, Moment)>);

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        let moment = Moment {
            era: "test".to_owned(),
            millis: 0,
        };
        Self(Mutex::new((now, moment)))
    }

    fn time(&self) -> MutexGuard<'_, (Timestamp, Moment)> {
        self.0.lock().expect("no panic while holding the lock")
    }

    /// Time passes.
    pub fn pass(&self, duration: Duration) {
        let mut time = self.time();
        time.1 = time.1.plus(duration);
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        time.0 = time.0.plus_millis(millis);
    }

    /// The wall clock is set; no time passes.
    pub fn set_wall(&self, now: Timestamp) {
        self.time().0 = now;
    }

    /// The machine is rebooted.
    pub fn reboot(&self, era: &str) {
        self.time().1 = Moment {
            era: era.to_owned(),
            millis: 0,
        };
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.time().0
    }

    fn steady(&self) -> Moment {
        self.time().1.clone()
    }
}
