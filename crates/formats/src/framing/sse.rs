//! Server-sent events out of any chunking, as the WHATWG grammar says: lines end in `\n`, `\r\n` or
//! `\r`; comments and unknown fields are ignored. Data lines are joined by a space, not by `\n`: all
//! data read here is JSON, where a line end can only be white space, and a frame is one line.
//!
//! Only the data is handed over: every protocol read here repeats the event name inside it.

use memchr::memchr2;
use model::Frame;

use super::lines::HEAD_KEPT;

/// The largest event that is kept whole; the same reasoning as for a line.
pub const MAX_EVENT: usize = super::MAX_LINE;

/// Cuts bytes into the data of server-sent events.
#[derive(Clone, Debug)]
pub struct Sse {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Bytes of the over-long event seen so far; 0 when there is none.
    skipped: u64,
    /// The last byte was `\r`: a `\n` right after it belongs to the same line end.
    after_cr: bool,
    at_start: bool,
}

impl Default for Sse {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT)
    }
}

impl Sse {
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            skipped: 0,
            after_cr: false,
            at_start: true,
        }
    }

    pub fn push(&mut self, mut chunk: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        while !chunk.is_empty() {
            // A chunk may end between `\r` and `\n`: taken for two line ends they would dispatch
            // too early.
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                self.keep(chunk);
                return;
            };
            let (line, rest) = chunk.split_at(end);
            self.after_cr = rest[0] == b'\r';
            chunk = &rest[1..];
            if !self.line.is_empty() || self.skipped > 0 || self.data.len() + end > self.limit {
                self.keep(line);
                self.end_kept_line(frames);
            } else if rest.starts_with(b"\n\n")
                && !self.has_data
                && !self.at_start
                && let Some(value) = data_of(line)
            {
                // An event of one line, which most are, is handed over where it stands.
                dispatch(value, frames);
                chunk = &rest[2..];
            } else {
                self.end_line(line, frames);
            }
        }
    }

    /// A last event without its blank line still counts.
    pub fn end(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        if !self.line.is_empty() {
            self.end_kept_line(frames);
        }
        self.dispatch(frames);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipped == 0 && self.data.len() + self.line.len() + bytes.len() <= self.limit {
            self.line.extend_from_slice(bytes);
            return;
        }
        if self.skipped == 0 {
            self.skipped = (self.data.len() + self.line.len()) as u64;
            self.data.extend_from_slice(&self.line);
            self.data.truncate(HEAD_KEPT);
            self.data.shrink_to_fit();
            // One byte is kept to know that the line is not blank.
            self.line.truncate(1);
        }
        let room = HEAD_KEPT - self.data.len();
        self.data.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.skipped += bytes.len() as u64;
        // Of a skipped event only this matters: whether a line is blank.
        if self.line.is_empty() {
            self.line.extend_from_slice(&bytes[..bytes.len().min(1)]);
        }
    }

    fn end_kept_line(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        self.end_line(&line, frames);
        line.clear();
        self.line = line;
    }

    fn end_line(&mut self, line: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
        let text = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if text.is_empty() {
            self.dispatch(frames);
        } else if self.skipped == 0
            && let Some(value) = data_of(text)
        {
            if self.has_data {
                self.data.push(b' ');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
    }

    fn dispatch(&mut self, frames: &mut dyn FnMut(Frame<'_>)) {
        if self.skipped > 0 {
            frames(Frame::Oversized {
                length: self.skipped,
                head: &self.data,
            });
        } else {
            dispatch(&self.data, frames);
        }
        self.data.clear();
        self.has_data = false;
        self.skipped = 0;
    }
}

fn dispatch(data: &[u8], frames: &mut dyn FnMut(Frame<'_>)) {
    // By the grammar an event without data is none.
    if !data.trim_ascii().is_empty() {
        frames(Frame::Data(data));
    }
}

/// The value of a `data` field; `None` for any other line.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    match value.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        // By the grammar `data` without a colon is a field with an empty value; `datum` is another
        // field.
        None => value.is_empty().then_some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(limit: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut sse = Sse::with_limit(limit);
        let mut seen = Vec::new();
        let mut note = |frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Data(data) => String::from_utf8_lossy(data).into_owned(),
                Frame::Oversized { length, .. } => format!("<{length} bytes>"),
            })
        };
        for chunk in chunks {
            sse.push(chunk, &mut note);
        }
        sse.end(&mut note);
        seen
    }

    #[test]
    fn the_grammar() {
        let text = b"\xef\xbb\xbf: hello\nevent: x\ndata: {\"a\":\ndata:1}\nid: 7\n\ndata\n\nretry: 5\r\n\r\ndata: b\r\rdatum: no\n\ndata: last";
        assert_eq!(frames(99, &[text]), ["{\"a\": 1}", "b", "last"]);
    }

    #[test]
    fn every_chunking_gives_the_same_events() {
        let text =
            "data: één\r\n\r\ndata: this one is far too long to keep\ndata: really\n\ndata: b\n\n"
                .as_bytes();
        let whole = frames(20, &[text]);
        assert_eq!(whole[0], "één");
        assert_eq!(whole[2], "b");
        for size in 1..text.len() {
            let chunked = frames(20, &text.chunks(size).collect::<Vec<_>>());
            assert_eq!(chunked, whole, "chunks of {size}");
        }
    }

    #[test]
    fn an_event_of_one_line_is_not_copied() {
        let chunk = b"data: one\n\ndata: two\n\n";
        let mut sse = Sse::default();
        // The first line may carry a byte order mark and is looked at more closely.
        sse.push(b"\n", &mut |_| ());
        let mut places = Vec::new();
        sse.push(chunk, &mut |frame| {
            if let Frame::Data(data) = frame {
                places.push(data.as_ptr());
            }
        });
        assert_eq!(places, [&raw const chunk[6], &raw const chunk[17]]);
    }

    #[test]
    fn an_event_as_long_as_the_limit_is_whole_and_one_byte_more_is_not() {
        let text = b"\ndata: 0123\n\ndata: 01234\n\ndata: 0123\ndata:4\n\ndata: 0123\ndata:45\n\n";
        let whole = ["0123", "<11 bytes>", "0123 4", "<11 bytes>"];
        for size in 1..=text.len() {
            let chunked = frames(10, &text.chunks(size).collect::<Vec<_>>());
            assert_eq!(chunked, whole, "chunks of {size}");
        }
    }

    #[test]
    fn the_head_of_a_long_event_is_the_same_however_it_comes() {
        let line = [b"data: ".to_vec(), b"0123456789".repeat(100)].concat();
        let text = [&line[..], b"\ndata: more\n\ndata: next\n\n"].concat();
        for size in [1, 7, 255, 256, 257, 2000] {
            let mut sse = Sse::with_limit(500);
            let mut seen = Vec::new();
            for chunk in text.chunks(size) {
                sse.push(chunk, &mut |frame| match frame {
                    Frame::Data(data) => seen.push((data.len() as u64, data.to_owned())),
                    Frame::Oversized { length, head } => seen.push((length, head.to_owned())),
                });
            }
            let head = line[..HEAD_KEPT].to_vec();
            let expected = [(1016, head), (4, b"next".to_vec())];
            assert_eq!(seen, expected, "chunks of {size}");
        }
    }

    #[test]
    fn crlf_ends_one_line_and_not_two() {
        let text = b"data: one\r\ndata: two\r\n\r\ndata: three\r\n\r\n";
        for size in 1..text.len() {
            let frames = frames(99, &text.chunks(size).collect::<Vec<_>>());
            assert_eq!(frames, ["one two", "three"], "chunks of {size}");
        }
    }
}
