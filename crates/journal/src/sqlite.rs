//! The journal in one SQLite file: one thread writes and commits in groups, one or two read.
//!
//! Several programs may use one file at a time; what one of them writes, the others see at the latest a
//! tenth of a second later. Connections never leave their threads, so no caller ever blocks on a disk.

mod append;
mod checksum;
mod commands;
mod examine;
mod fault;
mod files;
mod leases;
mod log;
mod logs;
mod migrate;
mod open;
mod repair;
mod retention;
mod runs;
mod sessions;
mod threads;
mod witness;
mod writer;

use std::future::ready;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId};
use rusqlite::Connection;

use crate::clock::Clock;
use crate::command::{Command, CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
use crate::config::Config;
use crate::entry::{Batch, Page, Read, StoredFrame};
use crate::error::{Fault, Result};
use crate::journal::{Journal, Reply};
use crate::lease::{Lease, Owner, Takeover};
use crate::node::Node;
use crate::open_note::OpenNote;
use crate::report::{Repaired, Report};
use crate::retention::{Removed, Retention};
use crate::run::{OpenRun, Overview, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery};
use crate::truncate::Truncate;
use crate::watch::{Change, Scope, Watch, Watchers};
use crate::write_id::WriteId;

/// The access that a store is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenMode {
    ReadWrite,
    ReadOnly,
}

/// A journal in a file. Dropping it waits for pending writes.
#[derive(Debug)]
pub struct Sqlite {
    clock: Arc<dyn Clock>,
    cut: Option<Truncate>,
    hints: Arc<Watchers>,
    threads: threads::Threads,
}

impl Sqlite {
    /// Opens the store at `path`, and makes it, readable by its owner alone, if there is none.
    pub async fn open(path: &Path, config: Config) -> Result<Self, Fault> {
        Self::open_with_notes(path, config, |_| ()).await
    }

    /// The same; `notify` is called with messages for the user, on a thread of the journal.
    pub async fn open_with_notes(
        path: &Path,
        config: Config,
        notify: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        Self::start(path, config, OpenMode::ReadWrite, notify).await
    }

    /// The same; on a full disk the store can be read, and writing starts when there is space.
    pub async fn open_or_read_only(
        path: &Path,
        config: Config,
        notify: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        Self::start(path, config, OpenMode::ReadOnly, notify).await
    }

    async fn start(
        path: &Path,
        config: Config,
        mode: OpenMode,
        notify: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        let hints = Arc::new(Watchers::default());
        Ok(Self {
            threads: threads::Threads::start(path, &hints, mode, notify).await?,
            clock: config.clock,
            cut: config.cut,
            hints,
        })
    }

    /// Looks at the store at `path` without changing it. Reads all of it; others may use it meanwhile.
    pub fn examine(path: &Path) -> Result<Report, Fault> {
        examine::examine(path)
    }

    /// The witness file of the store at `path`.
    pub fn witness(path: &Path) -> PathBuf {
        witness::Witness::path(path)
    }

    /// Copies the undamaged rows of the store at `path` into a new one in its place and keeps the
    /// old one beside it. The store must not be in use.
    pub fn repair(path: &Path) -> Result<Repaired, Fault> {
        repair::repair(path)
    }

    /// Reads something of one session.
    fn read_of<'a, T: Send + 'static>(
        &'a self,
        session: &SessionId<'_>,
        work: impl FnOnce(&Connection, &SessionId<'static>) -> Result<T> + Send + 'static,
    ) -> Reply<'a, T> {
        let session = session.clone().into_owned();
        Box::pin(self.threads.read(move |conn| work(conn, &session)))
    }

    /// Changes a session, and notifies everyone who watches its commands and leases. `n_bytes` is what the
    /// change keeps in memory while it waits.
    fn write_of<'a, T: Send + 'static>(
        &'a self,
        session: &SessionId<'_>,
        n_bytes: usize,
        work: impl FnOnce(&Connection, &dyn Clock) -> Result<T> + Send + 'static,
    ) -> Reply<'a, T> {
        let session = session.clone().into_owned();
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(n_bytes, move |conn, changed| {
            changed.push(Change::Commands(session));
            work(conn, &*clock)
        }))
    }

    /// Gives back what removed sessions took, in small steps.
    async fn sweep(&self) -> Result<()> {
        // A transaction for each step, so that other writes get in between.
        while self
            .threads
            .write(0, |conn, _| retention::sweep(conn))
            .await?
        {}
        Ok(())
    }
}

impl Journal for Sqlite {
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        owner: &'a Owner,
        ttl: Duration,
        takeover: Takeover,
    ) -> Reply<'a, Lease> {
        let (id, owner) = (session.clone().into_owned(), owner.clone());
        self.write_of(session, 0, move |conn, clock| {
            leases::acquire(conn, &id, &owner, &clock.steady(), ttl, &takeover)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        let lease = lease.clone();
        let clock = Arc::clone(&self.clock);
        // No watcher waits for a renewal, so there is no hint.
        Box::pin(self.threads.write(0, move |conn, _| {
            leases::renew(conn, &lease, &clock.steady(), ttl)
        }))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        let released = lease.clone();
        self.write_of(&lease.session, 0, move |conn, _| {
            leases::release(conn, &released)
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, mut batch: Batch) -> Reply<'a, Range<u64>> {
        let lease = lease.clone();
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            batch.prepare(self.cut)?;
            self.threads
                .write(batch.length(), move |conn, changed| {
                    let now = clock.now();
                    let appended = append::append(conn, &lease, &batch, now)?;
                    changed.push(Change::Log(lease.session, batch.entries, now));
                    Ok(appended)
                })
                .await
        })
    }

    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page> {
        let session = session.clone().into_owned();
        // Followers at the end of a log do not cost a read of the store.
        if let Some(page) = self.hints.page(&session, read) {
            return Box::pin(ready(Ok(page)));
        }
        self.read_of(&session, move |conn, session| {
            log::read(conn, session, read)
        })
    }

    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>> {
        self.read_of(session, move |conn, session| {
            log::frames(conn, session, read)
        })
    }

    fn check(&self) -> Result<(), Fault> {
        self.threads.files().check()
    }

    fn watch(&self, scope: Scope) -> Watch {
        let watch = self.hints.watch(scope);
        self.threads.wake();
        watch
    }

    fn command<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        id: WriteId,
        order: CommandBody,
    ) -> Reply<'a, u64> {
        let name = session.clone().into_owned();
        self.write_of(session, order.length(), move |conn, clock| {
            commands::command(conn, &name, id, &order, clock.now())
        })
    }

    fn enqueue(&self, target: PromptTarget, id: WriteId, prompt: Bytes) -> Reply<'_, Enqueued> {
        let session = target.session().clone();
        self.write_of(&session, prompt.len(), move |conn, clock| {
            commands::enqueue(conn, &target, id, prompt, clock.now())
        })
    }

    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        self.read_of(session, move |conn, session| {
            commands::commands(conn, session, after)
        })
    }

    fn find_command(&self, id: WriteId) -> Reply<'_, Option<CommandStatus>> {
        let find = move |conn: &Connection| commands::find_command(conn, id);
        Box::pin(self.threads.read(find))
    }

    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        let lease = lease.clone();
        Box::pin(async move {
            let remove = self.threads.write(0, move |conn, changed| {
                changed.push(Change::Removed(lease.session.clone()));
                retention::remove(conn, &lease)
            });
            remove.await?;
            self.sweep().await
        })
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Removed> {
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            let removed = self
                .threads
                .write(0, move |conn, _| {
                    retention::retain(conn, &retention, clock.now(), &clock.steady())
                })
                .await?;
            self.hints.notify_all();
            self.sweep().await?;
            Ok(removed)
        })
    }

    fn create(&self, session: NewSession) -> Reply<'_, Session> {
        let id = session.id.clone();
        self.write_of(&id, 0, move |conn, clock| {
            sessions::create(conn, &session, clock.now())
        })
    }

    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.read_of(session, sessions::find)
    }

    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<Overview>> {
        self.read_of(session, move |conn, session| {
            runs::overview(conn, session, n_runs)
        })
    }

    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.read_of(native, sessions::find_native)
    }

    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing> {
        let list = move |conn: &Connection| sessions::list(conn, &query, after.as_ref(), limit);
        Box::pin(self.threads.read(list))
    }

    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()> {
        let id = session.clone().into_owned();
        self.write_of(session, title.len(), move |conn, _| {
            sessions::rename(conn, &id, &title)
        })
    }

    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>> {
        self.read_of(session, move |conn, session| {
            runs::runs(conn, session, before, limit)
        })
    }

    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>> {
        let run = run.clone().into_owned();
        Box::pin(self.threads.read(move |conn| runs::find_run(conn, &run)))
    }

    fn pending<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<SessionId<'static>>> {
        let home = home.cloned();
        let pending = move |conn: &Connection| commands::pending(conn, home.as_ref());
        Box::pin(self.threads.read(pending))
    }

    fn open_runs<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<OpenRun>> {
        let (home, clock) = (home.cloned(), Arc::clone(&self.clock));
        let open_runs =
            move |conn: &Connection| runs::open_runs(conn, home.as_ref(), &clock.steady());
        Box::pin(self.threads.read(open_runs))
    }

    fn asks<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<WaitingAsk>> {
        let home = home.cloned();
        let asks = move |conn: &Connection| commands::asks(conn, None, home.as_ref());
        Box::pin(self.threads.read(asks))
    }

    fn settle<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        seq: u64,
        id: WriteId,
        answer: Bytes,
    ) -> Reply<'a, u64> {
        let name = session.clone().into_owned();
        self.write_of(session, answer.len(), move |conn, clock| {
            commands::settle(conn, &name, seq, id, answer, clock.now())
        })
    }
}
