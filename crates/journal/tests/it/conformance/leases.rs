//! At most one owner writes, and the one that was replaced cannot.

use std::time::Duration;

use journal::{Error, Lease, Owner, Takeover};
use model::{SessionId, Timestamp};

use super::for_every_engine;
use crate::bench::{Bench, Engine, START, TTL, note};

for_every_engine!(
    a_held_session_is_refused_until_the_lease_runs_out,
    a_renewed_lease_holds_on,
    a_released_session_is_free_at_once_and_its_lease_is_worth_nothing,
    an_old_epoch_writes_nothing,
    a_lapsed_lease_still_writes_while_nobody_took_over,
    a_dead_owner_need_not_be_waited_for,
    setting_the_clock_ends_no_lease_and_prolongs_none,
    a_restart_of_the_machine_ends_every_lease,
    of_many_at_once_one_gets_the_lease,
    what_is_unknown_cannot_be_acquired,
);

async fn a_held_session_is_refused_until_the_lease_runs_out(engine: Engine) {
    let bench = Bench::new(engine).await;
    let lease = bench.lease("s").await;
    assert_eq!(
        lease,
        Lease {
            session: SessionId::new("s"),
            owner: Owner::new("owner"),
            epoch: 1,
            head: 0
        }
    );
    bench
        .append(&lease, 1, vec![note("a"), note("b")])
        .await
        .unwrap();

    bench.clock.pass(TTL - Duration::from_millis(1));
    let held = bench.acquire("s", "other").await.unwrap_err();
    assert!(matches!(held, Error::Held { owner, .. } if owner == Owner::new("owner")));

    bench.clock.pass(Duration::from_millis(1));
    let lease = bench.acquire("s", "other").await.unwrap();
    assert_eq!((lease.epoch, lease.head), (2, 2));
}

async fn a_renewed_lease_holds_on(engine: Engine) {
    let bench = Bench::new(engine).await;
    let lease = bench.lease("s").await;
    bench.clock.pass(TTL / 2);
    bench.journal.renew(&lease, TTL).await.unwrap();
    bench.clock.pass(TTL * 3 / 4);
    assert!(matches!(
        bench.acquire("s", "other").await,
        Err(Error::Held { .. })
    ));
    bench.clock.pass(TTL / 4);
    bench.acquire("s", "other").await.unwrap();
    assert!(matches!(
        bench.journal.renew(&lease, TTL).await,
        Err(Error::Fenced {
            epoch: 1,
            current: 2,
            ..
        })
    ));
}

async fn a_released_session_is_free_at_once_and_its_lease_is_worth_nothing(engine: Engine) {
    let bench = Bench::new(engine).await;
    let lease = bench.lease("s").await;
    bench.journal.release(&lease).await.unwrap();
    assert!(matches!(
        bench.append(&lease, 1, vec![note("late")]).await,
        Err(Error::Fenced { .. })
    ));
    let next = bench.acquire("s", "other").await.unwrap();
    assert!(next.epoch > lease.epoch);

    // The old owner's second release does not take the session from the new one.
    bench.journal.release(&lease).await.unwrap();
    bench.append(&next, 1, vec![note("mine")]).await.unwrap();
}

async fn an_old_epoch_writes_nothing(engine: Engine) {
    let bench = Bench::new(engine).await;
    let old = bench.lease("s").await;
    bench.clock.pass(TTL);
    let new = bench.acquire("s", "other").await.unwrap();
    let fenced = bench.append(&old, 1, vec![note("old")]).await.unwrap_err();
    assert!(matches!(
        fenced,
        Error::Fenced {
            epoch: 1,
            current: 2,
            ..
        }
    ));
    assert_eq!(bench.read("s").await.head, 0);
    bench.append(&new, 1, vec![note("new")]).await.unwrap();
    assert_eq!(bench.read("s").await.head, 1);
}

async fn a_lapsed_lease_still_writes_while_nobody_took_over(engine: Engine) {
    let bench = Bench::new(engine).await;
    let lease = bench.lease("s").await;
    bench.clock.pass(TTL * 100);
    bench
        .append(&lease, 1, vec![note("after a nap")])
        .await
        .unwrap();
    bench.journal.renew(&lease, TTL).await.unwrap();
    assert!(matches!(
        bench.acquire("s", "other").await,
        Err(Error::Held { .. })
    ));
}

async fn a_dead_owner_need_not_be_waited_for(engine: Engine) {
    let bench = Bench::new(engine).await;
    let dead = bench.lease("s").await;
    let session = SessionId::new("s");
    let other = Owner::new("other");
    let mistaken = Takeover::Dead(Owner::new("somebody else"));
    assert!(matches!(
        bench.journal.acquire(&session, &other, TTL, mistaken).await,
        Err(Error::Held { .. })
    ));
    let known = Takeover::Dead(dead.owner.clone());
    let lease = bench.journal.acquire(&session, &other, TTL, known).await;
    assert_eq!(lease.unwrap().epoch, 2);
}

async fn setting_the_clock_ends_no_lease_and_prolongs_none(engine: Engine) {
    const YEAR: i64 = 365 * 24 * 3600 * 1000;
    let bench = Bench::new(engine).await;
    bench.lease("s").await;
    for wall in [START.plus_millis(YEAR), START.plus_millis(-YEAR)] {
        bench.clock.set_wall(wall);
        assert!(matches!(
            bench.acquire("s", "other").await,
            Err(Error::Held { .. })
        ));
    }
    bench.clock.pass(TTL);
    bench.clock.set_wall(Timestamp::from_millis(0));
    bench.acquire("s", "other").await.unwrap();
}

async fn a_restart_of_the_machine_ends_every_lease(engine: Engine) {
    let bench = Bench::new(engine).await;
    bench.lease("s").await;
    bench.clock.reboot("second boot");
    bench.acquire("s", "other").await.unwrap();
}

async fn of_many_at_once_one_gets_the_lease(engine: Engine) {
    let bench = Bench::new(engine).await;
    bench.create("s").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let journal = bench.journal.clone();
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
    let bench = Bench::new(engine).await;
    assert!(matches!(
        bench.acquire("nobody", "owner").await,
        Err(Error::NoSession { session }) if session == SessionId::new("nobody")
    ));
}
