//! The threads that own the connections, and how work gets to them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::files::Files;
use super::writer::{self, Changed, Job, Task, WriteStore};
use super::{OpenMode, open};
use crate::error::{Error, Fault, Result};
use crate::open_note::OpenNote;
use crate::watch::Watchers;

/// One reads while the other is in the middle of a long page; it is started when that happens.
const N_READERS: usize = 2;

/// Maximum size of pending writes; callers beyond it wait. Bounds memory when the disk is slow.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The fixed cost of a job besides its bytes.
const JOB_BYTES: usize = 256;

/// SQLite needs a few tens of kilobytes.
const STACK: usize = 512 << 10;

type ReadJob = Box<dyn FnOnce(Result<&Connection, Fault>) + Send>;

#[derive(Debug)]
pub(super) struct Threads {
    /// Absent once the journal is being dropped, so that the threads see the end of their queues.
    queues: Option<Queues>,
    room: Arc<Semaphore>,
    path: PathBuf,
    files: Files,
    /// The disk is full: each reader has exclusive access to the store while it reads.
    is_cramped: Arc<AtomicBool>,
    read_jobs: Arc<Mutex<Receiver<ReadJob>>>,
    /// Jobs that readers have not finished.
    n_reads: Arc<AtomicUsize>,
    writer: Option<JoinHandle<()>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Queues {
    writes: Sender<Box<dyn Job>>,
    reads: Sender<ReadJob>,
}

impl Threads {
    pub(super) async fn start(
        path: &Path,
        hints: &Arc<Watchers>,
        mode: OpenMode,
        mut notify: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        let (writes, write_jobs) = mpsc::channel();
        let (reads, read_jobs) = mpsc::channel();
        let (ready, opened) = oneshot::channel();
        let path = path.to_owned();
        let hints = Arc::clone(hints);
        let is_cramped = Arc::new(AtomicBool::new(false));
        let writer = spawn("journal-writer", {
            let path = path.clone();
            let is_cramped = Arc::clone(&is_cramped);
            move || {
                let opened = open::writer(&path, &mut notify).and_then(WriteStore::new);
                let store = match opened {
                    Ok(store) => {
                        drop(ready.send(Ok(store.files.clone())));
                        Some(store)
                    }
                    Err(fault) if mode == OpenMode::ReadOnly && can_read(&path, &fault) => {
                        is_cramped.store(true, Ordering::Release);
                        notify(OpenNote::ReadOnly(fault.to_string()));
                        drop(ready.send(Ok(Files::of_cramped(&path))));
                        let store = writer::refuse(&path, &write_jobs, &hints, fault);
                        is_cramped.store(false, Ordering::Release);
                        store
                    }
                    Err(fault) => return drop(ready.send(Err(fault))),
                };
                if let Some(mut store) = store {
                    writer::run(&mut store, &write_jobs, &hints);
                }
            }
        })?;
        let files = opened.await.map_err(|_| Fault::Closed)??;
        Ok(Self {
            files,
            is_cramped,
            queues: Some(Queues { writes, reads }),
            room: Arc::new(Semaphore::new(MAX_WAITING_BYTES)),
            path,
            read_jobs: Arc::new(Mutex::new(read_jobs)),
            n_reads: Arc::default(),
            writer: Some(writer),
            readers: Mutex::default(),
        })
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// Has one more reader where all of them have something to do already.
    fn ensure_readers(&self) -> Result<(), Fault> {
        let mut readers = self.readers.lock().map_err(|_| Fault::Closed)?;
        let n_wanted = self.n_reads.load(Ordering::Relaxed).min(N_READERS);
        if readers.len() < n_wanted {
            let (path, jobs) = (self.path.clone(), Arc::clone(&self.read_jobs));
            let is_cramped = Arc::clone(&self.is_cramped);
            let work = move || read_loop(&path, &jobs, &is_cramped);
            readers.push(spawn("journal-reader", work)?);
        }
        Ok(())
    }

    /// Has `work` done in the writer's next transaction; answers when that is durable.
    pub(super) async fn write<T, F>(&self, bytes: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &mut Changed) -> Result<T> + Send + 'static,
    {
        // A batch larger than all the room takes all of it, and goes alone.
        let share = (bytes + JOB_BYTES).min(MAX_WAITING_BYTES);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(share)
            .await
            .map_err(|_| Fault::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Task {
            work: Some(work),
            result: None,
            reply,
            _room: room,
        }))?;
        answer.await.map_err(|_| Fault::Closed)?
    }

    pub(super) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queues = self.queues.as_ref().ok_or(Fault::Closed)?;
        let n_reads = Arc::clone(&self.n_reads);
        // Before the check for readers, so that two reads at once start the second one.
        n_reads.fetch_add(1, Ordering::Relaxed);
        self.ensure_readers()?;
        queues
            .reads
            .send(Box::new(move |conn| {
                let result = conn.map_err(Error::from).and_then(work);
                n_reads.fetch_sub(1, Ordering::Relaxed);
                // The caller may have stopped waiting.
                drop(reply.send(result));
            }))
            .map_err(|_| Fault::Closed)?;
        answer.await.map_err(|_| Fault::Closed)?
    }

    /// Wakes the writer when there are watchers; otherwise it sleeps indefinitely.
    pub(super) fn wake(&self) {
        struct NoWork;
        impl Job for NoWork {
            fn work(&mut self, _: &Connection, _: &mut Changed) -> Result<(), Fault> {
                Ok(())
            }
            fn answer(self: Box<Self>, _: Result<(), Fault>) {}
        }
        // Closing the journal wakes all watchers.
        drop(self.send(Box::new(NoWork)));
    }

    fn send(&self, job: Box<dyn Job>) -> Result<()> {
        let queues = self.queues.as_ref().ok_or(Fault::Closed)?;
        queues
            .writes
            .send(job)
            .map_err(|_| Error::from(Fault::Closed))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The threads end when their queues do, after the work that is already in them.
        self.queues = None;
        let readers = self.readers.get_mut().map(std::mem::take);
        for handle in self
            .writer
            .take()
            .into_iter()
            .chain(readers.unwrap_or_default())
        {
            // A panicked thread has already reported it, and its callers got an error.
            drop(handle.join());
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(work)
}

static LOOKING: Mutex<()> = Mutex::new(());

/// Takes jobs in turn with the other reader. A connection is opened for the first job, and again after a
/// failure: its cause may be gone.
fn read_loop(path: &Path, jobs: &Mutex<Receiver<ReadJob>>, is_cramped: &AtomicBool) {
    let mut conn = Err(Fault::Closed);
    loop {
        // The lock is held while this waits: the other reader waits for the lock instead.
        let next = jobs.lock().map(|jobs| jobs.recv());
        let Ok(Ok(job)) = next else { return };
        if is_cramped.load(Ordering::Acquire) {
            // Such a connection locks the whole store, so the readers of this process take turns.
            let _turn = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
            job(open::looker(path).as_ref().map_err(Fault::clone));
            continue;
        }
        if conn.is_err() {
            conn = open::reader(path);
        }
        job(conn.as_ref().map_err(Fault::clone));
    }
}

/// Whether a store that cannot be written for this reason can be read.
fn can_read(path: &Path, fault: &Fault) -> bool {
    match fault {
        Fault::Full | Fault::ReadOnly | Fault::Io(_) => open::looker(path).is_ok(),
        Fault::Busy
        | Fault::Corrupt(_)
        | Fault::Newer { .. }
        | Fault::InUse
        | Fault::Gone(_)
        | Fault::Closed
        | Fault::Lost
        | Fault::Database(_) => false,
    }
}
