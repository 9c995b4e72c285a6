//! Memory stays the same however many sessions there are.

use std::sync::Arc;

use journal::{NewSession, Sqlite, SystemClock};
use runner::process::Guard;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::{Follow, Followed, Hub, HubConfig, Limits, Submit, Target};

const N_SESSIONS: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(120);

async fn create(journal: &Arc<dyn Journal>, ids: std::ops::Range<usize>) {
    let mut all = JoinSet::new();
    for n in ids {
        let journal = Arc::clone(journal);
        all.spawn(async move {
            let session = NewSession {
                id: SessionId::new(format!("s{n}")),
                engine: "replay:tools".to_owned(),
                cwd: None,
                title: Some("a title that takes some room".to_owned()),
                parent: None,
            };
            journal.create(session).await.unwrap();
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn the_cache_does_not_grow_with_the_number_of_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let config = journal::Config {
        clock: Arc::new(SystemClock::new()),
        cut: None,
    };
    let opened = Sqlite::open(&dir.path().join("journal.sqlite"), config).await;
    let journal: Arc<dyn Journal> = Arc::new(opened.unwrap());
    create(&journal, 0..N_SESSIONS / 2).await;
    let hub = Hub::open(HubConfig {
        journal: Arc::clone(&journal),
        settings: runner::config::Config::parse(None, |_| None).unwrap(),
        guard: Guard::None,
        locks: None,
        owner: crate::own_name(),
        limits: Limits::default(),
    })
    .await
    .unwrap();
    assert!(hub.shared.directory.n_known() <= NEWEST as usize);
    create(&journal, N_SESSIONS / 2..N_SESSIONS).await;
    // The scan of all sessions has reported the last one.
    let mut changes = hub.changes();
    let submit = |id: &str| Submit {
        target: Target::Session(id.to_owned()),
        cwd: Some(dir.path().to_owned()),
        ..Submit::new("hello")
    };
    hub.submit(submit("s19999")).await.unwrap();
    let change = async {
        loop {
            let change = changes.next().await;
            if change.is_some_and(|it| it.session.id.as_str() == "s19999") {
                return;
            }
        }
    };
    timeout(PATIENCE, change).await.unwrap();
    // A session outside the cache continues where it was for followers of all sessions.
    let all = Follow {
        scope: crate::Scope::All {
            after: HashMap::new(),
            since: None,
        },
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
    };
    let mut follower = hub.follow(all).await.unwrap();
    hub.submit(submit("s7")).await.unwrap();
    let first = async {
        loop {
            if let Ok(Followed::Delivered(it)) = follower.next().await
                && it.session.as_str() == "s7"
            {
                return it.seq;
            }
        }
    };
    assert_eq!(timeout(PATIENCE, first).await.unwrap(), 1);
    assert!(hub.shared.directory.n_known() <= 2 * MAX_KNOWN + 1);
    hub.stop().await;
}

/// A session as the journal lists it.
fn listed(n: u64, state: State) -> Session {
    Session {
        id: SessionId::new(format!("s{n:04}")),
        engine: "claude".to_owned(),
        native: None,
        cwd: None,
        title: None,
        created_at: model::Timestamp::from_millis(0),
        active_at: model::Timestamp::from_millis(0),
        activity: n,
        head: 7,
        bytes: 0,
        state,
        queued: 0,
        parent: None,
    }
}

#[test]
fn the_longest_idle_sessions_are_evicted() {
    let directory = Directory::default();
    let n_max = 2 * MAX_KNOWN as u64;
    directory.mark.store(n_max + 1, Ordering::Relaxed);
    let remember = |n, state| {
        let change = SessionChanged::new(listed(n, state));
        directory.remember(Arc::new(change));
    };
    // The first has work, the second has prompts, and the rest is idle.
    remember(0, State::Running);
    let queued = Session {
        queued: 1,
        ..listed(1, State::Idle)
    };
    directory.remember(Arc::new(SessionChanged::new(queued)));
    (2..n_max).for_each(|n| remember(n, State::Idle));
    assert_eq!(directory.n_known(), n_max as usize);
    assert_eq!(directory.head(&SessionId::new("s0002")), Some(7));
    remember(n_max, State::Idle);
    let mut known: Vec<u64> = lock(&directory.known)
        .values()
        .map(|it| it.session.activity)
        .collect();
    known.sort_unstable();
    let kept: Vec<u64> = (0..2).chain(n_max + 1 - MAX_KNOWN as u64..=n_max).collect();
    assert_eq!(known, kept);
    assert_eq!(directory.head(&SessionId::new("s0002")), None);
}

#[test]
fn sessions_beyond_the_mark_are_not_evicted() {
    let directory = Directory::default();
    directory.mark.store(10, Ordering::Relaxed);
    for n in 0..=2 * MAX_KNOWN as u64 {
        let change = SessionChanged::new(listed(n, State::Idle));
        directory.remember(Arc::new(change));
    }
    assert_eq!(directory.n_known(), 2 * MAX_KNOWN + 1);
}
