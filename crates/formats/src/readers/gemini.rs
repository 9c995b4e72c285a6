//! Gemini CLI's stream-json: `gemini --output-format stream-json`.
//!
//! Facts from recordings of Gemini CLI 0.61.0. The assistant's words come as chunks and nothing says
//! where a message ends, so the next thing that is no chunk ends it. Thoughts are not printed, a
//! shell's exit code is not either, and only `init` names the session.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::{
    Basis, Cause, Channel, Item, ItemId, Level, Message, ModelUsage, Outcome, Plan, Raw, Role,
    RunEnded, RunError, Scope, Status, Text, Timestamp, Tokens, Tool, ToolKind, ToolResult, Usage,
};

use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::{input, plans, session_tracker};
use crate::tools;
use crate::wire::gemini::{self as wire, Line};
use crate::wire::lenient::{Object as _, read};

#[derive(Clone, Debug, Default)]
pub(crate) struct Gemini {
    lifecycle: Lifecycle,
    /// The message whose chunks are coming.
    message: Option<ItemId<'static>>,
    n_messages: u64,
}

impl Gemini {
    fn init(&mut self, cx: &mut FrameContext<'_>, line: &Line<'_>) {
        self.close_message(cx);
        if let Some(id) = line.session_id.as_deref().filter(|it| !it.is_empty()) {
            if !self.accepts_session(cx, id) {
                return;
            }
            let mut bound = session_tracker::bound(id);
            bound.model = line.model.0.clone();
            self.lifecycle.bind(cx, bound);
        }
        self.begin(cx);
    }

    fn begin(&mut self, cx: &mut FrameContext<'_>) {
        if !self.lifecycle.has_run() {
            self.lifecycle.emit_bound(cx);
            // The fields of the line belong to its own event, not to the start of the run before
            // it.
            cx.without_extra(|cx| self.lifecycle.start_run(cx, Cause::Prompt));
        }
    }

    fn text<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let text = line.content.text().unwrap_or_default();
        let role = match line.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return self.lifecycle.unmapped(cx, "message of another role"),
        };
        self.begin(cx);
        if role == Role::Assistant && line.delta.is_true() {
            let id = self.streaming_message(cx);
            return self.lifecycle.delta(cx, &id, Channel::Text, text);
        }
        self.close_message(cx);
        if role == Role::Assistant {
            self.lifecycle.note_answer(cx, &text);
        }
        let message = Message::new(self.next_message(), role, text);
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
    }

    /// The message that chunks belong to.
    fn streaming_message(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        // An over-full list of open items may have closed it: then the next chunk begins a message.
        if let Some(id) = self.message.clone().filter(|it| self.lifecycle.is_open(it)) {
            return id;
        }
        let id = self.next_message();
        let message = Message::new(id.clone(), Role::Assistant, Text::EMPTY);
        self.lifecycle.open(cx, message.into());
        self.message = Some(id.clone());
        id
    }

    fn next_message(&mut self) -> ItemId<'static> {
        self.n_messages += 1;
        ItemId::new(format!("message.{}", self.n_messages))
    }

    /// The words are over.
    fn close_message(&mut self, cx: &mut FrameContext<'_>) {
        if let Some(id) = self.message.take() {
            cx.without_extra(|cx| self.lifecycle.close_streamed(cx, &id, Vec::new()));
        }
    }

    fn tool_use<'c>(&mut self, cx: &mut FrameContext<'c>, line: Line<'c>) {
        self.begin(cx);
        self.close_message(cx);
        let name = line.tool_name.0.unwrap_or(Cow::Borrowed("unknown"));
        let id = ItemId::new(line.tool_id.0.unwrap_or_else(|| name.clone()));
        let tool = tools::call(id, name, line.parameters.raw(), None);
        self.lifecycle.open(cx, tool.into());
    }

    fn tool_result<'c>(&mut self, cx: &mut FrameContext<'c>, line: Line<'c>) {
        self.begin(cx);
        self.close_message(cx);
        let id = ItemId::new(line.tool_id.0.unwrap_or(Cow::Borrowed("tool")));
        if !self.lifecycle.is_open(&id) {
            self.lifecycle.open_unseen_call(cx, &id);
        }
        let error: wire::Error<'c> = line.error.parse().unwrap_or_default();
        let status = match (line.status.as_deref(), error.r#type.as_deref()) {
            (Some("success"), _) => Status::Ok,
            (_, Some("policy_violation")) => Status::Denied,
            (_, Some("cancelled")) => Status::Cancelled,
            (_, _) if line.status.0.is_none() && line.error.0.is_none() => Status::Ok,
            _ => Status::Error,
        };
        self.show_plan(cx, &id, status);
        // A call that failed has an empty output; what happened is in its error.
        let output = line.output.raw().filter(|it| it.get() != "\"\"");
        let content = output.or(error.message.raw());
        let result = ToolResult {
            structured: line.error.raw(),
            ..ToolResult::new(
                content.unwrap_or_else(|| Raw::of(&"")),
                status != Status::Ok,
            )
        };
        self.lifecycle
            .close_tool(cx, &id, status, result, |tool| refine(tool, status));
    }

    fn show_plan(&mut self, cx: &mut FrameContext<'_>, id: &ItemId<'_>, status: Status) {
        let tool = self.lifecycle.open_tool(id);
        // Only a call that worked changes the plan, and its input is the whole list.
        let todo = tool.filter(|it| it.class.kind == ToolKind::Todo && status == Status::Ok);
        let input = todo.and_then(|it| it.input.as_ref());
        if let Some(entries) = input.and_then(|it| plans::entries(it.get())) {
            let id = ItemId::new("plan");
            self.lifecycle.update(cx, Item::Plan(Plan { id, entries }));
        }
    }

    fn error<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let level = match line.severity.as_deref() {
            Some("warning") => Level::Warning,
            _ => Level::Error,
        };
        let text = line.message.text();
        let text = text.unwrap_or(Text::new("gemini reports an error"));
        self.lifecycle.raise_with_message(cx, level, "error", text);
    }

    fn result<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.begin(cx);
        self.close_message(cx);
        // The whole frame is kept with the run's end.
        cx.extra.clear();
        let mut stats: wire::Stats<'c> = line.stats.parse().unwrap_or_default();
        let error: wire::Error<'c> = line.error.parse().unwrap_or_default();
        let (outcome, error) = verdict(line.status.as_deref(), error);
        let models = std::mem::take(&mut stats.models).0.into_iter();
        let models = models.map(|(model, mut usage)| ModelUsage::new(model, tokens(&usage.take())));
        let ended = RunEnded {
            usage: stats.is_object().then(|| Usage {
                detail: line.stats.raw(),
                ..Usage::new(Scope::Run, Basis::Delta, tokens(&stats))
            }),
            models: models.collect(),
            duration_ms: stats.duration_ms.as_u64(),
            detail: Some(cx.raw()),
            ..RunEnded::new(outcome, error)
        };
        self.end_run(cx, ended);
    }
}

impl MessageReader for Gemini {
    const ENGINE: &str = "gemini";
    const ANNOUNCES_TURNS: bool = true;

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, "a Gemini event", &mut line) {
            return;
        }
        if let Some(at) = line.timestamp.as_deref().and_then(Timestamp::parse) {
            cx.at = Some(at);
        }
        let kind = line.r#type.as_deref();
        // A file may hold two recordings: only an `init` begins another run.
        if self.lifecycle.is_over() && (kind != Some("init") || self.lifecycle.has_one_run()) {
            return self.lifecycle.after_end(cx);
        }
        match kind {
            Some("init") => self.init(cx, &line),
            Some("message") => self.text(cx, &line),
            Some("tool_use") => self.tool_use(cx, line),
            Some("tool_result") => self.tool_result(cx, line),
            Some("error") => self.error(cx, &line),
            Some("result") => self.result(cx, &line),
            Some(other) => self.lifecycle.unmapped(cx, format!("type `{other}`")),
            None => self.lifecycle.unmapped(cx, "no type"),
        }
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.close_message(cx);
    }
}

/// True when a frame can be of no other format.
pub(crate) fn recognises(line: &str) -> bool {
    let mut it = Line::default();
    // Claude Code and OpenCode have lines of these types, too; every line of Gemini CLI has a time.
    if read(input::message(line), &mut it).is_err() || it.timestamp.0.is_none() {
        return false;
    }
    match it.r#type.as_deref() {
        Some("init") => it.session_id.0.is_some(),
        Some("message") => it.role.0.is_some() && it.content.0.is_some(),
        Some("tool_use") => it.tool_id.0.is_some() && it.tool_name.0.is_some(),
        Some("tool_result") => it.tool_id.0.is_some() && it.status.0.is_some(),
        Some("result") => it.status.0.is_some() && it.stats.0.is_some(),
        _ => false,
    }
}

/// What only the result tells about a call.
fn refine(tool: &mut Tool<'_>, status: Status) {
    if tool.class.kind == ToolKind::Edit && status == Status::Ok {
        tool.class.change = Some(model::Change::Update);
    }
}

fn verdict<'c>(status: Option<&str>, error: wire::Error<'c>) -> (Outcome, Option<RunError<'c>>) {
    if status == Some("success") {
        return (Outcome::Completed, None);
    }
    let code = error.r#type.0;
    let outcome = match code.as_deref() {
        Some("FatalTurnLimitedError") => Outcome::Limit,
        Some("FatalCancellationError") => Outcome::Aborted,
        _ => Outcome::Failed,
    };
    // `unknown` says no more than that the run failed.
    let code = code.filter(|it| it != "unknown");
    let message = error.message.text();
    let error = RunError::new(
        code.unwrap_or(Cow::Borrowed("failed")),
        message.unwrap_or(Text::new("gemini run failed")),
    );
    (outcome, Some(error))
}

fn tokens(stats: &wire::Stats<'_>) -> Tokens {
    let cache_read = stats.cached.count();
    let all_input = stats.input_tokens.count();
    let input = stats.input.as_u64();
    Tokens {
        // `input_tokens` counts cached input in; `input`, where it is printed, does not.
        input: input.unwrap_or(all_input.saturating_sub(cache_read)),
        cache_read,
        cache_write: 0,
        output: stats.output_tokens.as_u64(),
        reasoning: None,
    }
}
