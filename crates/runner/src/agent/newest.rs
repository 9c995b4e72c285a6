//! The newest session of a directory: which one it is only the agent knows, and tells when it works already.
//!
//! Where the events of the agent go on depends on it. So what the agent says until then is held, and shown to
//! a reader that looks for nothing but the name. Once the caller has said where the session is kept, the held
//! frames are read as if they came now.

use model::{Body, Event, Frame, Reader, RunId};

use super::{Agent, ReaderConfig, ResumePoint};
use crate::live_run::StampingSink;
use crate::stderr::StderrEvent;

/// Bytes held at most; an agent that has not named its session by then goes on without a name.
const MAX_HELD: usize = 8 << 20;

/// Makes the reader of a format.
pub(super) type MakeReader = fn(&ReaderConfig) -> Box<dyn Reader>;

/// What an agent has said while nobody knows where it is kept.
#[derive(Debug)]
pub(super) struct Newest {
    make: MakeReader,
    config: ReaderConfig,
    probe: Box<dyn Reader>,
    native: Option<String>,
    held: Held,
    n_bytes: usize,
}

/// What is to be told once it is known where.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: Vec<OwnedFrame>,
    stderr: Vec<StderrEvent>,
}

#[derive(Debug)]
enum OwnedFrame {
    Data(Vec<u8>),
    Oversized { length: u64, head: Vec<u8> },
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
        if native.is_none() {
            probe.frame(frame, &mut |event: &Event<'_>| {
                if let Body::SessionBound(bound) = &event.body {
                    native.get_or_insert_with(|| bound.native.to_string());
                }
            });
        }
        let owned = OwnedFrame::of(frame);
        self.n_bytes += owned.length();
        self.held.frames.push(owned);
    }

    pub(super) fn hold_stderr(&mut self, said: Vec<StderrEvent>) {
        self.held.stderr.extend(said);
    }

    /// The name of the session, once the agent has said it.
    pub(super) fn native(&self) -> Option<&str> {
        self.native.as_deref()
    }

    /// There is nothing more to wait for.
    pub(super) fn is_decided(&self) -> bool {
        self.native.is_some() || self.n_bytes > MAX_HELD
    }
}

impl OwnedFrame {
    fn of(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Data(data) => Self::Data(data.to_vec()),
            Frame::Oversized { length, head } => Self::Oversized {
                length,
                head: head.to_vec(),
            },
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Data(data) => data.len(),
            Self::Oversized { head, .. } => head.len(),
        }
    }

    fn by_ref(&self) -> Frame<'_> {
        match self {
            Self::Data(data) => Frame::Data(data),
            Self::Oversized { length, head } => Frame::Oversized {
                length: *length,
                head,
            },
        }
    }
}

/// Where the events of the newest session go on.
#[derive(Debug)]
pub struct Place {
    /// linkspan's own id of the session.
    pub session: String,
    pub earlier: ResumePoint,
    /// The run of the prompt, when it was told already.
    pub announced: Option<RunId<'static>>,
}

impl Agent {
    /// After [`super::Step::Found`]: says where the session is kept. What the agent has said so far is told with
    /// the next step. Without a place it is a session like any new one.
    pub fn place(&mut self, place: Option<Place>) {
        let Some(mut newest) = self.newest.take() else {
            return;
        };
        if let Some(place) = place {
            let n_runs = place.earlier.previous.n_runs;
            self.live.is_kept_in(&place.session);
            self.live.continue_from(place.earlier.seq, n_runs);
            newest.config.session = place.session;
            newest.config.previous = place.earlier.previous;
            if let Some(run) = place.announced {
                self.live.set_announced(run);
            }
        }
        self.reader = (newest.make)(&newest.config);
        self.held_back = Some(newest.held);
    }

    /// Tells what was held; false when nothing was.
    pub(super) fn tell_held(&mut self, sink: &mut dyn model::Sink) -> bool {
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
    use model::Sink as _;
    match newest {
        Some(newest) => newest.hold(frame),
        None => {
            passing.frame(frame);
            reader.frame(frame, passing);
        }
    }
}
