//! The traits `Reader` and `Writer`, and the types they exchange with their caller.

use std::collections::BTreeMap;
use std::fmt;

use crate::event::Event;

/// Turns one agent's output, frame by frame, into canonical events.
pub trait Reader: Send {
    /// Reads one frame; never fails: bad input becomes a notice.
    fn frame(&mut self, frame: Frame<'_>, sink: &mut dyn Sink);
    /// The stream has ended: closes everything that is still open. Called once, last.
    fn end(&mut self, end: &End, sink: &mut dyn Sink);
    fn clone_box(&self) -> Box<dyn Reader>;
}

/// Turns canonical events into one consumer protocol; owns that protocol's sequencing.
pub trait Writer: CloneWriter + Send {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>);
    /// There are no more events: writes what a valid stream still needs. Called once, last.
    fn end(&mut self, out: &mut Vec<u8>);
    /// What the target could not express so far.
    fn losses(&self) -> &Losses;
}

/// Copies a writer behind its trait; every writer that is `Clone` has it.
pub trait CloneWriter {
    fn clone_box(&self) -> Box<dyn Writer>;
}

impl<W: Writer + Clone + 'static> CloneWriter for W {
    fn clone_box(&self) -> Box<dyn Writer> {
        Box::new(self.clone())
    }
}

/// Takes events as they are read; an event lives only as long as the call.
pub trait Sink {
    fn event(&mut self, event: &Event<'_>);

    /// The same for an event that is the sink's own: one that changes events and hands them on need not copy
    /// their bodies.
    fn owned_event(&mut self, event: Event<'_>) {
        self.event(&event);
    }

    /// A live agent's frame, before the events that come from it; for sinks that store frames.
    fn frame(&mut self, _: Frame<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Sink for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}

impl fmt::Debug for dyn Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl fmt::Debug for dyn Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

/// One unit of input as the framing layer cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line, or the data of a server-sent event.
    Data(&'a [u8]),
    /// Something longer than the limit: its length, and how it began.
    Oversized { length: u64, head: &'a [u8] },
}

/// How a stream ended: a file, a pipe and a process end differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Absent for a file or a pipe.
    pub exit: Option<Exit>,
    /// The run was aborted on request.
    pub aborted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// Counts of what a target could not express, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<&'static str, u64>);

impl Losses {
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, n)| (*what, *n))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
