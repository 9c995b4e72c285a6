//! Bytes to frames: bounded lines and server-sent events, and text that is safe to parse.

mod clean;
mod either;
mod lines;
mod sse;

pub use clean::{Cleaned, Repair, clean};
pub use either::Either;
pub use lines::{HEAD_KEPT, Lines, MAX_LINE};
pub use sse::{MAX_EVENT, Sse};

use model::Frame;

/// How the frames of a format are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Lines,
    Sse,
    /// Server-sent events or plain lines of the same data; the first bytes tell.
    Either,
}

/// A framer of any kind.
#[derive(Clone, Debug)]
pub enum Framer {
    Lines(Lines),
    Sse(Sse),
    Either(Either),
}

impl Framer {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Lines => Self::Lines(Lines::default()),
            Framing::Sse => Self::Sse(Sse::default()),
            Framing::Either => Self::Either(Either::default()),
        }
    }

    /// Takes the next bytes and hands over every frame they complete.
    pub fn push(&mut self, chunk: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.push(chunk, frames),
            Self::Sse(it) => it.push(chunk, frames),
            Self::Either(it) => it.push(chunk, frames),
        }
    }

    /// No more bytes come: hands over a last frame that had no end.
    pub fn end(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.end(frames),
            Self::Sse(it) => it.end(frames),
            Self::Either(it) => it.end(frames),
        }
    }
}
