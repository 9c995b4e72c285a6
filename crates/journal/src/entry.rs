//! Events on their way into the log and out of it: the canonical line, and the little the store knows of it.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use model::{
    AskId, Binding, Body, BodyKind, Decision, Event, Origin, Outcome, RunId, SessionId, Timestamp,
};

use crate::encode::{self, Encoded};
use crate::error::{Error, Result};
use crate::line::Line;
use crate::truncate::Truncate;
use crate::write_id::WriteId;

/// An event to be appended. The owner numbers it consecutively (see [`crate::Lease::head`]); the
/// journal accepts it under that number or not at all.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) seq: u64,
    pub(crate) line: Line,
    pub(crate) at: Option<Timestamp>,
    pub(crate) kind: BodyKind,
    pub(crate) effect: Effect,
    /// The event came from the agent.
    pub(crate) is_agents: bool,
    pub(crate) frame: Option<Bytes>,
    pub(crate) line_cut: u64,
    pub(crate) frame_cut: u64,
}

impl Entry {
    /// `frame` is the agent's own frame, given with the first event that came from it.
    pub fn of(event: &Event<'_>, frame: Option<Bytes>) -> serde_json::Result<Self> {
        Ok(Self::new(event, encode::whole(event)?, frame))
    }

    /// The entry as it fits into the log. Of one that is too long the long strings are shortened, each of them
    /// saying so: a run is worth more than the middle of a string of many megabytes.
    pub fn fitted(event: &Event<'_>, frame: Option<Bytes>) -> serde_json::Result<Self> {
        let room = MAX_ENTRY - frame.as_ref().map_or(0, Bytes::len).min(MAX_ENTRY);
        Ok(Self::new(event, encode::fitted(event, room)?, frame))
    }

    fn new(event: &Event<'_>, encoded: Encoded, frame: Option<Bytes>) -> Self {
        Self {
            seq: event.seq,
            line: encoded.line,
            at: event.at,
            kind: event.body.kind(),
            effect: Effect::of(event),
            is_agents: event.origin == Origin::Agent,
            frame,
            line_cut: encoded.n_cut,
            frame_cut: 0,
        }
    }

    /// Bytes of the frame that were not stored.
    pub fn with_frame_cut(mut self, n_bytes: u64) -> Self {
        self.frame_cut = n_bytes;
        self
    }

    /// The canonical line, to be shown once it is stored; unless it is very long, it shares its bytes with the
    /// entry.
    pub fn line(&self) -> Bytes {
        self.line.bytes()
    }

    /// About the bytes of the line.
    pub fn line_length(&self) -> usize {
        self.line.len()
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn cut(&mut self, cut: Truncate) {
        let (line, n_cut) = cut.line(&self.line.bytes());
        self.line = Line::Whole(line);
        self.line_cut += n_cut;
        if let Some(frame) = &mut self.frame {
            let n_cut;
            (*frame, n_cut) = cut.frame(frame);
            self.frame_cut += n_cut;
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.line.len() + self.frame.as_ref().map_or(0, Bytes::len)
    }
}

/// Entries that are appended atomically.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// A batch that is sent again, because its answer was lost, is stored once.
    pub id: WriteId,
    pub entries: Vec<Entry>,
    /// Numbers of commands that these events answer; they will not be delivered again.
    pub done: Vec<u64>,
    /// What those who gave some of these commands are told, see [`crate::Journal::find_command`].
    pub replies: HashMap<u64, Bytes>,
}

/// An entry's line and frame together may not be longer: readers answer in pages that hold whole events.
const MAX_ENTRY: usize = 64 << 20;

impl Batch {
    pub fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    /// The commands that these events answer.
    #[must_use]
    pub fn with_done(self, done: Vec<u64>) -> Self {
        Self { done, ..self }
    }

    /// Answers a command, and tells `reply` to who gave it.
    #[must_use]
    pub fn with_reply(mut self, command: u64, reply: Bytes) -> Self {
        self.done.push(command);
        self.replies.insert(command, reply);
        self
    }

    /// The numbers of its events, if the log ends with them and so does `last`, the id of the last batch there:
    /// the batch is stored, and its answer was lost.
    pub(crate) fn stored_range(&self, last: Option<WriteId>, head: u64) -> Option<Range<u64>> {
        let end = self.entries.last().map_or(head, |it| it.seq);
        let first = self.entries.first().map_or(head + 1, |it| it.seq);
        (last == Some(self.id) && end == head).then_some(first..head + 1)
    }

    /// Done by every engine before a batch is stored: reject oversized entries, and truncate if
    /// configured.
    pub(crate) fn prepare(&mut self, cut: Option<Truncate>) -> Result<()> {
        for entry in &mut self.entries {
            // Before the length is checked: truncation may make it fit.
            if let Some(cut) = cut {
                entry.cut(cut);
            }
            let length = entry.length();
            if length > MAX_ENTRY {
                return Err(Error::TooLarge {
                    length,
                    limit: MAX_ENTRY,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn length(&self) -> usize {
        self.entries.iter().map(Entry::length).sum()
    }

    /// Whether it changes more than the log: a run, an ask, a name of the session, its commands.
    pub fn has_effects(&self) -> bool {
        let mut entries = self.entries.iter();
        !self.done.is_empty() || entries.any(|it| it.effect != Effect::None)
    }
}

/// What an event changes beside the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    None,
    Bound {
        native: SessionId<'static>,
        cwd: Option<String>,
    },
    RunStarted(RunId<'static>),
    RunEnded(RunId<'static>, Outcome),
    AskOpened(AskId<'static>, Option<RunId<'static>>),
    AskSettled(AskId<'static>, Decision),
}

impl Effect {
    pub(crate) fn of(event: &Event<'_>) -> Self {
        let run = event.run.clone().map(RunId::into_owned);
        match (&event.body, run) {
            // Another session than the expected one is no name of this session.
            (Body::SessionBound(bound), _) if bound.how == Binding::Mismatch => Self::None,
            (Body::SessionBound(bound), _) => Self::Bound {
                native: bound.native.clone().into_owned(),
                cwd: bound.cwd.as_deref().map(str::to_owned),
            },
            (Body::RunStarted(_), Some(run)) => Self::RunStarted(run),
            (Body::RunEnded(ended), Some(run)) => Self::RunEnded(run, ended.outcome),
            (Body::AskOpened(ask), run) => Self::AskOpened(ask.id.clone().into_owned(), run),
            (Body::AskSettled(ask), _) => {
                Self::AskSettled(ask.id.clone().into_owned(), ask.decision)
            }
            (
                Body::RunStarted(_)
                | Body::RunEnded(_)
                | Body::ItemOpened(_)
                | Body::ItemUpdated(_)
                | Body::ItemDelta(_)
                | Body::ItemClosed(_)
                | Body::UsageReported(_)
                | Body::NoticeRaised(_)
                | Body::FrameUnmapped(_),
                _,
            ) => Self::None,
        }
    }
}

/// Which part of a log is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The last event that is known already; 0 reads from the beginning.
    pub after: u64,
    pub deltas: Deltas,
    /// A page ends with the event that reaches one of these; it holds at least one event if there is any.
    pub max_events: u32,
    pub max_bytes: usize,
}

impl Read {
    /// Small, because a thousand clients may be catching up at once.
    pub(crate) const PAGE_EVENTS: u32 = 256;
    pub(crate) const PAGE_BYTES: usize = 256 << 10;

    /// The next page for a reader that has all events up to `after`.
    pub fn page(after: u64) -> Self {
        Self {
            after,
            deltas: Deltas::Keep,
            max_events: Self::PAGE_EVENTS,
            max_bytes: Self::PAGE_BYTES,
        }
    }

    /// Leaves out what comes after `last`.
    #[must_use]
    pub fn up_to(self, last: u64) -> Self {
        let n_wanted = u32::try_from(last.saturating_sub(self.after)).unwrap_or(u32::MAX);
        Self {
            max_events: self.max_events.min(n_wanted),
            ..self
        }
    }

    /// The one event `seq`.
    pub fn one(seq: u64) -> Self {
        Self::page(seq.saturating_sub(1)).up_to(seq)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deltas {
    Keep,
    /// Skip them: `item.closed` has the whole text.
    Skip,
}

/// What is left of a page's limits.
#[derive(Debug)]
pub(crate) struct PageBudget {
    events: u32,
    bytes: usize,
}

impl PageBudget {
    /// At least one event fits, so that readers always make progress.
    pub(crate) fn of(read: Read) -> Self {
        Self {
            events: read.max_events.max(1),
            bytes: read.max_bytes.max(1),
        }
    }

    pub(crate) fn has_some(&self) -> bool {
        self.events > 0 && self.bytes > 0
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.events -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub events: Vec<Stored>,
    /// Where to read on; equal to `head` when there is nothing more yet.
    pub next: u64,
    /// The last event of the session.
    pub head: u64,
}

impl Page {
    /// There is nothing more yet.
    pub fn is_last(&self) -> bool {
        self.next >= self.head
    }
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub seq: u64,
    /// The event's own time, or when it was stored.
    pub at: Timestamp,
    pub kind: BodyKind,
    pub line: Bytes,
    /// How many bytes of it were not stored, see [`crate::Truncate`]; 0 for a whole event.
    pub cut: u64,
    /// The stored event is damaged; the line is a notice in its place.
    pub is_damaged: bool,
}

impl Stored {
    /// `None` for a kind that a later version has stored.
    pub fn event(&self) -> Option<Event<'_>> {
        Event::from_json(str::from_utf8(&self.line).ok()?).ok()
    }
}

/// The agent's frame, beside the first event that came from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFrame {
    pub seq: u64,
    pub bytes: Bytes,
    /// How many bytes of it were not stored.
    pub cut: u64,
}
