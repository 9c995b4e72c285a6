//! The journal in memory, for tests: the same contract in the simplest code. Durable means the lock
//! was released.

mod log;
mod store;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use model::{RunId, SessionId};

use self::store::MemoryStore;
use crate::clock::Clock;
use crate::command::{Command, CommandBody, CommandStatus, Enqueued, PromptTarget, WaitingAsk};
use crate::config::Config;
use crate::entry::{Batch, Page, Read, StoredFrame};
use crate::error::Result;
use crate::journal::{Journal, Reply};
use crate::lease::{Lease, Owner, Takeover};
use crate::node::Node;
use crate::retention::{Removed, Retention};
use crate::run::{OpenRun, Overview, Run};
use crate::session::{ListCursor, Listing, NewSession, Session, SessionQuery};
use crate::truncate::Truncate;
use crate::watch::{Change, Scope, Watch, Watchers};
use crate::write_id::WriteId;

/// A journal that is lost when the process exits.
#[derive(Debug)]
pub struct Memory {
    clock: Arc<dyn Clock>,
    cut: Option<Truncate>,
    hints: Watchers,
    store: Mutex<MemoryStore>,
}

impl Memory {
    pub fn new(config: Config) -> Self {
        Self {
            clock: config.clock,
            cut: config.cut,
            hints: Watchers::default(),
            store: Mutex::default(),
        }
    }

    fn store(&self) -> MutexGuard<'_, MemoryStore> {
        self.store.lock().expect("no panic while holding the lock")
    }

    /// Runs `work` when polled, as every engine does, and sends a hint on success.
    fn write<'a, T: Send + 'a>(
        &'a self,
        session: &SessionId<'_>,
        work: impl FnOnce(&mut MemoryStore, &SessionId<'static>) -> Result<T> + Send + 'a,
    ) -> Reply<'a, T> {
        let session = session.clone().into_owned();
        Box::pin(async move {
            let done = work(&mut self.store(), &session)?;
            self.hints.notify(vec![Change::Commands(session)]);
            Ok(done)
        })
    }

    fn read_store<'a, T: Send + 'a>(
        &'a self,
        work: impl FnOnce(&MemoryStore) -> Result<T> + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move { work(&self.store()) })
    }
}

impl Journal for Memory {
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        owner: &'a Owner,
        ttl: Duration,
        takeover: Takeover,
    ) -> Reply<'a, Lease> {
        self.write(session, move |store, session| {
            store.acquire(session, owner, &self.clock.steady(), ttl, &takeover)
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        self.write(&lease.session, move |store, _| {
            store.renew(lease, &self.clock.steady(), ttl)
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        self.write(&lease.session, move |store, _| {
            store.release(lease);
            Ok(())
        })
    }

    fn append<'a>(&'a self, lease: &'a Lease, mut batch: Batch) -> Reply<'a, Range<u64>> {
        Box::pin(async move {
            batch.prepare(self.cut)?;
            let now = self.clock.now();
            let appended = self.store().append(lease, &batch, now)?;
            // The store itself is in memory: there is nothing to keep beside it.
            let change = Change::Log(lease.session.clone(), Vec::new(), now);
            self.hints.notify(vec![change]);
            Ok(appended)
        })
    }

    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page> {
        self.read_store(move |store| Ok(store.log(session)?.read(read)))
    }

    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>> {
        self.read_store(move |store| Ok(store.log(session)?.frames(read)))
    }

    fn watch(&self, scope: Scope) -> Watch {
        self.hints.watch(scope)
    }

    fn command<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        id: WriteId,
        order: CommandBody,
    ) -> Reply<'a, u64> {
        self.write(session, move |store, session| {
            store.log_mut(session)?.command(id, order, self.clock.now())
        })
    }

    fn enqueue(&self, target: PromptTarget, id: WriteId, prompt: Bytes) -> Reply<'_, Enqueued> {
        let session = target.session().clone();
        self.write(&session, move |store, _| {
            store.enqueue(&target, id, prompt, self.clock.now())
        })
    }

    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        self.read_store(move |store| Ok(store.log(session)?.commands(after)))
    }

    fn find_command(&self, id: WriteId) -> Reply<'_, Option<CommandStatus>> {
        self.read_store(move |store| Ok(store.find_command(id)))
    }

    fn pending<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<SessionId<'static>>> {
        self.read_store(move |store| Ok(store.pending(home)))
    }

    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        self.write(&lease.session, move |store, _| store.remove(lease))
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Removed> {
        Box::pin(async move {
            let (now, steady) = (self.clock.now(), self.clock.steady());
            let removed = self.store().retain(&retention, now, &steady);
            self.hints.notify_all();
            Ok(removed)
        })
    }

    fn create(&self, session: NewSession) -> Reply<'_, Session> {
        let id = session.id.clone();
        self.write(&id, move |store, _| store.create(session, self.clock.now()))
    }

    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.read_store(move |store| Ok(store.log(session).ok().map(|it| it.session())))
    }

    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<Overview>> {
        self.read_store(move |store| Ok(store.log(session).ok().map(|it| it.overview(n_runs))))
    }

    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.read_store(move |store| Ok(store.find_native(native)))
    }

    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing> {
        self.read_store(move |store| Ok(store.list(&query, after.as_ref(), limit)))
    }

    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()> {
        self.write(session, move |store, session| {
            store.log_mut(session)?.title = Some(title);
            Ok(())
        })
    }

    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>> {
        self.read_store(move |store| Ok(store.log(session)?.runs(before, limit)))
    }

    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>> {
        self.read_store(move |store| Ok(store.find_run(run)))
    }

    fn open_runs<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<OpenRun>> {
        self.read_store(move |store| Ok(store.open_runs(home, &self.clock.steady())))
    }

    fn asks<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<WaitingAsk>> {
        self.read_store(move |store| Ok(store.asks(home)))
    }

    fn settle<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        seq: u64,
        id: WriteId,
        answer: Bytes,
    ) -> Reply<'a, u64> {
        self.write(session, move |store, session| {
            let log = store.log_mut(session)?;
            log.settle(seq, id, answer, self.clock.now())
        })
    }
}
