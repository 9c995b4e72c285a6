//! How a run ends by a `result`; other ends are the same for every agent.
//!
//! A `result` is held, because a background task may wake the model and add to the run. It is
//! released by the next turn, by the end of the stream, or at once when a client waits for it.

use std::borrow::Cow;

use model::{
    Basis, Body, Denial, ItemId, ModelUsage, Outcome, RunEnded, RunError, Scope, Text, Tokens,
    Usage,
};

use super::partial::{Partials, tokens};
use super::{Claude, FrameContext, RunEnds};
use crate::readers::content::joined;
use crate::readers::lifecycle::{HeldFrame, raw};
use crate::wire::claude as wire;
use crate::wire::scanner;

/// Denials remembered over the results of one run.
const MAX_DENIALS: usize = 256;

/// A `result` up to this length is repeated whole with the end of its run.
const MAX_DETAIL: usize = 1024 * 1024;

/// A `result` that has not ended its run yet.
#[derive(Clone, Debug)]
pub(super) struct HeldResult {
    json: String,
    frame: HeldFrame,
    /// Of the results before this one.
    denials: Vec<Denial<'static>>,
    models: Vec<ModelUsage<'static>>,
}

impl Claude {
    pub(super) fn result(&mut self, cx: &mut FrameContext<'_>, line: &mut wire::Line<'_>) {
        let session = line.session_id.str();
        if self.answers_as(cx, session.as_deref()) {
            // The whole frame is kept with the run's end.
            cx.extra.clear();
            self.hold_result(cx);
        }
        cx.extra.clear();
    }

    fn hold_result(&mut self, cx: &mut FrameContext<'_>) {
        let outcome: wire::Outcome<'_> = scanner::from_str(cx.message).unwrap_or_default();
        // Lines before it, such as those of hooks, may have named the session without telling it.
        self.lifecycle.emit_bound(cx);
        let extends = outcome.origin.0.is_some() || self.was_woken;
        if self.held.is_some() && !extends && self.is_turn_expected() {
            self.finish_held(cx);
        }
        // A failed start prints a `result` and no `init`: it is a run, too.
        if !self.lifecycle.has_run() {
            self.start_turn(cx);
        }
        let mut denials = Vec::new();
        let mut models = Vec::new();
        if let Some(held) = self.held.take() {
            // Only denials and models add up over results; the rest of the earlier result is
            // superseded.
            let mut before: wire::Outcome<'_> = scanner::from_str(&held.json).unwrap_or_default();
            denials = held.denials;
            models = held.models;
            add_models(&mut models, per_model(&mut before));
            denials.extend(self::denials(before).map(Denial::into_owned));
            denials.truncate(MAX_DENIALS);
        }
        self.held = Some(HeldResult {
            json: cx.message.to_owned(),
            frame: cx.hold(),
            denials,
            models,
        });
        self.was_woken = false;
        // More turns are queued: the CLI goes on by itself, and a client waits for the last of
        // them.
        let is_last = outcome.queued_turn_count.count() == 0;
        if self.lifecycle.run_ends == RunEnds::AtResult && is_last {
            self.finish_held(cx);
        }
    }

    /// Ends the run with the result that was held.
    pub(super) fn finish_held(&mut self, cx: &mut FrameContext<'_>) {
        let Some(held) = self.held.take() else { return };
        let outcome: wire::Outcome<'_> = scanner::from_str(&held.json).unwrap_or_default();
        // The end belongs to the frame of the result, however much later it is released.
        cx.as_of(held.frame.clone(), |cx| {
            if !outcome.model_usage.0.is_empty() {
                let usage = session_usage(&outcome);
                self.lifecycle.emit(cx, Body::UsageReported(usage));
            }
            let ended = self.ended(&held, outcome);
            self.lifecycle.end_run(cx, ended);
        });
        self.forget_run();
    }

    pub(super) fn forget_run(&mut self) {
        self.held = None;
        self.was_woken = false;
        self.was_interrupted = false;
        self.api_error = None;
        self.error = None;
        self.partials = Partials::default();
        self.compaction = None;
        self.denied.clear();
    }

    fn ended<'h>(&self, held: &'h HeldResult, mut outcome: wire::Outcome<'h>) -> RunEnded<'h> {
        let verdict = match self.outcome(&outcome) {
            // An `error` line comes from a program around Claude Code, whose result then knows
            // nothing of it.
            Outcome::Completed if self.error.is_some() => Outcome::Failed,
            verdict => verdict,
        };
        let error = match verdict {
            Outcome::Completed => None,
            Outcome::Failed
            | Outcome::Aborted
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => Some(self.error(verdict, &outcome)),
        };
        // A failed result has its error message in the field that is the answer otherwise.
        let is_answer = !outcome.is_error.is_true();
        let usage = tokens(outcome.usage).map(|tokens| Usage {
            detail: outcome.usage.raw(),
            ..Usage::new(Scope::Run, Basis::Delta, tokens)
        });
        let mut models = held.models.clone();
        add_models(&mut models, per_model(&mut outcome));
        RunEnded {
            outcome: verdict,
            answer: outcome.result.filled_text().filter(|_| is_answer),
            error,
            usage,
            models,
            session_cost_usd: outcome.total_cost_usd.0,
            duration_ms: outcome.duration_ms.as_u64(),
            stop_reason: outcome.stop_reason.take(),
            denials: (held.denials.iter().cloned())
                .chain(denials(outcome))
                .collect(),
            // The answer is most of a long line and was already emitted.
            detail: (held.json.len() <= MAX_DETAIL).then(|| raw(&held.json)),
        }
    }

    fn outcome(&self, result: &wire::Outcome<'_>) -> Outcome {
        let subtype = result.subtype.as_deref().unwrap_or_default();
        let reason = result.terminal_reason.as_deref().unwrap_or_default();
        // An API failure is `subtype: success` with `is_error`, so neither field is enough alone.
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
            // An interrupt ends with this subtype, too: only what was seen before tells it from a
            // failure.
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
        let errors = result.errors.0.iter().filter_map(|it| it.text());
        let errors: Vec<_> = errors.collect();
        let message = if verdict == Outcome::Aborted {
            // What the agent says then is a diagnostic for its own developers.
            Text::new("aborted")
        } else if let Some(error) = self.error.clone().filter(|_| !result.is_error.is_true()) {
            // The result does not know of it: what it says is the answer.
            error
        } else if let Some(text) = result.result.filled_text().or(result.error.text()) {
            text
        } else if !errors.is_empty() {
            joined(errors, "; ")
        } else if subtype.is_empty() {
            Text::new("claude run failed")
        } else {
            Text::new(format!("claude run failed ({subtype})"))
        };
        RunError::new(code, message)
    }
}

fn denials<'h>(result: wire::Outcome<'h>) -> impl Iterator<Item = Denial<'h>> {
    result.permission_denials.0.into_iter().map(|it| Denial {
        tool: it.tool_name.0.unwrap_or_default(),
        item: it.tool_use_id.0.map(ItemId::new),
        input: it.tool_input.raw(),
    })
}

/// What each model used since the result before.
fn per_model(result: &mut wire::Outcome<'_>) -> Vec<ModelUsage<'static>> {
    let totals = std::mem::take(&mut result.model_usage);
    // The per-run counts do not repeat the size of the context; the session's totals have it.
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
        input: usage.input_tokens.count(),
        cache_read: usage.cache_read.count(),
        cache_write: usage.cache_write.count(),
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
        cost_usd: result.total_cost_usd.0,
        ..Usage::new(Scope::Session, Basis::Cumulative, total)
    }
}
