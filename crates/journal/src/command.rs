//! What others want from a session's owner, and the asks that wait for an answer.

use bytes::Bytes;
use model::{AskId, RunId, SessionId, Timestamp};

use crate::session::NewSession;

/// Commands that may wait for one session's owner: a queue this long is a mistake of whoever fills it.
pub(crate) const MAX_COMMANDS: u64 = 1000;

/// A wish to the owner of a session. It stays until the owner says that it is done, so an owner that
/// dies in between leaves it to the next: delivered at least once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Counts per session, from 1.
    pub number: u64,
    pub at: Timestamp,
    pub order: CommandBody,
}

/// The bodies are the caller's own; the journal does not look inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandBody {
    /// Start a run. Those that wait are the session's queue.
    Prompt(Bytes),
    Abort(Bytes),
    /// Give the agent the answer to what it asked with event `ask`; made by [`crate::Journal::settle`].
    Settle {
        ask: u64,
        answer: Bytes,
    },
    /// What was wanted is damaged in the store: nobody may act on it. Never given, only read.
    Damaged,
}

impl CommandBody {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Prompt(body) | Self::Abort(body) => body.len(),
            Self::Settle { answer, .. } => answer.len(),
            Self::Damaged => 0,
        }
    }
}

/// Where a prompt belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptTarget {
    Session(SessionId<'static>),
    /// A session that is made for it.
    New(NewSession),
    /// This session, made if it is not there.
    Either(NewSession),
}

impl PromptTarget {
    pub(crate) fn session(&self) -> &SessionId<'static> {
        match self {
            Self::Session(id) => id,
            Self::New(new) | Self::Either(new) => &new.id,
        }
    }
}

/// A prompt that waits now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Of its command.
    pub number: u64,
    /// How many prompts of the session come before it, the one that is worked on included.
    pub position: u64,
}

/// An ask that is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingAsk {
    pub session: SessionId<'static>,
    /// The event that asked. Agents use ids again, events do not: this is what is answered.
    pub seq: u64,
    pub ask: AskId<'static>,
    pub run: Option<RunId<'static>>,
    pub at: Timestamp,
    /// An answer is on its way to the agent; a second one is refused.
    pub answered: bool,
    /// The `ask.opened` event.
    pub line: Bytes,
}
