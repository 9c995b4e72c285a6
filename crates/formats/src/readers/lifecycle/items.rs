//! Items as they are before their text is known, and with what was streamed of it.

use std::borrow::Cow;

use model::{Channel, Item, Raw, Text};

use super::streamed::StreamedText;

/// An item with what was streamed of it filled in.
pub(super) fn folded(
    mut item: Item<'static>,
    text: &StreamedText,
    input: &StreamedText,
) -> Item<'static> {
    match &mut item {
        Item::Message(it) if !text.is_empty() => it.text = Text::new(text.decode()),
        Item::Reasoning(it) if !text.is_empty() => it.text = Text::new(text.decode()),
        Item::Tool(it) if it.input.is_none() && !input.is_empty() => {
            let input = input.decode();
            // Arguments that were cut off are no JSON: they are kept as a string, not lost.
            let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&input).is_ok();
            it.input = Some(if is_whole {
                Raw::parse(input)
            } else {
                Raw::of(&input)
            });
        }
        Item::Message(_)
        | Item::Reasoning(_)
        | Item::Tool(_)
        | Item::Plan(_)
        | Item::Subagent(_)
        | Item::Compaction(_)
        | Item::Other(_) => (),
    }
    item
}

/// A call that comes without a name keeps the one it had, or is a `tool`: every target needs one.
pub(super) fn name_call(item: &mut Item<'_>, before: Option<&Item<'_>>) {
    let Item::Tool(tool) = item else { return };
    if !tool.name.trim().is_empty() {
        return;
    }
    tool.name = match before {
        Some(Item::Tool(before)) => Cow::Owned(before.name.clone().into_owned()),
        Some(_) | None => Cow::Borrowed("tool"),
    };
}

/// The item as it is before any of its text is known.
pub(super) fn without_text<'a>(item: &Item<'a>) -> Item<'a> {
    let mut item = item.clone();
    match &mut item {
        Item::Message(it) => {
            it.text = Text::EMPTY;
            it.parts.clear();
        }
        Item::Reasoning(it) => {
            it.text = Text::EMPTY;
            it.signature = None;
            it.encrypted = None;
        }
        Item::Tool(_)
        | Item::Plan(_)
        | Item::Subagent(_)
        | Item::Compaction(_)
        | Item::Other(_) => (),
    }
    item
}

pub(super) fn text_of<'i>(item: &'i Item<'_>) -> &'i Text<'i> {
    match item {
        Item::Message(it) => &it.text,
        Item::Reasoning(it) => &it.text,
        Item::Tool(_)
        | Item::Plan(_)
        | Item::Subagent(_)
        | Item::Compaction(_)
        | Item::Other(_) => &Text::EMPTY,
    }
}

/// True when pieces of the channel are pieces of such an item.
pub(super) fn takes_channel(item: &Item<'_>, channel: Channel) -> bool {
    match item {
        Item::Message(_) | Item::Reasoning(_) => channel == Channel::Text,
        Item::Tool(_) => channel != Channel::Text,
        Item::Plan(_) | Item::Subagent(_) | Item::Compaction(_) | Item::Other(_) => false,
    }
}
