//! Statistics of a connection.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each takes twice as long as the one before; the first up to a microsecond.
const N_BUCKETS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Stats {
    n_prompts: AtomicU64,
    n_events: AtomicU64,
    n_bytes: AtomicU64,
    /// Writes, by how long their first line had to wait.
    waits: [AtomicU64; N_BUCKETS],
}

/// The totals of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub n_prompts: u64,
    /// Events emitted by agents.
    pub n_events: u64,
    pub n_writes: u64,
    pub n_bytes: u64,
    /// From a line that was ready to its being written: half of them, and all but one in a hundred,
    /// took at most so long.
    pub median: Duration,
    pub worst: Duration,
}

impl Stats {
    pub(crate) fn prompted(&self) {
        self.n_prompts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_event(&self, n_events: u64) {
        self.n_events.fetch_add(n_events, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, n_bytes: usize, wait: Duration) {
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        // The number of binary digits: every digit doubles the time.
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.waits[bucket.min(N_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self) -> Summary {
        let waits: Vec<u64> = self
            .waits
            .iter()
            .map(|it| it.load(Ordering::Relaxed))
            .collect();
        let n_writes: u64 = waits.iter().sum();
        let within = |share: u64| {
            let mut left = (n_writes * share).div_ceil(100);
            let bucket = waits.iter().position(|n| {
                left = left.saturating_sub(*n);
                left == 0
            });
            Duration::from_micros(1 << bucket.unwrap_or_default())
        };
        Summary {
            n_prompts: self.n_prompts.load(Ordering::Relaxed),
            n_events: self.n_events.load(Ordering::Relaxed),
            n_writes,
            n_bytes: self.n_bytes.load(Ordering::Relaxed),
            median: within(50),
            worst: within(99),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            n_prompts,
            n_events,
            n_writes,
            n_bytes,
            median,
            worst,
        } = self;
        write!(
            f,
            "{n_prompts} prompts, {n_events} events, {n_bytes} bytes in {n_writes} writes; \
             half of them within {median:?}, 99 of 100 within {worst:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_p99_differ() {
        let stats = Stats::default();
        stats.prompted();
        stats.record_event(3);
        for _ in 0..98 {
            stats.wrote(10, Duration::from_micros(3));
        }
        stats.wrote(10, Duration::from_millis(2));
        stats.wrote(10, Duration::from_millis(2));
        let expected = "1 prompts, 3 events, 1000 bytes in 100 writes; \
                        half of them within 4µs, 99 of 100 within 2.048ms";
        assert_eq!(stats.summary().to_string(), expected);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(
            Stats::default().summary(),
            Summary {
                median: Duration::from_micros(1),
                worst: Duration::from_micros(1),
                ..Summary::default()
            }
        );
    }
}
