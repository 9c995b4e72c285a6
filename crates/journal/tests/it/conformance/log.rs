//! Events go in whole and in order, and come out by cursor as they went in.

use bytes::Bytes;
use journal::{Batch, Deltas, Entry, Error, Page, Read, Stored, StoredFrame};
use model::{BodyKind, Outcome, SessionId, Timestamp};

use super::for_every_engine;
use crate::harness::{
    Engine, Harness, START, delta, ended, entries, event, everything, note, started, with_frame,
};

for_every_engine!(
    events_come_back_as_they_were_appended,
    only_the_next_number_is_taken,
    a_batch_is_taken_whole_or_not_at_all,
    an_empty_batch_is_nothing,
    pages_end_at_their_limits_and_the_cursor_continues,
    a_page_holds_at_least_one_event,
    a_cursor_at_or_past_the_end_reads_nothing,
    deltas_can_be_left_out_and_the_cursor_passes_them,
    sessions_do_not_mix,
    frames_are_kept_beside_the_event_they_came_with,
    appends_of_many_sessions_at_once_all_arrive,
    an_unknown_session_cannot_be_read,
);

async fn events_come_back_as_they_were_appended(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let mut first = event(&lease, 1, note("at its own time"));
    first.at = Some(Timestamp::from_millis(5));
    let first = Entry::of(&first, None).unwrap();
    let second = Entry::of(&event(&lease, 2, note("bell \u{7} and ünïcode")), None).unwrap();
    let lines = [first.line(), second.line()];
    let batch = Batch::new(vec![first, second]);
    assert_eq!(harness.journal.append(&lease, batch).await.unwrap(), 1..3);
    let [first, second] = lines;
    let page = harness.read("s").await;
    let at = harness.time(START, page.events[1].at);
    assert_eq!(
        page,
        Page {
            events: vec![
                Stored {
                    seq: 1,
                    at: Timestamp::from_millis(5),
                    kind: BodyKind::NoticeRaised,
                    line: first,
                    cut: 0,
                    is_damaged: false,
                },
                Stored {
                    seq: 2,
                    at,
                    kind: BodyKind::NoticeRaised,
                    line: second,
                    cut: 0,
                    is_damaged: false,
                },
            ],
            next: 2,
            head: 2,
        }
    );
}

async fn only_the_next_number_is_taken(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.append(&lease, 1, vec![note("a")]).await.unwrap();
    for wrong in [0, 1, 3, u64::MAX - 1] {
        let refused = harness.append(&lease, wrong, vec![note("b")]).await;
        assert!(
            matches!(refused, Err(Error::OutOfOrder { next: 2, got, .. }) if got == wrong),
            "{refused:?}"
        );
    }
    assert_eq!(harness.read("s").await.head, 1);
}

async fn a_batch_is_taken_whole_or_not_at_all(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let before = harness.find("s").await;
    let bad = vec![started(), note("x"), ended(Outcome::Completed), started()];
    assert!(matches!(
        harness.append(&lease, 1, bad).await,
        Err(Error::RunStarted { .. })
    ));
    let mut gap = entries(&lease, 1, vec![started(), note("x")]);
    gap.extend(entries(&lease, 4, vec![note("y")]));
    let batch = Batch::new(gap);
    assert!(matches!(
        harness.journal.append(&lease, batch).await,
        Err(Error::OutOfOrder {
            next: 3,
            got: 4,
            ..
        })
    ));
    assert_eq!(harness.find("s").await, before);
    assert_eq!(harness.journal.open_runs(None).await.unwrap(), []);
    harness.append(&lease, 1, vec![started()]).await.unwrap();
}

async fn an_empty_batch_is_nothing(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let range = harness.journal.append(&lease, Batch::default()).await;
    assert_eq!(range.unwrap(), 1..1);
    assert_eq!(harness.read("s").await.head, 0);
}

async fn pages_end_at_their_limits_and_the_cursor_continues(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let bodies = (0..25).map(|_| note("a body of some length")).collect();
    harness.append(&lease, 1, bodies).await.unwrap();
    let length = harness.read("s").await.events[0].line.len();

    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let read = Read {
            after,
            max_events: 10,
            // Two and a half lines: the third reaches the limit.
            max_bytes: if after == 10 {
                length * 5 / 2
            } else {
                usize::MAX
            },
            ..everything(0)
        };
        let page = harness.journal.read(&lease.session, read).await.unwrap();
        if page.events.is_empty() {
            break;
        }
        seen.push((page.events.len(), page.next));
        assert_eq!(page.head, 25);
        after = page.next;
    }
    assert_eq!(seen, [(10, 10), (3, 13), (10, 23), (2, 25)]);
}

async fn a_page_holds_at_least_one_event(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness
        .append(&lease, 1, vec![note("a"), note("b")])
        .await
        .unwrap();
    let read = Read {
        max_events: 0,
        max_bytes: 0,
        ..everything(0)
    };
    let page = harness.journal.read(&lease.session, read).await.unwrap();
    assert_eq!((page.events.len(), page.next, page.head), (1, 1, 2));
}

async fn a_cursor_at_or_past_the_end_reads_nothing(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    harness.append(&lease, 1, vec![note("a")]).await.unwrap();
    for after in [1, 2, 1 << 36, u64::MAX] {
        let page = harness
            .journal
            .read(&lease.session, everything(after))
            .await;
        assert_eq!(
            page.unwrap(),
            Page {
                events: vec![],
                next: after,
                head: 1
            }
        );
    }
}

async fn deltas_can_be_left_out_and_the_cursor_passes_them(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let bodies = vec![delta("1"), note("2"), delta("3"), note("4"), delta("5")];
    harness.append(&lease, 1, bodies).await.unwrap();
    let read = |after| Read {
        after,
        deltas: Deltas::Skip,
        max_events: 1,
        max_bytes: usize::MAX,
    };
    let mut seen = Vec::new();
    for after in [0, 2, 4] {
        let page = harness
            .journal
            .read(&lease.session, read(after))
            .await
            .unwrap();
        let numbers: Vec<_> = page.events.iter().map(|it| it.seq).collect();
        seen.push((numbers, page.next));
    }
    assert_eq!(seen, [(vec![2], 2), (vec![4], 4), (vec![], 5)]);
}

async fn sessions_do_not_mix(engine: Engine) {
    let harness = Harness::new(engine).await;
    let (one, two) = (harness.lease("one").await, harness.lease("two").await);
    harness.append(&two, 1, vec![note("two")]).await.unwrap();
    harness.append(&one, 1, vec![note("one")]).await.unwrap();
    harness.append(&two, 2, vec![note("two")]).await.unwrap();
    let (one, two) = (harness.read("one").await, harness.read("two").await);
    assert_eq!((one.events.len(), one.head), (1, 1));
    assert_eq!((two.events.len(), two.head), (2, 2));
    assert!(one.events[0].line.ends_with(br#""text":"one"}}"#));
}

async fn frames_are_kept_beside_the_event_they_came_with(engine: Engine) {
    let harness = Harness::new(engine).await;
    let lease = harness.lease("s").await;
    let mut entries = entries(&lease, 1, vec![note("no frame")]);
    entries.push(with_frame(&lease, 2, b"not \xFF JSON"));
    entries.push(with_frame(&lease, 3, b""));
    let bytes: usize = entries.iter().map(|it| it.line().len()).sum();
    let batch = Batch::new(entries);
    harness.journal.append(&lease, batch).await.unwrap();
    let frame = |seq, bytes| StoredFrame {
        seq,
        bytes: Bytes::from_static(bytes),
        cut: 0,
    };
    let session = SessionId::new("s");
    assert_eq!(
        harness
            .journal
            .frames(&session, everything(0))
            .await
            .unwrap(),
        [frame(2, b"not \xFF JSON"), frame(3, b"")]
    );
    assert_eq!(
        harness
            .journal
            .frames(&session, everything(2))
            .await
            .unwrap(),
        [frame(3, b"")]
    );
    assert_eq!(harness.find("s").await.bytes, bytes as u64 + 10);
}

async fn appends_of_many_sessions_at_once_all_arrive(engine: Engine) {
    let harness = Harness::new(engine).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..16 {
        let lease = harness.lease(&format!("s{n}")).await;
        let journal = harness.journal.clone();
        tasks.spawn(async move {
            for first in (1..40).step_by(3) {
                let bodies = vec![note("a"), note("b"), note("c")];
                let batch = Batch::new(entries(&lease, first, bodies));
                journal.append(&lease, batch).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for n in 0..16 {
        let page = harness.read(&format!("s{n}")).await;
        let numbers: Vec<_> = page.events.iter().map(|it| it.seq).collect();
        assert_eq!(numbers, (1..40).collect::<Vec<_>>());
    }
}

async fn an_unknown_session_cannot_be_read(engine: Engine) {
    let harness = Harness::new(engine).await;
    let session = SessionId::new("unknown");
    let page = harness.journal.read(&session, everything(0)).await;
    assert!(matches!(page, Err(Error::NoSession { .. })));
}
