//! Server-sent events, or the same data as plain lines: the first line tells which.

use model::Frame;

use super::{Lines, Sse};

/// How a server-sent event stream can begin.
const FIELDS: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];

/// Looks at the first bytes, then is one of the two framers.
#[derive(Clone, Debug)]
pub enum Either {
    /// Too few bytes to tell; holds no more than the longest field name.
    Unknown(Vec<u8>),
    Lines(Lines),
    Sse(Sse),
}

impl Default for Either {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Either {
    pub fn push(&mut self, chunk: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.push(chunk, frames),
            Self::Sse(it) => it.push(chunk, frames),
            Self::Unknown(head) => {
                head.extend_from_slice(chunk);
                let rest = begin(head);
                head.drain(..rest);
                if head.is_empty() || is_undecided(head) {
                    return;
                }
                let head = std::mem::take(head);
                self.decide(&head);
                self.push(&head, frames);
            }
        }
    }

    pub fn end(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.end(frames),
            Self::Sse(it) => it.end(frames),
            Self::Unknown(head) => {
                let head = std::mem::take(head);
                if !head.is_empty() {
                    self.decide(&head);
                    self.push(&head, frames);
                    self.end(frames);
                }
            }
        }
    }

    fn decide(&mut self, head: &[u8]) {
        *self = if FIELDS.iter().any(|field| head.starts_with(field)) {
            Self::Sse(Sse::default())
        } else {
            Self::Lines(Lines::default())
        };
    }
}

/// Where the first line with something on it begins.
fn begin(head: &[u8]) -> usize {
    let bom = if head.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let blank = head[bom..].iter().take_while(|it| it.is_ascii_whitespace());
    bom + blank.count()
}

/// True while more bytes could make it the name of a field, or the rest of a byte order mark.
fn is_undecided(head: &[u8]) -> bool {
    let could_be = |whole: &[u8]| head.len() < whole.len() && whole.starts_with(head);
    FIELDS.iter().any(|field| could_be(field)) || could_be(b"\xef\xbb\xbf")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &[u8], size: usize) -> Vec<String> {
        let mut either = Either::default();
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Data(data) => String::from_utf8_lossy(data).into_owned(),
                Frame::Oversized { length, .. } => format!("<{length} bytes>"),
            })
        };
        for chunk in text.chunks(size) {
            either.push(chunk, &mut note);
        }
        either.end(&mut note);
        seen
    }

    #[test]
    fn the_first_line_decides_for_any_chunking() {
        let cases: [(&[u8], &[&str]); 7] = [
            (b"{\"a\":1}\n{\"b\":2}", &["{\"a\":1}", "{\"b\":2}"]),
            (b"\n \r\n: hi\n\ndata: {}\n\n", &["{}"]),
            (b"\xef\xbb\xbfevent: x\ndata: {}\n\n", &["{}"]),
            (b"\xef\xbb\xbf{}\n", &["{}"]),
            (b"da", &["da"]),
            (b"dat\nx", &["dat", "x"]),
            (b" \n", &[]),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len() {
                assert_eq!(frames(text, size), expected, "{text:?} in chunks of {size}");
            }
        }
    }
}
