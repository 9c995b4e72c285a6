//! What was streamed of an item, kept as the inside of a JSON string.
//!
//! Nearly every piece comes as JSON and nearly every whole text is spelled like its pieces, so that
//! neither has to be decoded: the bytes are compared as they came.

use model::{Raw, Text};

/// What most texts fit into: growing piece by piece from nothing would move each of them many times.
const ROOM: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct StreamedText {
    json: String,
}

impl StreamedText {
    pub(crate) fn push(&mut self, text: &Text<'_>) {
        if self.json.capacity() == 0 {
            self.json.reserve(ROOM);
        }
        match text {
            Text::Json(raw) => self.json.push_str(inside(raw.get())),
            // Escaped like a JSON string, so that all pieces can be decoded as one in the end.
            Text::Plain(text) => self.json.push_str(inside(Raw::of(text).get())),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// True when the text is spelled exactly as its pieces; false means unknown.
    pub(crate) fn is_all_of(&self, whole: &Text<'_>) -> bool {
        matches!(whole, Text::Json(raw) if inside(raw.get()) == self.json)
    }

    pub(crate) fn decode(&self) -> String {
        let text = Text::from(Raw::parse(format!("\"{}\"", self.json)));
        text.to_str().into_owned()
    }
}

/// A JSON string without its quotes.
fn inside(json: &str) -> &str {
    json.get(1..json.len() - 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_once_and_only_for_what_is_streamed() {
        let mut streamed = StreamedText::default();
        assert_eq!((streamed.json.capacity(), streamed.len()), (0, 0));
        streamed.push(&Text::new("a"));
        let capacity = streamed.json.capacity();
        assert!(capacity >= ROOM);
        for _ in 1..ROOM {
            streamed.push(&Text::new("a"));
        }
        assert_eq!((streamed.json.capacity(), streamed.len()), (capacity, ROOM));
    }

    #[test]
    fn pieces_of_any_spelling_add_up() {
        let mut streamed = StreamedText::default();
        streamed.push(&serde_json::from_str(r#""a\n""#).unwrap());
        streamed.push(&Text::new("\"b\""));
        assert_eq!(streamed.decode(), "a\n\"b\"");
        assert!(streamed.is_all_of(&serde_json::from_str(r#""a\n\"b\"""#).unwrap()));
        assert!(!streamed.is_all_of(&Text::new("a")));
    }
}
