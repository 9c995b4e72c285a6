//! Text and reasoning: messages, the thoughts of an action, streamed text.

use std::borrow::Cow;

use model::{Channel, Item, ItemId, Message, Origin, Part, Reasoning, Role, Status, Text};

use super::end::PossibleEnd;
use super::wire::{self, Event};
use super::{FrameContext, OpenHands};
use crate::readers::content::{self, ContentPiece};
use crate::wire::lenient::{Any, Boxed, List, Words};

/// The items that streamed text goes to, until the event that has it whole.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamedItems {
    n: u64,
    text: Option<ItemId<'static>>,
    reasoning: Option<ItemId<'static>>,
}

/// What a model thought for one response, in the forms OpenHands has for it.
pub(super) struct ResponseThinking<'a> {
    pub(super) content: Any<'a>,
    pub(super) blocks: List<wire::ThinkingBlock<'a>>,
    pub(super) item: Boxed<wire::ReasoningItem<'a>>,
}

/// One piece of thinking: what is seen of it, its signature, what is hidden.
#[derive(Default)]
struct ThinkingBlock<'a> {
    text: Text<'a>,
    signature: Option<Text<'a>>,
    encrypted: Option<Text<'a>>,
}

impl OpenHands {
    pub(super) fn chat_message<'c>(&mut self, cx: &mut FrameContext<'c>, mut event: Event<'c>) {
        let mut message = event.llm_message.take();
        let is_from_model = message.role.as_deref() == Some("assistant");
        let role = match event.source.as_deref() {
            Some("user") => Role::User,
            Some("agent") if is_from_model || message.role.as_deref().is_none() => Role::Assistant,
            Some("agent") => Role::Harness,
            _ if is_from_model => Role::Assistant,
            _ => Role::Harness,
        };
        let sender = event.sender.take();
        let call = sender.as_deref().filter(|it| self.is_call(it));
        let call = call.map(str::to_owned);
        if let Some(sender) = sender.filter(|_| call.is_none()) {
            cx.extra
                .push((Cow::Borrowed("sender"), model::Raw::of(&sender)));
        }
        match (role, &call) {
            (Role::User, None) => self.begin(cx),
            (Role::User | Role::Assistant | Role::Harness, _) => self.work(cx),
        }
        if let Some(call) = call {
            let path = self.subagents.path_of(&mut self.lifecycle, cx, &call);
            cx.path = Cow::Owned(path);
        }
        let id = self.id(cx);
        let group = event.llm_response_id.take();
        let thinking = ResponseThinking {
            content: message.reasoning_content,
            blocks: std::mem::take(&mut message.thinking_blocks),
            item: std::mem::take(&mut message.responses_reasoning_item),
        };
        self.think(cx, &id, group.as_ref(), thinking);
        let (text, parts) = content::join_text(contents(message.content));
        if role == Role::User {
            cx.origin = Origin::Client;
        }
        self.close_message(cx, ItemId::new(id.clone()), role, group, text, parts);
        if role == Role::Assistant && cx.path.is_empty() {
            self.ending = Some(PossibleEnd::by_message(cx));
        }
        self.extended(cx, &id, event.extended_content);
    }

    /// What the agent program adds for its model: the text of a skill, a hook's context.
    pub(super) fn extended<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        contents: List<wire::Content<'c>>,
    ) {
        let (text, parts) = content::join_text(self::contents(Words::Blocks(contents.0)));
        if text.is_empty() && parts.is_empty() {
            return;
        }
        cx.origin = Origin::Agent;
        let id = ItemId::new(format!("{id}.extended"));
        self.close_message(cx, id, Role::Harness, None, text, parts);
    }

    /// The words before a call; each block is a message of the response.
    pub(super) fn thoughts<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        group: Option<&Cow<'c, str>>,
        thought: List<wire::Content<'c>>,
    ) {
        let texts = thought.0.into_iter().filter_map(|it| it.text.0);
        let mut texts: Vec<Text<'c>> = texts.map(Text::from_json).collect();
        texts.retain(|it| !it.is_empty());
        if let Some(streamed) = self.streams.text.take() {
            if texts.is_empty() {
                return self.lifecycle.close(cx, &streamed, Status::Ok, |_| ());
            }
            let text = content::joined(texts, "");
            return self.close_message(
                cx,
                streamed,
                Role::Assistant,
                group.cloned(),
                text,
                Vec::new(),
            );
        }
        for (n, text) in texts.into_iter().enumerate() {
            let id = ItemId::new(format!("{id}.thought{n}"));
            self.close_message(cx, id, Role::Assistant, group.cloned(), text, Vec::new());
        }
    }

    /// A message that is whole; the one that streamed, if its text did.
    pub(super) fn close_message<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: ItemId<'c>,
        role: Role,
        group: Option<Cow<'c, str>>,
        text: Text<'c>,
        parts: Vec<Part<'c>>,
    ) {
        let streamed = if role == Role::Assistant && cx.path.is_empty() {
            self.streams.text.take()
        } else {
            None
        };
        if text.is_empty() && parts.is_empty() && streamed.is_none() {
            return;
        }
        if role == Role::Assistant && cx.path.is_empty() && !text.is_empty() {
            self.last_text = Some(text.clone().into_owned());
        }
        let message = Message {
            id: streamed.unwrap_or(id.into_owned()),
            role,
            group,
            text,
            parts,
        };
        self.lifecycle
            .close_text(cx, Item::Message(message), Status::Ok);
    }

    /// Shows what was thought, each part once.
    pub(super) fn think<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        group: Option<&Cow<'c, str>>,
        thinking: ResponseThinking<'c>,
    ) {
        let streamed = if cx.path.is_empty() {
            self.streams.reasoning.take()
        } else {
            None
        };
        let mut thoughts = thinking.thoughts(streamed.is_some());
        if let (Some(key), true) = (&streamed, thoughts.is_empty()) {
            return self.lifecycle.close(cx, key, Status::Ok, |_| ());
        }
        let mut key = streamed;
        for (n, thought) in thoughts.drain(..).enumerate() {
            let reasoning = Reasoning {
                id: key
                    .take()
                    .unwrap_or_else(|| ItemId::new(format!("{id}.reasoning{n}"))),
                group: group.cloned(),
                text: thought.text,
                signature: thought.signature,
                encrypted: thought.encrypted,
            };
            self.lifecycle
                .close_text(cx, Item::Reasoning(reasoning), Status::Ok);
        }
    }

    pub(super) fn delta(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) {
        self.work(cx);
        if let Some(text) = event.reasoning_content.0.map(Text::from_json) {
            let key = match &self.streams.reasoning {
                Some(key) => key.clone(),
                None => self.open_reasoning(cx),
            };
            self.lifecycle.delta(cx, &key, Channel::Text, text);
        }
        let text = event.content.0.map(Text::from_json);
        if let Some(text) = text.filter(|it| !it.is_empty()) {
            let key = match &self.streams.text {
                Some(key) => key.clone(),
                None => self.open_text(cx),
            };
            self.lifecycle.delta(cx, &key, Channel::Text, text);
        }
    }

    fn open_reasoning(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        self.streams.n += 1;
        let key = ItemId::new(format!("stream-{}", self.streams.n));
        self.streams.reasoning = Some(key.clone());
        let reasoning = Reasoning {
            id: key.clone(),
            group: None,
            text: Text::EMPTY,
            signature: None,
            encrypted: None,
        };
        self.lifecycle.open(cx, Item::Reasoning(reasoning));
        key
    }

    fn open_text(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        self.streams.n += 1;
        let key = ItemId::new(format!("stream-{}", self.streams.n));
        self.streams.text = Some(key.clone());
        let message = Message {
            id: key.clone(),
            role: Role::Assistant,
            group: None,
            text: Text::EMPTY,
            parts: Vec::new(),
        };
        self.lifecycle.open(cx, Item::Message(message));
        key
    }

    /// Text that streamed and that no event will repeat.
    pub(super) fn forget_streams(&mut self) {
        self.streams.text = None;
        self.streams.reasoning = None;
    }

    /// The summary as the model sees it; the condensation event before it already has it.
    pub(super) fn summary<'c>(&mut self, cx: &mut FrameContext<'c>, event: &Event<'c>) {
        let id = self.id(cx);
        let condensation = id.strip_suffix("-summary");
        if condensation.is_some() && condensation == self.last_condensation.as_deref() {
            return;
        }
        let text = event.summary.0.map(Text::from_json).unwrap_or_default();
        self.close_message(cx, ItemId::new(id), Role::Harness, None, text, Vec::new());
    }
}

impl<'a> ResponseThinking<'a> {
    fn thoughts(self, is_streamed: bool) -> Vec<ThinkingBlock<'a>> {
        let text = |it: Any<'a>| it.0.map(Text::from_json).filter(|it| !it.is_empty());
        let whole = text(self.content);
        let blocks = self.blocks.0.into_iter().map(|block| ThinkingBlock {
            text: text(block.thinking).unwrap_or_default(),
            signature: text(block.signature),
            encrypted: text(block.data),
        });
        let mut thoughts: Vec<ThinkingBlock<'a>> = blocks.filter(|it| !it.is_empty()).collect();
        if let Some(whole) = &whole {
            let n_seen = thoughts.iter().filter(|it| !it.text.is_empty()).count();
            let is_same = is_all_of(whole, &thoughts);
            if !is_same || is_streamed && n_seen > 1 {
                for thought in &mut thoughts {
                    if whole.to_str().contains(&*thought.text.to_str()) {
                        thought.text = Text::EMPTY;
                    }
                }
                thoughts.retain(|it| !it.is_empty());
                thoughts.insert(
                    0,
                    ThinkingBlock {
                        text: whole.clone(),
                        ..ThinkingBlock::default()
                    },
                );
            }
        }
        let mut item = self.item;
        let item = item.take();
        let said = if item.content.0.is_empty() {
            item.summary.0
        } else {
            item.content.0
        };
        let said = said.into_iter().filter_map(text).collect();
        let said = Some(content::joined(said, "\n\n")).filter(|it| Some(it) != whole.as_ref());
        let last = ThinkingBlock {
            text: said.unwrap_or_default(),
            signature: None,
            encrypted: text(item.encrypted_content),
        };
        thoughts.extend(Some(last).filter(|it| !it.is_empty()));
        thoughts
    }
}

impl ThinkingBlock<'_> {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.signature.is_none() && self.encrypted.is_none()
    }
}

/// True when the blocks together are the whole text, however they were put together.
fn is_all_of(whole: &Text<'_>, thoughts: &[ThinkingBlock<'_>]) -> bool {
    let whole = whole.to_str();
    let mut rest = &*whole;
    for thought in thoughts {
        let text = thought.text.to_str();
        let Some(after) = rest
            .strip_prefix(&*text)
            .or_else(|| rest.trim_start_matches('\n').strip_prefix(&*text))
        else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}

pub(super) fn contents<'a>(words: Words<'a, wire::Content<'a>>) -> Vec<ContentPiece<'a>> {
    let blocks = match words {
        Words::None => Vec::new(),
        Words::Text(text) => return vec![ContentPiece::Text(Text::Plain(text))],
        Words::Blocks(blocks) => blocks,
    };
    let mut pieces = Vec::new();
    for block in blocks {
        pieces.extend(
            block
                .text
                .0
                .map(|it| ContentPiece::Text(Text::from_json(it))),
        );
        let urls = block.image_urls.0.into_iter().filter_map(|it| it.0);
        pieces.extend(urls.map(|it| ContentPiece::Part(content::picture(it))));
    }
    pieces
}
