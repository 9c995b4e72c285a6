//! Messages and reasoning. A thought stays open behind its end, because its hidden form may follow.

use std::borrow::Cow;

use model::{Channel, Item, ItemId, Message, Part, Raw, Reasoning, Role, Status, Text};
use serde_json::value::RawValue;

use super::{AgUi, FrameContext, Line, MAX_OPEN, metadata, wire};
use crate::readers::content::{self, ContentPiece};
use crate::readers::recent::Recent;
use crate::wire::lenient::Any;
use crate::wire::scanner;

#[derive(Clone, Debug, Default)]
pub(super) struct AgUiTexts {
    open: Recent<StreamingText, MAX_OPEN>,
    /// Reasoning that began and has not ended, by its name.
    spans: Recent<String, MAX_OPEN>,
    /// Thinking of the era that had no ids.
    thinking: Option<ItemId<'static>>,
    n_thoughts: u64,
}

#[derive(Clone, Debug)]
struct StreamingText {
    id: String,
    key: ItemId<'static>,
    is_thought: bool,
    /// Nothing more is added.
    is_ended: bool,
    hidden: Option<EncryptedValue>,
}

/// What only the provider can read.
#[derive(Clone, Debug)]
struct EncryptedValue {
    value: Text<'static>,
    is_signature: bool,
}

impl AgUiTexts {
    fn find(&self, id: &str, is_thought: bool) -> Option<usize> {
        let fits = |it: &StreamingText| it.id == id && it.is_thought == is_thought && !it.is_ended;
        self.open.iter().rposition(fits)
    }

    /// A run is over, and with it everything in it; names are not used again.
    pub(super) fn forget_run(&mut self) {
        let n_thoughts = self.n_thoughts;
        *self = Self::default();
        self.n_thoughts = n_thoughts;
    }
}

impl AgUi {
    pub(super) fn text_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.message_id.take().unwrap_or_default();
        if self.texts.find(&id, false).is_some() {
            return self.late(cx, "a message that is open");
        }
        self.keep_metadata(cx, line.metadata);
        self.open_text(cx, &id, role(line.role.as_deref()));
    }

    pub(super) fn open_text(&mut self, cx: &mut FrameContext<'_>, id: &str, role: Role) -> usize {
        let key = self.free_key(id, "message");
        self.shown.insert(id);
        let message = Message {
            group: (role == Role::Assistant).then(|| Cow::Owned(id.to_owned())),
            ..Message::new(key.clone(), role, Text::EMPTY)
        };
        self.lifecycle.open(cx, message.into());
        self.remember(id, key, false)
    }

    fn remember(&mut self, id: &str, key: ItemId<'static>, is_thought: bool) -> usize {
        self.texts.open.push(StreamingText {
            id: id.to_owned(),
            key,
            is_thought,
            is_ended: false,
            hidden: None,
        })
    }

    pub(super) fn text_content<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        let at = match self.texts.find(id, false) {
            Some(at) => at,
            // The real client refuses the stream here; a recording may begin in the middle.
            None => self.open_text(cx, id, Role::Assistant),
        };
        if let Some(delta) = line.delta.0 {
            let key = &self.texts.open[at].key;
            self.lifecycle
                .delta(cx, key, Channel::Text, Text::from_json(delta));
        }
    }

    pub(super) fn text_end<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.keep_metadata(cx, line.metadata);
        let meta = metadata(line.metadata);
        let mut parts: Vec<Part<'c>> = meta.linkspan.parts.parse().unwrap_or_default();
        let citations = meta.annotations.0.into_iter();
        parts.extend(citations.filter_map(|it| Some(Part::Other(it.raw()?))));
        self.end_text(cx, line.message_id.as_deref().unwrap_or_default(), parts);
    }

    pub(super) fn end_text(&mut self, cx: &mut FrameContext<'_>, id: &str, parts: Vec<Part<'_>>) {
        let Some(at) = self.texts.find(id, false) else {
            return self.late(cx, "the end of a message that is not open");
        };
        let open = self.texts.open.remove(at);
        self.lifecycle.close_streamed(cx, &open.key, parts);
    }

    pub(super) fn span_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.close_ended_thoughts(cx);
        let span = line.message_id.owned().unwrap_or_default();
        self.texts.spans.push(span);
    }

    pub(super) fn span_end<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.close_ended_thoughts(cx);
        let id = line.message_id.as_deref().unwrap_or_default();
        self.texts.spans.retain(|it| it != id);
    }

    pub(super) fn thought_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        if self.texts.find(id, true).is_some() {
            return self.late(cx, "a thought that is open");
        }
        self.keep_metadata(cx, line.metadata);
        self.open_thought(cx, id);
    }

    pub(super) fn open_thought(&mut self, cx: &mut FrameContext<'_>, id: &str) -> usize {
        let key = self.free_key(id, "reasoning");
        self.shown.insert(id);
        let reasoning = Reasoning {
            group: self.texts.spans.last().cloned().map(Cow::Owned),
            ..Reasoning::new(key.clone(), Text::EMPTY)
        };
        self.lifecycle.open(cx, reasoning.into());
        self.remember(id, key, true)
    }

    pub(super) fn thought_content<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        let at = match self.texts.find(id, true) {
            Some(at) => at,
            // As for messages: a recording may begin in the middle.
            None => self.open_thought(cx, id),
        };
        if let Some(delta) = line.delta.0 {
            let key = &self.texts.open[at].key;
            self.lifecycle
                .delta(cx, key, Channel::Text, Text::from_json(delta));
        }
    }

    pub(super) fn thought_end<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.end_thought(cx, line.message_id.as_deref().unwrap_or_default());
    }

    pub(super) fn end_thought(&mut self, cx: &mut FrameContext<'_>, id: &str) {
        match self.texts.find(id, true) {
            Some(at) => self.texts.open[at].is_ended = true,
            None => self.late(cx, "the end of a thought that is not open"),
        }
    }

    /// The hidden form of a thought; of a call it is only kept.
    pub(super) fn hidden_value<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.entity_id.as_deref().unwrap_or_default();
        let mut open = self.texts.open.iter_mut();
        let thought = open.rfind(|it| it.id == id && it.is_thought);
        let (Some(thought), Some(value)) = (thought, line.encrypted_value.text()) else {
            return self
                .lifecycle
                .unmapped(cx, "hidden value of something else");
        };
        let kind = metadata(line.metadata).linkspan.kind;
        thought.hidden = Some(EncryptedValue {
            value: value.into_owned(),
            is_signature: kind.as_deref() == Some("signature"),
        });
    }

    /// Closes the thoughts that have ended and can learn no more.
    pub(super) fn close_ended_thoughts(&mut self, cx: &mut FrameContext<'_>) {
        while let Some(at) = self.texts.open.iter().position(|it| it.is_ended) {
            let open = self.texts.open.remove(at);
            self.lifecycle.close(cx, &open.key, Status::Ok, |item| {
                if let (Item::Reasoning(it), Some(hidden)) = (item, open.hidden) {
                    if hidden.is_signature {
                        it.signature = Some(hidden.value);
                    } else {
                        it.encrypted = Some(hidden.value);
                    }
                }
            });
        }
    }

    pub(super) fn thinking_start(&mut self, cx: &mut FrameContext<'_>, kind: &str) {
        // These events have no ids: a start without an end before it can only end the open one.
        self.thinking_end(cx);
        if kind == "THINKING_TEXT_MESSAGE_START" {
            self.open_thinking(cx);
        }
    }

    fn open_thinking(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        self.texts.n_thoughts += 1;
        let key = ItemId::new(format!("thinking.{}", self.texts.n_thoughts));
        let reasoning = Reasoning::new(key.clone(), Text::EMPTY);
        self.lifecycle.open(cx, reasoning.into());
        self.texts.thinking = Some(key.clone());
        key
    }

    pub(super) fn thinking_content<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let key = match self.texts.thinking.clone() {
            Some(key) => key,
            None => self.open_thinking(cx),
        };
        if let Some(delta) = line.delta.0 {
            self.lifecycle
                .delta(cx, &key, Channel::Text, Text::from_json(delta));
        }
    }

    pub(super) fn thinking_end(&mut self, cx: &mut FrameContext<'_>) {
        if let Some(key) = self.texts.thinking.take() {
            self.lifecycle.close(cx, &key, Status::Ok, |_| ());
        }
    }
}

pub(super) fn role(name: Option<&str>) -> Role {
    match name {
        Some("user") => Role::User,
        Some("developer" | "system") => Role::Harness,
        Some(_) | None => Role::Assistant,
    }
}

/// The words and pictures of a message.
pub(super) fn text_and_parts(content: Any<'_>) -> (Text<'_>, Vec<Part<'_>>) {
    let Some(raw) = content.0 else {
        return (Text::EMPTY, Vec::new());
    };
    let list = Some(content).filter(|_| raw.get().starts_with('['));
    let Some(list) = list.and_then(|it| it.parse::<Vec<&RawValue>>()) else {
        return (Text::from_json(raw), Vec::new());
    };
    let pieces = list.into_iter().map(|raw| {
        let part = scanner::from_str(raw.get()).unwrap_or_default();
        content_piece(raw, part)
    });
    let (texts, parts) = content::split(pieces.collect());
    (content::joined(texts, ""), parts)
}

/// A part of a message or of a result.
pub(super) fn content_piece<'a>(
    raw: &'a RawValue,
    part: wire::ContentPart<'a>,
) -> ContentPiece<'a> {
    let (kind, source) = (part.r#type.as_deref(), part.source.r#type.as_deref());
    ContentPiece::Part(match (kind, part.text.text(), part.source.value.text()) {
        (Some("text"), Some(text), _) => return ContentPiece::Text(text),
        (Some("image"), _, Some(url)) if source == Some("url") => Part::ImageUrl { url },
        (Some("image"), _, Some(data)) => Part::Image {
            media_type: part
                .source
                .mime_type
                .0
                .unwrap_or(Cow::Borrowed("image/png")),
            data,
        },
        _ => Part::Other(Raw::borrowed(raw)),
    })
}
