//! Messages: their words, what kind of words they are, and what came along with them.

use std::borrow::Cow;

use model::{Channel, ItemId, Message, Part, Raw, Role, Status, Text};

use super::output::OutputKind;
use super::{FrameContext, OpenResponses};
use crate::readers::content::joined;
use crate::wire::lenient::{Any, List};
use crate::wire::openresponses::{self as wire, Line};

impl OpenResponses {
    /// Words of a message, or of a refusal.
    pub(super) fn text_delta<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        piece: Any<'c>,
        is_refusal: bool,
    ) {
        let Some(text) = piece.filled_text() else {
            return;
        };
        let at = self.slot(cx, line, OutputKind::Message);
        let key = match self.output.slots[at].key.take() {
            Some(key) => key,
            None => self.open_message(cx, at, is_refusal),
        };
        self.lifecycle.delta(cx, &key, Channel::Text, text);
        self.spoke(is_refusal);
        let slot = &mut self.output.slots[at];
        slot.has_streamed = true;
        slot.key = Some(key);
    }

    /// The whole text of a part: news only when it did not stream.
    pub(super) fn text_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        whole: Any<'c>,
        is_refusal: bool,
    ) {
        let at = self.slot(cx, line, OutputKind::Message);
        if !self.output.slots[at].has_streamed {
            self.text_delta(cx, line, whole, is_refusal);
        }
        cx.extra.clear();
    }

    fn spoke(&mut self, is_refusal: bool) {
        if is_refusal {
            self.has_refused = true;
        } else {
            self.has_said = true;
        }
    }

    fn open_message(
        &mut self,
        cx: &mut FrameContext<'_>,
        at: usize,
        is_refusal: bool,
    ) -> ItemId<'static> {
        self.message_facts(cx, at, is_refusal);
        let slot = &self.output.slots[at];
        let id = ItemId::new(slot.id.clone());
        let message = Message {
            group: self.group(),
            ..Message::new(id.clone(), slot.role, Text::EMPTY)
        };
        self.lifecycle.open(cx, message.into());
        id
    }

    /// What a message is besides its words, kept beside the event that opens it.
    fn message_facts(&mut self, cx: &mut FrameContext<'_>, at: usize, is_refusal: bool) {
        if let Some(phase) = self.output.slots[at].phase.clone() {
            // A key may stand in `extra` only once.
            cx.extra.retain(|(key, _)| key != "phase");
            cx.extra.push((Cow::Borrowed("phase"), phase));
        }
        if is_refusal {
            cx.extra.push((Cow::Borrowed("refusal"), Raw::of(&true)));
        }
    }

    pub(super) fn message_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        item: wire::Item<'c>,
    ) {
        let is_commentary = item.phase.0.is_some_and(|it| it.get() == "\"commentary\"");
        let slot = &mut self.output.slots[at];
        slot.role = role(item.role.as_deref());
        if slot.phase.is_none() {
            slot.phase = item.phase.raw().map(Raw::into_owned);
        }
        let words = message_text(item.content);
        let is_open = self.output.slots[at].key.take().is_some();
        if !words.text.is_empty() {
            self.spoke(words.is_refusal);
        }
        if !is_open {
            self.message_facts(cx, at, words.is_refusal);
        }
        // Commentary stands between calls: the answer is what comes after them.
        if !is_commentary {
            self.lifecycle.note_answer(cx, &words.text);
        }
        let slot = &self.output.slots[at];
        let message = Message {
            group: self.group(),
            parts: words.parts,
            ..Message::new(ItemId::new(slot.id.clone()), slot.role, words.text)
        };
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
    }
}

pub(super) fn role(word: Option<&str>) -> Role {
    match word {
        Some("user") => Role::User,
        Some("system" | "developer") => Role::Harness,
        Some(_) | None => Role::Assistant,
    }
}

struct MessageText<'c> {
    text: Text<'c>,
    parts: Vec<Part<'c>>,
    is_refusal: bool,
}

/// The words of a message; what points out of them, or is none, comes along.
fn message_text<'c>(content: List<Any<'c>>) -> MessageText<'c> {
    let mut texts: Vec<Text<'c>> = Vec::new();
    let mut parts = Vec::new();
    let (mut n_refusals, mut n_texts) = (0, 0);
    for raw in content.0 {
        let part: wire::Part<'c> = raw.parse().unwrap_or_default();
        match (part.text.text(), part.refusal.text()) {
            (Some(text), _) => {
                n_texts += 1;
                texts.push(text);
            }
            (None, Some(refusal)) => {
                n_refusals += 1;
                texts.push(refusal);
            }
            (None, None) => parts.extend(raw.raw().map(Part::Other)),
        }
        let annotations = part.annotations.0.into_iter();
        parts.extend(annotations.filter_map(|it| it.raw().map(Part::Other)));
    }
    MessageText {
        text: joined(texts, ""),
        parts,
        // A refusal after an answer does not undo the answer.
        is_refusal: n_refusals > 0 && n_texts == 0,
    }
}
