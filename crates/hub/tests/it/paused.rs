//! Hubs whose time stands still: leases, renewals and time limits elapse only when every task waits for them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hub::{Hub, HubConfig, Limits, QueueLife, Submit, Target};
use journal::{Clock, Config, Journal, Lease, Memory, Moment, NewSession, Owner, Takeover};
use model::{SessionId, Timestamp};
use runner::RunOptions;
use runner::process::Guard;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::harness::LEASE;
use crate::scripted_journal::ScriptedJournal;

/// So slow that a recording stays at its second frame for a day.
const ENDLESS: f64 = 1e-6;

/// Time as tokio's paused clock has it, for leases.
#[derive(Debug)]
struct PausedClock(Instant);

impl PausedClock {
    fn elapsed(&self) -> i64 {
        i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + self.elapsed())
    }

    fn steady(&self) -> Moment {
        Moment {
            era: "paused".to_owned(),
            millis: self.elapsed(),
        }
    }
}

/// A journal under a paused clock.
pub(crate) struct Paused {
    pub(crate) journal: Arc<dyn Journal>,
    dir: TempDir,
    began: Instant,
}

impl Paused {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        let journal = Memory::new(Config {
            clock: Arc::new(PausedClock(began)),
            cut: None,
        });
        Self {
            journal: Arc::new(journal),
            dir: TempDir::new().unwrap(),
            began,
        }
    }

    /// The time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) async fn hub(&self) -> Hub {
        self.hub_on(Arc::clone(&self.journal)).await
    }

    /// A hub that can write while the switch is off, with the same journal otherwise.
    pub(crate) async fn hub_with_switch(&self) -> (Hub, Arc<AtomicBool>) {
        let is_full = Arc::new(AtomicBool::new(false));
        let journal = ScriptedJournal::new(Arc::clone(&self.journal), Arc::clone(&is_full));
        (self.hub_on(Arc::new(journal)).await, is_full)
    }

    pub(crate) async fn hub_on(&self, journal: Arc<dyn Journal>) -> Hub {
        let config = HubConfig {
            journal,
            settings: runner::config::Config::parse(None, |_| None).unwrap(),
            guard: Guard::None,
            locks: None,
            owner: hub::own_name(),
            queue: QueueLife::Durable,
            limits: Limits {
                lease: LEASE,
                ..Limits::default()
            },
        };
        Hub::open(config).await.unwrap()
    }

    /// A run that is over at once.
    pub(crate) fn short(&self, target: Target) -> Submit {
        Submit {
            target,
            engine: Some("replay:approval".to_owned()),
            cwd: Some(self.path().to_owned()),
            ..Submit::new("work")
        }
    }

    /// A run that names its session and then does nothing for a day.
    pub(crate) fn endless(&self, target: Target) -> Submit {
        Submit {
            options: RunOptions {
                speed: Some(ENDLESS),
                ..RunOptions::default()
            },
            ..self.short(target)
        }
    }

    /// A session that another program holds for the length of a lease.
    pub(crate) async fn held_session(&self) -> Lease {
        let new = NewSession {
            home: journal::Node::default(),
            id: SessionId::new("held"),
            engine: "replay:approval".to_owned(),
            cwd: Some(self.path().to_str().unwrap().to_owned()),
            title: None,
            parent: None,
        };
        let id = self.journal.create(new).await.unwrap().id;
        let owner = Owner::new("another program");
        let acquired = self.journal.acquire(&id, &owner, LEASE, Takeover::Lapsed);
        acquired.await.unwrap()
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

pub(crate) fn to(session: &SessionId<'_>) -> Target {
    Target::Session(session.to_string())
}
