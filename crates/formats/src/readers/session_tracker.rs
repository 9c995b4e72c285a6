//! The agent's own session: the requested one, the one that answers, and when they differ.
//!
//! Any line may name the session, and the first one that does settles it. A session other than the
//! requested one fails the run, and nothing after that counts.

use std::borrow::Cow;

use model::{Binding, Body, RunError, SessionBound, SessionId, Text};

use super::ReaderConfig;
use super::lifecycle::{FrameContext, Lifecycle};

#[derive(Clone, Debug)]
pub(crate) struct SessionTracker {
    expected: Option<String>,
    known: Option<String>,
    /// A `session.bound` was emitted for the known one.
    is_bound: bool,
    /// Another session on the same stream that a warning has named.
    other: Option<String>,
    /// Why there is no session: the agent's last answer to a request for one.
    pub(crate) refusal: Option<RunError<'static>>,
    /// Another session than the requested one answered.
    is_mismatch: bool,
    n_ignored: u64,
}

/// How a line's session compares to the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionMatch {
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
            other: None,
            refusal: None,
            is_mismatch: false,
            n_ignored: 0,
        }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.known.as_deref()
    }

    pub(crate) fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound
    }

    pub(super) fn is_mismatch(&self) -> bool {
        self.is_mismatch
    }

    /// True when the frame must be ignored; it is counted.
    pub(super) fn ignores(&mut self) -> bool {
        self.n_ignored += u64::from(self.is_mismatch);
        self.is_mismatch
    }

    /// A line names its session.
    pub(crate) fn observe(&mut self, id: &str) -> SessionMatch {
        match (&self.known, &self.expected) {
            (Some(known), _) if known == id => SessionMatch::Same,
            (Some(_), _) => SessionMatch::Other,
            (None, Some(expected)) if expected != id => SessionMatch::Wrong,
            (None, _) => {
                self.known = Some(id.to_owned());
                SessionMatch::Same
            }
        }
    }

    /// Takes a session as the known one, whichever was requested: a fork has a new id.
    pub(crate) fn adopt(&mut self, id: &str) {
        if self.id() != Some(id) {
            self.known = Some(id.to_owned());
            self.is_bound = false;
        }
    }

    /// The same, unless a session is known.
    pub(crate) fn adopt_first(&mut self, id: &str) {
        if self.known.is_none() {
            self.adopt(id);
        }
    }

    /// The session is over; the next line may name another.
    pub(crate) fn forget(&mut self) {
        self.known = None;
        self.is_bound = false;
    }

    /// The requested session failed to answer, `got` did. Returns what the run fails with.
    pub(super) fn mismatch(&mut self, got: &str) -> RunError<'static> {
        // The known session counts before the expected one: they differ when an agent changes in
        // mid-stream.
        let wanted = self.known.take().or(self.expected.clone());
        let wanted = wanted.unwrap_or_default();
        let message = match self.expected {
            Some(_) => format!("session `{wanted}` was asked for, the agent answered as `{got}`"),
            None => format!("the agent changed its session from `{wanted}` to `{got}`"),
        };
        // Without a request no session is wrong: the other one is read from here on.
        self.is_mismatch = self.expected.is_some();
        self.forget();
        RunError::new("wrong_session", Text::new(message))
    }
}

impl Lifecycle {
    /// Emits `session.bound` with the bare id, unless it was emitted before.
    pub(crate) fn emit_bound(&mut self, cx: &mut FrameContext<'_>) {
        if self.session.is_bound {
            return;
        }
        let Some(id) = self.session.known.clone() else {
            return;
        };
        // The frame's fields are left for its own event: this one is only made up on the way to it.
        let extra = std::mem::take(&mut cx.extra);
        self.bind(cx, bound(id));
        cx.extra = extra;
    }

    /// Emits `session.bound` with the reported details. `how` says how the session came to be; it
    /// is changed where the request or an earlier `session.bound` says otherwise.
    pub(crate) fn bind(&mut self, cx: &mut FrameContext<'_>, mut bound: SessionBound<'_>) {
        let session = &mut self.session;
        bound.how = match bound.how {
            // Claude announces its session again with every turn.
            _ if session.is_bound => Binding::Repeat,
            Binding::Init if session.expected.is_some() => Binding::Resume,
            how => how,
        };
        session.is_bound = true;
        // A session is never inside a sub-agent, even if a sub-agent's line names it first.
        let path = std::mem::take(&mut cx.path);
        self.emit(cx, Body::SessionBound(bound));
        cx.path = path;
    }

    /// The stream is over and no session was reported: binds the requested one, so that the user
    /// can resume it.
    pub(super) fn bind_expected(&mut self, cx: &mut FrameContext<'_>) {
        if let (None, Some(expected)) = (&self.session.known, self.session.expected.clone()) {
            self.session.adopt(&expected);
            self.emit_bound(cx);
        }
    }

    /// A line of another session than the known one; the first of each is reported.
    pub(super) fn warn_other_session(&mut self, cx: &mut FrameContext<'_>, id: &str) {
        // Only the last one is remembered: two that take turns are reported each time.
        if self.session.other.as_deref() != Some(id) {
            self.session.other = Some(id.to_owned());
            let text = format!("lines of another session, `{id}`");
            self.warn(cx, "other_session", text, None);
        }
    }

    /// Reports how many lines came after the wrong session had failed the run.
    pub(super) fn report_ignored(&mut self, cx: &mut FrameContext<'_>) {
        let n_lines = self.session.n_ignored;
        if n_lines > 0 {
            let text = format!("{n_lines} lines after the end were ignored");
            self.warn(cx, "ignored", text, None);
        }
    }
}

/// A session with only its id known.
pub(crate) fn bound<'a>(id: impl Into<Cow<'a, str>>) -> SessionBound<'a> {
    SessionBound::new(SessionId::new(id), Binding::Init)
}
