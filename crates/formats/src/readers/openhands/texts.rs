//! Text and reasoning: messages, the thoughts of an action, streamed text.

use std::borrow::Cow;

use model::{Channel, ItemId, Message, Origin, Reasoning, Role, Status, Text};

use super::end::PossibleEnd;
use super::wire::{self, Event};
use super::{FrameContext, OpenHands};
use crate::readers::content::{self, ContentPiece};
use crate::wire::lenient::{Any, Boxed, List, Words};

/// The items that streamed text goes to, until the event that has it whole.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamedItems {
    n: u64,
    pub(super) text: Option<ItemId<'static>>,
    pub(super) reasoning: Option<ItemId<'static>>,
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
        // A message that names a call as its sender comes from the sub-agent of that call.
        let call = sender.as_deref().filter(|it| self.is_call(it));
        let call = call.map(str::to_owned);
        if let Some(sender) = sender.filter(|_| call.is_none()) {
            let sender = model::Raw::of(&sender);
            cx.extra.push((Cow::Borrowed("sender"), sender));
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
        let message = Message {
            group,
            parts,
            ..Message::new(ItemId::new(id.clone()), role, text)
        };
        self.close_message(cx, message);
        // A sub-agent that writes its last words ends its call, not the run.
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
        let message = Message {
            parts,
            ..Message::new(id, Role::Harness, text)
        };
        self.close_message(cx, message);
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
        // What streamed was one text; the event has it in blocks.
        if let Some(streamed) = self.streams.text.take() {
            if texts.is_empty() {
                return self.lifecycle.close(cx, &streamed, Status::Ok, |_| ());
            }
            let text = content::joined(texts, "");
            let message = Message::new(streamed, Role::Assistant, text);
            let group = group.cloned();
            return self.close_message(cx, Message { group, ..message });
        }
        for (n, text) in texts.into_iter().enumerate() {
            let id = ItemId::new(format!("{id}.thought{n}"));
            let message = Message {
                group: group.cloned(),
                ..Message::new(id, Role::Assistant, text)
            };
            self.close_message(cx, message);
        }
    }

    /// A message that is whole; the one that streamed, if its text did.
    pub(super) fn close_message(&mut self, cx: &mut FrameContext<'_>, mut message: Message<'_>) {
        let is_answer = message.role == Role::Assistant && cx.path.is_empty();
        if is_answer && let Some(streamed) = self.streams.text.take() {
            message.id = streamed;
        } else if message.text.is_empty() && message.parts.is_empty() {
            return;
        }
        if is_answer {
            self.lifecycle.note_answer(cx, &message.text);
        }
        self.lifecycle.close_text(cx, message.into(), Status::Ok);
    }

    /// Shows what was thought, each part once.
    pub(super) fn think<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        id: &str,
        group: Option<&Cow<'c, str>>,
        thinking: ResponseThinking<'c>,
    ) {
        // Only the main agent's text is streamed.
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
            let id = || ItemId::new(format!("{id}.reasoning{n}"));
            let reasoning = Reasoning {
                group: group.cloned(),
                signature: thought.signature,
                encrypted: thought.encrypted,
                ..Reasoning::new(key.take().unwrap_or_else(id), thought.text)
            };
            self.lifecycle.close_text(cx, reasoning.into(), Status::Ok);
        }
    }

    pub(super) fn delta(&mut self, cx: &mut FrameContext<'_>, event: &Event<'_>) {
        self.work(cx);
        if let Some(text) = event.reasoning_content.text() {
            let key = self.streams.reasoning.clone().unwrap_or_else(|| {
                let key = self.streams.next();
                let reasoning = Reasoning::new(key.clone(), Text::EMPTY);
                self.lifecycle.open(cx, reasoning.into());
                key
            });
            self.streams.reasoning = Some(key.clone());
            self.lifecycle.delta(cx, &key, Channel::Text, text);
        }
        if let Some(text) = event.content.filled_text() {
            let key = self.streams.text.clone().unwrap_or_else(|| {
                let key = self.streams.next();
                let message = Message::new(key.clone(), Role::Assistant, Text::EMPTY);
                self.lifecycle.open(cx, message.into());
                key
            });
            self.streams.text = Some(key.clone());
            self.lifecycle.delta(cx, &key, Channel::Text, text);
        }
    }

    /// The summary as the model sees it; the condensation event before it already has it.
    pub(super) fn summary<'c>(&mut self, cx: &mut FrameContext<'c>, event: &Event<'c>) {
        let id = self.id(cx);
        let condensation = id.strip_suffix("-summary");
        if condensation.is_some() && condensation == self.last_condensation.as_deref() {
            return;
        }
        let text = event.summary.text().unwrap_or_default();
        let message = Message::new(ItemId::new(id), Role::Harness, text);
        self.close_message(cx, message);
    }
}

impl StreamedItems {
    fn next(&mut self) -> ItemId<'static> {
        self.n += 1;
        ItemId::new(format!("stream-{}", self.n))
    }
}

impl<'a> ResponseThinking<'a> {
    fn thoughts(self, is_streamed: bool) -> Vec<ThinkingBlock<'a>> {
        let whole = self.content.filled_text();
        let blocks = self.blocks.0.into_iter().map(|block| ThinkingBlock {
            text: block.thinking.filled_text().unwrap_or_default(),
            signature: block.signature.filled_text(),
            encrypted: block.data.filled_text(),
        });
        let mut thoughts: Vec<ThinkingBlock<'a>> = blocks.filter(|it| !it.is_empty()).collect();
        // Providers send their reasoning in up to three forms, which repeat each other.
        if let Some(whole) = &whole {
            let n_seen = thoughts.iter().filter(|it| !it.text.is_empty()).count();
            let is_same = is_all_of(whole, &thoughts);
            // What streamed was one item; several blocks would contradict the text that was shown.
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
        let parts = match item.content.0.is_empty() {
            true => item.summary.0,
            false => item.content.0,
        };
        let parts = parts.into_iter().filter_map(Any::filled_text).collect();
        let text = Some(content::joined(parts, "\n\n")).filter(|it| Some(it) != whole.as_ref());
        let last = ThinkingBlock {
            text: text.unwrap_or_default(),
            signature: None,
            encrypted: item.encrypted_content.filled_text(),
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
        pieces.extend(block.text.text().map(ContentPiece::Text));
        let urls = block.image_urls.0.into_iter().filter_map(|it| it.0);
        pieces.extend(urls.map(|it| ContentPiece::Part(content::picture(it))));
    }
    pieces
}
