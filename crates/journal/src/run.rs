//! Runs as the journal keeps them: where they begin and end in the log.

use model::{Outcome, RunId, SessionId, Timestamp};

use crate::command::{Command, WaitingAsk};
use crate::lease::Holder;
use crate::session::Session;

/// One prompt cycle. Runs of a session do not overlap, so its events are those from `first` to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub session: SessionId<'static>,
    pub run: RunId<'static>,
    pub first: u64,
    pub started_at: Timestamp,
    /// Of the session when it began, see [`Session::activity`]; 0 for one that an older version stored.
    pub activity: u64,
    /// Absent while it is open.
    pub end: Option<RunEnd>,
}

/// A session with what it does, all of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    pub session: Session,
    /// The newest first.
    pub runs: Vec<Run>,
    /// Pending commands, in order.
    pub commands: Vec<Command>,
    /// What its agent asks, the oldest first.
    pub asks: Vec<WaitingAsk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub seq: u64,
    pub at: Timestamp,
    pub outcome: Outcome,
}

/// An open run and the holder of its session. When the holder has lapsed, is dead or does not
/// exist, the finder acquires the session and ends the run as lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    pub run: Run,
    pub holder: Option<Holder>,
}
