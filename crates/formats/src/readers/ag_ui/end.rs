//! How a run ends: well, cut short, interrupted by a question, with an error, or not at all.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, Basis, Cause, ItemId, ModelUsage, Outcome, RunEnded, RunError, Scope,
    Status, Text, Tokens, Usage,
};

use super::{AgUi, FrameContext, Line, metadata, wire};
use crate::readers::machine::MessageReader as _;
use crate::wire::lenient::{Any, List, Object as _};

impl AgUi {
    pub(super) fn run_finished<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        if !self.may_end(cx) {
            return;
        }
        cx.native = line.run_id.take();
        let own = metadata(line.metadata).linkspan;
        let mut outcome: wire::Outcome<'c> = line.outcome.parse().unwrap_or_default();
        let mut summary: wire::Summary<'c> = line.result.parse().unwrap_or_default();
        let kind = outcome.r#type.take().unwrap_or_default();
        let pending = outcome.pending_tool_call_ids.0.iter();
        let pending: Vec<&str> = pending.filter_map(|it| it.as_deref()).collect();
        // Before the run ends, which would close them as lost: the application answers them later.
        self.hand_over(cx, &pending);
        for interrupt in &outcome.interrupts.0 {
            self.interrupt(cx, *interrupt);
        }
        let is_cut = summary.status.as_deref() == Some("incomplete");
        let verdict = match (own.outcome.as_deref().and_then(Outcome::find), &*kind) {
            (Some(stated), _) => stated,
            (None, "cancelled") => Outcome::Aborted,
            (None, _) if !is_cut => Outcome::Completed,
            (None, _) if summary.reason.as_deref() == Some("content_filter") => Outcome::Refused,
            (None, _) => Outcome::Limit,
        };
        let error =
            (verdict == Outcome::Aborted).then(|| RunError::new("aborted", Text::new("aborted")));
        // An abort cancels activities with everything else; any other end leaves them as they are.
        if verdict != Outcome::Aborted {
            self.close_activities(cx);
        }
        let mut ended = self.ended(verdict, error, line.usage);
        let stop = if is_cut {
            summary.reason.take()
        } else {
            summary.stop_reason.take()
        };
        ended.stop_reason = stop.or((kind == "interrupt").then_some(kind));
        ended.session_cost_usd = summary.session_cost_usd.0;
        ended.duration_ms = summary.duration_ms.as_u64();
        if ended.answer.is_none() && line.result.is_str() {
            ended.answer = line.result.text();
        }
        ended.detail = Some(cx.raw());
        self.end_run(cx, ended);
    }

    pub(super) fn run_error<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        if !self.may_end(cx) {
            return;
        }
        let mut own = metadata(line.metadata).linkspan;
        let code = line.code.take().unwrap_or(Cow::Borrowed("error"));
        let stated = own.outcome.as_deref().and_then(Outcome::find);
        let verdict = match (stated, &*code) {
            (Some(stated), _) => stated,
            // What the client itself says of a connection it has closed.
            (None, "abort") => Outcome::Aborted,
            (None, "missing_end" | "upstream_truncated") => Outcome::Lost,
            (None, _) => Outcome::Failed,
        };
        let message = line.message.text().unwrap_or_default();
        let mut error = RunError::new(code, message);
        if let Some(code) = own.code.take() {
            // Our writer puts the agent's own word into `code`, and linkspan's into the metadata.
            error.native = Some(std::mem::replace(&mut error.code, code));
        }
        let mut ended = self.ended(verdict, Some(error), line.usage);
        ended.stop_reason = own.stop_reason.take();
        ended.session_cost_usd = own.session_cost_usd.0;
        ended.duration_ms = own.duration_ms.as_u64();
        ended.detail = Some(cx.raw());
        self.end_run(cx, ended);
    }

    /// An end may stand alone at the start of a stream; directly after another end it is ignored.
    fn may_end(&mut self, cx: &mut FrameContext<'_>) -> bool {
        if self.lifecycle.has_ended() {
            self.lifecycle.unmapped(cx, "end of a run that has ended");
            return false;
        }
        self.lifecycle.start_run(cx, Cause::Prompt);
        // The whole frame is kept with the run's end.
        cx.extra.clear();
        true
    }

    fn ended<'c>(
        &mut self,
        outcome: Outcome,
        error: Option<RunError<'c>>,
        usage: Any<'c>,
    ) -> RunEnded<'c> {
        let mut ended = RunEnded::new(outcome, error);
        ended.answer = self.lifecycle.answer.take();
        let entries: List<wire::TokenUsage<'c>> = usage.parse().unwrap_or_default();
        for entry in entries.0.into_iter().filter(wire::TokenUsage::is_object) {
            let tokens = tokens(&entry);
            let sum = ended.usage.map_or(tokens, |it| it.tokens.plus(&tokens));
            ended.usage = Some(Usage::new(Scope::Run, Basis::Delta, sum));
            (ended.models).extend(entry.model.0.map(|model| ModelUsage::new(model, tokens)));
        }
        ended
    }

    /// A question that ends the run: it waits for the next one.
    fn interrupt<'c>(&mut self, cx: &mut FrameContext<'c>, raw: Any<'c>) {
        let mut it: wire::Interrupt<'c> = raw.parse().unwrap_or_default();
        let before = cx.path.clone();
        self.enter(cx, it.subagent_run_id.as_deref());
        let reason = it.reason.take().unwrap_or_default();
        let call = it.tool_call_id.take();
        let tool = call.as_deref().and_then(|id| self.tool_name(id));
        let title = it.message.filled_text();
        let fallback = if reason.is_empty() {
            "interrupt"
        } else {
            &reason
        };
        let kind = match &*reason {
            "tool_call" | "confirmation" => AskKind::Permission,
            _ => AskKind::Question,
        };
        let id = AskId::new(it.id.take().unwrap_or_default());
        let title = title.unwrap_or_else(|| Text::new(fallback.to_owned()));
        let tool = tool.unwrap_or_else(|| Cow::Owned(fallback.to_owned()));
        let ask = Ask {
            item: call.map(ItemId::new),
            input: it.response_schema.raw(),
            ..Ask::new(id, kind, tool, title)
        };
        self.lifecycle.ask(cx, ask);
        cx.path = before;
    }

    /// An activity has no end of its own: it is how far the agent got.
    fn close_activities(&mut self, cx: &mut FrameContext<'_>) {
        for (_, key) in std::mem::take(&mut *self.activities) {
            self.lifecycle.close(cx, &key, Status::Ok, |_| ());
        }
    }
}

fn tokens(usage: &wire::TokenUsage<'_>) -> Tokens {
    let cache_read = usage.cached_input_tokens.count();
    let cache_write = usage.cache_write_input_tokens.count();
    let input = usage.input_tokens.count();
    Tokens {
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: usage.output_tokens.as_u64(),
        reasoning: usage.reasoning_tokens.as_u64(),
    }
}
