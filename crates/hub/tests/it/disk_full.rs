//! A store that cannot be written for a while: nothing is shown that is not stored, and nothing is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hub::{Follow, Followed, Scope};
use journal::{Error, Fault, Journal, Owner, SessionQuery, Takeover};
use model::Outcome;
use tokio::time::timeout;

use crate::harness::{Harness, LEASE, PATIENCE};
use crate::scripted_journal::ScriptedJournal;

#[tokio::test]
async fn a_full_disk_pauses_the_run_and_publishes_nothing() {
    let is_full = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_full);
    let harness = Harness::with(|inner| Arc::new(ScriptedJournal::new(Arc::new(inner), switch)));
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
        bridge: None,
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
    let harness = Harness::with(|inner| Arc::new(ScriptedJournal::new(Arc::new(inner), switch)));
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
            Arc::new(ScriptedJournal {
                n_free: AtomicUsize::new(n_free),
                ..ScriptedJournal::new(Arc::new(inner), Arc::default())
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

#[tokio::test]
async fn a_disk_is_no_longer_full_when_another_process_has_taken_over() {
    let is_full = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_full);
    let mut inner = None;
    let harness = Harness::with(|memory| {
        let memory: Arc<dyn Journal> = Arc::new(memory);
        inner = Some(Arc::clone(&memory));
        Arc::new(ScriptedJournal::new(memory, switch))
    });
    let hub = harness.hub().await;
    let submit = harness.submit("claude", "wait");
    let session = hub.submit(submit).await.unwrap().session;
    harness.running(&session).await;
    is_full.store(true, Ordering::SeqCst);
    assert!(hub.abort(&session).await.unwrap());
    while hub.trouble().is_none() {
        tokio::task::yield_now().await;
    }
    harness.clock.pass(LEASE);
    let owner = Owner::new("another process");
    let inner = inner.unwrap();
    let taken_over = inner.acquire(&session, &owner, LEASE, Takeover::Lapsed);
    taken_over.await.unwrap();
    is_full.store(false, Ordering::SeqCst);
    let is_over = async {
        while hub.trouble().is_some() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, is_over).await.unwrap();
    hub.stop().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_looked_up_is_released_at_once() {
    let harness = Harness::with(|inner| {
        Arc::new(ScriptedJournal {
            // Whichever search of an attempt fails, the next attempt gets the lease.
            failing_finds: Mutex::new([true, false, true].into()),
            ..ScriptedJournal::new(Arc::new(inner), Arc::default())
        })
    });
    let hub = harness.hub().await;
    let submit = harness.submit("claude", "hello");
    let session = hub.submit(submit).await.unwrap().session;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    hub.stop().await;
}
