//! Messages: the user's at once, the model's when it is known what they belong to.

use model::{Event, ItemId, Message, Role, Status, Subagent};

use super::agent_buffer::{AgentBuffer, MAX_LANES, PendingResponse};
use super::{OpenHands, OpenHandsProfile, text, tools};
use crate::wire::openhands::{self as wire, Event as Line, Source};

impl OpenHands {
    pub(super) fn message(
        &mut self,
        event: &Event<'_>,
        message: &Message<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        let is_child = !event.path.is_empty();
        if is_child && self.profile == OpenHandsProfile::Message {
            return self.losses.count("message of a sub-agent");
        }
        match message.role {
            Role::Assistant => self.push_text(event, message, status, out),
            Role::User => self.note(event, message, Source::User, out),
            Role::Harness => self.note(event, message, Source::Environment, out),
        }
    }

    /// Holds a text of the model.
    fn push_text(
        &mut self,
        event: &Event<'_>,
        message: &Message<'_>,
        status: Status,
        out: &mut Vec<u8>,
    ) {
        self.unstream(&message.id);
        for _ in &message.parts {
            self.losses.count("part of a message");
        }
        if message.text.is_empty() {
            return;
        }
        let group = message.group.as_deref();
        let lane = self.response(event, group, out);
        if group.is_none() {
            self.lanes[lane].held.new_paragraph();
        }
        self.lanes[lane].push_text(message.text.clone().into_owned(), status);
        self.held_more(lane, out);
        // Without a name for its response, nothing can be added to this text.
        if group.is_none() {
            self.pause(lane, out);
        }
    }

    /// Writes a message to the model, from the user or from the agent program.
    fn note(
        &mut self,
        event: &Event<'_>,
        message: &Message<'_>,
        source: Source,
        out: &mut Vec<u8>,
    ) {
        let lane = self.lane(event.path.last(), out);
        self.pause(lane, out);
        let mut content = Vec::new();
        if !message.text.is_empty() {
            content.push(text(message.text.by_ref()));
        }
        for part in &message.parts {
            match tools::from_part(part) {
                Some(it) => content.push(it),
                None => self.losses.count("part of a message"),
            }
        }
        if content.is_empty() {
            return;
        }
        let line = Line::MessageEvent {
            head: self.pen.head(source),
            llm_response_id: None,
            sender: event.path.last().map(ItemId::as_str),
            llm_message: wire::Message {
                // There is no role for the agent's program: only the source tells it from the user.
                role: wire::Role::User,
                content,
                reasoning_content: None,
                thinking_blocks: Vec::new(),
            },
        };
        self.pen.write(out, &line);
    }

    /// The lane of the main agent, or of the sub-agent that a call started.
    pub(super) fn lane(&mut self, call: Option<&ItemId<'_>>, out: &mut Vec<u8>) -> usize {
        let found = self.lanes.iter().position(|it| it.call.as_ref() == call);
        if let Some(lane) = found {
            return lane;
        }
        // The lane that was opened first is the one most likely to be done.
        if self.lanes.len() >= MAX_LANES {
            self.flush(0, out);
            self.lanes.remove(0);
        }
        self.lanes.push(AgentBuffer::new(call));
        self.lanes.len() - 1
    }

    /// The lane, ready for a part of this response: what was held of another one is written.
    pub(super) fn response(
        &mut self,
        event: &Event<'_>,
        group: Option<&str>,
        out: &mut Vec<u8>,
    ) -> usize {
        let at = self.lane(event.path.last(), out);
        if self.lanes[at].response.as_deref() != group {
            self.pause(at, out);
            let lane = &mut self.lanes[at];
            lane.held.new_paragraph();
            lane.response = group.map(str::to_owned);
            lane.has_acted = false;
        }
        at
    }

    pub(super) fn is_written_at_the_end(&self, lane: usize) -> bool {
        self.profile.sends_text_at_end() && self.lanes[lane].call.is_none()
    }

    pub(super) fn held_more(&mut self, lane: usize, out: &mut Vec<u8>) {
        self.lanes[lane].held.at = Some(self.pen.at);
        if self.lanes[lane].held.is_full() {
            self.flush(lane, out);
        }
    }

    /// What is held is complete: it is written, unless the profile writes it at the end.
    pub(super) fn pause(&mut self, lane: usize, out: &mut Vec<u8>) {
        if !self.is_written_at_the_end(lane) {
            self.flush(lane, out);
        }
    }

    /// Writes what is held as a message.
    pub(super) fn flush(&mut self, lane: usize, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.lanes[lane].held);
        self.write_message(lane, &held, out);
    }

    fn write_message(&mut self, lane: usize, held: &PendingResponse, out: &mut Vec<u8>) {
        if held.is_empty() {
            return;
        }
        let lane = &self.lanes[lane];
        let at = held.at.unwrap_or(self.pen.at);
        let line = Line::MessageEvent {
            head: self.pen.head_at(Source::Agent, at),
            llm_response_id: lane.response.as_deref(),
            sender: lane.call.as_ref().map(ItemId::as_str),
            llm_message: wire::Message {
                role: wire::Role::Assistant,
                content: held.text().map(text).into_iter().collect(),
                reasoning_content: held.reasoning_content(),
                thinking_blocks: held.thinking_blocks(),
            },
        };
        self.pen.write(out, &line);
    }

    /// Ends a sub-agent. What one in the background reports is in no tool's result.
    pub(super) fn report(&mut self, subagent: &Subagent<'_>, out: &mut Vec<u8>) {
        let report = subagent.report.as_ref().filter(|_| subagent.background);
        if let Some(report) = report.filter(|it| !it.is_empty()) {
            if self.profile == OpenHandsProfile::Message {
                return self.losses.count("report of a sub-agent");
            }
            let lane = self.lane(Some(&subagent.call), out);
            // Most agents report with their last text.
            if !self.lanes[lane].has_written(report) {
                self.flush(lane, out);
                self.lanes[lane].response = None;
                self.lanes[lane].held.push_text(report.clone().into_owned());
            }
        }
        self.leave(&subagent.call, out);
    }

    /// A sub-agent has ended: what it still holds is written.
    pub(super) fn leave(&mut self, call: &ItemId<'_>, out: &mut Vec<u8>) {
        let is_its = |lane: &AgentBuffer| lane.call.as_ref() == Some(call);
        if let Some(lane) = self.lanes.iter().position(is_its) {
            self.flush(lane, out);
            self.lanes.remove(lane);
        }
    }
}
