//! A ring buffer with the last frames of a stream, shared by all of its followers.
//!
//! A follower is only a position in the ring. If its position is overwritten, the follower is
//! detached; producers never wait for it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::follow::Delivered;

/// Frames a follower may be behind.
pub const MAX_FRAMES: usize = 1024;
/// Bytes a follower may be behind.
pub const MAX_BYTES: usize = 8 << 20;
/// Frames taken out at once.
const TAKE: usize = 64;

/// The flush interval per follower while a stream is active: followers get the events of an
/// interval in one write. After an idle period the first event is delivered at once. The interval
/// scales with the number of followers, because each of them costs a write.
const FLUSH_INTERVAL_EACH: Duration = Duration::from_micros(500);
const MAX_FLUSH_INTERVAL: Duration = Duration::from_millis(100);
/// Timers are not finer; with few followers delivery is immediate.
const MIN_FLUSH_INTERVAL: Duration = Duration::from_millis(1);
/// Writes that a frame may cost, however many follow: as soon as so many frames have gathered that they cost
/// no more, they go out. A fast stream does not wait, then, and its batches still get larger with each
/// follower.
const WRITES_PER_FRAME: usize = 10;
/// Bytes that are gathered.
const MAX_GATHERED: usize = 256 << 10;

/// A rendered event. A thousand followers share it, so that handing it on is one reference count.
pub(crate) type Frame = Arc<Delivered>;

/// A cache for the encoded form of a frame, so that it is encoded once for all clients of a server.
#[derive(Debug, Default)]
pub struct EncodedOnce(OnceLock<Box<dyn Any + Send + Sync>>);

impl EncodedOnce {
    /// The encoded form, from the cache or computed now. There is one user, so the encoding is
    /// always the same.
    pub fn get_or_encode<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> Box<[T]>) -> &[T] {
        let made = self.0.get_or_init(|| Box::new(make()));
        let made: Option<&Box<[T]>> = made.downcast_ref();
        made.expect("the one user encodes to one type")
    }
}

#[derive(Debug)]
pub(crate) struct Ring {
    state: Mutex<RingState>,
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct RingState {
    frames: VecDeque<Frame>,
    /// The place of the first frame.
    first: u64,
    n_bytes: usize,
    /// The last event that was rendered, for rings of one session.
    head: u64,
    /// It has reached the end of the log once.
    is_live: bool,
    /// Its session was removed: nothing follows.
    is_removed: bool,
}

/// The result of polling a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    Ready,
    Empty,
    /// It was overwritten.
    Overrun,
    /// It is at the end of a session that was removed.
    Removed,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            news: watch::Sender::new(()),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// How long frames may be gathered; zero when that is not worth it.
    fn flush_interval(&self) -> Duration {
        let n_followers = u32::try_from(self.news.receiver_count()).unwrap_or(u32::MAX);
        let interval = FLUSH_INTERVAL_EACH.saturating_mul(n_followers);
        match interval < MIN_FLUSH_INTERVAL {
            true => Duration::ZERO,
            false => interval.min(MAX_FLUSH_INTERVAL),
        }
    }

    /// Whether these frames are worth a write to each follower.
    fn is_worth_a_flush(&self, frames: &[Frame]) -> bool {
        let n_bytes: usize = frames.iter().map(|it| it.bytes.len()).sum();
        frames.len() * WRITES_PER_FRAME >= self.news.receiver_count() || n_bytes >= MAX_GATHERED
    }

    /// Adds frames; `head` is the last event they cover, including events without a frame.
    pub(crate) fn push(&self, frames: &[Frame], head: u64, is_live: bool) {
        let mut state = self.state();
        for frame in frames {
            state.n_bytes += frame.bytes.len();
            state.frames.push_back(frame.clone());
            // The newest frame stays, however long: otherwise no follower could ever get it.
            while state.frames.len() > MAX_FRAMES
                || (state.n_bytes > MAX_BYTES && state.frames.len() > 1)
            {
                if let Some(oldest) = state.frames.pop_front() {
                    state.n_bytes -= oldest.bytes.len();
                    state.first += 1;
                }
            }
        }
        state.head = head;
        // Followers that are behind wait until `find` works, which it does once this is live.
        let is_news = !frames.is_empty() || (is_live && !state.is_live);
        state.is_live |= is_live;
        // Followers that are woken poll at once, and need the lock for it.
        drop(state);
        if is_news {
            self.news.send_replace(());
        }
    }

    /// The session was removed, and the followers are at its end.
    pub(crate) fn mark_removed(&self) {
        self.state().is_removed = true;
        self.news.send_replace(());
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state().is_removed
    }

    /// The place behind the last frame.
    pub(crate) fn end(&self) -> u64 {
        let state = self.state();
        state.first + state.frames.len() as u64
    }

    /// The position after event `cursor`; `None` when it was overwritten or is not there yet.
    pub(crate) fn find(&self, cursor: u64) -> Option<u64> {
        let state = self.state();
        let begins = state.frames.front().map_or(state.head, |it| it.after);
        if !state.is_live || cursor < begins {
            return None;
        }
        let at = state.frames.partition_point(|it| it.seq <= cursor);
        Some(state.first + at as u64)
    }

    /// Takes a batch of frames from `place` on and advances it.
    pub(crate) fn poll(&self, place: &mut u64, out: &mut VecDeque<Frame>) -> Poll {
        let state = self.state();
        let Some(at) = place.checked_sub(state.first) else {
            return Poll::Overrun;
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let before = out.len();
        let at = at.min(state.frames.len());
        // In pieces, because all followers and the tail wait for the same lock.
        out.extend(state.frames.range(at..).take(TAKE).cloned());
        let n = out.len() - before;
        *place += n as u64;
        match n {
            0 if state.is_removed => Poll::Removed,
            0 => Poll::Empty,
            _ => Poll::Ready,
        }
    }

    fn state(&self) -> MutexGuard<'_, RingState> {
        self.state.lock().expect("no panic while holding the lock")
    }
}

/// When gathered frames go into a ring: few of them at intervals, many at once.
#[derive(Debug)]
pub(crate) struct FlushTimer {
    /// Until then the followers need not be woken for a few frames.
    due: Instant,
}

impl FlushTimer {
    pub(crate) fn new() -> Self {
        Self {
            due: Instant::now(),
        }
    }

    /// Until when to wait for more frames; `None` when these are to go now.
    pub(crate) fn wait_until(&self, ring: &Ring, frames: &[Frame]) -> Option<Instant> {
        let is_early = !frames.is_empty() && Instant::now() < self.due;
        (is_early && !ring.is_worth_a_flush(frames)).then_some(self.due)
    }

    /// Puts the frames into the ring.
    pub(crate) fn flush(&mut self, ring: &Ring, frames: &mut Vec<Frame>, head: u64, is_live: bool) {
        ring.push(frames, head, is_live);
        // Without frames nothing was sent, and the next one need not wait.
        if !frames.is_empty() {
            self.due = Instant::now() + ring.flush_interval();
        }
        frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use model::SessionId;

    use super::*;
    use crate::test_log::frame;

    fn frames_of(n: usize, n_bytes: usize) -> Vec<Frame> {
        let session = SessionId::new("s");
        (1..=n as u64)
            .map(|seq| frame(&session, seq, n_bytes))
            .collect()
    }

    fn frames(n: usize) -> Vec<Frame> {
        frames_of(n, 3)
    }

    #[tokio::test(start_paused = true)]
    async fn few_frames_wait_for_the_interval_and_enough_of_them_do_not() {
        let waits = |n_followers: usize, n_frames: usize| {
            let ring = Ring::new();
            let _followers: Vec<_> = (0..n_followers).map(|_| ring.subscribe()).collect();
            let mut timer = FlushTimer::new();
            let first = timer.wait_until(&ring, &frames(1));
            timer.flush(&ring, &mut frames(1), 1, true);
            let next = timer.wait_until(&ring, &frames(n_frames));
            (first, next.map(|it| (it - Instant::now()).as_millis()))
        };
        let waited = [
            (1, 1),
            (10, 1),
            (100, 1),
            (100, 9),
            (100, 10),
            (1000, 99),
            (1000, 100),
        ];
        assert_eq!(
            waited.map(|(n_followers, n_frames)| waits(n_followers, n_frames)),
            [
                (None, None),
                (None, None),
                (None, Some(50)),
                (None, Some(50)),
                (None, None),
                (None, Some(100)),
                (None, None),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_interval_one_frame_goes_at_once() {
        let ring = Ring::new();
        let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
        let mut timer = FlushTimer::new();
        timer.flush(&ring, &mut frames(1), 1, true);
        let due = timer.wait_until(&ring, &frames(1)).unwrap();
        tokio::time::sleep_until(due).await;
        assert_eq!(timer.wait_until(&ring, &frames(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_bytes_do_not_wait() {
        let ring = Ring::new();
        let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
        let mut timer = FlushTimer::new();
        timer.flush(&ring, &mut frames(1), 1, true);
        let waits = |n_bytes| timer.wait_until(&ring, &frames_of(2, n_bytes)).is_some();
        assert_eq!(
            [MAX_GATHERED / 2 - 1, MAX_GATHERED / 2].map(waits),
            [true, false]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_frames_there_is_no_interval() {
        let ring = Ring::new();
        let _followers: Vec<_> = (0..100).map(|_| ring.subscribe()).collect();
        let mut timer = FlushTimer::new();
        timer.flush(&ring, &mut Vec::new(), 1, true);
        assert_eq!(timer.wait_until(&ring, &frames(1)), None);
        // Nothing was gathered, so there is nothing to wait with.
        timer.flush(&ring, &mut frames(1), 1, true);
        assert_eq!(timer.wait_until(&ring, &[]), None);
    }

    #[test]
    fn two_followers_are_worth_an_interval_and_one_is_not() {
        let ring = Ring::new();
        let interval = |n: usize| {
            let _followers: Vec<_> = (0..n).map(|_| ring.subscribe()).collect();
            ring.flush_interval()
        };
        let millis = [0, 1, 2, 3, 200, 201].map(|it| interval(it).as_micros());
        assert_eq!(millis, [0, 0, 1000, 1500, 100_000, 100_000]);
    }

    #[test]
    fn a_frame_is_encoded_once() {
        let made = EncodedOnce::default();
        let encoded = [1_u8, 2, 3].map(|n| made.get_or_encode(|| Box::new([n, n])).to_vec());
        assert_eq!(encoded, [[1, 1]; 3]);
    }
}
