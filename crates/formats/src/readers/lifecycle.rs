//! What every reader owes its events: numbers without gaps, ids used once, everything closed, one end.
//!
//! A reader says what it saw; the lifecycle keeps what is open and makes the sequence lawful. An
//! item that is closed without having been opened is opened first; one that is still open when the
//! run ends is closed before it; streamed text and the final text are reconciled here.
//! All state is bounded: see the constants.

mod asks;
mod item_ids;
mod items;
mod notices;
mod open_items;
mod streamed;

use std::borrow::Cow;

use model::{
    Body, Cause, Decision, Event, ItemId, Origin, Outcome, Raw, RunEnded, RunId, RunStarted,
    SessionId, Sink, Status, Text, Timestamp, Why,
};

use self::asks::AskInProgress;
pub use self::item_ids::ItemIds;
pub(crate) use self::notices::{MAX_KEPT, raw};
use self::open_items::OpenItem;
pub(crate) use self::streamed::StreamedText;
use super::input::Direction;
use super::session_tracker::SessionTracker;
use super::{ReaderConfig, RunEnds};
use crate::errors;

/// What a frame says about itself, and where its events go.
pub(crate) struct FrameContext<'c> {
    pub(crate) sink: &'c mut dyn Sink,
    /// The agent's own id of the frame.
    pub(crate) native: Option<Cow<'c, str>>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) origin: Origin,
    /// Known only in a recording of both directions.
    pub(crate) direction: Option<Direction>,
    pub(crate) path: Cow<'c, [ItemId<'static>]>,
    /// Goes onto the first event of the frame.
    pub(crate) extra: Vec<(Cow<'c, str>, Raw<'c>)>,
    pub(crate) why: Option<Why>,
    /// The number of the frame; absent when no frame says it.
    pub(crate) frame: Option<u64>,
    /// The message of the frame as it came; empty when no frame says it.
    pub(crate) message: &'c str,
}

impl<'c> FrameContext<'c> {
    pub(crate) fn new(sink: &'c mut dyn Sink) -> Self {
        Self {
            sink,
            native: None,
            at: None,
            origin: Origin::Agent,
            direction: None,
            path: Cow::Borrowed(&[]),
            extra: Vec::new(),
            why: None,
            frame: None,
            message: "",
        }
    }
}

/// What may begin a run after one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    /// Nothing: the agent was given one prompt.
    Never,
    /// A frame that says that a turn begins.
    Announced,
    /// Whatever belongs to a run.
    Anything,
}

#[derive(Clone, Debug)]
pub(crate) struct Lifecycle {
    pub(crate) session: SessionTracker,
    envelope: Envelope,
    n_frames: u64,
    n_runs: u64,
    /// Runs that the session had before this stream.
    n_earlier: u64,
    restart: Restart,
    /// The name of the next run, when another program has given it one.
    next_run: Option<RunId<'static>>,
    open: Vec<OpenItem>,
    asks: Vec<AskInProgress>,
    used: ItemIds,
    /// What the agent printed last that is no message, if nothing else came after it.
    last_words: Option<String>,
}

/// What every event says around its body.
#[derive(Clone, Debug)]
struct Envelope {
    session: SessionId<'static>,
    engine: Cow<'static, str>,
    seq: u64,
    run: Option<RunId<'static>>,
}

impl Envelope {
    fn emit(&mut self, cx: &mut FrameContext<'_>, path: &[ItemId<'static>], body: Body<'_>) {
        self.seq += 1;
        let extra = std::mem::take(&mut cx.extra);
        let event = Event {
            seq: self.seq,
            at: cx.at,
            session: self.session.by_ref(),
            run: self.run.as_ref().map(RunId::by_ref),
            engine: Cow::Borrowed(&*self.engine),
            path: Cow::Borrowed(path),
            origin: if cx.why.is_some() {
                Origin::Linkspan
            } else {
                cx.origin
            },
            frame: cx.frame,
            native: cx.native.as_deref().map(Cow::Borrowed),
            why: cx.why,
            extra: Cow::Owned(extra),
            body,
        };
        cx.sink.owned_event(event);
    }
}

impl Lifecycle {
    pub(crate) fn new(engine: impl Into<Cow<'static, str>>, config: &ReaderConfig) -> Self {
        Self {
            session: SessionTracker::new(config),
            envelope: Envelope {
                session: SessionId::new(config.session.clone()),
                engine: engine.into(),
                seq: 0,
                run: None,
            },
            n_frames: 0,
            n_runs: 0,
            n_earlier: config.previous.n_runs,
            restart: match config.run_ends {
                RunEnds::AtExit => Restart::Never,
                RunEnds::AtNextTurn | RunEnds::AtResult => Restart::Anything,
            },
            next_run: None,
            open: Vec::new(),
            asks: Vec::new(),
            used: config.previous.items.clone(),
            last_words: None,
        }
    }

    /// The format says where a turn begins: what comes between two turns belongs to neither.
    pub(crate) fn with_announced_turns(mut self) -> Self {
        if self.restart == Restart::Anything {
            self.restart = Restart::Announced;
        }
        self
    }

    /// Another program prints this format.
    pub(crate) fn set_engine_turns(&mut self, engine: &'static str) {
        self.envelope.engine = Cow::Borrowed(engine);
    }

    /// A new frame is being read; returns its number.
    pub(crate) fn next_frame(&mut self) -> u64 {
        self.n_frames += 1;
        self.n_frames
    }

    pub(crate) fn has_run(&self) -> bool {
        self.envelope.run.is_some()
    }

    pub(crate) fn n_runs(&self) -> u64 {
        self.n_runs
    }

    /// True when a run has ended and none is under way.
    pub(crate) fn has_ended(&self) -> bool {
        self.n_runs > 0 && !self.has_run()
    }

    /// True between the end of a run and the announcement of the next.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended() && self.restart != Restart::Anything
    }

    /// True when the agent was given one prompt: there is no second run.
    pub(crate) fn has_one_run(&self) -> bool {
        self.restart == Restart::Never
    }

    pub(crate) fn emit(&mut self, cx: &mut FrameContext<'_>, body: Body<'_>) {
        let path = std::mem::take(&mut cx.path);
        let told = self.used.renamed_path(&path);
        self.emit_at(cx, &told, body);
        cx.path = path;
    }

    fn emit_at(&mut self, cx: &mut FrameContext<'_>, path: &[ItemId<'static>], body: Body<'_>) {
        self.envelope.emit(cx, path, body);
    }

    /// Emits with a reason why linkspan made it up.
    fn emit_because(
        &mut self,
        cx: &mut FrameContext<'_>,
        path: &[ItemId<'static>],
        why: Why,
        body: Body<'_>,
    ) {
        let before = cx.why.replace(cx.why.unwrap_or(why));
        self.emit_at(cx, path, body);
        cx.why = before;
    }

    /// Starts a run, unless one is under way or the only one is over.
    pub(crate) fn start_run(&mut self, cx: &mut FrameContext<'_>, cause: Cause) {
        if self.envelope.run.is_some() {
            return;
        }
        if self.n_runs > 0 && self.has_one_run() {
            return self.after_end(cx);
        }
        self.n_runs += 1;
        let run = self
            .next_run
            .take()
            .unwrap_or_else(|| RunId::new(format!("r{}", self.n_earlier + self.n_runs)));
        self.envelope.run = Some(run);
        self.emit_at(cx, &[], Body::RunStarted(RunStarted { cause }));
    }

    /// Something that belongs to a run: a stream may begin in the middle of one. False when the run
    /// it belongs to is over.
    fn join_run(&mut self, cx: &mut FrameContext<'_>) -> bool {
        if self.is_over() {
            self.after_end(cx);
            return false;
        }
        self.start_run(cx, Cause::Prompt);
        true
    }

    /// Closes everything and ends the run; without a run there is nothing to end.
    pub(crate) fn end_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        if self.envelope.run.is_none() {
            return;
        }
        self.settle_error(cx, &mut ended);
        // An abort is a decision about what was under way; any other end just leaves it behind.
        let (left_open, decision) = match ended.outcome {
            Outcome::Aborted => (Status::Cancelled, Decision::Withdrawn),
            Outcome::Completed
            | Outcome::Failed
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => (Status::Lost, Decision::Lost),
        };
        self.settle_all(cx, decision);
        while let Some(open) = self.open.pop() {
            self.close_left_open(cx, open, left_open);
        }
        self.emit_at(cx, &[], Body::RunEnded(ended));
        self.envelope.run = None;
    }

    /// Gives an error its code. Where the agent just stopped, its last words are the reason.
    fn settle_error(&mut self, cx: &FrameContext<'_>, ended: &mut RunEnded<'_>) {
        let words = self.last_words.take();
        let Some(error) = &mut ended.error else {
            return;
        };
        let is_made_up = matches!(cx.why, Some(Why::ProcessExit | Why::MissingEnd));
        let has_failed = matches!(ended.outcome, Outcome::Failed | Outcome::Lost);
        if let Some(words) = words.filter(|_| is_made_up && has_failed) {
            error.message = Text::new(format!("{}\n{words}", error.message));
        }
        errors::settle(error);
    }

    /// Takes over the names of an event that was written before, and where its numbers began.
    pub(crate) fn adopt(&mut self, event: &Event<'_>) {
        if self.envelope.seq == 0 {
            // Half the numbers are left for what follows, however wild the file's own are.
            self.envelope.seq = event.seq.saturating_sub(1).min(u64::MAX / 2);
        }
        if self.envelope.session != event.session {
            self.envelope.session = event.session.clone().into_owned();
        }
        if self.envelope.engine != event.engine {
            self.envelope.engine = Cow::Owned(event.engine.clone().into_owned());
        }
        // Its names may be taken by runs of the same session that it knows nothing of.
        if let (None, Some(run), 0) = (&self.envelope.run, &event.run, self.n_earlier) {
            self.next_run = Some(run.clone().into_owned());
        }
    }
}
