//! Runs: a prompt begins one, its answer ends it.

use std::borrow::Cow;

use model::{
    Basis, Cause, ModelUsage, Outcome, RunEnded, RunError, Scope, Status, Text, Tokens, Usage,
};

use super::requests::PromptRequest;
use super::updates::update_in;
use super::wire::{self, Line, Meta, Update};
use super::{Acp, FrameContext};
use crate::readers::lifecycle::raw;
use crate::readers::machine::MessageReader as _;
use crate::readers::recent::Recent;

/// A summary that streams in; more of it is cut off.
const MAX_SUMMARY: usize = 1024 * 1024;
/// Summaries that stream in at once.
const MAX_SUMMARIES: usize = 8;

/// The reported context usage, and incomplete summaries.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextUsage {
    size: Option<u64>,
    cost_usd: Option<f64>,
    summaries: Recent<(String, String), MAX_SUMMARIES>,
}

impl ContextUsage {
    pub(super) fn update(&mut self, update: &Update<'_>) {
        self.size = update.size.as_u64().or(self.size);
        // The model of an end counts in dollars; other currencies stay in the update's `detail`.
        if update.cost.currency.as_deref() == Some("USD") {
            self.cost_usd = update.cost.amount.0.or(self.cost_usd);
        }
    }

    pub(super) fn add_summary(&mut self, id: &str, text: &str) {
        let at = self.summaries.iter().position(|it| it.0 == id);
        let at = at.unwrap_or_else(|| self.summaries.push((id.to_owned(), String::new())));
        let summary = &mut self.summaries[at].1;
        if summary.len() + text.len() <= MAX_SUMMARY {
            summary.push_str(text);
        }
    }

    pub(super) fn take_summary(&mut self, id: &str) -> Option<String> {
        self.summaries.take(id)
    }
}

impl Acp {
    pub(super) fn begin(&mut self, cx: &mut FrameContext<'_>, prompt: PromptRequest) {
        self.lifecycle.start_run(cx, Cause::Prompt);
        self.requests.running = Some(prompt.id);
        self.was_cancelled = false;
        let before = (cx.at, std::mem::take(&mut cx.extra));
        // A prompt that waited is as old as its request, not as the answer that freed its turn.
        cx.at = prompt.at.or(cx.at);
        self.show_prompt(cx, prompt.text, prompt.parts);
        (cx.at, cx.extra) = before;
    }

    /// The agent answers a prompt.
    pub(super) fn on_prompt_response<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        line: &Line<'c>,
        outcome: wire::Outcome<'c>,
    ) {
        let queued = self.requests.queued.iter().position(|it| it.id == id);
        if let Some(prompt) = queued.and_then(|at| self.requests.queued.remove(at)) {
            // It was answered out of turn: its text is kept, and the run continues.
            self.show_prompt(cx, prompt.text, prompt.parts);
            return;
        }
        if line.error.0.is_none() && outcome.stop_reason.0.is_none() {
            // Version 2 only says that it has taken the prompt.
            return;
        }
        // A recording of the agent's side alone shows no prompt: its answer still ends a run.
        self.lifecycle.start_run(cx, Cause::Prompt);
        let meta: Meta<'c> = outcome.meta.parse().unwrap_or_default();
        let mut ended = match line.error.0 {
            Some(_) => failure(line),
            None => stop(outcome.stop_reason.as_deref(), &meta, self.was_cancelled),
        };
        let (usage, models) = usage(&outcome, &meta);
        ended.usage = usage;
        ended.models = models;
        ended.detail = line.result.raw().or(line.error.raw());
        self.end_run(cx, ended);
        self.next(cx);
    }

    /// A turn is over by its state, as in version 2.
    pub(super) fn stopped(&mut self, cx: &mut FrameContext<'_>, reason: Option<&str>) {
        let mut ended = stop(reason, &Meta::default(), self.was_cancelled);
        ended.detail = Some(raw(update_in(cx.message)));
        self.end_run(cx, ended);
        self.next(cx);
    }

    /// What was sent during the run has its turn now.
    pub(super) fn next(&mut self, cx: &mut FrameContext<'_>) -> bool {
        let prompt = self.requests.queued.pop_front();
        let is_queued = prompt.is_some();
        if let Some(prompt) = prompt {
            self.begin(cx, prompt);
        }
        is_queued
    }

    /// A run of the history that is being loaded is over.
    pub(super) fn end_replay(&mut self, cx: &mut FrameContext<'_>) {
        if self.is_replay && self.lifecycle.has_run() {
            self.end_run(cx, RunEnded::new(Outcome::Completed, None));
        }
    }

    pub(super) fn finish_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        cx.without_extra(|cx| {
            self.close_all_texts(cx);
            for call in self.calls.take_denied() {
                // Some agents never speak of a denied call again; left open it would end as lost.
                self.lifecycle.close(cx, &call, Status::Denied, |_| ());
            }
            // In any other end a sub-agent did not finish: the lifecycle closes it as lost or
            // cancelled.
            if ended.outcome == Outcome::Completed {
                self.subagents.run_ended(&mut self.lifecycle, cx);
            }
        });
        ended.session_cost_usd = self.used.cost_usd;
        if let Some(size) = self.used.size {
            self.sized(&mut ended, size);
        }
        self.lifecycle.end_run(cx, ended);
        self.calls.clear();
        self.requests.running = None;
        self.was_cancelled = false;
    }

    /// The size of the context belongs to the model that was used.
    fn sized(&self, ended: &mut RunEnded<'_>, size: u64) {
        if ended.models.is_empty() {
            let model = self.session.model.clone();
            let model = model.unwrap_or_else(|| "default".to_owned());
            let tokens = ended.usage.as_ref().map(|it| it.tokens);
            (ended.models).push(ModelUsage::new(model, tokens.unwrap_or_default()));
        }
        // With several models the update does not say whose context it means.
        if let [only] = &mut *ended.models {
            only.context_window = only.context_window.or(Some(size));
        }
    }
}

/// What a stop reason means. Agents that were cancelled by their client are to say so, but some, as
/// OpenCode, say that they came to the end of their turn.
fn stop<'c>(reason: Option<&str>, meta: &Meta<'c>, was_cancelled: bool) -> RunEnded<'c> {
    let outcome = match (reason, meta.outcome.as_deref()) {
        // linkspan's own word in `_meta`: the stop reasons of ACP are coarser than the outcomes.
        (_, Some("completed")) => Outcome::Completed,
        (Some("max_tokens" | "max_turn_requests"), _) => Outcome::Limit,
        (Some("refusal"), _) => Outcome::Refused,
        (Some("cancelled"), _) => Outcome::Aborted,
        (Some("error"), _) => Outcome::Failed,
        (Some(_) | None, _) if was_cancelled => Outcome::Aborted,
        (Some(_) | None, _) => Outcome::Completed,
    };
    let error = match outcome {
        Outcome::Completed => None,
        Outcome::Aborted => Some(("aborted", "aborted")),
        Outcome::Refused => Some(("refused", "the model refused")),
        Outcome::Limit => Some(("limit", "a limit was reached")),
        Outcome::Failed | Outcome::Lost => Some(("failed", "the run failed")),
    };
    let error = error.map(|(code, message)| {
        let code = meta.code.0.clone().unwrap_or(Cow::Borrowed(code));
        RunError::new(code, meta.message.text().unwrap_or(Text::new(message)))
    });
    let mut ended = RunEnded::new(outcome, error);
    ended.stop_reason = reason.map(|it| Cow::Owned(it.to_owned()));
    ended
}

fn failure<'c>(line: &Line<'c>) -> RunEnded<'c> {
    let error: wire::Error<'c> = line.error.parse().unwrap_or_default();
    let data: wire::ErrorData<'c> = error.data.parse().unwrap_or_default();
    let number = error.code.0.unwrap_or_default() as i64;
    let outcome = match (data.outcome.as_deref(), number) {
        (Some("lost"), _) => Outcome::Lost,
        // The error code of ACP for a request that was cancelled.
        (_, -32800) => Outcome::Aborted,
        (_, _) => Outcome::Failed,
    };
    let code = data.code.0.unwrap_or(Cow::Borrowed(match number {
        -32000 => "authentication_required",
        -32800 => "aborted",
        -32002 => "not_found",
        _ => "error",
    }));
    let message = error.message.text();
    let error = RunError::new(code, message.unwrap_or(Text::new("the run failed")));
    RunEnded::new(outcome, Some(error))
}

/// The words with which the agent refused, to outlive their line.
pub(super) fn refusal(line: &Line<'_>) -> Option<RunError<'static>> {
    let error = failure(line).error?;
    let reported: wire::Error<'_> = line.error.parse().unwrap_or_default();
    let data: wire::ErrorData<'_> = reported.data.parse().unwrap_or_default();
    let message = match data.details.as_deref() {
        // `Internal error` alone is not helpful.
        Some(details) => Text::new(format!("{}: {details}", error.message)),
        None => error.message.into_owned(),
    };
    Some(RunError::new(error.code.into_owned(), message))
}

fn usage<'c>(
    outcome: &wire::Outcome<'c>,
    meta: &Meta<'c>,
) -> (Option<Usage<'c>>, Vec<ModelUsage<'c>>) {
    // `usage` is no part of the stable schema; Gemini CLI has a `quota` in `_meta` instead.
    if let Some(raw) = outcome.usage.raw() {
        let usage: wire::Usage<'c> = outcome.usage.parse().unwrap_or_default();
        let tokens = Tokens {
            input: usage.input.count(),
            cache_read: usage.cached_read.count(),
            cache_write: usage.cached_write.count(),
            output: usage.output.as_u64(),
            reasoning: usage.thought.as_u64(),
        };
        let usage = Usage {
            detail: Some(raw),
            ..Usage::new(Scope::Run, Basis::Delta, tokens)
        };
        return (Some(usage), Vec::new());
    }
    let tokens = |it: &wire::TokenCount<'_>| Tokens {
        input: it.input.count(),
        output: it.output.as_u64(),
        ..Tokens::default()
    };
    let quota = &meta.quota;
    let models = quota.model_usage.0.iter().map(|it| {
        let model = it.model.0.clone().unwrap_or(Cow::Borrowed("default"));
        ModelUsage::new(model, tokens(&it.token_count))
    });
    let has_count = quota.token_count.input.0.is_some();
    let usage = || Usage::new(Scope::Run, Basis::Delta, tokens(&quota.token_count));
    (has_count.then(usage), models.collect())
}
