//! Messages and reasoning of a run.
//!
//! A text starts with its first piece, so that an empty one never shows.

use model::{Losses, Message, Part, Reasoning, Role, Text};

use super::items::Items;
use super::{Lane, Shape, wire};

#[derive(Clone, Debug)]
pub(super) struct OpenText {
    id: String,
    kind: TextKind,
    group: Option<String>,
    has_deltas: bool,
    is_started: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Message(Role),
    Reasoning,
}

impl Items {
    pub(super) fn open_text(&mut self, id: &str, kind: TextKind, group: Option<&str>) {
        self.texts.push(OpenText {
            id: id.to_owned(),
            kind,
            group: group.map(str::to_owned),
            has_deltas: false,
            is_started: false,
        });
    }

    pub(super) fn text_delta(&mut self, id: &str, text: &Text<'_>, lane: &mut Lane<'_>) {
        if let Some(at) = self.find_text(id) {
            self.texts[at].has_deltas = true;
            self.say(at, text, lane);
        }
    }

    /// A piece of text, behind whatever must come before the first.
    fn say(&mut self, at: usize, text: &Text<'_>, lane: &mut Lane<'_>) {
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
            (TextKind::Reasoning, Shape::Current) => {
                lane.piece("REASONING_MESSAGE_CONTENT", "messageId", message_id, text);
            }
            (TextKind::Reasoning, Shape::Thinking) => {
                lane.emit(wire::Body::ThinkingTextMessageContent { delta: text });
            }
        }
    }

    fn start(&mut self, at: usize, lane: &mut Lane<'_>) {
        let open = &mut self.texts[at];
        if open.kind == TextKind::Reasoning && self.shape == Shape::Thinking {
            return self.think(at, lane);
        }
        if std::mem::replace(&mut open.is_started, true) {
            return;
        }
        let message_id = &open.id;
        match open.kind {
            TextKind::Message(role) => {
                lane.emit(wire::Body::TextMessageStart {
                    message_id,
                    role: role_name(role),
                });
                if role == Role::Assistant {
                    self.has_said |= lane.subagent.is_none();
                    let (id, group) = (open.id.clone(), open.group.clone());
                    self.set_parent(id, group, lane);
                }
            }
            TextKind::Reasoning => {
                lane.emit(wire::Body::ReasoningStart { message_id });
                lane.emit(wire::Body::ReasoningMessageStart {
                    message_id,
                    role: "reasoning",
                });
            }
        }
    }

    /// Gives the word to one reasoning, and takes it from another.
    fn think(&mut self, at: usize, lane: &mut Lane<'_>) {
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

    fn stop_thinking(&mut self, lane: &mut Lane<'_>) {
        if self.thinking.take().is_some() {
            lane.emit(wire::Body::ThinkingTextMessageEnd);
            lane.emit(wire::Body::ThinkingEnd);
        }
    }

    pub(super) fn message_closed(
        &mut self,
        it: &Message<'_>,
        lane: &mut Lane<'_>,
        losses: &mut Losses,
    ) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.say(at, &it.text, lane);
        }
        for part in &it.parts {
            losses.count(match part {
                Part::Image { .. } | Part::ImageUrl { .. } => "image in a message",
                Part::Other(_) => "content block",
            });
        }
        self.end_text(at, lane);
    }

    pub(super) fn reasoning_closed(
        &mut self,
        it: &Reasoning<'_>,
        lane: &mut Lane<'_>,
        losses: &mut Losses,
    ) {
        let Some(at) = self.find_text(it.id.as_str()) else {
            return;
        };
        if !self.texts[at].has_deltas {
            self.say(at, &it.text, lane);
        }
        let hidden = it.encrypted.as_ref().or(it.signature.as_ref());
        let Some(hidden) = hidden.filter(|it| !it.is_empty()) else {
            return self.end_text(at, lane);
        };
        match self.shape {
            Shape::Current => {
                // It belongs to a message, even to one without words.
                self.start(at, lane);
                lane.emit(wire::Body::ReasoningEncryptedValue {
                    subtype: "message",
                    entity_id: it.id.as_str(),
                    encrypted_value: hidden,
                });
            }
            Shape::Thinking => losses.count("hidden reasoning"),
        }
        self.end_text(at, lane);
    }

    pub(super) fn end_text(&mut self, at: usize, lane: &mut Lane<'_>) {
        let open = self.texts.remove(at);
        if !open.is_started {
            return;
        }
        let message_id = &open.id;
        match (open.kind, self.shape) {
            (TextKind::Message(_), _) => lane.emit(wire::Body::TextMessageEnd { message_id }),
            (TextKind::Reasoning, Shape::Current) => {
                lane.emit(wire::Body::ReasoningMessageEnd { message_id });
                lane.emit(wire::Body::ReasoningEnd { message_id });
            }
            (TextKind::Reasoning, Shape::Thinking) => {
                if self.thinking.as_deref() == Some(&open.id) {
                    self.stop_thinking(lane);
                }
            }
        }
    }

    /// An answer that no message had: a local command's, for example.
    pub(super) fn unsaid_answer(&mut self, run: &str, answer: &Text<'_>, lane: &mut Lane<'_>) {
        if self.has_said {
            return;
        }
        let id = format!("{run}:answer");
        self.open_text(&id, TextKind::Message(Role::Assistant), None);
        let at = self.texts.len() - 1;
        self.say(at, answer, lane);
        self.end_text(at, lane);
    }

    fn find_text(&self, id: &str) -> Option<usize> {
        self.texts.iter().rposition(|it| it.id == id)
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Harness => "developer",
    }
}
