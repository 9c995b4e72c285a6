//! One machine for every format of an agent: framing, both directions, the session, and the end.
//!
//! A format says what its messages mean ([`MessageReader`]). What is around them is here, so that
//! one fate has one outcome, whichever agent met it.

use std::borrow::Cow;

use model::{
    Binding, Body, Cause, End, Frame, Origin, Outcome, Reader, RunEnded, SessionBound, SessionId,
    Sink, Timestamp, Why,
};

use super::ReaderConfig;
use super::input::{self, Direction};
use super::lifecycle::{FrameContext, Lifecycle};
use super::missing_end::MissingEnd;
use super::session_tracker::SessionMatch;

/// What the messages of one format mean.
pub(crate) trait MessageReader: Clone + Default + Send + 'static {
    const ENGINE: &str;
    /// Many agents use the format: the configuration names this one.
    const HAS_MANY_ENGINES: bool = false;
    /// How error messages call the agent's process.
    const AGENT: &str = Self::ENGINE;
    /// The format's own word for the id of a session, in error messages.
    const SESSION_ID: &str = "session_id";
    /// The format says where a turn begins: what comes between two turns belongs to neither.
    const ANNOUNCES_TURNS: bool = false;

    fn lifecycle(&mut self) -> &mut Lifecycle;

    fn agent(&self) -> &'static str {
        Self::AGENT
    }

    /// Reads a message of the agent, or of either side when the direction is not known.
    fn message(&mut self, cx: &mut FrameContext<'_>);

    /// Reads a message to the agent, from a recording of both directions.
    fn client_message(&mut self, cx: &mut FrameContext<'_>) {
        self.lifecycle().unmapped(cx, "message to the agent");
    }

    /// Ends the run, with the answer and whatever else is known of it.
    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.lifecycle().end_run(cx, ended);
    }

    /// Nothing follows: what was held back, because more could have followed, is final.
    fn flush(&mut self, _: &mut FrameContext<'_>) {}

    /// Starts the run of a prompt that waits for its turn; false when none does.
    fn start_queued(&mut self, _: &mut FrameContext<'_>) -> bool {
        false
    }

    /// True when the client has asked the agent to stop this run.
    fn was_interrupted(&self) -> bool {
        false
    }

    /// Changes the synthesized end where the agent gave a reason before its stream ended.
    fn judge(&mut self, _: &End, _: &mut MissingEnd) {}

    /// A line names the session it belongs to; false when it is the wrong one, and the run has
    /// failed over it.
    fn is_of_session(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|it| !it.is_empty()) else {
            return true;
        };
        match self.lifecycle().session.observe(id) {
            SessionMatch::Same => true,
            // A warning is enough: a stray line of another session does not make the run's own work
            // wrong.
            SessionMatch::Other => {
                self.lifecycle().warn_other_session(cx, id);
                true
            }
            SessionMatch::Wrong => {
                self.fail_mismatch(cx, id);
                false
            }
        }
    }

    /// The agent announces its session; false when it is the wrong one, and the run has failed
    /// over it.
    fn accepts_session(&mut self, cx: &mut FrameContext<'_>, id: &str) -> bool {
        let lifecycle = self.lifecycle();
        if lifecycle.session.observe(id) == SessionMatch::Other && !lifecycle.has_run() {
            // Two recordings in one file, or one connection that is used for another session.
            lifecycle.session.forget();
        }
        let is_accepted = lifecycle.session.observe(id) == SessionMatch::Same;
        if !is_accepted {
            self.fail_mismatch(cx, id);
        }
        is_accepted
    }

    /// Another session answers than the one asked for, or the one that the run began with.
    fn fail_mismatch(&mut self, cx: &mut FrameContext<'_>, got: &str) {
        cx.extra.clear();
        let lifecycle = self.lifecycle();
        // The wrong session may answer before any run: there has to be one that fails.
        start_unannounced(lifecycle, cx, Some(Why::WrongSession));
        let mismatch = SessionBound::new(SessionId::new(got), Binding::Mismatch);
        lifecycle.emit(cx, Body::SessionBound(mismatch));
        // After `session.bound`: from here on the session is forgotten.
        let error = lifecycle.session.mismatch(got);
        let ended = RunEnded::new(Outcome::Failed, Some(error));
        cx.because(Some(Why::WrongSession), |cx| self.end_run(cx, ended));
    }

    /// Another run begins, or the stream says that it is over, and nothing has ended this run.
    fn end_unfinished(&mut self, cx: &mut FrameContext<'_>) {
        if self.lifecycle().has_run() {
            cx.without_extra(|cx| {
                // What is held may be the missing end: then nothing is left to end here.
                self.flush(cx);
                let mut missing = MissingEnd::before_next(self.was_interrupted());
                self.judge(&End::default(), &mut missing);
                end_with(self, cx, missing);
            });
        }
    }
}

/// Reads the messages of one format out of frames.
#[derive(Clone)]
struct Machine<R> {
    reader: R,
    /// When a recording began that only tells seconds since then.
    started_at: Option<Timestamp>,
}

/// A reader of the format that `R` maps.
pub(crate) fn machine<R: MessageReader>(config: &ReaderConfig) -> Box<dyn Reader> {
    let mut reader = R::default();
    let engine = config.engine.clone().filter(|_| R::HAS_MANY_ENGINES);
    let engine = engine.map_or(Cow::Borrowed(R::ENGINE), Cow::Owned);
    *reader.lifecycle() = Lifecycle::new(engine, config);
    if R::ANNOUNCES_TURNS {
        reader.lifecycle().expect_announced_turns();
    }
    Box::new(Machine {
        reader,
        started_at: config.started_at,
    })
}

impl<R: MessageReader> Reader for Machine<R> {
    fn frame(&mut self, frame: Frame<'_>, sink: &mut dyn Sink) {
        let reader = &mut self.reader;
        let mut cx = FrameContext::new(sink);
        let Some(text) = input::text(reader.lifecycle(), &mut cx, frame) else {
            return;
        };
        // The run has failed over its session: nothing more of the stream belongs to what was asked
        // for.
        if reader.lifecycle().session.ignores() {
            return;
        }
        // The message is borrowed from `text`, which lives shorter than the sink.
        let mut cx = FrameContext {
            frame: cx.frame,
            ..FrameContext::new(cx.sink)
        };
        cx.message = input::unwrap(&mut cx, &text, self.started_at);
        if cx.direction == Some(Direction::ToAgent) {
            cx.origin = Origin::Client;
            reader.client_message(&mut cx);
        } else {
            reader.message(&mut cx);
        }
        // Last: fields that no event has taken are still worth a notice.
        reader.lifecycle().unread(&mut cx);
    }

    fn end(&mut self, end: &End, sink: &mut dyn Sink) {
        let (reader, cx) = (&mut self.reader, &mut FrameContext::new(sink));
        // The run has its end; another one would be a second end of the same prompt.
        if reader.lifecycle().session.is_mismatch() {
            return reader.lifecycle().report_ignored(cx);
        }
        reader.flush(cx);
        // Prompts that were sent and not answered are runs as well, each with an end of its own.
        let mut is_open = !reader.lifecycle().has_ended() || reader.start_queued(cx);
        while is_open {
            end_without_result(reader, cx, end);
            is_open = reader.start_queued(cx);
        }
    }

    fn clone_box(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

/// Ends a run that the stream left without an end; there is one even if nothing was read.
fn end_without_result(reader: &mut impl MessageReader, cx: &mut FrameContext<'_>, end: &End) {
    let mut missing = missing_end(reader, end);
    let refusal = reader.lifecycle().session.refusal.take();
    if let Some(refusal) = refusal.filter(|_| !missing.is_aborted()) {
        // A refused session cannot be resumed, so it is not bound.
        missing.fail_with(refusal);
    } else {
        cx.because(missing.why, |cx| reader.lifecycle().bind_expected(cx));
    }
    // Even an empty stream is a run: a client waits for its end.
    if !reader.lifecycle().has_run() {
        reader.lifecycle().emit_bound(cx);
        if !reader.start_queued(cx) {
            start_unannounced(reader.lifecycle(), cx, missing.why);
        }
    }
    end_with(reader, cx, missing);
}

/// Starts a run that the agent did not: whatever happens to a stream happens to a run.
fn start_unannounced(lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>, why: Option<Why>) {
    cx.because(why, |cx| lifecycle.start_run(cx, Cause::Prompt));
}

fn missing_end<R: MessageReader>(reader: &mut R, end: &End) -> MissingEnd {
    let end = End {
        // The caller knows of a stop that it asked for itself, the reader of one that it saw in the
        // stream.
        aborted: end.aborted || reader.was_interrupted(),
        ..end.clone()
    };
    let has_session = reader.lifecycle().session.id().is_some();
    let mut missing = MissingEnd::of_stream(reader.agent(), R::SESSION_ID, &end, has_session);
    reader.judge(&end, &mut missing);
    missing
}

pub(super) fn end_with(
    reader: &mut impl MessageReader,
    cx: &mut FrameContext<'_>,
    missing: MissingEnd,
) {
    let why = missing.why.or(cx.why);
    cx.because(why, |cx| reader.end_run(cx, missing.ended));
}
