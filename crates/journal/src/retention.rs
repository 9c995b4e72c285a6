//! How much is kept.

use std::time::Duration;

/// Limits on the whole store. Sessions go as a whole, those that were idle the longest first: a log
/// with its beginning cut off could not be shown again. A session that is held, has an open run or
/// commands waiting is never removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions idle for longer go.
    pub age: Option<Duration>,
    /// At most so many sessions stay.
    pub sessions: Option<u64>,
    /// At most so many bytes of events and frames stay.
    pub bytes: Option<u64>,
}

/// What [`crate::Journal::retain`] took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub sessions: u64,
    pub bytes: u64,
}

/// A session that may go, for [`Retention::victims`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<K> {
    pub(crate) key: K,
    pub(crate) active_at: i64,
    pub(crate) bytes: u64,
    /// In use: counted, but never removed.
    pub(crate) busy: bool,
}

impl Retention {
    /// Which of `candidates`, sorted from the oldest to the newest, have to go.
    pub(crate) fn victims<K>(
        &self,
        candidates: Vec<Candidate<K>>,
        now_millis: i64,
    ) -> Vec<Candidate<K>> {
        let bytes = candidates.iter().map(|it| it.bytes).sum();
        let mut excess = self.excess(candidates.len() as u64, bytes, now_millis);
        candidates
            .into_iter()
            .filter(|it| excess.goes(it))
            .collect()
    }

    /// Of a store with so many sessions and bytes.
    pub(crate) fn excess(&self, n_sessions: u64, bytes: u64, now_millis: i64) -> Excess {
        let age = |age: Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Excess {
            oldest: self.age.map(|it| now_millis.saturating_sub(age(it))),
            sessions: self.sessions.map_or(0, |it| n_sessions.saturating_sub(it)),
            bytes: self.bytes.map_or(0, |it| bytes.saturating_sub(it)),
        }
    }
}

/// What is over the limits. Sessions are shown to it one by one, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct Excess {
    /// Sessions that were active before go.
    oldest: Option<i64>,
    sessions: u64,
    bytes: u64,
}

impl Excess {
    /// Whether this one has to go.
    pub(crate) fn goes<K>(&mut self, candidate: &Candidate<K>) -> bool {
        let goes = self.may_go(candidate.active_at);
        // A busy session still counts, so idle ones may go in its place.
        if !goes || candidate.busy {
            return false;
        }
        self.sessions = self.sessions.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(candidate.bytes);
        true
    }

    /// Whether a session that was active then would go, unless it is busy.
    pub(crate) fn may_go(&self, active_at: i64) -> bool {
        self.sessions > 0 || self.bytes > 0 || self.oldest.is_some_and(|it| active_at < it)
    }
}
