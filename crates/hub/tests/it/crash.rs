//! Owners that die, and owners that share a journal.

use std::sync::Arc;

use journal::{Config, Sqlite, SystemClock};
use model::Outcome;
use runner::process::Owner;

use crate::bench::{Bench, LEASE};

#[tokio::test]
async fn the_runs_of_a_dead_hub_are_closed_as_lost_once() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = hub
        .submit(bench.submit("claude", "ask"))
        .await
        .unwrap()
        .session;
    bench
        .until(&session, async |journal| {
            journal.asks().await.unwrap().first().map(|_| ())
        })
        .await;
    hub.submit(bench.submit_to(&session, "next")).await.unwrap();
    drop(hub);
    bench.clock.pass(LEASE);
    let hub = bench.hub().await;
    let outcomes = bench.outcomes(&session, 2).await;
    assert_eq!(outcomes, [Outcome::Lost, Outcome::Completed]);
    assert_eq!(bench.journal.asks().await.unwrap(), []);
    hub.stop().await;
    let n_lines = bench.lines(&session).await.len();
    bench.clock.pass(LEASE);
    bench.hub().await.stop().await;
    assert_eq!(bench.lines(&session).await.len(), n_lines);
    bench.check(&session).await;
}

#[tokio::test]
async fn the_owner_of_a_living_process_is_left_alone() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = hub
        .submit(bench.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    bench.running(&session).await;
    let other = bench.hub().await;
    assert_eq!(bench.runs(&session).await[0].end, None);
    assert!(other.abort(&session).await.unwrap());
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Aborted]);
    other.stop().await;
    hub.stop().await;
    assert_eq!(Owner::own().is_alive(), Some(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hubs_never_have_one_session_both() {
    let bench = Bench::new();
    let hubs = [bench.hub().await, bench.hub().await];
    let submit = bench.submit("replay:tools", "0");
    let session = hubs[0].submit(submit).await.unwrap().session;
    for n in 1..8 {
        let prompt = n.to_string();
        let submit = bench.submit_to(&session, &prompt);
        hubs[n % 2].submit(submit).await.unwrap();
    }
    let outcomes = bench.outcomes(&session, 8).await;
    assert_eq!(outcomes, [Outcome::Completed; 8]);
    bench.check(&session).await;
    for hub in hubs {
        hub.stop().await;
    }
}

#[tokio::test]
async fn a_hub_that_was_replaced_stops_and_writes_nothing() {
    let bench = Bench::new();
    let hub = bench.hub().await;
    let session = hub
        .submit(bench.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    bench.running(&session).await;
    bench.clock.pass(LEASE);
    let other = bench.hub().await;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Lost]);
    let n_lines = bench.lines(&session).await.len();
    hub.stop().await;
    assert_eq!(bench.lines(&session).await.len(), n_lines);
    other.stop().await;
    bench.check(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_life_on_disk_goes_on_after_a_crash() {
    let mut bench = Bench::new();
    let path = bench.dir.path().join("journal.db");
    let open = async || {
        let config = Config {
            clock: Arc::new(SystemClock::new()),
            cut: None,
        };
        Sqlite::open(&path, config).await.unwrap()
    };
    bench.journal = Arc::new(open().await);
    let mut config = bench.config();
    config.limits.lease = std::time::Duration::from_millis(500);
    let hub = hub::Hub::open(config).await.unwrap();
    let session = hub
        .submit(bench.submit("replay:tools", "one"))
        .await
        .unwrap()
        .session;
    assert_eq!(bench.outcomes(&session, 1).await, [Outcome::Completed]);
    let submit = hub::Submit {
        speed: Some(1.0),
        ..bench.submit_to(&session, "two")
    };
    hub.submit(submit).await.unwrap();
    bench.running(&session).await;
    hub.submit(bench.submit_to(&session, "three"))
        .await
        .unwrap();
    drop(hub);
    bench.journal = Arc::new(open().await);
    let hub = bench.hub().await;
    let outcomes = bench.outcomes(&session, 3).await;
    let expected = [Outcome::Completed, Outcome::Lost, Outcome::Completed];
    assert_eq!(outcomes, expected);
    bench.check(&session).await;
    hub.stop().await;
}
