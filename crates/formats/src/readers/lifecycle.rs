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
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::{
    Body, Cause, Decision, Denial, Event, ItemId, Origin, Outcome, Raw, RunEnded, RunId,
    RunStarted, SessionId, Sink, Status, Text, Timestamp, Tool, Why,
};

use self::asks::AskInProgress;
pub use self::item_ids::ItemIds;
pub(crate) use self::item_ids::SeenIds;
pub(crate) use self::notices::{MAX_KEPT, raw};
use self::open_items::OpenItem;
pub(crate) use self::streamed::StreamedText;
use super::input::Direction;
use super::session_tracker::SessionTracker;
use super::{ReaderConfig, RunEnds};
use crate::errors;
use crate::wire::lenient::Any;

/// Denied calls repeated with the end of a run.
const MAX_DENIALS: usize = 256;

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
    /// A notice after the end of the run has kept the message already.
    pub(super) is_kept: bool,
}

/// Where an event belongs that can only be emitted later.
#[derive(Clone, Debug)]
pub(crate) struct HeldFrame {
    native: Option<String>,
    at: Option<Timestamp>,
    frame: Option<u64>,
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
            is_kept: false,
        }
    }

    /// The message, to be kept beside what was read of it.
    pub(crate) fn raw(&self) -> Raw<'c> {
        raw(self.message)
    }

    /// Keeps a field that the event has no place for.
    pub(crate) fn keep(&mut self, key: &'static str, value: Any<'c>) {
        let value = value.raw();
        self.extra.extend(value.map(|it| (Cow::Borrowed(key), it)));
    }

    /// True when the frame has a field of that name that no rule reads.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.extra.iter().any(|(name, _)| name == key)
    }

    /// Emits events that are not the frame's own: its fields are left for the next one.
    pub(crate) fn without_extra(&mut self, emit: impl FnOnce(&mut Self)) {
        let extra = std::mem::take(&mut self.extra);
        emit(self);
        self.extra = extra;
    }

    /// Emits events that linkspan makes up.
    pub(crate) fn because(&mut self, why: Option<Why>, emit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.why, why);
        emit(self);
        self.why = before;
    }

    /// Emits events inside of another sub-agent than the frame's.
    pub(crate) fn inside(&mut self, path: &[ItemId<'static>], emit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.path, Cow::Owned(path.to_vec()));
        emit(self);
        self.path = before;
    }

    pub(crate) fn hold(&self) -> HeldFrame {
        HeldFrame {
            native: self.native.as_deref().map(str::to_owned),
            at: self.at,
            frame: self.frame,
        }
    }

    /// Emits events of a frame that was held.
    pub(crate) fn as_of(&mut self, held: HeldFrame, emit: impl FnOnce(&mut Self)) {
        let before = (self.native.take(), self.at, self.frame);
        (self.at, self.frame) = (held.at, held.frame);
        self.native = held.native.map(Cow::Owned);
        self.without_extra(emit);
        (self.native, self.at, self.frame) = before;
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
    pub(crate) run_ends: RunEnds,
    restart: Restart,
    /// The name of the next run, when another program has given it one.
    next_run: Option<RunId<'static>>,
    open: Vec<OpenItem>,
    asks: Vec<AskInProgress>,
    used: ItemIds,
    /// The last text of the agent itself: the run's answer, unless its end says another.
    pub(crate) answer: Option<Text<'static>>,
    denials: Vec<Denial<'static>>,
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
        // A field is kept once, however many events its frame becomes.
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

impl Default for Lifecycle {
    /// What a reader has before it is configured.
    fn default() -> Self {
        Self::new("", &ReaderConfig::default())
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
            run_ends: config.run_ends,
            restart: match config.run_ends {
                RunEnds::AtExit => Restart::Never,
                RunEnds::AtNextTurn | RunEnds::AtResult => Restart::Anything,
            },
            next_run: None,
            open: Vec::new(),
            asks: Vec::new(),
            used: config.previous.items.clone(),
            answer: None,
            denials: Vec::new(),
            last_words: None,
        }
    }

    /// The format says where a turn begins: what comes between two turns belongs to neither.
    pub(crate) fn expect_announced_turns(&mut self) {
        // `Never` stays: the process was given one prompt, whatever it announces.
        if self.restart == Restart::Anything {
            self.restart = Restart::Announced;
        }
    }

    /// Another program prints this format.
    pub(crate) fn set_engine(&mut self, engine: &'static str) {
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
        // Taken, not borrowed: `emit_at` needs the context mutably.
        let path = std::mem::take(&mut cx.path);
        let renamed = self.used.renamed_path(&path);
        self.emit_at(cx, &renamed, body);
        cx.path = path;
    }

    fn emit_at(&mut self, cx: &mut FrameContext<'_>, path: &[ItemId<'static>], body: Body<'_>) {
        self.envelope.emit(cx, path, body);
    }

    /// Emits the end of what the run leaves open.
    fn emit_left_open(
        &mut self,
        cx: &mut FrameContext<'_>,
        path: &[ItemId<'static>],
        body: Body<'_>,
    ) {
        let why = cx.why.unwrap_or(Why::LeftOpen);
        cx.because(Some(why), |cx| self.emit_at(cx, path, body));
    }

    /// Starts a run, unless one is under way or the only one is over.
    pub(crate) fn start_run(&mut self, cx: &mut FrameContext<'_>, cause: Cause) {
        self.start_this_run(cx, RunStarted::new(cause));
    }

    /// The same with all that is known of its start.
    pub(super) fn start_this_run(&mut self, cx: &mut FrameContext<'_>, started: RunStarted) {
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
            // Numbered over all streams of the session: a resumed one repeats no name.
            .unwrap_or_else(|| RunId::new(format!("r{}", self.n_earlier + self.n_runs)));
        self.envelope.run = Some(run);
        // A run is never inside a sub-agent, whichever line starts it.
        self.emit_at(cx, &[], Body::RunStarted(started));
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

    /// The agent has written a text; a sub-agent's is no answer.
    pub(crate) fn note_answer(&mut self, cx: &FrameContext<'_>, text: &Text<'_>) {
        if cx.path.is_empty() && !text.is_empty() {
            self.answer = Some(text.clone().into_owned());
        }
    }

    /// A call was not allowed: the end of the run repeats it.
    pub(crate) fn deny(&mut self, tool: &Tool<'_>) {
        if self.denials.len() < MAX_DENIALS {
            self.denials.push(Denial {
                tool: Cow::Owned(tool.name.clone().into_owned()),
                item: Some(tool.id.clone().into_owned()),
                input: tool.input.clone().map(Raw::into_owned),
            });
        }
    }

    /// Closes everything and ends the run; without a run there is nothing to end.
    pub(crate) fn end_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        // Also without a run: what was read between two runs is no answer of the next one.
        let (answer, denials) = (self.answer.take(), std::mem::take(&mut self.denials));
        if self.envelope.run.is_none() {
            return;
        }
        ended.answer = ended.answer.or(answer);
        ended.denials.extend(denials);
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
        // Asks first: a client must not be asked about a call that has ended.
        self.settle_all(cx, decision);
        // From the last to the first: what was opened inside of something ends before it.
        while let Some(open) = self.open.pop() {
            self.close_left_open(cx, open, left_open);
        }
        self.emit_at(cx, &[], Body::RunEnded(ended));
        // After the event: the end still carries the name of its run.
        self.envelope.run = None;
    }

    /// Gives an error its code. Where the agent just stopped, its last words are the reason.
    fn settle_error(&mut self, cx: &FrameContext<'_>, ended: &mut RunEnded<'_>) {
        // Taken in any case: words before this end explain no later one.
        let words = self.last_words.take();
        let Some(error) = &mut ended.error else {
            return;
        };
        let is_made_up = matches!(cx.why, Some(Why::ProcessExit | Why::MissingEnd));
        let has_failed = matches!(ended.outcome, Outcome::Failed | Outcome::Lost);
        // An abort was asked for and a limit explains itself: printed words are not their reason.
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
