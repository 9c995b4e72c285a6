//! Messages and reasoning of a run.
//!
//! A text starts with its first piece, so that an empty one never shows.

use model::{Body, Extra, Item, Level, Losses, Message, Part, Raw, Reasoning, Role, Text};

use super::items::{Items, type_of};
use super::lane::{EventLane, MAX_PIECE, parts};
use super::{AgUiProfile, wire};
use crate::writers::find_extra;

#[derive(Clone, Debug)]
pub(super) struct AgUiOpenText {
    id: String,
    kind: TextKind,
    group: Option<String>,
    has_deltas: bool,
    is_started: bool,
    /// How a message is meant, if the agent reports it.
    phase: Option<Raw<'static>>,
    is_refusal: bool,
    /// The reasoning this is a part of.
    span: Option<String>,
}

/// Reasoning of one model response: its messages follow each other.
#[derive(Clone, Debug)]
pub(super) struct ReasoningSpan {
    id: String,
    group: String,
    subagent: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Message(Role),
    Reasoning,
}

impl Items {
    pub(super) fn open_text(&mut self, id: &str, kind: TextKind, group: Option<&str>) {
        self.texts.push(AgUiOpenText {
            id: id.to_owned(),
            kind,
            group: group.map(str::to_owned),
            has_deltas: false,
            is_started: false,
            phase: None,
            is_refusal: false,
            span: None,
        });
    }

    /// Reads from the frame that opened the last text how it is meant.
    pub(super) fn mark_manner(&mut self, extra: &Extra<'_>) {
        if extra.is_empty() || self.shape == AgUiProfile::Thinking {
            return;
        }
        if let Some(open) = self.texts.last_mut() {
            let phase = find_extra(extra, "phase").filter(|it| it.is_string());
            open.phase = phase.map(|it| it.clone().into_owned());
            open.is_refusal = find_extra(extra, "refusal").is_some_and(|it| it.get() == "true");
        }
    }

    pub(super) fn text_delta(&mut self, id: &str, text: &Text<'_>, lane: &mut EventLane<'_>) {
        if let Some(at) = self.find_text(id) {
            self.texts[at].has_deltas = true;
            self.write_text(at, text, lane);
        }
    }

    /// A piece of text, behind whatever must come before the first.
    fn write_text(&mut self, at: usize, text: &Text<'_>, lane: &mut EventLane<'_>) {
        if text.is_empty() {
            return;
        }
        self.start(at, lane);
        let open = &self.texts[at];
        let message_id = &open.id;
        match (open.kind, self.shape) {
            (TextKind::Message(_), _) => {
                lane.piece("TEXT_MESSAGE_CONTENT", "messageId", message_id, text);
            }
            (TextKind::Reasoning, AgUiProfile::Current) => {
                lane.piece("REASONING_MESSAGE_CONTENT", "messageId", message_id, text);
            }
            (TextKind::Reasoning, AgUiProfile::Thinking) if text.len_bound() <= MAX_PIECE => {
                lane.emit(wire::Body::ThinkingTextMessageContent { delta: text });
            }
            (TextKind::Reasoning, AgUiProfile::Thinking) => {
                for part in parts(&text.to_str()) {
                    let delta = &Text::new(part);
                    lane.emit(wire::Body::ThinkingTextMessageContent { delta });
                }
            }
        }
    }

    fn start(&mut self, at: usize, lane: &mut EventLane<'_>) {
        let open = &mut self.texts[at];
        if open.kind == TextKind::Reasoning && self.shape == AgUiProfile::Thinking {
            return self.think(at, lane);
        }
        if std::mem::replace(&mut open.is_started, true) {
            return;
        }
        let message_id = &open.id;
        match open.kind {
            TextKind::Message(role) => {
                let has_manner = open.phase.is_some() || open.is_refusal;
                lane.emit(wire::Body::TextMessageStart {
                    message_id,
                    role: role_name(role),
                    metadata: has_manner.then_some(wire::Manner {
                        phase: open.phase.as_ref(),
                        refusal: open.is_refusal,
                    }),
                });
                if role == Role::Assistant {
                    // What a sub-agent writes is not the answer of the run.
                    self.has_text |= lane.subagent.is_none();
                    let (id, group) = (open.id.clone(), open.group.clone());
                    self.set_parent(id, group, lane);
                }
            }
            TextKind::Reasoning => {
                let (id, group) = (open.id.clone(), open.group.clone());
                let span = self.enter_span(id, group.as_deref(), lane);
                let open = &mut self.texts[at];
                open.span = Some(span);
                lane.emit(wire::Body::ReasoningMessageStart {
                    message_id: &open.id,
                    role: "reasoning",
                });
            }
        }
    }

    /// Continues the reasoning before, if it may, or begins another.
    fn enter_span(&mut self, id: String, group: Option<&str>, lane: &mut EventLane<'_>) -> String {
        if let Some(span) = &self.span
            && Some(&*span.group) == group
            && span.subagent.as_deref() == lane.subagent
        {
            let id = span.id.clone();
            // Not ended, but taken over by the message that begins.
            self.span = None;
            return id;
        }
        self.end_span(lane);
        lane.emit(wire::Body::ReasoningStart { message_id: &id });
        id
    }

    /// True when an event cannot be the end of the reasoning before it.
    pub(super) fn continues_reasoning(&self, body: &Body<'_>) -> bool {
        let Some(span) = &self.span else {
            return true;
        };
        match body {
            Body::ItemOpened(Item::Reasoning(it)) => it.group.as_deref() == Some(&span.group),
            Body::ItemClosed(closed) => matches!(closed.item, Item::Reasoning(_)),
            Body::ItemDelta(it) => {
                let at = self.find_text(it.item.as_str());
                at.is_some_and(|at| self.texts[at].kind == TextKind::Reasoning)
            }
            // Neither of these two becomes an event that a client would see in between.
            Body::UsageReported(_) => true,
            Body::NoticeRaised(it) => it.level == Level::Debug,
            Body::SessionBound(_)
            | Body::RunStarted(_)
            | Body::RunEnded(_)
            | Body::ItemOpened(_)
            | Body::ItemUpdated(_)
            | Body::AskOpened(_)
            | Body::AskSettled(_)
            | Body::FrameUnmapped(_) => false,
        }
    }

    /// Ends the reasoning: nothing of it can follow.
    pub(super) fn end_span(&mut self, lane: &mut EventLane<'_>) {
        if let Some(span) = self.span.take() {
            let mut lane = EventLane {
                at: lane.at,
                subagent: span.subagent.as_deref(),
                ..EventLane::new(lane.out)
            };
            lane.emit(wire::Body::ReasoningEnd {
                message_id: &span.id,
            });
        }
    }

    /// Makes one reasoning the current one, and ends another.
    fn think(&mut self, at: usize, lane: &mut EventLane<'_>) {
        let open = &mut self.texts[at];
        open.is_started = true;
        if self.thinking.as_deref() == Some(&open.id) {
            return;
        }
        let id = open.id.clone();
        self.stop_thinking(lane);
        self.thinking = Some(id);
        lane.emit(wire::Body::ThinkingStart);
        lane.emit(wire::Body::ThinkingTextMessageStart);
    }

    fn stop_thinking(&mut self, lane: &mut EventLane<'_>) {
        if self.thinking.take().is_some() {
            lane.emit(wire::Body::ThinkingTextMessageEnd);
            lane.emit(wire::Body::ThinkingEnd);
        }
    }

    pub(super) fn message_closed(
        &mut self,
        it: &Message<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.write_text(at, &it.text, lane);
        }
        if it.parts.is_empty() {
            return self.end_text(at, lane);
        }
        match self.shape {
            AgUiProfile::Current => {
                // They belong to a message, even to one without words.
                self.start(at, lane);
                let open = self.texts.remove(at);
                lane.emit(wire::Body::TextMessageEnd {
                    message_id: &open.id,
                    metadata: Some(attached(&it.parts)),
                });
            }
            AgUiProfile::Thinking => {
                for part in &it.parts {
                    losses.count(match part {
                        Part::Image { .. } | Part::ImageUrl { .. } => "image in a message",
                        Part::Other(_) => "content block",
                    });
                }
                self.end_text(at, lane);
            }
        }
    }

    pub(super) fn reasoning_closed(
        &mut self,
        it: &Reasoning<'_>,
        lane: &mut EventLane<'_>,
        losses: &mut Losses,
    ) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.write_text(at, &it.text, lane);
        }
        let hidden = it.encrypted.as_ref().or(it.signature.as_ref());
        let Some(hidden) = hidden.filter(|it| !it.is_empty()) else {
            return self.end_text(at, lane);
        };
        match self.shape {
            AgUiProfile::Current => {
                // It belongs to a message, even to one without words.
                self.start(at, lane);
                let is_signature = it.encrypted.as_ref().is_none_or(Text::is_empty);
                self.end_reasoning(at, lane, |lane| {
                    lane.emit(wire::Body::ReasoningEncryptedValue {
                        subtype: "message",
                        entity_id: it.id.as_str(),
                        encrypted_value: hidden,
                        metadata: is_signature.then_some(wire::Metadata {
                            linkspan: wire::Hidden { kind: "signature" },
                        }),
                    });
                });
            }
            AgUiProfile::Thinking => {
                losses.count("hidden reasoning");
                self.end_text(at, lane);
            }
        }
    }

    /// Ends a message of the reasoning, and the reasoning itself if nothing can follow.
    fn end_reasoning(
        &mut self,
        at: usize,
        lane: &mut EventLane<'_>,
        behind: impl FnOnce(&mut EventLane<'_>),
    ) {
        let open = self.texts.remove(at);
        let message_id = &open.id;
        lane.emit(wire::Body::ReasoningMessageEnd { message_id });
        // The hidden value belongs inside the span, behind the message it is of.
        behind(lane);
        self.end_span(lane);
        let id = open.span.unwrap_or(open.id);
        match open.group {
            Some(group) => {
                self.span = Some(ReasoningSpan {
                    id,
                    group,
                    subagent: lane.subagent.map(str::to_owned),
                });
            }
            None => lane.emit(wire::Body::ReasoningEnd { message_id: &id }),
        }
    }

    pub(super) fn end_text(&mut self, at: usize, lane: &mut EventLane<'_>) {
        if !self.texts[at].is_started {
            self.texts.remove(at);
            return;
        }
        if self.texts[at].kind == TextKind::Reasoning && self.shape == AgUiProfile::Current {
            return self.end_reasoning(at, lane, |_| ());
        }
        let open = self.texts.remove(at);
        let message_id = &open.id;
        match (open.kind, self.shape) {
            (TextKind::Message(_), _) => lane.emit(wire::Body::TextMessageEnd {
                message_id,
                metadata: None,
            }),
            // Handed to `end_reasoning` above.
            (TextKind::Reasoning, AgUiProfile::Current) => (),
            (TextKind::Reasoning, AgUiProfile::Thinking) => {
                if self.thinking.as_deref() == Some(&open.id) {
                    self.stop_thinking(lane);
                }
            }
        }
    }

    /// Ends the texts that have started, and keeps them: with their next piece they start again.
    pub(super) fn suspend_texts(&mut self, lane: &mut EventLane<'_>) {
        let texts = std::mem::take(&mut self.texts);
        for open in &texts {
            if open.is_started {
                self.texts.push(open.clone());
                // The list was taken, so that this text is the only one in it.
                self.end_text(0, lane);
                self.end_span(lane);
            }
        }
        self.texts = texts;
        for open in &mut self.texts {
            // A new run has to start them again.
            open.is_started = false;
            open.span = None;
        }
    }

    /// An answer that no message had: a local command's, for example.
    pub(super) fn missing_answer(
        &mut self,
        run: &str,
        answer: &Text<'_>,
        lane: &mut EventLane<'_>,
    ) {
        if self.has_text {
            return;
        }
        let id = format!("{run}:answer");
        self.open_text(&id, TextKind::Message(Role::Assistant), None);
        let at = self.texts.len() - 1;
        self.write_text(at, answer, lane);
        self.end_text(at, lane);
    }

    fn find_text(&self, id: &str) -> Option<usize> {
        self.texts.iter().rposition(|it| it.id == id)
    }
}

/// Citations as they came, everything else in the form of the model.
fn attached<'a>(parts: &'a [Part<'_>]) -> wire::Attached<'a> {
    let mut annotations = Vec::new();
    let mut others = Vec::new();
    for part in parts {
        match part {
            Part::Other(raw) if is_annotation(raw) => annotations.push(raw),
            Part::Other(_) | Part::Image { .. } | Part::ImageUrl { .. } => others.push(part),
        }
    }
    wire::Attached {
        annotations,
        linkspan: (!others.is_empty()).then_some(wire::Parts { parts: others }),
    }
}

fn is_annotation(raw: &Raw<'_>) -> bool {
    let name = type_of(raw);
    name.ends_with("_citation") || name == "file_path"
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        // What the agent's program says is neither the user's nor the model's.
        Role::Harness => "developer",
    }
}
