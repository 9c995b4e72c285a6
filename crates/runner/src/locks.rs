//! One run at a time in a session, for everything on this machine that uses the same folder.
//!
//! Whoever wants a session draws a ticket: a file that its owner keeps locked, so that the kernel frees it
//! when the owner dies, however that happens. The lowest ticket has the session; the others wait for the
//! tickets before theirs, first come, first served, within a process and across processes.
//!
//! A dead owner may leave a living agent behind for a moment. Its ticket names the agent's marker, and
//! nobody enters the session before that agent is gone.

mod ticket;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use model::Timestamp;
use tokio::sync::oneshot;

use crate::process::Marker;
use crate::state::state_folder;
use ticket::{Key, Ticket};

/// The locks of all sessions, in one folder that is made when it is needed.
#[derive(Clone, Debug)]
pub struct Locks {
    dir: Arc<Path>,
}

/// Who is in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub pid: u32,
    /// What it said of itself.
    pub holder: String,
    pub since: Timestamp,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, holder, since } = self;
        write!(f, "{holder} (process {pid}, since {since})")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot lock a session in `{}`", dir.display())]
pub struct Error {
    pub dir: PathBuf,
    #[source]
    pub source: io::Error,
}

impl Locks {
    /// Those of this user: one place for all of their programs. None without a home directory.
    pub fn own() -> Option<Self> {
        state_folder().map(|it| Self::new(it.join("locks")))
    }

    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into().into(),
        }
    }

    /// Takes a place in the queue for a session of an engine; it may be the first. `holder` is what
    /// others are told while they wait.
    pub async fn queue(&self, engine: &str, id: &str, holder: &str) -> Result<Place, Error> {
        let key = Key::new(engine, id);
        let (dir, holder) = (Arc::clone(&self.dir), holder.to_owned());
        let drawn = on_thread(move || ticket::draw(&dir, key, &holder)).await;
        let drawn = drawn.map_err(|source| self.error(source))?;
        Ok(Place {
            locks: self.clone(),
            drawn,
        })
    }

    fn error(&self, source: io::Error) -> Error {
        Error {
            dir: self.dir.to_path_buf(),
            source,
        }
    }
}

/// A place in the queue for a session. Dropping it gives it up, also while waiting.
#[derive(Debug)]
pub struct Place {
    locks: Locks,
    drawn: ticket::Drawn,
}

impl Place {
    /// Who has the session; nobody if this place is the first.
    pub fn held(&self) -> Option<&Held> {
        self.drawn.held.as_ref()
    }

    /// Until everybody before this place has left.
    pub async fn wait(self) -> Result<Lock, Error> {
        let Self { locks, drawn } = self;
        if !drawn.ahead.is_empty() {
            let ahead = drawn.ahead;
            let passed = on_thread(move || ticket::outlast(&ahead)).await;
            passed.map_err(|source| locks.error(source))?;
        }
        Ok(Lock {
            locks,
            ticket: drawn.ticket,
        })
    }
}

/// The session is ours until this is dropped.
#[derive(Debug)]
pub struct Lock {
    locks: Locks,
    ticket: Ticket,
}

impl Lock {
    /// Names the agent that works in the session, best before it is started: should this process die,
    /// the next one waits until that agent is gone.
    pub fn protect(&self, agent: Marker) -> Result<(), Error> {
        let written = self.ticket.name_agent(agent);
        written.map_err(|source| self.locks.error(source))
    }
}

/// A blocked thread of the runtime would keep the runtime from ending; one of our own ends with the process.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tx, rx) = oneshot::channel();
    let thread = thread::Builder::new().name("session lock".to_owned());
    // If nobody waits any more, the result is dropped, and with it the ticket.
    thread.spawn(move || tx.send(work()).ok())?;
    rx.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests;
