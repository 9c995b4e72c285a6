//! How a run ends: when its session is idle, or when the stream is over.
//!
//! `opencode run` has no final line. Its last step, an error if there was one, and the exit code
//! decide together; a process that ends well after its model had stopped has done its work.

use std::borrow::Cow;

use model::{
    Basis, End, Exit, Level, Notice, Outcome, RunEnded, RunError, Scope, Text, Tokens, Usage, Why,
};

use super::{FrameContext, OpenCode};
use crate::errors;
use crate::readers::content::joined;
use crate::readers::machine::end_with;
use crate::readers::missing_end::MissingEnd;
use crate::wire::lenient::Any;
use crate::wire::opencode as wire;

/// Bytes kept of the last words; more of them are not repeated with the end of the run.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The word for a run that was stopped on purpose.
const ABORTED: &str = "aborted";

/// The run that is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct RunState {
    in_step: bool,
    n_finished: u64,
    /// Why the model ended its last step.
    reason: Option<String>,
    failure: Option<Failure>,
    tokens: Option<Tokens>,
    cost: Option<f64>,
    /// The words of the last message.
    answer: Vec<Text<'static>>,
    answer_of: Option<String>,
    /// Something was denied in the last step: the run may end there.
    pub(super) was_denied: bool,
}

#[derive(Clone, Debug)]
struct Failure {
    error: RunError<'static>,
    /// The model had stopped by itself before.
    after_stop: bool,
}

/// What ends a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunEndCause<'e> {
    /// The server says that the session is idle.
    Idle,
    /// A line of another run follows.
    Next,
    Stream(&'e End),
}

impl RunState {
    pub(super) fn is_in_step(&self) -> bool {
        self.in_step
    }

    pub(super) fn step_started(&mut self) {
        self.in_step = true;
        self.was_denied = false;
    }

    pub(super) fn step_finished(&mut self, reason: Option<&str>) {
        self.in_step = false;
        self.n_finished += 1;
        self.reason = reason.map(str::to_owned);
    }

    pub(super) fn used(&mut self, tokens: &Tokens, cost: Option<f64>) {
        self.tokens = Some(self.tokens.unwrap_or_default().plus(tokens));
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }

    /// The assistant's text; the last message is the answer.
    pub(super) fn add_text(&mut self, message: Option<&str>, text: &Text<'_>) {
        if text.is_empty() {
            return;
        }
        // Each message replaces the words before it: only the last one is the answer.
        if self.answer_of.as_deref() != message {
            self.answer.clear();
            self.answer_of = message.map(str::to_owned);
        }
        let kept: usize = self.answer.iter().map(Text::len_bound).sum();
        if kept + text.len_bound() <= MAX_ANSWER {
            self.answer.push(text.clone().into_owned());
        }
    }

    pub(super) fn answer(&mut self) -> Option<Text<'static>> {
        let answer = std::mem::take(&mut self.answer);
        (!answer.is_empty()).then(|| joined(answer, ""))
    }

    fn has_stopped(&self) -> bool {
        let reason = self.reason.as_deref();
        self.n_finished > 0 && !self.in_step && reason.is_none_or(|it| it == "stop")
    }
}

impl OpenCode {
    /// An error of the session; whether it is the run's is known at the end.
    pub(super) fn failed<'c>(&mut self, cx: &mut FrameContext<'c>, error: Any<'c>, is_news: bool) {
        let mut it: wire::Error<'c> = error.parse().unwrap_or_default();
        let name = match it.name.take() {
            // It was requested, so it is not a failure.
            Some(name) if name == "MessageAbortedError" => Cow::Borrowed(ABORTED),
            name => name.unwrap_or(Cow::Borrowed("error")),
        };
        let message = message_of(error);
        let status = it.data.take().status.as_u64();
        let status = status.and_then(|it| it.try_into().ok());
        let message = message.unwrap_or_else(|| Text::new(name.clone().into_owned()));
        // The error of a sub-agent is the result of its call; the main agent may go on.
        if cx.path.is_empty() && (is_news || self.run.failure.is_none()) {
            let mut failure =
                RunError::new(name.clone().into_owned(), message.clone().into_owned());
            errors::settle_with(&mut failure, status);
            self.run.failure = Some(Failure {
                error: failure,
                after_stop: self.run.has_stopped(),
            });
            // The error ends the step: no `step_finish` has to follow it.
            self.run.in_step = false;
        }
        if is_news {
            let level = match &*name {
                ABORTED => Level::Debug,
                _ => Level::Error,
            };
            let notice = Notice {
                detail: error.raw(),
                ..Notice::new(level, name, message)
            };
            self.lifecycle.notice(cx, notice);
        }
    }

    /// The server says that the session waits for a prompt.
    pub(super) fn finish_idle(&mut self, cx: &mut FrameContext<'_>) {
        self.finish(cx, RunEndCause::Idle);
    }

    /// Another run begins.
    pub(super) fn finish_before_next(&mut self, cx: &mut FrameContext<'_>) {
        if self.lifecycle.has_run() {
            cx.without_extra(|cx| self.finish(cx, RunEndCause::Next));
        }
    }

    fn finish(&mut self, cx: &mut FrameContext<'_>, cause: RunEndCause<'_>) {
        let mut missing = MissingEnd::before_next(false);
        self.verdict(cause, &mut missing);
        end_with(self, cx, missing);
    }

    /// Ends the run with what was learned on the way.
    pub(super) fn finish_with(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        let mut run = std::mem::take(&mut self.run);
        ended.answer = run.answer();
        ended.usage = run.tokens.map(|tokens| Usage {
            model: self.about.model.clone().map(Cow::Owned),
            cost_usd: run.cost,
            ..Usage::new(Scope::Run, Basis::Delta, tokens)
        });
        ended.stop_reason = run.reason.map(Cow::Owned);
        self.lifecycle.end_run(cx, ended);
        self.growing.forget_run();
        self.sessions.forget_run();
    }

    /// Decides how the run went; `missing` is how it went if its last step did not end.
    pub(super) fn verdict(&self, cause: RunEndCause<'_>, missing: &mut MissingEnd) {
        let exit = match cause {
            RunEndCause::Idle | RunEndCause::Next => None,
            RunEndCause::Stream(end) => end.exit,
        };
        if missing.is_aborted() {
            return;
        }
        // A file has no exit code; its last step decides.
        let why = exit.map(|_| Why::ProcessExit);
        let has_exited_well = exit == Some(Exit::Code(0));
        let failure = self.run.failure.as_ref();
        // An error after the model had stopped spoils nothing if the process ends well.
        if let Some(failure) = failure.filter(|it| !(it.after_stop && has_exited_well)) {
            let error = failure.error.clone();
            let ended = RunEnded::new(outcome_of(&error.code), Some(error));
            *missing = MissingEnd { ended, why };
            return;
        }
        let has_exited_badly = exit.is_some() && !has_exited_well;
        let is_idle = matches!(cause, RunEndCause::Idle);
        let has_finished = self.run.n_finished > 0 && !self.run.in_step;
        if has_exited_badly || !(has_finished || is_idle) {
            return;
        }
        let failed = |outcome, code: &'static str, message: &'static str| {
            RunEnded::new(outcome, Some(RunError::new(code, Text::new(message))))
        };
        // An idle session may have had no step at all.
        let ended = match self.run.reason.as_deref().unwrap_or("stop") {
            "length" => failed(
                Outcome::Limit,
                "length",
                "the model reached its output limit",
            ),
            "content-filter" => failed(Outcome::Refused, "content_filter", "the model refused"),
            "error" => failed(Outcome::Failed, "model_error", "the model failed"),
            // After its tools the model continues, unless one was denied or the process says it is done.
            "tool-calls" if exit.is_none() && !is_idle && !self.run.was_denied => return,
            _ => RunEnded::new(Outcome::Completed, None),
        };
        *missing = MissingEnd { ended, why };
    }
}

fn outcome_of(name: &str) -> Outcome {
    match name {
        ABORTED => Outcome::Aborted,
        "MessageOutputLengthError" | "context_too_long" => Outcome::Limit,
        _ => Outcome::Failed,
    }
}

/// What an error says, in the deepest place it says it.
pub(super) fn message_of(error: Any<'_>) -> Option<Text<'_>> {
    let mut it: wire::Error<'_> = error.parse()?;
    let data = it.data.take();
    let message = data.message.text().or(it.message.text());
    let name = it.name.take().map(Text::new);
    message.filter(|it| !it.is_empty()).or(name)
}
