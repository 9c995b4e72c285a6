//! The output of a response: every item is known by its place.
//!
//! A message opens with its first words, so that what it is (a refusal, a commentary) is known by
//! then. A call stays open after its arguments are whole, because its result may still come.

use std::borrow::Cow;

use model::{Compaction, Item, ItemId, Other, Raw, Role, Status};

use super::messages::role;
use super::{FrameContext, OpenResponses, UNNAMED};
use crate::readers::recent::Recent;
use crate::wire::lenient::{Any, Object as _};
use crate::wire::openresponses::{self as wire, Line};
use crate::wire::scanner;

/// Output items of one response that are remembered; past it the oldest is forgotten.
const MAX_SLOTS: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct OutputItems {
    pub(super) slots: Recent<OutputSlot, MAX_SLOTS>,
}

/// One place in the output.
#[derive(Clone, Debug)]
pub(super) struct OutputSlot {
    index: u64,
    /// The first id that was used for it.
    pub(super) id: String,
    pub(super) kind: OutputKind,
    /// The item that is open for it.
    pub(super) key: Option<ItemId<'static>>,
    pub(super) is_done: bool,
    pub(super) has_streamed: bool,
    pub(super) role: Role,
    pub(super) phase: Option<Raw<'static>>,
    pub(super) has_input: bool,
    /// Arguments of an unannounced call.
    pub(super) held: String,
    /// The part of the reasoning that streams.
    pub(super) thought: Option<super::reasoning::ReasoningPart>,
    pub(super) n_thoughts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputKind {
    Message,
    Reasoning,
    Call,
    /// A call of a tool that the provider defines.
    Hosted,
    /// What a call returned.
    Result,
    Compaction,
    Other,
}

fn kind_of(name: &str) -> OutputKind {
    // The schema puts the provider in front of its own types: `openai:web_search_call`.
    let name = name.rsplit(':').next().unwrap_or(name);
    match name {
        "message" => OutputKind::Message,
        "reasoning" => OutputKind::Reasoning,
        "function_call" | "custom_tool_call" => OutputKind::Call,
        "compaction" => OutputKind::Compaction,
        _ if name.ends_with("_call_output") => OutputKind::Result,
        _ if name.ends_with("_call") => OutputKind::Hosted,
        _ => OutputKind::Other,
    }
}

impl OutputItems {
    /// The item that an event belongs to.
    pub(super) fn key_at(&self, line: &Line<'_>) -> Option<ItemId<'static>> {
        let at = self.find(line.output_index.as_u64(), line.item_id.as_deref(), None)?;
        self.slots[at].key.clone()
    }

    pub(super) fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        kind: Option<OutputKind>,
    ) -> Option<usize> {
        let fits = |slot: &OutputSlot| kind.is_none_or(|kind| slot.kind == kind);
        match (index, id) {
            // The place counts before the id: GitHub Copilot gives every event of one item another
            // id.
            (Some(index), _) => self
                .slots
                .iter()
                .rposition(|it| it.index == index && fits(it)),
            (None, Some(id)) => self.slots.iter().rposition(|it| it.id == id && fits(it)),
            // A piece without any name belongs to what was begun last and is not done.
            (None, None) => self.slots.iter().rposition(|it| !it.is_done && fits(it)),
        }
    }

    fn next_index(&self) -> u64 {
        self.slots.last().map_or(0, |it| it.index + 1)
    }
}

impl OpenResponses {
    /// The slot of an event, created if it was not announced.
    pub(super) fn slot(
        &mut self,
        cx: &mut FrameContext<'_>,
        line: &Line<'_>,
        kind: OutputKind,
    ) -> usize {
        let (index, id) = (line.output_index.as_u64(), line.item_id.as_deref());
        match self.output.find(index, id, Some(kind)) {
            // A piece after its item is done is another item in the same place: the done one is
            // closed.
            Some(at) if !self.output.slots[at].is_done => at,
            Some(_) | None => self.new_slot(cx, index, id, kind),
        }
    }

    fn new_slot(
        &mut self,
        cx: &mut FrameContext<'_>,
        index: Option<u64>,
        id: Option<&str>,
        kind: OutputKind,
    ) -> usize {
        self.resume(cx);
        let index = index.unwrap_or_else(|| self.output.next_index());
        let id = match id.filter(|it| !it.is_empty()) {
            Some(id) => id.to_owned(),
            None => format!("{}.{index}", self.response.as_deref().unwrap_or(UNNAMED)),
        };
        self.output.slots.push(OutputSlot {
            index,
            id,
            kind,
            key: None,
            is_done: false,
            has_streamed: false,
            role: Role::Assistant,
            phase: None,
            has_input: false,
            held: String::new(),
            thought: None,
            n_thoughts: 0,
        })
    }

    pub(super) fn group(&self) -> Option<Cow<'static, str>> {
        self.response.clone().map(Cow::Owned)
    }

    pub(super) fn item_added<'c>(&mut self, cx: &mut FrameContext<'c>, mut line: Line<'c>) {
        let index = line.output_index.as_u64();
        let mut item = line.item.take();
        if !item.is_object() {
            return;
        }
        let kind = kind_of(item.r#type.as_deref().unwrap_or_default());
        let id = item.id.as_deref();
        if let Some(at) = self.output.find(index, id, Some(kind))
            && !self.output.slots[at].is_done
            && (self.output.slots[at].key.is_some() || id == Some(&self.output.slots[at].id))
        {
            return; // Announced twice.
        }
        let at = self.new_slot(cx, index, id, kind);
        cx.extra.append(item.extra());
        match kind {
            OutputKind::Message => {
                let slot = &mut self.output.slots[at];
                slot.role = role(item.role.as_deref());
                slot.phase = item.phase.raw().map(Raw::into_owned);
            }
            OutputKind::Call => {
                self.open_call(cx, at, &mut item);
            }
            OutputKind::Hosted => {
                let tool = self.hosted(at, &mut item);
                self.open_hosted(cx, at, tool, item_in(cx.message));
            }
            OutputKind::Other => {
                let id = &self.output.slots[at].id;
                let other = other(id, item.r#type.take(), item_in(cx.message));
                cx.extra.clear();
                self.output.slots[at].key = Some(other.id().clone().into_owned());
                self.lifecycle.open(cx, other);
            }
            // Emitted once it is complete.
            OutputKind::Reasoning | OutputKind::Result | OutputKind::Compaction => cx.extra.clear(),
        }
    }

    pub(super) fn item_done<'c>(&mut self, cx: &mut FrameContext<'c>, mut line: Line<'c>) {
        let (item, message) = (line.item.take(), cx.message);
        self.whole_item(cx, line.output_index.as_u64(), item, || item_in(message));
    }

    /// An item of a finished response that the stream did not finish.
    pub(super) fn missed_item<'c>(&mut self, cx: &mut FrameContext<'c>, index: u64, raw: Any<'c>) {
        let mut done = self.output.slots.iter().filter(|it| it.is_done);
        if done.clone().any(|it| it.index == index) {
            return;
        }
        let item: wire::Item<'c> = raw.parse().unwrap_or_default();
        if !done.any(|it| item.id.as_deref() == Some(&it.id)) {
            self.whole_item(cx, Some(index), item, || raw);
        }
    }

    /// Few items are kept as they came: `raw` looks for it.
    fn whole_item<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        index: Option<u64>,
        mut item: wire::Item<'c>,
        raw: impl FnOnce() -> Any<'c>,
    ) {
        if !item.is_object() {
            return;
        }
        let kind = kind_of(item.r#type.as_deref().unwrap_or_default());
        let at = match self.output.find(index, item.id.as_deref(), Some(kind)) {
            Some(at) if self.output.slots[at].is_done => {
                return self.debug(cx, "late", "an item that was told before");
            }
            Some(at) => at,
            None => self.new_slot(cx, index, item.id.as_deref(), kind),
        };
        cx.extra.append(item.extra());
        self.output.slots[at].is_done = true;
        match kind {
            OutputKind::Message => self.message_done(cx, at, item),
            OutputKind::Reasoning => self.reasoning_item_done(cx, at, item),
            OutputKind::Call => self.call_done(cx, at, &mut item),
            OutputKind::Hosted => {
                let is_server_side = super::hosted::is_server_side(&item);
                let tool = self.hosted(at, &mut item);
                if is_server_side {
                    self.close_hosted(cx, at, tool, raw(), &mut item);
                } else {
                    self.open_hosted(cx, at, tool, raw());
                }
            }
            OutputKind::Result => self.call_returned(cx, &mut item),
            OutputKind::Compaction => {
                cx.extra.clear();
                let compaction = Item::Compaction(Compaction {
                    detail: raw().raw(),
                    ..Compaction::new(ItemId::new(self.output.slots[at].id.clone()))
                });
                self.lifecycle.close_whole(cx, compaction, Status::Ok);
            }
            OutputKind::Other => {
                cx.extra.clear();
                let status = status(item.status.as_deref());
                let other = other(&self.output.slots[at].id, item.r#type.take(), raw());
                self.output.slots[at].key = None;
                self.lifecycle.close_whole(cx, other, status);
            }
        }
    }

    /// Closes what the response has finished: its text, and the calls that the client will answer.
    pub(super) fn close_output(&mut self, cx: &mut FrameContext<'_>) {
        self.show_held(cx);
        for at in 0..self.output.slots.len() {
            let slot = &mut self.output.slots[at];
            let (kind, is_done) = (slot.kind, slot.is_done);
            let Some(key) = slot.key.take() else { continue };
            let is_over = match kind {
                OutputKind::Message | OutputKind::Reasoning | OutputKind::Other => true,
                // The client answers a call with its next request, which is another run.
                OutputKind::Call | OutputKind::Hosted => is_done,
                OutputKind::Result | OutputKind::Compaction => false,
            };
            if !is_over {
                continue;
            }
            self.lifecycle.close_streamed(cx, &key, Vec::new());
        }
    }
}

/// The item of an event as it came.
fn item_in(text: &str) -> Any<'_> {
    let line: wire::ItemLine<'_> = scanner::from_str(text).unwrap_or_default();
    line.item
}

fn other<'c>(id: &str, name: Option<Cow<'c, str>>, raw: Any<'c>) -> Item<'c> {
    Item::Other(Other {
        id: ItemId::new(id.to_owned()),
        name: name.unwrap_or(Cow::Borrowed("item")),
        text: None,
        data: raw.raw().unwrap_or_else(|| Raw::of(&())),
    })
}

pub(super) fn status(word: Option<&str>) -> Status {
    match word {
        Some("failed") => Status::Error,
        Some("cancelled") => Status::Cancelled,
        Some(_) | None => Status::Ok,
    }
}
