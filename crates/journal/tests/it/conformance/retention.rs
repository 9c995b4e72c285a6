//! Sessions beyond the limits are removed, the longest idle first, unless they are in use.

use std::time::Duration;

use bytes::Bytes;
use journal::{CommandBody, Error, Removed, Retention, SessionQuery, WriteId};
use model::{Outcome, SessionId};

use super::for_every_engine;
use crate::harness::{Engine, Harness, TTL, bound, ended, everything, note, started};

for_every_engine!(
    without_limits_everything_stays,
    sessions_idle_for_too_long_go,
    the_longest_idle_go_when_there_are_too_many,
    the_longest_idle_go_when_there_are_too_many_bytes,
    what_is_in_use_stays,
    a_removed_session_is_deleted_and_its_name_is_free,
    its_owner_removes_a_session_whatever_is_in_it,
    a_fenced_owner_does_not_remove_the_session,
);

/// Three idle sessions, an hour apart, with one event each.
async fn three(engine: Engine) -> Harness {
    let harness = Harness::new(engine).await;
    for id in ["a", "b", "c"] {
        let lease = harness.lease(id).await;
        harness.append(&lease, 1, vec![note("x")]).await.unwrap();
        harness.journal.release(&lease).await.unwrap();
        harness.pass(Duration::from_secs(3600));
    }
    harness
}

async fn left(harness: &Harness) -> Vec<String> {
    let listing = harness
        .journal
        .list(SessionQuery::default(), None, 100)
        .await;
    let sessions = listing.unwrap().sessions.into_iter();
    sessions.map(|it| it.id.to_string()).collect()
}

async fn retain(harness: &Harness, retention: Retention) -> u64 {
    harness.journal.retain(retention).await.unwrap().sessions
}

async fn without_limits_everything_stays(engine: Engine) {
    let harness = three(engine).await;
    let removed = harness.journal.retain(Retention::default()).await;
    assert_eq!(removed.unwrap(), Removed::default());
    assert_eq!(left(&harness).await, ["c", "b", "a"]);
}

async fn sessions_idle_for_too_long_go(engine: Engine) {
    let harness = three(engine).await;
    // Not to the moment: a database's clock does not wait for the test.
    let age = Some(Duration::from_secs(2 * 3600 + 60));
    let retention = Retention {
        age,
        ..Retention::default()
    };
    assert_eq!(retain(&harness, retention).await, 1);
    assert_eq!(left(&harness).await, ["c", "b"]);
}

async fn the_longest_idle_go_when_there_are_too_many(engine: Engine) {
    let harness = three(engine).await;
    let retention = Retention {
        sessions: Some(1),
        ..Retention::default()
    };
    assert_eq!(retain(&harness, retention).await, 2);
    assert_eq!(left(&harness).await, ["c"]);
}

async fn the_longest_idle_go_when_there_are_too_many_bytes(engine: Engine) {
    let harness = three(engine).await;
    let each = harness.find("a").await.bytes;
    let retention = |bytes| Retention {
        bytes: Some(bytes),
        ..Retention::default()
    };
    assert_eq!(retain(&harness, retention(3 * each)).await, 0);
    let removed = harness.journal.retain(retention(3 * each - 1)).await;
    let expected = Removed {
        sessions: 1,
        bytes: each,
    };
    assert_eq!(removed.unwrap(), expected);
    assert_eq!(left(&harness).await, ["c", "b"]);
}

async fn what_is_in_use_stays(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("idle").await;
    harness.create("commanded").await;
    let order = CommandBody::Prompt(Bytes::new());
    let commanded = SessionId::new("commanded");
    harness
        .journal
        .command(&commanded, WriteId::new(), order)
        .await
        .unwrap();
    let running = harness.lease("running").await;
    harness.append(&running, 1, vec![started()]).await.unwrap();
    harness.pass(TTL);
    harness.lease("held").await;
    let all = Retention {
        sessions: Some(0),
        ..Retention::default()
    };
    assert_eq!(retain(&harness, all).await, 1);
    assert_eq!(left(&harness).await, ["held", "running", "commanded"]);

    harness
        .append(&running, 2, vec![ended(Outcome::Lost)])
        .await
        .unwrap();
    harness.pass(TTL);
    assert_eq!(retain(&harness, all).await, 2);
    assert_eq!(left(&harness).await, ["commanded"]);
}

async fn a_removed_session_is_deleted_and_its_name_is_free(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let native = SessionId::new("native");
    let bodies = vec![
        started(),
        bound("native", model::Binding::Init),
        ended(Outcome::Completed),
    ];
    harness.append(&lease, 1, bodies).await.unwrap();
    harness.journal.release(&lease).await.unwrap();
    let all = Retention {
        sessions: Some(0),
        ..Retention::default()
    };
    assert_eq!(retain(&harness, all).await, 1);
    assert!(matches!(
        harness.journal.read(&lease.session, everything(0)).await,
        Err(Error::NoSession { .. })
    ));
    assert_eq!(harness.journal.find_native(&native).await.unwrap(), None);
    let run = model::RunId::new("run");
    assert_eq!(harness.journal.find_run(&run).await.unwrap(), None);

    let again = harness.lease("s").await;
    assert_eq!(again.head, 0);
    assert!(matches!(
        harness.append(&lease, 1, vec![note("old")]).await,
        Err(Error::Fenced { .. })
    ));
    harness.append(&again, 1, vec![note("new")]).await.unwrap();
    assert_eq!(harness.read("s").await.events.len(), 1);
}

async fn its_owner_removes_a_session_whatever_is_in_it(engine: Engine) {
    let harness = three(engine).await;
    let lease = harness.acquire("b", "owner").await.unwrap();
    let native = SessionId::new("native");
    let bodies = vec![bound("native", model::Binding::Init), started()];
    harness.append(&lease, 2, bodies).await.unwrap();
    let order = CommandBody::Prompt(Bytes::from_static(b"more"));
    harness
        .journal
        .command(&lease.session, WriteId::new(), order)
        .await
        .unwrap();
    harness.journal.remove(&lease).await.unwrap();
    assert_eq!(left(&harness).await, ["c", "a"]);
    assert_eq!(harness.journal.find_native(&native).await.unwrap(), None);
    assert_eq!(harness.journal.open_runs(None).await.unwrap(), []);
    assert_eq!(harness.journal.pending(None).await.unwrap(), []);
    let read = harness.journal.read(&lease.session, everything(0)).await;
    assert!(matches!(read, Err(Error::NoSession { .. })));
    let again = harness.journal.remove(&lease).await;
    assert!(matches!(again, Err(Error::NoSession { .. })));
    // Nothing of the old one is in a new one of its name.
    let lease = harness.lease("b").await;
    assert_eq!(lease.head, 0);
    assert_eq!(
        harness.journal.commands(&lease.session, 0).await.unwrap(),
        []
    );
}

async fn a_fenced_owner_does_not_remove_the_session(engine: Engine) {
    let harness = Harness::new(engine).await;
    let old = harness.lease("s").await;
    harness.journal.release(&old).await.unwrap();
    let removed = harness.journal.remove(&old).await;
    assert!(matches!(removed, Err(Error::Fenced { .. })));
    let new = harness.acquire("s", "other").await.unwrap();
    let removed = harness.journal.remove(&old).await;
    assert!(matches!(removed, Err(Error::Fenced { .. })));
    harness.append(&new, 1, vec![note("x")]).await.unwrap();
    assert_eq!(harness.find("s").await.head, 1);
}
