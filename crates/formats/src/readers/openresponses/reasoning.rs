//! Reasoning: raw text under two spellings, summaries under a third, and what only the provider reads.
//!
//! Every part is an item of its own, named `ITEM/cN` (raw) or `ITEM/sN` (summary). The last one stays
//! open until the item is done, because the hidden form comes then. An item without any text says nothing.

use model::{Channel, Item, ItemId, Reasoning, Status, Text};

use super::output::OutputKind;
use super::{FrameContext, OpenResponses};
use crate::wire::lenient::{Any, List};
use crate::wire::openresponses::{self as wire, Line};

/// The part that streams.
#[derive(Clone, Debug)]
pub(super) struct ReasoningPart {
    is_summary: bool,
    index: u64,
    is_done: bool,
}

impl OpenResponses {
    pub(super) fn reasoning_delta<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        is_summary: bool,
    ) {
        self.think(cx, line, line.delta, is_summary);
    }

    /// The whole text of a part: news only when it did not stream.
    pub(super) fn reasoning_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        is_summary: bool,
    ) {
        cx.extra.clear();
        let at = self.slot(cx, line, OutputKind::Reasoning);
        let index = line.summary_index.as_u64();
        let has_streamed = self.output.slots[at].thought.as_ref().is_some_and(|it| {
            it.is_summary == is_summary
                && !it.is_done
                && (!is_summary || index.is_none_or(|index| index == it.index))
        });
        if !has_streamed {
            self.think(cx, line, line.text, is_summary);
        }
        if let Some(thought) = &mut self.output.slots[at].thought {
            thought.is_done = true;
        }
    }

    fn think<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        piece: Any<'c>,
        is_summary: bool,
    ) {
        let Some(text) = piece.filled_text() else {
            return;
        };
        let at = self.slot(cx, line, OutputKind::Reasoning);
        let slot = &self.output.slots[at];
        // `content_index` is not used for raw thoughts: vLLM counts it up with every delta.
        let index = line.summary_index.as_u64().filter(|_| is_summary);
        let goes_on = slot.key.is_some()
            && slot.thought.as_ref().is_some_and(|it| {
                let is_next = match index {
                    Some(index) => it.index != index,
                    None => it.is_done,
                };
                it.is_summary == is_summary && !is_next
            });
        if !goes_on {
            self.next_thought(cx, at, is_summary, index);
        }
        let Some(key) = self.output.slots[at].key.take() else {
            return;
        };
        self.lifecycle.delta(cx, &key, Channel::Text, text);
        self.output.slots[at].key = Some(key);
    }

    /// Closes the part before and opens another.
    fn next_thought(
        &mut self,
        cx: &mut FrameContext<'_>,
        at: usize,
        is_summary: bool,
        index: Option<u64>,
    ) {
        if let Some(key) = self.output.slots[at].key.take() {
            self.lifecycle.close(cx, &key, Status::Ok, |_| ());
        }
        let slot = &mut self.output.slots[at];
        let index = match index {
            Some(index) => index,
            None => {
                slot.n_thoughts += 1;
                slot.n_thoughts - 1
            }
        };
        let key = thought_id(&slot.id, is_summary, index);
        slot.key = Some(key.clone());
        slot.thought = Some(ReasoningPart {
            is_summary,
            index,
            is_done: false,
        });
        let reasoning = self.reasoning(key, Text::EMPTY, None);
        self.lifecycle.open(cx, reasoning);
    }

    fn reasoning<'c>(
        &self,
        id: ItemId<'static>,
        text: Text<'c>,
        hidden: Option<Text<'c>>,
    ) -> Item<'c> {
        Item::Reasoning(Reasoning {
            group: self.group(),
            encrypted: hidden,
            ..Reasoning::new(id, text)
        })
    }

    pub(super) fn reasoning_item_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        item: wire::Item<'c>,
    ) {
        cx.extra.clear();
        let hidden = item.encrypted_content.filled_text();
        let (raw, summary) = (texts(item.content), texts(item.summary));
        let slot = &mut self.output.slots[at];
        let thought = slot.thought.take();
        let open = slot.key.take();
        // What did not stream: everything, or the summaries behind the last that did.
        let parts: Vec<(bool, u64, Text<'c>)> = match &thought {
            None => {
                let raw = raw.into_iter().zip(0..).map(|(text, n)| (false, n, text));
                let summary = summary.into_iter().zip(0..);
                raw.chain(summary.map(|(text, n)| (true, n, text)))
                    .collect()
            }
            Some(it) if it.is_summary => {
                let all = summary.into_iter().zip(0..);
                let rest = all.filter(|(_, n)| *n > it.index);
                rest.map(|(text, n)| (true, n, text)).collect()
            }
            Some(_) => Vec::new(),
        };
        let parts: Vec<_> = parts.into_iter().filter(|it| !it.2.is_empty()).collect();
        let id = self.output.slots[at].id.clone();
        match open {
            Some(key) => {
                // The hidden form belongs to the last part, which is not this one when more follow.
                let hidden = hidden.clone().filter(|_| parts.is_empty());
                self.lifecycle.close(cx, &key, Status::Ok, |item| {
                    if let Item::Reasoning(it) = item {
                        it.encrypted = hidden;
                    }
                });
            }
            None if parts.is_empty() && hidden.is_none() => {
                return self.debug(cx, "no_reasoning", "reasoning that nobody may read");
            }
            None if parts.is_empty() => {
                let item = self.reasoning(ItemId::new(id), Text::EMPTY, hidden);
                return self.lifecycle.close_text(cx, item, Status::Ok);
            }
            None => (),
        }
        let last = parts.len();
        for (n, (is_summary, index, text)) in parts.into_iter().enumerate() {
            let hidden = hidden.clone().filter(|_| n + 1 == last);
            let item = self.reasoning(thought_id(&id, is_summary, index), text, hidden);
            self.lifecycle.close_text(cx, item, Status::Ok);
        }
    }
}

fn thought_id(item: &str, is_summary: bool, index: u64) -> ItemId<'static> {
    let kind = if is_summary { 's' } else { 'c' };
    ItemId::new(format!("{item}/{kind}{index}"))
}

fn texts<'c>(parts: List<Any<'c>>) -> Vec<Text<'c>> {
    let text = |raw: Any<'c>| {
        let part: wire::Part<'c> = raw.parse().unwrap_or_default();
        part.text.text().unwrap_or_default()
    };
    parts.0.into_iter().map(text).collect()
}
