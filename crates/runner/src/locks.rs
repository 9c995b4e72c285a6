//! One run at a time in a session, for everything on this machine that uses the same folder.
//!
//! A process that wants a session draws a ticket: a file that its owner keeps locked, so that the
//! kernel releases it when the owner dies for any reason. The lowest ticket has the session; the
//! others wait for the tickets before theirs, first come, first served, within a process and across
//! processes.
//!
//! Readers, which fork from a session, wait for writers but not for other readers. An idle agent
//! does not write: its owner releases the lock ([`Lock::mark_idle`]) and reacquires it for the next
//! prompt, unless another process has written the session in between, which would make that agent
//! out of date.
//!
//! A dead owner may leave a living agent behind for a moment. Its ticket has the agent's process
//! tag, and the session stays locked until that agent has exited.

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

/// The holder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: u32,
    /// Its own description.
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

    /// Takes a place in the queue for a session of an engine; it may be the first. `holder` is
    /// shown to others while they wait.
    pub async fn queue(&self, engine: &str, id: &str, holder: &str) -> Result<QueueSlot, Error> {
        let key = SessionKey::new(engine, id);
        self.draw(key, TicketKind::Write, holder).await
    }

    /// The same for a reader, which does not write the session.
    pub async fn queue_to_read(
        &self,
        engine: &str,
        id: &str,
        holder: &str,
    ) -> Result<QueueSlot, Error> {
        let key = SessionKey::new(engine, id);
        self.draw(key, TicketKind::Read, holder).await
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
    /// The holder of the session; `None` if this slot is the first.
    pub fn held(&self) -> Option<&LockHolder> {
        self.drawn.held.as_ref()
    }

    /// Waits until all earlier slots are free.
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
    /// Records the agent's process tag, ideally before it is started: if this process dies, the
    /// next owner waits until that agent has exited.
    pub fn protect(&self, agent: ProcessTag) -> Result<(), Error> {
        let written = self.ticket.name_agent(agent);
        written.map_err(|source| self.locks.error(source))
    }

    /// The agent is idle: others may use the session until the lock is reacquired. The note is
    /// written before the lock is released, so that no write in between goes unnoticed.
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
    /// Reacquires the session; `None` when another process has written it in between, so that the
    /// agent is out of date.
    pub async fn reacquire(self, holder: &str) -> Result<Option<Lock>, Error> {
        let Self { locks, key, note } = self;
        // A new ticket, behind those that were drawn while the agent was idle.
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
    // If the receiver is gone, the result is dropped, and with it the ticket.
    thread.spawn(move || tx.send(work()).ok())?;
    rx.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests;
