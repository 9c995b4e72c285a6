//! Metrics of this hub's runs: how many ended by engine and outcome, how long they took, and how long it
//! took until their agents produced a first event.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use model::Outcome;
use runner::engines::family;

use crate::histogram::Histogram;
use crate::lock::lock;

/// Upper bounds of how long runs take, in seconds; from a recording to an afternoon's work.
const RUN_SECONDS: &[f64] = &[
    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0,
];

/// Upper bounds of how long it takes from a prompt to the first event of its agent, in seconds.
const FIRST_EVENT_SECONDS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0,
];

/// The durations of runs, and of the time until the first event of an agent.
#[derive(Debug, Default)]
pub struct RunCounts {
    ended: Mutex<BTreeMap<RunKey, Histogram>>,
    first_events: Mutex<BTreeMap<String, Histogram>>,
}

/// Which runs: those of an engine with an outcome, by its name. The engine is without what follows the
/// colon: clients choose that freely, and each value would be a time series of its own.
pub type RunKey = (String, &'static str);

impl RunCounts {
    pub(crate) fn ended(&self, engine: &str, outcome: Outcome, took: Duration) {
        lock(&self.ended)
            .entry((family(engine).to_owned(), outcome.name()))
            .or_insert_with(|| Histogram::new(RUN_SECONDS))
            .observe(took);
    }

    /// The agent of a prompt has produced its first event, this long after the prompt was accepted.
    pub(crate) fn answered(&self, engine: &str, took: Duration) {
        lock(&self.first_events)
            .entry(family(engine).to_owned())
            .or_insert_with(|| Histogram::new(FIRST_EVENT_SECONDS))
            .observe(took);
    }

    /// How long runs took, by engine and outcome.
    pub fn all(&self) -> BTreeMap<RunKey, Histogram> {
        lock(&self.ended).clone()
    }

    /// How long prompts waited for their agents so far, by engine.
    pub fn first_events(&self) -> BTreeMap<String, Histogram> {
        lock(&self.first_events).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Count, sum of seconds and how many were within each bound.
    type Figures = (u64, f64, Vec<u64>);

    fn figures(histogram: &Histogram) -> Figures {
        let within = histogram.buckets().map(|(_, count)| count).collect();
        (histogram.count(), histogram.seconds(), within)
    }

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
        let counted: Vec<(RunKey, Figures)> = counts
            .all()
            .iter()
            .map(|(key, it)| (key.clone(), figures(it)))
            .collect();
        let acp = (2, 20.3, vec![0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        let claude = (1, 100_000.0, vec![0; RUN_SECONDS.len()]);
        let expected = [
            (("acp".to_owned(), "completed"), acp),
            (("claude".to_owned(), "failed"), claude),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn first_events_are_counted_by_engine_and_time() {
        let counts = RunCounts::default();
        counts.answered("acp:some command", Duration::from_millis(250));
        counts.answered("acp:other", Duration::from_secs(20));
        let first_events = counts.first_events();
        let expected = (2, 20.25, vec![0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(first_events.keys().collect::<Vec<_>>(), ["acp"]);
        assert_eq!(figures(&first_events["acp"]), expected);
    }
}
