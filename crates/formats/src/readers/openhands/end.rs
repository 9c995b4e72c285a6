//! When a run begins and how it ends.
//!
//! Only a status says for certain that a run is over, and a log has none. Everything else that may
//! be the end (a message without a call, `finish`, a pause, an error) is held until something
//! follows, or nothing does.

use std::borrow::Cow;

use model::{Cause, Level, Notice, Outcome, RunEnded, RunError, Text};

use super::wire::Event;
use super::{FrameContext, OpenHands};
use crate::readers::RunEnds;
use crate::readers::lifecycle::HeldFrame;
use crate::readers::machine::MessageReader as _;

/// What looks like the end of the run, and where it was seen.
#[derive(Clone, Debug)]
pub(super) struct PossibleEnd {
    outcome: Outcome,
    error: Option<RunError<'static>>,
    /// Reported by a status: what follows is another run.
    is_certain: bool,
    frame: HeldFrame,
}

impl PossibleEnd {
    fn new(cx: &FrameContext<'_>, outcome: Outcome, error: Option<RunError<'static>>) -> Self {
        Self {
            outcome,
            error,
            is_certain: false,
            frame: cx.hold(),
        }
    }

    /// The agent has sent text without a tool call, or reported that it is done.
    pub(super) fn by_message(cx: &FrameContext<'_>) -> Self {
        Self::new(cx, Outcome::Completed, None)
    }
}

impl OpenHands {
    /// A message of the user: what looked like an end was one.
    pub(super) fn begin(&mut self, cx: &mut FrameContext<'_>) {
        self.finish_ending(cx);
        self.lifecycle.start_run(cx, Cause::Prompt);
    }

    /// The agent is active again, so what looked like an end was not one.
    pub(super) fn work(&mut self, cx: &mut FrameContext<'_>) {
        if self.ending.as_ref().is_some_and(|it| it.is_certain) {
            self.finish_ending(cx);
        } else if let Some(error) = self.ending.take().and_then(|it| it.error)
            // A pause that was taken back is no error; the notice of the pause itself was raised
            // before.
            && error.code != "aborted"
        {
            let notice = Notice::new(Level::Error, error.code, error.message);
            self.lifecycle.notice(cx, notice);
        }
        self.lifecycle.start_run(cx, Cause::Prompt);
    }

    pub(super) fn stop(
        &mut self,
        cx: &mut FrameContext<'_>,
        code: &'static str,
        text: &'static str,
    ) {
        self.lifecycle.raise(cx, Level::Info, code, text);
        // An agent that has finished cannot be stopped: the end it has stays.
        if self.lifecycle.has_run() && self.ending.is_none() {
            self.ending = Some(PossibleEnd::new(cx, Outcome::Aborted, Some(aborted())));
        }
    }

    pub(super) fn conversation_error(
        &mut self,
        cx: &mut FrameContext<'_>,
        event: &Event<'_>,
        was_interrupt: bool,
    ) {
        self.lifecycle.start_run(cx, Cause::Prompt);
        let code = event.code.as_deref().unwrap_or("error").to_owned();
        let detail = event.detail.text().unwrap_or_default();
        let outcome = if was_interrupt {
            Outcome::Aborted
        } else {
            outcome_of(&code)
        };
        let error = RunError::new(Cow::Owned(code), detail.into_owned());
        // The classification that comes along stays with the event that can hold it.
        if !cx.extra.is_empty() {
            let text = error.message.by_ref();
            self.lifecycle.raise(cx, Level::Debug, "error", text);
        }
        self.ending = Some(PossibleEnd::new(cx, outcome, Some(error)));
    }

    pub(super) fn status(&mut self, cx: &mut FrameContext<'_>, status: &str) {
        let failed = |code: &'static str, text: &'static str| RunError::new(code, Text::new(text));
        let (outcome, error) = match status {
            "finished" => (Outcome::Completed, None),
            "error" => {
                let error = failed("error", "the conversation failed");
                (Outcome::Failed, Some(error))
            }
            "stuck" => {
                let error = failed("stuck", "the agent repeats itself");
                (Outcome::Failed, Some(error))
            }
            "paused" => (Outcome::Aborted, Some(aborted())),
            "running" => return self.running(cx),
            "waiting_for_confirmation" => return self.ask(cx),
            _ => return,
        };
        if !self.lifecycle.has_run() {
            return;
        }
        // The error event before the status has the reason; the status alone only says `error`.
        let has_reason = |it: &PossibleEnd| it.error.is_some() && outcome == Outcome::Failed;
        let mut ending = match self.ending.take().filter(has_reason) {
            Some(known) => PossibleEnd {
                outcome: known.outcome,
                error: known.error,
                ..PossibleEnd::new(cx, outcome, None)
            },
            None => PossibleEnd::new(cx, outcome, error),
        };
        // A pause may be taken back; the other statuses end what the agent was asked for.
        ending.is_certain = status != "paused";
        self.ending = Some(ending);
        if self.lifecycle.run_ends == RunEnds::AtResult {
            self.finish_ending(cx);
        }
    }

    fn running(&mut self, cx: &mut FrameContext<'_>) {
        self.allow(cx);
        if self.ending.as_ref().is_some_and(|it| it.is_certain) {
            self.finish_ending(cx);
        }
        let is_stopped = |it: &PossibleEnd| it.outcome == Outcome::Aborted;
        self.ending.take_if(|it| is_stopped(it));
        self.lifecycle.start_run(cx, Cause::Prompt);
    }

    pub(super) fn finish_ending(&mut self, cx: &mut FrameContext<'_>) {
        let Some(ending) = self.ending.take() else {
            return;
        };
        let ended = RunEnded::new(ending.outcome, ending.error);
        cx.as_of(ending.frame, |cx| self.end_run(cx, ended));
    }

    pub(super) fn finish_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        self.ending = None;
        self.used.end(&mut ended);
        if ended.outcome == Outcome::Completed {
            self.subagents.run_ended(&mut self.lifecycle, cx);
        }
        self.lifecycle.end_run(cx, ended);
        // Text that streamed, and that no event will repeat.
        self.streams.text = None;
        self.streams.reasoning = None;
        self.pending.clear();
        self.silent.clear();
        self.compaction = None;
    }
}

fn aborted() -> RunError<'static> {
    RunError::new("aborted", Text::new("aborted"))
}

/// What the code of an error says about the run; the words are OpenHands' and our own.
fn outcome_of(code: &str) -> Outcome {
    match code {
        "aborted" => Outcome::Aborted,
        "refused" | "refusal" => Outcome::Refused,
        "lost" | "missing_end" | "upstream_truncated" => Outcome::Lost,
        "limit" => Outcome::Limit,
        _ if code.starts_with("Max") || code.starts_with("error_max") => Outcome::Limit,
        _ => Outcome::Failed,
    }
}
