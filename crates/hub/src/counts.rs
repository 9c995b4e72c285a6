//! What became of the runs of this hub, counted for whoever watches it: by engine and outcome, and how
//! long they took.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Outcome;

/// Upper bounds of how long runs take, in seconds; from a recording to an afternoon's work.
pub const RUN_SECONDS: [f64; 12] = [
    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0,
];

/// The runs that have ended.
#[derive(Debug, Default)]
pub struct RunCounts(Mutex<BTreeMap<RunKey, EndedRuns>>);

/// Which runs: those of an engine (without what follows the colon, which anybody may choose) with an
/// outcome, by its name.
pub type RunKey = (String, &'static str);

/// How many have ended, and how long they took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndedRuns {
    pub count: u64,
    pub seconds: f64,
    /// How many took no longer than each of [`RUN_SECONDS`].
    pub within: [u64; RUN_SECONDS.len()],
}

impl RunCounts {
    pub(crate) fn ended(&self, engine: &str, outcome: Outcome, took: Duration) {
        let engine = engine.split(':').next().unwrap_or_default().to_owned();
        let mut counts = self.counts();
        let ended = counts.entry((engine, name(outcome))).or_default();
        let seconds = took.as_secs_f64();
        ended.count += 1;
        ended.seconds += seconds;
        for (count, bound) in ended.within.iter_mut().zip(RUN_SECONDS) {
            *count += u64::from(seconds <= bound);
        }
    }

    /// All of them so far.
    pub fn all(&self) -> BTreeMap<RunKey, EndedRuns> {
        self.counts().clone()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<RunKey, EndedRuns>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Failed => "failed",
        Outcome::Aborted => "aborted",
        Outcome::Refused => "refused",
        Outcome::Limit => "limit",
        Outcome::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_engine_outcome_and_time() {
        let counts = RunCounts::default();
        counts.ended(
            "acp:some command",
            Outcome::Completed,
            Duration::from_millis(300),
        );
        counts.ended("acp:other", Outcome::Completed, Duration::from_secs(20));
        counts.ended("claude", Outcome::Failed, Duration::from_secs(100_000));
        let ended = |count, seconds, within| EndedRuns {
            count,
            seconds,
            within,
        };
        let expected = BTreeMap::from([
            (
                ("acp".to_owned(), "completed"),
                ended(2, 20.3, [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]),
            ),
            (
                ("claude".to_owned(), "failed"),
                ended(1, 100_000.0, [0; RUN_SECONDS.len()]),
            ),
        ]);
        assert_eq!(counts.all(), expected);
    }
}
