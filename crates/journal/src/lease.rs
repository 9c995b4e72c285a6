//! Leases: at most one owner writes a session, and a replaced owner is fenced.

use std::fmt;

use model::SessionId;

use crate::error::{Error, Result};

/// A program that may own sessions; no two starts of a program share a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner(String);

impl Owner {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to write a session. Its epoch is the fence: higher than that of any lease
/// the store granted before.
///
/// A lapsed lease can still write until another owner takes over; time decides only when a takeover
/// is allowed, never whether an append is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub session: SessionId<'static>,
    pub owner: Owner,
    pub epoch: u64,
    /// The last event when the lease was granted: the owner continues with the next number.
    pub head: u64,
}

impl Lease {
    /// Fails when the session's epoch is another one by now.
    pub(crate) fn check_epoch(&self, current: u64) -> Result<()> {
        if self.epoch == current {
            return Ok(());
        }
        Err(Error::Fenced {
            session: self.session.clone(),
            epoch: self.epoch,
            current,
        })
    }
}

/// When a held session may be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// When its lease has lapsed.
    Lapsed,
    /// At once, if this owner holds it: the caller knows that it is dead.
    Dead(Owner),
}

/// The current holder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub owner: Owner,
    pub epoch: u64,
    /// The lease has lapsed: any owner may take over.
    pub lapsed: bool,
}

impl Holder {
    /// Fails while the session may not be taken over.
    pub(crate) fn check_takeover(
        self,
        session: &SessionId<'static>,
        takeover: &Takeover,
    ) -> Result<()> {
        if self.lapsed || matches!(takeover, Takeover::Dead(owner) if *owner == self.owner) {
            return Ok(());
        }
        Err(Error::Held {
            session: session.clone(),
            owner: self.owner,
        })
    }
}
