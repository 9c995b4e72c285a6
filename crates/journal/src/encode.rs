//! An event as the line that is stored.
//!
//! An event of many megabytes is first measured and then written once: into memory of exactly its length, or,
//! when it is too long for the log, with its long strings shortened on the way. Its whole line never exists
//! beside the shortened one, and no buffer grows to twice what it holds.

use std::cell::Cell;
use std::io;

use model::{Body, Event, Raw, cut_mark, escape_line_breaks};
use serde::Serialize as _;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

use crate::line::{Line, Splitter};
use crate::truncate::Truncate;

/// Lines up to this are written at the first try.
const MAX_DIRECT: usize = 1 << 20;
/// Bytes kept of each string of an event that is too long.
const MAX_STRING: usize = 8 << 20;
/// Bytes of an item that is not closed yet. `item.closed` repeats it whole, so a second long copy would only
/// cost space, and the agent's reader holds a third one meanwhile.
const MAX_OPEN: usize = 8 << 20;
/// Bytes kept of each string of one that is longer.
const MAX_OPEN_STRING: usize = 64 << 10;

/// A line, and how many bytes of the event it lacks.
pub(crate) struct Encoded {
    pub(crate) line: Line,
    pub(crate) n_cut: u64,
}

/// The event as it is.
pub(crate) fn whole(event: &Event<'_>) -> serde_json::Result<Encoded> {
    Ok(finished(serde_json::to_vec(event)?, 0))
}

/// The event in at most `room` bytes, as far as shortening its strings can do that.
pub(crate) fn fitted(event: &Event<'_>, room: usize) -> serde_json::Result<Encoded> {
    let mut measured = Measured::default();
    serde_json::to_writer(&mut measured, event)?;
    let length = measured.length;
    // Most lines are short, and were kept while they were measured.
    if length <= MAX_DIRECT.min(room) {
        return Ok(finished(measured.start, 0));
    }
    // Its buffer would be held while the line is written a second time.
    drop(measured);
    match event.body {
        Body::ItemOpened(_) | Body::ItemUpdated(_) if length > MAX_OPEN => {
            shortened(event, MAX_OPEN_STRING, room)
        }
        _ if length > room => shortened(event, MAX_STRING, room),
        _ => match shared_input(event) {
            Some(input) => {
                let mut splitter = Splitter::new(input);
                serde_json::to_writer(&mut splitter, event)?;
                let line = splitter.finish();
                Ok(Encoded { line, n_cut: 0 })
            }
            None => {
                let mut line = Vec::with_capacity(length);
                serde_json::to_writer(&mut line, event)?;
                Ok(finished(line, 0))
            }
        },
    }
}

/// The input of an ask, which is kept in memory until the ask is answered.
fn shared_input(event: &Event<'_>) -> Option<Raw<'static>> {
    match &event.body {
        Body::AskOpened(ask) => ask.input.as_ref()?.shared(),
        _ => None,
    }
}

/// Shortens strings to `limit`, and to less while the line is still too long.
fn shortened(event: &Event<'_>, mut limit: usize, room: usize) -> serde_json::Result<Encoded> {
    loop {
        let n_cut = Cell::new(0);
        let mut line = Vec::new();
        let formatter = Shortening {
            cut: Truncate::above(limit),
            n_cut: &n_cut,
            is_key: false,
            n_kept: 0,
            n_missing: 0,
        };
        event.serialize(&mut Serializer::with_formatter(&mut line, formatter))?;
        if line.len() <= room || limit <= Truncate::SMALLEST {
            return Ok(finished(line, n_cut.get()));
        }
        // Each round serializes the event again: large steps keep that to a few rounds.
        limit /= 8;
    }
}

/// It is served as it is stored.
fn finished(mut line: Vec<u8>, n_cut: u64) -> Encoded {
    escape_line_breaks(&mut line, 0);
    let line = line.into();
    Encoded { line, n_cut }
}

/// Counts the written bytes, and keeps them while they are few.
#[derive(Default)]
struct Measured {
    length: usize,
    start: Vec<u8>,
}

impl io::Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        match self.length <= MAX_DIRECT {
            true => self.start.extend_from_slice(bytes),
            // Not `clear`, which would keep the memory.
            false => self.start = Vec::new(),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes compact JSON with long strings shortened, as [`Truncate`] does it; keys stay whole.
struct Shortening<'c> {
    cut: Truncate,
    n_cut: &'c Cell<u64>,
    is_key: bool,
    /// Of the string that is being written.
    n_kept: usize,
    n_missing: usize,
}

impl Shortening<'_> {
    /// How many of the next bytes of a string are kept; `boundary` is the last place where they can be cut.
    fn keep(&mut self, length: usize, boundary: impl FnOnce(usize) -> usize) -> usize {
        let room = self.cut.limit() - self.n_kept;
        let kept = match (self.is_key, self.n_missing) {
            (true, _) => return length,
            (false, 0) if length <= room => length,
            (false, 0) => boundary(room),
            // Everything after the first missing byte is missing too.
            (false, _) => 0,
        };
        self.n_kept += kept;
        self.n_missing += length - kept;
        kept
    }
}

impl Formatter for Shortening<'_> {
    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.is_key = true;
        CompactFormatter.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.is_key = false;
        CompactFormatter.end_object_key(writer)
    }

    fn begin_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        (self.n_kept, self.n_missing) = (0, 0);
        writer.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let kept = self.keep(fragment.len(), |room| fragment.floor_char_boundary(room));
        writer.write_all(&fragment.as_bytes()[..kept])
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        // As they are written: `\u0000` takes six bytes, `\n` two.
        let length = match &escape {
            CharEscape::AsciiControl(_) => 6,
            _ => 2,
        };
        // An escape stays whole or goes: half of one is no JSON.
        match self.keep(length, |_| 0) {
            0 => Ok(()),
            _ => CompactFormatter.write_char_escape(writer, escape),
        }
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.n_missing > 0 {
            writer.write_all(cut_mark(self.n_missing).as_bytes())?;
            self.n_cut.set(self.n_cut.get() + self.n_missing as u64);
        }
        writer.write_all(b"\"")
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // The strings in raw JSON do not pass through the methods above.
        let (json, n_cut) = self.cut.json(fragment.as_bytes());
        self.n_cut.set(self.n_cut.get() + n_cut);
        writer.write_all(&json)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use model::{Ask, AskId, AskKind, Level, Notice, Origin, SessionId, Text};

    use super::*;

    fn event<'a>(text: Text<'a>, detail: Raw<'a>) -> Event<'a> {
        let notice = Notice {
            level: Level::Info,
            code: Cow::Borrowed("long"),
            text,
            item: None,
            detail: Some(detail),
        };
        Event {
            seq: 1,
            at: None,
            session: SessionId::new("s"),
            run: None,
            engine: Cow::Borrowed("e"),
            path: Cow::Borrowed(&[]),
            origin: Origin::Agent,
            frame: None,
            native: None,
            why: None,
            extra: Cow::Borrowed(&[]),
            body: Body::NoticeRaised(notice),
        }
    }

    /// The line with strings of at most 1024 bytes, and how much it lacks.
    fn cut(event: &Event<'_>) -> (String, u64) {
        let encoded = shortened(event, Truncate::SMALLEST, usize::MAX).unwrap();
        (
            String::from_utf8(encoded.line.bytes().to_vec()).unwrap(),
            encoded.n_cut,
        )
    }

    #[test]
    fn an_event_is_shortened_as_its_line_would_be() {
        let key = "k".repeat(2000);
        let values = ["é\n".repeat(1000), "\u{1}".repeat(500), "€".repeat(1024)];
        for value in values {
            let detail = Raw::parse(format!(r#"{{"{key}":["{value}"]}}"#).replace('\n', "\\n"));
            let event = event(Text::new(value), detail);
            let line = serde_json::to_vec(&event).unwrap();
            let (expected, n_cut) = Truncate::above(Truncate::SMALLEST).line(&line.into());
            let expected = String::from_utf8(expected.to_vec()).unwrap();
            assert_eq!(cut(&event), (expected, n_cut));
        }
    }

    #[test]
    fn strings_are_shortened_until_the_event_fits() {
        let values: Vec<String> = (0..40).map(|_| "x".repeat(100_000)).collect();
        let event = event(Text::EMPTY, Raw::of(&values));
        let encoded = fitted(&event, 1 << 20).unwrap();
        let line = String::from_utf8(encoded.line.bytes().to_vec()).unwrap();
        assert!(line.len() <= 1 << 20, "{}", line.len());
        assert_eq!(line.matches(" bytes cut]").count(), 40);
        assert!(Event::from_json(&line).is_ok());
        let whole = fitted(&event, usize::MAX).unwrap();
        let is_whole = whole.line.bytes() == serde_json::to_vec(&event).unwrap();
        assert!(is_whole && whole.n_cut == 0);
    }

    /// A giant input exists once until it is stored, and is stored like any other.
    #[test]
    fn a_giant_ask_shares_its_input_with_its_line() {
        let text = "a\u{2028}b".repeat(MAX_DIRECT);
        let input = Raw::of(&[&text]);
        let ask = Ask {
            id: AskId::new("q"),
            kind: AskKind::Permission,
            item: None,
            tool: Cow::Borrowed("Write"),
            title: Text::new("c\u{2028}d"),
            description: None,
            input: Some(input.clone()),
            suggestions: Some(Raw::of(&["e\u{2028}f"])),
            deadline: None,
        };
        let mut event = event(Text::EMPTY, Raw::of(&0));
        event.body = Body::AskOpened(ask);
        let encoded = fitted(&event, usize::MAX).unwrap();
        let Line::Split { value, .. } = &encoded.line else {
            panic!("{} bytes of it are another copy", encoded.line.len());
        };
        assert!(std::ptr::eq(value.get(), input.get()));
        assert_eq!(encoded.line.bytes(), whole(&event).unwrap().line.bytes());
    }
}
