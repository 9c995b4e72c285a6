//! The events of the OpenHands SDK: its log, or what a websocket of its server sends.
//!
//! Facts from `openhands-sdk` 1.58.0. A log says nothing of runs: one begins with a message of the
//! user and is over when the agent writes without calling a tool, finishes, or a status says so. A
//! websocket adds statuses, costs and streamed text. An action and its observation are one tool
//! call; `finish` and `think` are words that OpenHands happens to send as calls.

mod calls;
mod client_lines;
mod end;
mod state;
#[cfg(test)]
mod tests;
mod texts;

use std::borrow::Cow;

use model::{Compaction, Item, ItemId, Level, Raw, RunEnded, SessionBound, Status, Timestamp};

use self::end::PossibleEnd;
use self::state::ConversationUsage;
use self::texts::StreamedItems;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::recent::Recent;
use super::subagents::Subagents;
use super::{input, session_tracker};
use crate::wire::lenient::read;
use crate::wire::openhands::inbound::{self as wire, Event};

/// Calls remembered at once.
const MAX_PENDING: usize = 256;
const MAX_SILENT: usize = 256;
/// Cards remembered after their end, because OpenHands may send the last one twice.
const MAX_CARDS: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct OpenHands {
    lifecycle: Lifecycle,
    cwd: Option<String>,
    model: Option<String>,
    /// The id and kind of the event before: a parent that is just that says nothing.
    last_id: Option<String>,
    was_interrupt: bool,
    n_ids: u64,
    streams: StreamedItems,
    subagents: Subagents,
    /// Calls without a result, for the question whether they may run.
    pending: Recent<ItemId<'static>, MAX_PENDING>,
    /// Calls that are emitted as text, until their observation arrives.
    silent: Recent<String, MAX_SILENT>,
    ended_cards: Recent<String, MAX_CARDS>,
    compaction: Option<ItemId<'static>>,
    last_condensation: Option<String>,
    used: ConversationUsage,
    /// linkspan runs the conversation, and can remember that a tool is allowed.
    is_ours: bool,
    ending: Option<PossibleEnd>,
}

impl OpenHands {
    /// Keeps what no rule reads and what says more than the SDK's defaults.
    fn take_extra<'c>(&mut self, cx: &mut FrameContext<'c>, event: &mut Event<'c>) {
        // The SDK writes every field, also those that hold nothing.
        cx.extra
            .retain(|(_, value)| !matches!(value.get(), "[]" | "{}" | "\"UNKNOWN\""));
        // What is only on a socket has no place in the tree of events.
        let kind = event.kind.as_deref();
        let is_passing = matches!(
            kind,
            Some("ConversationStateUpdateEvent" | "StreamingDeltaEvent")
        );
        let parent = event.parent_id.take();
        let is_branch = parent.is_some() && parent.as_deref() != self.last_id.as_deref();
        // The first event of a recording may name a parent that is not in it.
        if let Some(parent) = parent.filter(|_| is_branch && !is_passing && self.last_id.is_some())
        {
            cx.extra
                .push((Cow::Borrowed("parent_id"), Raw::of(&parent)));
        }
        if cx.native.is_some() && !is_passing {
            self.last_id = cx.native.as_deref().map(str::to_owned);
        }
    }

    /// The prompt of the system is the agent's own business; one of ours names a session.
    fn system_prompt(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) {
        let prompt = event.system_prompt.text.text().unwrap_or_default();
        let prompt = prompt.to_str();
        // linkspan writes no tools there; nor does OpenHands for an ACP agent, but its prompt reads
        // otherwise.
        if event.tools.0.is_empty()
            && let Some(introduced) = ForeignAgent::read(&prompt)
        {
            cx.extra.clear();
            return self.introduced(cx, &introduced, event);
        }
        let text = format!(
            "system prompt of {} characters, {} tools",
            prompt.chars().count(),
            event.tools.0.len()
        );
        self.lifecycle
            .raise_with_message(cx, Level::Debug, "system_prompt", text);
    }

    fn introduced(&mut self, cx: &mut FrameContext<'_>, it: &ForeignAgent<'_>, event: &Event<'_>) {
        if !self.accepts_session(cx, it.session) {
            return;
        }
        if it.cwd.is_some() {
            self.cwd = it.cwd.map(str::to_owned);
        }
        let context = event.dynamic_context.text.text().unwrap_or_default();
        let context = context.to_str();
        let fact = |name: &str| {
            let mut lines = context.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let list = |words: Option<&str>| -> Vec<Cow<'static, str>> {
            let words = words.into_iter().flat_map(|it| it.split(", "));
            words.map(|it| Cow::Owned(it.to_owned())).collect()
        };
        let own = |it: &str| Cow::Owned(it.to_owned());
        let bound = SessionBound {
            model: it.model.map(own),
            cwd: it.cwd.map(own),
            permission_mode: fact("permission mode").map(own),
            version: fact("version").map(own),
            tools: list(it.tools),
            commands: list(fact("commands")),
            mcp_servers: (fact("MCP servers").into_iter())
                .flat_map(|it| it.split(", "))
                .map(server)
                .collect(),
            ..session_tracker::bound(it.session)
        };
        self.lifecycle.bind(cx, bound);
    }

    fn condensing(&mut self, cx: &mut FrameContext<'_>) {
        self.work(cx);
        let id = ItemId::new(self.id(cx));
        self.compaction = Some(id.clone());
        self.lifecycle
            .open(cx, Item::Compaction(Compaction::new(id)));
    }

    fn condensed(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) {
        cx.extra.clear();
        self.work(cx);
        let own_id = self.id(cx);
        self.last_condensation = Some(own_id.clone());
        let id = self.compaction.take().unwrap_or(ItemId::new(own_id));
        if !self.lifecycle.is_open(&id) {
            let compaction = Compaction::new(id.clone());
            self.lifecycle.open(cx, Item::Compaction(compaction));
        }
        let whole = Item::Compaction(Compaction {
            summary: event.summary.text(),
            detail: Some(cx.raw()),
            ..Compaction::new(id)
        });
        self.lifecycle.close_whole(cx, whole, Status::Ok);
    }

    fn hook(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) {
        let name = event.hook_command.as_deref().unwrap_or("hook");
        let moment = event.hook_event_type.as_deref().unwrap_or("event");
        let verdict = match event.blocked.is_true() {
            true => "blocked",
            false => "done",
        };
        let text = format!("hook {name} at {moment}: {verdict}");
        self.lifecycle
            .raise_with_message(cx, Level::Info, "hook_response", text);
    }

    /// The id of the frame, or one of our own.
    fn id(&mut self, cx: &FrameContext<'_>) -> String {
        match cx.native.as_deref().filter(|it| !it.is_empty()) {
            Some(id) => id.to_owned(),
            None => {
                self.n_ids += 1;
                format!("event-{}", self.n_ids)
            }
        }
    }
}

impl MessageReader for OpenHands {
    const ENGINE: &str = "openhands";

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        let mut event = Event::default();
        if !input::is_object(&mut self.lifecycle, cx, "an OpenHands event", &mut event) {
            return;
        }
        cx.native = event.id.take();
        if let Some(at) = event.timestamp.as_deref().and_then(time) {
            cx.at = Some(at);
        }
        self.take_extra(cx, &mut event);
        // Only the error right after an interrupt is its consequence.
        let was_interrupt = std::mem::take(&mut self.was_interrupt);
        let kind = event.kind.take().unwrap_or_default();
        match &*kind {
            "SystemPromptEvent" => self.system_prompt(cx, &event),
            "MessageEvent" => self.chat_message(cx, event),
            "ActionEvent" => self.action(cx, event),
            "ObservationEvent" => self.observation(cx, event),
            "UserRejectObservation" => self.rejection(cx, event),
            "AgentErrorEvent" => self.agent_error(cx, event),
            "ACPToolCallEvent" => self.card(cx, event),
            "StreamingDeltaEvent" => self.delta(cx, &event),
            "Condensation" => self.condensed(cx, &event),
            "CondensationRequest" => self.condensing(cx),
            "CondensationSummaryEvent" => self.summary(cx, &event),
            "ConversationStateUpdateEvent" => self.state(cx, event),
            "ConversationErrorEvent" => self.conversation_error(cx, &event, was_interrupt),
            "PauseEvent" => self.stop(cx, "pause", "the user asked for a pause"),
            "InterruptEvent" => {
                self.was_interrupt = true;
                self.stop(cx, "interrupt", "the user interrupted the agent");
            }
            "HookExecutionEvent" => self.hook(cx, &event),
            "" => self.lifecycle.unmapped(cx, "no kind"),
            kind => match DEBUG.iter().find(|it| it.0 == kind) {
                Some((_, code, text)) => {
                    self.lifecycle
                        .raise_with_message(cx, Level::Debug, code, *text);
                }
                None => self.lifecycle.unmapped(cx, format!("kind `{kind}`")),
            },
        }
    }

    fn client_message(&mut self, cx: &mut FrameContext<'_>) {
        self.sent(cx);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.finish_run(cx, ended);
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.finish_ending(cx);
    }
}

/// True when a line can only be an event of OpenHands.
pub(crate) fn recognises(line: &str) -> bool {
    const SOURCES: [&str; 4] = ["agent", "user", "environment", "hook"];
    let line = input::message(line);
    let mut event = Event::default();
    // Cheaper than parsing: nearly every line of another format is sorted out here.
    if !line.contains("\"kind\"") || read(line, &mut event).is_err() {
        return false;
    }
    let is_from = |it: &str| SOURCES.contains(&it);
    let is_kind = |it: &str| KINDS.contains(&it);
    event.source.as_deref().is_some_and(is_from) && event.kind.as_deref().is_some_and(is_kind)
}

/// All kinds of events of `openhands-sdk` 1.58.0.
const KINDS: [&str; 19] = [
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "UserRejectObservation",
    "AgentErrorEvent",
    "ACPToolCallEvent",
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "ConversationStateUpdateEvent",
    "ConversationErrorEvent",
    "StreamingDeltaEvent",
    "PauseEvent",
    "InterruptEvent",
    "HookExecutionEvent",
    "SecurityAnalysisEvent",
    "LLMCompletionLogEvent",
    "TokenEvent",
];

/// Events that only help to debug OpenHands itself: their codes, and what they say.
const DEBUG: [(&str, &str, &str); 3] = [
    (
        "SecurityAnalysisEvent",
        "security_analysis",
        "risks were judged",
    ),
    (
        "LLMCompletionLogEvent",
        "completion_log",
        "a call of the model was logged",
    ),
    ("TokenEvent", "token_ids", "tokens of a call"),
];

/// A system prompt as linkspan writes it for a foreign agent: `Claude Code session ID (facts)`.
struct ForeignAgent<'a> {
    session: &'a str,
    model: Option<&'a str>,
    cwd: Option<&'a str>,
    tools: Option<&'a str>,
}

impl<'a> ForeignAgent<'a> {
    fn read(prompt: &'a str) -> Option<Self> {
        let (name, rest) = prompt.split_once(" session ")?;
        let (session, facts) = match rest.split_once(' ') {
            None => (rest, ""),
            Some((session, facts)) => {
                let facts = facts.strip_prefix('(')?.strip_suffix(')')?;
                (session, facts)
            }
        };
        // A real system prompt may contain the word `session`, but is no single line with a short
        // name in front.
        if name.split(' ').count() > 2 || prompt.contains('\n') || session.is_empty() {
            return None;
        }
        let mut it = Self {
            session,
            model: None,
            cwd: None,
            tools: None,
        };
        let mut rest = facts;
        while !rest.is_empty() {
            if let Some(tools) = rest.strip_prefix("tools: ") {
                it.tools = Some(tools);
                break;
            }
            let (fact, after) = rest.split_once(", ").unwrap_or((rest, ""));
            if let Some(model) = fact.strip_prefix("model ") {
                it.model = Some(model);
            } else {
                it.cwd = Some(fact.strip_prefix("cwd ")?);
            }
            rest = after;
        }
        Some(it)
    }
}

/// `name (status)`.
fn server(text: &str) -> model::McpServer<'static> {
    let (name, status) = match text.strip_suffix(')').and_then(|it| it.split_once(" (")) {
        Some((name, status)) => (name, Some(Cow::Owned(status.to_owned()))),
        None => (text, None),
    };
    model::McpServer {
        name: Cow::Owned(name.to_owned()),
        status,
    }
}

/// OpenHands writes local time without a zone, which is interpreted as UTC.
fn time(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}Z")))
}
