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

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId};

use crate::clock::Clock;
use crate::command::{Command, CommandBody, Enqueued, PromptTarget, WaitingAsk};
use crate::config::Config;
use crate::entry::{Batch, Page, Read, StoredFrame};
use crate::error::{Fault, Result};
use crate::journal::{Journal, Reply};
use crate::lease::{Lease, Owner, Takeover};
use crate::open_note::OpenNote;
use crate::report::{Repaired, Report};
use crate::retention::{Removed, Retention};
use crate::run::{OpenRun, Overview, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery};
use crate::truncate::Truncate;
use crate::watch::{Change, Scope, Watch, Watchers};

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

    /// The same; `tell` is called with messages for the user, on a thread of the journal.
    pub async fn open_with_notes(
        path: &Path,
        config: Config,
        tell: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        Self::start(path, config, OpenMode::ReadWrite, tell).await
    }

    /// The same; on a full disk the store can be read, and writing starts when there is space.
    pub async fn open_or_read_only(
        path: &Path,
        config: Config,
        tell: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        Self::start(path, config, OpenMode::ReadOnly, tell).await
    }

    async fn start(
        path: &Path,
        config: Config,
        way: OpenMode,
        tell: impl FnMut(OpenNote) + Send + 'static,
    ) -> Result<Self, Fault> {
        let hints = Arc::new(Watchers::default());
        Ok(Self {
            threads: threads::Threads::start(path, &hints, way, tell).await?,
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

    /// Gives back what removed sessions took, in small steps.
    async fn sweep(&self) -> Result<()> {
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
        let session = session.clone().into_owned();
        let owner = owner.clone();
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(0, move |conn, changed| {
            changed.push(Change::Commands(session.clone()));
            leases::acquire(conn, &session, &owner, &clock.steady(), ttl, &takeover)
        }))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        let lease = lease.clone();
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(0, move |conn, _| {
            leases::renew(conn, &lease, &clock.steady(), ttl)
        }))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        let lease = lease.clone();
        Box::pin(self.threads.write(0, move |conn, changed| {
            changed.push(Change::Commands(lease.session.clone()));
            leases::release(conn, &lease)
        }))
    }

    fn append<'a>(&'a self, lease: &'a Lease, mut batch: Batch) -> Reply<'a, Range<u64>> {
        let lease = lease.clone();
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            batch.prepare(self.cut)?;
            self.threads
                .write(batch.length(), move |conn, changed| {
                    changed.push(Change::Log(lease.session.clone()));
                    append::append(conn, &lease, &batch, clock.now())
                })
                .await
        })
    }

    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| log::read(conn, &session, read)),
        )
    }

    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| log::frames(conn, &session, read)),
        )
    }

    fn check(&self) -> Result<(), Fault> {
        self.threads.files().check()
    }

    fn watch(&self, scope: Scope) -> Watch {
        let watch = self.hints.watch(scope);
        self.threads.wake();
        watch
    }

    fn command<'a>(&'a self, session: &'a SessionId<'_>, order: CommandBody) -> Reply<'a, u64> {
        let session = session.clone().into_owned();
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(order.length(), move |conn, changed| {
            changed.push(Change::Commands(session.clone()));
            commands::command(conn, &session, &order, clock.now())
        }))
    }

    fn enqueue(&self, home: PromptTarget, prompt: Bytes) -> Reply<'_, Enqueued> {
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(prompt.len(), move |conn, changed| {
            changed.push(Change::Commands(home.session().clone()));
            commands::enqueue(conn, &home, prompt, clock.now())
        }))
    }

    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| commands::commands(conn, &session, after)),
        )
    }

    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        let lease = lease.clone();
        Box::pin(async move {
            self.threads
                .write(0, move |conn, changed| {
                    changed.push(Change::Commands(lease.session.clone()));
                    retention::remove(conn, &lease)
                })
                .await?;
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
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(0, move |conn, changed| {
            changed.push(Change::Commands(session.id.clone()));
            sessions::create(conn, &session, clock.now())
        }))
    }

    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| sessions::find(conn, &session)),
        )
    }

    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<Overview>> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| runs::overview(conn, &session, n_runs)),
        )
    }

    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        let native = native.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| sessions::find_native(conn, &native)),
        )
    }

    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing> {
        Box::pin(
            self.threads
                .read(move |conn| sessions::list(conn, &query, after.as_ref(), limit)),
        )
    }

    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()> {
        let session = session.clone().into_owned();
        Box::pin(self.threads.write(title.len(), move |conn, changed| {
            changed.push(Change::Commands(session.clone()));
            sessions::rename(conn, &session, &title)
        }))
    }

    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>> {
        let session = session.clone().into_owned();
        Box::pin(
            self.threads
                .read(move |conn| runs::runs(conn, &session, before, limit)),
        )
    }

    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>> {
        let run = run.clone().into_owned();
        Box::pin(self.threads.read(move |conn| runs::find_run(conn, &run)))
    }

    fn pending(&self) -> Reply<'_, Vec<SessionId<'static>>> {
        Box::pin(self.threads.read(commands::pending))
    }

    fn open_runs(&self) -> Reply<'_, Vec<OpenRun>> {
        let clock = Arc::clone(&self.clock);
        Box::pin(
            self.threads
                .read(move |conn| runs::open_runs(conn, &clock.steady())),
        )
    }

    fn asks(&self) -> Reply<'_, Vec<WaitingAsk>> {
        Box::pin(self.threads.read(|conn| commands::asks(conn, None)))
    }

    fn settle<'a>(&'a self, session: &'a SessionId<'_>, seq: u64, answer: Bytes) -> Reply<'a, u64> {
        let session = session.clone().into_owned();
        let clock = Arc::clone(&self.clock);
        Box::pin(self.threads.write(answer.len(), move |conn, changed| {
            changed.push(Change::Commands(session.clone()));
            commands::settle(conn, &session, seq, answer, clock.now())
        }))
    }
}
