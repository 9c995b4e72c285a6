//! The one thread that writes, and how it commits: whatever waits goes into one transaction with one sync.
//!
//! When nothing waits, a single job is committed at once; under load the sync of one group is the time in
//! which the next gathers. An answer is sent after the commit, so none can be false.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::checksum::LOGS;
use super::files::Files;
use super::open::{self, Opened};
use super::witness::{Slot, Witness};
use crate::error::{Error, Fault, Result};
use crate::watch::{Change, Watchers};

/// Jobs that share the commit of the first. More would not make the sync cheaper, and would keep the first waiting.
const MAX_GROUP: usize = 256;

/// How often a watched store is checked for commits of other programs.
const FOREIGN_LOOK: Duration = Duration::from_millis(100);

/// Between two attempts to open a store on a full disk.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// What a job has changed.
pub(super) type Changed = Vec<Change>;

pub(super) trait Job: Send {
    /// Fails only when the whole group has to be given up.
    fn work(&mut self, conn: &Connection, changed: &mut Changed) -> Result<(), Fault>;
    fn answer(self: Box<Self>, committed: Result<(), Fault>);
}

/// The store in the hands of the one that writes it.
#[derive(Debug)]
pub(super) struct WriteStore {
    conn: Connection,
    pub(super) files: Files,
    witness: Option<Witness>,
    /// The keys of the sessions that the group has changed.
    touched: Arc<Mutex<Vec<i64>>>,
}

impl WriteStore {
    pub(super) fn new(opened: Opened) -> Result<Self, Fault> {
        let Opened {
            mut conn,
            files,
            witness,
        } = opened;
        let touched = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&touched);
        conn.update_hook(Some(move |_, _: &str, table: &str, key| {
            // Its rows have all that the witness notes: head, commands and epoch.
            if table == LOGS.name {
                keys(&noted).push(key);
            }
        }))?;
        Ok(Self {
            conn,
            files,
            witness,
            touched,
        })
    }

    /// Before a commit: the new state of the sessions that it changes. Removed sessions are forgotten now, so
    /// that they are not missed if the program dies right after the commit.
    fn prepare_notes(&self) -> Result<Vec<Slot>, Fault> {
        let mut touched = std::mem::take(&mut *keys(&self.touched));
        let Some(witness) = &self.witness else {
            return Ok(Vec::new());
        };
        // One session may be changed many times in a group; its last state is noted once.
        touched.sort_unstable();
        touched.dedup();
        let mut slots = Vec::with_capacity(touched.len());
        for key in touched {
            match Slot::of(&self.conn, key)? {
                Some(slot) => slots.push(slot),
                // The witness is best effort; a failure here must not fail the commit.
                None => drop(witness.forget(key)),
            }
        }
        Ok(slots)
    }

    /// After a commit, before it is acknowledged.
    fn note(&self, slots: &[Slot]) {
        if let Some(witness) = &self.witness {
            for slot in slots {
                drop(witness.note(slot));
            }
        }
    }
}

fn keys(touched: &Mutex<Vec<i64>>) -> MutexGuard<'_, Vec<i64>> {
    // A list of keys is valid whatever a panicking job has left.
    touched.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(store: &mut WriteStore, jobs: &Receiver<Box<dyn Job>>, hints: &Watchers) {
    let mut version = None;
    loop {
        match next(jobs, hints) {
            Ok(first) => {
                let mut group = vec![first];
                group.extend(jobs.try_iter().take(MAX_GROUP));
                commit(store, group, hints);
            }
            // Otherwise watchers that are gone would keep this loop awake.
            Err(RecvTimeoutError::Timeout) => hints.prune_closed(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // The first look hints too: others may have written since the first watcher has read.
        if hints.has_watchers()
            && let Some(seen) = data_version(&store.conn)
            && version.replace(seen) != Some(seen)
        {
            hints.notify_all();
        }
    }
}

/// Refuses all jobs while the store cannot be opened for writing; `None` when the journal was dropped.
pub(super) fn refuse(
    path: &Path,
    jobs: &Receiver<Box<dyn Job>>,
    hints: &Watchers,
    mut fault: Fault,
) -> Option<WriteStore> {
    let mut tried: Option<Instant> = None;
    loop {
        let job = jobs.recv().ok()?;
        if tried.is_none_or(|it| it.elapsed() >= TRY_AGAIN) {
            match open::writer(path, &mut |_| ()).and_then(WriteStore::new) {
                Ok(store) => {
                    commit(&store, vec![job], hints);
                    return Some(store);
                }
                // A reader has the store locked for a moment.
                Err(Fault::Busy) => (),
                Err(other) => fault = other,
            }
            tried = Some(Instant::now());
        }
        job.answer(Err(fault.clone()));
    }
}

/// Waits for a job, or, while there are watchers, until the next check for foreign commits.
fn next(jobs: &Receiver<Box<dyn Job>>, hints: &Watchers) -> Result<Box<dyn Job>, RecvTimeoutError> {
    if hints.has_watchers() {
        jobs.recv_timeout(FOREIGN_LOOK)
    } else {
        jobs.recv().map_err(RecvTimeoutError::from)
    }
}

/// Changes when another connection has committed; absent while the store cannot be read.
fn data_version(conn: &Connection) -> Option<i64> {
    conn.prepare_cached("PRAGMA data_version")
        .and_then(|mut it| it.query_row([], |row| row.get(0)))
        .ok()
}

fn commit(store: &WriteStore, mut group: Vec<Box<dyn Job>>, hints: &Watchers) {
    let mut changed = Changed::new();
    let committed = transact(store, &mut group, &mut changed);
    // A commit to a deleted file is lost.
    let committed = committed.and_then(|()| store.files.check());
    if committed.is_ok() {
        hints.notify(changed);
    }
    for job in group {
        job.answer(committed.clone());
    }
}

fn transact(
    store: &WriteStore,
    group: &mut [Box<dyn Job>],
    changed: &mut Changed,
) -> Result<(), Fault> {
    let conn = &store.conn;
    store.files.check()?;
    // A rollback may have failed on a full disk; the transaction is still open then.
    roll_back(conn)?;
    let result = (|| {
        // The write lock at once: a transaction that gets it later may fail without any wait.
        step(conn, "BEGIN IMMEDIATE")?;
        for job in group {
            job.work(conn, changed)?;
        }
        let slots = store.prepare_notes()?;
        step(conn, "COMMIT")?;
        store.note(&slots);
        Ok(())
    })();
    if result.is_err() {
        keys(&store.touched).clear();
        // Report the first failure; a transaction left open by a second one is closed before the
        // next group.
        drop(roll_back(conn));
    }
    result
}

fn roll_back(conn: &Connection) -> Result<(), Fault> {
    if conn.is_autocommit() {
        return Ok(());
    }
    step(conn, "ROLLBACK")
}

fn step(conn: &Connection, sql: &str) -> Result<(), Fault> {
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// A job that keeps its result until the group is committed.
pub(super) struct Task<F, T> {
    pub(super) work: Option<F>,
    pub(super) result: Option<Result<T>>,
    pub(super) reply: oneshot::Sender<Result<T>>,
    /// Its share of what may wait to be written.
    pub(super) _room: OwnedSemaphorePermit,
}

impl<F, T> Job for Task<F, T>
where
    F: FnOnce(&Connection, &mut Changed) -> Result<T> + Send,
    T: Send,
{
    fn work(&mut self, conn: &Connection, changed: &mut Changed) -> Result<(), Fault> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        // A job that breaks a rule half-way must not leave its half in the group's transaction.
        step(conn, "SAVEPOINT job")?;
        let result = work(conn, changed);
        match &result {
            // SQLite may have rolled back the whole transaction by itself.
            Err(Error::Storage(fault)) if fault.spoils_transaction() => return Err(fault.clone()),
            Err(_) => step(conn, "ROLLBACK TO job")?,
            Ok(_) => (),
        }
        self.result = Some(result);
        step(conn, "RELEASE job")
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let result = match committed {
            Ok(()) => self.result.unwrap_or(Err(Fault::Closed.into())),
            Err(fault) => Err(fault.into()),
        };
        // The caller may have stopped waiting; the write stays.
        drop(self.reply.send(result));
    }
}

#[cfg(test)]
mod tests;
