//! Tracks the agent's own session, which any line may name, and synthesizes a missing end.
//!
//! The first line that names a session binds it. A session other than the requested one fails the
//! run.

use std::borrow::Cow;

use model::{
    Binding, Body, Cause, End, Exit, Outcome, RunEnded, RunError, SessionBound, SessionId, Status,
    Text, Why,
};

use super::ReaderConfig;
use super::lifecycle::{FrameContext, Lifecycle};

#[derive(Clone, Debug)]
pub(super) struct SessionTracker {
    expected: Option<String>,
    known: Option<String>,
    /// A `session.bound` was emitted for it.
    is_bound: bool,
    /// Another session than the requested one answered: ignore everything after that.
    is_mismatch: bool,
    n_ignored: u64,
}

/// How a line's session compares to the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionMatch {
    /// The known one, or the first.
    Same,
    Other,
    /// Not the requested one.
    Wrong,
}

impl SessionTracker {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        Self {
            expected: config.expected_session.clone(),
            known: None,
            is_bound: false,
            is_mismatch: false,
            n_ignored: 0,
        }
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.known.as_deref()
    }

    pub(super) fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    pub(super) fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// True when the frame must be ignored; it is counted.
    pub(super) fn ignores(&mut self) -> bool {
        self.n_ignored += u64::from(self.is_mismatch);
        self.is_mismatch
    }

    /// A line names its session.
    pub(super) fn observe(&mut self, id: &str) -> SessionMatch {
        match (&self.known, &self.expected) {
            (Some(known), _) if known == id => SessionMatch::Same,
            (Some(_), _) => SessionMatch::Other,
            (None, Some(expect)) if expect != id => SessionMatch::Wrong,
            (None, _) => {
                self.known = Some(id.to_owned());
                SessionMatch::Same
            }
        }
    }

    /// The session is over; the next line may name another.
    pub(super) fn forget(&mut self) {
        self.known = None;
        self.is_bound = false;
    }

    /// Emits `session.bound` with the bare id, unless it was emitted before.
    pub(super) fn emit_bound(&mut self, lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>) {
        if self.is_bound {
            return;
        }
        let Some(id) = self.known.clone() else { return };
        let extra = std::mem::take(&mut cx.extra);
        self.bind(lifecycle, cx, bound(&id));
        cx.extra = extra;
    }

    /// Emits `session.bound` with the reported details; `how` is filled in here.
    pub(super) fn bind(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        mut bound: SessionBound<'_>,
    ) {
        bound.how = match (self.is_bound, &self.expected) {
            (true, _) => Binding::Repeat,
            (false, Some(_)) => Binding::Resume,
            (false, None) => Binding::Init,
        };
        self.is_bound = true;
        let path = std::mem::take(&mut cx.path);
        lifecycle.emit(cx, Body::SessionBound(bound));
        cx.path = path;
    }

    /// Another session answered: fails the run and names the requested one.
    pub(super) fn fail_mismatch(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        got: &str,
        answer: Option<Text<'_>>,
    ) {
        let wanted = self.known.take().or(self.expected.clone());
        let wanted = wanted.unwrap_or_default();
        cx.extra.clear();
        lifecycle.start_run(cx, Cause::Prompt);
        let mut mismatch = bound(got);
        mismatch.how = Binding::Mismatch;
        lifecycle.emit(cx, Body::SessionBound(mismatch));
        let message = match self.expected {
            Some(_) => format!("session `{wanted}` was asked for, the agent answered as `{got}`"),
            None => format!("the agent changed its session from `{wanted}` to `{got}`"),
        };
        let error = RunError {
            code: Cow::Borrowed("wrong_session"),
            message: Text::new(message),
            native: None,
        };
        let mut ended = RunEnded::new(Outcome::Failed, Some(error));
        ended.answer = answer;
        let before = cx.why.replace(Why::WrongSession);
        lifecycle.end_run(cx, ended, Status::Lost);
        cx.why = before;
        self.is_mismatch = self.expected.is_some();
        self.forget();
    }

    /// The stream has ended: true when the run's end was already emitted.
    pub(super) fn is_over(&self, lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>) -> bool {
        if self.is_mismatch {
            lifecycle.ignored(cx, self.n_ignored);
        }
        self.is_mismatch || (lifecycle.n_runs() > 0 && !lifecycle.has_run())
    }

    /// Ensures that there is a run to end, bound to the requested session if no other is known.
    pub(super) fn start_last_run(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut FrameContext<'_>,
        why: Why,
    ) {
        if self.known.is_none() && self.expected.is_some() {
            // No session was reported; bind the requested one so the user can resume it.
            self.known = self.expected.clone();
            cx.why = Some(why);
            self.emit_bound(lifecycle, cx);
            cx.why = None;
        }
        self.emit_bound(lifecycle, cx);
        lifecycle.start_run(cx, Cause::Prompt);
    }

    /// The outcome of a stream without an end.
    pub(super) fn missing_end(&self, engine: &str, end: &End) -> MissingEnd {
        let exit = |code, message| MissingEnd {
            outcome: Outcome::Failed,
            why: Why::ProcessExit,
            code,
            message,
        };
        match end.exit {
            _ if end.aborted => MissingEnd {
                outcome: Outcome::Aborted,
                why: Why::Abort,
                code: "aborted",
                message: "aborted".to_owned(),
            },
            Some(Exit::Code(0)) if self.known.is_none() => exit(
                "no_session",
                format!("{engine} finished but no session_id was captured"),
            ),
            Some(Exit::Code(0)) => exit(
                "missing_result",
                format!("{engine} finished without a result event"),
            ),
            Some(Exit::Code(code)) => exit("crashed", format!("{engine} failed (rc={code})")),
            Some(Exit::Signal(signal)) => {
                exit("crashed", format!("{engine} was ended by signal {signal}"))
            }
            None => MissingEnd {
                outcome: Outcome::Lost,
                why: Why::MissingEnd,
                code: "missing_end",
                message: "the stream ended without a result".to_owned(),
            },
        }
    }
}

/// The synthesized end of a run.
#[derive(Clone, Debug)]
pub(super) struct MissingEnd {
    pub(super) outcome: Outcome,
    pub(super) why: Why,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl MissingEnd {
    pub(super) fn ended(&self) -> RunEnded<'static> {
        let error = RunError {
            code: Cow::Borrowed(self.code),
            message: Text::new(self.message.clone()),
            native: None,
        };
        RunEnded::new(self.outcome, Some(error))
    }
}

/// How items end that a run leaves open.
pub(super) fn left_open(outcome: Outcome) -> Status {
    if outcome == Outcome::Aborted {
        Status::Cancelled
    } else {
        Status::Lost
    }
}

/// A session with only its id known.
pub(super) fn bound(native: &str) -> SessionBound<'static> {
    SessionBound::new(SessionId::new(native.to_owned()), Binding::Init)
}
