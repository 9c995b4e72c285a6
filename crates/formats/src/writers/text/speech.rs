//! Running text: what people and models write, piece by piece or all at once, with the same result.
//!
//! White space is held back until something visible follows it. So a text ends where its last word
//! ends, and a CR is never parted from its LF by the border between two pieces.

use anstyle::Style;
use model::ItemId;

use super::page::{BlockKind, DIM, SafeText, TerminalPage};
use crate::writers::transcript::Place;

/// How a kind of speech looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpeechStyle {
    /// A line of its own before the text.
    pub(super) heading: Option<&'static str>,
    /// What the first line begins with.
    pub(super) mark: &'static str,
    /// What every other line begins with.
    pub(super) indent: &'static str,
    pub(super) style: Style,
    /// Lines to show of it; more are only counted.
    pub(super) max_lines: usize,
}

/// A text that is being written.
#[derive(Clone, Debug)]
pub(super) struct Speech {
    voice: SpeechStyle,
    path: Vec<ItemId<'static>>,
    held: String,
    has_begun: bool,
    n_lines: usize,
}

impl Speech {
    pub(super) fn new(voice: SpeechStyle, path: &[ItemId<'static>]) -> Self {
        Self {
            voice,
            path: path.to_vec(),
            held: String::new(),
            has_begun: false,
            n_lines: 0,
        }
    }

    /// Something of it is on the page.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn push(&mut self, text: &str, page: &mut TerminalPage, out: &mut Vec<u8>) {
        let end = text.trim_end().len();
        if end == 0 {
            self.held.push_str(text);
            return;
        }
        let mut piece = std::mem::take(&mut self.held);
        self.held.push_str(&text[end..]);
        piece.push_str(&text[..end]);
        page.stand_at(&self.path);
        let safe = SafeText::from(&*piece);
        // White space at the end of the piece is held back, so the last line needs no trimming either.
        for (n, line) in safe.lines().enumerate() {
            let line = line.trim_end();
            if n == 0 && self.has_begun {
                // The piece continues where the last one ended.
                self.put(line, page, out);
            } else {
                self.next_line(line, page, out);
            }
        }
    }

    /// Ends the last line; true when lines were left out.
    pub(super) fn finish(self, page: &mut TerminalPage, out: &mut Vec<u8>) -> bool {
        if !self.has_begun {
            return false;
        }
        page.stand_at(&self.path);
        page.end_line(out);
        let more = self.n_lines.saturating_sub(self.voice.max_lines);
        if more > 0 {
            page.line(self.voice.indent, DIM, format!("… +{more} lines"), out);
        }
        more > 0
    }

    fn next_line(&mut self, line: SafeText<'_>, page: &mut TerminalPage, out: &mut Vec<u8>) {
        let is_blank = line.as_str().trim().is_empty();
        if !self.has_begun && is_blank {
            return;
        }
        self.n_lines += 1;
        if self.n_lines > self.voice.max_lines {
            return;
        }
        if self.has_begun {
            page.end_line(out);
            page.start(self.voice.indent, out);
        } else {
            self.begin(page, out);
        }
        self.put(line, page, out);
    }

    fn begin(&mut self, page: &mut TerminalPage, out: &mut Vec<u8>) {
        self.has_begun = true;
        let path = &self.path;
        page.begin(BlockKind::Text, &mut Place { path, out });
        if let Some(heading) = self.voice.heading {
            page.line("", self.voice.style, heading, out);
            page.start(self.voice.indent, out);
        } else {
            page.start("", out);
        }
        page.put(self.voice.style, self.voice.mark, out);
    }

    fn put(&self, text: SafeText<'_>, page: &TerminalPage, out: &mut Vec<u8>) {
        if self.n_lines <= self.voice.max_lines {
            page.put(self.voice.style, text, out);
        }
    }
}
