//! Claude Code's stream-json: with and without partial messages, with control frames, one process
//! or many turns, and the Agent SDKs' repackaged messages.
//!
//! Facts from recordings of Claude Code 2.1.325. `init` need not be first and repeats; one assistant
//! line holds one block; results come in completion order; a `result` is not always the last word of
//! its run, so it is held until the next prompt or the end of the stream.

mod blocks;
mod control;
mod outcome;
mod partial;
mod plan;
mod results;
mod system;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;

use model::{
    Cause, End, Item, ItemId, McpServer, Message, Origin, Role, RunEnded, RunError, SessionBound,
    Status, Text, Timestamp,
};
use serde_json::value::RawValue;

use self::outcome::HeldResult;
use self::partial::Partials;
use self::plan::Tasks;
use super::input::Direction;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::missing_end::MissingEnd;
use super::subagents::Subagents;
use super::{ReaderConfig, RunEnds, input, session_tracker};
use crate::wire::claude::{self as wire, Line};
use crate::wire::lenient::{Object as _, Words, read};

/// Prompts that wait for their turn; a client that sends more is not being read.
const MAX_PROMPTS: usize = 256;
/// Denied calls remembered until their result comes.
const MAX_DENIED: usize = 256;
/// Model responses whose blocks are being counted: the main agent's and its sub-agents'.
const MAX_RESPONSES: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Claude {
    lifecycle: Lifecycle,
    run_ends: RunEnds,
    cwd: Option<String>,
    /// Prompts seen going in, whose turn has not begun.
    prompts: VecDeque<QueuedPrompt>,
    /// The last prompt that was shown, to know its echo.
    shown_prompt: Option<String>,
    partials: Partials,
    responses: Responses,
    subagents: Subagents,
    tasks: Tasks,
    /// Calls that were denied and whose result has not come.
    denied: Vec<ItemId<'static>>,
    compaction: Option<ItemId<'static>>,
    last_text: Option<Text<'static>>,
    /// The word for the last API failure, such as `rate_limit`.
    api_error: Option<String>,
    /// The message of an `error` line; the turn has failed regardless of its result.
    error: Option<Text<'static>>,
    was_interrupted: bool,
    held: Option<HeldResult>,
    /// A background task ended after the result: what follows adds to its run, or wakes the model
    /// for one of its own when the run is over.
    was_woken: bool,
    /// A turn was announced after the last result, and nothing of it has come yet.
    is_announced: bool,
}

#[derive(Clone, Debug)]
struct QueuedPrompt {
    text: Text<'static>,
    parts: Vec<model::Part<'static>>,
    at: Option<Timestamp>,
}

impl Claude {
    fn line<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str, direction: Direction) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, text, "a Claude message", &mut line) {
            return;
        }
        cx.native = line.uuid.str();
        let kind = kind(&line);
        let is_after_end = direction == Direction::FromAgent && self.is_after_end(kind, &line);
        cx.extra = std::mem::take(line.extra());
        if let Some(at) = line.timestamp.str().and_then(|it| Timestamp::parse(&it)) {
            cx.at = Some(at);
        }
        if direction == Direction::ToAgent {
            return self.on_host_line(cx, &mut line, text);
        }
        if is_after_end {
            return self.lifecycle.after_end(cx);
        }
        match kind {
            LineKind::System => self.system(cx, &mut line, text),
            LineKind::Result => self.result(cx, &mut line, text),
            LineKind::Assistant => self.assistant(cx, &mut line, text),
            LineKind::User => self.user(cx, &mut line, text),
            LineKind::StreamEvent => self.stream_event(cx, &mut line, text),
            LineKind::RateLimit => self.rate_limit(cx, text),
            LineKind::ControlRequest => self.control_request(cx, text, direction),
            LineKind::ControlResponse => self.control_response(cx, text, direction),
            LineKind::ControlCancel => self.control_cancel(cx, text),
            LineKind::KeepAlive => self.debug(cx, "keep_alive", "keep alive"),
            LineKind::Error => self.error_line(cx, text),
            LineKind::Unknown => {
                let what = match line.r#type.str() {
                    Some(name) => format!("type `{name}`"),
                    None => "no type".to_owned(),
                };
                self.lifecycle.unmapped(cx, what, text);
            }
        }
    }

    /// A message of the host to the agent, from a recording of both directions.
    fn on_host_line<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>, text: &'c str) {
        match kind(line) {
            LineKind::User => {
                let (text, parts) = blocks::text_and_parts(line.message.take().content);
                self.queue_prompt(QueuedPrompt {
                    text: text.into_owned(),
                    parts: parts.into_iter().map(model::Part::into_owned).collect(),
                    at: cx.at,
                });
            }
            LineKind::ControlRequest => self.control_request(cx, text, Direction::ToAgent),
            LineKind::ControlResponse => self.control_response(cx, text, Direction::ToAgent),
            LineKind::System
            | LineKind::Result
            | LineKind::Assistant
            | LineKind::StreamEvent
            | LineKind::RateLimit
            | LineKind::ControlCancel
            | LineKind::KeepAlive
            | LineKind::Error
            | LineKind::Unknown => {
                self.lifecycle
                    .unmapped(cx, "message to the agent".to_owned(), text)
            }
        }
    }

    fn queue_prompt(&mut self, prompt: QueuedPrompt) {
        if self.prompts.len() < MAX_PROMPTS {
            self.prompts.push_back(prompt);
        }
    }

    /// True for a line of the agent that belongs to a turn, when the turn has its result and
    /// nothing started another one: no prompt, and no background task.
    fn is_after_end(&self, kind: LineKind, line: &Line<'_>) -> bool {
        let is_sub_agents = line.parent_tool_use_id.is_str();
        if !self.has_result() || self.was_woken || self.is_turn_expected() || is_sub_agents {
            return false;
        }
        let is_recording = self.run_ends == RunEnds::AtNextTurn;
        match kind {
            LineKind::Assistant | LineKind::StreamEvent | LineKind::Error => true,
            // Its own prompts are repeated by a CLI that was asked to.
            LineKind::User => self.lifecycle.has_one_run() || !line.is_replay.is_true(),
            LineKind::Result => !outcome::is_of_background_task(line),
            // In a recording of the agent's output this is the only trace of a prompt.
            LineKind::System => !is_recording && system::begins_turn(line),
            LineKind::RateLimit
            | LineKind::ControlRequest
            | LineKind::ControlResponse
            | LineKind::ControlCancel
            | LineKind::KeepAlive
            | LineKind::Unknown => false,
        }
    }

    /// The last turn has its result, and no other one has begun.
    fn has_result(&self) -> bool {
        let is_over = self.lifecycle.n_runs() > 0 && !self.lifecycle.has_run();
        self.held.is_some() || is_over
    }

    /// Something says that there is another turn to come.
    fn is_turn_expected(&self) -> bool {
        !self.lifecycle.has_one_run() && (self.is_announced || !self.prompts.is_empty())
    }

    /// The agent works on a turn: ends the run before it if that is over, and starts one if none runs.
    fn begin_turn(&mut self, cx: &mut FrameContext<'_>) {
        if self.held.is_some() && !self.was_woken && self.is_turn_expected() {
            self.finish_held(cx);
        }
        if !self.lifecycle.has_run() {
            self.was_interrupted = false;
            self.start_turn(cx);
        }
    }

    /// A turn begins, in a recording that does not show its prompt.
    fn announce_turn(&mut self) {
        self.is_announced |= self.has_result() && !self.was_woken;
    }

    fn start_turn(&mut self, cx: &mut FrameContext<'_>) {
        self.is_announced = false;
        self.lifecycle.start_run(cx, Cause::Prompt);
        self.show_prompts(cx);
    }

    /// Shows the prompts whose turn this is. The CLI merges what was queued into one turn.
    fn show_prompts(&mut self, cx: &mut FrameContext<'_>) {
        let n = if self.lifecycle.n_runs() == 1 {
            self.prompts.len().min(1)
        } else {
            self.prompts.len()
        };
        let mut shown = Vec::new();
        for prompt in self.prompts.drain(..n).collect::<Vec<_>>() {
            shown.push(prompt.text.to_str().into_owned());
            let before = (cx.origin, cx.at);
            (cx.origin, cx.at) = (Origin::Client, prompt.at.or(cx.at));
            self.show_message(cx, Role::User, prompt.text, prompt.parts);
            (cx.origin, cx.at) = before;
        }
        if !shown.is_empty() {
            self.shown_prompt = Some(shown.join("\n"));
        }
    }

    /// A whole message that no response of the model contains.
    fn show_message(
        &mut self,
        cx: &mut FrameContext<'_>,
        role: Role,
        text: Text<'_>,
        parts: Vec<model::Part<'_>>,
    ) {
        let id = self.responses.block_id("prompt");
        let message = Message {
            id,
            role,
            group: None,
            text,
            parts,
        };
        self.lifecycle
            .close_text(cx, Item::Message(message), Status::Ok);
    }

    /// Checks the session of a line that may decide which one answers.
    fn answers_as(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        id.is_none_or(|id| id.is_empty() || self.accepts_session(cx, id))
    }

    fn init<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        let Ok(mut init) = serde_json::from_str::<wire::Init<'c>>(text) else {
            return;
        };
        let id = init.session_id.take();
        let session = &self.lifecycle.session;
        let is_new = id.is_some() && session.id().is_some() && session.id() != id.as_deref();
        if is_new && session.expected().is_none() {
            // Two recordings in one file: the first run is over.
            self.finish_held(cx);
        }
        if !self.answers_as(cx, id.as_deref()) {
            return;
        }
        cx.extra = std::mem::take(init.extra());
        if init.qwen_version.0.is_some() {
            // Another program that prints the same lines: it has resume lines of its own.
            self.lifecycle.set_engine_turns("qwen");
        }
        self.cwd = init.cwd.as_deref().map(str::to_owned).or(self.cwd.take());
        if let Some(native) = self.lifecycle.session.id().map(str::to_owned) {
            let servers: Vec<wire::McpServer<'_>> = init.mcp_servers.parse().unwrap_or_default();
            let in_full = init.mcp_servers.raw().filter(|_| !servers.is_empty());
            cx.extra
                .extend(in_full.map(|raw| (Cow::Borrowed("mcp_servers"), raw)));
            let bound = SessionBound {
                model: init.model.take(),
                cwd: init.cwd.take(),
                permission_mode: init.permission_mode.take().or(init.qwen_mode.take()),
                version: init.version.take().or(init.qwen_version.take()),
                tools: init.tools.0.into_iter().filter_map(|it| it.0).collect(),
                mcp_servers: servers
                    .into_iter()
                    .filter_map(|it| {
                        Some(McpServer {
                            name: it.name.0?,
                            status: it.status.0,
                        })
                    })
                    .collect(),
                commands: init
                    .slash_commands
                    .0
                    .into_iter()
                    .filter_map(|it| it.0)
                    .collect(),
                ..session_tracker::bound(native)
            };
            if self.held.is_some() && !self.was_woken {
                let extra = std::mem::take(&mut cx.extra);
                self.finish_held(cx);
                cx.extra = extra;
            }
            self.lifecycle.bind(cx, bound);
        }
        if self.has_result() && !self.was_woken && self.prompts.is_empty() {
            // A recording may end here: without a word of the turn there is no run.
            self.is_announced = true;
        } else {
            self.begin_turn(cx);
        }
    }

    fn remember_denied(&mut self, call: &ItemId<'_>) {
        if self.denied.len() < MAX_DENIED {
            self.denied.push(call.clone().into_owned());
        }
    }

    /// Where events of a sub-agent's frame go.
    fn enter(&mut self, cx: &mut FrameContext<'_>, parent: Option<&str>) {
        self.partials.enter(parent);
        if let Some(parent) = parent {
            let path = self.subagents.path_of(&mut self.lifecycle, cx, parent);
            cx.path = Cow::Owned(path);
        }
    }
}

impl MessageReader for Claude {
    fn new(config: &ReaderConfig) -> Self {
        Self {
            lifecycle: Lifecycle::new("claude", config),
            run_ends: config.run_ends,
            cwd: None,
            prompts: VecDeque::new(),
            shown_prompt: None,
            partials: Partials::default(),
            responses: Responses::default(),
            subagents: Subagents::default(),
            tasks: Tasks::default(),
            denied: Vec::new(),
            compaction: None,
            last_text: None,
            api_error: None,
            error: None,
            was_interrupted: false,
            held: None,
            was_woken: false,
            is_announced: false,
        }
    }

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn agent(&self) -> &'static str {
        "claude"
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        self.line(cx, text, Direction::FromAgent);
    }

    fn client_message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        self.line(cx, text, Direction::ToAgent);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        ended.answer = self.last_text.take();
        self.lifecycle.end_run(cx, ended);
        self.forget_run();
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.finish_held(cx);
    }

    fn start_queued(&mut self, cx: &mut FrameContext<'_>) -> bool {
        let is_queued = !self.prompts.is_empty();
        if is_queued {
            self.start_turn(cx);
        }
        is_queued
    }

    fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    fn judge(&mut self, _: &End, missing: &mut MissingEnd) {
        if let Some(error) = self.error.take().filter(|_| !missing.is_aborted()) {
            missing.fail_with(RunError::new("failed", error));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    System,
    Assistant,
    User,
    Result,
    StreamEvent,
    RateLimit,
    ControlRequest,
    ControlResponse,
    ControlCancel,
    KeepAlive,
    Error,
    Unknown,
}

/// True for a line that only Claude Code prints.
pub(crate) fn recognises(text: &str) -> bool {
    let mut line = Line::default();
    if read(input::message(text), &mut line).is_err() {
        return false;
    }
    if line.r#type.0.is_none() {
        return is_of_sdk(&line);
    }
    match kind(&line) {
        // The chat files of Qwen Code are much like Claude's, but for what they hold.
        LineKind::System => {
            let is_qwens = line.extra.iter().any(|(key, _)| key == "systemPayload");
            line.subtype.is_str() && !is_qwens
        }
        LineKind::Result => line.subtype.is_str(),
        LineKind::Assistant | LineKind::User => {
            let message = line.message.get();
            message.is_some_and(|it| !matches!(it.content, Words::None))
        }
        LineKind::StreamEvent => line.event.is_object(),
        LineKind::ControlRequest | LineKind::ControlResponse | LineKind::ControlCancel => true,
        LineKind::RateLimit => true,
        // Others print such lines as well.
        LineKind::KeepAlive | LineKind::Error | LineKind::Unknown => false,
    }
}

/// The SDKs take the types away: what is left must name the session or the model.
fn is_of_sdk(line: &Line<'_>) -> bool {
    match kind(line) {
        LineKind::System => {
            let data = line.data.parse::<Line<'_>>().unwrap_or_default();
            data.session_id.is_str()
        }
        LineKind::Result | LineKind::StreamEvent => line.session_id.is_str(),
        LineKind::Assistant => line.model.str().is_some_and(|it| it.starts_with("claude")),
        _ => false,
    }
}

/// What a line is, by its `type`, or by its keys when an SDK took the type away.
fn kind(line: &Line<'_>) -> LineKind {
    match line.r#type.str().as_deref() {
        Some("system") => LineKind::System,
        Some("assistant") => LineKind::Assistant,
        Some("user") => LineKind::User,
        Some("result") => LineKind::Result,
        Some("stream_event") => LineKind::StreamEvent,
        Some("rate_limit_event") => LineKind::RateLimit,
        Some("control_request") => LineKind::ControlRequest,
        Some("control_response") => LineKind::ControlResponse,
        Some("control_cancel_request") => LineKind::ControlCancel,
        Some("keep_alive") => LineKind::KeepAlive,
        Some("error") => LineKind::Error,
        Some(_) => LineKind::Unknown,
        None if line.event.is_object() => LineKind::StreamEvent,
        None if line.subtype.is_str() && line.data.0.is_some() => LineKind::System,
        None if line.subtype.is_str() && line.session_id.is_str() && is_outcome(line) => {
            LineKind::Result
        }
        None if !matches!(line.content, Words::None) && line.model.is_str() => LineKind::Assistant,
        None if !matches!(line.content, Words::None) => LineKind::User,
        None => LineKind::Unknown,
    }
}

/// What an SDK leaves of a `result` still tells how it went and how many turns that took; a word for a
/// subtype alone ends nothing.
fn is_outcome(line: &Line<'_>) -> bool {
    let has = |name: &str| line.extra.iter().any(|(key, _)| key == name);
    has("is_error") && has("num_turns")
}

/// Numbers the blocks of each model response, because a line holds one block and no index.
#[derive(Clone, Debug, Default)]
struct Responses {
    recent: VecDeque<(String, u64)>,
}

impl Responses {
    /// The id of the next block of a response.
    fn block_id(&mut self, response: &str) -> ItemId<'static> {
        // From the back: nearly always it is the latest.
        let at = self
            .recent
            .iter()
            .rposition(|(id, _)| id == response)
            .unwrap_or_else(|| {
                if self.recent.len() >= MAX_RESPONSES {
                    self.recent.pop_front();
                }
                self.recent.push_back((response.to_owned(), 0));
                self.recent.len() - 1
            });
        let (id, n) = &mut self.recent[at];
        *n += 1;
        ItemId::new(format!("{id}.{}", *n - 1))
    }

    /// True the first time a response is seen.
    fn is_new(&self, response: &str) -> bool {
        !self.recent.iter().rev().any(|(id, _)| id == response)
    }
}
