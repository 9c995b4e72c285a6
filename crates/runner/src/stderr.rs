//! An agent's stderr: lines to forward, at a readable rate, and the tail of the output for the
//! error message when the agent fails. Bytes and the time in, lines out; the caller owns the pipe.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::secrets::Secrets;

/// A longer line is cut; it is no message to a person.
const MAX_LINE: usize = 8 << 10;

/// Large enough for a long stack trace at the end.
const MAX_TAIL: usize = 64 << 10;

/// So many lines pass at once, and then one in each interval.
const BURST: u32 = 50;
const INTERVAL: Duration = Duration::from_millis(50);

/// A line of stderr, or a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StderrEvent {
    Line(String),
    /// So many lines came too fast.
    Dropped(u64),
}

#[derive(Debug)]
pub struct Stderr {
    line: Vec<u8>,
    is_cut: bool,
    tail: VecDeque<u8>,
    has_lost_head: bool,
    /// Each line passed moves it on by an interval; it may be ahead of the clock by a burst.
    paid_until: Instant,
    n_left_out: u64,
    secrets: Secrets,
}

impl Stderr {
    pub fn new(now: Instant) -> Self {
        Self {
            line: Vec::new(),
            is_cut: false,
            tail: VecDeque::new(),
            has_lost_head: false,
            paid_until: now,
            n_left_out: 0,
            secrets: Secrets::default(),
        }
    }

    /// Repeats none of these.
    pub(crate) fn without(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Appends the lines that these bytes complete.
    pub fn feed(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<StderrEvent>) {
        // All of it, also the lines that come too fast to be shown: they may explain the failure.
        self.remember(bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = MAX_LINE - self.line.len();
            self.is_cut |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if is_whole {
                self.end_line(now, out);
            }
        }
    }

    /// The pipe has ended: what has no newline is a line too.
    pub fn end(&mut self, now: Instant, out: &mut Vec<StderrEvent>) {
        self.end_line(now, out);
        self.report_dropped(out);
    }

    /// The last of it, from the beginning of a line on.
    pub fn tail(&self) -> String {
        let mut bytes: Vec<u8> = self.tail.iter().copied().collect();
        let mut is_cut = self.has_lost_head;
        if is_cut && let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            // The rest of a line that has lost its beginning would mislead.
            bytes.drain(..=end);
            is_cut = false;
        }
        // Before the secrets: a sequence in the middle of one would hide it.
        let tail = without_colours(&String::from_utf8_lossy(&bytes));
        let mut tail = self.secrets.redact(&tail).into_owned();
        if is_cut {
            self.secrets.trim_start(&mut tail);
        }
        tail
    }

    fn remember(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(MAX_TAIL)..];
        let n_over = (self.tail.len() + kept.len()).saturating_sub(MAX_TAIL);
        self.has_lost_head |= n_over > 0 || kept.len() < bytes.len();
        self.tail.drain(..n_over);
        self.tail.extend(kept);
    }

    fn end_line(&mut self, now: Instant, out: &mut Vec<StderrEvent>) {
        let line = String::from_utf8_lossy(&self.line);
        // Before the secrets: a sequence in the middle of one would hide it.
        let line = without_colours(line.trim_end());
        let mut line = self.secrets.redact(&line).into_owned();
        if self.is_cut {
            self.secrets.trim_end(&mut line);
            line.push('…');
        }
        self.line.clear();
        self.is_cut = false;
        if line.is_empty() {
            return;
        }
        let paid_until = self.paid_until.max(now) + INTERVAL;
        // A token bucket that needs no timer: time that has passed pays for the lines.
        if paid_until > now + INTERVAL * BURST {
            self.n_left_out += 1;
            return;
        }
        self.paid_until = paid_until;
        self.report_dropped(out);
        out.push(StderrEvent::Line(line));
    }

    fn report_dropped(&mut self, out: &mut Vec<StderrEvent>) {
        if self.n_left_out > 0 {
            out.push(StderrEvent::Dropped(self.n_left_out));
            self.n_left_out = 0;
        }
    }
}

/// Agents print colours even without a terminal. Other sequences are left to the writers.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split("\x1b[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let is_parameter = |it: char| it.is_ascii_digit() || matches!(it, ';' | ':');
        match piece.trim_start_matches(is_parameter).strip_prefix('m') {
            Some(rest) => plain.push_str(rest),
            None => {
                plain.push_str("\x1b[");
                plain.push_str(piece);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out_and_nothing_else() {
        let text = "\x1b[93m\x1b[1m! \x1b[0mno \x1b[2Jway\x1b[";
        assert_eq!(without_colours(text), "! no \x1b[2Jway\x1b[");
        assert_eq!(without_colours(""), "");
    }

    fn lines(chunks: &[&[u8]]) -> Vec<StderrEvent> {
        let now = Instant::now();
        let (mut stderr, mut out) = (Stderr::new(now), Vec::new());
        for chunk in chunks {
            stderr.feed(chunk, now, &mut out);
        }
        stderr.end(now, &mut out);
        out
    }

    fn line(text: &str) -> StderrEvent {
        StderrEvent::Line(text.to_owned())
    }

    #[test]
    fn lines_are_the_same_whatever_the_chunks() {
        let text = "one\r\n\n  two \u{fc}\nthree".as_bytes();
        let expected = [line("one"), line("  two \u{fc}"), line("three")];
        assert_eq!(lines(&[text]), expected);
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(&single), expected);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_is_whole() {
        let long = vec![b'x'; MAX_LINE + 1];
        let cut = format!("{}…", "x".repeat(MAX_LINE));
        assert_eq!(
            lines(&[&long, &long, b"\nnext\n"]),
            [line(&cut), line("next")]
        );
        let fits = &long[1..];
        assert_eq!(lines(&[fits, b"\n"]), [line(&"x".repeat(MAX_LINE))]);
    }

    #[test]
    fn a_flood_is_left_out_and_counted_once() {
        let start = Instant::now();
        let (mut stderr, mut out) = (Stderr::new(start), Vec::new());
        for _ in 0..1000 {
            stderr.feed(b"odd\n", start, &mut out);
        }
        let mut expected = vec![line("odd"); 50];
        assert_eq!(out, expected);
        for _ in 0..100 {
            stderr.feed(b"later\n", start + Duration::from_secs(1), &mut out);
        }
        expected.push(StderrEvent::Dropped(950));
        expected.extend(vec![line("later"); 20]);
        assert_eq!(out, expected);
        stderr.end(start + Duration::from_secs(1), &mut out);
        expected.push(StderrEvent::Dropped(80));
        assert_eq!(out, expected);
    }

    #[test]
    fn no_secret_is_repeated_however_it_is_cut() {
        let now = Instant::now();
        let secret = "sk-0123456789abcdef";
        let secrets = Secrets::of([("API_KEY".into(), secret.into())]);
        let (mut stderr, mut out) = (Stderr::new(now).without(secrets.clone()), Vec::new());
        stderr.feed(b"bad key \x1b[1msk-01234567", now, &mut out);
        stderr.feed(b"89abcdef\x1b[0m, sorry\n", now, &mut out);
        assert_eq!(out, [line("bad key [redacted], sorry")]);
        assert_eq!(stderr.tail(), "bad key [redacted], sorry\n");
        for before in MAX_LINE - secret.len()..MAX_LINE - 3 {
            let (mut stderr, mut out) = (Stderr::new(now).without(secrets.clone()), Vec::new());
            let text = format!("{}{secret}{}", ".".repeat(before), "y".repeat(MAX_TAIL - 9));
            stderr.feed(text.as_bytes(), now, &mut out);
            stderr.end(now, &mut out);
            assert_eq!(out, [line(&format!("{}[redacted]…", ".".repeat(before)))]);
            assert!(stderr.tail().starts_with("[redacted]yyy"), "{before}");
        }
    }

    #[test]
    fn the_tail_is_bounded_and_begins_with_a_line() {
        let now = Instant::now();
        let (mut stderr, mut out) = (Stderr::new(now), Vec::new());
        stderr.feed(b"first\n", now, &mut out);
        assert_eq!(stderr.tail(), "first\n");
        for _ in 0..100_000 {
            stderr.feed(b"0123456\n", now, &mut out);
        }
        assert_eq!(stderr.tail(), "0123456\n".repeat(MAX_TAIL / 8 - 1));
        stderr.feed(&[b'y'; MAX_TAIL * 2], now, &mut out);
        assert_eq!(stderr.tail(), "y".repeat(MAX_TAIL));
    }
}
