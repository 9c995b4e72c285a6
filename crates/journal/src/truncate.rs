//! The option to keep less: long strings of an event are shortened before they are stored.
//!
//! The line stays a valid event, each truncated string ends with a mark that has the number of
//! missing bytes, and the store counts the bytes beside the event. The live terminal shows the full text;
//! readers of the journal see the truncated text.

use std::borrow::Cow;

use bytes::Bytes;
use memchr::{memchr, memchr2};
use model::{cut_mark, json_boundary};

/// How long a string may be in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncate {
    limit: usize,
}

impl Truncate {
    /// Ids and paths stay whole below this, and the mark does not make a line longer.
    pub const SMALLEST: usize = 1024;

    /// Strings, and frames of the agent, of more than `limit` bytes are shortened to about that.
    pub fn above(limit: usize) -> Self {
        Self {
            limit: limit.max(Self::SMALLEST),
        }
    }

    pub(crate) fn limit(self) -> usize {
        self.limit
    }

    /// The line to store, and how many bytes of the original it lacks.
    pub(crate) fn line(self, line: &Bytes) -> (Bytes, u64) {
        match self.json(line) {
            (Cow::Borrowed(_), _) => (line.clone(), 0),
            (Cow::Owned(cut), n_cut) => (cut.into(), n_cut),
        }
    }

    /// Any JSON with its long strings shortened, and how many bytes of the original it lacks.
    pub(crate) fn json(self, json: &[u8]) -> (Cow<'_, [u8]>, u64) {
        let mut out = Vec::new();
        let mut copied = 0;
        let mut n_cut = 0;
        let mut at = 0;
        // Short JSON cannot hold a long string, and is not searched.
        while json.len() > self.limit
            && let Some(quote) = memchr(b'"', &json[at..])
        {
            let start = at + quote + 1;
            let end = end_of_string(json, start);
            if end - start > self.limit && !is_key(json, end + 1) {
                let kept = start + json_boundary(&json[start..end], self.limit);
                out.extend_from_slice(&json[copied..kept]);
                out.extend_from_slice(cut_mark(end - kept).as_bytes());
                copied = end;
                n_cut += end - kept;
            }
            at = (end + 1).min(json.len());
        }
        if n_cut == 0 {
            return (Cow::Borrowed(json), 0);
        }
        out.extend_from_slice(&json[copied..]);
        (Cow::Owned(out), n_cut as u64)
    }

    pub(crate) fn frame(self, frame: &Bytes) -> (Bytes, u64) {
        let kept = frame.len().min(self.limit);
        (frame.slice(..kept), (frame.len() - kept) as u64)
    }
}

/// Where the closing quote of a JSON string stands, or the end of the text.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(next) = memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += next;
        if json[at] == b'"' {
            return at;
        }
        // What follows a backslash belongs to it, even a quote.
        at += 2;
    }
    json.len()
}

/// Keys stay whole: two long ones could become the same.
fn is_key(line: &[u8], after: usize) -> bool {
    line.get(after..)
        .unwrap_or_default()
        .iter()
        .find(|it| !it.is_ascii_whitespace())
        == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncate(line: &str) -> (String, u64) {
        let (line, lost) = Truncate { limit: 4 }.line(&Bytes::copy_from_slice(line.as_bytes()));
        (String::from_utf8(line.to_vec()).unwrap(), lost)
    }

    #[test]
    fn long_values_are_truncated_with_a_mark() {
        assert_eq!(
            truncate(r#"{"a":"1234","b":["123456789",true]}"#),
            (r#"{"a":"1234","b":["1234… [5 bytes cut]",true]}"#.into(), 5)
        );
    }

    #[test]
    fn keys_stay_whole() {
        let line = r#"{"a long key" : "b"}"#;
        assert_eq!(truncate(line), (line.into(), 0));
    }

    #[test]
    fn escapes_characters_and_surrogate_pairs_are_not_split() {
        assert_eq!(
            truncate(r#"["123\n567","12€456","\ud83d\ude00\ud83d\ude00","\\\\\\"]"#),
            (
                r#"["123… [5 bytes cut]","12… [6 bytes cut]","… [24 bytes cut]","\\\\… [2 bytes cut]"]"#
                    .into(),
                37
            )
        );
    }

    #[test]
    fn invalid_json_does_not_panic() {
        for line in [
            "\"123456789",
            "\"12345\\",
            "\"1234567\\u",
            "\\\"123456\\ud83d",
        ] {
            truncate(line);
        }
    }

    #[test]
    fn a_frame_keeps_its_beginning() {
        let cut = Truncate { limit: 4 }.frame(&Bytes::from_static(b"123456"));
        assert_eq!(cut, (Bytes::from_static(b"1234"), 2));
    }
}
