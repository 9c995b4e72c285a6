//! A journal whose failures a test decides.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Command, CommandBody, CommandStatus, Error, Fault, Journal, Lease, ListCursor, Listing,
    NewSession, Node, OpenRun, Owner, Page, Read, Removed, Reply, Retention, Run, Session,
    SessionQuery, StoredFrame, Takeover, WaitingAsk, Watch, WriteId,
};
use model::{RunId, SessionId};
use tokio::time::{Instant, sleep};

/// A journal that fails on demand: its disk is full, also after a number of new sessions and commands, it
/// cannot be read, or it refuses events. Appends may be slow, and their times are kept.
pub(crate) struct ScriptedJournal {
    pub(crate) inner: Arc<dyn Journal>,
    pub(crate) is_full: Arc<AtomicBool>,
    pub(crate) n_free: AtomicUsize,
    pub(crate) is_unreadable: AtomicBool,
    /// Of the searches for a session between its acquisition and the next write, in order: whether it fails.
    pub(crate) failing_finds: Mutex<VecDeque<bool>>,
    pub(crate) is_acquired: AtomicBool,
    /// So many of the next batches with events are refused.
    pub(crate) n_refused: AtomicUsize,
    pub(crate) append_takes: Duration,
    pub(crate) appends: Mutex<Vec<Instant>>,
}

impl ScriptedJournal {
    pub(crate) fn new(inner: Arc<dyn Journal>, is_full: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            is_full,
            n_free: AtomicUsize::new(usize::MAX),
            is_unreadable: AtomicBool::new(false),
            failing_finds: Mutex::default(),
            is_acquired: AtomicBool::new(false),
            n_refused: AtomicUsize::new(0),
            append_takes: Duration::ZERO,
            appends: Mutex::default(),
        }
    }

    /// Stores a new session or a command.
    fn place<'a, T>(&self, reply: Reply<'a, T>) -> Reply<'a, T> {
        match count_down(&self.n_free) {
            true => self.write(reply),
            false => Box::pin(async { Err(Error::Storage(Fault::Full)) }),
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
        let acquire = self.write(self.inner.acquire(session, owner, ttl, takeover));
        Box::pin(async move {
            let lease = acquire.await?;
            self.is_acquired.store(true, Ordering::SeqCst);
            Ok(lease)
        })
    }
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Reply<'a, ()> {
        self.write(self.inner.renew(lease, ttl))
    }
    fn release<'a>(&'a self, lease: &'a Lease) -> Reply<'a, ()> {
        self.is_acquired.store(false, Ordering::SeqCst);
        self.write(self.inner.release(lease))
    }
    fn append<'a>(&'a self, lease: &'a Lease, batch: Batch) -> Reply<'a, Range<u64>> {
        self.is_acquired.store(false, Ordering::SeqCst);
        self.appends.lock().unwrap().push(Instant::now());
        if !batch.entries.is_empty() && count_down(&self.n_refused) {
            let (length, limit) = (1, 0);
            return Box::pin(async move { Err(Error::TooLarge { length, limit }) });
        }
        let append = self.write(self.inner.append(lease, batch));
        Box::pin(async move {
            sleep(self.append_takes).await;
            append.await
        })
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
    fn command<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        id: WriteId,
        order: CommandBody,
    ) -> Reply<'a, u64> {
        self.place(self.inner.command(session, id, order))
    }
    fn enqueue(
        &self,
        target: journal::PromptTarget,
        id: WriteId,
        prompt: Bytes,
    ) -> Reply<'_, journal::Enqueued> {
        self.place(self.inner.enqueue(target, id, prompt))
    }
    fn commands<'a>(&'a self, session: &'a SessionId<'_>, after: u64) -> Reply<'a, Vec<Command>> {
        self.inner.commands(session, after)
    }
    fn find_command(&self, id: WriteId) -> Reply<'_, Option<CommandStatus>> {
        self.inner.find_command(id)
    }
    fn pending<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<SessionId<'static>>> {
        self.inner.pending(home)
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
        let is_scripted = self.is_acquired.load(Ordering::SeqCst);
        let mut script = self.failing_finds.lock().unwrap();
        match is_scripted.then(|| script.pop_front()).flatten() {
            Some(true) => Box::pin(async { Err(Error::Storage(Fault::Busy)) }),
            Some(false) | None => self.inner.find_session(session),
        }
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
    fn open_runs<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<OpenRun>> {
        self.inner.open_runs(home)
    }
    fn asks<'a>(&'a self, home: Option<&'a Node>) -> Reply<'a, Vec<WaitingAsk>> {
        self.inner.asks(home)
    }
    fn settle<'a>(
        &'a self,
        session: &'a SessionId<'_>,
        seq: u64,
        id: WriteId,
        answer: Bytes,
    ) -> Reply<'a, u64> {
        self.write(self.inner.settle(session, seq, id, answer))
    }
}

/// Takes one from a counter; false when it is at zero.
fn count_down(counter: &AtomicUsize) -> bool {
    let order = Ordering::SeqCst;
    let taken = |n: usize| n.checked_sub(1);
    counter.fetch_update(order, order, taken).is_ok()
}
