//! A journal whose failures a test decides.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Command, CommandBody, Error, Fault, Journal, Lease, ListCursor, Listing, NewSession,
    OpenRun, Owner, Page, Read, Removed, Reply, Retention, Run, Session, SessionQuery, StoredFrame,
    Takeover, WaitingAsk, Watch,
};
use model::{RunId, SessionId};

/// A journal that fails on demand: its disk is full, also after a number of new sessions and commands, or
/// it cannot be read.
pub(crate) struct ScriptedJournal {
    pub(crate) inner: Arc<dyn Journal>,
    pub(crate) is_full: Arc<AtomicBool>,
    pub(crate) n_free: AtomicUsize,
    pub(crate) is_unreadable: AtomicBool,
}

impl ScriptedJournal {
    pub(crate) fn new(inner: Arc<dyn Journal>, is_full: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            is_full,
            n_free: AtomicUsize::new(usize::MAX),
            is_unreadable: AtomicBool::new(false),
        }
    }

    /// Stores a new session or a command.
    fn place<'a, T>(&self, reply: Reply<'a, T>) -> Reply<'a, T> {
        let taken = |n: usize| n.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.n_free.fetch_update(order, order, taken) {
            Ok(_) => self.write(reply),
            Err(_) => Box::pin(async { Err(Error::Storage(Fault::Full)) }),
        }
    }

    fn write<'a, T>(&self, reply: Reply<'a, T>) -> Reply<'a, T> {
        match self.is_full.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(Error::Storage(Fault::Full)) }),
            false => reply,
        }
    }
}

impl Journal for ScriptedJournal {
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        owner: &'a Owner,
        ttl: Duration,
        takeover: Takeover,
    ) -> Reply<'a, Lease> {
        self.write(self.inner.acquire(session, owner, ttl, takeover))
    }
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        self.write(self.inner.renew(lease, ttl))
    }
    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        self.write(self.inner.release(lease))
    }
    fn append<'a>(&'a self, lease: &'a Lease, batch: Batch) -> Reply<'a, Range<u64>> {
        self.write(self.inner.append(lease, batch))
    }
    fn read<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Page> {
        match self.is_unreadable.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(Error::Storage(Fault::Busy)) }),
            false => self.inner.read(session, read),
        }
    }
    fn frames<'a>(&'a self, session: &'a SessionId<'_>, read: Read) -> Reply<'a, Vec<StoredFrame>> {
        self.inner.frames(session, read)
    }
    fn watch(&self, scope: journal::Scope) -> Watch {
        self.inner.watch(scope)
    }
    fn command<'a>(&'a self, session: &'a SessionId<'_>, order: CommandBody) -> Reply<'a, u64> {
        self.place(self.inner.command(session, order))
    }
    fn enqueue(&self, home: journal::PromptTarget, prompt: Bytes) -> Reply<'_, journal::Enqueued> {
        self.place(self.inner.enqueue(home, prompt))
    }
    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        self.inner.commands(session, after)
    }
    fn pending(&self) -> Reply<'_, Vec<SessionId<'static>>> {
        self.inner.pending()
    }
    fn remove<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        self.write(self.inner.remove(lease))
    }
    fn retain(&self, retention: Retention) -> Reply<'_, Removed> {
        self.write(self.inner.retain(retention))
    }
    fn create(&self, session: NewSession) -> Reply<'_, Session> {
        self.place(self.inner.create(session))
    }
    fn find_session<'a>(&'a self, session: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.inner.find_session(session)
    }
    fn overview<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        n_runs: u32,
    ) -> Reply<'a, Option<journal::Overview>> {
        self.inner.overview(session, n_runs)
    }
    fn find_native<'a>(&'a self, native: &'a SessionId<'_>) -> Reply<'a, Option<Session>> {
        self.inner.find_native(native)
    }
    fn list(
        &self,
        query: SessionQuery,
        after: Option<ListCursor>,
        limit: u32,
    ) -> Reply<'_, Listing> {
        self.inner.list(query, after, limit)
    }
    fn rename<'a>(&'a self, session: &'a SessionId<'_>, title: String) -> Reply<'a, ()> {
        self.write(self.inner.rename(session, title))
    }
    fn runs<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        before: Option<u64>,
        limit: u32,
    ) -> Reply<'a, Vec<Run>> {
        self.inner.runs(session, before, limit)
    }
    fn find_run<'a>(&'a self, run: &'a RunId<'_>) -> Reply<'a, Option<Run>> {
        self.inner.find_run(run)
    }
    fn open_runs(&self) -> Reply<'_, Vec<OpenRun>> {
        self.inner.open_runs()
    }
    fn asks(&self) -> Reply<'_, Vec<WaitingAsk>> {
        self.inner.asks()
    }
    fn settle<'a>(&'a self, session: &'a SessionId<'_>, seq: u64, answer: Bytes) -> Reply<'a, u64> {
        self.write(self.inner.settle(session, seq, answer))
    }
}
