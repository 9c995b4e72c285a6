//! Memory stays the same however many sessions there are.

use std::sync::Arc;

use journal::{NewSession, Sqlite, SystemClock};
use runner::process::Guard;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::test_log::{TestLog, canonical, memory, shared};
use crate::{Follow, Followed, Hub, HubConfig, Limits, QueueLife, Submit, Target};

const N_SESSIONS: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(120);

async fn create(journal: &Arc<dyn Journal>, ids: std::ops::Range<usize>) {
    let mut all = JoinSet::new();
    for n in ids {
        let journal = Arc::clone(journal);
        all.spawn(async move {
            let session = NewSession {
                home: journal::Node::default(),
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
        queue: QueueLife::Durable,
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
        bridge: None,
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
        home: journal::Node::default(),
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

#[test]
fn a_session_has_changed_where_a_list_shows_it() {
    let before = Session {
        native: Some(SessionId::new("n")),
        cwd: Some("/".to_owned()),
        title: Some("title".to_owned()),
        ..listed(1, State::Idle)
    };
    let is_same = |now: Session| {
        is_same(
            &SessionChanged::new(before.clone()),
            &SessionChanged::new(now),
        )
    };
    assert!(is_same(before.clone()));
    // The number of events and bytes changes with every event.
    let grown = Session {
        head: 8,
        bytes: 100,
        activity: 2,
        ..before.clone()
    };
    assert!(is_same(grown));
    let changes: [fn(&mut Session); 6] = [
        |it| it.queued = 1,
        |it| it.state = State::Running,
        |it| it.title = Some("another".to_owned()),
        |it| it.native = Some(SessionId::new("another")),
        |it| it.cwd = Some("/tmp".to_owned()),
        |it| it.active_at = model::Timestamp::from_millis(1),
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut now = before.clone();
        change(&mut now);
        assert!(!is_same(now), "{n}");
    }
}

/// Whether the directory knows the session as it is, and from which event on it is new.
async fn before(directory: &Directory, log: &TestLog, mark: u64) -> (bool, u64) {
    directory.mark.store(mark, Ordering::Relaxed);
    let session = log.session().await;
    let (known, head) = directory.before(&*log.journal, &session).await.unwrap();
    (known.is_some(), head)
}

#[tokio::test]
async fn the_first_unseen_event_of_a_session_is_found_by_its_runs() {
    let directory = Directory::default();
    let mut log = TestLog::new().await;
    log.append(1).await;
    for _ in 0..3 {
        log.append_runs(1).await;
    }
    let mut runs = log
        .journal
        .runs(&log.lease.session, None, 10)
        .await
        .unwrap();
    runs.reverse();
    let firsts: Vec<u64> = runs.iter().map(|it| it.first).collect();
    assert_eq!(firsts, [2, 4, 6]);
    let activity = log.session().await.activity;
    // Reported with its last run, or there when the hub was opened.
    assert_eq!(before(&directory, &log, activity).await, (true, 7));
    assert_eq!(before(&directory, &log, runs[2].activity).await, (false, 7));
    assert_eq!(before(&directory, &log, runs[1].activity).await, (false, 5));
    assert_eq!(before(&directory, &log, runs[0].activity).await, (false, 3));
    // None of its runs was seen: all of it is new.
    let earlier = runs[0].activity - 1;
    assert_eq!(before(&directory, &log, earlier).await, (false, 0));
    // What is cached counts more than the runs.
    let cached = Session {
        head: 4,
        ..log.session().await
    };
    directory.remember(Arc::new(SessionChanged::new(cached)));
    assert_eq!(before(&directory, &log, earlier).await, (true, 4));
}

#[tokio::test]
async fn behind_a_full_page_of_unseen_runs_may_be_others() {
    let directory = Directory::default();
    let mut log = TestLog::new().await;
    log.append(1).await;
    log.append_runs(u64::from(MAX_UNSEEN) - 1).await;
    assert_eq!(before(&directory, &log, 0).await, (false, 0));
    log.append_runs(1).await;
    assert_eq!(before(&directory, &log, 0).await, (false, 1));
}

#[test]
fn sessions_with_prompts_are_looked_at_again() {
    let directory = Directory::default();
    for n in 0..3 {
        let session = Session {
            queued: n,
            ..listed(n, State::Idle)
        };
        directory.remember(Arc::new(SessionChanged::new(session)));
    }
    let waiting: HashSet<_> = directory.with_queue().into_iter().collect();
    assert_eq!(
        waiting,
        HashSet::from(["s0001", "s0002"].map(SessionId::new))
    );
}

#[test]
fn a_firehose_is_forgotten_after_its_last_follower() {
    let directory = Directory::default();
    let kept = Arc::new(Firehose::new(canonical()));
    directory.register(&kept);
    let gone = Arc::new(Firehose::new(canonical()));
    directory.register(&gone);
    drop(gone);
    let last = Arc::new(Firehose::new(canonical()));
    directory.register(&last);
    assert_eq!(lock(&directory.firehose).len(), 2);
    let all = directory.all();
    assert!(Arc::ptr_eq(&all[0], &kept) && Arc::ptr_eq(&all[1], &last));
}

#[test]
fn a_session_is_known_as_it_was_last_reported() {
    let directory = Directory::default();
    directory.mark.store(5, Ordering::Relaxed);
    let session = listed(9, State::Running);
    directory.remember(Arc::new(SessionChanged::new(session.clone())));
    assert!(directory.is_known(&session));
    let ended = Session {
        state: State::Idle,
        ..session
    };
    assert!(!directory.is_known(&ended));
    // One that is not cached is known up to the mark.
    let known = [4, 5, 6].map(|n| directory.is_known(&listed(n, State::Idle)));
    assert_eq!(known, [true, true, false]);
}

#[tokio::test]
async fn a_look_reports_every_change_once() {
    let journal = memory();
    let mut logs = Vec::new();
    // More than two pages, so that the second and the last one are read too.
    for n in 0..NEWEST + PAGE + 5 {
        logs.push(TestLog::create(&journal, &format!("s{n:04}")).await);
    }
    let shared = shared(&journal);
    let mut changes = shared.directory.subscribe();
    let mut reported = || {
        let mut ids = Vec::new();
        while let Ok(change) = changes.0.try_recv() {
            ids.push(change.unwrap().session.id.to_string());
        }
        ids.sort();
        ids
    };
    refresh_all(&shared).await.unwrap();
    let expected: Vec<String> = logs.iter().map(|it| it.lease.session.to_string()).collect();
    assert_eq!(reported(), expected);
    refresh_all(&shared).await.unwrap();
    assert_eq!(reported(), Vec::<String>::new());
    // One of another program, by its title; and the oldest, which was touched here.
    let newest = &logs[expected.len() - 1].lease.session;
    journal.rename(newest, "new".to_owned()).await.unwrap();
    journal
        .rename(&logs[0].lease.session, "new".to_owned())
        .await
        .unwrap();
    shared.touch(&logs[0].lease.session);
    refresh_all(&shared).await.unwrap();
    assert_eq!(reported(), [&*expected[0], &expected[expected.len() - 1]]);
    // An idle session of another program that is not among the newest begins a run.
    logs[1].append_runs(1).await;
    refresh_all(&shared).await.unwrap();
    assert_eq!(reported(), [&*expected[1]]);
}

#[tokio::test]
async fn sessions_that_are_gone_are_dropped_from_the_cache() {
    let journal = memory();
    let (kept, gone) = (
        TestLog::create(&journal, "kept").await,
        TestLog::create(&journal, "gone").await,
    );
    let directory = Directory::default();
    directory.fill(&*journal).await.unwrap();
    assert_eq!(directory.n_known(), 2);
    let mut changes = directory.subscribe();
    journal.remove(&gone.lease).await.unwrap();
    let found = directory.find_gone(&*journal).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&gone.lease.session));
    directory.forget(&found);
    assert!(changes.next().await.is_none());
    assert_eq!(directory.head(&kept.lease.session), Some(0));
    assert_eq!(directory.head(&gone.lease.session), None);
    directory.forget(std::slice::from_ref(&kept.lease.session));
    assert!(changes.next().await.is_none());
    assert_eq!(directory.n_known(), 0);
}
