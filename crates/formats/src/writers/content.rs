//! What a tool's result holds: text, pictures, and blocks of any other kind.

use std::borrow::Cow;

use model::{Raw, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::lenient::{Any, Str};

/// One piece of a tool's result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ResultPart<'a> {
    Text(Text<'a>),
    Image {
        media_type: Cow<'a, str>,
        data: Text<'a>,
    },
    ImageUrl(Text<'a>),
    Other(Raw<'a>),
}

object! {
    WireBlock {
        r#type: Str<'a> = "type",
        text: Any<'a> = "text",
        source: WireSource<'a> = "source",
    }

    WireSource {
        media_type: Str<'a> = "media_type",
        data: Any<'a> = "data",
        url: Any<'a> = "url",
    }
}

/// The blocks of a result: a string is one text, a list its elements, anything else stays as it is.
pub(crate) fn blocks<'a>(content: &'a Raw<'_>) -> Vec<ResultPart<'a>> {
    if content.is_string() {
        return vec![ResultPart::Text(Text::from(content.by_ref()))];
    }
    match serde_json::from_str::<Vec<&'a RawValue>>(content.get()) {
        Ok(list) => list.into_iter().map(block).collect(),
        Err(_) if content.is_null() => Vec::new(),
        Err(_) => vec![ResultPart::Other(content.by_ref())],
    }
}

/// All text of a result, joined by line ends; a plain string is passed through undecoded.
pub(crate) fn text<'a>(content: &'a Raw<'_>) -> Text<'a> {
    let texts = blocks(content).into_iter().filter_map(|block| match block {
        ResultPart::Text(text) => Some(text),
        ResultPart::Image { .. } | ResultPart::ImageUrl(_) | ResultPart::Other(_) => None,
    });
    joined(texts, "\n").unwrap_or_default()
}

/// Texts with a separator between them; a single one is passed through undecoded.
pub(crate) fn joined<'a>(
    mut texts: impl Iterator<Item = Text<'a>>,
    separator: &str,
) -> Option<Text<'a>> {
    let first = texts.next()?;
    let Some(second) = texts.next() else {
        return Some(first);
    };
    let mut all = first.to_str().into_owned();
    for text in std::iter::once(second).chain(texts) {
        all.push_str(separator);
        all.push_str(&text.to_str());
    }
    Some(Text::new(all))
}

fn block(raw: &RawValue) -> ResultPart<'_> {
    let Ok(block) = WireBlock::deserialize(raw) else {
        return ResultPart::Other(Raw::borrowed(raw));
    };
    match (block.r#type.as_deref(), block.text.0) {
        (Some("text") | None, Some(text)) => ResultPart::Text(Text::from_json(text)),
        (Some("image"), _) => match (block.source.data.0, block.source.url.0) {
            (Some(data), _) => ResultPart::Image {
                media_type: block
                    .source
                    .media_type
                    .0
                    .unwrap_or(Cow::Borrowed("image/png")),
                data: Text::from_json(data),
            },
            (None, Some(url)) => ResultPart::ImageUrl(Text::from_json(url)),
            (None, None) => ResultPart::Other(Raw::borrowed(raw)),
        },
        _ => ResultPart::Other(Raw::borrowed(raw)),
    }
}
