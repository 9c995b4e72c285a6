//! When followers are woken, by a clock that stands still.

use super::*;
use crate::ring::{Frame, MAX_BYTES, MAX_FRAMES, Poll};
use crate::test_log::{TestLog, canonical, frame};

async fn wait(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_goes_out_at_intervals_and_a_fast_one_at_once() {
    let mut log = TestLog::new().await;
    let session = Arc::new(log.lease.session.clone());
    let style = canonical();
    let render = Render::new(Arc::clone(&session), &style, 0).unwrap();
    let channels = Channels::default();
    let channel = channels.open(&log.journal, &session, &style, || render);
    let ring = &channel.ring;
    let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
    wait(1).await;
    // After a silence at once, then with what comes within 50 ms.
    log.append(1).await;
    wait(1).await;
    assert_eq!(ring.end(), 1);
    log.append(1).await;
    wait(10).await;
    log.append(1).await;
    wait(35).await;
    assert_eq!(ring.end(), 1);
    wait(5).await;
    assert_eq!(ring.end(), 3);
    // Ten are worth a write to each of a hundred.
    log.append(5).await;
    wait(1).await;
    assert_eq!(ring.end(), 3);
    log.append(5).await;
    wait(1).await;
    assert_eq!(ring.end(), 13);
    log.append(10).await;
    wait(1).await;
    assert_eq!(ring.end(), 23);
}

/// Frames of so many bytes, each for one event.
fn frames(session: &SessionId<'static>, n_bytes: usize, seqs: std::ops::Range<u64>) -> Vec<Frame> {
    seqs.map(|seq| frame(session, seq, n_bytes)).collect()
}

fn polled(ring: &Ring, mut place: u64) -> (Poll, u64, Vec<u64>) {
    let mut out = std::collections::VecDeque::new();
    let poll = ring.poll(&mut place, &mut out);
    (poll, place, out.iter().map(|it| it.seq).collect())
}

#[test]
fn a_ring_keeps_the_newest_frames_up_to_its_bytes() {
    let session = SessionId::new("s");
    let ring = Ring::new();
    assert_eq!(ring.find(0), None);
    // Three of them are more than the ring may hold.
    ring.push(&frames(&session, MAX_BYTES / 3 + 1, 1..4), 3, true);
    assert_eq!(polled(&ring, 0), (Poll::Overrun, 0, vec![]));
    assert_eq!(polled(&ring, 1), (Poll::Ready, 3, vec![2, 3]));
    assert_eq!(polled(&ring, 3), (Poll::Empty, 3, vec![]));
    assert_eq!(
        [0, 1, 2, 3].map(|it| ring.find(it)),
        [None, Some(1), Some(2), Some(3)]
    );
    // A single frame stays, however long it is.
    ring.push(&frames(&session, MAX_BYTES + 1, 4..5), 4, true);
    assert_eq!(polled(&ring, 3), (Poll::Ready, 4, vec![4]));
    assert_eq!((ring.find(2), ring.find(3), ring.end()), (None, Some(3), 4));
}

#[test]
fn a_ring_keeps_the_newest_frames_up_to_their_number() {
    let session = SessionId::new("s");
    let ring = Ring::new();
    let n = MAX_FRAMES as u64;
    ring.push(&frames(&session, 1, 1..n + 1), n, true);
    assert_eq!(polled(&ring, 0).0, Poll::Ready);
    ring.push(&frames(&session, 1, n + 1..n + 2), n + 1, true);
    assert_eq!(polled(&ring, 0).0, Poll::Overrun);
    let (poll, place, seqs) = polled(&ring, 1);
    assert_eq!((poll, place), (Poll::Ready, 65));
    assert_eq!(seqs, (2..66).collect::<Vec<u64>>());
}

#[test]
fn a_ring_that_has_not_reached_the_end_of_the_log_has_no_places() {
    let session = SessionId::new("s");
    let ring = Ring::new();
    ring.push(&frames(&session, 1, 5..7), 6, false);
    assert_eq!(ring.find(5), None);
    let mut news = ring.subscribe();
    news.mark_unchanged();
    ring.push(&[], 6, true);
    assert!(news.has_changed().unwrap());
    assert_eq!(
        [3, 4, 5, 6].map(|it| ring.find(it)),
        [None, Some(0), Some(1), Some(2)]
    );
    news.mark_unchanged();
    ring.push(&[], 8, true);
    assert!(!news.has_changed().unwrap());
}

#[tokio::test]
async fn a_channel_is_shared_until_its_last_follower_is_gone() {
    let log = TestLog::new().await;
    let session = Arc::new(log.lease.session.clone());
    let channels = Channels::default();
    let open = |format: &str| {
        let style = Style {
            format: format.to_owned(),
            ..canonical()
        };
        let render = Render::new(Arc::clone(&session), &style, 0).unwrap();
        channels.open(&log.journal, &session, &style, || render)
    };
    let first = open("linkspan");
    assert!(Arc::ptr_eq(&first, &open("linkspan")));
    let other = open("thread");
    assert!(!Arc::ptr_eq(&first, &other));
    assert_eq!(lock(&channels.0).len(), 2);
    let tail = first.task.abort_handle();
    drop(first);
    // The next channel takes the place of those without followers, and their tails end.
    let third = open("ag-ui");
    assert_eq!(lock(&channels.0).len(), 2);
    while !tail.is_finished() {
        tokio::task::yield_now().await;
    }
    assert!(!other.task.is_finished() && !third.task.is_finished());
}
