//! Payloads travel as the bytes they arrived in.
//!
//! A string with escapes is copied to a JSON target without being unescaped; a deep or odd value is
//! never taken apart. Both are validated once, by the parser that cut them out of their frame.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::{memchr, memchr2};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::cut::{cut_mark, json_boundary};

/// Any JSON value, kept as text. A clone never copies the text: some are many megabytes long.
#[derive(Clone)]
pub struct Raw<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    Borrowed(&'a RawValue),
    Shared(Arc<Owned>),
}

/// A box inside the `Arc`: moving the text into the `Arc` itself would copy it once more.
struct Owned(Box<RawValue>);

impl<'a> Raw<'a> {
    pub fn borrowed(raw: &'a RawValue) -> Self {
        Self(Repr::Borrowed(raw))
    }

    fn owned(raw: Box<RawValue>) -> Raw<'static> {
        Raw(Repr::Shared(Arc::new(Owned(raw))))
    }

    /// Takes JSON text of our own, or text that is not validated yet; invalid JSON becomes a
    /// string.
    pub fn parse(json: String) -> Raw<'static> {
        // Between tokens they are white space, and inside strings they are not JSON: one line is safe.
        let json = match has_line_end(&json) {
            true => json.replace(['\n', '\r'], " "),
            false => json,
        };
        Self::read(json).unwrap_or_else(|| Self::of(&"not JSON"))
    }

    /// Parses text as JSON; `None` when it is not valid.
    pub fn read(json: String) -> Option<Raw<'static>> {
        let raw = RawValue::from_string(json).ok()?;
        // Payloads end up in formats of one line each.
        if has_line_end(raw.get()) {
            return Some(Self::parse(raw.get().to_owned()));
        }
        Some(Self::owned(raw))
    }

    /// Any serializable value as JSON.
    pub fn of(value: &impl Serialize) -> Raw<'static> {
        let raw = serde_json::value::to_raw_value(value)
            // Maps with keys that are no strings fail; an event is worth more than such a value.
            .or_else(|_| serde_json::value::to_raw_value(&()))
            .expect("null is JSON");
        Self::owned(raw)
    }

    pub fn get(&self) -> &str {
        self.as_raw_value().get()
    }

    /// The JSON text with the life of the frame, unless it was copied out of it.
    pub fn borrowed_str(&self) -> Option<&'a str> {
        match &self.0 {
            Repr::Borrowed(raw) => Some(raw.get()),
            Repr::Shared(_) => None,
        }
    }

    /// The value with the text in shared memory; `None` when the text belongs to a frame.
    pub fn shared(&self) -> Option<Raw<'static>> {
        match &self.0 {
            Repr::Borrowed(_) => None,
            Repr::Shared(owned) => Some(Raw(Repr::Shared(Arc::clone(owned)))),
        }
    }

    pub fn as_raw_value(&self) -> &RawValue {
        match &self.0 {
            Repr::Borrowed(raw) => raw,
            Repr::Shared(owned) => &owned.0,
        }
    }

    pub fn is_string(&self) -> bool {
        self.get().starts_with('"')
    }

    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    pub fn by_ref(&self) -> Raw<'_> {
        Raw::borrowed(self.as_raw_value())
    }

    pub fn into_owned(self) -> Raw<'static> {
        match self.0 {
            Repr::Borrowed(raw) => Self::owned(raw.to_owned()),
            Repr::Shared(owned) => Raw(Repr::Shared(owned)),
        }
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_raw_value().serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(Raw::borrowed)
    }
}

fn has_line_end(text: &str) -> bool {
    memchr2(b'\n', b'\r', text.as_bytes()).is_some()
}

/// Text that is decoded only when it is read.
#[derive(Clone)]
pub enum Text<'a> {
    Plain(Cow<'a, str>),
    /// A JSON string with its quotes.
    Json(Raw<'a>),
}

impl<'a> Text<'a> {
    pub const EMPTY: Text<'static> = Text::Plain(Cow::Borrowed(""));

    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Plain(text.into())
    }

    /// A JSON string by its value, anything else by its JSON text; `null` is empty.
    pub fn from_json(raw: &'a RawValue) -> Self {
        Self::from(Raw::borrowed(raw))
    }

    pub fn to_str(&self) -> Cow<'_, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Json(raw) => decode(raw.get()),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Plain(text) => text.is_empty(),
            Self::Json(raw) => raw.get() == "\"\"",
        }
    }

    /// True when there is nothing but white space to see.
    pub fn is_blank(&self) -> bool {
        self.to_str().trim().is_empty()
    }

    /// The length in its stored form: an upper bound of the decoded length, without decoding.
    pub fn len_bound(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Json(raw) => raw.get().len().saturating_sub(2),
        }
    }

    /// The text if it has at most `limit` bytes, else its beginning and how many bytes are missing.
    pub fn shortened(self, limit: usize) -> Self {
        let length = self.len_bound();
        if length <= limit {
            return self;
        }
        match self {
            Self::Plain(text) => {
                let kept = text.floor_char_boundary(limit);
                let mark = cut_mark(length - kept);
                Self::new(format!("{}{mark}", &text[..kept]))
            }
            Self::Json(raw) => {
                // Shortened in its escaped form: decoding a text of many megabytes would copy it.
                let inside = &raw.get()[1..=length];
                let kept = json_boundary(inside.as_bytes(), limit);
                let mark = cut_mark(length - kept);
                Self::Json(Raw::parse(format!("\"{}{mark}\"", &inside[..kept])))
            }
        }
    }

    pub fn by_ref(&self) -> Text<'_> {
        match self {
            Self::Plain(text) => Text::Plain(Cow::Borrowed(text)),
            Self::Json(raw) => Text::Json(raw.by_ref()),
        }
    }

    pub fn into_owned(self) -> Text<'static> {
        match self {
            Self::Plain(text) => Text::Plain(Cow::Owned(text.into_owned())),
            Self::Json(raw) => Text::Json(raw.into_owned()),
        }
    }
}

impl<'a> From<Raw<'a>> for Text<'a> {
    fn from(raw: Raw<'a>) -> Self {
        if raw.is_string() {
            Self::Json(raw)
        } else if raw.is_null() {
            Self::EMPTY
        } else {
            Self::Plain(Cow::Owned(raw.get().to_owned()))
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_str(), f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str())
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Equal bytes need no decoding; different ones may still be equal texts.
            (Self::Json(a), Self::Json(b)) if a == b => true,
            _ => self.to_str() == other.to_str(),
        }
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(text) => serializer.serialize_str(text),
            Self::Json(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(Text::from_json)
    }
}

/// Decodes a JSON string; the framing layer has already replaced lone surrogates.
fn decode(json: &str) -> Cow<'_, str> {
    let inner = json
        .get(1..json.len().saturating_sub(1))
        .unwrap_or_default();
    match memchr(b'\\', inner.as_bytes()) {
        None => Cow::Borrowed(inner),
        // A lone surrogate that bypassed the framing layer: showing the escapes beats losing the text.
        Some(first) => unescape(inner, first).map_or(Cow::Borrowed(inner), Cow::Owned),
    }
}

/// The inside of a JSON string without its escapes. It was validated when it was cut out, so half
/// of a parser's work is left; most decoded texts have many escapes (code, commands).
fn unescape(json: &str, first: usize) -> Option<String> {
    let mut text = String::with_capacity(json.len());
    let (mut rest, mut next) = (json, Some(first));
    while let Some(at) = next {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let (char, length) = match escape.as_bytes().get(1)? {
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'u' => code_point(escape)?,
            // Quotes, backslashes and slashes stand for themselves.
            it => (char::from(*it), 2),
        };
        text.push(char);
        rest = escape.get(length..)?;
        next = memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    Some(text)
}

/// The character of one or two escapes such as `\u00e9`, and their length.
fn code_point(escape: &str) -> Option<(char, usize)> {
    let unit = |escape: &str| {
        let digits = escape.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(escape)?;
    match char::from_u32(first.into()) {
        Some(char) => Some((char, 6)),
        None => {
            // Half of a surrogate pair is no character; the other half has to follow.
            let pair = [first, unit(&escape[6..])?];
            Some((char::decode_utf16(pair).next()?.ok()?, 12))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Text<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn escapes_travel_untouched_and_decode_on_demand() {
        let it = text(r#""a\n\u00e9""#);
        assert_eq!(it.to_str(), "a\né");
        assert_eq!(serde_json::to_string(&it).unwrap(), r#""a\n\u00e9""#);
    }

    #[test]
    fn every_escape_is_decoded_as_a_parser_would() {
        for json in [
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u0000\u00e9\u20AC\ud83d\ude00é\\u0041""#,
            r#""\\\\n""#,
            r#""é\né""#,
        ] {
            let parsed: String = serde_json::from_str(json).unwrap();
            assert_eq!(text(json).to_str(), parsed, "{json}");
        }
    }

    #[test]
    fn half_a_character_shows_its_escape() {
        for json in [
            r#""\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83d\nde00""#,
            r#""a\ude00""#,
            r#""\ud83d\ud83d""#,
        ] {
            assert_eq!(text(json).to_str(), json.trim_matches('"'));
        }
    }

    #[test]
    fn equal_texts_are_equal_in_any_spelling() {
        assert_eq!(text(r#""\u0041""#), Text::new("A"));
    }

    #[test]
    fn a_long_text_is_shortened_and_says_so() {
        let json = |json| serde_json::to_string(&text(json).shortened(4)).unwrap();
        assert_eq!(json(r#""1234""#), r#""1234""#);
        assert_eq!(json(r#""123\n567""#), r#""123… [5 bytes cut]""#);
        assert_eq!(json(r#""\ud83d\ude00""#), r#""… [12 bytes cut]""#);
        let plain = |text: &'static str| Text::new(text).shortened(4).to_string();
        assert_eq!(plain("1234"), "1234");
        assert_eq!(plain("12€456"), "12… [6 bytes cut]");
    }

    #[test]
    fn a_clone_shares_the_text() {
        let raw = Raw::of(&"long");
        assert_eq!(raw.clone().get().as_ptr(), raw.get().as_ptr());
        assert_eq!(raw.clone().into_owned().get().as_ptr(), raw.get().as_ptr());
    }

    #[test]
    fn a_value_that_is_no_string_shows_as_its_json() {
        assert_eq!(text("[1]").to_str(), "[1]");
        assert!(text("null").is_empty());
    }

    #[test]
    fn json_made_here_is_one_line() {
        assert_eq!(
            Raw::parse("{\n  \"a\": 1\r\n}".to_owned()).get(),
            "{   \"a\": 1  }"
        );
    }

    #[test]
    fn a_million_nested_arrays_survive() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let raw: Raw<'_> = serde_json::from_str(&deep).unwrap();
        assert_eq!(raw.get().len(), 2_000_000);
    }
}
