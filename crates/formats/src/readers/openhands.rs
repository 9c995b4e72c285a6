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
use std::collections::VecDeque;

use model::{
    Compaction, Denial, Item, ItemId, Level, Notice, Raw, RunEnded, SessionBound, Status, Text,
    Timestamp,
};

use self::calls::PendingCall;
use self::end::PossibleEnd;
use self::state::ConversationUsage;
use self::texts::StreamedItems;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::subagents::Subagents;
use super::{ReaderConfig, RunEnds, input, session_tracker};
use crate::wire::lenient::{Object as _, read};
use crate::wire::openhands::inbound::{self as wire, Event};

/// Calls that are emitted as text, remembered until their observation arrives.
const MAX_SILENT: usize = 256;
/// Cards remembered after their end, because OpenHands may send the last one twice.
const MAX_CARDS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct OpenHands {
    lifecycle: Lifecycle,
    run_ends: RunEnds,
    cwd: Option<String>,
    model: Option<String>,
    /// The id and kind of the event before: a parent that is just that says nothing.
    last_id: Option<String>,
    was_interrupt: bool,
    n_ids: u64,
    streams: StreamedItems,
    subagents: Subagents,
    pending: Vec<PendingCall>,
    silent: VecDeque<String>,
    ended_cards: VecDeque<String>,
    compaction: Option<ItemId<'static>>,
    last_condensation: Option<String>,
    used: ConversationUsage,
    denials: Vec<Denial<'static>>,
    /// linkspan runs the conversation, and can remember that a tool is allowed.
    is_ours: bool,
    last_text: Option<Text<'static>>,
    ending: Option<PossibleEnd>,
}

impl OpenHands {
    /// Keeps what no rule reads and what says more than the SDK's defaults.
    fn take_extra<'c>(&mut self, cx: &mut FrameContext<'c>, event: &mut Event<'c>) {
        cx.extra = std::mem::take(event.extra());
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
    fn system_prompt(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>, json: &str) {
        let prompt = event.system_prompt.text.0.map(Text::from_json);
        let prompt = prompt.unwrap_or_default();
        let prompt = prompt.to_str();
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
        self.emit_notice(cx, Level::Debug, "system_prompt", &text, json);
    }

    fn introduced(&mut self, cx: &mut FrameContext<'_>, it: &ForeignAgent<'_>, event: &Event<'_>) {
        if !self.accepts_session(cx, it.session) {
            return;
        }
        if it.cwd.is_some() {
            self.cwd = it.cwd.map(str::to_owned);
        }
        let context = event.dynamic_context.text.0.map(Text::from_json);
        let context = context.unwrap_or_default();
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
            mcp_servers: fact("MCP servers")
                .into_iter()
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
        self.lifecycle.open(cx, Item::Compaction(compaction(id)));
    }

    fn condensed(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>, json: &str) {
        cx.extra.clear();
        self.work(cx);
        let own_id = self.id(cx);
        self.last_condensation = Some(own_id.clone());
        let id = self.compaction.take().unwrap_or(ItemId::new(own_id));
        if !self.lifecycle.is_open(&id) {
            self.lifecycle
                .open(cx, Item::Compaction(compaction(id.clone())));
        }
        let whole = Compaction {
            summary: event.summary.0.map(Text::from_json),
            detail: Some(Raw::parse(json.to_owned())),
            ..compaction(id)
        };
        self.lifecycle
            .close_whole(cx, Item::Compaction(whole), Status::Ok);
    }

    fn hook(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>, json: &str) {
        let name = event.hook_command.as_deref().unwrap_or("hook");
        let moment = event.hook_event_type.as_deref().unwrap_or("event");
        let verdict = if event.blocked.is_true() {
            "blocked"
        } else {
            "done"
        };
        let text = format!("hook {name} at {moment}: {verdict}");
        self.emit_notice(cx, Level::Info, "hook_response", &text, json);
    }

    /// A notice that keeps the whole event.
    fn emit_notice(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: &str,
        json: &str,
    ) {
        cx.extra.clear();
        let notice = Notice {
            detail: Some(Raw::parse(json.to_owned())),
            ..Notice::new(level, code, Text::new(text))
        };
        self.lifecycle.notice(cx, notice);
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
    fn new(config: &ReaderConfig) -> Self {
        Self {
            lifecycle: Lifecycle::new("openhands", config),
            run_ends: config.run_ends,
            cwd: None,
            model: None,
            last_id: None,
            was_interrupt: false,
            n_ids: 0,
            streams: StreamedItems::default(),
            subagents: Subagents::default(),
            pending: Vec::new(),
            silent: VecDeque::new(),
            ended_cards: VecDeque::new(),
            compaction: None,
            last_condensation: None,
            used: ConversationUsage::default(),
            denials: Vec::new(),
            is_ours: false,
            last_text: None,
            ending: None,
        }
    }

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn agent(&self) -> &'static str {
        "openhands"
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        let mut event = Event::default();
        if !input::is_object(
            &mut self.lifecycle,
            cx,
            text,
            "an OpenHands event",
            &mut event,
        ) {
            return;
        }
        cx.native = event.id.take();
        if let Some(at) = event.timestamp.as_deref().and_then(time) {
            cx.at = Some(at);
        }
        self.take_extra(cx, &mut event);
        let was_interrupt = std::mem::take(&mut self.was_interrupt);
        let kind = event.kind.take().unwrap_or_default();
        match &*kind {
            "SystemPromptEvent" => self.system_prompt(cx, &event, text),
            "MessageEvent" => self.chat_message(cx, event),
            "ActionEvent" => self.action(cx, event),
            "ObservationEvent" => self.observation(cx, event),
            "UserRejectObservation" => self.rejection(cx, event),
            "AgentErrorEvent" => self.agent_error(cx, event),
            "ACPToolCallEvent" => self.card(cx, event),
            "StreamingDeltaEvent" => self.delta(cx, &event),
            "Condensation" => self.condensed(cx, &event, text),
            "CondensationRequest" => self.condensing(cx),
            "CondensationSummaryEvent" => self.summary(cx, &event),
            "ConversationStateUpdateEvent" => self.state(cx, event, text),
            "ConversationErrorEvent" => self.conversation_error(cx, &event, was_interrupt),
            "PauseEvent" => self.stop(cx, "pause", "the user asked for a pause"),
            "InterruptEvent" => {
                self.was_interrupt = true;
                self.stop(cx, "interrupt", "the user interrupted the agent");
            }
            "HookExecutionEvent" => self.hook(cx, &event, text),
            "SecurityAnalysisEvent" => {
                self.emit_notice(
                    cx,
                    Level::Debug,
                    "security_analysis",
                    "risks were judged",
                    text,
                );
            }
            "LLMCompletionLogEvent" => {
                self.emit_notice(
                    cx,
                    Level::Debug,
                    "completion_log",
                    "a call of the model was logged",
                    text,
                );
            }
            "TokenEvent" => {
                self.emit_notice(cx, Level::Debug, "token_ids", "tokens of a call", text)
            }
            "" => self.lifecycle.unmapped(cx, "no kind".to_owned(), text),
            other => self.lifecycle.unmapped(cx, format!("kind `{other}`"), text),
        }
    }

    fn client_message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        self.sent(cx, text);
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

fn compaction(id: ItemId<'static>) -> Compaction<'static> {
    Compaction {
        id,
        trigger: None,
        summary: None,
        tokens_before: None,
        tokens_after: None,
        detail: None,
    }
}
