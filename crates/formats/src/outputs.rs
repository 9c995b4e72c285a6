//! The full output of an item, for clients that got only a part of it or a link.

use model::{Body, Event, Item, Text, ToolResult};

use crate::writers::content::{ResultPart, blocks};

/// Which part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPart {
    /// Everything that is text.
    Text,
    /// A block of a tool's result, from 0.
    Block(usize),
    /// What a tool says for programs.
    Structured,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Text(String),
    /// In base64, as the agent gave it.
    Picture(String),
    Json(String),
}

/// What this item gave back, if the event is its end and there is such a part.
pub fn item_output(event: &Event<'_>, item: &str, part: OutputPart) -> Option<Output> {
    let Body::ItemClosed(closed) = &event.body else {
        return None;
    };
    if closed.item.id().as_str() != item {
        return None;
    }
    let text = |text: &Text<'_>| match part {
        // A message has one block: clients may ask for it as for the blocks of a result.
        OutputPart::Text | OutputPart::Block(0) => Some(Output::Text(text.to_string())),
        OutputPart::Block(_) | OutputPart::Structured => None,
    };
    match &closed.item {
        Item::Tool(tool) => of_tool(tool.result.as_ref()?, part),
        Item::Message(message) => text(&message.text),
        Item::Reasoning(reasoning) => text(&reasoning.text),
        Item::Subagent(agent) => text(agent.report.as_ref()?),
        Item::Plan(_) | Item::Compaction(_) | Item::Other(_) => None,
    }
}

fn of_tool(result: &ToolResult<'_>, part: OutputPart) -> Option<Output> {
    match part {
        OutputPart::Structured => {
            let json = result.structured.as_ref()?;
            Some(Output::Json(json.get().to_owned()))
        }
        OutputPart::Block(at) => Some(match blocks(&result.content).into_iter().nth(at)? {
            ResultPart::Text(text) | ResultPart::ImageUrl(text) => Output::Text(text.to_string()),
            ResultPart::Image { data, .. } => Output::Picture(data.to_string()),
            ResultPart::Other(raw) => Output::Json(raw.get().to_owned()),
        }),
        OutputPart::Text => {
            let texts = blocks(&result.content).into_iter().map(|it| match it {
                ResultPart::Text(text) | ResultPart::ImageUrl(text) => text.to_string(),
                // A picture is no text; its place in the output is kept by its type.
                ResultPart::Image { media_type, .. } => format!("[{media_type}]"),
                ResultPart::Other(raw) => raw.get().to_owned(),
            });
            let texts: Vec<String> = texts.collect();
            Some(Output::Text(texts.join("\n")))
        }
    }
}
