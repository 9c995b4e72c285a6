//! How a run ends: by a `result`, by the end of the stream, or by the wrong session answering.
//!
//! A `result` is held, because a background task may wake the model and add to the run. It is
//! let go by the next turn, by the end of the stream, or at once when a client waits for it.

use std::borrow::Cow;

use model::{
    Basis, Binding, Body, Cause, Denial, End, Exit, ItemId, ModelUsage, Outcome, Raw, RunEnded,
    RunError, Scope, SessionBound, SessionId, Status, Text, Timestamp, Tokens, Usage, Why,
};

use super::partial::{Partials, tokens};
use super::{Claude, FrameContext, RunEnds};
use crate::readers::lifecycle::raw;
use crate::wire::claude as wire;

/// Denials remembered over the results of one run.
const MAX_DENIALS: usize = 256;

/// A `result` up to this length is repeated whole with the end of its run.
const MAX_DETAIL: usize = 1024 * 1024;

/// A `result` that has not ended its run yet.
#[derive(Clone, Debug)]
pub(super) struct HeldResult {
    json: String,
    native: Option<String>,
    at: Option<Timestamp>,
    frame: Option<u64>,
    /// Of the results before this one.
    denials: Vec<Denial<'static>>,
    models: Vec<ModelUsage<'static>>,
}

impl Claude {
    pub(super) fn result<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut wire::Line<'c>,
        text: &'c str,
    ) {
        let session = line.session_id.str();
        self.result_of(cx, session, text);
        // The whole frame is kept with the run's end.
        cx.extra.clear();
    }

    fn result_of<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        session: Option<Cow<'c, str>>,
        text: &'c str,
    ) {
        let outcome: wire::Outcome<'c> = serde_json::from_str(text).unwrap_or_default();
        if !self.same_session(cx, session.as_deref(), true) {
            return;
        }
        cx.extra.clear();
        // Lines before it, such as those of hooks, may have named the session without telling it.
        self.bind_without_init(cx);
        let extends = outcome.origin.0.is_some() || self.was_woken;
        if self.held.is_some() && !extends && self.is_turn_expected() {
            self.finish_held(cx);
        }
        self.begin_turn_for_result(cx);
        let mut denials = Vec::new();
        let mut models = Vec::new();
        if let Some(held) = self.held.take() {
            let mut before: wire::Outcome<'_> =
                serde_json::from_str(&held.json).unwrap_or_default();
            denials = held.denials;
            models = held.models;
            add_models(&mut models, per_model(&mut before));
            denials.extend(self::denials(before).map(owned));
            denials.truncate(MAX_DENIALS);
        }
        let native = cx.native.as_deref().map(str::to_owned);
        self.held = Some(HeldResult {
            json: text.to_owned(),
            native,
            at: cx.at,
            frame: cx.frame,
            denials,
            models,
        });
        self.was_woken = false;
        let is_last = outcome.queued_turn_count.as_u64().unwrap_or_default() == 0;
        if self.config.run_ends == RunEnds::AtResult && is_last {
            self.finish_held(cx);
        }
    }

    fn begin_turn_for_result(&mut self, cx: &mut FrameContext<'_>) {
        if !self.lifecycle.has_run() {
            self.start_turn(cx);
        }
    }

    /// Ends the run with the result that was held.
    pub(super) fn finish_held(&mut self, cx: &mut FrameContext<'_>) {
        let Some(held) = self.held.take() else { return };
        self.was_woken = false;
        let outcome: wire::Outcome<'_> = serde_json::from_str(&held.json).unwrap_or_default();
        let before = (
            cx.native.take(),
            cx.at,
            cx.frame,
            std::mem::take(&mut cx.extra),
        );
        (cx.at, cx.frame) = (held.at, held.frame);
        cx.native = held.native.clone().map(Cow::Owned);
        if !outcome.model_usage.0.is_empty() {
            self.lifecycle
                .emit(cx, Body::UsageReported(session_usage(&outcome)));
        }
        let (ended, left_open) = self.ended(&held, outcome);
        self.lifecycle.end_run(cx, ended, left_open);
        (cx.native, cx.at, cx.frame, cx.extra) = before;
        self.forget_run();
    }

    fn forget_run(&mut self) {
        self.was_interrupted = false;
        self.api_error = None;
        self.error = None;
        self.last_text = None;
        self.partials = Partials::default();
        self.compaction = None;
        self.denied.clear();
    }

    fn ended<'h>(
        &self,
        held: &'h HeldResult,
        mut outcome: wire::Outcome<'h>,
    ) -> (RunEnded<'h>, Status) {
        let verdict = match self.outcome(&outcome) {
            Outcome::Completed if self.error.is_some() => Outcome::Failed,
            verdict => verdict,
        };
        let text = outcome
            .result
            .raw()
            .map(Text::from)
            .filter(|it| !it.is_empty());
        let error = match verdict {
            Outcome::Completed => None,
            Outcome::Failed
            | Outcome::Aborted
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => Some(self.error(verdict, &outcome)),
        };
        let is_answer = !outcome.is_error.is_true();
        let answer = text
            .filter(|_| is_answer)
            .or_else(|| self.last_text.clone());
        let usage = tokens(outcome.usage).map(|tokens| Usage {
            scope: Scope::Run,
            basis: Basis::Delta,
            tokens,
            model: None,
            cost_usd: None,
            detail: outcome.usage.raw(),
        });
        let mut models = held.models.clone();
        add_models(&mut models, per_model(&mut outcome));
        let left_open = if verdict == Outcome::Aborted {
            Status::Cancelled
        } else {
            Status::Lost
        };
        let ended = RunEnded {
            outcome: verdict,
            answer,
            error,
            usage,
            models,
            session_cost_usd: outcome.total_cost_usd.0,
            duration_ms: outcome.duration_ms.as_u64(),
            stop_reason: outcome.stop_reason.take(),
            denials: held
                .denials
                .iter()
                .cloned()
                .chain(denials(outcome))
                .collect(),
            // The answer is most of a long line and was already emitted.
            detail: (held.json.len() <= MAX_DETAIL).then(|| raw(&held.json)),
        };
        (ended, left_open)
    }

    fn outcome(&self, result: &wire::Outcome<'_>) -> Outcome {
        let subtype = result.subtype.as_deref().unwrap_or_default();
        let reason = result.terminal_reason.as_deref().unwrap_or_default();
        if !result.is_error.is_true() && !subtype.starts_with("error") {
            let is_refusal = result.stop_reason.as_deref() == Some("refusal");
            return if is_refusal {
                Outcome::Refused
            } else {
                Outcome::Completed
            };
        }
        match subtype {
            _ if reason.starts_with("aborted") => Outcome::Aborted,
            "error_max_turns" | "error_max_budget_usd" | "error_max_structured_output_retries" => {
                Outcome::Limit
            }
            "error_during_execution" if self.was_interrupted => Outcome::Aborted,
            _ => Outcome::Failed,
        }
    }

    fn error<'h>(&self, verdict: Outcome, result: &wire::Outcome<'h>) -> RunError<'h> {
        let subtype = result.subtype.as_deref().unwrap_or_default();
        let code = match (verdict, &self.api_error) {
            (Outcome::Aborted, _) => Cow::Borrowed("aborted"),
            (Outcome::Refused, _) => Cow::Borrowed("refused"),
            (_, Some(error)) => Cow::Owned(error.clone()),
            (_, None) if subtype == "success" || subtype.is_empty() => Cow::Borrowed("failed"),
            (_, None) => Cow::Owned(subtype.to_owned()),
        };
        let said = result
            .result
            .raw()
            .map(Text::from)
            .filter(|it| !it.is_empty());
        let errors: Vec<_> = result
            .errors
            .0
            .iter()
            .filter_map(|it| it.0)
            .map(Text::from_json)
            .collect();
        let message = if verdict == Outcome::Aborted {
            // What the agent says then is a diagnostic for its own developers.
            Text::new("aborted")
        } else if let Some(error) = self.error.clone().filter(|_| !result.is_error.is_true()) {
            // The result does not know of it: what it says is the answer.
            error
        } else if let Some(said) = said.or(result.error.raw().map(Text::from)) {
            said
        } else if !errors.is_empty() {
            Text::new(
                errors
                    .iter()
                    .map(Text::to_str)
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        } else if subtype.is_empty() {
            Text::new("claude run failed")
        } else {
            Text::new(format!("claude run failed ({subtype})"))
        };
        RunError {
            code,
            message,
            native: None,
        }
    }

    /// The stream is over.
    pub(super) fn finish(&mut self, cx: &mut FrameContext<'_>, end: &End) {
        if self.is_lost {
            return self.lifecycle.ignored(cx, self.n_ignored);
        }
        self.finish_held(cx);
        if self.lifecycle.n_runs() > 0 && !self.lifecycle.has_run() && self.prompts.is_empty() {
            return;
        }
        let (mut outcome, why, mut code, mut message) = self.missing_end(end);
        if let Some(error) = self.error.take().filter(|_| outcome != Outcome::Aborted) {
            (outcome, code, message) = (Outcome::Failed, "failed", error.to_str().into_owned());
        }
        if self.session.is_none() && self.config.expected_session.is_some() {
            // No session was reported; bind the requested one so the user can resume it.
            self.session = self.config.expected_session.clone();
            cx.why = Some(why);
            self.bind_without_init(cx);
            cx.why = None;
        }
        if !self.lifecycle.has_run() {
            self.bind_without_init(cx);
            self.lifecycle.start_run(cx, Cause::Prompt);
            self.show_prompts(cx);
        }
        let error = RunError {
            code: Cow::Borrowed(code),
            message: Text::new(message),
            native: None,
        };
        let mut ended = RunEnded::new(outcome, Some(error));
        ended.answer = self.last_text.clone();
        let left_open = if outcome == Outcome::Aborted {
            Status::Cancelled
        } else {
            Status::Lost
        };
        cx.why = Some(why);
        self.lifecycle.end_run(cx, ended, left_open);
        self.forget_run();
    }

    /// What an end without a `result` means.
    fn missing_end(&self, end: &End) -> (Outcome, Why, &'static str, String) {
        if end.aborted || self.was_interrupted {
            return (
                Outcome::Aborted,
                Why::Abort,
                "aborted",
                "aborted".to_owned(),
            );
        }
        let exit = Why::ProcessExit;
        match end.exit {
            Some(Exit::Code(0)) if self.session.is_none() => {
                let message = "claude finished but no session_id was captured".to_owned();
                (Outcome::Failed, exit, "no_session", message)
            }
            Some(Exit::Code(0)) => {
                let message = "claude finished without a result event".to_owned();
                (Outcome::Failed, exit, "missing_result", message)
            }
            Some(Exit::Code(code)) => (
                Outcome::Failed,
                exit,
                "crashed",
                format!("claude failed (rc={code})"),
            ),
            Some(Exit::Signal(signal)) => (
                Outcome::Failed,
                exit,
                "crashed",
                format!("claude was ended by signal {signal}"),
            ),
            None => {
                let message = "the stream ended without a result".to_owned();
                (Outcome::Lost, Why::MissingEnd, "missing_end", message)
            }
        }
    }

    /// Another session answers than the one asked for, or the one this run began with.
    pub(super) fn wrong_session(&mut self, cx: &mut FrameContext<'_>, got: &str) {
        let wanted = self
            .session
            .clone()
            .or(self.config.expected_session.clone())
            .unwrap_or_default();
        self.held = None;
        cx.extra.clear();
        let native = SessionId::new(got.to_owned());
        self.lifecycle.start_run(cx, Cause::Prompt);
        self.lifecycle.emit(
            cx,
            Body::SessionBound(SessionBound::new(native, Binding::Mismatch)),
        );
        let message = match self.config.expected_session {
            Some(_) => format!("session `{wanted}` was asked for, the agent answered as `{got}`"),
            None => format!("the agent changed its session from `{wanted}` to `{got}`"),
        };
        let error = RunError {
            code: Cow::Borrowed("wrong_session"),
            message: Text::new(message),
            native: None,
        };
        let mut ended = RunEnded::new(Outcome::Failed, Some(error));
        ended.answer = self.last_text.clone();
        let before = cx.why.replace(Why::WrongSession);
        self.lifecycle.end_run(cx, ended, Status::Lost);
        cx.why = before;
        self.forget_run();
        self.is_lost = self.config.expected_session.is_some();
        self.session = None;
        self.has_init = false;
    }
}

/// A `result` of what a background task woke the model for: it adds to the run before.
pub(super) fn is_of_background_task(line: &wire::Line<'_>) -> bool {
    line.extra.iter().any(|(key, _)| key == "origin")
}

fn denials<'h>(result: wire::Outcome<'h>) -> impl Iterator<Item = Denial<'h>> {
    result.permission_denials.0.into_iter().map(|it| Denial {
        tool: it.tool_name.0.unwrap_or_default(),
        item: it.tool_use_id.0.map(ItemId::new),
        input: it.tool_input.raw(),
    })
}

fn owned(denial: Denial<'_>) -> Denial<'static> {
    Denial {
        tool: Cow::Owned(denial.tool.into_owned()),
        item: denial.item.map(ItemId::into_owned),
        input: denial.input.map(Raw::into_owned),
    }
}

/// What each model used since the result before.
fn per_model(result: &mut wire::Outcome<'_>) -> Vec<ModelUsage<'static>> {
    let totals = std::mem::take(&mut result.model_usage);
    let window = |model: &str| {
        let (_, usage) = totals.0.iter().find(|(name, _)| name == model)?;
        usage.context_window.as_u64()
    };
    let models = std::mem::take(&mut result.model_usage_delta).0.into_iter();
    models
        .map(|(model, it)| ModelUsage {
            tokens: model_tokens(&it),
            cost_usd: it.cost_usd.0,
            context_window: it.context_window.as_u64().or_else(|| window(&model)),
            model: Cow::Owned(model.into_owned()),
        })
        .collect()
}

/// Adds up what several results of one run say.
fn add_models(sum: &mut Vec<ModelUsage<'static>>, more: Vec<ModelUsage<'static>>) {
    for usage in more {
        let Some(known) = sum.iter_mut().find(|it| it.model == usage.model) else {
            sum.push(usage);
            continue;
        };
        known.tokens = known.tokens.plus(&usage.tokens);
        known.cost_usd = match (known.cost_usd, usage.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

fn model_tokens(usage: &wire::ModelUsage<'_>) -> Tokens {
    Tokens {
        input: usage.input_tokens.as_u64().unwrap_or_default(),
        cache_read: usage.cache_read.as_u64().unwrap_or_default(),
        cache_write: usage.cache_write.as_u64().unwrap_or_default(),
        output: usage.output_tokens.as_u64(),
        reasoning: usage.thinking_tokens.as_u64(),
    }
}

/// What the session has used so far, over all models.
fn session_usage<'h>(result: &wire::Outcome<'h>) -> Usage<'h> {
    let models = result.model_usage.0.iter();
    let total = models.fold(Tokens::default(), |sum, (_, usage)| {
        sum.plus(&model_tokens(usage))
    });
    Usage {
        scope: Scope::Session,
        basis: Basis::Cumulative,
        tokens: total,
        model: None,
        cost_usd: result.total_cost_usd.0,
        detail: None,
    }
}
