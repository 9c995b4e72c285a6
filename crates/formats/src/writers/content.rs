//! What a tool gave back, taken apart for targets that have types for it.

use std::borrow::Cow;

use model::{Raw, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) enum Block<'a> {
    Text(Text<'a>),
    Image {
        media_type: Cow<'a, str>,
        data: Text<'a>,
    },
    ImageUrl(Text<'a>),
    Other(Raw<'a>),
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    source: Option<Source<'a>>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    media_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
}

/// The blocks of a tool result: a JSON string is one Text block, an array its elements, anything else Other.
pub(crate) fn blocks<'a>(content: &'a Raw<'_>) -> Vec<Block<'a>> {
    if content.is_string() {
        return vec![Block::Text(Text::from_json(content.as_raw_value()))];
    }
    match serde_json::from_str::<Vec<&RawValue>>(content.get()) {
        Ok(items) => items.into_iter().map(block).collect(),
        Err(_) if content.is_null() => Vec::new(),
        Err(_) => vec![Block::Other(content.by_ref())],
    }
}

fn block(raw: &RawValue) -> Block<'_> {
    let Ok(wire) = serde_json::from_str::<Wire<'_>>(raw.get()) else {
        return Block::Other(Raw::borrowed(raw));
    };
    match (&*wire.r#type, wire.text, wire.source) {
        ("text", Some(text), _) => Block::Text(text),
        (
            "image",
            _,
            Some(Source {
                data: Some(data),
                media_type: Some(media_type),
                ..
            }),
        ) => Block::Image { media_type, data },
        ("image", _, Some(Source { url: Some(url), .. })) => Block::ImageUrl(url),
        _ => Block::Other(Raw::borrowed(raw)),
    }
}

/// All text of a tool result joined by "\n"; a plain string is passed through without decoding.
pub(crate) fn text<'a>(content: &'a Raw<'_>) -> Text<'a> {
    if content.is_string() {
        return Text::from_json(content.as_raw_value());
    }
    let mut joined = String::new();
    for block in blocks(content) {
        let piece = match block {
            Block::Text(text) => text.to_str().into_owned(),
            Block::Image { .. } | Block::ImageUrl(_) => continue,
            Block::Other(raw) => raw.get().to_owned(),
        };
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(&piece);
    }
    Text::new(joined)
}
