//! Time limits under a paused clock: each is exactly as long as it should be.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub::{Error, Follow, Followed, Follower, Scope, Target};
use model::{Outcome, SessionId};
use tokio::time::sleep;

use crate::harness::{lines, outcomes};
use crate::paused::{Paused, to};
use crate::scripted_journal::ScriptedJournal;

/// Longer than a session may be idle before the firehose stops reading it.
const IDLE: Duration = Duration::from_secs(120);

#[tokio::test(start_paused = true)]
async fn a_prompt_is_accepted_after_two_seconds_while_its_session_is_held() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let hub = paused.hub().await;
    let before = paused.elapsed();
    let submitted = hub.submit(paused.short(to(&lease.session))).await.unwrap();
    assert_eq!(paused.elapsed() - before, Duration::from_secs(2));
    assert_eq!((submitted.number, submitted.position), (1, 0));
    hub.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_waits_five_seconds_for_the_owner() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let hub = paused.hub().await;
    hub.submit(paused.short(to(&lease.session))).await.unwrap();
    let before = paused.elapsed();
    assert!(hub.abort(&lease.session).await.unwrap());
    assert_eq!(paused.elapsed() - before, Duration::from_secs(5));
    hub.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_waits_ten_seconds_for_the_owner() {
    let paused = Paused::new();
    let lease = paused.held_session().await;
    let hub = paused.hub().await;
    let before = paused.elapsed();
    let removed = hub.remove(&lease.session).await;
    assert!(matches!(removed, Err(Error::Busy(_))), "{removed:?}");
    assert_eq!(paused.elapsed() - before, Duration::from_secs(10));
    let later = async {
        sleep(Duration::from_secs(3)).await;
        paused.journal.release(&lease).await.unwrap();
    };
    let before = paused.elapsed();
    let (removed, ()) = tokio::join!(hub.remove(&lease.session), later);
    removed.unwrap();
    assert_eq!(paused.elapsed() - before, Duration::from_secs(3));
    let found = paused.journal.find_session(&lease.session).await.unwrap();
    assert_eq!(found, None);
    hub.stop().await;
}

fn follow(scope: Scope) -> Follow {
    Follow {
        scope,
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
        bridge: None,
    }
}

/// The numbers of the next frames, until the one of event `last`.
async fn numbers(follower: &mut Follower, last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.last() != Some(&last) {
        if let Followed::Delivered(it) = follower.next().await.unwrap() {
            numbers.push(it.seq);
            numbers.extend(std::iter::from_fn(|| follower.ready()).map(|it| it.seq));
        }
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_follower_continues_after_reads_have_failed() {
    let paused = Paused::new();
    let journal = Arc::new(ScriptedJournal::new(
        Arc::clone(&paused.journal),
        Arc::default(),
    ));
    let reader = paused.hub_on(Arc::clone(&journal) as _).await;
    let writer = paused.hub().await;
    let submitted = writer.submit(paused.short(Target::New)).await.unwrap();
    let session: SessionId<'static> = submitted.session;
    outcomes(&*paused.journal, &session, 1).await;
    let head = lines(&*paused.journal, &session).await.len() as u64;
    let one = Scope::Session {
        id: session.clone(),
        after: head,
    };
    let mut follower = reader.follow(follow(one)).await.unwrap();
    let caught_up = follower.next().await.unwrap();
    assert!(matches!(caught_up, Followed::CaughtUp { cursor, .. } if cursor == head));
    journal.is_unreadable.store(true, Ordering::SeqCst);
    writer.submit(paused.short(to(&session))).await.unwrap();
    outcomes(&*paused.journal, &session, 2).await;
    sleep(Duration::from_secs(10)).await;
    assert!(follower.ready().is_none());
    journal.is_unreadable.store(false, Ordering::SeqCst);
    let before = paused.elapsed();
    let last = lines(&*paused.journal, &session).await.len() as u64;
    let expected: Vec<u64> = (head + 1..=last).collect();
    assert_eq!(numbers(&mut follower, last).await, expected);
    assert!(paused.elapsed() - before <= Duration::from_millis(200));
    writer.stop().await;
    reader.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_firehose_resumes_a_session_that_was_idle() {
    let paused = Paused::new();
    let hub = paused.hub().await;
    let all = Scope::All {
        after: HashMap::new(),
        since: None,
    };
    let mut follower = hub.follow(follow(all)).await.unwrap();
    let submitted = hub.submit(paused.short(Target::New)).await.unwrap();
    let session = submitted.session;
    let mut head = 0;
    for n in 1..=3 {
        let outcome = outcomes(&*paused.journal, &session, n).await;
        assert_eq!(outcome, vec![Outcome::Completed; n]);
        let last = lines(&*paused.journal, &session).await.len() as u64;
        let expected: Vec<u64> = (head + 1..=last).collect();
        assert_eq!(numbers(&mut follower, last).await, expected);
        head = last;
        sleep(IDLE).await;
        hub.submit(paused.short(to(&session))).await.unwrap();
    }
    hub.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_firehose_begins_with_what_a_client_has_missed() {
    let paused = Paused::new();
    let hub = paused.hub().await;
    let submitted = hub.submit(paused.short(Target::New)).await.unwrap();
    let session = submitted.session;
    outcomes(&*paused.journal, &session, 1).await;
    let head = lines(&*paused.journal, &session).await.len() as u64;
    for after in [0, 2, head - 1] {
        let all = Scope::All {
            after: HashMap::from([(session.clone(), after)]),
            since: None,
        };
        let mut follower = hub.follow(follow(all)).await.unwrap();
        let expected: Vec<u64> = (after + 1..=head).collect();
        assert_eq!(numbers(&mut follower, head).await, expected);
    }
    let all = Scope::All {
        after: HashMap::from([(session.clone(), head)]),
        since: None,
    };
    let mut follower = hub.follow(follow(all)).await.unwrap();
    let level = follower.next().await.unwrap();
    assert!(matches!(level, Followed::CaughtUp { cursor, .. } if cursor == head));
    hub.stop().await;
}
