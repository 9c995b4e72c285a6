//! One run at a time in a session, for everything on this machine that uses the same folder.
//!
//! Whoever wants a session draws a ticket: a file that its owner keeps locked, so that the kernel frees it
//! when the owner dies, however that happens. The lowest ticket has the session; the others wait for the
//! tickets before theirs, first come, first served, within a process and across processes.
//!
//! Whoever only reads a session, to begin another one with what it holds, waits for those who write it, not
//! for other readers. An agent that idles does not write: its owner puts the lock down ([`Lock::mark_idle`])
//! and takes it up again for the next prompt, unless somebody else has written the session meanwhile, of
//! which that agent would know nothing.
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

use crate::process::ProcessTag;
use crate::state::state_folder;
use ticket::{DrawnTicket, IdleNote, SessionKey, Ticket, TicketKind};

/// The locks of all sessions, in one folder that is made when it is needed.
#[derive(Clone, Debug)]
pub struct Locks {
    dir: Arc<Path>,
}

/// Who is in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    /// What it said of itself.
    pub holder: String,
    pub since: Timestamp,
}

impl fmt::Display for LockHolder {
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
    pub async fn queue(&self, engine: &str, id: &str, holder: &str) -> Result<QueueSlot, Error> {
        self.draw(SessionKey::new(engine, id), TicketKind::Write, holder)
            .await
    }

    /// The same for somebody who reads what the session holds and leaves it as it is.
    pub async fn queue_to_read(
        &self,
        engine: &str,
        id: &str,
        holder: &str,
    ) -> Result<QueueSlot, Error> {
        self.draw(SessionKey::new(engine, id), TicketKind::Read, holder)
            .await
    }

    async fn draw(
        &self,
        key: SessionKey,
        kind: TicketKind,
        holder: &str,
    ) -> Result<QueueSlot, Error> {
        let (dir, holder) = (Arc::clone(&self.dir), holder.to_owned());
        let drawn = on_thread(move || ticket::draw(&dir, key, kind, &holder)).await;
        let drawn = drawn.map_err(|source| self.error(source))?;
        Ok(QueueSlot {
            locks: self.clone(),
            key,
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
pub struct QueueSlot {
    locks: Locks,
    key: SessionKey,
    drawn: DrawnTicket,
}

impl QueueSlot {
    /// Who has the session; nobody if this place is the first.
    pub fn held(&self) -> Option<&LockHolder> {
        self.drawn.held.as_ref()
    }

    /// Until everybody before this place has left.
    pub async fn wait(self) -> Result<Lock, Error> {
        let Self { locks, key, drawn } = self;
        let DrawnTicket { ticket, turn, .. } = drawn;
        let dir = Arc::clone(&locks.dir);
        let came = on_thread(move || turn.wait(&dir)).await;
        came.map_err(|source| locks.error(source))?;
        Ok(Lock { locks, key, ticket })
    }
}

/// The session is ours until this is dropped.
#[derive(Debug)]
pub struct Lock {
    locks: Locks,
    key: SessionKey,
    ticket: Ticket,
}

impl Lock {
    /// Names the agent that works in the session, best before it is started: should this process die,
    /// the next one waits until that agent is gone.
    pub fn protect(&self, agent: ProcessTag) -> Result<(), Error> {
        let written = self.ticket.name_agent(agent);
        written.map_err(|source| self.locks.error(source))
    }

    /// The agent idles: once this is dropped, others may use the session until the lock is taken up again.
    /// The note is there before the lock is gone, so that nobody writes in between unnoticed.
    pub fn mark_idle(&self) -> Result<IdleLock, Error> {
        let note = IdleNote::leave(&self.ticket).map_err(|source| self.locks.error(source))?;
        Ok(IdleLock {
            locks: self.locks.clone(),
            key: self.key,
            note: Arc::new(note),
        })
    }
}

/// The lock of a session whose agent idles.
#[derive(Clone, Debug)]
pub struct IdleLock {
    locks: Locks,
    key: SessionKey,
    note: Arc<IdleNote>,
}

impl IdleLock {
    /// Waits for the session again; none when somebody else has written it meanwhile, so that whoever
    /// knew it before knows it no more.
    pub async fn reacquire(self, holder: &str) -> Result<Option<Lock>, Error> {
        let Self { locks, key, note } = self;
        let QueueSlot { drawn, .. } = locks.draw(key, TicketKind::Write, holder).await?;
        let DrawnTicket { ticket, turn, .. } = drawn;
        let dir = Arc::clone(&locks.dir);
        let came = on_thread(move || turn.wait_as(&dir, &note)).await;
        let is_valid = came.map_err(|source| locks.error(source))?;
        Ok(is_valid.then_some(Lock { locks, key, ticket }))
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
