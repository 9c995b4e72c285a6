//! A parser for JSON that is mostly payload: what nobody looks at is skipped many bytes at a time.
//!
//! It accepts what serde_json accepts, with the same values, and leaves to serde_json what is rare:
//! escapes, numbers that are not whole, deep values, and the wording of errors.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::{Number, Value};

use super::lenient::Map;

/// Parses a text like `serde_json::from_str`; [`error_in`] says why one is refused.
pub(crate) fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refused> {
    let mut scanner = Scanner::new(text);
    let value = T::deserialize(&mut scanner)?;
    scanner.end()?;
    Ok(value)
}

/// The error of serde_json in a text that was refused.
#[cold]
pub(crate) fn error_in(text: &str) -> serde_json::Error {
    // Only what is well-formed is worth the memory of a value.
    let parsed = serde_json::from_str::<Map<'_, IgnoredAny>>(text)
        .and_then(|_| serde_json::from_str::<Value>(text));
    parsed.map_or_else(|err| err, |_| serde::de::Error::custom(Refused))
}

/// Values inside of each other that become values of ours, as many as in serde_json: the stack is not for the
/// input to use up.
const MAX_DEPTH: u8 = 127;
/// The name of a struct that wants the JSON text itself.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A deserializer over a text that is likely JSON.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

/// The text is no JSON, or not what was wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused;

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: MAX_DEPTH,
        }
    }

    /// Nothing may follow the value.
    pub(crate) fn end(&mut self) -> Result<(), Refused> {
        match self.token() {
            // `token` refuses when the text is over, which is what is wanted here.
            Err(Refused) => Ok(()),
            Ok(_) => Err(Refused),
        }
    }

    /// The first byte of the next token; there has to be one.
    #[inline]
    fn token(&mut self) -> Result<u8, Refused> {
        let bytes = self.text.as_bytes();
        loop {
            match *bytes.get(self.at).ok_or(Refused)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                token => return Ok(token),
            }
        }
    }

    #[inline]
    fn expect(&mut self, token: u8) -> Result<(), Refused> {
        if self.token()? != token {
            return Err(Refused);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Refused> {
        let rest = &self.text.as_bytes()[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            return Err(Refused);
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips the string that begins here; true when it has escapes.
    #[inline]
    fn skip_string(&mut self) -> Result<bool, Refused> {
        let bytes = self.text.as_bytes();
        let (n_behind, has_escapes) = string_end(&bytes[self.at + 1..]).ok_or(Refused)?;
        self.at = bytes.len() - n_behind;
        Ok(has_escapes)
    }

    fn skip_number(&mut self) -> Result<(), Refused> {
        let bytes = self.text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let digits = |at: usize| {
            let end = at
                + bytes[at.min(bytes.len())..]
                    .iter()
                    .take_while(|it| it.is_ascii_digit())
                    .count();
            if end > at { Ok(end) } else { Err(Refused) }
        };
        let start = self.at + usize::from(byte(self.at) == b'-');
        let mut at = digits(start)?;
        // JSON has no leading zeros.
        if byte(start) == b'0' && at > start + 1 {
            return Err(Refused);
        }
        if byte(at) == b'.' {
            at = digits(at + 1)?;
        }
        if matches!(byte(at), b'e' | b'E') {
            at = digits(at + 1 + usize::from(matches!(byte(at + 1), b'+' | b'-')))?;
        }
        self.at = at;
        Ok(())
    }

    /// Skips any value.
    fn skip_value(&mut self) -> Result<(), Refused> {
        self.token()?;
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            match self.token()? {
                b'"' => {
                    self.skip_string()?;
                }
                b'{' => {
                    self.at += 1;
                    if self.token()? != b'}' {
                        if !nesting.enter(true) {
                            return self.skip_deep_value(start);
                        }
                        self.skip_key()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    if self.token()? != b']' {
                        if !nesting.enter(false) {
                            return self.skip_deep_value(start);
                        }
                        continue;
                    }
                    self.at += 1;
                }
                b'-' | b'0'..=b'9' => self.skip_number()?,
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => return Err(Refused),
            }
            // The value may be the last one of what it is in.
            loop {
                let Some(is_object) = nesting.innermost() else {
                    return Ok(());
                };
                let token = self.token()?;
                self.at += 1;
                match (token, is_object) {
                    (b',', true) => {
                        self.skip_key()?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => nesting.leave(),
                    _ => return Err(Refused),
                }
            }
        }
    }

    /// serde_json keeps on the heap what a value is inside of.
    #[cold]
    fn skip_deep_value(&mut self, start: usize) -> Result<(), Refused> {
        let rest = self.text.get(start..).ok_or(Refused)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let skipped = values.next().ok_or(Refused)?;
        skipped.map_err(|_| Refused)?;
        self.at = start + values.byte_offset();
        Ok(())
    }

    fn skip_key(&mut self) -> Result<(), Refused> {
        if self.token()? != b'"' {
            return Err(Refused);
        }
        self.skip_string()?;
        self.expect(b':')
    }

    fn visit_string<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        let start = self.at;
        let has_escapes = self.skip_string()?;
        if has_escapes {
            let json = self.text.get(start..self.at).ok_or(Refused)?;
            // Decoding is left to serde_json, which knows the halves of surrogate pairs.
            return visitor.visit_string(serde_json::from_str(json).map_err(|_| Refused)?);
        }
        visitor.visit_borrowed_str(self.text.get(start + 1..self.at - 1).ok_or(Refused)?)
    }

    fn visit_number<V: Visitor<'a>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        let start = self.at;
        self.skip_number()?;
        let digits = self.text.get(start..self.at).ok_or(Refused)?;
        match digits.parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => {
                // Whether it fits into a `f64`, and which is the nearest, is for a parser of numbers to say.
                let number: Number = digits.parse().map_err(|_| Refused)?;
                number.deserialize_any(visitor).map_err(|_| Refused)
            }
        }
    }

    #[inline]
    fn visit_list<V: Visitor<'a>>(
        &mut self,
        visitor: V,
        is_object: bool,
    ) -> Result<V::Value, Refused> {
        self.at += 1;
        self.depth = self.depth.checked_sub(1).ok_or(Refused)?;
        let mut members = Members {
            scanner: self,
            is_first: true,
            has_ended: false,
        };
        let value = match is_object {
            true => visitor.visit_map(&mut members)?,
            false => visitor.visit_seq(&mut members)?,
        };
        // A visitor may know how many members there are, but not stop before the last.
        let end = if is_object { b'}' } else { b']' };
        if !members.has_ended && members.has_next(end)? {
            return Err(Refused);
        }
        // Not restored on an error: a scanner that has refused is not used again.
        self.depth += 1;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for &mut Scanner<'de> {
    type Error = Refused;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.token()? {
            b'"' => self.visit_string(visitor),
            b'{' => self.visit_list(visitor, true),
            b'[' => self.visit_list(visitor, false),
            b'-' | b'0'..=b'9' => self.visit_number(visitor),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.token()? {
            b'"' => self.visit_string(visitor),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.token()? {
            b'n' => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    /// A name alone, or an object with the name and the value of one variant.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self.token()? {
            b'"' => visitor.visit_enum(<Cow<'de, str>>::deserialize(self)?.into_deserializer()),
            b'{' => self.visit_list(VariantVisitor(visitor), true),
            _ => Err(Refused),
        }
    }

    /// A `RawValue` wants a map of its own name and the JSON text.
    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if name != RAW_VALUE {
            return visitor.visit_newtype_struct(self);
        }
        let token = self.token()?;
        let start = self.at;
        match token {
            b'"' => {
                self.skip_string()?;
            }
            _ => self.skip_value()?,
        }
        let json = self.text.get(start..self.at).ok_or(Refused)?;
        visitor.visit_map(RawText { name, json })
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.skip_value()?;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// Reads the one member of an object as the variant of an enum.
struct VariantVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for VariantVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        let value = self.0.visit_enum(MapAccessDeserializer::new(&mut map))?;
        match map.next_key::<IgnoredAny>()? {
            None => Ok(value),
            Some(IgnoredAny) => Err(serde::de::Error::custom(Refused)),
        }
    }
}

/// The members of an object or a list.
struct Members<'s, 'a> {
    scanner: &'s mut Scanner<'a>,
    is_first: bool,
    has_ended: bool,
}

impl Members<'_, '_> {
    /// True when another member follows, which begins here.
    #[inline]
    fn has_next(&mut self, end: u8) -> Result<bool, Refused> {
        let token = self.scanner.token()?;
        if token == end {
            self.scanner.at += 1;
            self.has_ended = true;
            return Ok(false);
        }
        if !std::mem::take(&mut self.is_first) {
            if token != b',' {
                return Err(Refused);
            }
            self.scanner.at += 1;
        }
        Ok(true)
    }
}

impl<'a> MapAccess<'a> for &mut Members<'_, 'a> {
    type Error = Refused;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        if self.scanner.token()? != b'"' {
            return Err(Refused);
        }
        let key = seed.deserialize(&mut *self.scanner)?;
        self.scanner.expect(b':')?;
        Ok(Some(key))
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(&mut *self.scanner)
    }
}

impl<'a> SeqAccess<'a> for &mut Members<'_, 'a> {
    type Error = Refused;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refused> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.scanner).map(Some)
    }
}

/// A `RawValue` as it reads itself.
struct RawText<'a> {
    name: &'static str,
    json: &'a str,
}

impl<'a> MapAccess<'a> for RawText<'a> {
    type Error = Refused;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        seed.deserialize(self.name.into_deserializer()).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(BorrowedStrDeserializer::new(self.json))
    }
}

/// What a value is inside of: a bit for each object or list, the innermost last, behind a leading one.
struct Nesting(u64);

impl Default for Nesting {
    fn default() -> Self {
        Self(1)
    }
}

impl Nesting {
    /// False when 63 levels are reached, which are all that fit.
    fn enter(&mut self, is_object: bool) -> bool {
        let has_room = self.0.leading_zeros() > 0;
        self.0 = self.0 << 1 | u64::from(is_object);
        has_room
    }

    fn leave(&mut self) {
        self.0 >>= 1;
    }

    /// True for an object, false for a list.
    fn innermost(&self) -> Option<bool> {
        (self.0 > 1).then_some(self.0 & 1 == 1)
    }
}

/// How many bytes are behind the string that `rest` begins inside of, and whether it has escapes.
#[inline(never)]
fn string_end(mut rest: &[u8]) -> Option<(usize, bool)> {
    let mut has_escapes = false;
    loop {
        let (first, behind) = skip_plain(rest).split_first()?;
        match first {
            b'"' => return Some((behind.len(), has_escapes)),
            b'\\' => rest = skip_escape(behind)?,
            // A control character, which JSON does not allow here.
            _ => return None,
        }
        has_escapes = true;
    }
}

/// Skips to a quote, a backslash or a control character. Only few bytes are between two of them on
/// average, in keys and in code: words are better here than anything wider.
#[inline]
fn skip_plain(mut rest: &[u8]) -> &[u8] {
    while let Some((word, behind)) = rest.split_first_chunk() {
        if let Some(found) = find_special(word) {
            return &rest[found..];
        }
        rest = behind;
    }
    while let Some((first, behind)) = rest.split_first()
        && !(*first < b' ' || matches!(first, b'"' | b'\\'))
    {
        rest = behind;
    }
    rest
}

/// Compares all bytes of a word by subtracting: those that are too small borrow into their high bit.
#[inline]
fn find_special(word: &[u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const fn all(byte: u8) -> u64 {
        ONES * byte as u64
    }
    let word = u64::from_le_bytes(*word);
    // Swaps quote and space, so that the quote stands right behind the control characters.
    let quote = (word ^ all(b'"' ^ b' ')).wrapping_sub(all(b' ' + 1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(ONES);
    // A byte that had the high bit before is part of a character outside of ASCII.
    let found = (quote | backslash) & !word & all(0x80);
    // A borrow also changes the bytes above, but the lowest that is found is right.
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// What is behind an escape whose backslash is before `rest`.
#[inline]
fn skip_escape(rest: &[u8]) -> Option<&[u8]> {
    let (kind, behind) = rest.split_first()?;
    match ESCAPES[usize::from(*kind)] {
        Escape::Short => Some(behind),
        Escape::Unicode => {
            let (digits, behind) = behind.split_first_chunk::<4>()?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(behind)
        }
        Escape::None => None,
    }
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Short,
    Unicode,
}

/// By the byte behind the backslash.
static ESCAPES: [Escape; 256] = {
    let mut escapes = [Escape::None; 256];
    let mut short: &[u8] = b"\"\\/bfnrt";
    while let [first, rest @ ..] = short {
        escapes[*first as usize] = Escape::Short;
        short = rest;
    }
    escapes[b'u' as usize] = Escape::Unicode;
    escapes
};

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the JSON is not what was expected")
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}
