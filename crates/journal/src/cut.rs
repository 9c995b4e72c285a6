//! The option to keep less: long strings of an event are shortened before they are stored.
//!
//! The line stays a valid event, each shortened string says in its own text how much is missing, and the
//! store counts it beside the event. Only what goes through the store is cut: the terminal that a run was
//! started from shows the whole, whoever follows the journal sees what is in it.

use std::borrow::Cow;

use bytes::Bytes;

/// How long a string may be in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    limit: usize,
}

impl Cut {
    /// Ids and paths stay whole below this, and the mark does not make a line longer.
    pub const SMALLEST: usize = 1024;

    /// Strings, and frames of the agent, of more than `limit` bytes are shortened to about that.
    pub fn above(limit: usize) -> Self {
        Self {
            limit: limit.max(Self::SMALLEST),
        }
    }

    /// The line to store, and how many bytes of the original it lacks.
    pub(crate) fn line(self, line: &Bytes) -> (Bytes, u64) {
        if line.len() <= self.limit {
            return (line.clone(), 0);
        }
        let mut out = Vec::new();
        let mut copied = 0;
        let mut lost = 0;
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            if byte != b'"' {
                at += 1;
                continue;
            }
            let string = scan(line, at + 1, self.limit);
            if string.end - (at + 1) > self.limit && !is_key(line, string.end + 1) {
                let missing = string.end - string.fits;
                out.extend_from_slice(&line[copied..string.fits]);
                out.extend_from_slice(mark(missing).as_bytes());
                copied = string.end;
                lost += missing;
            }
            at = string.end + 1;
        }
        if lost == 0 {
            return (line.clone(), 0);
        }
        out.extend_from_slice(&line[copied..]);
        (out.into(), lost as u64)
    }

    pub(crate) fn frame(self, frame: &Bytes) -> (Bytes, u64) {
        let kept = frame.len().min(self.limit);
        (frame.slice(..kept), (frame.len() - kept) as u64)
    }
}

fn mark(missing: usize) -> Cow<'static, str> {
    Cow::Owned(format!("… [{missing} bytes cut]"))
}

/// A JSON string by offsets, without its quotes.
struct Scanned {
    /// The last place at or before the limit where it can be cut.
    fits: usize,
    /// Its closing quote, or the end of the line.
    end: usize,
}

fn scan(line: &[u8], start: usize, limit: usize) -> Scanned {
    let mut fits = start;
    let mut at = start;
    let mut after_high_surrogate = false;
    while let Some(&byte) = line.get(at) {
        if byte == b'"' {
            break;
        }
        // A character's later bytes and the second half of a surrogate pair belong to what precedes them.
        let is_inside = byte & 0xC0 == 0x80 || after_high_surrogate;
        if at - start <= limit && !is_inside {
            fits = at;
        }
        after_high_surrogate = false;
        at += match (byte, line.get(at + 1)) {
            (b'\\', Some(b'u')) => {
                after_high_surrogate = matches!(line.get(at + 2), Some(b'd' | b'D'))
                    && matches!(
                        line.get(at + 3),
                        Some(b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B')
                    );
                6
            }
            (b'\\', _) => 2,
            _ => 1,
        };
    }
    Scanned {
        fits,
        end: at.min(line.len()),
    }
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

    fn cut(line: &str) -> (String, u64) {
        let (line, lost) = Cut { limit: 4 }.line(&Bytes::copy_from_slice(line.as_bytes()));
        (String::from_utf8(line.to_vec()).unwrap(), lost)
    }

    #[test]
    fn long_values_are_shortened_and_say_so() {
        assert_eq!(
            cut(r#"{"a":"1234","b":["123456789",true]}"#),
            (r#"{"a":"1234","b":["1234… [5 bytes cut]",true]}"#.into(), 5)
        );
    }

    #[test]
    fn keys_stay_whole() {
        let line = r#"{"a long key" : "b"}"#;
        assert_eq!(cut(line), (line.into(), 0));
    }

    #[test]
    fn escapes_characters_and_surrogate_pairs_are_not_split() {
        assert_eq!(
            cut(r#"["123\n567","12€456","\ud83d\ude00\ud83d\ude00","\\\\\\"]"#),
            (
                r#"["123… [5 bytes cut]","12… [6 bytes cut]","… [24 bytes cut]","\\\\… [2 bytes cut]"]"#
                    .into(),
                37
            )
        );
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for line in [
            "\"123456789",
            "\"12345\\",
            "\"1234567\\u",
            "\\\"123456\\ud83d",
        ] {
            cut(line);
        }
    }

    #[test]
    fn a_frame_keeps_its_beginning() {
        let cut = Cut { limit: 4 }.frame(&Bytes::from_static(b"123456"));
        assert_eq!(cut, (Bytes::from_static(b"1234"), 2));
    }
}
