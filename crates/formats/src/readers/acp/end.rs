//! Runs: a prompt begins one, its answer ends it.

use std::borrow::Cow;

use model::{
    Basis, Cause, ModelUsage, Outcome, Raw, RunEnded, RunError, Scope, Status, Text, Tokens, Usage,
};

use super::requests::PromptRequest;
use super::wire::{self, Line, Meta, Update};
use super::{Acp, FrameContext as Cx};
use crate::readers::machine::MessageReader as _;
use crate::wire::lenient::Num;

/// A summary that streams in; more of it is cut off.
const MAX_SUMMARY: usize = 1024 * 1024;
/// Summaries that stream in at once.
const MAX_SUMMARIES: usize = 8;

/// The reported context usage, and incomplete summaries.
#[derive(Clone, Debug, Default)]
pub(super) struct ContextUsage {
    size: Option<u64>,
    cost_usd: Option<f64>,
    summaries: Vec<(String, String)>,
}

impl ContextUsage {
    pub(super) fn update(&mut self, update: &Update<'_>) {
        self.size = update.size.as_u64().or(self.size);
        if update.cost.currency.as_deref() == Some("USD") {
            self.cost_usd = update.cost.amount.0.or(self.cost_usd);
        }
    }

    pub(super) fn add_summary(&mut self, id: &str, text: &str) {
        let at = self.summaries.iter().position(|it| it.0 == id);
        let at = at.unwrap_or_else(|| {
            if self.summaries.len() >= MAX_SUMMARIES {
                self.summaries.remove(0);
            }
            self.summaries.push((id.to_owned(), String::new()));
            self.summaries.len() - 1
        });
        let summary = &mut self.summaries[at].1;
        if summary.len() + text.len() <= MAX_SUMMARY {
            summary.push_str(text);
        }
    }

    pub(super) fn take_summary(&mut self, id: &str) -> Option<String> {
        let at = self.summaries.iter().position(|it| it.0 == id)?;
        Some(self.summaries.remove(at).1)
    }
}

impl Acp {
    pub(super) fn begin(&mut self, cx: &mut Cx<'_>, prompt: PromptRequest) {
        self.lifecycle.start_run(cx, Cause::Prompt);
        self.requests.running = Some(prompt.id);
        self.was_cancelled = false;
        let before = (cx.at, std::mem::take(&mut cx.extra));
        cx.at = prompt.at.or(cx.at);
        self.show_prompt(cx, prompt.text, prompt.parts);
        (cx.at, cx.extra) = before;
    }

    /// The agent answers a prompt.
    pub(super) fn on_prompt_response<'c>(
        &mut self,
        cx: &mut Cx<'c>,
        id: &str,
        line: &Line<'c>,
        outcome: wire::Outcome<'c>,
    ) {
        let queued = self.requests.queued.iter().position(|it| it.id == id);
        if let Some(prompt) = queued.and_then(|at| self.requests.queued.remove(at)) {
            // It was answered out of turn: its words are not lost, and the run goes on.
            self.show_prompt(cx, prompt.text, prompt.parts);
            return;
        }
        if line.error.0.is_none() && outcome.stop_reason.0.is_none() {
            // Version 2 only says that it has taken the prompt.
            return;
        }
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
    pub(super) fn stopped<'c>(&mut self, cx: &mut Cx<'c>, reason: Option<&str>, json: &'c str) {
        let mut ended = stop(reason, &Meta::default(), self.was_cancelled);
        ended.detail = serde_json::from_str(json).ok();
        self.end_run(cx, ended);
        self.next(cx);
    }

    /// What was sent during the run has its turn now.
    pub(super) fn next(&mut self, cx: &mut Cx<'_>) -> bool {
        let prompt = self.requests.queued.pop_front();
        let is_queued = prompt.is_some();
        if let Some(prompt) = prompt {
            self.begin(cx, prompt);
        }
        is_queued
    }

    /// The history that is being loaded goes on with the next prompt, or ends.
    pub(super) fn end_replay(&mut self, cx: &mut Cx<'_>) {
        if self.is_replay && self.lifecycle.has_run() {
            self.end_run(cx, RunEnded::new(Outcome::Completed, None));
        }
    }

    pub(super) fn finish_run(&mut self, cx: &mut Cx<'_>, mut ended: RunEnded<'_>) {
        let extra = std::mem::take(&mut cx.extra);
        self.close_all_texts(cx);
        for call in self.calls.take_denied() {
            self.lifecycle.close(cx, &call, Status::Denied, |_| ());
        }
        if ended.outcome == Outcome::Completed {
            self.subagents.run_ended(&mut self.lifecycle, cx);
        }
        cx.extra = extra;
        ended.answer = self.last_text.take();
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
            ended.models.push(ModelUsage {
                model: Cow::Owned(model.unwrap_or_else(|| "default".to_owned())),
                tokens: ended.usage.as_ref().map(|it| it.tokens).unwrap_or_default(),
                cost_usd: None,
                context_window: None,
            });
        }
        if let [only] = &mut *ended.models {
            only.context_window = only.context_window.or(Some(size));
        }
    }
}

/// What a stop reason means. Agents that were cancelled by their client are to say so, but some, as
/// OpenCode, say that they came to the end of their turn.
fn stop<'c>(reason: Option<&str>, meta: &Meta<'c>, was_cancelled: bool) -> RunEnded<'c> {
    let outcome = match (reason, meta.outcome.as_deref()) {
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
    let error = error.map(|(code, message)| RunError {
        code: match &meta.code.0 {
            Some(code) => code.clone(),
            None => Cow::Borrowed(code),
        },
        message: match meta.message.0 {
            Some(message) => Text::from_json(message),
            None => Text::new(message),
        },
        native: None,
    });
    let mut ended = RunEnded::new(outcome, error);
    ended.stop_reason = reason.map(|it| Cow::Owned(it.to_owned()));
    ended
}

fn failure<'c>(line: &Line<'c>) -> RunEnded<'c> {
    let mut error: wire::Error<'c> = line.error.parse().unwrap_or_default();
    let data: wire::ErrorData<'c> = error.data.parse().unwrap_or_default();
    let number = error.code.0.unwrap_or_default() as i64;
    let outcome = match (data.outcome.as_deref(), number) {
        (Some("lost"), _) => Outcome::Lost,
        (_, -32800) => Outcome::Aborted,
        (_, _) => Outcome::Failed,
    };
    let code = data.code.0.unwrap_or(Cow::Borrowed(match number {
        -32000 => "authentication_required",
        -32800 => "aborted",
        -32002 => "not_found",
        _ => "error",
    }));
    let message = std::mem::take(&mut error.message).raw().map(Text::from);
    let error = RunError::new(code, message.unwrap_or(Text::new("the run failed")));
    RunEnded::new(outcome, Some(error))
}

/// The words with which the agent refused, to outlive their line.
pub(super) fn refusal(line: &Line<'_>) -> Option<RunError<'static>> {
    let error = failure(line).error?;
    let told: wire::Error<'_> = line.error.parse().unwrap_or_default();
    let data: wire::ErrorData<'_> = told.data.parse().unwrap_or_default();
    let message = match data.details.as_deref() {
        // `Internal error` alone is not helpful.
        Some(details) => Text::new(format!("{}: {details}", error.message)),
        None => error.message.into_owned(),
    };
    Some(RunError {
        code: Cow::Owned(error.code.into_owned()),
        message,
        native: None,
    })
}

fn usage<'c>(
    outcome: &wire::Outcome<'c>,
    meta: &Meta<'c>,
) -> (Option<Usage<'c>>, Vec<ModelUsage<'c>>) {
    let run = |tokens: Tokens, detail: Option<Raw<'c>>| Usage {
        scope: Scope::Run,
        basis: Basis::Delta,
        tokens,
        model: None,
        cost_usd: None,
        detail,
    };
    let count = |it: Num| it.as_u64().unwrap_or_default();
    if let Some(raw) = outcome.usage.raw() {
        let usage: wire::Usage<'c> = outcome.usage.parse().unwrap_or_default();
        let tokens = Tokens {
            input: count(usage.input),
            cache_read: count(usage.cached_read),
            cache_write: count(usage.cached_write),
            output: usage.output.as_u64(),
            reasoning: usage.thought.as_u64(),
        };
        return (Some(run(tokens, Some(raw))), Vec::new());
    }
    let tokens = |it: &wire::TokenCount<'_>| Tokens {
        input: count(it.input),
        output: it.output.as_u64(),
        ..Tokens::default()
    };
    let quota = &meta.quota;
    let models = quota.model_usage.0.iter().map(|it| ModelUsage {
        model: it.model.0.clone().unwrap_or(Cow::Borrowed("default")),
        tokens: tokens(&it.token_count),
        cost_usd: None,
        context_window: None,
    });
    let is_told = quota.token_count.input.0.is_some();
    let usage = is_told.then(|| run(tokens(&quota.token_count), None));
    (usage, models.collect())
}
