//! Frames made safe to parse and to copy: valid UTF-8, no half surrogate pairs.
//!
//! JavaScript writes a cut emoji as a lone `\ud83d`; most parsers refuse the whole line for it, and
//! a payload that is copied through would carry it to a consumer that does. Both are mended here,
//! once, so that no reader and no writer has to think of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::{memchr, memmem};

/// A frame as text, and what had to be mended for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<'a> {
    pub text: Cow<'a, str>,
    pub repair: Option<Repair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    InvalidUtf8,
    LoneSurrogate,
}

pub fn clean(frame: &[u8]) -> Cleaned<'_> {
    // Every byte of input passes here, so that the faster check is worth a crate.
    let (mut text, mut repair) = match simdutf8::basic::from_utf8(frame) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(_) => (String::from_utf8_lossy(frame), Some(Repair::InvalidUtf8)),
    };
    if let Some(mended) = replace_lone_surrogates(&text) {
        text = Cow::Owned(mended);
        repair = repair.or(Some(Repair::LoneSurrogate));
    }
    Cleaned { text, repair }
}

/// `None` when there is nothing to replace.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    static ESCAPE: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new(b"\\u"));
    static LOWER: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new(b"\\ud"));
    static UPPER: LazyLock<memmem::Finder<'static>> =
        LazyLock::new(|| memmem::Finder::new(b"\\uD"));
    let bytes = json.as_bytes();
    // Few lines have an escape: searching for one is cheaper than looking at every backslash.
    let first = ESCAPE.find(bytes)?;
    if LOWER.find(&bytes[first..]).is_none() && UPPER.find(&bytes[first..]).is_none() {
        return None;
    }
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        match surrogate(bytes, escape) {
            // A pair is a high surrogate and a low one right after it; both escapes are left as
            // they are.
            Some(high)
                if high < 0xdc00 && matches!(surrogate(bytes, escape + 6), Some(0xdc00..)) =>
            {
                at = escape + 12;
            }
            Some(_) => {
                mended.push_str(&json[copied..escape]);
                mended.push_str("\\ufffd");
                at = escape + 6;
                copied = at;
            }
            // Two bytes, not one: in `\\ud83d` the second backslash is escaped and begins nothing.
            None => at = (escape + 2).min(bytes.len()),
        }
    }
    // Escapes were found, but all of them were fine: the frame stays borrowed.
    if copied == 0 {
        return None;
    }
    mended.push_str(&json[copied..]);
    Some(mended)
}

/// The surrogate code unit escaped at `at`, if there is one.
fn surrogate(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], text: &str, repair: Option<Repair>) {
        assert_eq!(
            clean(input),
            Cleaned {
                text: Cow::Borrowed(text),
                repair
            }
        );
    }

    #[test]
    fn half_an_emoji_is_replaced_and_a_whole_one_kept() {
        check(br#""a\ud83d""#, r#""a\ufffd""#, Some(Repair::LoneSurrogate));
        check(
            br#""\ude00\ud83d""#,
            r#""\ufffd\ufffd""#,
            Some(Repair::LoneSurrogate),
        );
        check(br#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#, None);
        check(br#""\\ud83d""#, r#""\\ud83d""#, None);
        check(
            br#""x\ud83d\ude00y\ud83dz\ud83d\ude00\ude00""#,
            r#""x\ud83d\ude00y\ufffdz\ud83d\ude00\ufffd""#,
            Some(Repair::LoneSurrogate),
        );
        check(
            br#""\n\ud83d\ud83d\ude00\\\ud83d\""#,
            r#""\n\ufffd\ud83d\ude00\\\ufffd\""#,
            Some(Repair::LoneSurrogate),
        );
        check(
            br#""\ud7ff\ue000\udbff\udfff""#,
            r#""\ud7ff\ue000\udbff\udfff""#,
            None,
        );
        check(
            br#""\udc00\udc00""#,
            r#""\ufffd\ufffd""#,
            Some(Repair::LoneSurrogate),
        );
        check(
            br#""\ud800\udbff\udc00\udfff""#,
            r#""\ufffd\udbff\udc00\ufffd""#,
            Some(Repair::LoneSurrogate),
        );
        check(br#""\ud83g\"#, r#""\ud83g\"#, None);
        check(br#""\ud83"#, r#""\ud83"#, None);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        check(b"\"a\xff\"", "\"a\u{fffd}\"", Some(Repair::InvalidUtf8));
    }
}
