//! The output of a response: messages and calls, each known by its place.
//!
//! A message opens with its first words, so that what it is (a refusal, a commentary) is known by
//! then. A call stays open after its arguments are whole, because its result may still come.

use std::borrow::Cow;

use model::{
    Channel, Compaction, Item, ItemId, Message, Other, Part, Raw, Role, Status, Text, Tool,
    ToolResult, Why,
};

use super::{Context, OpenResponses, UNNAMED};
use crate::readers::arguments::arguments;
use crate::tools;
use crate::wire::lenient::{Any, List, Object as _};
use crate::wire::openresponses::{self as wire, Line};

/// Output items of one response that are remembered; past it the oldest is forgotten.
const MAX_SLOTS: usize = 1024;
/// Arguments kept of a call that was never announced.
const MAX_HELD: usize = 1024 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub(super) slots: Vec<Slot>,
}

/// One place in the output.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    index: u64,
    /// The first id that was used for it.
    pub(super) id: String,
    pub(super) kind: Kind,
    /// The item that is open for it.
    pub(super) key: Option<ItemId<'static>>,
    pub(super) is_done: bool,
    pub(super) has_streamed: bool,
    role: Role,
    phase: Option<Raw<'static>>,
    has_input: bool,
    /// Arguments of a call that nobody announced.
    held: String,
    /// The part of the reasoning that streams.
    pub(super) thought: Option<super::reasoning::Thought>,
    pub(super) n_thoughts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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

fn kind_of(name: &str) -> Kind {
    let name = name.rsplit(':').next().unwrap_or(name);
    match name {
        "message" => Kind::Message,
        "reasoning" => Kind::Reasoning,
        "function_call" | "custom_tool_call" => Kind::Call,
        "compaction" => Kind::Compaction,
        _ if name.ends_with("_call_output") => Kind::Result,
        _ if name.ends_with("_call") => Kind::Hosted,
        _ => Kind::Other,
    }
}

impl Output {
    /// The item an event speaks of.
    pub(super) fn key_at(&self, line: &Line<'_>) -> Option<ItemId<'static>> {
        let at = self.find(line.output_index.as_u64(), line.item_id.as_deref(), None)?;
        self.slots[at].key.clone()
    }

    fn find(&self, index: Option<u64>, id: Option<&str>, kind: Option<Kind>) -> Option<usize> {
        let fits = |slot: &Slot| kind.is_none_or(|kind| slot.kind == kind);
        match (index, id) {
            (Some(index), _) => self
                .slots
                .iter()
                .rposition(|it| it.index == index && fits(it)),
            (None, Some(id)) => self.slots.iter().rposition(|it| it.id == id && fits(it)),
            (None, None) => self.slots.iter().rposition(|it| !it.is_done && fits(it)),
        }
    }

    fn next_index(&self) -> u64 {
        self.slots.last().map_or(0, |it| it.index + 1)
    }
}

impl OpenResponses {
    /// The place of an event, made up when nobody announced it.
    pub(super) fn slot(&mut self, cx: &mut Context<'_>, line: &Line<'_>, kind: Kind) -> usize {
        let (index, id) = (line.output_index.as_u64(), line.item_id.as_deref());
        match self.output.find(index, id, Some(kind)) {
            Some(at) if !self.output.slots[at].is_done => at,
            Some(_) | None => self.new_slot(cx, index, id, kind),
        }
    }

    fn new_slot(
        &mut self,
        cx: &mut Context<'_>,
        index: Option<u64>,
        id: Option<&str>,
        kind: Kind,
    ) -> usize {
        self.resume(cx);
        let index = index.unwrap_or_else(|| self.output.next_index());
        let id = match id.filter(|it| !it.is_empty()) {
            Some(id) => id.to_owned(),
            None => format!("{}.{index}", self.response.as_deref().unwrap_or(UNNAMED)),
        };
        let slots = &mut self.output.slots;
        if slots.len() >= MAX_SLOTS {
            slots.remove(0);
        }
        slots.push(Slot {
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
        });
        slots.len() - 1
    }

    pub(super) fn group(&self) -> Option<Cow<'static, str>> {
        self.response.clone().map(Cow::Owned)
    }

    pub(super) fn item_added<'c>(&mut self, cx: &mut Context<'c>, line: &Line<'c>) {
        let (index, raw) = (line.output_index.as_u64(), line.item);
        let mut item: wire::Item<'c> = raw.parse().unwrap_or_default();
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
            Kind::Message => {
                let slot = &mut self.output.slots[at];
                slot.role = role(item.role.as_deref());
                slot.phase = item.phase.raw().map(Raw::into_owned);
            }
            Kind::Call => {
                self.open_call(cx, at, &mut item);
            }
            Kind::Hosted => {
                let tool = self.hosted(at, &mut item);
                self.open_hosted(cx, at, tool, raw);
            }
            Kind::Other => {
                let other = other(&self.output.slots[at].id, item.r#type.take(), raw);
                cx.extra.clear();
                self.output.slots[at].key = Some(other.id().clone().into_owned());
                self.lifecycle.open(cx, other);
            }
            // Told when it is whole.
            Kind::Reasoning | Kind::Result | Kind::Compaction => cx.extra.clear(),
        }
    }

    pub(super) fn item_done<'c>(&mut self, cx: &mut Context<'c>, line: &Line<'c>) {
        self.whole_item(cx, line.output_index.as_u64(), line.item);
    }

    /// An item of a finished response that the stream did not finish.
    pub(super) fn missed_item<'c>(&mut self, cx: &mut Context<'c>, index: u64, raw: Any<'c>) {
        let item: wire::Item<'c> = raw.parse().unwrap_or_default();
        let is_told = self.output.slots.iter().any(|slot| {
            let is_it = slot.index == index || item.id.as_deref() == Some(&slot.id);
            is_it && slot.is_done
        });
        if !is_told {
            self.whole_item(cx, Some(index), raw);
        }
    }

    fn whole_item<'c>(&mut self, cx: &mut Context<'c>, index: Option<u64>, raw: Any<'c>) {
        let mut item: wire::Item<'c> = raw.parse().unwrap_or_default();
        if !item.is_object() {
            return;
        }
        let kind = kind_of(item.r#type.as_deref().unwrap_or_default());
        let at = match self.output.find(index, item.id.as_deref(), Some(kind)) {
            Some(at) if self.output.slots[at].is_done => {
                return self.debug(cx, "late", Text::new("an item that was told before"));
            }
            Some(at) => at,
            None => self.new_slot(cx, index, item.id.as_deref(), kind),
        };
        cx.extra.append(item.extra());
        self.output.slots[at].is_done = true;
        match kind {
            Kind::Message => self.message_done(cx, at, item),
            Kind::Reasoning => self.reasoning_item_done(cx, at, item),
            Kind::Call => self.call_done(cx, at, &mut item),
            Kind::Hosted => {
                let is_server_side = super::hosted::is_server_side(&item);
                let tool = self.hosted(at, &mut item);
                if is_server_side {
                    self.close_hosted(cx, at, tool, raw, &mut item);
                } else {
                    self.open_hosted(cx, at, tool, raw);
                }
            }
            Kind::Result => self.call_returned(cx, &mut item),
            Kind::Compaction => {
                cx.extra.clear();
                let compaction = Compaction {
                    id: ItemId::new(self.output.slots[at].id.clone()),
                    trigger: None,
                    summary: None,
                    tokens_before: None,
                    tokens_after: None,
                    detail: raw.raw(),
                };
                self.lifecycle
                    .close_whole(cx, Item::Compaction(compaction), Status::Ok);
            }
            Kind::Other => {
                cx.extra.clear();
                let status = status(item.status.as_deref());
                let other = other(&self.output.slots[at].id, item.r#type.take(), raw);
                self.output.slots[at].key = None;
                self.lifecycle.close_whole(cx, other, status);
            }
        }
    }

    /// Words of a message, or of a refusal.
    pub(super) fn text_delta<'c>(
        &mut self,
        cx: &mut Context<'c>,
        line: &Line<'c>,
        piece: Any<'c>,
        is_refusal: bool,
    ) {
        let Some(text) = piece.0.map(Text::from_json).filter(|it| !it.is_empty()) else {
            return;
        };
        let at = self.slot(cx, line, Kind::Message);
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
        cx: &mut Context<'c>,
        line: &Line<'c>,
        whole: Any<'c>,
        is_refusal: bool,
    ) {
        let at = self.slot(cx, line, Kind::Message);
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
        cx: &mut Context<'_>,
        at: usize,
        is_refusal: bool,
    ) -> ItemId<'static> {
        self.message_facts(cx, at, is_refusal);
        let slot = &self.output.slots[at];
        let id = ItemId::new(slot.id.clone());
        let message = Message {
            id: id.clone(),
            role: slot.role,
            group: self.group(),
            text: Text::EMPTY,
            parts: Vec::new(),
        };
        self.lifecycle.open(cx, Item::Message(message));
        id
    }

    /// What a message is besides its words, kept beside the event that opens it.
    fn message_facts(&mut self, cx: &mut Context<'_>, at: usize, is_refusal: bool) {
        if let Some(phase) = self.output.slots[at].phase.clone() {
            cx.extra.retain(|(key, _)| key != "phase");
            cx.extra.push((Cow::Borrowed("phase"), phase));
        }
        if is_refusal {
            cx.extra.push((Cow::Borrowed("refusal"), Raw::of(&true)));
        }
    }

    fn message_done<'c>(&mut self, cx: &mut Context<'c>, at: usize, item: wire::Item<'c>) {
        let is_commentary = item.phase.0.is_some_and(|it| it.get() == "\"commentary\"");
        let slot = &mut self.output.slots[at];
        slot.role = role(item.role.as_deref());
        if slot.phase.is_none() {
            slot.phase = item.phase.raw().map(Raw::into_owned);
        }
        let words = words(item.content);
        let is_open = self.output.slots[at].key.take().is_some();
        if !words.text.is_empty() {
            self.spoke(words.is_refusal);
        }
        if !is_open {
            self.message_facts(cx, at, words.is_refusal);
        }
        if !is_commentary && !words.text.is_empty() {
            self.last_text = Some(words.text.clone().into_owned());
        }
        let slot = &self.output.slots[at];
        let message = Message {
            id: ItemId::new(slot.id.clone()),
            role: slot.role,
            group: self.group(),
            text: words.text,
            parts: words.parts,
        };
        self.lifecycle
            .close_text(cx, Item::Message(message), Status::Ok);
    }

    fn open_call(&mut self, cx: &mut Context<'_>, at: usize, item: &mut wire::Item<'_>) {
        self.has_said = true;
        let slot = &self.output.slots[at];
        let id = item.call_id.0.as_deref().filter(|it| !it.is_empty());
        let id = ItemId::new(id.unwrap_or(&slot.id).to_owned());
        let name = item.name.take().unwrap_or_default().into_owned();
        let name = if name.is_empty() {
            "unknown".to_owned()
        } else {
            name
        };
        let tool = Tool {
            id: id.clone(),
            group: self.group(),
            class: tools::classify(&name, None, None),
            name: Cow::Owned(name),
            input: None,
            server_side: false,
            result: None,
        };
        self.lifecycle.open(cx, Item::Tool(Box::new(tool)));
        self.output.slots[at].key = Some(id);
    }

    pub(super) fn input_delta<'c>(&mut self, cx: &mut Context<'c>, line: &Line<'c>) {
        let Some(text) = line.delta.0.map(Text::from_json) else {
            return;
        };
        let index = (line.output_index.as_u64(), line.item_id.as_deref());
        let hosted = self.output.find(index.0, index.1, Some(Kind::Hosted));
        let at = match hosted {
            Some(at) => at,
            None => self.slot(cx, line, Kind::Call),
        };
        let slot = &mut self.output.slots[at];
        let Some(key) = slot.key.take() else {
            if slot.held.len() + text.len_bound() <= MAX_HELD {
                slot.held.push_str(&text.to_str());
            }
            return;
        };
        slot.has_streamed = true;
        self.lifecycle.delta(cx, &key, Channel::Input, text);
        self.output.slots[at].key = Some(key);
    }

    pub(super) fn input_done<'c>(&mut self, cx: &mut Context<'c>, line: &Line<'c>, whole: Any<'c>) {
        cx.extra.clear();
        let (index, id) = (line.output_index.as_u64(), line.item_id.as_deref());
        if self.output.find(index, id, Some(Kind::Hosted)).is_some() {
            return; // The item says it once more.
        }
        let Some(text) = whole.0.map(Text::from_json) else {
            return;
        };
        let at = self.slot(cx, line, Kind::Call);
        let slot = &mut self.output.slots[at];
        if slot.key.is_some() {
            self.set_input(cx, at, &text);
        } else if text.len_bound() <= MAX_HELD {
            slot.held = text.to_str().into_owned();
        }
    }

    /// The arguments are whole; what did not stream of them is told now.
    fn set_input(&mut self, cx: &mut Context<'_>, at: usize, text: &Text<'_>) {
        let slot = &mut self.output.slots[at];
        let Some(key) = slot.key.clone() else { return };
        if std::mem::replace(&mut slot.has_input, true) {
            return;
        }
        if slot.has_streamed {
            let so_far = self.lifecycle.streamed(&key, Channel::Input);
            let whole = text.to_str();
            match so_far.as_deref().and_then(|it| whole.strip_prefix(it)) {
                Some("") => (),
                Some(rest) => {
                    let rest = Text::new(rest.to_owned());
                    self.lifecycle.delta(cx, &key, Channel::Input, rest);
                }
                None => {
                    let text = "the streamed arguments are not the final ones".to_owned();
                    self.lifecycle.warn(cx, "input_differs", text, None);
                }
            }
        }
        let Some(mut tool) = self.lifecycle.open_tool(&key).cloned() else {
            return;
        };
        let input = arguments(text);
        tool.id = key;
        tool.class = tools::classify(&tool.name, Some(&input.by_ref()), None).into_owned();
        tool.input = Some(input);
        self.lifecycle.update(cx, Item::Tool(Box::new(tool)));
    }

    fn call_done<'c>(&mut self, cx: &mut Context<'c>, at: usize, item: &mut wire::Item<'c>) {
        if self.output.slots[at].key.is_none() {
            self.open_call(cx, at, item);
        }
        let held = std::mem::take(&mut self.output.slots[at].held);
        let said = item.arguments.0.or(item.input.0).map(Text::from_json);
        let input = said.filter(|it| !it.is_empty()).unwrap_or(Text::new(held));
        self.set_input(cx, at, &input);
        if item.status.as_deref() == Some("incomplete") {
            // Nobody can answer it: the end of the run closes it.
            self.output.slots[at].key = None;
        }
    }

    fn call_returned<'c>(&mut self, cx: &mut Context<'c>, item: &mut wire::Item<'c>) {
        let Some(call) = item.call_id.take().or(item.id.take()) else {
            return;
        };
        let key = ItemId::new(call.into_owned());
        if self.lifecycle.open_tool(&key).is_none() {
            let tool = unknown_call(&key, self.group(), None);
            let before = cx.why.replace(Why::NeverOpened);
            self.lifecycle.open(cx, tool);
            cx.why = before;
        }
        let status = status(item.status.as_deref());
        let result = ToolResult {
            content: super::hosted::content(item.output),
            is_error: status == Status::Error,
            structured: None,
            meta: None,
        };
        let exit_code = super::hosted::printed(item.output).and_then(|it| it.1);
        self.lifecycle.close_tool(cx, &key, status, result, |tool| {
            tool.class.exit_code = exit_code.or(tool.class.exit_code);
        });
    }

    /// Closes what the response has finished: its words, and the calls somebody else will answer.
    pub(super) fn close_output(&mut self, cx: &mut Context<'_>) {
        self.show_held(cx);
        for at in 0..self.output.slots.len() {
            let slot = &mut self.output.slots[at];
            let (kind, is_done) = (slot.kind, slot.is_done);
            let Some(key) = slot.key.take() else { continue };
            let is_over = match kind {
                Kind::Message | Kind::Reasoning | Kind::Other => true,
                Kind::Call | Kind::Hosted => is_done,
                Kind::Result | Kind::Compaction => false,
            };
            if !is_over {
                continue;
            }
            if kind == Kind::Message {
                let text = self.lifecycle.streamed(&key, Channel::Text);
                self.last_text = text.map(Text::new).or(self.last_text.take());
            }
            self.lifecycle.close(cx, &key, Status::Ok, |_| ());
        }
    }

    /// Shows the arguments of calls whose name never came.
    pub(super) fn show_held(&mut self, cx: &mut Context<'_>) {
        for at in 0..self.output.slots.len() {
            let held = std::mem::take(&mut self.output.slots[at].held);
            if held.is_empty() {
                continue;
            }
            let id = ItemId::new(self.output.slots[at].id.clone());
            let tool = unknown_call(&id, self.group(), Some(arguments(&Text::new(held))));
            let before = cx.why.replace(Why::NeverOpened);
            self.lifecycle.open(cx, tool);
            cx.why = before;
        }
    }
}

/// A call of which nobody said the name.
fn unknown_call(
    id: &ItemId<'static>,
    group: Option<Cow<'static, str>>,
    input: Option<Raw<'static>>,
) -> Item<'static> {
    Item::Tool(Box::new(Tool {
        id: id.clone(),
        group,
        name: Cow::Borrowed("unknown"),
        class: tools::classify("unknown", None, None),
        input,
        server_side: false,
        result: None,
    }))
}

fn other<'c>(id: &str, name: Option<Cow<'c, str>>, raw: Any<'c>) -> Item<'c> {
    Item::Other(Other {
        id: ItemId::new(id.to_owned()),
        name: name.unwrap_or(Cow::Borrowed("item")),
        text: None,
        data: raw.raw().unwrap_or_else(|| Raw::of(&())),
    })
}

pub(super) fn status(said: Option<&str>) -> Status {
    match said {
        Some("failed") => Status::Error,
        Some("cancelled") => Status::Cancelled,
        Some(_) | None => Status::Ok,
    }
}

fn role(said: Option<&str>) -> Role {
    match said {
        Some("user") => Role::User,
        Some("system" | "developer") => Role::Harness,
        Some(_) | None => Role::Assistant,
    }
}

struct Words<'c> {
    text: Text<'c>,
    parts: Vec<Part<'c>>,
    is_refusal: bool,
}

/// The words of a message; what points out of them, or is none, comes along.
fn words<'c>(content: List<Any<'c>>) -> Words<'c> {
    let mut texts: Vec<Text<'c>> = Vec::new();
    let mut parts = Vec::new();
    let (mut n_refusals, mut n_texts) = (0, 0);
    for raw in content.0 {
        let part: wire::Part<'c> = raw.parse().unwrap_or_default();
        match (part.text.0, part.refusal.0) {
            (Some(text), _) => {
                n_texts += 1;
                texts.push(Text::from_json(text));
            }
            (None, Some(refusal)) => {
                n_refusals += 1;
                texts.push(Text::from_json(refusal));
            }
            (None, None) => parts.extend(raw.raw().map(Part::Other)),
        }
        parts.extend(
            part.annotations
                .0
                .into_iter()
                .filter_map(|it| Some(Part::Other(it.raw()?))),
        );
    }
    let text = match <[Text<'c>; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => Text::new(texts.iter().map(Text::to_str).collect::<String>()),
    };
    Words {
        text,
        parts,
        is_refusal: n_refusals > 0 && n_texts == 0,
    }
}
