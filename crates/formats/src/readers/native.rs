//! The agent's own session where any line may name it, and what an end without a last word means.
//!
//! The first line that names a session binds it. Another one than the one asked for fails the run.

use std::borrow::Cow;

use model::{
    Binding, Body, Cause, End, Exit, Outcome, RunEnded, RunError, SessionBound, SessionId, Status,
    Text, Why,
};

use super::ReaderConfig;
use super::lifecycle::{Context, Lifecycle};

#[derive(Clone, Debug)]
pub(super) struct Native {
    expect: Option<String>,
    known: Option<String>,
    /// There was a `session.bound` for it.
    is_told: bool,
    /// Another session answered than the one asked for: nothing after that counts.
    is_lost: bool,
    n_ignored: u64,
}

/// What a line's session is to the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The known one, or the first.
    Same,
    Other,
    /// Not the one that was asked for.
    Wrong,
}

impl Native {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        Self {
            expect: config.expect.clone(),
            known: None,
            is_told: false,
            is_lost: false,
            n_ignored: 0,
        }
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.known.as_deref()
    }

    pub(super) fn expected(&self) -> Option<&str> {
        self.expect.as_deref()
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// True when the frame is of no use any more; it is counted.
    pub(super) fn ignores(&mut self) -> bool {
        self.n_ignored += u64::from(self.is_lost);
        self.is_lost
    }

    /// A line names its session.
    pub(super) fn meet(&mut self, id: &str) -> Met {
        match (&self.known, &self.expect) {
            (Some(known), _) if known == id => Met::Same,
            (Some(_), _) => Met::Other,
            (None, Some(expect)) if expect != id => Met::Wrong,
            (None, _) => {
                self.known = Some(id.to_owned());
                Met::Same
            }
        }
    }

    /// The session is over; the next line may name another.
    pub(super) fn forget(&mut self) {
        self.known = None;
        self.is_told = false;
    }

    /// Tells the session by its bare id, unless somebody told it before.
    pub(super) fn tell(&mut self, lifecycle: &mut Lifecycle, cx: &mut Context<'_>) {
        if self.is_told {
            return;
        }
        let Some(id) = self.known.clone() else { return };
        let extra = std::mem::take(&mut cx.extra);
        self.bind(lifecycle, cx, bound(&id));
        cx.extra = extra;
    }

    /// Tells the session with what it says about itself; how it came to be known is filled in here.
    pub(super) fn bind(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut Context<'_>,
        mut bound: SessionBound<'_>,
    ) {
        bound.how = match (self.is_told, &self.expect) {
            (true, _) => Binding::Repeat,
            (false, Some(_)) => Binding::Resume,
            (false, None) => Binding::Init,
        };
        self.is_told = true;
        let path = std::mem::take(&mut cx.path);
        lifecycle.emit(cx, Body::SessionBound(bound));
        cx.path = path;
    }

    /// Another session answers: the run fails, and says which one was wanted.
    pub(super) fn wrong(
        &mut self,
        lifecycle: &mut Lifecycle,
        cx: &mut Context<'_>,
        got: &str,
        answer: Option<Text<'_>>,
    ) {
        let wanted = self.known.take().or(self.expect.clone());
        let wanted = wanted.unwrap_or_default();
        cx.extra.clear();
        lifecycle.start_run(cx, Cause::Prompt);
        let mut mismatch = bound(got);
        mismatch.how = Binding::Mismatch;
        lifecycle.emit(cx, Body::SessionBound(mismatch));
        let message = match self.expect {
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
        self.is_lost = self.expect.is_some();
        self.forget();
    }

    /// The stream is over: true when its end was told before, and nothing else is to be said.
    pub(super) fn is_over(&self, lifecycle: &mut Lifecycle, cx: &mut Context<'_>) -> bool {
        if self.is_lost {
            lifecycle.ignored(cx, self.n_ignored);
        }
        self.is_lost || (lifecycle.n_runs() > 0 && !lifecycle.has_run())
    }

    /// Sees to it that there is a run to end, of the session that was asked for if no other is known.
    pub(super) fn begin_last(&mut self, lifecycle: &mut Lifecycle, cx: &mut Context<'_>, why: Why) {
        if self.known.is_none() && self.expect.is_some() {
            // Nobody answered, but whoever asked for a session can ask for it again.
            self.known = self.expect.clone();
            cx.why = Some(why);
            self.tell(lifecycle, cx);
            cx.why = None;
        }
        self.tell(lifecycle, cx);
        lifecycle.start_run(cx, Cause::Prompt);
    }

    /// What an end without a last word means.
    pub(super) fn missing_end(&self, engine: &str, end: &End) -> Missing {
        let exit = |code, message| Missing {
            outcome: Outcome::Failed,
            why: Why::ProcessExit,
            code,
            message,
        };
        match end.exit {
            _ if end.aborted => Missing {
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
            None => Missing {
                outcome: Outcome::Lost,
                why: Why::MissingEnd,
                code: "missing_end",
                message: "the stream ended without a result".to_owned(),
            },
        }
    }
}

/// How a run ended that did not say so.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    pub(super) outcome: Outcome,
    pub(super) why: Why,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Missing {
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

/// A session of which no more than its id is known.
pub(super) fn bound(native: &str) -> SessionBound<'static> {
    SessionBound::new(SessionId::new(native.to_owned()), Binding::Init)
}
