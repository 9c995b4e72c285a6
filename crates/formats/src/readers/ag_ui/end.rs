//! How a run ends: well, cut short, interrupted by a question, with an error, or not at all.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, Basis, Binding, Body, Cause, End, Exit, ItemId, ModelUsage, Outcome, Raw,
    RunEnded, RunError, Scope, SessionBound, SessionId, Status, Text, Tokens, Usage, Why,
};

use super::{AgUi, FrameContext, Line, metadata, wire};
use crate::wire::lenient::{Any, List, Object as _};

impl AgUi {
    pub(super) fn run_finished<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        if !self.may_end(cx, text) {
            return;
        }
        cx.native = line.run_id.take();
        let own = metadata(line.metadata).linkspan;
        let mut outcome: wire::Outcome<'c> = line.outcome.parse().unwrap_or_default();
        let mut summary: wire::Summary<'c> = line.result.parse().unwrap_or_default();
        let kind = outcome.r#type.take().unwrap_or_default();
        let pending: Vec<&str> = outcome
            .pending_tool_call_ids
            .0
            .iter()
            .filter_map(|it| it.as_deref())
            .collect();
        self.hand_over(cx, &pending);
        for interrupt in &outcome.interrupts.0 {
            self.interrupt(cx, *interrupt);
        }
        let is_cut = summary.status.as_deref() == Some("incomplete");
        let verdict = match (own.outcome.as_deref().and_then(outcome_of), &*kind) {
            (Some(said), _) => said,
            (None, "cancelled") => Outcome::Aborted,
            (None, _) if !is_cut => Outcome::Completed,
            (None, _) if summary.reason.as_deref() == Some("content_filter") => Outcome::Refused,
            (None, _) => Outcome::Limit,
        };
        let error = (verdict == Outcome::Aborted).then(|| error("aborted", Text::new("aborted")));
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
        if let Some(raw) = line
            .result
            .raw()
            .filter(|it| it.is_string() && ended.answer.is_none())
        {
            ended.answer = Some(Text::from(raw));
        }
        self.end_run(cx, ended, text);
    }

    pub(super) fn run_error<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        if !self.may_end(cx, text) {
            return;
        }
        let mut own = metadata(line.metadata).linkspan;
        let code = line.code.take().unwrap_or(Cow::Borrowed("error"));
        let said = own.outcome.as_deref().and_then(outcome_of);
        let verdict = match (said, &*code) {
            (Some(said), _) => said,
            // What the client itself says of a connection it has closed.
            (None, "abort") => Outcome::Aborted,
            (None, "missing_end" | "upstream_truncated") => Outcome::Lost,
            (None, _) => Outcome::Failed,
        };
        let message = line.message.raw().map(Text::from).unwrap_or_default();
        let mut error = RunError::new(code, message);
        if let Some(code) = own.code.take() {
            error.native = Some(std::mem::replace(&mut error.code, code));
        }
        let mut ended = self.ended(verdict, Some(error), line.usage);
        ended.stop_reason = own.stop_reason.take();
        ended.session_cost_usd = own.session_cost_usd.0;
        ended.duration_ms = own.duration_ms.as_u64();
        self.end_run(cx, ended, text);
    }

    /// An end may stand alone at the start of a stream; behind another end it is none.
    fn may_end<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) -> bool {
        if !self.lifecycle.has_run() {
            if self.lifecycle.n_runs() > 0 {
                self.lifecycle
                    .unmapped(cx, "end of a run that has ended".to_owned(), text);
                return false;
            }
            self.lifecycle.start_run(cx, Cause::Prompt);
        }
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
        ended.answer = self.last_text.take();
        let entries: List<wire::TokenUsage<'c>> = usage.parse().unwrap_or_default();
        for entry in entries.0.into_iter().filter(wire::TokenUsage::is_object) {
            let tokens = tokens(&entry);
            let sum = ended.usage.map_or(tokens, |it| it.tokens.plus(&tokens));
            ended.usage = Some(Usage {
                scope: Scope::Run,
                basis: Basis::Delta,
                tokens: sum,
                model: None,
                cost_usd: None,
                detail: None,
            });
            if let Some(model) = entry.model.0 {
                ended.models.push(ModelUsage {
                    model,
                    tokens,
                    cost_usd: None,
                    context_window: None,
                });
            }
        }
        ended
    }

    fn end_run<'c>(&mut self, cx: &mut FrameContext<'c>, mut ended: RunEnded<'c>, text: &'c str) {
        ended.detail = serde_json::from_str(text).ok().map(Raw::borrowed);
        let left_open = match ended.outcome {
            Outcome::Aborted => Status::Cancelled,
            Outcome::Completed
            | Outcome::Failed
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => Status::Lost,
        };
        self.lifecycle.end_run(cx, ended, left_open);
        self.forget();
    }

    /// A question that ends the run: it waits for the next one.
    fn interrupt<'c>(&mut self, cx: &mut FrameContext<'c>, raw: Any<'c>) {
        let mut it: wire::Interrupt<'c> = raw.parse().unwrap_or_default();
        let before = cx.path.clone();
        self.enter(cx, it.subagent_run_id.as_deref());
        let reason = it.reason.take().unwrap_or_default();
        let call = it.tool_call_id.take();
        let tool = call.as_deref().and_then(|id| self.tool_name(id));
        let title = it.message.raw().map(Text::from).filter(|it| !it.is_empty());
        let fallback = if reason.is_empty() {
            "interrupt"
        } else {
            &reason
        };
        let ask = Ask {
            id: AskId::new(it.id.take().unwrap_or_default()),
            kind: match &*reason {
                "tool_call" | "confirmation" => AskKind::Permission,
                _ => AskKind::Question,
            },
            title: title.unwrap_or_else(|| Text::new(fallback.to_owned())),
            tool: tool.unwrap_or_else(|| Cow::Owned(fallback.to_owned())),
            item: call.map(ItemId::new),
            description: None,
            input: it.response_schema.raw(),
            suggestions: None,
            deadline: None,
        };
        self.lifecycle.ask(cx, ask);
        cx.path = before;
    }

    /// An activity has no end of its own: it is how far the agent got.
    fn close_activities(&mut self, cx: &mut FrameContext<'_>) {
        for activity in std::mem::take(&mut self.activities) {
            self.lifecycle.close(cx, &activity.key, Status::Ok, |_| ());
        }
    }

    /// The stream stops, or another run begins, before the run has ended.
    pub(super) fn cut(&mut self, cx: &mut FrameContext<'_>, end: &End) {
        if !self.lifecycle.has_run() {
            return;
        }
        cx.extra.clear();
        self.close_ended_thoughts(cx);
        let (outcome, why, error) = match end {
            End { aborted: true, .. } => {
                let error = error("aborted", Text::new("aborted"));
                (Outcome::Aborted, Why::Abort, error)
            }
            End { exit, .. } => {
                let why = match exit {
                    Some(Exit::Code(_) | Exit::Signal(_)) => Why::ProcessExit,
                    None => Why::MissingEnd,
                };
                let text = Text::new("the stream ended before the run did");
                (Outcome::Lost, why, error("missing_end", text))
            }
        };
        let mut ended = RunEnded::new(outcome, Some(error));
        ended.answer = self.last_text.take();
        let left_open = if outcome == Outcome::Aborted {
            Status::Cancelled
        } else {
            Status::Lost
        };
        cx.why = Some(why);
        self.lifecycle.end_run(cx, ended, left_open);
        cx.why = None;
        self.forget();
    }

    /// The stream is over.
    pub(super) fn finish(&mut self, cx: &mut FrameContext<'_>, end: &End) {
        if self.is_lost {
            return self.lifecycle.ignored(cx, self.n_ignored);
        }
        if self.lifecycle.n_runs() == 0 {
            if let Some(expected) = self.config.expected_session.clone() {
                // No session was reported; bind the requested one so the user can resume it.
                cx.why = Some(Why::MissingEnd);
                let bound = SessionBound::new(SessionId::new(expected), Binding::Resume);
                self.lifecycle.emit(cx, Body::SessionBound(bound));
                cx.why = None;
            }
            self.lifecycle.start_run(cx, Cause::Prompt);
        }
        self.end_chunks(cx);
        self.cut(cx, end);
    }

    pub(super) fn wrong_session(&mut self, cx: &mut FrameContext<'_>, got: &str) {
        let wanted = self.config.expected_session.clone().unwrap_or_default();
        cx.extra.clear();
        self.lifecycle.start_run(cx, Cause::Prompt);
        let native = SessionId::new(got.to_owned());
        self.lifecycle.emit(
            cx,
            Body::SessionBound(SessionBound::new(native, Binding::Mismatch)),
        );
        let message = format!("session `{wanted}` was asked for, the agent answered as `{got}`");
        let error = error("wrong_session", Text::new(message));
        cx.why = Some(Why::WrongSession);
        let ended = RunEnded::new(Outcome::Failed, Some(error));
        self.lifecycle.end_run(cx, ended, Status::Lost);
        cx.why = None;
        self.forget();
        self.is_lost = true;
    }

    fn forget(&mut self) {
        self.forget_texts();
        self.forget_calls();
        self.forget_subagents();
        self.activities.clear();
        self.last_text = None;
    }
}

fn error<'a>(code: &'static str, message: Text<'a>) -> RunError<'a> {
    RunError {
        code: Cow::Borrowed(code),
        message,
        native: None,
    }
}

fn outcome_of(name: &str) -> Option<Outcome> {
    Some(match name {
        "completed" => Outcome::Completed,
        "failed" => Outcome::Failed,
        "aborted" => Outcome::Aborted,
        "refused" => Outcome::Refused,
        "limit" => Outcome::Limit,
        "lost" => Outcome::Lost,
        _ => return None,
    })
}

fn tokens(usage: &wire::TokenUsage<'_>) -> Tokens {
    let cache_read = usage.cached_input_tokens.as_u64().unwrap_or_default();
    let cache_write = usage.cache_write_input_tokens.as_u64().unwrap_or_default();
    let input = usage.input_tokens.as_u64().unwrap_or_default();
    Tokens {
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: usage.output_tokens.as_u64(),
        reasoning: usage.reasoning_tokens.as_u64(),
    }
}
