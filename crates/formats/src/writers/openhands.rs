//! OpenHands events, one per line, as the SDK loads them: strict, without unknown keys or nulls.
//!
//! The SDK merges consecutive actions of one model response into one message, takes thoughts from
//! the first of them only, and wants every action to get one result. So words wait in a lane until
//! it is known what they belong to, an action is written when its input is whole, and a result when
//! it comes. Sub-agents have no place but `sender`; the rest of what is lost is in
//! `docs/openhands.md`.

mod agent_buffer;
mod calls;
mod end;
mod line_writer;
mod messages;
mod native;
mod session;
#[cfg(test)]
mod tests;
mod tools;

use model::{
    AskSettled, Body, Channel, Compaction, Decision, Event, Item, ItemClosed, ItemId, Level,
    Losses, Notice, Role, Scope, Status, Text, Usage, Writer,
};

use self::agent_buffer::AgentBuffer;
use self::calls::PendingAction;
use self::end::UsageTotals;
use self::line_writer::LineWriter;
use super::WriterConfig;
use crate::wire::lenient::{Any, Num, Str};
use crate::wire::openhands::{Content, Delta, Event as Line, ExecutionStatus, Source, StateUpdate};
use crate::wire::scanner;

/// How tool calls and text are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OpenHandsProfile {
    #[default]
    Mcp,
    External,
    Native,
    Acp,
    Message,
}

impl OpenHandsProfile {
    /// Some profiles write the text of a whole turn at its end.
    fn sends_text_at_end(self) -> bool {
        match self {
            Self::Acp | Self::Message => true,
            Self::Mcp | Self::External | Self::Native => false,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct OpenHands {
    profile: OpenHandsProfile,
    is_live: bool,
    pen: LineWriter,
    losses: Losses,
    engine: String,
    native: Option<String>,
    model: Option<String>,
    is_running: bool,
    /// A run has ended before: the next one takes the terminal status back.
    has_ended: bool,
    lanes: Vec<AgentBuffer>,
    calls: Vec<PendingAction>,
    n_asks: usize,
    /// The ask is denied: the agent continues after the rejection is written.
    is_denied: bool,
    totals: UsageTotals,
    /// Streaming texts, for live output.
    streams: Vec<(ItemId<'static>, bool)>,
}

impl OpenHands {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let profile = match config.profile.as_deref() {
            Some("external") => OpenHandsProfile::External,
            Some("native") => OpenHandsProfile::Native,
            Some("acp") => OpenHandsProfile::Acp,
            Some("message") => OpenHandsProfile::Message,
            Some(_) | None => OpenHandsProfile::Mcp,
        };
        Self {
            profile,
            is_live: config.live,
            pen: LineWriter::new(config.began),
            ..Self::default()
        }
    }

    fn started(&mut self, out: &mut Vec<u8>) {
        self.is_running = true;
        // The SDK takes `finished` and `error` for final, unless the conversation runs again.
        if self.has_ended {
            self.status(ExecutionStatus::Running, out);
        }
    }

    fn opened(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) if tool.input.is_some() => self.start_call(event, tool, out),
            Item::Plan(_) => self.losses.count("plan"),
            Item::Message(it) if it.role == Role::Assistant => self.stream(event, &it.id, false),
            Item::Reasoning(it) => self.stream(event, &it.id, true),
            // Written when they are complete.
            Item::Message(_)
            | Item::Tool(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn updated(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            // An action is written once, with the input it had then.
            Item::Tool(tool) if self.is_open(&tool.id) => self.losses.count("change of a call"),
            Item::Tool(tool) if tool.input.is_some() => self.start_call(event, tool, out),
            Item::Plan(_) => self.losses.count("plan"),
            Item::Tool(_)
            | Item::Message(_)
            | Item::Reasoning(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
    }

    fn closed(&mut self, event: &Event<'_>, closed: &ItemClosed<'_>, out: &mut Vec<u8>) {
        match &closed.item {
            Item::Message(it) => self.message(event, it, closed.status, out),
            Item::Reasoning(reasoning) => {
                self.unstream(&reasoning.id);
                if self.profile == OpenHandsProfile::Message {
                    return self.losses.count("reasoning");
                }
                let lane = self.response(event, reasoning.group.as_deref(), out);
                self.lanes[lane].held.think(reasoning);
                self.held_more(lane, out);
            }
            Item::Tool(tool) => self.end_call(event, tool, closed.status, out),
            Item::Subagent(subagent) => self.report(subagent, out),
            Item::Compaction(it) => self.compaction(event, it, closed.status, out),
            Item::Other(_) => self.losses.count("item of another kind"),
            // Its entries were counted as they came.
            Item::Plan(_) => (),
        }
    }

    /// Usage arrives before the first text of a call or after its last, so nothing held can grow.
    fn usage(&mut self, event: &Event<'_>, usage: &Usage<'_>, out: &mut Vec<u8>) {
        let is_root = event.path.is_empty();
        self.totals.reported(usage, is_root);
        if usage.scope != Scope::Call {
            return;
        }
        let lane = self.lane(event.path.last(), out);
        if !self.lanes[lane].has_acted {
            self.pause(lane, out);
        }
    }

    fn compaction(
        &mut self,
        event: &Event<'_>,
        compaction: &Compaction<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        if status != Status::Ok {
            return self.losses.count("failed compaction");
        }
        let lane = self.lane(event.path.last(), out);
        self.pause(lane, out);
        let head = self.pen.head(Source::Environment);
        let line = Line::Condensation {
            head,
            // Agents do not tell which events a summary replaces.
            forgotten_event_ids: [],
            summary: compaction.summary.as_ref().map(Text::by_ref),
            // Required, and agents name no response for a summary.
            llm_response_id: head.id,
        };
        self.pen.write(out, &line);
    }

    fn on_ask(&mut self, out: &mut Vec<u8>) {
        self.losses.count("detail of an ask");
        self.n_asks += 1;
        // The SDK has one status for all questions that are open.
        if self.n_asks == 1 && self.profile != OpenHandsProfile::Message {
            self.status(ExecutionStatus::WaitingForConfirmation, out);
        }
    }

    fn settled(&mut self, settled: &AskSettled<'_>, out: &mut Vec<u8>) {
        self.n_asks = self.n_asks.saturating_sub(1);
        self.is_denied = settled.decision == Decision::Denied;
        // The conversation runs again after the rejection is written.
        if !self.is_denied {
            self.run_on(out);
        }
    }

    /// No ask is open any longer.
    fn run_on(&mut self, out: &mut Vec<u8>) {
        self.is_denied = false;
        if self.n_asks == 0 && self.profile != OpenHandsProfile::Message {
            self.status(ExecutionStatus::Running, out);
        }
    }

    fn status(&mut self, status: ExecutionStatus, out: &mut Vec<u8>) {
        let head = self.pen.head(Source::Environment);
        let update = StateUpdate::ExecutionStatus(status);
        let line = Line::ConversationStateUpdateEvent { head, update };
        self.pen.write(out, &line);
    }

    fn notice(&mut self, event: &Event<'_>, notice: &Notice<'_>, out: &mut Vec<u8>) {
        if notice.code == "hook_response" && self.hook(event, notice, out).is_some() {
            return;
        }
        self.losses.count(match notice.level {
            Level::Debug => "debug notice",
            Level::Info => "notice",
            Level::Warning => "warning",
            Level::Error => "error notice",
        });
    }

    /// Writes a hook that has run, if it is one OpenHands has a name for.
    fn hook(&mut self, event: &Event<'_>, notice: &Notice<'_>, out: &mut Vec<u8>) -> Option<()> {
        let hook: Hook<'_> = scanner::from_str(notice.detail.as_ref()?.get()).ok()?;
        let event_name = hook
            .hook_event
            .as_deref()
            .or(hook.hook_event_type.as_deref());
        let is_event = |it: &&str| Some(*it) == event_name;
        let hook_event_type = HOOK_EVENTS.into_iter().find(is_event)?;
        let name = hook.hook_name.as_deref().or(hook.hook_command.as_deref());
        let name = name.unwrap_or(hook_event_type);
        // The SDK requires one.
        let exit_code = hook.exit_code.0? as i64;
        // The hook ran after the last text, which may still be held.
        if hook_event_type == "Stop" {
            let lane = self.lane(event.path.last(), out);
            self.pause(lane, out);
        }
        let head = self.pen.head(Source::Hook);
        let words = |it: Any<'_>| it.0.map(Text::from_json).unwrap_or_default().into_owned();
        let tool_name = match hook_event_type {
            "PreToolUse" | "PostToolUse" => match hook.tool_name.as_deref() {
                Some(tool) => Some(Text::new(tool)),
                // Claude Code calls such a hook `PreToolUse:Bash`.
                None => name.split_once(':').map(|it| Text::new(it.1)),
            },
            _ => None,
        };
        let line = Line::HookExecutionEvent {
            head,
            hook_event_type,
            hook_command: Text::new(name),
            tool_name,
            success: exit_code == 0,
            // Exit code 2 of a hook blocks the call.
            blocked: exit_code == 2,
            exit_code,
            stdout: words(hook.stdout),
            stderr: words(hook.stderr),
        };
        self.pen.write(out, &line);
        Some(())
    }

    /// Remembers what kind of text an item streams; a delta has no other mark.
    fn stream(&mut self, event: &Event<'_>, id: &ItemId<'_>, is_reasoning: bool) {
        // A delta has no sender: words of sub-agents would mix with those of the main agent.
        if self.is_live && event.path.is_empty() {
            self.streams.push((id.clone().into_owned(), is_reasoning));
        }
    }

    fn unstream(&mut self, id: &ItemId<'_>) {
        self.streams.retain(|it| it.0 != *id);
    }

    fn delta(&mut self, delta: &model::Delta<'_>, out: &mut Vec<u8>) {
        let stream = self.streams.iter().find(|it| it.0 == delta.item);
        let (Channel::Text, Some((_, is_reasoning))) = (delta.channel, stream) else {
            return;
        };
        let text = delta.text.by_ref();
        let delta = if *is_reasoning {
            Delta::ReasoningContent(text)
        } else {
            Delta::Content(text)
        };
        let head = self.pen.head(Source::Agent);
        self.pen
            .write(out, &Line::StreamingDeltaEvent { head, delta });
    }
}

impl Writer for OpenHands {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        // Deltas are by far the most frequent, and a file has none of them.
        if matches!(event.body, Body::ItemDelta(_)) && !self.is_live {
            return;
        }
        self.pen.turn_to(event);
        if self.engine != event.engine {
            self.engine = event.engine.clone().into_owned();
        }
        if !event.extra.is_empty() {
            self.losses.count("unread field");
        }
        match &event.body {
            Body::SessionBound(bound) => self.bound(event, bound, out),
            Body::RunStarted(_) => self.started(out),
            Body::RunEnded(ended) => self.ended(ended, out),
            Body::ItemOpened(item) => self.opened(event, item, out),
            Body::ItemUpdated(item) => self.updated(event, item, out),
            Body::ItemDelta(delta) => self.delta(delta, out),
            Body::ItemClosed(closed) => self.closed(event, closed, out),
            Body::AskOpened(_) => self.on_ask(out),
            Body::AskSettled(settled) => self.settled(settled, out),
            Body::UsageReported(usage) => self.usage(event, usage, out),
            Body::NoticeRaised(notice) => self.notice(event, notice, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_running {
            self.cut_off(out);
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

/// The moments OpenHands knows hooks for.
const HOOK_EVENTS: [&str; 6] = [
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
];

object! {
    /// What Claude Code and OpenHands itself report of a hook that has run.
    Hook {
        hook_name: Str<'a> = "hook_name",
        hook_command: Str<'a> = "hook_command",
        hook_event: Str<'a> = "hook_event",
        hook_event_type: Str<'a> = "hook_event_type",
        tool_name: Str<'a> = "tool_name",
        stdout: Any<'a> = "stdout",
        stderr: Any<'a> = "stderr",
        exit_code: Num = "exit_code",
    }
}

fn text(text: Text<'_>) -> Content<'_> {
    Content::Text { text }
}
