//! A ring buffer with the last frames of a stream, shared by all of its followers.
//!
//! A follower is only a position in the ring. If its position is overwritten, the follower is
//! detached; producers never wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use model::SessionId;
use tokio::sync::watch;

/// Frames a follower may be behind.
pub const MAX_FRAMES: usize = 1024;
/// Bytes a follower may be behind.
pub const MAX_BYTES: usize = 8 << 20;
/// Frames taken out at once.
const TAKE: usize = 64;

/// The flush interval per follower while a stream is active: followers get the events of an
/// interval in one write. After an idle period the first event is delivered at once. The interval
/// scales with the number of followers, because each of them costs a write.
const REST_EACH: Duration = Duration::from_micros(150);
const LONGEST_REST: Duration = Duration::from_millis(100);
/// Timers are not finer; with few followers delivery is immediate.
const SHORTEST_REST: Duration = Duration::from_millis(1);

/// What one or more events have become.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) session: Arc<SessionId<'static>>,
    /// The frame covers the events after this one,
    pub(crate) after: u64,
    /// up to this one.
    pub(crate) seq: u64,
    pub(crate) bytes: Bytes,
    pub(crate) made: EncodedOnce,
}

/// A cache for the encoded form of a frame, so that it is encoded once for all clients of a server.
#[derive(Clone, Debug, Default)]
pub struct EncodedOnce(Arc<OnceLock<Box<[Bytes]>>>);

impl EncodedOnce {
    /// The encoded form, from the cache or computed now. There is one user, so the encoding is
    /// always the same.
    pub fn get_or_encode(&self, make: impl FnOnce() -> Box<[Bytes]>) -> &[Bytes] {
        self.0.get_or_init(make)
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
}

/// The result of polling a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    Ready,
    Empty,
    /// It was overwritten.
    Overrun,
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

    /// How long it is good to gather frames; none when that is not worth a rest.
    pub(crate) fn flush_interval(&self) -> Option<Duration> {
        let n_followers = u32::try_from(self.news.receiver_count()).unwrap_or(u32::MAX);
        let rest = REST_EACH.saturating_mul(n_followers).min(LONGEST_REST);
        (rest >= SHORTEST_REST).then_some(rest)
    }

    /// Adds frames; `head` is the last event they cover, including events without a frame.
    pub(crate) fn push(&self, frames: &[Frame], head: u64, is_live: bool) {
        let mut state = self.state();
        for frame in frames {
            state.n_bytes += frame.bytes.len();
            state.frames.push_back(frame.clone());
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
        let is_news = !frames.is_empty() || (is_live && !state.is_live);
        state.is_live |= is_live;
        drop(state);
        if is_news {
            self.news.send_replace(());
        }
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
        out.extend(state.frames.range(at..).take(TAKE).cloned());
        let n = out.len() - before;
        *place += n as u64;
        if n == 0 { Poll::Empty } else { Poll::Ready }
    }

    fn state(&self) -> MutexGuard<'_, RingState> {
        self.state.lock().expect("no panic while holding the lock")
    }
}
