//! What the unit tests share: journals in memory, sessions that are written, and a hub's state around them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use journal::{
    Batch, Clock, Config, Entry, Journal, Lease, Memory, NewSession, Owner, Session, SystemClock,
    Takeover,
};
use model::{
    Body, Cause, Event, Level, Notice, Origin, Outcome, RunEnded, RunId, RunStarted, SessionId,
    Text,
};
use runner::process::Guard;

use crate::config::{HubConfig, Limits, QueueLife};
use crate::follow::Delivered;
use crate::render::Style;
use crate::ring::{EncodedOnce, Frame};
use crate::shared::Shared;

pub(crate) const LEASE: Duration = Duration::from_secs(3600);

pub(crate) fn memory() -> Arc<dyn Journal> {
    memory_with(Arc::new(SystemClock::new()))
}

pub(crate) fn memory_with(clock: Arc<dyn Clock>) -> Arc<dyn Journal> {
    Arc::new(Memory::new(Config { clock, cut: None }))
}

/// The state of a hub that is not open: nothing happens by itself.
pub(crate) fn shared(journal: &Arc<dyn Journal>) -> Arc<Shared> {
    Arc::new(Shared::new(HubConfig {
        journal: Arc::clone(journal),
        settings: runner::config::Config::parse(None, |_| None).unwrap(),
        guard: Guard::None,
        locks: None,
        owner: crate::own_name(),
        queue: QueueLife::Durable,
        limits: Limits {
            lease: LEASE,
            ..Limits::default()
        },
    }))
}

/// The format in which the stored line is the frame.
pub(crate) fn canonical() -> Style {
    Style {
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
        bridge: None,
    }
}

pub(crate) fn new_session(id: &str) -> NewSession {
    NewSession {
        home: journal::Node::default(),
        id: SessionId::new(id.to_owned()),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    }
}

pub(crate) fn notice(text: &str) -> Body<'_> {
    Body::NoticeRaised(Notice {
        level: Level::Info,
        code: Cow::Borrowed("test"),
        text: Text::new(text),
        item: None,
        detail: None,
    })
}

/// An event of the agent.
pub(crate) fn event<'a>(
    session: &'a SessionId<'_>,
    seq: u64,
    run: Option<&'a str>,
    body: Body<'a>,
) -> Event<'a> {
    Event {
        seq,
        at: None,
        session: session.by_ref(),
        run: run.map(RunId::new),
        engine: Cow::Borrowed("claude"),
        path: Cow::Borrowed(&[]),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Cow::Borrowed(&[]),
        body,
    }
}

/// The frame of one event, rendered as so many bytes.
pub(crate) fn frame(session: &SessionId<'static>, seq: u64, n_bytes: usize) -> Frame {
    Arc::new(Delivered {
        session: Arc::new(session.clone()),
        after: seq - 1,
        seq,
        bytes: vec![b'x'; n_bytes].into(),
        messages_at: n_bytes,
        made: EncodedOnce::default(),
    })
}

/// A session that is written.
pub(crate) struct TestLog {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    pub(crate) seq: u64,
    n_runs: u64,
}

impl TestLog {
    /// A new session `s` in a new journal.
    pub(crate) async fn new() -> Self {
        Self::create(&memory(), "s").await
    }

    pub(crate) async fn create(journal: &Arc<dyn Journal>, id: &str) -> Self {
        let session = journal.create(new_session(id)).await.unwrap().id;
        let owner = Owner::new("test".to_owned());
        let lease = journal.acquire(&session, &owner, LEASE, Takeover::Lapsed);
        Self {
            lease: lease.await.unwrap(),
            journal: Arc::clone(journal),
            seq: 0,
            n_runs: 0,
        }
    }

    /// Stores so many events at once.
    pub(crate) async fn append(&mut self, n_events: u64) {
        self.store((0..n_events).map(|_| (None, notice("hello"))))
            .await;
    }

    /// Stores so many whole runs of two events at once.
    pub(crate) async fn append_runs(&mut self, n_runs: u64) {
        let names: Vec<String> = (1..=n_runs)
            .map(|n| format!("r{}", self.n_runs + n))
            .collect();
        self.n_runs += n_runs;
        let bodies = names.iter().flat_map(|run| {
            let started = Body::RunStarted(RunStarted::new(Cause::Prompt));
            let ended = Body::RunEnded(RunEnded::new(Outcome::Completed, None));
            [(Some(&**run), started), (Some(&**run), ended)]
        });
        self.store(bodies).await;
    }

    pub(crate) async fn store<'a>(
        &mut self,
        bodies: impl IntoIterator<Item = (Option<&'a str>, Body<'a>)>,
    ) {
        let mut batch = Batch::default();
        for (run, body) in bodies {
            self.seq += 1;
            let event = event(&self.lease.session, self.seq, run, body);
            batch.entries.push(Entry::of(&event, None).unwrap());
        }
        self.journal.append(&self.lease, batch).await.unwrap();
    }

    pub(crate) async fn session(&self) -> Session {
        let found = self.journal.find_session(&self.lease.session).await;
        found.unwrap().unwrap()
    }
}
