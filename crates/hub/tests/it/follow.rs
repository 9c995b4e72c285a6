//! Followers: the same list for each of them, wherever they begin and however slow they are.

use std::collections::HashMap;
use std::sync::Arc;

use hub::{Delivered, Detached, Follow, Followed, Follower, Hub, MAX_FRAMES, Scope};
use model::{Outcome, SessionId};
use tokio::time::timeout;

use crate::harness::{Harness, PATIENCE};

fn one(session: &SessionId<'static>, after: u64, format: &str) -> Follow {
    Follow {
        scope: Scope::Session {
            id: session.clone(),
            after,
        },
        format: format.to_owned(),
        profile: None,
        served: None,
        bridge: None,
    }
}

/// The next frame; none when the follower was detached.
async fn next(follower: &mut Follower) -> Result<Arc<Delivered>, Detached> {
    loop {
        let followed = timeout(PATIENCE, follower.next()).await;
        match followed.expect("it never came").unwrap() {
            Followed::Delivered(it) => return Ok(it),
            Followed::CaughtUp { .. } => (),
            Followed::Detached(it) => return Err(it),
            Followed::Removed(session) => panic!("{session} was removed"),
        }
    }
}

/// Everything up to event `head`, as cursors and text.
async fn collect(follower: &mut Follower, last: u64) -> Vec<(u64, String)> {
    let mut got = Vec::new();
    while got.last().is_none_or(|it: &(u64, String)| it.0 < last) {
        let it = next(follower).await.unwrap();
        got.push((it.seq, String::from_utf8(it.bytes.to_vec()).unwrap()));
    }
    got
}

async fn played(harness: &Harness, hub: &Hub, n: usize) -> SessionId<'static> {
    let submit = harness.submit("replay:tools", "play");
    let session = hub.submit(submit).await.unwrap().session;
    for _ in 1..n {
        hub.submit(harness.submit_to(&session, "play"))
            .await
            .unwrap();
    }
    let outcomes = harness.outcomes(&session, n).await;
    assert_eq!(outcomes, vec![Outcome::Completed; n]);
    session
}

#[tokio::test]
async fn a_follower_gets_the_same_list_from_every_cursor() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = played(&harness, &hub, 2).await;
    let head = harness.lines(&session).await.len() as u64;
    for format in ["linkspan", "thread", "ag-ui", "takopi"] {
        let mut follower = hub.follow(one(&session, 0, format)).await.unwrap();
        let last = if format == "linkspan" {
            head
        } else {
            last(&harness, &session).await
        };
        let whole = collect(&mut follower, last).await;
        // Half of them come while the channel is there, half of them open it anew.
        let mut keeper = Some(follower);
        for after in 0..last {
            if after > last / 2 {
                keeper = None;
            }
            let mut follower = hub.follow(one(&session, after, format)).await.unwrap();
            let expected = whole.iter().filter(|it| it.0 > after);
            let got = collect(&mut follower, last).await;
            assert!(got.iter().eq(expected), "{format} after {after}");
        }
        drop(keeper);
    }
    hub.stop().await;
}

/// The end of the last run, which every format renders.
async fn last(harness: &Harness, session: &SessionId<'static>) -> u64 {
    let runs = harness.runs(session).await;
    runs.last().unwrap().end.unwrap().seq
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn followers_that_come_and_go_all_see_the_same_events() {
    let harness = Harness::new();
    let hub = std::sync::Arc::new(harness.hub().await);
    let submit = harness.submit("replay:tools", "play");
    let session = hub.submit(submit).await.unwrap().session;
    let n_runs = 12;
    for _ in 1..n_runs {
        hub.submit(harness.submit_to(&session, "play"))
            .await
            .unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..32_u64 {
        let (hub, session) = (std::sync::Arc::clone(&hub), session.clone());
        tasks.spawn(async move {
            let mut got: Vec<(u64, String)> = Vec::new();
            let mut n_ends = 0;
            // Each stays for another number of frames before it comes back.
            while n_ends < n_runs {
                let after = got.last().map_or(0, |it| it.0);
                let mut follower = hub.follow(one(&session, after, "ag-ui")).await.unwrap();
                for _ in 0..n % 7 * 5 + 1 {
                    let Ok(it) = next(&mut follower).await else {
                        break;
                    };
                    let text = String::from_utf8(it.bytes.to_vec()).unwrap();
                    n_ends += text.matches("RUN_FINISHED").count();
                    got.push((it.seq, text));
                    if n_ends >= n_runs {
                        break;
                    }
                }
            }
            got
        });
    }
    let all = timeout(PATIENCE, tasks.join_all()).await.unwrap();
    for got in &all {
        assert!(*got == all[0]);
    }
    harness.check(&session).await;
}

#[tokio::test]
async fn early_and_late_followers_see_the_same_events() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let submit = hub::Submit {
        options: runner::RunOptions {
            speed: Some(50.0),
            ..runner::RunOptions::default()
        },
        ..harness.submit("replay:tools", "play")
    };
    let session = hub.submit(submit).await.unwrap().session;
    let mut early = hub.follow(one(&session, 0, "thread")).await.unwrap();
    let first = next(&mut early).await.unwrap();
    let mut later = hub
        .follow(one(&session, first.seq, "thread"))
        .await
        .unwrap();
    harness.outcomes(&session, 1).await;
    let last = last(&harness, &session).await;
    let live = collect(&mut early, last).await;
    assert_eq!(collect(&mut later, last).await, live);
    hub.stop().await;
}

#[tokio::test]
async fn a_slow_follower_is_detached_and_comes_back_without_loss() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = played(&harness, &hub, 1).await;
    let head = harness.lines(&session).await.len() as u64;
    let mut slow = hub.follow(one(&session, 0, "linkspan")).await.unwrap();
    let mut got = collect(&mut slow, head).await;
    // It is at the end, and stays there while more happens than is kept for it.
    let is_caught_up = |it| matches!(it, Followed::CaughtUp { cursor, .. } if cursor == head);
    while !is_caught_up(timeout(PATIENCE, slow.next()).await.unwrap().unwrap()) {}
    let mut n_runs = 1;
    while harness.lines(&session).await.len() < MAX_FRAMES + 2 * head as usize {
        hub.submit(harness.submit_to(&session, "more"))
            .await
            .unwrap();
        n_runs += 1;
        harness.outcomes(&session, n_runs).await;
    }
    let head = harness.lines(&session).await.len() as u64;
    let mut fast = hub.follow(one(&session, 0, "linkspan")).await.unwrap();
    let whole = collect(&mut fast, head).await;
    let detached = loop {
        match next(&mut slow).await {
            Ok(it) => got.push((it.seq, String::from_utf8(it.bytes.to_vec()).unwrap())),
            Err(detached) => break detached,
        }
    };
    let cursor = got.last().unwrap().0;
    assert_eq!(detached.cursors, HashMap::from([(session.clone(), cursor)]));
    let mut again = hub.follow(one(&session, cursor, "linkspan")).await.unwrap();
    got.extend(collect(&mut again, head).await);
    assert!(got == whole);
    hub.stop().await;
}

#[tokio::test]
async fn a_follower_of_all_sessions_sees_each_without_gaps() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let old = played(&harness, &hub, 1).await;
    let follow = |after, since| Follow {
        scope: Scope::All { after, since },
        format: "linkspan".to_owned(),
        profile: None,
        served: None,
        bridge: None,
    };
    let known = HashMap::from([(old.clone(), 5)]);
    let mut all = hub.follow(follow(known, None)).await.unwrap();
    let submit = harness.submit("replay:subagents", "new");
    let new = hub.submit(submit).await.unwrap().session;
    hub.submit(harness.submit_to(&old, "again")).await.unwrap();
    harness.outcomes(&old, 2).await;
    harness.outcomes(&new, 1).await;
    let mut wanted = HashMap::new();
    for (session, after) in [(&old, 5), (&new, 0)] {
        let head = harness.lines(session).await.len() as u64;
        wanted.insert((*session).clone(), (after + 1..=head).collect::<Vec<_>>());
    }
    let n: usize = wanted.values().map(Vec::len).sum();
    let mut got: HashMap<_, Vec<u64>> = HashMap::new();
    for _ in 0..n {
        let it = next(&mut all).await.unwrap();
        got.entry((*it.session).clone()).or_default().push(it.seq);
    }
    assert_eq!(got, wanted);
    hub.stop().await;
}

#[tokio::test]
async fn session_changes_cover_creation_and_end() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let mut changes = hub.changes();
    let session = hub
        .submit(harness.submit("claude", "wait"))
        .await
        .unwrap()
        .session;
    let mut state = async |wanted| loop {
        let change = timeout(PATIENCE, changes.next()).await.unwrap().unwrap();
        if change.session.id == session && change.session.state == wanted {
            return change.session.queued;
        }
    };
    assert_eq!(state(journal::State::Running).await, 0);
    assert!(hub.abort(&session).await.unwrap());
    assert_eq!(state(journal::State::Idle).await, 0);
    hub.stop().await;
}

#[tokio::test]
async fn a_cursor_that_is_not_there_is_refused() {
    let harness = Harness::new();
    let hub = harness.hub().await;
    let session = played(&harness, &hub, 1).await;
    let ahead = hub.follow(one(&session, 100_000, "thread")).await;
    assert!(matches!(ahead, Err(hub::Error::NoSuchCursor { .. })));
    let unknown = hub.follow(one(&session, 0, "nothing")).await;
    assert!(matches!(unknown, Err(hub::Error::Format(_))));
    hub.stop().await;
}

#[tokio::test]
async fn the_followers_of_a_removed_session_are_told_whoever_removed_it() {
    let harness = Harness::new();
    let (hub, other) = (harness.hub().await, harness.hub().await);
    let session = played(&harness, &hub, 1).await;
    let head = harness.lines(&session).await.len() as u64;
    let mut live = other.follow(one(&session, 0, "linkspan")).await.unwrap();
    collect(&mut live, head).await;
    let mut behind = other.follow(one(&session, 0, "text")).await.unwrap();
    let mut list = other.changes();
    hub.remove(&session).await.unwrap();
    for follower in [&mut live, &mut behind] {
        let removed = async {
            loop {
                if let Followed::Removed(it) = follower.next().await.unwrap() {
                    return it;
                }
            }
        };
        assert_eq!(*timeout(PATIENCE, removed).await.unwrap(), session);
        // It stays at the end.
        assert!(matches!(
            follower.next().await.unwrap(),
            Followed::Removed(_)
        ));
    }
    let is_told = async { while list.next().await.is_some() {} };
    timeout(PATIENCE, is_told).await.unwrap();
    for hub in [hub, other] {
        hub.stop().await;
    }
}
