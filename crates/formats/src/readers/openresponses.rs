//! Open Responses streams: server-sent events of a model endpoint, or the same data as JSON lines.
//!
//! A response is a run. Facts from the 2026-04-24 schema and recordings of OpenAI, xAI, LM Studio and
//! GitHub Copilot. Items are known by `output_index`: some servers give every event another item id.
//! Only a terminal event says that a run went well; `[DONE]` and the end of the stream do not.

mod calls;
mod end;
mod hosted;
mod messages;
mod output;
mod patch;
mod reasoning;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::{Cause, End, Level, Notice, Raw, RunEnded, Text, Timestamp};

use self::output::OutputItems;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::missing_end::MissingEnd;
use super::{input, session_tracker};
use crate::wire::lenient::{Any, List, Str};
use crate::wire::openresponses::{self as wire, Line, Response};
use crate::wire::scanner;

/// The id of a response without one.
const UNNAMED: &str = "response";

#[derive(Clone, Debug, Default)]
pub(crate) struct OpenResponses {
    lifecycle: Lifecycle,
    /// The response that streams now, by the first id it had.
    response: Option<String>,
    /// The last response that ended.
    ended: Option<String>,
    output: OutputItems,
    /// An `error` event: usually `response.failed` follows and says the same.
    error: Option<Raw<'static>>,
    model: Option<String>,
    has_refused: bool,
    /// The model did something besides refusing.
    has_said: bool,
}

impl OpenResponses {
    fn event<'c>(&mut self, cx: &mut FrameContext<'c>, kind: &str, mut line: Line<'c>) {
        let name = kind.strip_prefix("response.").unwrap_or(kind);
        if self.lifecycle.is_over() && !self.is_of_another(name, &line) {
            return self.lifecycle.after_end(cx);
        }
        match name {
            "output_text.delta" => self.text_delta(cx, &line, line.delta, false),
            "output_text.done" => self.text_done(cx, &line, line.text, false),
            "refusal.delta" => self.text_delta(cx, &line, line.delta, true),
            "refusal.done" => self.text_done(cx, &line, line.refusal, true),
            "reasoning.delta" | "reasoning_text.delta" => self.reasoning_delta(cx, &line, false),
            "reasoning.done" | "reasoning_text.done" => self.reasoning_done(cx, &line, false),
            "reasoning_summary_text.delta" | "reasoning_summary.delta" => {
                self.reasoning_delta(cx, &line, true)
            }
            "reasoning_summary_text.done" | "reasoning_summary.done" => {
                self.reasoning_done(cx, &line, true)
            }
            "function_call_arguments.delta"
            | "custom_tool_call_input.delta"
            | "mcp_call_arguments.delta" => self.input_delta(cx, &line),
            "function_call_arguments.done" | "mcp_call_arguments.done" => {
                self.input_done(cx, &line, line.arguments)
            }
            "custom_tool_call_input.done" => self.input_done(cx, &line, line.input),
            "output_item.added" => self.item_added(cx, line),
            "output_item.done" => self.item_done(cx, line),
            // Each repeats its deltas; the item repeats them again.
            "content_part.added"
            | "content_part.done"
            | "reasoning_summary_part.added"
            | "reasoning_summary_part.done" => {
                cx.extra.clear();
            }
            "output_text.annotation.added" => {
                self.progress(cx, &line, "annotation", line.annotation)
            }
            "created" => self.created(cx, line.response.take()),
            "queued" => self.going_on(cx, line.response.take(), "queued"),
            "in_progress" => self.going_on(cx, line.response.take(), "in_progress"),
            "completed" | "incomplete" | "failed" | "cancelled" => {
                self.terminal(cx, kind, line.response.take());
            }
            "error" => self.error_event(cx),
            name => match progress_of(name) {
                Some(code) => self.progress(cx, &line, code, line.delta),
                None => self.lifecycle.unmapped(cx, format!("type `{kind}`")),
            },
        }
    }

    /// A response begins, unless the one before only repeats itself.
    fn created<'c>(&mut self, cx: &mut FrameContext<'c>, response: Response<'c>) {
        let is_same =
            self.response.is_some() && self.response.as_deref() == response.id().as_deref();
        if !is_same && self.response.is_some() {
            self.end_unfinished(cx);
        }
        self.begin(cx, response);
    }

    fn going_on<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        response: Response<'c>,
        status: &'static str,
    ) {
        if !self.lifecycle.has_run() {
            if self.has_ended(&response) {
                return self.lifecycle.after_end(cx);
            }
            self.begin(cx, response);
        }
        self.debug(cx, status, status);
    }

    /// True for an event of another response than the one that has ended.
    fn is_of_another(&self, name: &str, line: &Line<'_>) -> bool {
        let has_response = matches!(
            name,
            "created"
                | "queued"
                | "in_progress"
                | "completed"
                | "incomplete"
                | "failed"
                | "cancelled"
        );
        if !has_response || self.lifecycle.has_one_run() {
            return false;
        }
        let is_new = |it: &Response<'_>| it.id().is_some() && !self.has_ended(it);
        name == "created" || line.response.get().is_some_and(is_new)
    }

    /// A repetition of the last ended response.
    fn has_ended(&self, response: &Response<'_>) -> bool {
        let id = response.id();
        id.is_some() && self.ended.as_deref() == id.as_deref()
    }

    /// Introduces the session and starts the run.
    fn begin<'c>(&mut self, cx: &mut FrameContext<'c>, mut response: Response<'c>) {
        if self.lifecycle.has_run() && self.response.is_some() {
            return;
        }
        let id = response.id();
        cx.native = id.clone();
        // The time of a recorder is finer than the response's, which counts whole seconds.
        cx.at = cx.at.or(seconds(response.fact("created_at")));
        // The chain of responses is named by its first.
        let first = self.lifecycle.session.id().is_none();
        let other = self.other_chain(&response).filter(|_| first);
        if first {
            let expected = self.lifecycle.session.expected().map(str::to_owned);
            // A conversation outlives its responses, so its name is preferred to that of any of
            // them.
            let chain = conversation(&response).or(expected.map(Cow::Owned));
            if let Some(native) = chain.or(id.clone()) {
                self.lifecycle.session.adopt(&native);
            }
        }
        self.response = Some(id.map_or_else(|| UNNAMED.to_owned(), Cow::into_owned));
        let model = response.fact::<Str<'c>>("model").take();
        self.model = model.as_deref().map(str::to_owned);
        if let Some(native) = self.lifecycle.session.id().map(str::to_owned) {
            let tools: Any<'c> = response.fact("tools");
            let mut bound = session_tracker::bound(native);
            bound.model = model;
            bound.tools = tool_names(tools);
            cx.extra.append(&mut response.unread());
            cx.keep("tools", tools);
            self.lifecycle.bind(cx, bound);
        }
        self.lifecycle.start_run(cx, Cause::Prompt);
        if let Some(words) = other {
            self.debug(cx, "other_chain", words);
        }
    }

    /// What a response says it follows on, when that is not what was asked for. It is not another
    /// session: gateways use ids of their own, and the requested endpoint has answered.
    fn other_chain(&self, response: &Response<'_>) -> Option<String> {
        let wanted = self.lifecycle.session.expected()?;
        let before = || response.fact::<Str<'_>>("previous_response_id").take();
        let got = conversation(response).or_else(before)?;
        (got != wanted)
            .then(|| format!("`{wanted}` was to be followed, the response names `{got}`"))
    }

    /// Makes sure that something runs: a stream may begin in the middle.
    fn resume(&mut self, cx: &mut FrameContext<'_>) {
        if self.response.is_none() {
            // A stream may begin in the middle: items still need a group.
            self.response = Some(UNNAMED.to_owned());
        }
        self.lifecycle.start_run(cx, Cause::Prompt);
    }

    /// A response that was not streamed.
    fn whole(&mut self, cx: &mut FrameContext<'_>) {
        cx.extra.clear();
        let response: Response<'_> = scanner::from_str(cx.message).unwrap_or_default();
        let status = response.fact::<Str<'_>>("status").take();
        self.terminal(cx, status.as_deref().unwrap_or("completed"), response);
    }

    fn progress<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        code: &'static str,
        detail: Any<'c>,
    ) {
        let item = self.output.key_at(line);
        let notice = Notice {
            item,
            detail: detail.raw(),
            ..Notice::new(Level::Debug, code, Text::new(code))
        };
        self.lifecycle.notice(cx, notice);
    }

    fn debug<'t>(
        &mut self,
        cx: &mut FrameContext<'_>,
        code: &'static str,
        text: impl Into<Text<'t>>,
    ) {
        // The whole response comes again at its end.
        cx.extra.clear();
        self.lifecycle.raise(cx, Level::Debug, code, text);
    }
}

impl MessageReader for OpenResponses {
    const ENGINE: &str = "openresponses";
    const AGENT: &str = "the endpoint";
    const ANNOUNCES_TURNS: bool = true;

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        // No good end by itself: without a terminal event before it the response was cut.
        if cx.message.trim_ascii() == "[DONE]" {
            return self.end_unfinished(cx);
        }
        let mut line = Line::default();
        if !input::is_object(
            &mut self.lifecycle,
            cx,
            "an Open Responses event",
            &mut line,
        ) {
            return;
        }
        // GitHub Copilot and LM Studio send an empty list with every delta.
        if line.logprobs.0.is_some_and(|it| it.get() != "[]") {
            cx.keep("logprobs", line.logprobs);
        }
        let kind = line.r#type.take();
        match kind.as_deref() {
            Some(kind) => self.event(cx, kind, line),
            None if line.object.as_deref() == Some("response") => self.whole(cx),
            None if line.error.0.is_some() => self.error_event(cx),
            None => self.lifecycle.unmapped(cx, "no type"),
        }
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.lifecycle.end_run(cx, ended);
        self.forget();
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.show_held(cx);
    }

    fn judge(&mut self, end: &End, missing: &mut MissingEnd) {
        self.judge_cut(end, missing);
    }
}

/// True when the line can only be an event of a response.
pub(crate) fn recognises(line: &str) -> bool {
    let Ok(mut line) = scanner::from_str::<Line<'_>>(line) else {
        return false;
    };
    let kind = line.r#type.take();
    match kind.as_deref() {
        // Lines of the type `error` are common; the number is what other formats do not have.
        Some("error") => line.error.0.is_some() && line.sequence_number.0.is_some(),
        Some(kind) => kind.starts_with("response."),
        None => line.object.as_deref() == Some("response"),
    }
}

/// Events of hosted tools that only say how far they are.
fn progress_of(name: &str) -> Option<&'static str> {
    let (tool, what) = name.rsplit_once('.')?;
    let is_tool = tool.ends_with("_call")
        || matches!(
            tool,
            "mcp_list_tools"
                | "compaction"
                | "steer"
                | "code_interpreter_call_code"
                | "apply_patch_call_operation_diff"
                | "shell_call_command"
                | "shell_call_output_content"
        );
    match what {
        _ if !is_tool => None,
        "delta" => Some("hosted_delta"),
        "in_progress" | "searching" | "interpreting" | "generating" | "partial_image" | "added"
        | "completed" | "failed" | "done" | "compacting" | "accepted" | "pending" => {
            Some("hosted_progress")
        }
        _ => None,
    }
}

fn conversation<'a>(response: &Response<'a>) -> Option<Cow<'a, str>> {
    let mut conversation: wire::Conversation<'a> = response.fact("conversation");
    conversation.id.take()
}

fn seconds(number: crate::wire::lenient::Num) -> Option<Timestamp> {
    let seconds = number.0.filter(|it| *it > 0.0)?;
    Some(Timestamp::from_millis((seconds * 1000.0) as i64))
}

fn tool_names(tools: Any<'_>) -> Vec<Cow<'_, str>> {
    let tools: List<wire::Tool<'_>> = tools.parse().unwrap_or_default();
    let names = tools.0.into_iter();
    // Tools of the provider have no name, only a type.
    names.filter_map(|it| it.name.0.or(it.r#type.0)).collect()
}
