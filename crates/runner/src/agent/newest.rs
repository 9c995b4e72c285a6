//! The newest session of a directory: only the agent knows which one it is, and reports it when it works already.
//!
//! The numbers of its events depend on it. So the agent's output is held until then, and shown to a reader that
//! looks for nothing but the session's id. Once the caller has named the place of the session in the journal, the
//! held frames are read as if they came now.

use model::{Body, Event, Frame, Reader, RunId, Sink};

use super::{Agent, ReaderConfig, ResumePoint};
use crate::live_run::StampingSink;
use crate::stderr::StderrEvent;

/// Bytes held at most; an agent that has not named its session by then continues without an id.
const MAX_HELD: usize = 8 << 20;

/// Makes the reader of a format.
pub(super) type MakeReader = fn(&ReaderConfig) -> Box<dyn Reader>;

/// The output of an agent whose session is not known yet.
#[derive(Debug)]
pub(super) struct Newest {
    make: MakeReader,
    config: ReaderConfig,
    probe: Box<dyn Reader>,
    native: Option<String>,
    held: Held,
    n_bytes: usize,
}

/// What is emitted once the session is known.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: Vec<HeldFrame>,
    stderr: Vec<StderrEvent>,
}

#[derive(Debug)]
struct HeldFrame {
    bytes: Vec<u8>,
    /// The length of a frame of which these bytes are the beginning.
    oversized: Option<u64>,
}

impl Newest {
    pub(super) fn new(make: MakeReader, config: ReaderConfig) -> Self {
        Self {
            probe: make(&config),
            make,
            config,
            native: None,
            held: Held::default(),
            n_bytes: 0,
        }
    }

    pub(super) fn hold(&mut self, frame: Frame<'_>) {
        let Self { probe, native, .. } = self;
        // With the id known the probe has done its work, and must not read on for nothing.
        if native.is_none() {
            probe.frame(frame, &mut |event: &Event<'_>| {
                if let Body::SessionBound(bound) = &event.body {
                    native.get_or_insert_with(|| bound.native.to_string());
                }
            });
        }
        let held = HeldFrame::new(frame);
        self.n_bytes += held.bytes.len();
        self.held.frames.push(held);
    }

    pub(super) fn hold_stderr(&mut self, events: Vec<StderrEvent>) {
        self.held.stderr.extend(events);
    }

    /// The agent's id of the session, once it has named it.
    pub(super) fn native(&self) -> Option<&str> {
        self.native.as_deref()
    }

    /// The session is known, or the agent has printed too much to wait any longer.
    pub(super) fn is_decided(&self) -> bool {
        self.native.is_some() || self.n_bytes > MAX_HELD
    }
}

impl HeldFrame {
    fn new(frame: Frame<'_>) -> Self {
        let (bytes, oversized) = match frame {
            Frame::Data(data) => (data, None),
            Frame::Oversized { length, head } => (head, Some(length)),
        };
        let bytes = bytes.to_vec();
        Self { bytes, oversized }
    }

    fn by_ref(&self) -> Frame<'_> {
        let head = &self.bytes;
        match self.oversized {
            None => Frame::Data(head),
            Some(length) => Frame::Oversized { length, head },
        }
    }
}

/// Where the events of the newest session continue.
#[derive(Debug)]
pub struct Place {
    /// linkspan's own id of the session.
    pub session: String,
    pub earlier: ResumePoint,
    /// The run of the prompt, if it was announced.
    pub announced: Option<RunId<'static>>,
}

impl Agent {
    /// After [`super::Step::Found`]: sets the place of the session in the journal. The held events are emitted with
    /// the next step. Without a place it is a session like any new one.
    pub fn place(&mut self, place: Option<Place>) {
        let Some(mut newest) = self.newest.take() else {
            return;
        };
        if let Some(place) = place {
            let n_runs = place.earlier.previous.n_runs;
            self.live.session.clone_from(&place.session);
            self.live.continue_from(place.earlier.seq, n_runs);
            newest.config.session = place.session;
            newest.config.previous = place.earlier.previous;
            if let Some(run) = place.announced {
                self.live.set_announced(run);
            }
        }
        // A new reader, because the names of runs and items depend on what the session holds.
        self.reader = (newest.make)(&newest.config);
        self.held_back = Some(newest.held);
    }

    /// Emits what was held; false when nothing was.
    pub(super) fn emit_held(&mut self, sink: &mut dyn Sink) -> bool {
        let Some(held) = self.held_back.take() else {
            return false;
        };
        let now = super::now();
        let mut passing = self.live.sink(sink, now);
        for frame in &held.frames {
            read(&mut None, &mut *self.reader, frame.by_ref(), &mut passing);
        }
        self.live.on_stderr(sink, now, &held.stderr);
        true
    }
}

/// Reads a frame, or holds it.
pub(super) fn read(
    newest: &mut Option<Newest>,
    reader: &mut dyn Reader,
    frame: Frame<'_>,
    passing: &mut StampingSink<'_>,
) {
    match newest {
        Some(newest) => newest.hold(frame),
        None => {
            passing.frame(frame);
            reader.frame(frame, passing);
        }
    }
}
