//! A streamed answer, rendered before it is played: one buffer, cut into frames, one write for each.
//!
//! Rendering first keeps the clock honest: while a stream plays, nothing is left to do but to write.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use http_body::Frame;
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::scenario::{Cut, Ending, Place};

/// Frames of server-sent events, in order.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    marks: Vec<FrameMark>,
    n_chunks: usize,
    /// After this many chunks the stream is over, whatever would follow.
    chunk_limit: Option<usize>,
    is_cut: bool,
    cut: Cut,
}

#[derive(Clone, Copy, Debug)]
struct FrameMark {
    end: usize,
    is_chunk: bool,
}

impl Frames {
    pub(crate) fn new(ending: &Ending) -> Frames {
        let (chunk_limit, cut) = match ending {
            Ending::Cut {
                after: Place::Chunks(n),
                how,
            } => (Some(*n), *how),
            Ending::Cut {
                after: Place::Block(_),
                how,
            } => (None, *how),
            Ending::Whole | Ending::Fails { .. } => (None, Cut::End),
        };
        let frames = Frames {
            chunk_limit,
            cut,
            ..Frames::default()
        };
        Frames {
            // A stream that is cut after no chunk has no frame at all.
            is_cut: chunk_limit == Some(0),
            ..frames
        }
    }

    /// No frames at all, and a dropped connection.
    pub(crate) fn dropped() -> Frames {
        Frames {
            is_cut: true,
            cut: Cut::Drop,
            ..Frames::default()
        }
    }

    /// An event that is sent at once. `name` is left out on wires without event names.
    pub(crate) fn event(&mut self, name: Option<&str>, data: &impl Serialize) {
        self.push(name, false, |bytes| json(bytes, data));
    }

    /// A piece of streamed content: what the pace of the turn holds back.
    pub(crate) fn chunk(&mut self, name: Option<&str>, data: &impl Serialize) {
        self.push(name, true, |bytes| json(bytes, data));
        self.n_chunks += 1;
        if self.chunk_limit == Some(self.n_chunks) {
            self.cut();
        }
    }

    /// The end mark of OpenAI's streams.
    pub(crate) fn done(&mut self) {
        self.push(None, false, |bytes| bytes.extend_from_slice(b"[DONE]"));
    }

    /// Ends the stream here; what is pushed later is dropped.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    fn push(&mut self, name: Option<&str>, is_chunk: bool, data: impl FnOnce(&mut Vec<u8>)) {
        if self.is_cut {
            return;
        }
        if let Some(name) = name {
            self.bytes.extend_from_slice(b"event: ");
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(b"data: ");
        data(&mut self.bytes);
        self.bytes.extend_from_slice(b"\n\n");
        self.marks.push(FrameMark {
            end: self.bytes.len(),
            is_chunk,
        });
    }

    /// The body that plays these frames, a chunk every `pace`.
    pub(crate) fn play(self, pace: Duration) -> PlayBody {
        PlayBody {
            bytes: Bytes::from(self.bytes),
            marks: self.marks.into_iter(),
            at: 0,
            pace,
            due: None,
            wait: None,
            // The head of the response leaves first, also when nothing follows it.
            must_flush: true,
            is_dropped: self.is_cut && self.cut == Cut::Drop,
        }
    }
}

fn json(bytes: &mut Vec<u8>, data: &impl Serialize) {
    serde_json::to_writer(bytes, data).expect("a vector takes all bytes, and all keys are strings");
}

/// Text in pieces of `size` characters.
pub(crate) fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // By characters, because every piece has to be valid text by itself.
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The response body of a played stream.
#[derive(Debug)]
pub(crate) struct PlayBody {
    bytes: Bytes,
    marks: std::vec::IntoIter<FrameMark>,
    at: usize,
    pace: Duration,
    /// When the next chunk starts. Counted from the first one, so that late timers do not add up.
    due: Option<Instant>,
    wait: Option<Pin<Box<Sleep>>>,
    must_flush: bool,
    /// The connection closes at the end, and the response is left without one.
    is_dropped: bool,
}

impl HttpBody for PlayBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        // The server writes when a body is not ready: to be pending once after each frame makes it one write each.
        if mem::take(&mut this.must_flush) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(mark) = this.marks.as_slice().first().copied() else {
            // By an error of the body the server closes the connection without the end of the
            // response.
            let dropped = || Err(io::ErrorKind::ConnectionAborted.into());
            return Poll::Ready(this.is_dropped.then(dropped));
        };
        if mark.is_chunk && !this.pace.is_zero() {
            let due = *this.due.get_or_insert_with(Instant::now);
            let wait = this.wait.get_or_insert_with(|| Box::pin(sleep_until(due)));
            ready!(wait.as_mut().poll(cx));
            this.wait = None;
            this.due = Some(due + this.pace);
        }
        this.marks.next();
        let bytes = this.bytes.slice(this.at..mark.end);
        this.at = mark.end;
        this.must_flush = true;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
