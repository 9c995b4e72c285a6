//! What is over the limits goes, the longest idle first, and nothing that is in use.

use std::time::Duration;

use bytes::Bytes;
use journal::{Error, Order, Removed, Retention, SessionQuery};
use model::{Outcome, SessionId};

use super::for_every_engine;
use crate::bench::{Bench, Engine, TTL, bound, ended, everything, note, started};

for_every_engine!(
    without_limits_everything_stays,
    sessions_idle_for_too_long_go,
    the_longest_idle_go_when_there_are_too_many,
    the_longest_idle_go_when_there_are_too_many_bytes,
    what_is_in_use_stays,
    a_removed_session_is_gone_and_its_name_is_free,
    its_owner_removes_a_session_whatever_is_in_it,
    who_has_lost_a_session_does_not_remove_it,
);

/// Three idle sessions, an hour apart, with one event each.
async fn three(engine: Engine) -> Bench {
    let bench = Bench::new(engine).await;
    for id in ["a", "b", "c"] {
        let lease = bench.lease(id).await;
        bench.append(&lease, 1, vec![note("x")]).await.unwrap();
        bench.journal.release(&lease).await.unwrap();
        bench.clock.pass(Duration::from_secs(3600));
    }
    bench
}

async fn left(bench: &Bench) -> Vec<String> {
    let listing = bench.journal.list(SessionQuery::default(), None, 100).await;
    let sessions = listing.unwrap().sessions.into_iter();
    sessions.map(|it| it.id.to_string()).collect()
}

async fn retain(bench: &Bench, retention: Retention) -> u64 {
    bench.journal.retain(retention).await.unwrap().sessions
}

async fn without_limits_everything_stays(engine: Engine) {
    let bench = three(engine).await;
    let removed = bench.journal.retain(Retention::default()).await;
    assert_eq!(removed.unwrap(), Removed::default());
    assert_eq!(left(&bench).await, ["c", "b", "a"]);
}

async fn sessions_idle_for_too_long_go(engine: Engine) {
    let bench = three(engine).await;
    let age = Some(Duration::from_secs(2 * 3600));
    let retention = Retention {
        age,
        ..Retention::default()
    };
    assert_eq!(retain(&bench, retention).await, 1);
    assert_eq!(left(&bench).await, ["c", "b"]);
}

async fn the_longest_idle_go_when_there_are_too_many(engine: Engine) {
    let bench = three(engine).await;
    let retention = Retention {
        sessions: Some(1),
        ..Retention::default()
    };
    assert_eq!(retain(&bench, retention).await, 2);
    assert_eq!(left(&bench).await, ["c"]);
}

async fn the_longest_idle_go_when_there_are_too_many_bytes(engine: Engine) {
    let bench = three(engine).await;
    let each = bench.find("a").await.bytes;
    let retention = |bytes| Retention {
        bytes: Some(bytes),
        ..Retention::default()
    };
    assert_eq!(retain(&bench, retention(3 * each)).await, 0);
    let removed = bench.journal.retain(retention(3 * each - 1)).await;
    let expected = Removed {
        sessions: 1,
        bytes: each,
    };
    assert_eq!(removed.unwrap(), expected);
    assert_eq!(left(&bench).await, ["c", "b"]);
}

async fn what_is_in_use_stays(engine: Engine) {
    let bench = Bench::new(engine).await;
    bench.create("idle").await;
    bench.create("commanded").await;
    let order = Order::Prompt(Bytes::new());
    let commanded = SessionId::new("commanded");
    bench.journal.command(&commanded, order).await.unwrap();
    let running = bench.lease("running").await;
    bench.append(&running, 1, vec![started()]).await.unwrap();
    bench.clock.pass(TTL);
    bench.lease("held").await;
    let all = Retention {
        sessions: Some(0),
        ..Retention::default()
    };
    assert_eq!(retain(&bench, all).await, 1);
    assert_eq!(left(&bench).await, ["held", "running", "commanded"]);

    bench
        .append(&running, 2, vec![ended(Outcome::Lost)])
        .await
        .unwrap();
    bench.clock.pass(TTL);
    assert_eq!(retain(&bench, all).await, 2);
    assert_eq!(left(&bench).await, ["commanded"]);
}

async fn a_removed_session_is_gone_and_its_name_is_free(engine: Engine) {
    let bench = Bench::new(engine).await;
    let lease = bench.lease("s").await;
    let native = SessionId::new("native");
    let bodies = vec![
        started(),
        bound("native", model::Binding::Init),
        ended(Outcome::Completed),
    ];
    bench.append(&lease, 1, bodies).await.unwrap();
    bench.journal.release(&lease).await.unwrap();
    let all = Retention {
        sessions: Some(0),
        ..Retention::default()
    };
    assert_eq!(retain(&bench, all).await, 1);
    assert!(matches!(
        bench.journal.read(&lease.session, everything(0)).await,
        Err(Error::NoSession { .. })
    ));
    assert_eq!(bench.journal.find_native(&native).await.unwrap(), None);
    let run = model::RunId::new("run");
    assert_eq!(bench.journal.find_run(&run).await.unwrap(), None);

    let again = bench.lease("s").await;
    assert_eq!(again.head, 0);
    assert!(matches!(
        bench.append(&lease, 1, vec![note("old")]).await,
        Err(Error::Fenced { .. })
    ));
    bench.append(&again, 1, vec![note("new")]).await.unwrap();
    assert_eq!(bench.read("s").await.events.len(), 1);
}

async fn its_owner_removes_a_session_whatever_is_in_it(engine: Engine) {
    let bench = three(engine).await;
    let lease = bench.acquire("b", "owner").await.unwrap();
    let native = SessionId::new("native");
    let bodies = vec![bound("native", model::Binding::Init), started()];
    bench.append(&lease, 2, bodies).await.unwrap();
    let order = Order::Prompt(Bytes::from_static(b"more"));
    bench.journal.command(&lease.session, order).await.unwrap();
    bench.journal.remove(&lease).await.unwrap();
    assert_eq!(left(&bench).await, ["c", "a"]);
    assert_eq!(bench.journal.find_native(&native).await.unwrap(), None);
    assert_eq!(bench.journal.open_runs().await.unwrap(), []);
    assert_eq!(bench.journal.pending().await.unwrap(), []);
    let read = bench.journal.read(&lease.session, everything(0)).await;
    assert!(matches!(read, Err(Error::NoSession { .. })));
    let again = bench.journal.remove(&lease).await;
    assert!(matches!(again, Err(Error::NoSession { .. })));
    // Nothing of the old one is in a new one of its name.
    let lease = bench.lease("b").await;
    assert_eq!(lease.head, 0);
    assert_eq!(bench.journal.commands(&lease.session, 0).await.unwrap(), []);
}

async fn who_has_lost_a_session_does_not_remove_it(engine: Engine) {
    let bench = Bench::new(engine).await;
    let old = bench.lease("s").await;
    bench.journal.release(&old).await.unwrap();
    let removed = bench.journal.remove(&old).await;
    assert!(matches!(removed, Err(Error::Fenced { .. })));
    let new = bench.acquire("s", "other").await.unwrap();
    let removed = bench.journal.remove(&old).await;
    assert!(matches!(removed, Err(Error::Fenced { .. })));
    bench.append(&new, 1, vec![note("x")]).await.unwrap();
    assert_eq!(bench.find("s").await.head, 1);
}
