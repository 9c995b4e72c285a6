//! At most one owner writes, and the one that was replaced cannot.

use journal::{Error, Lease, Owner, Takeover};
use model::{SessionId, Timestamp};

use super::for_every_engine_and_network;
use crate::harness::{Engine, Harness, START, TTL, note};

for_every_engine_and_network!(
    a_held_session_is_refused_until_the_lease_runs_out,
    a_renewed_lease_holds_on,
    a_released_session_is_free_at_once_and_its_lease_is_worth_nothing,
    an_old_epoch_writes_nothing,
    a_lapsed_lease_still_writes_until_a_takeover,
    a_dead_owner_need_not_be_waited_for,
    setting_the_clock_ends_no_lease_and_prolongs_none,
    of_many_at_once_one_gets_the_lease,
    what_is_unknown_cannot_be_acquired,
);

async fn a_held_session_is_refused_until_the_lease_runs_out(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    assert_eq!(
        lease,
        Lease {
            session: SessionId::new("s"),
            owner: Owner::new("owner"),
            epoch: 1,
            head: 0
        }
    );
    harness
        .append(&lease, 1, vec![note("a"), note("b")])
        .await
        .unwrap();

    harness.pass(TTL - harness.moment());
    let held = harness.acquire("s", "other").await.unwrap_err();
    assert!(matches!(held, Error::Held { owner, .. } if owner == Owner::new("owner")));

    harness.pass(harness.moment());
    let lease = harness.acquire("s", "other").await.unwrap();
    assert_eq!((lease.epoch, lease.head), (2, 2));
}

async fn a_renewed_lease_holds_on(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.pass(TTL / 2);
    harness.journal.renew(&lease, TTL).await.unwrap();
    harness.pass(TTL * 3 / 4);
    assert!(matches!(
        harness.acquire("s", "other").await,
        Err(Error::Held { .. })
    ));
    harness.pass(TTL / 4);
    harness.acquire("s", "other").await.unwrap();
    assert!(matches!(
        harness.journal.renew(&lease, TTL).await,
        Err(Error::Fenced {
            epoch: 1,
            current: 2,
            ..
        })
    ));
}

async fn a_released_session_is_free_at_once_and_its_lease_is_worth_nothing(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.journal.release(&lease).await.unwrap();
    assert!(matches!(
        harness.append(&lease, 1, vec![note("late")]).await,
        Err(Error::Fenced { .. })
    ));
    let next = harness.acquire("s", "other").await.unwrap();
    assert!(next.epoch > lease.epoch);

    // The old owner's second release does not take the session from the new one.
    harness.journal.release(&lease).await.unwrap();
    harness.append(&next, 1, vec![note("mine")]).await.unwrap();
}

async fn an_old_epoch_writes_nothing(engine: Engine) {
    let harness = Harness::new(engine).await;
    let old = harness.lease("s").await;
    harness.pass(TTL);
    let new = harness.acquire("s", "other").await.unwrap();
    let fenced = harness
        .append(&old, 1, vec![note("old")])
        .await
        .unwrap_err();
    assert!(matches!(
        fenced,
        Error::Fenced {
            epoch: 1,
            current: 2,
            ..
        }
    ));
    assert_eq!(harness.read("s").await.head, 0);
    harness.append(&new, 1, vec![note("new")]).await.unwrap();
    assert_eq!(harness.read("s").await.head, 1);
}

async fn a_lapsed_lease_still_writes_until_a_takeover(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.pass(TTL * 100);
    harness
        .append(&lease, 1, vec![note("after a nap")])
        .await
        .unwrap();
    harness.journal.renew(&lease, TTL).await.unwrap();
    assert!(matches!(
        harness.acquire("s", "other").await,
        Err(Error::Held { .. })
    ));
}

async fn a_dead_owner_need_not_be_waited_for(engine: Engine) {
    let harness = Harness::new(engine).await;
    let dead = harness.lease("s").await;
    let session = SessionId::new("s");
    let other = Owner::new("other");
    let mistaken = Takeover::Dead(Owner::new("another owner"));
    assert!(matches!(
        harness
            .journal
            .acquire(&session, &other, TTL, mistaken)
            .await,
        Err(Error::Held { .. })
    ));
    let known = Takeover::Dead(dead.owner.clone());
    let lease = harness.journal.acquire(&session, &other, TTL, known).await;
    assert_eq!(lease.unwrap().epoch, 2);
}

async fn setting_the_clock_ends_no_lease_and_prolongs_none(engine: Engine) {
    const YEAR: i64 = 365 * 24 * 3600 * 1000;
    let harness = Harness::new(engine).await;
    harness.lease("s").await;
    for wall in [START.plus_millis(YEAR), START.plus_millis(-YEAR)] {
        harness.set_wall(wall);
        assert!(matches!(
            harness.acquire("s", "other").await,
            Err(Error::Held { .. })
        ));
    }
    harness.pass(TTL);
    harness.set_wall(Timestamp::from_millis(0));
    harness.acquire("s", "other").await.unwrap();
}

async fn of_many_at_once_one_gets_the_lease(engine: Engine) {
    let harness = Harness::new(engine).await;
    harness.create("s").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let journal = harness.journal.clone();
        tasks.spawn(async move {
            let owner = Owner::new(format!("owner {n}"));
            let session = SessionId::new("s");
            journal
                .acquire(&session, &owner, TTL, Takeover::Lapsed)
                .await
                .is_ok()
        });
    }
    let won = tasks.join_all().await;
    assert_eq!(won.iter().filter(|it| **it).count(), 1);
}

async fn what_is_unknown_cannot_be_acquired(engine: Engine) {
    let harness = Harness::new(engine).await;
    assert!(matches!(
        harness.acquire("unknown", "owner").await,
        Err(Error::NoSession { session }) if session == SessionId::new("unknown")
    ));
}
