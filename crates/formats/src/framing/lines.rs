//! Lines out of any chunking: `\n` or `\r\n`, a last line without an end, a BOM at the start.
//!
//! A line inside one chunk is handed over without being copied. A line past the limit is skipped to
//! its end and handed over once, as its length and beginning, so that memory stays bounded.

use memchr::memchr;
use model::Frame;

/// The longest line that is kept whole. Agents print a tool result as one line, and half a megabyte
/// of file contents is common; a line a hundred times that is a broken producer.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// How much of an over-long line is kept for the notice about it.
pub const HEAD_KEPT: usize = 256;

/// Room kept for the next line that comes in pieces.
const ROOM_KEPT: usize = 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Cuts bytes into lines; blank lines are no frames.
#[derive(Clone, Debug)]
pub struct Lines {
    limit: usize,
    /// The beginning of a line whose end has not come yet; of an over-long one only its head.
    buf: Vec<u8>,
    /// Bytes of the over-long line seen so far; 0 when there is none.
    skipped: u64,
    at_start: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_limit(MAX_LINE)
    }
}

impl Lines {
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            buf: Vec::new(),
            skipped: 0,
            at_start: true,
        }
    }

    pub fn push(&mut self, mut chunk: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.buf.is_empty() && self.skipped == 0 && line.len() <= self.limit {
                Self::line(&mut self.at_start, line, frames);
            } else {
                self.keep(line);
                self.flush(frames);
            }
            chunk = rest;
        }
        self.keep(chunk);
    }

    pub fn end(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        self.flush(frames);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let length = self.buf.len() + bytes.len();
        if self.skipped == 0 && length <= self.limit {
            self.buf.extend_from_slice(bytes);
            return;
        }
        if self.skipped == 0 {
            self.skipped = self.buf.len() as u64;
            self.buf.truncate(HEAD_KEPT);
            // Of up to 64 MiB only the head is needed: the room is given back at once.
            self.buf.shrink_to_fit();
        }
        let room = HEAD_KEPT - self.buf.len();
        self.buf.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.skipped += bytes.len() as u64;
    }

    fn flush(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        if self.skipped > 0 {
            frames(Frame::Oversized {
                length: self.skipped,
                head: &self.buf,
            });
            self.skipped = 0;
            // If the over-long line was the first one, a later byte order mark is text.
            self.at_start = false;
        } else {
            Self::line(&mut self.at_start, &self.buf, frames);
        }
        self.buf.clear();
        // A giant is rare: its room is not kept for the next.
        self.buf.shrink_to(ROOM_KEPT);
    }

    fn line(at_start: &mut bool, line: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        let line = if std::mem::take(at_start) {
            line.strip_prefix(BOM).unwrap_or(line)
        } else {
            line
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.trim_ascii().is_empty() {
            frames(Frame::Data(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(limit: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::with_limit(limit);
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Data(data) => String::from_utf8_lossy(data).into_owned(),
                Frame::Oversized { length, head } => {
                    format!("<{length} bytes: {}>", String::from_utf8_lossy(head))
                }
            })
        };
        for chunk in chunks {
            lines.push(chunk, &mut note);
        }
        lines.end(&mut note);
        seen
    }

    #[test]
    fn crlf_blank_lines_bom_and_a_last_line_without_an_end() {
        assert_eq!(
            frames(99, &[b"\xef\xbb\xbfone\r\n\n  \r\ntwo\nthree"]),
            ["one", "two", "three"]
        );
    }

    #[test]
    fn every_chunking_gives_the_same_lines() {
        let text = b"\xef\xbb\xbfalpha\r\nbeta is far too long\ngamma\n";
        let whole = frames(10, &[text]);
        assert_eq!(
            whole,
            ["alpha", "<20 bytes: beta is far too long>", "gamma"]
        );
        for size in 1..text.len() {
            assert_eq!(
                frames(10, &text.chunks(size).collect::<Vec<_>>()),
                whole,
                "chunks of {size}"
            );
        }
    }

    #[test]
    fn a_line_inside_one_chunk_is_not_copied() {
        let chunk = b"one\ntwo\n";
        let mut lines = Lines::default();
        let mut places = Vec::new();
        lines.push(chunk, &mut |frame| {
            if let Frame::Data(data) = frame {
                places.push(data.as_ptr());
            }
        });
        assert_eq!(places, [&raw const chunk[0], &raw const chunk[4]]);
    }

    #[test]
    fn the_head_of_a_long_line_is_the_same_however_it_comes() {
        let text = [b"0123456789".repeat(100), b"\n".to_vec()].concat();
        let head = String::from_utf8(text[..HEAD_KEPT].to_vec()).unwrap();
        for size in [1, 7, 255, 256, 257, 1001] {
            let chunks: Vec<_> = text.chunks(size).collect();
            let expected = [format!("<1000 bytes: {head}>")];
            assert_eq!(frames(500, &chunks), expected, "chunks of {size}");
        }
    }

    #[test]
    fn the_room_of_a_giant_is_given_back() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; 4 * ROOM_KEPT], &mut |_| ());
        assert!(lines.buf.capacity() >= 4 * ROOM_KEPT);
        lines.push(b"\n", &mut |_| ());
        assert!(lines.buf.capacity() <= ROOM_KEPT);
    }

    #[test]
    fn an_endless_line_keeps_only_its_head() {
        let mut lines = Lines::with_limit(1024);
        for _ in 0..100_000 {
            lines.push(&[b'x'; 1000], &mut |_| ());
        }
        assert_eq!(lines.buf.len(), HEAD_KEPT);
        let mut seen = Vec::new();
        lines.push(b"\nnext\n", &mut |frame| {
            if let Frame::Data(data) = frame {
                seen.extend_from_slice(data);
            }
        });
        assert_eq!(seen, b"next");
    }

    #[test]
    fn a_line_as_long_as_the_limit_is_whole_and_one_byte_more_is_not() {
        let text = b"0123456789\n0123456789a\n0123456789";
        let whole = ["0123456789", "<11 bytes: 0123456789a>", "0123456789"];
        for size in 1..=text.len() {
            let frames = frames(10, &text.chunks(size).collect::<Vec<_>>());
            assert_eq!(frames, whole, "chunks of {size}");
        }
    }
}
