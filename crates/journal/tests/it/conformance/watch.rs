//! Watchers are notified, their absence costs nothing, and a hint never comes before its commit.

use std::time::Duration;

use bytes::Bytes;
use journal::{CommandBody, Scope, WriteId};
use model::SessionId;
use tokio::time::timeout;

use super::for_every_engine;
use crate::harness::{Engine, Harness, everything, note};

/// Longer than it takes to look for what other programs wrote.
const QUIET: Duration = Duration::from_millis(300);

for_every_engine!(
    the_first_hint_is_there_at_once,
    an_append_is_hinted_after_it_can_be_read,
    a_command_is_hinted,
    a_watcher_of_commands_is_not_woken_by_events,
    a_watcher_of_all_gets_every_hint,
    a_closed_journal_ends_the_watch,
);

async fn the_first_hint_is_there_at_once(engine: Engine) {
    let harness = Harness::new(engine).await;
    let mut watch = harness.journal.watch(Scope::All);
    assert!(watch.changed().await);
}

async fn an_append_is_hinted_after_it_can_be_read(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = lease.session.clone();
    let mut watch = harness.journal.watch(Scope::Session(session.clone()));
    let journal = harness.journal.clone();
    let follower = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 50 {
            assert!(watch.changed().await);
            let after = seen.last().copied().unwrap_or(0);
            let page = journal.read(&session, everything(after)).await.unwrap();
            seen.extend(page.events.iter().map(|it| it.seq));
        }
        seen
    });
    for seq in 1..=50 {
        harness.append(&lease, seq, vec![note("x")]).await.unwrap();
    }
    assert_eq!(follower.await.unwrap(), (1..=50).collect::<Vec<_>>());
}

async fn a_command_is_hinted(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("s").await;
    let session = SessionId::new("s");
    let mut watch = harness.journal.watch(Scope::Session(session.clone()));
    assert!(watch.changed().await);
    let order = CommandBody::Abort(Bytes::new());
    harness
        .journal
        .command(&session, WriteId::new(), order)
        .await
        .unwrap();
    assert!(watch.changed().await);
    assert_eq!(
        harness.journal.commands(&session, 0).await.unwrap().len(),
        1
    );
}

async fn a_watcher_of_commands_is_not_woken_by_events(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let session = lease.session.clone();
    let mut watch = harness.journal.watch(Scope::Commands(session.clone()));
    let mut all = harness.journal.watch(Scope::Session(session.clone()));
    // The first hint, and on a disk the look for what other programs wrote.
    while timeout(QUIET, watch.changed()).await == Ok(true) {}
    harness.append(&lease, 1, vec![note("x")]).await.unwrap();
    assert!(all.changed().await);
    assert!(timeout(QUIET, watch.changed()).await.is_err());
    let order = CommandBody::Abort(Bytes::new());
    harness
        .journal
        .command(&session, WriteId::new(), order)
        .await
        .unwrap();
    assert!(watch.changed().await);
    harness.journal.release(&lease).await.unwrap();
    assert!(watch.changed().await);
}

async fn a_watcher_of_all_gets_every_hint(engine: Engine) {
    let harness = Harness::new(engine).await;
    let mut watch = harness.journal.watch(Scope::All);
    assert!(watch.changed().await);
    let lease = harness.lease("s").await;
    assert!(watch.changed().await);
    harness.append(&lease, 1, vec![note("x")]).await.unwrap();
    assert!(watch.changed().await);
}

async fn a_closed_journal_ends_the_watch(engine: Engine) {
    let harness = Harness::new(engine).await;
    let mut watch = harness.journal.watch(Scope::All);
    drop(harness);
    while watch.changed().await {}
}
