//! Runs as the journal keeps them: where they begin and end in the log.

use model::{Outcome, RunId, SessionId, Timestamp};

use crate::lease::Holder;

/// One prompt cycle. Runs of a session do not overlap, so its events are those from `first` to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub session: SessionId<'static>,
    pub run: RunId<'static>,
    pub first: u64,
    pub started_at: Timestamp,
    /// Absent while it is open.
    pub end: Option<RunEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub seq: u64,
    pub at: Timestamp,
    pub outcome: Outcome,
}

/// A run without an end, and who should give it one. When the holder has lapsed or is known to be dead,
/// or there is none, whoever finds it acquires the session and ends the run as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub run: Run,
    pub holder: Option<Holder>,
}
