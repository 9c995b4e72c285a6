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
    Cause, End, ItemId, Level, McpServer, Message, Origin, Part, Role, RunEnded, RunError,
    SessionBound, Status, Text, Timestamp,
};

use self::outcome::HeldResult;
use self::partial::Partials;
use self::plan::Tasks;
use super::input::Direction;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::missing_end::MissingEnd;
use super::recent::Recent;
use super::subagents::Subagents;
use super::{RunEnds, input, session_tracker};
use crate::wire::claude::{self as wire, Line};
use crate::wire::lenient::{Extra, Object as _, Words, read};
use crate::wire::scanner;

/// Prompts that wait for their turn; a client that sends more is not being read.
const MAX_PROMPTS: usize = 256;
/// Denied calls remembered until their result comes.
const MAX_DENIED: usize = 256;
/// Model responses whose blocks are being counted: the main agent's and its sub-agents'.
const MAX_RESPONSES: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Claude {
    lifecycle: Lifecycle,
    cwd: Option<String>,
    /// Prompts seen going in, whose turn has not begun.
    prompts: VecDeque<QueuedPrompt>,
    /// The last prompt that was shown, to know its echo.
    shown_prompt: Option<String>,
    partials: Partials,
    /// How many blocks of each model response were read: a line holds one block and no index.
    responses: Recent<(String, u64), MAX_RESPONSES>,
    subagents: Subagents,
    tasks: Tasks,
    /// Calls that were denied and whose result has not come.
    denied: Vec<ItemId<'static>>,
    compaction: Option<ItemId<'static>>,
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
    parts: Vec<Part<'static>>,
    at: Option<Timestamp>,
}

impl Claude {
    /// Reads what every line has; false when it is no object.
    fn is_line<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) -> bool {
        let is_read = input::is_object(&mut self.lifecycle, cx, "a Claude message", line);
        cx.native = line.uuid.str();
        // A line's own time is more exact than the recorder's: it wins where both are there.
        if let Some(at) = line.timestamp.str().and_then(|it| Timestamp::parse(&it)) {
            cx.at = Some(at);
        }
        is_read
    }

    fn queue_prompt(&mut self, cx: &FrameContext<'_>, content: Words<'_, wire::Block<'_>>) {
        let (text, parts) = blocks::text_and_parts(content);
        // Past the bound a prompt is not shown: its turn still is, with everything the agent does
        // in it.
        if self.prompts.len() < MAX_PROMPTS {
            self.prompts.push_back(QueuedPrompt {
                text: text.into_owned(),
                parts: parts.into_iter().map(Part::into_owned).collect(),
                at: cx.at,
            });
        }
    }

    /// True for a line of the agent that belongs to a turn, when the turn has its result and
    /// nothing started another one: no prompt, and no background task.
    fn is_after_end(&self, cx: &FrameContext<'_>, kind: &str, line: &Line<'_>) -> bool {
        let is_sub_agents = line.parent_tool_use_id.is_str();
        // A background sub-agent works on after its run's result; its lines still belong to its
        // call.
        if !self.has_result() || self.was_woken || self.is_turn_expected() || is_sub_agents {
            return false;
        }
        let is_recording = self.lifecycle.run_ends == RunEnds::AtNextTurn;
        match kind {
            "assistant" | "stream_event" | "error" => true,
            // Its own prompts are repeated by a CLI that was asked to.
            "user" => self.lifecycle.has_one_run() || !line.is_replay.is_true(),
            // What a background task woke the model for adds to the run before.
            "result" => !cx.has("origin"),
            // In a recording of the agent's output this is the only trace of a prompt.
            "system" => !is_recording && system::begins_turn(cx, line),
            _ => false,
        }
    }

    /// The last turn has its result, and no other one has begun.
    fn has_result(&self) -> bool {
        self.held.is_some() || self.lifecycle.has_ended()
    }

    /// Something says that there is another turn to come.
    fn is_turn_expected(&self) -> bool {
        !self.lifecycle.has_one_run() && (self.is_announced || !self.prompts.is_empty())
    }

    /// The agent works on a turn: ends the run before it if that is over, and starts one if none runs.
    fn begin_turn(&mut self, cx: &mut FrameContext<'_>) {
        // With one prompt, or after a wake-up, what follows a result adds to the same run.
        if self.held.is_some() && !self.was_woken && self.is_turn_expected() {
            self.finish_held(cx);
        }
        if !self.lifecycle.has_run() {
            // An interrupt that came between two turns stopped nothing of the next one.
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
        // The first prompt starts its turn at once; only later ones can wait behind a turn and be
        // merged.
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
        parts: Vec<Part<'_>>,
    ) {
        let id = self.next_block("prompt");
        let message = Message {
            parts,
            ..Message::new(id, role, text)
        };
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
    }

    /// Checks the session of a line that may decide which one answers.
    fn answers_as(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        id.is_none_or(|id| id.is_empty() || self.accepts_session(cx, id))
    }

    fn init<'c>(&mut self, cx: &mut FrameContext<'c>) {
        // Only `init` has these fields; `Line` holds what every line may have.
        let Ok(mut init) = scanner::from_str::<wire::Init<'c>>(cx.message) else {
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
            self.lifecycle.set_engine("qwen");
        }
        // An `init` without a directory keeps the earlier one: titles of calls are shortened by it.
        self.cwd = init.cwd.owned().or(self.cwd.take());
        if let Some(native) = self.lifecycle.session.id().map(str::to_owned) {
            let servers: Vec<wire::McpServer<'_>> = init.mcp_servers.parse().unwrap_or_default();
            if !servers.is_empty() {
                cx.keep("mcp_servers", init.mcp_servers);
            }
            let servers = servers.into_iter().filter_map(|it| {
                let status = it.status.0;
                it.name.0.map(|name| McpServer { name, status })
            });
            let bound = SessionBound {
                model: init.model.take(),
                cwd: init.cwd.take(),
                permission_mode: init.permission_mode.take().or(init.qwen_mode.take()),
                version: init.version.take().or(init.qwen_version.take()),
                tools: init.tools.0.into_iter().filter_map(|it| it.0).collect(),
                mcp_servers: servers.collect(),
                commands: (init.slash_commands.0.into_iter())
                    .filter_map(|it| it.0)
                    .collect(),
                ..session_tracker::bound(native)
            };
            // `init` announces a turn: the run before it ends first, or `session.bound` would fall
            // into it.
            if self.held.is_some() && !self.was_woken {
                self.finish_held(cx);
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
        // A result forgets its entry; only a stream that denies without ever answering reaches the
        // bound.
        if self.denied.len() < MAX_DENIED {
            self.denied.push(call.clone().into_owned());
        }
    }

    /// The id of the next block of a response.
    fn next_block(&mut self, response: &str) -> ItemId<'static> {
        // From the back: nearly always it is the latest.
        let known = self.responses.iter().rposition(|(id, _)| id == response);
        let at = known.unwrap_or_else(|| self.responses.push((response.to_owned(), 0)));
        let (id, n) = &mut self.responses[at];
        *n += 1;
        ItemId::new(format!("{id}.{}", *n - 1))
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
    const ENGINE: &str = "claude";

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        let mut line = Line::default();
        if !self.is_line(cx, &mut line) {
            return;
        }
        let kind = kind(&line, &cx.extra);
        if self.is_after_end(cx, &kind, &line) {
            return self.lifecycle.after_end(cx);
        }
        match &*kind {
            "system" => self.system(cx, &mut line),
            "result" => self.result(cx, &mut line),
            "assistant" => self.assistant(cx, &mut line),
            "user" => self.user(cx, &mut line),
            "stream_event" => self.stream_event(cx, &mut line),
            "rate_limit_event" => self.rate_limit(cx),
            "control_request" => self.control_request(cx, Direction::FromAgent),
            "control_response" => self.control_response(cx, Direction::FromAgent),
            "control_cancel_request" => self.control_cancel(cx),
            "keep_alive" => self
                .lifecycle
                .raise(cx, Level::Debug, "keep_alive", "keep alive"),
            "error" => self.error_line(cx),
            "" => self.lifecycle.unmapped(cx, "no type"),
            name => self.lifecycle.unmapped(cx, format!("type `{name}`")),
        }
    }

    fn client_message(&mut self, cx: &mut FrameContext<'_>) {
        let mut line = Line::default();
        if !self.is_line(cx, &mut line) {
            return;
        }
        match &*kind(&line, &cx.extra) {
            "user" => self.queue_prompt(cx, line.message.take().content),
            "control_request" => self.control_request(cx, Direction::ToAgent),
            "control_response" => self.control_response(cx, Direction::ToAgent),
            _ => self.lifecycle.unmapped(cx, "message to the agent"),
        }
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
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
        // A stop that was asked for explains the missing result better than an error on the way to
        // it.
        if let Some(error) = self.error.take().filter(|_| !missing.is_aborted()) {
            missing.fail_with(RunError::new("failed", error));
        }
    }
}

/// True for a line that only Claude Code prints.
pub(crate) fn recognises(text: &str) -> bool {
    let mut line = Line::default();
    if read(input::message(text), &mut line).is_err() {
        return false;
    }
    let kind = kind(&line, &line.extra);
    if line.r#type.0.is_none() {
        return is_of_sdk(&line, &kind);
    }
    match &*kind {
        // The chat files of Qwen Code are much like Claude's, but for what they hold.
        "system" => line.subtype.is_str() && !has(&line.extra, "systemPayload"),
        "result" => line.subtype.is_str(),
        "assistant" | "user" => {
            let message = line.message.get();
            message.is_some_and(|it| !matches!(it.content, Words::None))
        }
        "stream_event" => line.event.is_object(),
        "control_request" | "control_response" | "control_cancel_request" => true,
        "rate_limit_event" => true,
        // Others print lines of the types `error` and `keep_alive` as well.
        _ => false,
    }
}

/// The SDKs take the types away: what is left must name the session or the model.
fn is_of_sdk(line: &Line<'_>, kind: &str) -> bool {
    match kind {
        "system" => {
            let data = line.data.parse::<Line<'_>>().unwrap_or_default();
            data.session_id.is_str()
        }
        "result" | "stream_event" => line.session_id.is_str(),
        "assistant" => line.model.str().is_some_and(|it| it.starts_with("claude")),
        _ => false,
    }
}

/// The `type` of a line, found by its keys when an SDK took the type away; else empty.
fn kind<'l>(line: &Line<'l>, extra: &Extra<'_>) -> Cow<'l, str> {
    if let Some(kind) = line.r#type.str() {
        return kind;
    }
    let has_content = !matches!(line.content, Words::None);
    // What is left of a `result` still tells how it went and how many turns that took.
    let is_outcome = || has(extra, "is_error") && has(extra, "num_turns");
    Cow::Borrowed(if line.event.is_object() {
        "stream_event"
    } else if line.subtype.is_str() && line.data.0.is_some() {
        "system"
    } else if line.subtype.is_str() && line.session_id.is_str() && is_outcome() {
        "result"
    } else if has_content && line.model.is_str() {
        "assistant"
    } else if has_content {
        "user"
    } else {
        ""
    })
}

fn has(extra: &Extra<'_>, key: &str) -> bool {
    extra.iter().any(|(name, _)| name == key)
}
