//! Calls: their arguments, which come in pieces or whole, and what they returned.

use std::borrow::Cow;

use model::{Channel, Item, ItemId, Raw, Status, Text, ToolResult};

use super::output::{OutputKind, status};
use super::{FrameContext, OpenResponses};
use crate::readers::arguments::arguments;
use crate::readers::lifecycle::StreamedText;
use crate::tools;
use crate::wire::lenient::Any;
use crate::wire::openresponses::{self as wire, Line};

/// Arguments kept of a call that was never announced.
const MAX_HELD: usize = 1024 * 1024;

impl OpenResponses {
    pub(super) fn open_call(
        &mut self,
        cx: &mut FrameContext<'_>,
        at: usize,
        item: &mut wire::Item<'_>,
    ) {
        self.has_said = true;
        let slot = &self.output.slots[at];
        // The result names the call by `call_id`, not by the id of its place in the output.
        let id = item.call_id.0.as_deref().filter(|it| !it.is_empty());
        let id = ItemId::new(id.unwrap_or(&slot.id).to_owned());
        let name = item.name.take().filter(|it| !it.is_empty());
        let name = name.map_or_else(|| "unknown".to_owned(), Cow::into_owned);
        let mut tool = tools::call(id.clone(), name, None, None);
        tool.group = self.group();
        self.lifecycle.open(cx, tool.into());
        self.output.slots[at].key = Some(id);
    }

    pub(super) fn input_delta<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>) {
        let Some(text) = line.delta.text() else {
            return;
        };
        let (index, id) = (line.output_index.as_u64(), line.item_id.as_deref());
        let at = match self.output.find(index, id, Some(OutputKind::Hosted)) {
            Some(at) => at,
            None => self.slot(cx, line, OutputKind::Call),
        };
        let slot = &mut self.output.slots[at];
        // The name comes with the item alone; arguments before it are held, because every target
        // needs one.
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

    pub(super) fn input_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &Line<'c>,
        whole: Any<'c>,
    ) {
        cx.extra.clear();
        let (index, id) = (line.output_index.as_u64(), line.item_id.as_deref());
        let hosted = self.output.find(index, id, Some(OutputKind::Hosted));
        if hosted.is_some() {
            return; // The item repeats it.
        }
        let Some(text) = whole.text() else {
            return;
        };
        let at = self.slot(cx, line, OutputKind::Call);
        let slot = &mut self.output.slots[at];
        if slot.key.is_some() {
            self.set_input(cx, at, &text);
        } else if text.len_bound() <= MAX_HELD {
            slot.held = text.to_str().into_owned();
        }
    }

    /// The arguments are complete; emit what was not streamed.
    fn set_input(&mut self, cx: &mut FrameContext<'_>, at: usize, text: &Text<'_>) {
        let slot = &mut self.output.slots[at];
        let Some(key) = slot.key.clone() else { return };
        // Arguments come whole twice: in their own event and in the item.
        if std::mem::replace(&mut slot.has_input, true) {
            return;
        }
        let so_far = self.lifecycle.streamed(&key, Channel::Input);
        if slot.has_streamed && !so_far.is_some_and(|it| it.is_all_of(text)) {
            let so_far = so_far.map(StreamedText::decode);
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
        self.lifecycle.update(cx, tool.into());
    }

    pub(super) fn call_done<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        at: usize,
        item: &mut wire::Item<'c>,
    ) {
        if self.output.slots[at].key.is_none() {
            self.open_call(cx, at, item);
        }
        let held = std::mem::take(&mut self.output.slots[at].held);
        let input = item.arguments.text().or(item.input.text());
        let input = input.filter(|it| !it.is_empty());
        let input = input.unwrap_or(Text::new(held));
        self.set_input(cx, at, &input);
        if item.status.as_deref() == Some("incomplete") {
            // It cannot be answered: the end of the run closes it.
            self.output.slots[at].key = None;
        }
    }

    pub(super) fn call_returned<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        item: &mut wire::Item<'c>,
    ) {
        let Some(call) = item.call_id.take().or(item.id.take()) else {
            return;
        };
        let key = ItemId::new(call.into_owned());
        if self.lifecycle.open_tool(&key).is_none() {
            let tool = self.unknown_call(key.clone(), None);
            self.lifecycle.open_unseen(cx, tool);
        }
        let status = status(item.status.as_deref());
        let content = super::hosted::content(item.output);
        let result = ToolResult::new(content, status == Status::Error);
        let exit_code = super::hosted::printed(item.output).and_then(|it| it.1);
        self.lifecycle.close_tool(cx, &key, status, result, |tool| {
            tool.class.exit_code = exit_code.or(tool.class.exit_code);
        });
    }

    /// Shows the arguments of calls whose name never came.
    pub(super) fn show_held(&mut self, cx: &mut FrameContext<'_>) {
        for at in 0..self.output.slots.len() {
            let held = std::mem::take(&mut self.output.slots[at].held);
            if held.is_empty() {
                continue;
            }
            let id = ItemId::new(self.output.slots[at].id.clone());
            let tool = self.unknown_call(id, Some(arguments(&Text::new(held))));
            self.lifecycle.open_unseen(cx, tool);
        }
    }

    /// A call without a name.
    fn unknown_call(&self, id: ItemId<'static>, input: Option<Raw<'static>>) -> Item<'static> {
        let mut tool = tools::call(id, "unknown", None, None);
        tool.group = self.group();
        tool.input = input;
        tool.into()
    }
}
