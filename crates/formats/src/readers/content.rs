//! Content blocks of any agent as the model has them: text, pictures, and the rest as it came.

use std::borrow::Cow;

use model::{Part, Raw, Text};
use serde::Serialize;
use serde_json::value::RawValue;

/// One block of a message or of a tool's result.
#[derive(Clone, Debug)]
pub(crate) enum ContentPiece<'a> {
    Text(Text<'a>),
    Part(Part<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageOrText<'b> {
    Text { text: &'b Text<'b> },
    Image { source: ImageSource<'b> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'b> {
    Base64 {
        media_type: &'b str,
        data: &'b Text<'b>,
    },
    Url {
        url: &'b Text<'b>,
    },
}

/// A picture by its address; a `data:` address holds the picture itself.
pub(crate) fn picture(url: &RawValue) -> Part<'_> {
    let text = plain(url);
    let parts = match &text {
        // Both arms do the same; only a borrowed text can lend its parts for the life of the frame.
        Cow::Borrowed(text) => in_data_url(text).map(|(kind, data)| (kind.into(), data.into())),
        Cow::Owned(text) => in_data_url(text)
            .map(|(kind, data)| (Cow::Owned(kind.to_owned()), Cow::Owned(data.to_owned()))),
    };
    match parts {
        Some((media_type, data)) => Part::Image {
            media_type,
            data: Text::Plain(data),
        },
        None => Part::ImageUrl {
            url: Text::from_json(url),
        },
    }
}

fn in_data_url(url: &str) -> Option<(&str, &str)> {
    // Data that is not in base64 stays an address: a picture's data is base64 for every writer.
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((kind, data))
}

/// A JSON string by its value, with the life of the frame where it has no escapes.
fn plain(raw: &RawValue) -> Cow<'_, str> {
    let json = raw.get();
    match json.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        _ => Cow::Owned(Text::from_json(raw).to_str().into_owned()),
    }
}

/// The words of a message, and what came along.
pub(crate) fn join_text<'a>(pieces: Vec<ContentPiece<'a>>) -> (Text<'a>, Vec<Part<'a>>) {
    let (texts, parts) = split(pieces);
    (joined(texts, "\n"), parts)
}

pub(crate) fn split<'a>(pieces: Vec<ContentPiece<'a>>) -> (Vec<Text<'a>>, Vec<Part<'a>>) {
    let (mut texts, mut parts) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            ContentPiece::Text(text) => texts.push(text),
            ContentPiece::Part(part) => parts.push(part),
        }
    }
    (texts, parts)
}

pub(crate) fn joined<'a>(mut texts: Vec<Text<'a>>, separator: &str) -> Text<'a> {
    match texts.len() {
        0 => Text::EMPTY,
        1 => texts.remove(0),
        _ => {
            let texts: Vec<_> = texts.iter().map(Text::to_str).collect();
            Text::new(texts.join(separator))
        }
    }
}

/// The content of a tool's result: one text is a string, anything else a list of blocks.
pub(crate) fn content<'a>(mut pieces: Vec<ContentPiece<'a>>) -> Raw<'a> {
    // Most results are one text, and a string is what every consumer expects then.
    if pieces.len() <= 1 {
        match pieces.pop() {
            None => return Raw::of(&""),
            Some(ContentPiece::Text(Text::Json(raw))) => return raw,
            Some(ContentPiece::Text(text)) => return Raw::of(&text),
            Some(part) => pieces.push(part),
        }
    }
    blocks(&pieces)
}

/// A list of blocks as every writer knows them.
pub(crate) fn blocks(pieces: &[ContentPiece<'_>]) -> Raw<'static> {
    let blocks: Vec<Raw<'_>> = pieces.iter().map(block).collect();
    Raw::of(&blocks)
}

/// A block as every writer knows it.
pub(crate) fn block<'p>(piece: &'p ContentPiece<'_>) -> Raw<'p> {
    let source = match piece {
        ContentPiece::Text(text) => return Raw::of(&ImageOrText::Text { text }),
        // Already a block of the agent's own: whatever it is, writers get it as it came.
        ContentPiece::Part(Part::Other(raw)) => return raw.by_ref(),
        ContentPiece::Part(Part::Image { media_type, data }) => {
            ImageSource::Base64 { media_type, data }
        }
        ContentPiece::Part(Part::ImageUrl { url }) => ImageSource::Url { url },
    };
    Raw::of(&ImageOrText::Image { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_data_address_is_the_picture_itself() {
        let image = picture(raw(r#""data:image/png;base64,aGk=""#));
        assert_eq!(
            image,
            Part::Image {
                media_type: Cow::Borrowed("image/png"),
                data: Text::new("aGk="),
            }
        );
        let escaped = picture(raw(r#""data:image\/png;base64,aGk=""#));
        assert_eq!(image, escaped);
        let link = picture(raw(r#""https://example.com/a.png""#));
        assert!(matches!(link, Part::ImageUrl { .. }));
    }

    #[test]
    fn one_text_is_a_string_and_more_is_a_list() {
        let text = |json| ContentPiece::Text(Text::from_json(raw(json)));
        assert_eq!(content(Vec::new()).get(), r#""""#);
        assert_eq!(content(vec![text(r#""a\n""#)]).get(), r#""a\n""#);
        let both = content(vec![
            text(r#""a""#),
            ContentPiece::Part(picture(raw(r#""data:image/png;base64,aGk=""#))),
        ]);
        assert_eq!(
            both.get(),
            r#"[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]"#
        );
    }
}
