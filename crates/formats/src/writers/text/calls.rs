//! Tool calls for people: a headline, the change or the command, and the beginning of what came back.

use anstyle::Style;
use model::{ItemId, Losses, Status, Subagent, Text, Tool};

use super::page::{
    BOLD, BlockKind, CYAN, DIM, GREEN, Indent, PLAIN, RED, SafeText, TerminalPage, YELLOW,
};
use crate::writers::content::{ResultPart, blocks};
use crate::writers::diff::{self, Side};
use crate::writers::labels::{compact, label_and_target, size, unwrapped};
use crate::writers::page_transcript::card::CardOutcome;

/// Lines of output that are shown; a person who wants more has the recording.
pub(super) const MAX_LINES: usize = 12;
const MAX_DIFF_LINES: usize = 20;
/// Lines of context on each side of a change.
const DIFF_CONTEXT: usize = 2;
/// Longer lines are cut: minified files and base64 would fill the screen.
const MAX_COLUMNS: usize = 240;
/// Commands are what a reader looks for, so they get more room.
const MAX_COMMAND: usize = 1000;

const UNDER: Indent = Indent("    ");

/// Writes the headline of a call, and what it is about to change.
pub(super) fn announce(
    tool: &Tool<'_>,
    took: Option<String>,
    path: &[ItemId<'_>],
    page: &mut TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    page.begin(BlockKind::Call(tool.id.clone().into_owned()), path, out);
    headline(tool, took, CYAN, page, losses, out);
    change(tool, page, losses, out);
}

/// Says again which call is meant, because other things were written since.
pub(super) fn remind(
    tool: &Tool<'_>,
    took: Option<String>,
    path: &[ItemId<'_>],
    page: &mut TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    page.begin(BlockKind::Call(tool.id.clone().into_owned()), path, out);
    headline(tool, took, DIM, page, losses, out);
}

/// How a call ended.
pub(super) struct CallEnd {
    pub(super) status: Status,
    pub(super) exit_code: Option<i32>,
    /// How long it took, unless the headline says so.
    pub(super) took: Option<String>,
}

/// Writes how a call ended under its headline.
pub(super) fn ending(
    end: &CallEnd,
    text: &str,
    page: &TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    let CallEnd {
        status,
        exit_code,
        took,
    } = end;
    let (status, exit_code) = (*status, exit_code.filter(|code| *code != 0));
    // The agent says the exit code in words, too.
    let said = exit_code.map(|code| format!("Exit code {code}"));
    let text = said
        .and_then(|said| text.strip_prefix(&*said))
        .unwrap_or(text);
    let text = if status == Status::Ok {
        text
    } else {
        unwrapped(text.trim())
    };
    let (head, n_more) = beginning(text.trim_matches('\n').trim_end());
    let safe = SafeText::new(head);
    let (style, sign) = match status {
        Status::Ok => (YELLOW, ""),
        Status::Error => (RED, "✗ "),
        Status::Denied | Status::Cancelled => (YELLOW, "⊘ "),
        Status::Lost => (YELLOW, "? "),
    };
    let after = took.as_ref().map(|it| format!(" after {it}"));
    let after = after.unwrap_or_default();
    let mark = CardOutcome::of(status, exit_code).label();
    let mark = mark.map(|it| (style, format!("{sign}{it}{after}")));
    let mut rows = Rows::new(page, out);
    match (mark, safe.as_str()) {
        (None, "") => {
            let took = took.as_ref().map(|it| format!(" · {it}"));
            let text = format!("(no output){}", took.unwrap_or_default());
            rows.row(DIM, &SafeText::new(&text));
        }
        (None, _) => {
            if let Some(took) = took {
                rows.row(DIM, &SafeText::new(took));
            }
            write_lines(&safe, n_more, &mut rows, losses);
        }
        (Some((style, mark)), "") => rows.row(style, &SafeText::new(&mark)),
        (Some((style, mark)), line) if !line.contains('\n') && line.len() < MAX_COLUMNS => {
            rows.row(style, &SafeText::new(&format!("{mark}: {line}")));
        }
        (Some((style, mark)), _) => {
            rows.row(style, &SafeText::new(&mark));
            write_lines(&safe, n_more, &mut rows, losses);
        }
    }
}

/// Tells of an agent that went on after its call had ended.
pub(super) fn agent(
    agent: &Subagent<'_>,
    status: Status,
    path: &[ItemId<'_>],
    page: &mut TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    page.begin(BlockKind::Call(agent.call.clone().into_owned()), path, out);
    let about = agent.description.as_ref().or(agent.prompt.as_ref());
    let about = about.map(Text::to_str).unwrap_or_default();
    let name = match page.agent_name(&agent.call) {
        Some(name) => name.to_owned(),
        None => format!(
            "{}  {}",
            agent.name,
            about.lines().next().unwrap_or_default()
        ),
    };
    page.start(Indent(""), out);
    page.put(CYAN, &SafeText::new("● "), out);
    page.put(BOLD, &SafeText::new(&name).cut(MAX_COLUMNS), out);
    page.end_line(out);
    let report = agent.report.as_ref().map(Text::to_str).unwrap_or_default();
    let end = CallEnd {
        status,
        exit_code: None,
        took: None,
    };
    ending(&end, &report, page, losses, out);
}

/// Text under a line of ours.
pub(super) fn note(text: &str, page: &TerminalPage, losses: &mut Losses, out: &mut Vec<u8>) {
    let (head, n_more) = beginning(text.trim());
    let mut rows = Rows::new(page, out);
    write_lines(&SafeText::new(head), n_more, &mut rows, losses);
}

/// Text behind a mark; the lines after the first are indented.
pub(super) fn marked(
    mark: &str,
    style: Style,
    text: &str,
    page: &TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    let text = format!("{mark}{}", text.trim());
    let safe = SafeText::new(&text);
    for (n, line) in safe.lines().take(MAX_LINES).enumerate() {
        let indent = Indent(if n == 0 { "" } else { "  " });
        page.line(indent, style, &line, out);
    }
    let n = safe.lines().count();
    if n > MAX_LINES {
        losses.count("cut text");
        let text = format!("… +{} lines", n - MAX_LINES);
        page.line(Indent("  "), DIM, &SafeText::new(&text), out);
    }
}

/// Why a run ended: the first line, and the last of a long rest, because programs that crash say
/// what is wrong at the end.
pub(super) fn reason(
    style: Style,
    text: &str,
    page: &TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    let safe = SafeText::new(text.trim());
    let n = safe.lines().count();
    let n_left_out = if n > MAX_LINES {
        // One line says what stands first, another that some are missing.
        n - 1 - (MAX_LINES - 2)
    } else {
        0
    };
    for (n, line) in safe.lines().enumerate() {
        match n {
            0 => page.line(Indent(""), style, &line, out),
            1 if n_left_out > 0 => {
                losses.count("cut text");
                let text = format!("… {n_left_out} lines left out");
                page.line(Indent("  "), DIM, &SafeText::new(&text), out);
            }
            _ if n <= n_left_out => (),
            _ => page.line(Indent("  "), style, &line, out),
        }
    }
}

/// True when the headline of a successful call says everything.
pub(super) fn speaks_for_itself(tool: &Tool<'_>) -> bool {
    !tool.class.diffs.is_empty()
}

/// What came back, as text; pictures are named.
pub(super) fn result_text(tool: &Tool<'_>, losses: &mut Losses) -> String {
    let Some(result) = &tool.result else {
        return String::new();
    };
    let parts = blocks(&result.content)
        .into_iter()
        .map(|block| match block {
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

fn headline(
    tool: &Tool<'_>,
    took: Option<String>,
    bullet: Style,
    page: &TerminalPage,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) {
    let (name, about) = label_and_target(tool);
    page.start(Indent(""), out);
    page.put(bullet, &SafeText::new("● "), out);
    let style = if bullet == DIM { DIM } else { BOLD };
    page.put(style, &SafeText::new(&name), out);
    let about = about.unwrap_or_default();
    let safe = SafeText::new(about.trim());
    let mut lines = safe.lines();
    if let Some(first) = lines.next().filter(|it| !it.as_str().is_empty()) {
        let style = if bullet == DIM { DIM } else { PLAIN };
        page.put(PLAIN, &SafeText::new("  "), out);
        page.put(style, &first.cut_counted(MAX_COMMAND), out);
    }
    if let Some(took) = took {
        page.put(DIM, &SafeText::new(&format!(" · {took}")), out);
    }
    page.end_line(out);
    let n_more = safe.lines().skip(1).count();
    for line in lines.take(MAX_LINES) {
        page.line(
            UNDER,
            style_of_more(bullet),
            &line.cut_counted(MAX_COMMAND),
            out,
        );
    }
    if n_more > MAX_LINES {
        losses.count("cut tool input");
        let text = format!("… +{} lines", n_more - MAX_LINES);
        page.line(UNDER, DIM, &SafeText::new(&text), out);
    }
}

fn style_of_more(bullet: Style) -> Style {
    if bullet == DIM { DIM } else { PLAIN }
}

fn change(tool: &Tool<'_>, page: &TerminalPage, losses: &mut Losses, out: &mut Vec<u8>) {
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
            let text = format!("{sign} {line}");
            page.line(UNDER, style, &SafeText::new(&text).cut(MAX_COLUMNS), out);
        }
    }
    if more > 0 {
        losses.count("cut diff");
        page.line(UNDER, DIM, &SafeText::new(&format!("… +{more} lines")), out);
    }
}

/// The lines that are shown of an output, and how many more there are.
fn beginning(text: &str) -> (&str, usize) {
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let Some(end) = ends.nth(MAX_LINES - 1) else {
        return (text, 0);
    };
    let n_more = 1 + ends.count();
    // One line more takes no more room than to say that there is one.
    if n_more == 1 {
        (text, 0)
    } else {
        (&text[..end], n_more)
    }
}

fn write_lines(text: &SafeText<'_>, n_more: usize, rows: &mut Rows<'_>, losses: &mut Losses) {
    for line in text.lines() {
        rows.row(DIM, &line.cut(MAX_COLUMNS));
    }
    if n_more > 0 {
        losses.count("cut tool output");
        rows.row(DIM, &SafeText::new(&format!("… +{n_more} lines")));
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

    fn row(&mut self, style: Style, text: &SafeText<'_>) {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if !is_first {
            return self.page.line(UNDER, style, text, self.out);
        }
        self.page.start(Indent("  "), self.out);
        self.page.put(DIM, &SafeText::new("⎿ "), self.out);
        self.page.put(style, text, self.out);
        self.page.end_line(self.out);
    }
}
