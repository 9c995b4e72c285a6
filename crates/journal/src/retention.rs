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
        let mut n_sessions = candidates.len() as u64;
        let mut bytes: u64 = candidates.iter().map(|it| it.bytes).sum();
        let oldest = self.age.map(|age| {
            now_millis.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
        });
        let mut victims = Vec::new();
        for candidate in candidates {
            let goes = oldest.is_some_and(|oldest| candidate.active_at < oldest)
                || self.sessions.is_some_and(|limit| n_sessions > limit)
                || self.bytes.is_some_and(|limit| bytes > limit);
            // A busy session still counts, so idle ones may go in its place.
            if goes && !candidate.busy {
                n_sessions -= 1;
                bytes -= candidate.bytes;
                victims.push(candidate);
            }
        }
        victims
    }
}
