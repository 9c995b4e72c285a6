//! What became of the runs of this hub, counted for whoever watches it: by engine and outcome, how long
//! they took, and how long it took until their agents told something.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Outcome;

/// Upper bounds of how long runs take, in seconds; from a recording to an afternoon's work.
pub const RUN_SECONDS: [f64; 12] = [
    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0,
];

/// Upper bounds of how long it takes from a prompt to the first event of its agent, in seconds.
pub const FIRST_EVENT_SECONDS: [f64; 12] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0,
];

/// The runs that have ended, and those whose agents have told something.
#[derive(Debug, Default)]
pub struct RunCounts {
    ended: Mutex<BTreeMap<RunKey, EndedRuns>>,
    first_events: Mutex<BTreeMap<String, FirstEvents>>,
}

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

/// Prompts whose agents have told something, and how long that took since they were accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstEvents {
    pub count: u64,
    pub seconds: f64,
    /// How many took no longer than each of [`FIRST_EVENT_SECONDS`].
    pub within: [u64; FIRST_EVENT_SECONDS.len()],
}

impl RunCounts {
    pub(crate) fn ended(&self, engine: &str, outcome: Outcome, took: Duration) {
        let mut counts = lock(&self.ended);
        let ended = counts.entry((family(engine), outcome.name())).or_default();
        let seconds = took.as_secs_f64();
        ended.count += 1;
        ended.seconds += seconds;
        for (count, bound) in ended.within.iter_mut().zip(RUN_SECONDS) {
            *count += u64::from(seconds <= bound);
        }
    }

    /// All of them so far.
    pub fn all(&self) -> BTreeMap<RunKey, EndedRuns> {
        lock(&self.ended).clone()
    }

    /// The agent of a prompt has told something for the first time.
    pub(crate) fn answered(&self, engine: &str, took: Duration) {
        let mut counts = lock(&self.first_events);
        let first = counts.entry(family(engine)).or_default();
        let seconds = took.as_secs_f64();
        first.count += 1;
        first.seconds += seconds;
        for (count, bound) in first.within.iter_mut().zip(FIRST_EVENT_SECONDS) {
            *count += u64::from(seconds <= bound);
        }
    }

    /// How long prompts waited for their agents so far, by engine.
    pub fn first_events(&self) -> BTreeMap<String, FirstEvents> {
        lock(&self.first_events).clone()
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engine without what follows the colon.
fn family(engine: &str) -> String {
    engine.split(':').next().unwrap_or_default().to_owned()
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

    #[test]
    fn first_events_are_counted_by_engine_and_time() {
        let counts = RunCounts::default();
        counts.answered("acp:some command", Duration::from_millis(250));
        counts.answered("acp:other", Duration::from_secs(20));
        let expected = FirstEvents {
            count: 2,
            seconds: 20.25,
            within: [0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2],
        };
        let expected = BTreeMap::from([("acp".to_owned(), expected)]);
        assert_eq!(counts.first_events(), expected);
    }
}
