//! What an examination of a store finds, and what a repair has saved.

use std::path::PathBuf;

use model::SessionId;

use crate::error::Damage;
use crate::open_note::LostSession;
use crate::run::OpenRun;

/// A store as it is found; nothing is changed by looking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub bytes: u64,
    /// The log of changes that are not folded into the store yet.
    pub wal_bytes: u64,
    pub version: i64,
    /// The version that this program writes. Rows of earlier ones have no checksums yet.
    pub known: i64,
    pub sessions: u64,
    pub events: u64,
    /// Runs without an end, with the holders of their sessions.
    pub open_runs: Vec<OpenRun>,
    /// SQLite's own integrity messages; empty when there are none.
    pub structure: Vec<String>,
    /// Rows whose checksum does not fit, or that are not there.
    pub damaged: Vec<DamagedRow>,
    /// Acknowledged data that is missing; absent when there is no witness for this store.
    pub missing: Option<Vec<LostSession>>,
    /// Copies that were put aside before: what lost something, or was repaired.
    pub aside: Vec<PathBuf>,
}

impl Report {
    pub fn is_whole(&self) -> bool {
        self.structure.is_empty() && self.damaged.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    /// The session's id where that is known, else `damaged-` and its key.
    pub session: SessionId<'static>,
    pub row: Damage,
}

impl DamagedRow {
    /// By session, then by kind.
    pub(crate) fn sort(rows: &mut [Self]) {
        rows.sort_by(|a, b| {
            let sessions = a.session.as_str().cmp(b.session.as_str());
            sessions.then(a.row.cmp(&b.row))
        });
    }
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    pub sessions: u64,
    /// Those that are whole; in the place of the others there is a notice.
    pub events: u64,
    pub lost: Vec<DamagedRow>,
    /// The store as it was.
    pub kept: Vec<PathBuf>,
}
