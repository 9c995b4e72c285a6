//! How a turn ends, and what it used. The counts are the thread's, so a run's own are a difference.

use std::borrow::Cow;

use model::{Basis, Body, ModelUsage, Outcome, RunEnded, RunError, Scope, Text, Tokens, Usage};

use super::{Codex, FrameContext, Line};
use crate::readers::machine::MessageReader as _;
use crate::wire::codex as wire;
use crate::wire::lenient::{Any, Num};
use crate::wire::scanner;
use crate::wire::thread::OF_THE_RUN;

impl Codex {
    pub(super) fn turn_completed<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        // The whole frame is kept with the run's end.
        cx.extra.clear();
        self.begin(cx);
        let mut ended = RunEnded::new(Outcome::Completed, None);
        ended.detail = Some(cx.raw());
        // linkspan's own ThreadEvents count by run; taken for the thread's they would spoil the
        // differences.
        if figures(&mut ended, line.usage, cx.message) {
            return self.end_run(cx, ended);
        }
        if let Some(total) = tokens(line.usage) {
            let before = self.total.replace(total);
            let mut usage = Usage {
                detail: line.usage.raw(),
                ..Usage::new(Scope::Session, Basis::Cumulative, total)
            };
            self.lifecycle.emit(cx, Body::UsageReported(usage.clone()));
            // What a thread used before this stream began is not known, so the first run has the total.
            if let Some(before) = before {
                (usage.scope, usage.basis) = (Scope::Run, Basis::Delta);
                usage.tokens = minus(&total, &before);
            }
            ended.usage = Some(usage);
        }
        self.end_run(cx, ended);
    }

    pub(super) fn turn_failed<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        cx.extra.clear();
        self.begin(cx);
        let message = line.error.take().message.filled_text();
        let message = message.unwrap_or(Text::new("the turn failed"));
        let error = RunError::new("turn_failed", message);
        let mut ended = RunEnded::new(Outcome::Failed, Some(error));
        ended.detail = Some(cx.raw());
        figures(&mut ended, line.usage, cx.message);
        self.end_run(cx, ended);
    }
}

/// Takes over what linkspan adds to the end of a turn; true when the counts are those of this run
/// alone. Then they say nothing about the thread's own.
fn figures(ended: &mut RunEnded<'_>, usage: Any<'_>, text: &str) -> bool {
    let figures: wire::Figures<'_> = scanner::from_str(text).unwrap_or_default();
    ended.session_cost_usd = figures.session_cost_usd.0;
    ended.duration_ms = figures.duration_ms.as_u64();
    ended.models = (figures.model_usage.0.iter())
        .filter_map(model_usage)
        .collect();
    if figures.usage_scope.as_deref() != Some(OF_THE_RUN) {
        return false;
    }
    ended.usage = disjoint(usage).map(|tokens| Usage {
        // Where the models have it, theirs is the whole.
        cost_usd: figures.cost_usd.0.filter(|_| ended.models.is_empty()),
        ..Usage::new(Scope::Run, Basis::Delta, tokens)
    });
    true
}

fn model_usage(raw: &Any<'_>) -> Option<ModelUsage<'static>> {
    let figures: wire::ModelFigures<'_> = raw.parse()?;
    Some(ModelUsage {
        model: Cow::Owned(figures.model.as_deref()?.to_owned()),
        tokens: disjoint(*raw)?,
        cost_usd: figures.cost_usd.0,
        context_window: figures.context_window.as_u64(),
    })
}

/// Token counts as linkspan writes them: the parts of the input are apart already.
fn disjoint(usage: Any<'_>) -> Option<Tokens> {
    let usage: wire::Usage<'_> = usage.parse()?;
    Some(Tokens {
        input: usage.input.as_u64()?,
        cache_read: usage.cached.count(),
        cache_write: usage.cache_write.count(),
        output: usage.output.as_u64(),
        reasoning: usage.reasoning.as_u64(),
    })
}

/// Token counts with the parts of the input taken apart: Codex counts cached input twice.
pub(super) fn tokens(usage: Any<'_>) -> Option<Tokens> {
    let usage: wire::Usage<'_> = usage.parse()?;
    let count = |a: Num, b: Num| a.as_u64().or(b.as_u64());
    // `exec` spells these in snake case, the app server in camel case.
    let input = count(usage.input, usage.input_camel);
    let output = count(usage.output, usage.output_camel);
    if input.is_none() && output.is_none() {
        return None;
    }
    let cache_read = count(usage.cached, usage.cached_camel).unwrap_or_default();
    let cache_write = count(usage.cache_write, usage.cache_write_camel).unwrap_or_default();
    let input = input.unwrap_or_default();
    let cached = cache_read.saturating_add(cache_write);
    Some(Tokens {
        // Other programs that write ThreadEvents count the cache beside the input.
        input: input.checked_sub(cached).unwrap_or(input),
        cache_read,
        cache_write,
        output,
        reasoning: count(usage.reasoning, usage.reasoning_camel),
    })
}

fn minus(total: &Tokens, before: &Tokens) -> Tokens {
    // A total below the one before must not wrap around to a huge difference.
    let rest = |a: Option<u64>, b: Option<u64>| a.map(|a| a.saturating_sub(b.unwrap_or_default()));
    Tokens {
        input: total.input.saturating_sub(before.input),
        cache_read: total.cache_read.saturating_sub(before.cache_read),
        cache_write: total.cache_write.saturating_sub(before.cache_write),
        output: rest(total.output, before.output),
        reasoning: rest(total.reasoning, before.reasoning),
    }
}
