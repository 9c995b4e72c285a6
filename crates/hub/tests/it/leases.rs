//! Leases under a paused clock: renewed, lapsed, taken over, fenced, and waited for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hub::{Hub, Target};
use journal::{Holder, Journal};
use model::{Outcome, SessionId};
use tokio::time::sleep;

use crate::harness::{LEASE, lines, outcomes};
use crate::paused::{Paused, to};

/// The sweep that looks for lapsed leases, and the attempts to acquire a session.
const SWEEP: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(200);

async fn holders(journal: &dyn Journal) -> Vec<Option<Holder>> {
    let open = journal.open_runs(None).await.unwrap();
    open.into_iter().map(|it| it.holder).collect()
}

/// How many runs of a hub have ended, by outcome.
fn ended(hub: &Hub) -> Vec<(&'static str, u64)> {
    let counts = hub.run_counts().all();
    counts.iter().map(|(key, it)| (key.1, it.count())).collect()
}

/// Until the agent of the session's run has named itself.
async fn named(journal: &dyn Journal, session: &SessionId<'static>) {
    let mut watch = journal.watch(journal::Scope::Session(session.clone()));
    while watch.changed().await {
        let found = journal.find_session(session).await.unwrap().unwrap();
        if found.native.is_some() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_the_lease_of_a_long_run() {
    let paused = Paused::new();
    let (first, second) = (paused.hub().await, paused.hub().await);
    let submitted = first.submit(paused.endless(Target::New)).await.unwrap();
    named(&*paused.journal, &submitted.session).await;
    let before = holders(&*paused.journal).await;
    let head = lines(&*paused.journal, &submitted.session).await;
    sleep(10 * LEASE).await;
    assert!(matches!(&before[..], [Some(it)] if !it.lapsed));
    assert_eq!(holders(&*paused.journal).await, before);
    assert_eq!(lines(&*paused.journal, &submitted.session).await, head);
    second.stop().await;
    first.stop().await;
    let outcome = outcomes(&*paused.journal, &submitted.session, 1).await;
    assert_eq!(outcome, [Outcome::Aborted]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_cannot_renew_is_replaced_and_its_late_end_is_fenced() {
    let paused = Paused::new();
    let (first, cannot_write) = paused.hub_with_switch().await;
    let second = paused.hub().await;
    let submitted = first.submit(paused.endless(Target::New)).await.unwrap();
    let session = submitted.session;
    named(&*paused.journal, &session).await;
    cannot_write.store(true, Ordering::SeqCst);
    // The agent ends its run, and the end waits to be stored.
    assert!(first.abort(&session).await.unwrap());
    let outcome = outcomes(&*paused.journal, &session, 1).await;
    assert_eq!(outcome, [Outcome::Lost]);
    let took = paused.elapsed();
    assert!(took >= LEASE && took <= LEASE + SWEEP, "{took:?}");
    let stored = lines(&*paused.journal, &session).await;
    cannot_write.store(false, Ordering::SeqCst);
    sleep(LEASE).await;
    assert_eq!(lines(&*paused.journal, &session).await, stored);
    // The worker has stopped: the next prompt of its hub gets a new one.
    first.submit(paused.short(to(&session))).await.unwrap();
    let outcome = outcomes(&*paused.journal, &session, 2).await;
    assert_eq!(outcome, [Outcome::Lost, Outcome::Completed]);
    assert_eq!(ended(&first), [("aborted", 1), ("completed", 1)]);
    assert_eq!(ended(&second), []);
    second.stop().await;
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_notices_that_the_lease_was_taken_over() {
    let paused = Paused::new();
    let (first, cannot_write) = paused.hub_with_switch().await;
    let second = paused.hub().await;
    let submitted = first.submit(paused.endless(Target::New)).await.unwrap();
    let session = submitted.session;
    named(&*paused.journal, &session).await;
    cannot_write.store(true, Ordering::SeqCst);
    let outcome = outcomes(&*paused.journal, &session, 1).await;
    assert_eq!(outcome, [Outcome::Lost]);
    cannot_write.store(false, Ordering::SeqCst);
    // Heartbeats come three times in a lease; nothing else makes this worker write.
    sleep(LEASE / 3).await;
    assert_eq!(ended(&first), []);
    first.submit(paused.short(to(&session))).await.unwrap();
    let outcome = outcomes(&*paused.journal, &session, 2).await;
    assert_eq!(outcome, [Outcome::Lost, Outcome::Completed]);
    assert_eq!(ended(&first), [("completed", 1)]);
    second.stop().await;
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_program_is_claimed_when_its_lease_lapses() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let hub = paused.hub().await;
    hub.submit(paused.short(to(&lease.session))).await.unwrap();
    let outcome = outcomes(&*paused.journal, &lease.session, 1).await;
    assert_eq!(outcome, [Outcome::Completed]);
    let took = paused.elapsed();
    assert!(took >= LEASE && took <= LEASE + TRY_AGAIN, "{took:?}");
    // The former owner may not write any more.
    let renewed = paused.journal.renew(&lease, LEASE).await;
    assert!(matches!(renewed, Err(journal::Error::Fenced { .. })));
    hub.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_hub_that_loses_the_race_for_a_session_works_on_its_prompt_next() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let (first, second) = (paused.hub().await, paused.hub().await);
    for hub in [&first, &second, &first] {
        hub.submit(paused.short(to(&lease.session))).await.unwrap();
    }
    paused.journal.release(&lease).await.unwrap();
    let outcome = outcomes(&*paused.journal, &lease.session, 3).await;
    assert_eq!(outcome, [Outcome::Completed; 3]);
    assert_eq!(ended(&first), [("completed", 2)]);
    assert_eq!(ended(&second), [("completed", 1)]);
    second.stop().await;
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_waits_for_a_session_stops_at_once() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let hub = paused.hub().await;
    hub.submit(paused.short(to(&lease.session))).await.unwrap();
    let before = paused.elapsed();
    hub.stop().await;
    assert_eq!(paused.elapsed(), before);
    // The prompt stays for the next hub.
    let commands = paused.journal.commands(&lease.session, 0).await.unwrap();
    assert_eq!(commands.len(), 1);
}
