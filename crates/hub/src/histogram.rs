//! How long something took, counted the way Prometheus does: a count, a sum, and cumulative buckets.

use std::time::Duration;

/// Durations by upper bounds that are fixed when it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// How many took no longer than each of the bounds.
    within: Vec<u64>,
    count: u64,
    seconds: f64,
}

impl Histogram {
    /// `bounds` are in seconds and ascend.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            within: vec![0; bounds.len()],
            count: 0,
            seconds: 0.0,
        }
    }

    pub fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        // Cumulative, as Prometheus counts: every bucket holds the smaller ones, too.
        for (count, bound) in self.within.iter_mut().zip(self.bounds) {
            *count += u64::from(seconds <= *bound);
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Each upper bound in seconds, and how many took no longer.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.bounds.iter().copied().zip(self.within.iter().copied())
    }
}
