//! Errors: a rule of the journal was violated, or the storage failed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use model::{AskId, Decision, RunId, SessionId};

use crate::lease::Owner;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Nothing was written when one of these comes back, except for [`Fault::Lost`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("no session matches `{session}`")]
    NoSession { session: SessionId<'static> },
    #[error("there is a session `{session}` already")]
    SessionExists { session: SessionId<'static> },
    /// Another owner holds the session; try again when its lease lapses.
    #[error("session `{session}` is held by `{owner}`")]
    Held {
        session: SessionId<'static>,
        owner: Owner,
    },
    /// The lease was taken over: the caller must stop writing.
    #[error(
        "the lease on session `{session}` was taken over: epoch {epoch} is followed by {current}"
    )]
    Fenced {
        session: SessionId<'static>,
        epoch: u64,
        current: u64,
    },
    /// The events are not the next ones; an append that failed before it may be the reason.
    #[error("session `{session}` expects event {next}, got event {got}")]
    OutOfOrder {
        session: SessionId<'static>,
        next: u64,
        got: u64,
    },
    #[error("run `{run}` of session `{session}` has started already")]
    RunStarted {
        session: SessionId<'static>,
        run: RunId<'static>,
    },
    #[error("run `{run}` of session `{session}` is not open")]
    RunNotOpen {
        session: SessionId<'static>,
        run: RunId<'static>,
    },
    #[error("ask `{ask}` of session `{session}` is open already")]
    AskOpen {
        session: SessionId<'static>,
        ask: AskId<'static>,
    },
    #[error("ask `{ask}` of session `{session}` is not open")]
    AskNotOpen {
        session: SessionId<'static>,
        ask: AskId<'static>,
    },
    #[error("session `{session}` asked nothing with event {seq}")]
    NoAsk {
        session: SessionId<'static>,
        seq: u64,
    },
    /// The ask was already answered. `decision` is absent until the owner has passed it to the
    /// agent.
    #[error("what session `{session}` asked with event {seq} has its answer")]
    Answered {
        session: SessionId<'static>,
        seq: u64,
        decision: Option<Decision>,
    },
    #[error("{pending} commands wait for the owner of session `{session}`, which is the limit")]
    TooManyCommands {
        session: SessionId<'static>,
        pending: u64,
    },
    #[error("an entry of {length} bytes is longer than the limit of {limit}")]
    TooLarge { length: usize, limit: usize },
    /// The row fails its checksum; other rows are not affected.
    #[error("{row} of session `{session}` is damaged in the journal")]
    Damaged {
        session: SessionId<'static>,
        row: Damage,
    },
    #[error("the journal cannot be used")]
    Storage(
        #[from]
        #[source]
        Fault,
    ),
}

impl Error {
    pub(crate) fn no_session(session: &SessionId<'_>) -> Self {
        Self::NoSession {
            session: session.clone().into_owned(),
        }
    }

    pub(crate) fn damaged(session: &SessionId<'_>, row: Damage) -> Self {
        Self::Damaged {
            session: session.clone().into_owned(),
            row,
        }
    }
}

#[cfg(feature = "postgres")]
impl Error {
    /// The fault of the storage; a broken rule is none, and cannot come from a statement that keeps to none.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Storage(fault) => fault,
            rule => Fault::Database(Arc::new(rule)),
        }
    }
}

/// Which row of a session is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Damage {
    /// Its name, engine, directory, title and times.
    Entry,
    /// How long its log is and who may write it.
    Log,
    Event(u64),
    /// The agent's own frame beside that event.
    Frame(u64),
    /// The run that began with that event.
    Run(u64),
    /// The ask of that event.
    Ask(u64),
    Command(u64),
    /// An id that the agent gave it.
    Native,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry => f.write_str("the entry"),
            Self::Log => f.write_str("the state of the log"),
            Self::Event(seq) => write!(f, "event {seq}"),
            Self::Frame(seq) => write!(f, "the agent's frame of event {seq}"),
            Self::Run(first) => write!(f, "the run that began with event {first}"),
            Self::Ask(seq) => write!(f, "the question of event {seq}"),
            Self::Command(number) => write!(f, "command {number}"),
            Self::Native => f.write_str("an agent's id"),
        }
    }
}

/// An error of the storage. None of these needs a restart to go away, except [`Fault::Newer`],
/// [`Fault::InUse`], [`Fault::Corrupt`], [`Fault::Gone`] and [`Fault::Closed`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    #[error("the disk is full")]
    Full,
    #[error("the store is read-only")]
    ReadOnly,
    #[error("another program keeps the store locked")]
    Busy,
    #[error("the store is damaged ({0})")]
    Corrupt(String),
    #[error("the store was written by a later version ({found}, this program knows {known})")]
    Newer { found: i64, known: i64 },
    /// An upgrade or a repair needs it alone: what others wrote meanwhile would be lost.
    #[error("another program has the store open, and it is needed alone")]
    InUse,
    /// New data would be lost when the process exits.
    #[error("`{0}` was deleted or replaced while it was in use")]
    Gone(PathBuf),
    #[error("the journal has been closed")]
    Closed,
    /// The one fault after which something may have been written: the caller sends the same write again,
    /// under the same id, and learns what became of it.
    #[error("the connection to the database was lost before it answered")]
    Lost,
    #[error("reading or writing the store failed")]
    Io(#[source] Arc<dyn std::error::Error + Send + Sync>),
    #[error("the database refused")]
    Database(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

/// Something that the database's administrator has to change.
#[cfg(feature = "postgres")]
#[derive(Debug, thiserror::Error)]
#[error("{what} ({hint})")]
struct Refusal {
    what: String,
    hint: String,
}

#[cfg(feature = "postgres")]
impl Fault {
    pub(crate) fn refused(what: impl Into<String>, hint: impl Into<String>) -> Self {
        let (what, hint) = (what.into(), hint.into());
        Self::Database(Arc::new(Refusal { what, hint }))
    }
}
