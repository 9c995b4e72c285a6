//! Messages and reasoning. A thought stays open behind its end, because its hidden form may follow.

use std::borrow::Cow;

use model::{Channel, Item, ItemId, Message, Part, Raw, Reasoning, Role, Status, Text};

use super::{AgUi, FrameContext, Line, MAX_OPEN, metadata, wire};

#[derive(Clone, Debug, Default)]
pub(super) struct AgUiTexts {
    open: Vec<StreamingText>,
    /// Reasoning that began and has not ended, by its name.
    spans: Vec<String>,
    /// Thinking of the era that had no ids.
    thinking: Option<ItemId<'static>>,
    n_thoughts: u64,
}

#[derive(Clone, Debug)]
struct StreamingText {
    id: String,
    key: ItemId<'static>,
    kind: StreamingKind,
    /// Nothing is added any more.
    is_ended: bool,
    hidden: Option<EncryptedValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamingKind {
    Message(Role),
    Thought,
}

/// What only the provider can read.
#[derive(Clone, Debug)]
struct EncryptedValue {
    value: Text<'static>,
    is_signature: bool,
}

impl AgUiTexts {
    fn find(&self, id: &str, is_thought: bool) -> Option<usize> {
        self.open.iter().rposition(|it| {
            it.id == id && (it.kind == StreamingKind::Thought) == is_thought && !it.is_ended
        })
    }
}

impl AgUi {
    pub(super) fn text_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let id = line.message_id.take().unwrap_or_default();
        if self.texts.find(&id, false).is_some() {
            return self.debug(cx, "late", Text::new("a message that is open"));
        }
        self.keep_metadata(cx, line.metadata);
        self.open_text(cx, &id, role(line.role.as_deref()));
    }

    pub(super) fn open_text(&mut self, cx: &mut FrameContext<'_>, id: &str, role: Role) -> usize {
        let key = self.free_key(id, "message");
        self.shown.note(id);
        let group = (role == Role::Assistant).then(|| Cow::Owned(id.to_owned()));
        let message = Message {
            id: key.clone(),
            role,
            group,
            text: Text::EMPTY,
            parts: Vec::new(),
        };
        self.lifecycle.open(cx, Item::Message(message));
        self.remember(id, key, StreamingKind::Message(role))
    }

    fn remember(&mut self, id: &str, key: ItemId<'static>, kind: StreamingKind) -> usize {
        let open = &mut self.texts.open;
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(StreamingText {
            id: id.to_owned(),
            key,
            kind,
            is_ended: false,
            hidden: None,
        });
        open.len() - 1
    }

    pub(super) fn text_content<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        let at = match self.texts.find(id, false) {
            Some(at) => at,
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
            return self.debug(
                cx,
                "late",
                Text::new("the end of a message that is not open"),
            );
        };
        let open = self.texts.open.remove(at);
        let is_main = self
            .lifecycle
            .path_of(&open.key)
            .is_some_and(<[_]>::is_empty);
        if open.kind == StreamingKind::Message(Role::Assistant) && is_main {
            let text = self.lifecycle.streamed(&open.key, Channel::Text);
            let text = text.filter(|it| !it.is_empty());
            let text = text.map(|it| Text::new(it.decode()));
            self.last_text = text.or(self.last_text.take());
        }
        self.lifecycle.close(cx, &open.key, Status::Ok, |item| {
            if let Item::Message(it) = item {
                it.parts = parts;
            }
        });
    }

    pub(super) fn span_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.close_ended_thoughts(cx);
        let spans = &mut self.texts.spans;
        if spans.len() >= MAX_OPEN {
            spans.remove(0);
        }
        spans.push(line.message_id.as_deref().unwrap_or_default().to_owned());
    }

    pub(super) fn span_end<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        self.close_ended_thoughts(cx);
        let id = line.message_id.as_deref().unwrap_or_default();
        self.texts.spans.retain(|it| it != id);
    }

    pub(super) fn thought_start<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        if self.texts.find(id, true).is_some() {
            return self.debug(cx, "late", Text::new("a thought that is open"));
        }
        self.keep_metadata(cx, line.metadata);
        self.open_thought(cx, id);
    }

    pub(super) fn open_thought(&mut self, cx: &mut FrameContext<'_>, id: &str) -> usize {
        let key = self.free_key(id, "reasoning");
        self.shown.note(id);
        let span = self.texts.spans.last().cloned();
        let item = thought(key.clone(), span, Text::EMPTY);
        self.lifecycle.open(cx, item);
        self.remember(id, key, StreamingKind::Thought)
    }

    pub(super) fn thought_content<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let id = line.message_id.as_deref().unwrap_or_default();
        let at = match self.texts.find(id, true) {
            Some(at) => at,
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
            None => self.debug(
                cx,
                "late",
                Text::new("the end of a thought that is not open"),
            ),
        }
    }

    /// The hidden form of a thought; of a call it is only kept.
    pub(super) fn hidden_value<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        text: &str,
    ) {
        let id = line.entity_id.as_deref().unwrap_or_default();
        let at = self
            .texts
            .open
            .iter()
            .rposition(|it| it.id == id && it.kind == StreamingKind::Thought);
        let (Some(at), Some(value)) = (at, line.encrypted_value.0) else {
            return self
                .lifecycle
                .unmapped(cx, "hidden value of something else".to_owned(), text);
        };
        let kind = metadata(line.metadata).linkspan.kind;
        self.texts.open[at].hidden = Some(EncryptedValue {
            value: Text::from_json(value).into_owned(),
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
        self.thinking_end(cx);
        if kind == "THINKING_TEXT_MESSAGE_START" {
            self.open_thinking(cx);
        }
    }

    fn open_thinking(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        self.texts.n_thoughts += 1;
        let key = ItemId::new(format!("thinking.{}", self.texts.n_thoughts));
        self.lifecycle
            .open(cx, thought(key.clone(), None, Text::EMPTY));
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

    /// A run is over, and with it everything in it.
    pub(super) fn forget_texts(&mut self) {
        let n_thoughts = self.texts.n_thoughts;
        self.texts = AgUiTexts {
            n_thoughts,
            ..AgUiTexts::default()
        };
    }
}

pub(super) fn thought<'c>(id: ItemId<'static>, span: Option<String>, text: Text<'c>) -> Item<'c> {
    Item::Reasoning(Reasoning {
        id,
        group: span.map(Cow::Owned),
        text,
        signature: None,
        encrypted: None,
    })
}

pub(super) fn role(name: Option<&str>) -> Role {
    match name {
        Some("user") => Role::User,
        Some("developer" | "system") => Role::Harness,
        Some(_) | None => Role::Assistant,
    }
}

/// The words and pictures of a message.
pub(super) fn text_and_parts(content: crate::wire::lenient::Any<'_>) -> (Text<'_>, Vec<Part<'_>>) {
    let Some(raw) = content.0 else {
        return (Text::EMPTY, Vec::new());
    };
    let list = Some(content).filter(|_| raw.get().starts_with('['));
    let Some(list) = list.and_then(|it| it.parse::<Vec<&serde_json::value::RawValue>>()) else {
        return (Text::from_json(raw), Vec::new());
    };
    let mut text = String::new();
    let mut parts = Vec::new();
    for raw in list {
        let part: wire::ContentPart<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        match (part.r#type.as_deref(), part.text.0, part.source.value.0) {
            (Some("text"), Some(words), _) => text.push_str(&Text::from_json(words).to_str()),
            (Some("image"), _, Some(value)) => parts.push(match part.source.r#type.as_deref() {
                Some("url") => Part::ImageUrl {
                    url: Text::from_json(value),
                },
                Some(_) | None => Part::Image {
                    media_type: part
                        .source
                        .mime_type
                        .0
                        .unwrap_or(Cow::Borrowed("image/png")),
                    data: Text::from_json(value),
                },
            }),
            _ => parts.push(Part::Other(Raw::borrowed(raw))),
        }
    }
    (Text::new(text), parts)
}
