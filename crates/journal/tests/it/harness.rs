//! What the tests stand on: a journal of either engine, a clock they move, and events to append.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use journal::{
    Batch, Config, Deltas, Entry, Journal, Lease, ManualClock, Memory, NewSession, Owner, Page,
    Read, Result, Session, Sqlite, Takeover, Truncate,
};
use model::{
    Ask, AskId, AskKind, AskSettled, Binding, Body, Cause, Channel, Decision, Delta, Event, ItemId,
    Level, Notice, Origin, Outcome, RunEnded, RunId, RunStarted, SessionBound, SessionId, Text,
    Timestamp,
};
use tempfile::TempDir;

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// 2026-01-01, when every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    Memory,
    Sqlite,
}

pub(crate) struct Harness {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<ManualClock>,
    _dir: Option<TempDir>,
}

impl Harness {
    pub(crate) async fn new(engine: Engine) -> Self {
        Self::with_cut(engine, None).await
    }

    pub(crate) async fn with_cut(engine: Engine, cut: Option<Truncate>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let config = Config {
            clock: Arc::clone(&clock) as _,
            cut,
        };
        let (journal, dir): (Arc<dyn Journal>, _) = match engine {
            Engine::Memory => (Arc::new(Memory::new(config)), None),
            Engine::Sqlite => {
                let dir = tempfile::tempdir().unwrap();
                let journal = Sqlite::open(&dir.path().join("journal.db"), config).await;
                (Arc::new(journal.unwrap()), Some(dir))
            }
        };
        Self {
            journal,
            clock,
            _dir: dir,
        }
    }

    /// Makes a session and takes it.
    pub(crate) async fn lease(&self, session: &str) -> Lease {
        self.create(session).await;
        self.acquire(session, "owner").await.unwrap()
    }

    pub(crate) async fn create(&self, id: &str) -> Session {
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new(id.to_owned()),
            engine: "claude".to_owned(),
            cwd: None,
            title: None,
            parent: None,
        };
        self.journal.create(session).await.unwrap()
    }

    pub(crate) async fn acquire(&self, session: &str, owner: &str) -> Result<Lease> {
        let owner = Owner::new(owner);
        let session = SessionId::new(session);
        self.journal
            .acquire(&session, &owner, TTL, Takeover::Lapsed)
            .await
    }

    /// Appends bodies with the numbers from `first` on.
    pub(crate) async fn append(
        &self,
        lease: &Lease,
        first: u64,
        bodies: Vec<Body<'_>>,
    ) -> Result<()> {
        let entries = entries(lease, first, bodies);
        let n_entries = entries.len() as u64;
        let batch = Batch::new(entries);
        let range = self.journal.append(lease, batch).await?;
        assert_eq!(range, first..first + n_entries);
        Ok(())
    }

    /// The whole log.
    pub(crate) async fn read(&self, session: &str) -> Page {
        let session = SessionId::new(session);
        self.journal.read(&session, everything(0)).await.unwrap()
    }

    pub(crate) async fn find(&self, session: &str) -> Session {
        let session = SessionId::new(session);
        self.journal.find_session(&session).await.unwrap().unwrap()
    }
}

pub(crate) fn everything(after: u64) -> Read {
    Read {
        after,
        deltas: Deltas::Keep,
        max_events: u32::MAX,
        max_bytes: usize::MAX,
    }
}

pub(crate) fn entries(lease: &Lease, first: u64, bodies: Vec<Body<'_>>) -> Vec<Entry> {
    (first..)
        .zip(bodies)
        .map(|(seq, body)| Entry::of(&event(lease, seq, body), None).unwrap())
        .collect()
}

pub(crate) fn with_frame(lease: &Lease, seq: u64, frame: &'static [u8]) -> Entry {
    Entry::of(
        &event(lease, seq, note("x")),
        Some(Bytes::from_static(frame)),
    )
    .unwrap()
}

pub(crate) fn event<'a>(lease: &'a Lease, seq: u64, body: Body<'a>) -> Event<'a> {
    Event {
        seq,
        at: None,
        session: lease.session.by_ref(),
        run: Some(RunId::new("run")),
        engine: "claude".into(),
        path: Vec::new().into(),
        origin: Origin::Agent,
        frame: None,
        native: None,
        why: None,
        extra: Vec::new().into(),
        body,
    }
}

pub(crate) fn note(text: &str) -> Body<'_> {
    Body::NoticeRaised(Notice {
        level: Level::Info,
        code: "test".into(),
        text: Text::new(text),
        item: None,
        detail: None,
    })
}

pub(crate) fn delta(text: &str) -> Body<'_> {
    Body::ItemDelta(Delta {
        item: ItemId::new("item"),
        channel: Channel::Text,
        text: Text::new(text),
    })
}

pub(crate) fn started() -> Body<'static> {
    Body::RunStarted(RunStarted::new(Cause::Prompt))
}

pub(crate) fn ended(outcome: Outcome) -> Body<'static> {
    Body::RunEnded(RunEnded::new(outcome, None))
}

pub(crate) fn bound(native: &str, how: Binding) -> Body<'_> {
    Body::SessionBound(SessionBound::new(SessionId::new(native), how))
}

pub(crate) fn ask_opened(ask: &str) -> Body<'_> {
    Body::AskOpened(Ask {
        id: AskId::new(ask),
        kind: AskKind::Permission,
        item: None,
        tool: "Bash".into(),
        title: Text::new("run it?"),
        description: None,
        input: None,
        suggestions: None,
        deadline: None,
    })
}

pub(crate) fn settled(ask: &str, decision: Decision) -> Body<'_> {
    Body::AskSettled(AskSettled {
        id: AskId::new(ask),
        decision,
        message: None,
        input: None,
        remembered: None,
    })
}
/// A small generator of numbers that look random; the seed makes a failure repeat.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
