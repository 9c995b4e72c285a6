//! Messages for the user while a store is opened.

use std::path::PathBuf;

use model::SessionId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenNote {
    /// A store of an earlier version is brought up to date: so many rows of so many.
    Upgrading { done: u64, total: u64 },
    /// The store does not hold everything that was acknowledged.
    Lost(LostData),
    /// The store is read-only for this reason.
    ReadOnly(String),
}

/// What a store lacks, as far as its witness knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostData {
    /// There was no store at all where one has been.
    pub is_gone: bool,
    pub sessions: Vec<LostSession>,
    /// Copies of the damaged files, as they were found; empty where they could not be copied.
    pub kept: Vec<PathBuf>,
    /// Why they could not be.
    pub not_kept: Option<String>,
}

/// A session that ends earlier than it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSession {
    pub id: SessionId<'static>,
    /// The last event that is there; absent when nothing of the session is.
    pub head: Option<u64>,
    /// The last event that was acknowledged.
    pub acknowledged: u64,
    /// Prompts, answers and aborts that were taken and are not there.
    pub commands: u64,
}

impl LostData {
    /// Events that were acknowledged and are not there.
    pub fn events(&self) -> u64 {
        let missing = |it: &LostSession| it.acknowledged - it.head.unwrap_or(0);
        self.sessions.iter().map(missing).sum()
    }

    pub fn commands(&self) -> u64 {
        self.sessions.iter().map(|it| it.commands).sum()
    }
}
