//! The content of an ACP tool call: text and pictures, changes of files, terminals.

use model::{Diff, Part, Raw, Text};
use serde_json::value::RawValue;

use super::content::{self, ContentPiece};
use crate::wire::acp::inbound::{ContentBlock, PlainContent, ToolContent};
use crate::wire::lenient::{Any, List};
use crate::wire::scanner;

#[derive(Debug, Default)]
pub(crate) struct AcpToolContents<'a> {
    pub(crate) pieces: Vec<ContentPiece<'a>>,
    pub(crate) diffs: Vec<Diff<'a>>,
}

pub(crate) fn contents(list: Any<'_>) -> AcpToolContents<'_> {
    if let Some(pieces) = texts(list) {
        return AcpToolContents {
            pieces,
            diffs: Vec::new(),
        };
    }
    let list: List<Any<'_>> = list.parse().unwrap_or_default();
    let mut contents = AcpToolContents::default();
    for raw in list.0.into_iter().filter_map(|it| it.0) {
        // Content of a later version of the protocol must cost itself alone: it is kept as it came.
        let content: ToolContent<'_> = scanner::from_str(raw.get()).unwrap_or_default();
        match (content.r#type.as_deref(), content.content.0) {
            (Some("content") | None, Some(block)) => contents.pieces.push(piece(block)),
            (Some("diff"), _) => contents.diffs.push(Diff {
                path: text(content.path).unwrap_or_default(),
                // OpenHands' cards spell these fields in snake case.
                old: text(content.old_text).or(text(content.old_text_snake)),
                new: text(content.new_text)
                    .or(text(content.new_text_snake))
                    .unwrap_or_default(),
            }),
            _ => contents.pieces.push(other(raw)),
        }
    }
    contents
}

/// The contents in one pass, when they are nothing but texts: they may be long.
fn texts<'a>(list: Any<'a>) -> Option<Vec<ContentPiece<'a>>> {
    let list: List<PlainContent<'a>> = list.parse()?;
    list.0.into_iter().map(plain).collect()
}

fn plain(content: PlainContent<'_>) -> Option<ContentPiece<'_>> {
    let is_content = content.r#type.0.is_none_or(|it| it.get() == "\"content\"");
    let is_text = content.content.r#type.0?.get() == "\"text\"";
    let text = content.content.text.0.filter(|_| is_content && is_text)?;
    Some(ContentPiece::Text(Text::from_json(text)))
}

/// One block of content.
pub(crate) fn piece(raw: &RawValue) -> ContentPiece<'_> {
    let block: ContentBlock<'_> = scanner::from_str(raw.get()).unwrap_or_default();
    match block.r#type.as_deref() {
        Some("text") => ContentPiece::Text(text(block.text).unwrap_or_default()),
        Some("image") => {
            let media_type = block.mime_type.0.or(block.mime_type_snake.0);
            match (block.data.0, block.uri.0) {
                (Some(data), _) => ContentPiece::Part(Part::Image {
                    // The protocol requires a type; for an agent that leaves it out, PNG is the
                    // best guess.
                    media_type: media_type.unwrap_or("image/png".into()),
                    data: Text::from_json(data),
                }),
                (None, Some(uri)) => ContentPiece::Part(content::picture(uri)),
                (None, None) => other(raw),
            }
        }
        // A picture of which only the address is known is written as a link named by itself.
        Some("resource_link") => match (block.uri.0, block.name.0) {
            (Some(uri), Some(name)) if uri.get() == name.get() => {
                ContentPiece::Part(Part::ImageUrl {
                    url: Text::from_json(uri),
                })
            }
            _ => other(raw),
        },
        _ => other(raw),
    }
}

fn other(raw: &RawValue) -> ContentPiece<'_> {
    ContentPiece::Part(Part::Other(Raw::borrowed(raw)))
}

fn text(value: Any<'_>) -> Option<Text<'_>> {
    value.text()
}
