//! What tools print, in the size a log can bear.

use model::{Losses, Raw, Text, ToolResult};

use crate::wire::lenient::Any;
use crate::wire::thread as wire;
use crate::writers::content::{Block, blocks};

/// Longer outputs are cut: a consumer keeps these lines in memory and shows a screen of them.
pub(super) const MAX_OUTPUT: usize = 64 * 1024;

/// Everything a result says, as text.
pub(super) fn text<'a>(result: &'a ToolResult<'_>, losses: &mut Losses) -> Text<'a> {
    if result.content.is_string() {
        return capped(Text::from(result.content.by_ref()));
    }
    let mut parts = blocks(&result.content)
        .into_iter()
        .map(|block| match block {
            Block::Text(text) => text,
            Block::Image { media_type, data } => {
                losses.count("image");
                Text::new(format!(
                    "[{media_type}, {} bytes of base64]",
                    data.len_bound()
                ))
            }
            Block::ImageUrl(url) => url,
            Block::Other(raw) => Text::new(raw.get().to_owned()),
        });
    let Some(first) = parts.next() else {
        return Text::EMPTY;
    };
    let Some(second) = parts.next() else {
        return capped(first);
    };
    let mut joined = first.to_str().into_owned();
    for text in std::iter::once(second).chain(parts) {
        joined.push('\n');
        joined.push_str(&text.to_str());
    }
    capped(Text::new(joined))
}

/// The text, or its beginning and its length in bytes. Not decoded unless it may be too long.
pub(super) fn capped(text: Text<'_>) -> Text<'_> {
    if text.len_bound() <= MAX_OUTPUT {
        return text;
    }
    let whole = text.to_str();
    if whole.len() <= MAX_OUTPUT {
        drop(whole);
        return text;
    }
    let head = &whole[..whole.floor_char_boundary(MAX_OUTPUT)];
    Text::new(format!("{head}… [{} bytes]", whole.len()))
}

/// A result in the blocks of the Model Context Protocol.
pub(super) fn mcp_result<'a>(result: &'a ToolResult<'_>) -> wire::McpResult<'a> {
    let content = blocks(&result.content)
        .into_iter()
        .map(|block| match block {
            Block::Text(text) => wire::McpContent::Text { text: capped(text) },
            Block::Image { media_type, data } => wire::McpContent::Image {
                data,
                mime_type: media_type,
            },
            Block::ImageUrl(uri) => wire::McpContent::ResourceLink { uri, name: "image" },
            Block::Other(raw) => wire::McpContent::Other(raw),
        });
    wire::McpResult {
        content: content.collect(),
        structured_content: result.structured.as_ref().and_then(structured),
    }
}

object! {
    Structured {
        structured_content: Any<'a> = "structuredContent",
        content: Any<'a> = "content",
    }
}

/// The structured content proper: some agents keep it beside the content, some by itself.
fn structured<'a>(raw: &'a Raw<'_>) -> Option<Raw<'a>> {
    let object: Structured<'a> = serde_json::from_str(raw.get()).ok()?;
    match (object.structured_content.raw(), object.content.0) {
        (Some(raw), _) => Some(raw),
        (None, None) if object.is_object => Some(raw.by_ref()),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_not_decoded() {
        let raw: Raw<'_> = serde_json::from_str(r#""a\u0041""#).unwrap();
        let json = serde_json::to_string(&capped(Text::from(raw))).unwrap();
        assert_eq!(json, r#""a\u0041""#);
    }

    #[test]
    fn escapes_do_not_count_towards_the_limit() {
        let json = format!("\"{}\"", "\\n".repeat(MAX_OUTPUT));
        let raw: Raw<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(capped(Text::from(raw)).to_str().len(), MAX_OUTPUT);
    }

    #[test]
    fn long_output_is_cut_between_characters() {
        let text = format!("a{}", "é".repeat(MAX_OUTPUT));
        let cut = capped(Text::new(text));
        let head = format!("a{}", "é".repeat(MAX_OUTPUT / 2 - 1));
        let expected = format!("{head}… [{} bytes]", 1 + 2 * MAX_OUTPUT);
        assert_eq!(cut.to_str(), expected);
    }
}
