//! What a conversation tells about itself: its session, its status, what it has used.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, Basis, Body, Cause, Decision, Level, ModelUsage, Raw, RunEnded, Scope,
    Tokens, Usage,
};
use serde_json::json;

use super::wire::{self, Event, FullState, Stats};
use super::{FrameContext, OpenHands};
use crate::agents::AGENTS;
use crate::readers::machine::MessageReader as _;
use crate::readers::session_tracker;
use crate::wire::lenient::Any;

/// The usage id of agents that OpenHands drives over ACP.
const ACP_MANAGED: &str = "acp-managed";

/// What the conversation has used, at the end of the last run and now.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversationUsage {
    before: Vec<ModelUsage<'static>>,
    now: Vec<ModelUsage<'static>>,
    /// Tokens in the context at the last call.
    context: u64,
}

impl OpenHands {
    pub(super) fn state<'c>(&mut self, cx: &mut FrameContext<'c>, event: Event<'c>) {
        match (event.key.as_deref(), event.value.0) {
            (Some("execution_status"), Some(value)) => {
                let Ok(status) = serde_json::from_str::<Cow<'_, str>>(value.get()) else {
                    return self.lifecycle.unmapped(cx, "a status that is no word");
                };
                if status == "finished" && self.lifecycle.n_runs() == 0 {
                    // A run without text.
                    self.lifecycle.start_run(cx, Cause::Prompt);
                }
                self.status(cx, &status);
            }
            (Some("stats"), Some(_)) => self.stats(cx, event.value),
            (Some("full_state"), Some(_)) => self.full_state(cx, event.value),
            (key, _) => {
                let text = format!("state: {}", key.unwrap_or("unknown"));
                self.lifecycle
                    .raise_with_message(cx, Level::Debug, "state", text);
            }
        }
    }

    fn full_state<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let state: FullState<'c> = value.parse().unwrap_or_default();
        if let Some(id) = state.id.as_deref().filter(|it| !it.is_empty()) {
            if !self.accepts_session(cx, id) {
                return;
            }
            let own = |it: &Option<String>| it.clone().map(Cow::Owned);
            self.cwd = state.workspace.working_dir.owned();
            self.model = state.agent.llm.model.owned();
            let bound = model::SessionBound {
                model: own(&self.model),
                cwd: own(&self.cwd),
                ..session_tracker::bound(id)
            };
            self.lifecycle.bind(cx, bound);
        }
        let text = "state: full_state";
        self.lifecycle
            .raise_with_message(cx, Level::Debug, "state", text);
        self.stats(cx, state.stats);
        if !self.lifecycle.has_run() {
            // Earlier usage belongs to no run of this stream.
            self.used.before.clone_from(&self.used.now);
        }
        // A snapshot of an idle conversation begins and ends nothing.
        if let Some(status) = state.execution_status.as_deref() {
            self.status(cx, status);
        }
    }

    fn stats<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let stats: Stats<'c> = value.parse().unwrap_or_default();
        if stats.usage_to_metrics.0.is_empty() {
            return;
        }
        let mut context = None;
        self.used.now.clear();
        for (id, metrics) in &stats.usage_to_metrics.0 {
            let usage = &metrics.accumulated_token_usage;
            let per_turn = usage.per_turn_token.as_u64().filter(|it| *it > 0);
            if context.is_none() {
                context = per_turn.map(|it| (it, metrics.model_name.as_deref()));
            }
            let model = metrics.model_name.owned();
            let model = model.unwrap_or_else(|| "default".to_owned());
            self.used.now.push(ModelUsage {
                cost_usd: metrics.accumulated_cost.0,
                context_window: usage.context_window.as_u64().filter(|it| *it > 0),
                ..ModelUsage::new(model, tokens(id, usage))
            });
        }
        let total = |sum: Tokens, it: &ModelUsage<'_>| sum.plus(&it.tokens);
        let tokens = self.used.now.iter().fold(Tokens::default(), total);
        let usage = Usage {
            cost_usd: self.used.cost_usd(),
            detail: value.raw(),
            ..Usage::new(Scope::Session, Basis::Cumulative, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
        // `stats` repeats itself; an unchanged context is no news.
        if let Some((tokens, model)) = context.filter(|it| it.0 != self.used.context) {
            self.used.context = tokens;
            self.context(cx, tokens, model);
        }
    }

    /// How full the model's context was; OpenHands does not tell input and output apart there.
    fn context(&mut self, cx: &mut FrameContext<'_>, tokens: u64, model: Option<&str>) {
        let tokens = Tokens {
            input: tokens,
            ..Tokens::default()
        };
        let usage = Usage {
            model: model.map(Cow::Borrowed),
            ..Usage::new(Scope::Call, Basis::Cumulative, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }

    /// The agent waits: every call without a result needs a permission.
    pub(super) fn ask(&mut self, cx: &mut FrameContext<'_>) {
        for call in self.pending.iter().cloned() {
            let Some(tool) = self.lifecycle.open_tool(&call) else {
                continue;
            };
            // In Claude Code's format, which clients that show suggestions know.
            let rules = || Raw::of(&json!([{"rules": [{"toolName": tool.name}]}]));
            let id = AskId::new(call.as_str().to_owned());
            let (name, title) = (tool.name.to_string(), tool.class.title.clone());
            let ask = Ask {
                item: Some(call),
                input: tool.input.clone(),
                suggestions: self.is_ours.then(rules),
                ..Ask::new(id, AskKind::Permission, name, title)
            };
            self.lifecycle.ask(cx, ask);
        }
    }

    /// The agent continues: what it waited for was allowed.
    pub(super) fn allow(&mut self, cx: &mut FrameContext<'_>) {
        for call in self.pending.iter() {
            self.lifecycle.settle_item(cx, call, Decision::Allowed);
        }
    }
}

impl ConversationUsage {
    fn cost_usd(&self) -> Option<f64> {
        let costs = self.now.iter().filter_map(|it| it.cost_usd);
        costs.reduce(|sum, cost| sum + cost)
    }

    /// Puts what this run has used into its end.
    pub(super) fn end(&mut self, ended: &mut RunEnded<'_>) {
        if self.now.is_empty() {
            return;
        }
        let mut models = self.now.clone();
        for (at, usage) in models.iter_mut().enumerate() {
            // By place, because two usage ids may share one model.
            if let Some(before) = self.before.get(at).filter(|it| it.model == usage.model) {
                usage.tokens = minus(&usage.tokens, &before.tokens);
                let cost = |it: &ModelUsage<'_>| it.cost_usd.unwrap_or_default();
                usage.cost_usd = usage.cost_usd.map(|it| (it - cost(before)).max(0.0));
            }
        }
        let total = |sum: Tokens, it: &ModelUsage<'_>| sum.plus(&it.tokens);
        ended.session_cost_usd = self.cost_usd();
        let tokens = models.iter().fold(Tokens::default(), total);
        ended.usage = Some(Usage::new(Scope::Run, Basis::Delta, tokens));
        ended.models = models;
        self.before.clone_from(&self.now);
    }
}

fn tokens(usage_id: &str, usage: &wire::TokenUsage<'_>) -> Tokens {
    let cache_read = usage.cache_read_tokens.count();
    let cache_write = usage.cache_write_tokens.count();
    let prompt = usage.prompt_tokens.count();
    let cached = cache_read.saturating_add(cache_write);
    // litellm, which OpenHands itself uses, counts cached tokens in; what is written by linkspan does not.
    let is_apart = usage_id == ACP_MANAGED || AGENTS.iter().any(|it| it.usage_id == usage_id);
    let input = if is_apart {
        prompt
    } else {
        prompt.checked_sub(cached).unwrap_or(prompt)
    };
    Tokens {
        input,
        cache_read,
        cache_write,
        output: usage.completion_tokens.as_u64(),
        // The SDK's default is 0, also where a provider reports no reasoning.
        reasoning: usage.reasoning_tokens.as_u64().filter(|it| *it > 0),
    }
}

/// What was used since; a counter that went back counts from nothing.
fn minus(now: &Tokens, before: &Tokens) -> Tokens {
    let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
    let since_some =
        |now: Option<u64>, before: Option<u64>| now.map(|it| since(it, before.unwrap_or_default()));
    Tokens {
        input: since(now.input, before.input),
        cache_read: since(now.cache_read, before.cache_read),
        cache_write: since(now.cache_write, before.cache_write),
        output: since_some(now.output, before.output),
        reasoning: since_some(now.reasoning, before.reasoning),
    }
}
