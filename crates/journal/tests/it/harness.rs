//! What the tests stand on: a journal of any engine, a clock they move, and events to append.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use journal::{
    Batch, Clock as _, Config, Deltas, Entry, Fault, Journal, Lease, ManualClock, Memory,
    NewSession, Node, Owner, Page, Postgres, Read, Result, Session, Sqlite, Takeover, Truncate,
};
use model::{
    Ask, AskId, AskKind, AskSettled, Binding, Body, Cause, Channel, Decision, Delta, Event, ItemId,
    Level, Notice, Origin, Outcome, RunEnded, RunId, RunStarted, SessionBound, SessionId, Text,
    Timestamp,
};
use tempfile::TempDir;

use crate::database::{self, Database};
use crate::proxy::{Network, Proxy};

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// 2026-01-01, when every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    Memory,
    Sqlite,
    Postgres,
    /// The same behind a network that loses answers.
    FlakyPostgres,
    /// The same behind a pooler in transaction mode, with a direct connection for hints.
    PooledPostgres,
}

impl Engine {
    /// Those that can be tried here.
    pub(crate) fn all() -> Vec<Self> {
        let mut engines = vec![Self::Memory, Self::Sqlite];
        engines.extend(Database::is_installed().then_some(Self::Postgres));
        engines
    }
}

pub(crate) struct Harness {
    pub(crate) journal: Arc<dyn Journal>,
    clock: Arc<ManualClock>,
    begun: SystemTime,
    store: Store,
}

/// Where the journal is kept, for as long as the test needs it.
enum Store {
    Memory,
    File(#[expect(dead_code, reason = "it is removed when it is dropped")] TempDir),
    Database(
        Database,
        #[expect(dead_code, reason = "it ends when it is dropped")] Option<Proxy>,
    ),
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
        let (journal, store): (Arc<dyn Journal>, _) = match engine {
            Engine::Memory => (Arc::new(Memory::new(config)), Store::Memory),
            Engine::Sqlite => {
                let dir = tempfile::tempdir().unwrap();
                let journal = Sqlite::open(&dir.path().join("journal.db"), config).await;
                (Arc::new(journal.unwrap()), Store::File(dir))
            }
            Engine::Postgres => {
                let database = Database::new();
                let journal = open(&database.url(), cut).await;
                (Arc::new(journal), Store::Database(database, None))
            }
            Engine::PooledPostgres => {
                let database = Database::new();
                let config = database.pooled_config().with_cut(cut);
                let journal = Postgres::open(config).await.unwrap();
                (Arc::new(journal), Store::Database(database, None))
            }
            Engine::FlakyPostgres => {
                let database = Database::new();
                let proxy = Proxy::start(database.port(), Network::Flaky).await;
                let journal = open(&database.url_through(proxy.port), cut).await;
                (Arc::new(journal), Store::Database(database, Some(proxy)))
            }
        };
        Self {
            journal,
            clock,
            begun: SystemTime::now(),
            store,
        }
    }

    /// Time passes. A database has a clock that no test can move, so there everything gets older instead.
    pub(crate) fn pass(&self, duration: Duration) {
        self.clock.pass(duration);
        if let Store::Database(database, _) = &self.store {
            let millis = duration.as_millis();
            database.sql(&format!(
                "UPDATE linkspan.logs SET until = until - {millis} * interval '1 ms';
                 UPDATE linkspan.sessions SET created_at = created_at - {millis}, active_at = active_at - {millis};
                 UPDATE linkspan.runs SET started_at = started_at - {millis}, ended_at = ended_at - {millis};
                 UPDATE linkspan.asks SET at = at - {millis};
                 UPDATE linkspan.commands SET at = at - {millis}, done_at = done_at - {millis} * interval '1 ms'"
            ));
        }
    }

    /// The clock of this machine is set, and no time passes. That of a database is another one.
    pub(crate) fn set_wall(&self, now: Timestamp) {
        self.clock.set_wall(now);
    }

    /// The shortest time that is longer than a test takes, in the engine's own time.
    pub(crate) fn moment(&self) -> Duration {
        match &self.store {
            Store::Memory | Store::File(_) => Duration::from_millis(1),
            Store::Database(..) => TTL / 2,
        }
    }

    /// The time `expected` as this engine has it. A database has its own, which lies between the begin of the
    /// test and now, as much earlier as time has passed since; `found` is taken when that is so.
    pub(crate) fn time(&self, expected: Timestamp, found: Timestamp) -> Timestamp {
        let Store::Database(..) = &self.store else {
            return expected;
        };
        let age = self.clock.now().millis() - expected.millis();
        let earliest = Timestamp::from(self.begun).millis() - age;
        let latest = Timestamp::from(SystemTime::now()).millis() - age;
        match (earliest..=latest).contains(&found.millis()) {
            true => found,
            false => expected,
        }
    }

    /// Makes a session and takes it.
    pub(crate) async fn lease(&self, session: &str) -> Lease {
        self.create(session).await;
        self.acquire(session, "owner").await.unwrap()
    }

    pub(crate) async fn create(&self, id: &str) -> Session {
        self.journal.create(new_session(id)).await.unwrap()
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

pub(crate) fn new_session(id: &str) -> NewSession {
    NewSession {
        id: SessionId::new(id.to_owned()),
        home: Node::default(),
        engine: "claude".to_owned(),
        cwd: None,
        title: None,
        parent: None,
    }
}

/// Opening a journal is not tried again by itself.
async fn open(url: &str, cut: Option<Truncate>) -> Postgres {
    loop {
        match Postgres::open(database::config(url).with_cut(cut)).await {
            Ok(journal) => return journal,
            Err(Fault::Lost | Fault::Io(_)) => (),
            Err(fault) => panic!("{fault:?}"),
        }
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
