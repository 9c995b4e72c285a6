//! Commands for a session's owner, and open asks.

use bytes::Bytes;
use model::{AskId, RunId, SessionId, Timestamp};

use crate::error::{Error, Result};
use crate::session::{NewSession, Session};
use crate::truncate::Truncate;

/// Maximum number of pending commands per session; a longer queue is a client's mistake.
pub(crate) const MAX_COMMANDS: u64 = 1000;

/// The ids of commands that are done are kept so long: nobody sends one again after that.
pub(crate) const KEEP_DONE_MILLIS: i64 = 24 * 3600 * 1000;

/// Events of asks up to this length are listed whole. A list is read often, and must not cost what a giant
/// input does.
const MAX_LISTED: usize = 1 << 20;
/// Bytes kept of each string of a longer one.
const MAX_LISTED_STRING: usize = 64 << 10;

/// A command for the owner of a session. It stays until the owner marks it as done, so the next
/// owner gets it if this one dies: delivered at least once, in order.
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
    /// Start a run. Pending prompts are the session's queue.
    Prompt(Bytes),
    Abort(Bytes),
    /// Settle the ask of event `ask`; created by [`crate::Journal::settle`].
    Settle {
        ask: u64,
        answer: Bytes,
    },
    /// The stored command is damaged and must not be executed. Only read, never written.
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

/// What became of a command; known for a day after it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandStatus {
    pub number: u64,
    pub is_done: bool,
    /// What its owner tells.
    pub reply: Option<Bytes>,
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

    /// Has the session made where the target asks for that.
    pub(crate) fn create(&self, create: impl FnOnce(&NewSession) -> Result<Session>) -> Result<()> {
        match self {
            Self::Session(_) => Ok(()),
            Self::New(new) => create(new).map(drop),
            Self::Either(new) => match create(new) {
                // Another process was faster; the prompt belongs to its session.
                Err(Error::SessionExists { .. }) => Ok(()),
                created => created.map(drop),
            },
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
    /// The event of the ask. Agents reuse ids, events do not: answers refer to this.
    pub seq: u64,
    pub ask: AskId<'static>,
    pub run: Option<RunId<'static>>,
    pub at: Timestamp,
    /// An answer is on its way to the agent; a second one is refused.
    pub answered: bool,
    /// The `ask.opened` event. Long strings of one over a megabyte are shortened and say so; the log has the
    /// whole.
    pub line: Bytes,
}

impl WaitingAsk {
    /// The event of an ask as it is listed.
    pub(crate) fn listed(line: &[u8]) -> Bytes {
        match line.len() {
            ..=MAX_LISTED => Bytes::copy_from_slice(line),
            _ => Truncate::above(MAX_LISTED_STRING)
                .json(line)
                .0
                .into_owned()
                .into(),
        }
    }
}
