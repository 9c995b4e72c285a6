//! Words of a response that wait until it is known what they are: the thought of a tool call, or a
//! message of their own.
//!
//! Agents print a response block by block, so at the end of a text it is unknown whether a tool
//! call follows. Each agent of a session (the main one and every sub-agent) has a lane, because
//! their responses interleave.

use std::borrow::Cow;

use model::{ItemId, Reasoning, Status, Text, Timestamp};

use crate::wire::openhands::{Content, ThinkingBlock};
use crate::writers::content::joined;

/// Held words per lane; more than this is written as a message at once.
const MAX_HELD: usize = 4 * 1024 * 1024;
/// What an entry costs besides its text.
const ENTRY: usize = 64;
/// Lanes at once; an agent with more sub-agents talking has the oldest written early.
pub(super) const MAX_LANES: usize = 64;
/// Between the responses of a turn that is written as one text.
const BREAK: Text<'static> = Text::Plain(Cow::Borrowed("\n\n"));

/// One agent's words.
#[derive(Clone, Debug)]
pub(super) struct AgentBuffer {
    /// The call that started the sub-agent; absent for the main agent.
    pub(super) call: Option<ItemId<'static>>,
    /// The current response, if the agent names its responses.
    pub(super) response: Option<String>,
    /// True once an action of that response has been written: only the first has thoughts.
    pub(super) has_acted: bool,
    /// The last whole text and the last one that was cut off: an answer or a report may be either.
    final_text: [Text<'static>; 2],
    pub(super) held: PendingResponse,
}

/// Parts of a response that are not written yet.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingResponse {
    /// The time of its last event.
    pub(super) at: Option<Timestamp>,
    texts: Vec<Text<'static>>,
    thinking: Vec<PendingThinking>,
    size: usize,
    /// The next text begins a paragraph.
    is_apart: bool,
}

#[derive(Clone, Debug)]
struct PendingThinking {
    text: Text<'static>,
    signature: Option<Text<'static>>,
    encrypted: Option<Text<'static>>,
}

impl AgentBuffer {
    pub(super) fn new(call: Option<&ItemId<'_>>) -> Self {
        Self {
            call: call.map(|it| it.clone().into_owned()),
            response: None,
            has_acted: false,
            final_text: [Text::EMPTY, Text::EMPTY],
            held: PendingResponse::default(),
        }
    }

    pub(super) fn push_text(&mut self, text: Text<'static>, status: Status) {
        self.final_text[usize::from(status != Status::Ok)] = text.clone();
        self.held.push_text(text);
    }

    /// Agents repeat their last words as the result, sometimes without the white space around.
    pub(super) fn has_written(&self, text: &Text<'_>) -> bool {
        let is_it = |it: &Text<'_>| it == text || it.to_str().trim() == text.to_str().trim();
        self.final_text.iter().any(is_it)
    }
}

impl PendingResponse {
    pub(super) fn push_text(&mut self, text: Text<'static>) {
        if std::mem::take(&mut self.is_apart) && !self.texts.is_empty() {
            self.texts.push(BREAK);
        }
        self.size += text.len_bound() + ENTRY;
        self.texts.push(text);
    }

    /// Sets what follows off from what is there.
    pub(super) fn new_paragraph(&mut self) {
        self.is_apart = true;
    }

    pub(super) fn think(&mut self, reasoning: &Reasoning<'_>) {
        let own = |it: &Text<'_>| it.by_ref().into_owned();
        let own_some = |it: &Option<Text<'_>>| it.as_ref().filter(|it| !it.is_empty()).map(own);
        let thinking = PendingThinking {
            text: own(&reasoning.text),
            signature: own_some(&reasoning.signature),
            encrypted: own_some(&reasoning.encrypted),
        };
        if !thinking.is_empty() {
            self.size += thinking.size();
            self.thinking.push(thinking);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.thinking.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.size > MAX_HELD
    }

    /// All text as one.
    pub(super) fn text(&self) -> Option<Text<'_>> {
        joined(self.texts.iter().map(Text::by_ref), "")
    }

    /// One content block per text.
    pub(super) fn contents(&self) -> Vec<Content<'_>> {
        let texts = self.texts.iter().map(Text::by_ref);
        texts.map(|text| Content::Text { text }).collect()
    }

    pub(super) fn reasoning_content(&self) -> Option<Text<'_>> {
        let texts = self.thinking.iter().map(|it| it.text.by_ref());
        joined(texts.filter(|it| !it.is_empty()), "\n\n")
    }

    /// What the provider needs to see again: thinking it signed or hid.
    pub(super) fn thinking_blocks(&self) -> Vec<ThinkingBlock<'_>> {
        self.thinking
            .iter()
            .flat_map(PendingThinking::blocks)
            .collect()
    }
}

impl PendingThinking {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.signature.is_none() && self.encrypted.is_none()
    }

    fn size(&self) -> usize {
        let size = |it: &Option<Text<'_>>| it.as_ref().map_or(0, Text::len_bound);
        self.text.len_bound() + size(&self.signature) + size(&self.encrypted) + ENTRY
    }

    fn blocks(&self) -> impl Iterator<Item = ThinkingBlock<'_>> {
        let signature = self.signature.as_ref();
        let signed = signature.map(|signature| ThinkingBlock::Thinking {
            thinking: self.text.by_ref(),
            signature: signature.by_ref(),
        });
        let hidden = self.encrypted.as_ref();
        let hidden = hidden.map(|data| ThinkingBlock::RedactedThinking {
            data: data.by_ref(),
        });
        signed.into_iter().chain(hidden)
    }
}
