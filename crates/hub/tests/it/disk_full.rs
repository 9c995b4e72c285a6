//! A store that cannot be written for a while: nothing is shown that is not stored, and nothing is lost.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hub::{Follow, Followed, Scope};
use journal::{
    Batch, Command, CommandBody, Error, Fault, Journal, Lease, ListCursor, Listing, Memory,
    NewSession, OpenRun, Owner, Page, Read, Removed, Reply, Retention, Run, Session, SessionQuery,
    StoredFrame, Takeover, WaitingAsk, Watch,
};
use model::{Outcome, RunId, SessionId};
use tokio::time::timeout;

use crate::harness::{Harness, PATIENCE};

/// A journal whose disk is full when it is told to be, or after a number of new sessions and commands.
struct Full {
    inner: Memory,
    is_full: Arc<AtomicBool>,
    n_free: AtomicUsize,
}

impl Full {
    fn new(inner: Memory, is_full: Arc<AtomicBool>) -> Self {
        Self {
            inner,
            is_full,
            n_free: AtomicUsize::new(usize::MAX),
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

impl Journal for Full {
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
        self.inner.read(session, read)
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

#[tokio::test]
async fn a_full_disk_pauses_the_run_and_publishes_nothing() {
    let is_full = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_full);
    let harness = Harness::with(|inner| Arc::new(Full::new(inner, switch)));
    let hub = harness.hub().await;
    let submit = hub::Submit {
        options: runner::RunOptions {
            speed: Some(20.0),
            ..runner::RunOptions::default()
        },
        ..harness.submit("replay:tools", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    harness.running(&session).await;
    is_full.store(true, Ordering::SeqCst);
    while hub.trouble().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(hub.trouble().unwrap(), "the disk is full");
    let refused = hub.submit(harness.submit_to(&session, "more")).await;
    assert!(matches!(
        refused,
        Err(hub::Error::Journal(Error::Storage(Fault::Full)))
    ));
    let stored = harness.lines(&session).await.len() as u64;
    let follow = Follow {
        scope: Scope::Session {
            id: session.clone(),
            after: 0,
        },
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
    };
    let mut follower = hub.follow(follow).await.unwrap();
    let caught_up = loop {
        let followed = timeout(PATIENCE, follower.next()).await.unwrap().unwrap();
        if let Followed::CaughtUp { cursor, .. } = followed {
            break cursor;
        }
    };
    assert_eq!(caught_up, stored);
    is_full.store(false, Ordering::SeqCst);
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    assert_eq!(hub.trouble(), None);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_run_can_be_stopped_while_the_disk_is_full() {
    let is_full = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_full);
    let harness = Harness::with(|inner| Arc::new(Full::new(inner, switch)));
    let hub = harness.hub().await;
    let submit = harness.submit("claude", "wait");
    let session = hub.submit(submit).await.unwrap().session;
    harness.running(&session).await;
    is_full.store(true, Ordering::SeqCst);
    assert!(hub.abort(&session).await.unwrap());
    while hub.trouble().is_none() {
        tokio::task::yield_now().await;
    }
    is_full.store(false, Ordering::SeqCst);
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    harness.check(&session).await;
    hub.stop().await;
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_leaves_no_session() {
    for n_free in 0..=1 {
        let harness = Harness::with(|inner| {
            Arc::new(Full {
                n_free: AtomicUsize::new(n_free),
                ..Full::new(inner, Arc::default())
            })
        });
        let hub = harness.hub().await;
        let submitted = hub.submit(harness.submit("claude", "hello")).await;
        let listing = harness.journal.list(SessionQuery::default(), None, 10);
        let sessions = listing.await.unwrap().sessions;
        let ids: Vec<_> = sessions.iter().map(|it| &it.id).collect();
        // The session and its first prompt are one entry: there is no room for half of it.
        match &submitted {
            Ok(submitted) => assert_eq!((n_free, ids), (1, vec![&submitted.session])),
            Err(hub::Error::Journal(Error::Storage(Fault::Full))) => {
                assert_eq!((n_free, ids), (0, Vec::new()));
            }
            Err(other) => panic!("{other}"),
        }
        hub.stop().await;
    }
}
