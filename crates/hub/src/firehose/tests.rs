//! Followers of all sessions: what they get from the log, what from the ring, and what is kept for them.

use journal::ManualClock;

use super::*;
use crate::ring::MAX_FRAMES;
use crate::test_log::{TestLog, canonical, frame, memory, memory_with, shared};

type Ids = HashMap<SessionId<'static>, u64>;

async fn follow(shared: &Arc<Shared>, after: Ids, since: Option<Timestamp>) -> FollowAll {
    let followed = FollowAll::new(shared, canonical(), after, since);
    followed.await.unwrap()
}

/// Puts the frames of these events of a session into the ring.
fn push(all: &FollowAll, log: &TestLog, seqs: impl IntoIterator<Item = u64>) {
    let session = &log.lease.session;
    let frames: Vec<_> = seqs.into_iter().map(|it| frame(session, it, 1)).collect();
    all.firehose.ring.push(&frames, 0, true);
}

/// The next things a follower gets, in short.
async fn next(all: &mut FollowAll) -> String {
    let next = timeout(Duration::from_secs(1), all.next()).await;
    match next {
        Err(_) => "nothing".to_owned(),
        Ok(followed) => match followed.unwrap() {
            Followed::Delivered(it) => format!("{} {}", it.session, it.seq),
            Followed::CaughtUp { session, cursor } => format!("{session} caught up at {cursor}"),
            Followed::Detached(it) => format!("detached at {:?}", it.cursors),
            Followed::Removed(session) => format!("{session} removed"),
        },
    }
}

async fn take(all: &mut FollowAll, n: usize) -> Vec<String> {
    let mut got = Vec::new();
    for _ in 0..n {
        got.push(next(all).await);
    }
    got
}

fn ready(all: &mut FollowAll) -> Option<u64> {
    all.ready().map(|it| it.seq)
}

/// A session with events, and a follower that knows the first `seen` of them.
async fn following(n_events: u64, seen: u64) -> (Arc<Shared>, TestLog, FollowAll) {
    let mut log = TestLog::new().await;
    log.append(n_events).await;
    let shared = shared(&log.journal);
    let after = HashMap::from([(log.lease.session.clone(), seen)]);
    let all = follow(&shared, after, None).await;
    (shared, log, all)
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_what_is_in_the_ring_once_and_in_order() {
    let (_shared, mut log, mut all) = following(3, 3).await;
    assert_eq!(next(&mut all).await, "s caught up at 3");
    assert_eq!(
        (next(&mut all).await.as_str(), ready(&mut all)),
        ("nothing", None)
    );
    // An event that the log has delivered is not delivered again.
    push(&all, &log, [3, 4, 5]);
    assert_eq!(
        [ready(&mut all), ready(&mut all), ready(&mut all)],
        [Some(4), Some(5), None]
    );
    push(&all, &log, [4, 5, 6]);
    assert_eq!(next(&mut all).await, "s 6");
    assert_eq!(next(&mut all).await, "nothing");
    // Behind a gap in the ring the log is read.
    log.append(6).await;
    push(&all, &log, [9]);
    assert_eq!(ready(&mut all), None);
    let expected = ["s 7", "s 8", "s 9", "s caught up at 9", "nothing"];
    assert_eq!(take(&mut all, 5).await, expected);
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_from_the_ring_while_the_log_is_read() {
    let (_shared, log, mut all) = following(3, 0).await;
    push(&all, &log, [1, 2, 3]);
    assert_eq!(ready(&mut all), None);
    assert_eq!(next(&mut all).await, "s 1");
    // The rest of the page is ready.
    assert_eq!(
        [ready(&mut all), ready(&mut all), ready(&mut all)],
        [Some(2), Some(3), None]
    );
    assert_eq!(take(&mut all, 2).await, ["s caught up at 3", "nothing"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_first_seen_in_the_ring_begins_there_or_at_its_start() {
    let start = Timestamp::from_millis(1_700_000_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let journal = memory_with(Arc::clone(&clock) as _);
    let mut old = TestLog::create(&journal, "old").await;
    old.append(4).await;
    clock.pass(Duration::from_millis(1));
    let since = Some(start.plus_millis(1));
    let mut all = follow(&shared(&journal), HashMap::new(), since).await;
    old.append(1).await;
    push(&all, &old, [5]);
    // It has to be looked up, so it is not ready.
    assert_eq!(ready(&mut all), None);
    assert_eq!(take(&mut all, 2).await, ["old 5", "nothing"]);
    let mut new = TestLog::create(&journal, "new").await;
    new.append(3).await;
    push(&all, &new, [3]);
    let expected = ["new 1", "new 2", "new 3", "new caught up at 3", "nothing"];
    assert_eq!(take(&mut all, 5).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_slow_follower_is_detached_with_its_cursors() {
    let (_shared, log, mut all) = following(3, 3).await;
    assert_eq!(next(&mut all).await, "s caught up at 3");
    push(&all, &log, [4]);
    assert_eq!(next(&mut all).await, "s 4");
    push(&all, &log, 5..=MAX_FRAMES as u64 + 5);
    assert_eq!(ready(&mut all), None);
    let detached = format!("detached at {:?}", all.seen);
    assert_eq!(take(&mut all, 2).await, [detached.clone(), detached]);
    assert_eq!(all.seen, HashMap::from([(log.lease.session.clone(), 4)]));
    assert_eq!(ready(&mut all), None);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_reads_the_log_is_not_slow() {
    let (_shared, mut log, mut all) = following(3, 0).await;
    assert_eq!(take(&mut all, 3).await, ["s 1", "s 2", "s 3"]);
    let n = MAX_FRAMES as u64 + 10;
    log.append(n).await;
    // Meanwhile its place in the ring is overwritten.
    push(&all, &log, 4..=n + 3);
    assert_eq!(next(&mut all).await, "s 4");
    let rest = take(&mut all, n as usize - 1).await;
    assert_eq!(rest.last(), Some(&format!("s {}", n + 3)));
    let expected = [
        format!("s caught up at {}", n + 3),
        format!("s caught up at {}", n + 3),
        "nothing".to_owned(),
    ];
    assert_eq!(take(&mut all, 3).await, expected);
    log.append(1).await;
    push(&all, &log, [n + 4]);
    assert_eq!(next(&mut all).await, format!("s {}", n + 4));
}

#[tokio::test(start_paused = true)]
async fn only_sessions_with_news_are_read_at_the_beginning() {
    let journal = memory();
    let shared = shared(&journal);
    let mut after = HashMap::from([(SessionId::new("gone"), 7)]);
    for (id, seen) in [("behind", 2), ("level", 3), ("empty", 0)] {
        let mut log = TestLog::create(&journal, id).await;
        log.append(if id == "empty" { 0 } else { 3 }).await;
        after.insert(log.lease.session.clone(), seen);
    }
    let mut all = follow(&shared, after, None).await;
    let behind: Vec<_> = all.behind.iter().map(|it| it.session().as_str()).collect();
    assert_eq!(behind, ["behind"]);
    let level: Ids = all.level.iter().cloned().collect();
    let expected = [("empty", 0), ("level", 3)].map(|it| (SessionId::new(it.0), it.1));
    assert_eq!(level, HashMap::from(expected));
    let first = take(&mut all, 2).await;
    assert_eq!(first, ["behind 3", "behind caught up at 3"]);
    let mut rest = take(&mut all, 3).await;
    rest.sort();
    assert_eq!(
        rest,
        ["empty caught up at 0", "level caught up at 3", "nothing"]
    );
}

#[tokio::test]
async fn sessions_of_the_same_moment_are_all_found() {
    let start = Timestamp::from_millis(1_700_000_000_000);
    let clock = Arc::new(ManualClock::new(start));
    let journal = memory_with(Arc::clone(&clock) as _);
    let mut n_created = 0;
    let mut create = async |n: u32| {
        for _ in 0..n {
            n_created += 1;
            TestLog::create(&journal, &format!("s{n_created}")).await;
        }
        clock.pass(Duration::from_millis(1));
    };
    create(5).await;
    create(PAGE + 20).await;
    create(1).await;
    let found = async |millis| {
        let found = created_since(&*journal, start.plus_millis(millis)).await;
        found.unwrap().len()
    };
    let expected = [(0, 126), (1, 121), (2, 1), (3, 0)];
    for (millis, n) in expected {
        assert_eq!(found(millis).await, n, "{millis}");
    }
}

/// The tails of a firehose as `(session, cursor, is active)`.
fn tails(firehose: &Firehose) -> Vec<(String, u64, bool)> {
    let sessions = lock(&firehose.sessions);
    let tails = sessions.iter();
    let mut tails: Vec<_> = tails
        .map(|(id, it)| (id.to_string(), it.cursor, it.is_active))
        .collect();
    tails.sort();
    tails
}

#[tokio::test(start_paused = true)]
async fn a_session_is_tailed_while_it_has_events_and_once() {
    let mut log = TestLog::new().await;
    let shared = shared(&log.journal);
    let firehose = shared.firehose(canonical());
    let resume = |session: &Session, after| firehose.resume(&shared, session, after);
    log.append(2).await;
    // Nothing is new.
    resume(&log.session().await, 2);
    assert_eq!(tails(&firehose), [("s".to_owned(), 2, false)]);
    log.append(2).await;
    resume(&log.session().await, 2);
    assert_eq!(tails(&firehose), [("s".to_owned(), 2, true)]);
    let task = lock(&firehose.sessions)[&log.lease.session]
        .task
        .as_ref()
        .map(JoinHandle::id);
    resume(&log.session().await, 2);
    let again = lock(&firehose.sessions)[&log.lease.session]
        .task
        .as_ref()
        .map(JoinHandle::id);
    assert_eq!(again, task);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(firehose.ring.end(), 2);
    assert!(!firehose.mark_active(&log.lease.session));
    // It ends when the session has been idle for a while, and is there for the next event.
    sleep(4 * IDLE_AFTER).await;
    assert_eq!(tails(&firehose), [("s".to_owned(), 4, false)]);
    log.append(3).await;
    resume(&log.session().await, 4);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(firehose.ring.end(), 5);
    assert_eq!(tails(&firehose), [("s".to_owned(), 4, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_is_longer_than_a_ring_is_forwarded_whole() {
    let mut log = TestLog::new().await;
    let shared = shared(&log.journal);
    let firehose = shared.firehose(canonical());
    log.append(1).await;
    firehose.resume(&shared, &log.session().await, 0);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(firehose.ring.end(), 1);
    let n = 3 * MAX_FRAMES as u64;
    log.append(n).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(firehose.ring.end(), n + 1);
}

#[tokio::test(start_paused = true)]
async fn many_followers_get_the_events_of_an_interval_together() {
    let mut log = TestLog::new().await;
    let shared = shared(&log.journal);
    let firehose = shared.firehose(canonical());
    let ring = &firehose.ring;
    let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
    log.append(1).await;
    firehose.resume(&shared, &log.session().await, 0);
    let wait = async |millis| sleep(Duration::from_millis(millis)).await;
    wait(1).await;
    assert_eq!(ring.end(), 1);
    for _ in 0..3 {
        log.append(1).await;
        wait(10).await;
        assert_eq!(ring.end(), 1);
    }
    wait(20).await;
    assert_eq!(ring.end(), 4);
    // A removed session ends its tail; what was gathered goes out before.
    log.append(1).await;
    wait(1).await;
    assert_eq!(ring.end(), 4);
    log.append(9).await;
    wait(1).await;
    assert_eq!(ring.end(), 14);
}

#[tokio::test(start_paused = true)]
async fn a_firehose_without_followers_ends_its_tails() {
    let mut log = TestLog::new().await;
    let shared = shared(&log.journal);
    let firehose = shared.firehose(canonical());
    assert!(Arc::ptr_eq(&firehose, &shared.firehose(canonical())));
    log.append(1).await;
    firehose.resume(&shared, &log.session().await, 0);
    sleep(Duration::from_millis(1)).await;
    let task = {
        let sessions = lock(&firehose.sessions);
        let task = sessions[&log.lease.session].task.as_ref();
        task.unwrap().abort_handle()
    };
    assert!(!task.is_finished());
    drop(firehose);
    sleep(Duration::from_millis(1)).await;
    assert!(task.is_finished());
}

#[tokio::test]
async fn idle_tails_are_kept_where_the_cache_cannot_restore_them() {
    let journal = memory();
    let shared = shared(&journal);
    let firehose = shared.firehose(canonical());
    let mut same = TestLog::create(&journal, "same").await;
    same.append(3).await;
    let mut ahead = TestLog::create(&journal, "ahead").await;
    ahead.append(3).await;
    shared.directory.fill(&*journal).await.unwrap();
    let insert = |id: &str, cursor, is_active| {
        let tail = SessionTail {
            cursor,
            is_active,
            task: None,
        };
        let id = SessionId::new(id.to_owned());
        lock(&firehose.sessions).insert(id, tail);
    };
    insert("same", 3, false);
    insert("ahead", 2, false);
    insert("active", 1, true);
    for n in 3..MAX_TAILS {
        insert(&format!("unknown-{n}"), 1, false);
    }
    firehose.mark_idle(&shared, &same.lease.session, 3);
    assert_eq!(tails(&firehose).len(), MAX_TAILS);
    insert("one more", 1, true);
    firehose.mark_idle(&shared, &same.lease.session, 3);
    let expected = [
        ("active", 1, true),
        ("ahead", 2, false),
        ("one more", 1, true),
    ];
    let expected = expected.map(|it| (it.0.to_owned(), it.1, it.2));
    assert_eq!(tails(&firehose), expected);
}
