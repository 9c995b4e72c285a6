//! Bytes to frames: bounded lines and server-sent events, and text that is safe to parse.

mod clean;
mod lines;
mod sse;

pub use clean::{Cleaned, Repair, clean};
pub use lines::{HEAD_KEPT, Lines, MAX_LINE};
pub use sse::{MAX_EVENT, Sse};

use model::Frame;

/// How a server-sent event stream can begin.
const FIELDS: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];

/// How the frames of a format are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Lines,
    /// Server-sent events or plain lines of the same data; the first bytes tell.
    Either,
}

/// Cuts bytes into frames.
#[derive(Clone, Debug)]
pub enum Framer {
    /// Too few bytes to tell; holds no more than the longest field name.
    Undecided(Vec<u8>),
    Lines(Lines),
    Sse(Sse),
}

impl Default for Framer {
    fn default() -> Self {
        Self::Undecided(Vec::new())
    }
}

impl Framer {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Lines => Self::Lines(Lines::default()),
            Framing::Either => Self::default(),
        }
    }

    /// Takes the next bytes and hands over every frame they complete.
    pub fn push(&mut self, chunk: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.push(chunk, frames),
            Self::Sse(it) => it.push(chunk, frames),
            Self::Undecided(head) => {
                head.extend_from_slice(chunk);
                let rest = begin(head);
                head.drain(..rest);
                // `da` may become `data:` or a line of text: the choice cannot be taken back once
                // frames are out.
                if head.is_empty() || is_undecided(head) {
                    return;
                }
                let head = std::mem::take(head);
                self.decide(&head);
                self.push(&head, frames);
            }
        }
    }

    /// No more bytes come: hands over a last frame that had no end.
    pub fn end(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        match self {
            Self::Lines(it) => it.end(frames),
            Self::Sse(it) => it.end(frames),
            Self::Undecided(head) => {
                let head = std::mem::take(head);
                if !head.is_empty() {
                    // The input was shorter than a field's name: it is decided by what there is.
                    self.decide(&head);
                    self.push(&head, frames);
                    self.end(frames);
                }
            }
        }
    }

    fn decide(&mut self, head: &[u8]) {
        // Lines of JSON begin with `{` or `[`, so a field's name cannot be the beginning of one.
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
        let mut framer = Framer::default();
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Data(data) => String::from_utf8_lossy(data).into_owned(),
                Frame::Oversized { length, .. } => format!("<{length} bytes>"),
            })
        };
        for chunk in text.chunks(size) {
            framer.push(chunk, &mut note);
        }
        framer.end(&mut note);
        seen
    }

    #[test]
    fn a_format_of_lines_never_takes_them_for_fields() {
        let mut framer = Framer::new(Framing::Lines);
        let mut seen = Vec::new();
        framer.push(b"data: x\n\n", &mut |frame| {
            if let Frame::Data(data) = frame {
                seen.push(data.to_owned());
            }
        });
        assert_eq!(seen, [b"data: x"]);
    }

    #[test]
    fn no_byte_waits_longer_than_it_must() {
        let mut framer = Framer::default();
        let mut n = 0;
        framer.push(b"{}\n", &mut |_| n += 1);
        assert_eq!(n, 1, "a short line is handed over with its end");
        let is_decided = |head: &[u8]| {
            let mut framer = Framer::default();
            framer.push(head, &mut |_| ());
            !matches!(framer, Framer::Undecided(_))
        };
        for field in FIELDS {
            assert!(is_decided(field), "{field:?} is whole");
        }
        for head in [
            &b"d"[..],
            b"dat",
            b"retr",
            b"\xef\xbb",
            b"\xef\xbb\xbf",
            b" ",
        ] {
            assert!(!is_decided(head), "{head:?} may become a field");
        }
        assert!(is_decided(b"x"));
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
