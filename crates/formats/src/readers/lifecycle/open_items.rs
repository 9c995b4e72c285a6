//! Items while they are open: each opens once, its deltas add up to its text, and it closes once.

use model::{
    Body, Channel, Class, Delta, Item, ItemClosed, ItemId, Part, Raw, Role, Status, Text, Tool,
    ToolKind, ToolResult, Why,
};

use super::items::{folded, name_call, takes_channel, text_of, without_text};
use super::{FrameContext, Lifecycle, StreamedText};

/// Items open at once; an agent that opens more without closing any loses the oldest.
pub(super) const MAX_OPEN: usize = 1024;
/// Streamed text kept per item; past it the item is closed and continues under another id.
pub(super) const MAX_STREAMED: usize = 16 * 1024 * 1024;

/// An item that lives.
#[derive(Clone, Debug)]
pub(super) struct OpenItem {
    /// The id the reader knows it by; the item's own may differ when that was taken.
    pub(super) key: ItemId<'static>,
    pub(super) item: Item<'static>,
    pub(super) path: Vec<ItemId<'static>>,
    pub(super) text: StreamedText,
    pub(super) input: StreamedText,
}

impl Lifecycle {
    pub(crate) fn is_open(&self, key: &ItemId<'_>) -> bool {
        self.find(key).is_some()
    }

    pub(crate) fn open(&mut self, cx: &mut FrameContext<'_>, mut item: Item<'_>) {
        if !self.join_run(cx) {
            return;
        }
        self.close_conflicting(cx, &item);
        // OpenCode sends a call again with each change of its state.
        if self.is_open(item.id()) {
            return self.update(cx, item);
        }
        name_call(&mut item, None);
        if self.open.len() >= MAX_OPEN {
            // The oldest goes, because nearly every frame is about the latest ones.
            let oldest = self.open.remove(0);
            self.close_left_open(cx, oldest, Status::Lost);
        }
        let key = item.id().clone().into_owned();
        let id = self.used.unique(&key);
        *item.id_mut() = id;
        self.emit(cx, Body::ItemOpened(item.clone()));
        // Kept as emitted: an id in the path may be given out again under another name before this
        // closes.
        let path = self.used.renamed_path(&cx.path).into_owned();
        let item = item.into_owned();
        self.open.push(OpenItem {
            key,
            item,
            path,
            text: StreamedText::default(),
            input: StreamedText::default(),
        });
    }

    /// Opens an item whose beginning the stream does not show.
    pub(crate) fn open_unseen(&mut self, cx: &mut FrameContext<'_>, item: Item<'_>) {
        cx.because(Some(Why::NeverOpened), |cx| self.open(cx, item));
    }

    /// A result without a call still counts; a call is synthesized for it.
    pub(crate) fn open_unseen_call(&mut self, cx: &mut FrameContext<'_>, id: &ItemId<'_>) {
        let class = Class::plain(ToolKind::Other, Text::new("tool result"));
        self.open_unseen(cx, Tool::new(id.by_ref(), "unknown", class).into());
    }

    /// Replaces what is known of an open item; opens it when it is not.
    pub(crate) fn update(&mut self, cx: &mut FrameContext<'_>, mut item: Item<'_>) {
        self.close_conflicting(cx, &item);
        let Some(at) = self.find(item.id()) else {
            return self.open(cx, item);
        };
        *item.id_mut() = self.open[at].item.id().clone();
        name_call(&mut item, Some(&self.open[at].item));
        // OpenCode and adapters for ACP repeat a call unchanged; that is no event.
        if self.open[at].item == item {
            return;
        }
        let path = self.open[at].path.clone();
        self.emit_at(cx, &path, Body::ItemUpdated(item.clone()));
        self.open[at].item = item.into_owned();
    }

    /// A piece of an open item; a piece without an item becomes a notice.
    pub(crate) fn delta(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        channel: Channel,
        text: Text<'_>,
    ) {
        // An empty piece would be an event that says nothing.
        if text.is_empty() {
            return;
        }
        let fits = |open: &OpenItem| takes_channel(&open.item, channel);
        let Some(mut at) = self.find(key).filter(|at| fits(&self.open[*at])) else {
            if self.is_over() {
                return self.after_end(cx);
            }
            let detail = Some(Raw::of(&text));
            let text = format!("a piece of `{key}`, which was never opened");
            return self.warn(cx, "never_opened", text, detail);
        };
        let open = &self.open[at];
        // By the stored length: decoding every piece only to measure it would cost more than it
        // saves.
        if open.text.len() + open.input.len() + text.len_bound() > MAX_STREAMED {
            at = self.roll_over(cx, at);
        }
        let open = &mut self.open[at];
        match channel {
            Channel::Text => open.text.push(&text),
            Channel::Input => open.input.push(&text),
            // Not kept: the result repeats the output whole.
            Channel::Output => (),
        }
        let item = open.item.id().by_ref();
        let body = Body::ItemDelta(Delta {
            item,
            channel,
            text,
        });
        // Past `emit_at`, which would need all of `self` while `open` borrows a part of it.
        self.envelope.emit(cx, &open.path, body);
    }

    /// Closes a message or reasoning with its whole text, opening it first if need be.
    pub(crate) fn close_text(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut item: Item<'_>,
        status: Status,
    ) {
        self.close_conflicting(cx, &item);
        if !self.is_open(item.id()) {
            self.open(cx, without_text(&item));
        }
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let streamed = std::mem::take(&mut self.open[at].text);
        // The bytes are compared first: equal spelling, the usual case, spares decoding both texts.
        if !streamed.is_empty() && !streamed.is_all_of(text_of(&item)) {
            let whole = text_of(&item).to_str();
            if let Some(rest) = whole.strip_prefix(&*streamed.decode()) {
                let rest = rest.to_owned();
                // `whole` borrows from `item`, which is moved or changed below.
                drop(whole);
                let key = item.id().clone().into_owned();
                self.delta(cx, &key, Channel::Text, Text::new(rest));
            } else {
                drop(whole);
                // What was shown cannot be unshown: it stands, and the final text becomes an item of its own.
                self.open[at].text = streamed;
                let shown = self.open.remove(at);
                self.close_left_open(cx, shown, Status::Lost);
                let text = "the streamed text is not the final text".to_owned();
                self.warn(cx, "text_differs", text, None);
                // Once more and no further: nothing is streamed of the item that this opens.
                return self.close_text(cx, item, status);
            }
        }
        // Looked up again: the delta may have rolled the item over to another place in the list.
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let open = self.open.remove(at);
        *item.id_mut() = open.item.id().clone();
        name_call(&mut item, Some(&open.item));
        let closed = Body::ItemClosed(ItemClosed { status, item });
        self.emit_at(cx, &open.path, closed);
    }

    /// Closes an open item as it is known, after `finish` had its say.
    pub(crate) fn close<'r>(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        status: Status,
        finish: impl FnOnce(&mut Item<'r>),
    ) {
        let Some(at) = self.find(key) else { return };
        let OpenItem {
            item,
            path,
            text,
            input,
            ..
        } = self.open.remove(at);
        let mut item: Item<'r> = folded(item, &text, &input);
        finish(&mut item);
        self.emit_at(cx, &path, Body::ItemClosed(ItemClosed { status, item }));
    }

    /// Closes a text of which only the pieces came, with what came along with it.
    pub(crate) fn close_streamed(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        parts: Vec<Part<'_>>,
    ) {
        let is_main = self.path_of(key).is_some_and(<[_]>::is_empty);
        let mut answer = None;
        self.close(cx, key, Status::Ok, |item| {
            if let Item::Message(message) = item {
                message.parts = parts;
                let is_answer = is_main && message.role == Role::Assistant;
                answer = is_answer.then(|| message.text.clone().into_owned());
            }
        });
        self.answer = answer.filter(|it| !it.is_empty()).or(self.answer.take());
    }

    /// Closes a tool call with its result; `finish` may refine the classification.
    pub(crate) fn close_tool<'r>(
        &mut self,
        cx: &mut FrameContext<'_>,
        key: &ItemId<'_>,
        status: Status,
        result: ToolResult<'r>,
        finish: impl FnOnce(&mut Tool<'r>),
    ) {
        self.close(cx, key, status, |item| {
            if let Item::Tool(tool) = item {
                tool.result = Some(result);
                finish(tool);
            }
        });
    }

    /// Closes an item with its final form, opening it first if need be.
    pub(crate) fn close_whole(
        &mut self,
        cx: &mut FrameContext<'_>,
        mut item: Item<'_>,
        status: Status,
    ) {
        match &item {
            Item::Message(_) | Item::Reasoning(_) => return self.close_text(cx, item, status),
            Item::Tool(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => (),
        }
        self.close_conflicting(cx, &item);
        if !self.is_open(item.id()) {
            let mut opened = item.clone();
            if let Item::Tool(tool) = &mut opened {
                // A consumer that shows calls as they open must not see a result before the end.
                tool.result = None;
            }
            let why = cx.why.unwrap_or(Why::NeverOpened);
            cx.because(Some(why), |cx| self.open(cx, opened));
        }
        let Some(at) = self.find(item.id()) else {
            return;
        };
        let open = self.open.remove(at);
        *item.id_mut() = open.item.id().clone();
        let closed = Body::ItemClosed(ItemClosed { status, item });
        self.emit_at(cx, &open.path, closed);
    }

    /// The sub-agents an open item is inside of.
    pub(crate) fn path_of(&self, key: &ItemId<'_>) -> Option<&[ItemId<'static>]> {
        Some(&self.open[self.find(key)?].path)
    }

    /// What was streamed of an open item so far.
    pub(crate) fn streamed(&self, key: &ItemId<'_>, channel: Channel) -> Option<&StreamedText> {
        let open = &self.open[self.find(key)?];
        match channel {
            Channel::Text => Some(&open.text),
            Channel::Input => Some(&open.input),
            Channel::Output => None,
        }
    }

    /// An open tool call.
    pub(crate) fn open_tool(&self, key: &ItemId<'_>) -> Option<&Tool<'static>> {
        match &self.open[self.find(key)?].item {
            Item::Tool(tool) => Some(tool),
            Item::Message(_)
            | Item::Reasoning(_)
            | Item::Plan(_)
            | Item::Subagent(_)
            | Item::Compaction(_)
            | Item::Other(_) => None,
        }
    }

    /// An agent that gives one id to two kinds of things has ended the first with the second.
    fn close_conflicting(&mut self, cx: &mut FrameContext<'_>, item: &Item<'_>) {
        if let Some(at) = self.find(item.id())
            && self.open[at].item.kind() != item.kind()
        {
            let other = self.open.remove(at);
            self.close_left_open(cx, other, Status::Lost);
        }
    }

    pub(super) fn close_left_open(
        &mut self,
        cx: &mut FrameContext<'_>,
        open: OpenItem,
        status: Status,
    ) {
        // What was streamed is all there is of the item: without it the text would be lost.
        let item = folded(open.item, &open.text, &open.input);
        // A plan has no end of its own: it is simply how far the agent got.
        let status = if matches!(item, Item::Plan(_)) {
            Status::Ok
        } else {
            status
        };
        let closed = Body::ItemClosed(ItemClosed { status, item });
        self.emit_left_open(cx, &open.path, closed);
    }

    /// Closes the item at `at` and opens an empty one under the same key.
    fn roll_over(&mut self, cx: &mut FrameContext<'_>, at: usize) -> usize {
        let open = self.open.remove(at);
        let mut item = without_text(&open.item).into_owned();
        *item.id_mut() = self.used.unique(&open.key);
        let next = OpenItem {
            key: open.key.clone(),
            item: item.clone(),
            path: open.path.clone(),
            text: StreamedText::default(),
            input: StreamedText::default(),
        };
        let path = open.path.clone();
        // Closed as `Ok`: nothing failed, the text only goes on in the next item.
        self.close_left_open(cx, open, Status::Ok);
        self.emit_at(cx, &path, Body::ItemOpened(item));
        self.open.push(next);
        self.open.len() - 1
    }

    pub(super) fn find(&self, key: &ItemId<'_>) -> Option<usize> {
        // From the back: nearly every piece belongs to the item that was opened last.
        self.open.iter().rposition(|open| open.key == *key)
    }
}
