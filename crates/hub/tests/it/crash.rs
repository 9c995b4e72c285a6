//! Owners that die, and owners that share a journal.

use std::sync::Arc;

use journal::{Config, Sqlite, SystemClock};
use model::Outcome;
use runner::RunOptions;
use runner::process::Owner;

use crate::harness::{Harness, LEASE};

#[tokio::test]
async fn the_runs_of_a_dead_hub_are_closed_as_lost_once() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = hub
        .submit(harness.submit("claude", "ask"))
        .await
        .unwrap()
        .session;
    harness
        .until(&session, async |journal| {
            journal.asks(None).await.unwrap().first().map(|_| ())
        })
        .await;
    hub.submit(harness.submit_to(&session, "next"))
        .await
        .unwrap();
    drop(hub);
    harness.clock.pass(LEASE);
    let hub = harness.hub().await;
    let outcomes = harness.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Lost, Outcome::Completed]);
    assert_eq!(harness.journal.asks(None).await.unwrap(), []);
    hub.stop().await;
    let n_lines = harness.lines(&session).await.len();
    harness.clock.pass(LEASE);
    harness.hub().await.stop().await;
    assert_eq!(harness.lines(&session).await.len(), n_lines);
    harness.check(&session).await;
}

#[tokio::test]
async fn the_owner_of_a_living_process_is_left_alone() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = hub
        .submit(harness.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    harness.running(&session).await;
    let other = harness.hub().await;
    assert_eq!(harness.runs(&session).await[0].end, None);
    assert!(other.abort(&session).await.unwrap());
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Aborted]);
    other.stop().await;
    hub.stop().await;
    assert_eq!(Owner::own().is_alive(), Some(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hubs_never_have_one_session_both() {
    let harness = Harness::new();
    let hubs = [harness.hub().await, harness.hub().await];
    let submit = harness.submit("replay:tools", "0");
    let session = hubs[0].submit(submit).await.unwrap().session;
    for n in 1..8 {
        let prompt = n.to_string();
        let submit = harness.submit_to(&session, &prompt);
        hubs[n % 2].submit(submit).await.unwrap();
    }
    let outcomes = harness.outcomes(&session, 8).await;
    assert_eq!(outcomes, [Outcome::Completed; 8]);
    harness.check(&session).await;
    for hub in hubs {
        hub.stop().await;
    }
}

#[tokio::test]
async fn a_hub_that_was_replaced_stops_and_writes_nothing() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = hub
        .submit(harness.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    harness.running(&session).await;
    harness.clock.pass(LEASE);
    let other = harness.hub().await;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Lost]);
    let n_lines = harness.lines(&session).await.len();
    hub.stop().await;
    assert_eq!(harness.lines(&session).await.len(), n_lines);
    other.stop().await;
    harness.check(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_on_disk_can_be_resumed_after_a_crash() {
    let mut harness = Harness::new();
    let path = harness.dir.path().join("journal.db");
    let open = async || {
        let config = Config {
            clock: Arc::new(SystemClock::new()),
            cut: None,
        };
        Sqlite::open(&path, config).await.unwrap()
    };
    harness.journal = Arc::new(open().await);
    let mut config = harness.config();
    config.limits.lease = std::time::Duration::from_millis(500);
    let hub = hub::Hub::open(config).await.unwrap();
    let session = hub
        .submit(harness.submit("replay:tools", "one"))
        .await
        .unwrap()
        .session;
    assert_eq!(harness.outcomes(&session, 1).await, [Outcome::Completed]);
    let submit = hub::Submit {
        options: RunOptions {
            speed: Some(1.0),
            ..RunOptions::default()
        },
        ..harness.submit_to(&session, "two")
    };
    hub.submit(submit).await.unwrap();
    harness.running(&session).await;
    hub.submit(harness.submit_to(&session, "three"))
        .await
        .unwrap();
    drop(hub);
    harness.journal = Arc::new(open().await);
    let hub = harness.hub().await;
    let outcomes = harness.outcomes(&session, 3).await;
    let expected = [Outcome::Completed, Outcome::Lost, Outcome::Completed];
    assert_eq!(outcomes, expected);
    harness.check(&session).await;
    hub.stop().await;
}
