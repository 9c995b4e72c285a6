//! Tool calls for people: a headline, the change or the command, and the beginning of what came back.

use anstyle::Style;
use model::{ItemId, Losses, Status, Subagent, Text, Tool};

use super::TextLayout;
use super::page::{BOLD, BlockKind, CYAN, DIM, GREEN, PLAIN, RED, SafeText, TerminalPage, YELLOW};
use crate::writers::content::{ResultPart, blocks};
use crate::writers::diff::{self, Side};
use crate::writers::labels::{compact, label_and_target, size, unwrapped};
use crate::writers::page_transcript::card::CardOutcome;
use crate::writers::transcript::Place;

/// Lines of output that are shown; a person who wants more has the recording.
pub(super) const MAX_LINES: usize = 12;
const MAX_DIFF_LINES: usize = 20;
/// Lines of context on each side of a change.
const DIFF_CONTEXT: usize = 2;
/// Longer lines are cut: minified files and base64 would fill the screen.
const MAX_COLUMNS: usize = 240;
/// Commands are what a reader looks for, so they get more room.
const MAX_COMMAND: usize = 1000;

/// The indentation of what belongs to a headline.
const UNDER: &str = "    ";

/// How a call ended.
pub(super) struct CallEnd {
    pub(super) status: Status,
    pub(super) exit_code: Option<i32>,
    /// How long it took, unless the headline shows it.
    pub(super) took: Option<String>,
}

impl TextLayout {
    /// Writes the headline of a call, and what it is about to change.
    pub(super) fn announce(
        &mut self,
        tool: &Tool<'_>,
        took: Option<String>,
        place: &mut Place<'_>,
    ) {
        self.headline(tool, took, CYAN, place);
        self.change(tool, place.out);
    }

    /// Names the call again, because other things were written since it was announced.
    pub(super) fn remind(&mut self, tool: &Tool<'_>, took: Option<String>, place: &mut Place<'_>) {
        self.headline(tool, took, DIM, place);
    }

    /// Writes how a call ended under its headline.
    pub(super) fn ending(&mut self, end: &CallEnd, text: &str, out: &mut Vec<u8>) {
        let (status, took) = (end.status, &end.took);
        let exit_code = end.exit_code.filter(|code| *code != 0);
        // Claude Code repeats the exit code in the text of the result.
        let repeated = exit_code.map(|code| format!("Exit code {code}"));
        let text = repeated
            .and_then(|repeated| text.strip_prefix(&*repeated))
            .unwrap_or(text);
        let text = match status == Status::Ok {
            true => text,
            false => unwrapped(text.trim()),
        };
        let (head, n_more) = beginning(text.trim_matches('\n').trim_end());
        let safe = SafeText::from(head);
        let (style, sign) = match status {
            Status::Ok => (YELLOW, ""),
            Status::Error => (RED, "✗ "),
            Status::Denied | Status::Cancelled => (YELLOW, "⊘ "),
            Status::Lost => (YELLOW, "? "),
        };
        let after = took.as_ref().map(|it| format!(" after {it}"));
        let after = after.unwrap_or_default();
        let mark = CardOutcome::of(status, exit_code).label();
        let mark = mark.map(|it| format!("{sign}{it}{after}"));
        let mut rows = Rows::new(&self.page, out);
        match (mark, safe.as_str()) {
            (None, "") => {
                let took = took.as_ref().map(|it| format!(" · {it}"));
                rows.row(DIM, format!("(no output){}", took.unwrap_or_default()));
            }
            (None, _) => {
                if let Some(took) = took {
                    rows.row(DIM, &**took);
                }
                rows.lines(&safe, n_more, &mut self.losses);
            }
            (Some(mark), "") => rows.row(style, mark),
            (Some(mark), line) if !line.contains('\n') && line.len() < MAX_COLUMNS => {
                rows.row(style, format!("{mark}: {line}"));
            }
            (Some(mark), _) => {
                rows.row(style, mark);
                rows.lines(&safe, n_more, &mut self.losses);
            }
        }
    }

    /// Writes an agent that was still running when its call ended.
    pub(super) fn agent(&mut self, agent: &Subagent<'_>, status: Status, place: &mut Place<'_>) {
        self.page.begin(call_block(&agent.call), place);
        let about = agent.description.as_ref().or(agent.prompt.as_ref());
        let about = about.map(Text::to_str).unwrap_or_default();
        let name = match self.page.agent_name(&agent.call) {
            Some(name) => name.to_owned(),
            None => {
                let first = about.lines().next().unwrap_or_default();
                format!("{}  {first}", agent.name)
            }
        };
        self.page.start("", place.out);
        self.page.put(CYAN, "● ", place.out);
        let name = SafeText::from(name);
        self.page.put(BOLD, name.cut(MAX_COLUMNS), place.out);
        self.page.end_line(place.out);
        let report = agent.report.as_ref().map(Text::to_str).unwrap_or_default();
        let end = CallEnd {
            status,
            exit_code: None,
            took: None,
        };
        self.ending(&end, &report, place.out);
    }

    /// Text under a line of ours.
    pub(super) fn note(&mut self, text: &str, out: &mut Vec<u8>) {
        let (head, n_more) = beginning(text.trim());
        Rows::new(&self.page, out).lines(&SafeText::from(head), n_more, &mut self.losses);
    }

    /// Text behind a mark; the lines after the first are indented.
    pub(super) fn marked(&mut self, mark: &str, style: Style, text: &str, out: &mut Vec<u8>) {
        let safe = SafeText::from(format!("{mark}{}", text.trim()));
        for (n, line) in safe.lines().take(MAX_LINES).enumerate() {
            self.page
                .line(if n == 0 { "" } else { "  " }, style, line, out);
        }
        let n_more = safe.lines().count().saturating_sub(MAX_LINES);
        self.more_lines("  ", n_more, "cut text", out);
    }

    /// Why a run ended: the first line, and the last of a long rest, because programs that crash
    /// print the cause last.
    pub(super) fn reason(&mut self, style: Style, text: &str, out: &mut Vec<u8>) {
        let safe = SafeText::from(text.trim());
        let n = safe.lines().count();
        let n_left_out = match n > MAX_LINES {
            // Two lines are taken: the first of all, and the one about what is missing.
            true => n - 1 - (MAX_LINES - 2),
            false => 0,
        };
        for (n, line) in safe.lines().enumerate() {
            match n {
                0 => self.page.line("", style, line, out),
                1 if n_left_out > 0 => {
                    self.losses.count("cut text");
                    let text = format!("… {n_left_out} lines left out");
                    self.page.line("  ", DIM, text, out);
                }
                _ if n <= n_left_out => (),
                _ => self.page.line("  ", style, line, out),
            }
        }
    }

    fn headline(
        &mut self,
        tool: &Tool<'_>,
        took: Option<String>,
        bullet: Style,
        place: &mut Place<'_>,
    ) {
        self.page.begin(call_block(&tool.id), place);
        let (name, about) = label_and_target(tool);
        let (name_style, style) = match bullet == DIM {
            true => (DIM, DIM),
            false => (BOLD, PLAIN),
        };
        self.page.start("", place.out);
        self.page.put(bullet, "● ", place.out);
        self.page.put(name_style, name, place.out);
        let about = about.unwrap_or_default();
        let safe = SafeText::from(about.trim());
        let mut lines = safe.lines();
        if let Some(first) = lines.next().filter(|it| !it.as_str().is_empty()) {
            self.page.put(PLAIN, "  ", place.out);
            self.page
                .put(style, first.cut_counted(MAX_COMMAND), place.out);
        }
        if let Some(took) = took {
            self.page.put(DIM, format!(" · {took}"), place.out);
        }
        self.page.end_line(place.out);
        for line in lines.by_ref().take(MAX_LINES) {
            self.page
                .line(UNDER, style, line.cut_counted(MAX_COMMAND), place.out);
        }
        self.more_lines(UNDER, lines.count(), "cut tool input", place.out);
    }

    fn change(&mut self, tool: &Tool<'_>, out: &mut Vec<u8>) {
        let mut shown = 0;
        let mut more = 0;
        for it in &tool.class.diffs {
            let old = it.old.as_ref().map(Text::to_str).unwrap_or_default();
            let new = it.new.to_str();
            for (side, line) in diff::lines(&old, &new, DIFF_CONTEXT) {
                let (sign, style) = match side {
                    Side::Gap(_) => continue,
                    Side::Both => (' ', DIM),
                    Side::Old => ('-', RED),
                    Side::New => ('+', GREEN),
                };
                if shown == MAX_DIFF_LINES {
                    more += 1;
                    continue;
                }
                shown += 1;
                let text = SafeText::from(format!("{sign} {line}"));
                self.page.line(UNDER, style, text.cut(MAX_COLUMNS), out);
            }
        }
        self.more_lines(UNDER, more, "cut diff", out);
    }

    /// Says how many lines are left out, and counts that as a loss.
    fn more_lines(&mut self, indent: &str, n: usize, loss: &'static str, out: &mut Vec<u8>) {
        if n > 0 {
            self.losses.count(loss);
            self.page.line(indent, DIM, format!("… +{n} lines"), out);
        }
    }
}

pub(super) fn call_block(call: &ItemId<'_>) -> BlockKind {
    BlockKind::Call(call.clone().into_owned())
}

/// True when a successful call needs no more than its headline.
pub(super) fn speaks_for_itself(tool: &Tool<'_>) -> bool {
    !tool.class.diffs.is_empty()
}

/// What came back, as text; pictures are named.
pub(super) fn result_text(tool: &Tool<'_>, losses: &mut Losses) -> String {
    let Some(result) = &tool.result else {
        return String::new();
    };
    let blocks = blocks(&result.content).into_iter();
    let parts = blocks.map(|block| match block {
        ResultPart::Text(text) => text.to_str().into_owned(),
        ResultPart::Image { media_type, data } => {
            losses.count("image");
            format!("[{media_type}, {}]", size(data.len_bound() / 4 * 3))
        }
        ResultPart::ImageUrl(url) => format!("[image {url}]"),
        ResultPart::Other(raw) => compact(&raw),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The lines that are shown of an output, and how many more there are.
fn beginning(text: &str) -> (&str, usize) {
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let Some(end) = ends.nth(MAX_LINES - 1) else {
        return (text, 0);
    };
    match 1 + ends.count() {
        // One line more takes no more room than the note about it.
        1 => (text, 0),
        n_more => (&text[..end], n_more),
    }
}

/// Lines under a headline, the first of them behind a corner.
struct Rows<'a> {
    page: &'a TerminalPage,
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Rows<'a> {
    fn new(page: &'a TerminalPage, out: &'a mut Vec<u8>) -> Self {
        Self {
            page,
            out,
            is_first: true,
        }
    }

    fn row<'t>(&mut self, style: Style, text: impl Into<SafeText<'t>>) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if !is_first {
            return self.page.line(UNDER, style, text, self.out);
        }
        self.page.start("  ", self.out);
        self.page.put(DIM, "⎿ ", self.out);
        self.page.put(style, text, self.out);
        self.page.end_line(self.out);
    }

    fn lines(&mut self, text: &SafeText<'_>, n_more: usize, losses: &mut Losses) {
        for line in text.lines() {
            self.row(DIM, line.cut(MAX_COLUMNS));
        }
        if n_more > 0 {
            losses.count("cut tool output");
            self.row(DIM, format!("… +{n_more} lines"));
        }
    }
}
