//! ThreadEvents: what `codex exec --json` prints, for programs that read Codex.
//!
//! Each run is a turn. The default profile gives a tool call the item type that Codex would have
//! used; `seed` writes every call as a command named by its tool. Adjacent texts of one response
//! become one message, so a message is held back until something else happens.
//! Left out and counted: the user's words, reports of usage before the end, and asks unless a server
//! writes for clients that can answer.

mod agents;
mod asks;
mod calls;
mod codex_passthrough;
mod output;
mod plans;
mod turn;

use model::{
    Body, Channel, Delta, Event, Item, ItemClosed, ItemId, Level, Losses, Message, Notice, Outcome,
    Part, Reasoning, Role, RunEnded, SessionBound, Status, Text, Tool, Why, Writer,
};

pub use self::asks::waiting_ask;
pub(crate) use self::turn::run_figures;

use self::agents::ThreadOpenAgent;
use self::asks::ThreadOpenAsk;
use self::calls::{ThreadCall, ThreadCallEnd};
use self::output::{OutputSource, Outputs};
use self::plans::ThreadPlan;
use self::turn::{TurnState, Turns};
use super::{ServedThread, WriterConfig, line, take};
use crate::wire::thread as wire;

/// Text held back for what may still be added to it; more than this is written as it is.
const MAX_HELD: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadProfile {
    #[default]
    Typed,
    Seed,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    turns: Turns,
    held: Option<HeldMessage>,
    calls: Vec<ThreadOpenCall>,
    plans: Vec<ThreadPlan>,
    agents: Vec<ThreadOpenAgent>,
    asks: Vec<ThreadOpenAsk>,
    outputs: Outputs,
    served: Option<ServedThread>,
    losses: Losses,
}

/// A message that may grow.
#[derive(Clone, Debug)]
struct HeldMessage {
    id: ItemId<'static>,
    group: Option<String>,
    path: Vec<ItemId<'static>>,
    text: Text<'static>,
}

#[derive(Clone, Debug)]
struct ThreadOpenCall {
    item: ItemId<'static>,
    /// Absent until its input is known: the type of its item depends on it.
    call: Option<ThreadCall>,
    /// Only its end was emitted, so only its end is repeated.
    was_never_opened: bool,
    /// What it printed so far, in case no result comes.
    printed: String,
}

impl Thread {
    pub(crate) fn new(config: &WriterConfig) -> Self {
        let profile = match config.profile.as_deref() {
            Some("seed") => ThreadProfile::Seed,
            _ => ThreadProfile::Typed,
        };
        let is_full = config.profile.as_deref() == Some("full");
        Self {
            turns: Turns::new(profile),
            outputs: Outputs::new(is_full, config.served.as_ref()),
            served: config.served.clone(),
            ..Self::default()
        }
    }

    fn opened(&mut self, event: &Event<'_>, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.call_opened(event, tool, out),
            Item::Plan(plan) => self.plan_opened(plan, out),
            Item::Subagent(agent) => self.agent_opened(agent),
            Item::Message(_) | Item::Reasoning(_) | Item::Compaction(_) | Item::Other(_) => (),
        }
    }

    fn updated(&mut self, item: &Item<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        match item {
            Item::Tool(tool) => self.call_updated(tool, path, out),
            Item::Plan(plan) => self.plan_updated(plan, out),
            Item::Subagent(agent) => self.agent_updated(agent),
            Item::Message(_) | Item::Reasoning(_) | Item::Compaction(_) | Item::Other(_) => (),
        }
    }

    /// Texts are kept whole; a tool's output is truncated.
    fn delta(&mut self, delta: &Delta<'_>) {
        if delta.channel == Channel::Output
            && let Some(open) = self.calls.iter_mut().find(|it| it.item == delta.item)
            && open.printed.len() <= output::MAX_OUTPUT
        {
            // Kept for a call that never gets a result; otherwise the result repeats it.
            open.printed.push_str(&delta.text.to_str());
        }
    }

    fn closed(&mut self, event: &Event<'_>, closed: &ItemClosed<'_>, out: &mut Vec<u8>) {
        let path = &*event.path;
        match &closed.item {
            Item::Message(message) => self.message(message, path, out),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, out),
            Item::Tool(tool) => self.call_closed(event, tool, closed.status, out),
            Item::Plan(plan) => self.plan_closed(plan, out),
            Item::Subagent(agent) => self.agent_closed(agent, closed.status, path, out),
            Item::Compaction(_) => self.losses.count("compaction"),
            Item::Other(_) => self.losses.count("other item"),
        }
    }

    fn message(&mut self, message: &Message<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        match message.role {
            Role::User => return self.losses.count("user message"),
            Role::Harness => return self.losses.count("harness message"),
            Role::Assistant => (),
        }
        for part in &message.parts {
            self.losses.count(match part {
                Part::Image { .. } | Part::ImageUrl { .. } => "image",
                Part::Other(_) => "message part",
            });
        }
        if message.text.is_empty() {
            return;
        }
        if let Some(held) = &mut self.held
            && held.text.len_bound() < MAX_HELD
        {
            // Blocks of one response are cut where a citation begins or ends, in the middle of a sentence.
            let mut text = match std::mem::take(&mut held.text) {
                Text::Plain(text) => text.into_owned(),
                Text::Json(raw) => Text::Json(raw).to_str().into_owned(),
            };
            text.push_str(&message.text.to_str());
            held.text = Text::new(text);
            return;
        }
        self.release(out);
        self.held = Some(HeldMessage {
            id: message.id.clone().into_owned(),
            group: message.group.as_deref().map(str::to_owned),
            path: path.iter().cloned().map(ItemId::into_owned).collect(),
            text: message.text.clone().into_owned(),
        });
    }

    /// True when the held message may still grow after this event, or is not touched by it.
    fn may_hold(&self, event: &Event<'_>) -> bool {
        let Some(held) = &self.held else { return true };
        let continues = |item: &Item<'_>| match item {
            Item::Message(it) => {
                it.role == Role::Assistant
                    && held.group.is_some()
                    && it.group.as_deref() == held.group.as_deref()
                    && *event.path == *held.path
            }
            Item::Reasoning(_)
            | Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => false,
        };
        match &event.body {
            Body::ItemOpened(item) | Body::ItemUpdated(item) => continues(item),
            Body::ItemClosed(closed) => continues(&closed.item),
            // A warning is written, and must not overtake the text before it.
            Body::NoticeRaised(notice) => notice.level < Level::Warning,
            // These write nothing.
            Body::ItemDelta(_) | Body::UsageReported(_) | Body::FrameUnmapped(_) => true,
            Body::SessionBound(_)
            | Body::RunStarted(_)
            | Body::RunEnded(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_) => false,
        }
    }

    /// Writes the held message.
    fn release(&mut self, out: &mut Vec<u8>) {
        if let Some(held) = self.held.take() {
            // What a sub-agent writes is not the answer of the run.
            self.turns.has_answer |= held.path.is_empty();
            let text = &held.text;
            let details = wire::Details::AgentMessage { text, about: None };
            self.write_item(held.id.as_str(), details, out);
        }
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, out: &mut Vec<u8>) {
        if reasoning.encrypted.is_some() {
            self.losses.count("hidden reasoning");
        }
        if !reasoning.text.is_empty() {
            let text = &reasoning.text;
            let details = wire::Details::Reasoning { text };
            self.write_item(reasoning.id.as_str(), details, out);
        }
    }

    /// An item that has no life: it is only ever completed.
    fn write_item(&mut self, id: &str, details: wire::Details<'_>, out: &mut Vec<u8>) {
        self.turns.begin(out);
        let id = &*self.turns.kept_id(id);
        let item = wire::ThreadItem { id, details };
        line(out, &wire::ThreadEvent::ItemCompleted { item });
    }

    fn call_opened(&mut self, event: &Event<'_>, tool: &Tool<'_>, out: &mut Vec<u8>) {
        if self.calls.iter().any(|it| it.item == tool.id) {
            return self.call_updated(tool, &event.path, out);
        }
        let was_never_opened = event.why == Some(Why::NeverOpened);
        // An item keeps its type, so that it starts when the input tells which type it is.
        let is_due = tool.input.is_some() && !was_never_opened;
        let call = is_due.then(|| self.start(tool, &event.path, out));
        self.calls.push(ThreadOpenCall {
            item: tool.id.clone().into_owned(),
            was_never_opened,
            call,
            printed: String::new(),
        });
    }

    fn call_updated(&mut self, tool: &Tool<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) {
        let mut calls = self.calls.iter();
        let waits = calls.position(|it| it.item == tool.id && it.call.is_none());
        if let (Some(at), Some(_)) = (waits, &tool.input) {
            self.calls[at].call = Some(self.start(tool, path, out));
        }
    }

    fn call_closed(
        &mut self,
        event: &Event<'_>,
        tool: &Tool<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let path = &*event.path;
        let open = take(&mut self.calls, |it| it.item == tool.id);
        let was_never_opened = open.as_ref().is_some_and(|it| it.was_never_opened);
        let (call, printed) = open.map_or((None, String::new()), |it| (it.call, it.printed));
        let mut call = call.unwrap_or_else(|| match was_never_opened {
            true => self.call(tool, path, out),
            false => self.start(tool, path, out),
        });
        call.learn(tool);
        // The call of a background agent ends at once; the agent is still running.
        let in_background = (self.agents.iter()).any(|it| it.call == tool.id && it.in_background);
        let ending = ThreadCallEnd {
            status,
            tool: Some(tool),
            printed: &printed,
            in_background,
            outputs: &self.outputs.clone(),
            source: Some(OutputSource {
                session: event.session.as_str(),
                item: tool.id.as_str(),
                seq: event.seq,
            }),
            session: event.session.as_str(),
        };
        self.finish(&call, &ending, out);
    }

    fn call(&mut self, tool: &Tool<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) -> ThreadCall {
        self.turns.begin(out);
        let id = self.turns.own_id(tool.id.as_str());
        let sender = path.last().map_or(self.turns.thread_id(), ItemId::as_str);
        ThreadCall::new(id, tool, sender, self.turns.profile)
    }

    fn start(&mut self, tool: &Tool<'_>, path: &[ItemId<'_>], out: &mut Vec<u8>) -> ThreadCall {
        let call = self.call(tool, path, out);
        if let Some(item) = call.started() {
            line(out, &wire::ThreadEvent::ItemStarted { item });
        }
        call
    }

    fn finish(&mut self, call: &ThreadCall, ending: &ThreadCallEnd<'_>, out: &mut Vec<u8>) {
        if let Some(item) = call.completed(ending, &mut self.losses) {
            line(out, &wire::ThreadEvent::ItemCompleted { item });
        }
        if let Some(message) = call.error(ending, &mut self.losses) {
            self.write_item("", wire::Details::Error { message: &message }, out);
        }
    }

    fn notice(&mut self, notice: &Notice<'_>, out: &mut Vec<u8>) {
        let is_open = self.turns.turn == TurnState::Open;
        match codex_passthrough::warning(notice) {
            Some(codex_passthrough::CodexWarning::Item(id))
                if is_open || self.turns.is_between() =>
            {
                return self.turns.error_item(Some(&id), &notice.text, out);
            }
            Some(codex_passthrough::CodexWarning::Line) if is_open => {
                let message = &notice.text;
                return line(out, &wire::ThreadEvent::Error { message });
            }
            Some(_) | None => (),
        }
        if notice.level == Level::Error
            && notice.code == "error"
            && self.turns.turn != TurnState::None
        {
            // An error that the agent itself reports is a line of its own, whatever the profile.
            self.turns.begin(out);
            let message = &notice.text;
            return line(out, &wire::ThreadEvent::Error { message });
        }
        match notice.level {
            Level::Debug => self.losses.count("debug notice"),
            Level::Info => self.losses.count("info notice"),
            Level::Warning | Level::Error if self.turns.turn != TurnState::Open => {
                if !self.turns.postpone(&notice.text) {
                    self.losses.count("notice outside a run");
                }
            }
            Level::Warning | Level::Error => self.turns.error_item(None, &notice.text, out),
        }
    }

    fn bound(&mut self, bound: &SessionBound<'_>, out: &mut Vec<u8>) {
        // ThreadEvents have no place for the model, the directory and the tools.
        self.losses.count("session detail");
        self.turns.bind(bound.native.as_str(), out);
    }

    fn ended(&mut self, ended: &RunEnded<'_>, out: &mut Vec<u8>) {
        self.turns.begin(out);
        // A slash command of Claude Code answers in its `result` alone.
        if let (Outcome::Completed, Some(answer)) = (ended.outcome, &ended.answer)
            && !self.turns.has_answer
            && !answer.is_blank()
        {
            let text = answer;
            let details = wire::Details::AgentMessage { text, about: None };
            self.write_item("", details, out);
        }
        self.close_all(out);
        self.turns.end(&turn::terminal(ended), out);
    }

    /// Completes what is open; a lawful stream leaves nothing to do here.
    fn close_all(&mut self, out: &mut Vec<u8>) {
        let (outputs, session) = (self.outputs.clone(), self.turns.session.clone());
        for open in std::mem::take(&mut self.calls) {
            if let Some(call) = open.call {
                let ending = ThreadCallEnd::lost(&open.printed, &outputs, &session);
                self.finish(&call, &ending, out);
            }
        }
        for open in std::mem::take(&mut self.plans) {
            let item = open.todo_list();
            line(out, &wire::ThreadEvent::ItemCompleted { item });
        }
        self.agents.clear();
        self.close_asks(out);
    }

    fn abandon(&mut self, out: &mut Vec<u8>) {
        self.release(out);
        if self.turns.turn == TurnState::None {
            return;
        }
        self.turns.begin(out);
        self.close_all(out);
        let lost = RunEnded::new(Outcome::Lost, None);
        self.turns.end(&turn::terminal(&lost), out);
    }
}

impl Writer for Thread {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.turns.know_session(event.session.as_str());
        if !self.may_hold(event) {
            self.release(out);
        }
        match &event.body {
            Body::SessionBound(bound) => self.bound(bound, out),
            Body::RunStarted(_) => {
                // A run whose end never came must not leave its turn open.
                self.abandon(out);
                self.turns.start(out);
            }
            Body::RunEnded(ended) => self.ended(ended, out),
            Body::ItemOpened(item) => self.opened(event, item, out),
            Body::ItemUpdated(item) => self.updated(item, &event.path, out),
            Body::ItemDelta(delta) => self.delta(delta),
            Body::ItemClosed(closed) => self.closed(event, closed, out),
            Body::AskOpened(ask) => self.ask_opened(event, ask, out),
            Body::AskSettled(settled) => self.ask_settled(settled, out),
            Body::UsageReported(_) => self.losses.count("usage report"),
            Body::NoticeRaised(notice) => self.notice(notice, out),
            Body::FrameUnmapped(_) => self.losses.count("unmapped frame"),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.abandon(out);
        for _ in &self.turns.postponed {
            self.losses.count("notice outside a run");
        }
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }
}

#[cfg(test)]
mod tests;
