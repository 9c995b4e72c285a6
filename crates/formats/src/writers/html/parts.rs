//! The smaller parts of a page.

use model::{Timestamp, ToolKind};

use super::escape::escape;
use crate::writers::diff::{self, Side};
use crate::writers::labels::{cut, size};
use crate::writers::page_transcript::card::{CardPart, ToolCard};
use crate::writers::page_transcript::{DIFF_CONTEXT, Footer};
use crate::writers::summary::{self, plural};

/// Base64 of one picture that a page carries.
const MAX_PICTURE: usize = 8 * 1024 * 1024;
/// Values up to this length stand beside their name.
const MAX_INLINE: usize = 120;

/// Opens something folded; a glimpse of what is inside stands beside its name.
pub(super) fn fold(class: &str, name: &str, text: Option<&str>, out: &mut Vec<u8>) {
    put!(
        out,
        "<details class=\"",
        class,
        "\">\n<summary><b>",
        escape(name),
        "</b>"
    );
    let line = text.and_then(|it| it.lines().map(str::trim).find(|it| !it.is_empty()));
    if let Some(line) = line {
        let line = cut(line, MAX_INLINE);
        put!(out, " <span dir=\"auto\">", escape(&line), "</span>");
    }
    put!(out, "</summary>\n");
}

/// Text as it is, that scrolls when it is long. A line end after the tag is no part of the text.
pub(super) fn block(class: &str, label: &str, text: &str, out: &mut Vec<u8>) {
    put!(
        out,
        "<pre class=\"",
        class,
        "\" tabindex=\"0\" aria-label=\"",
        label,
        "\">\n"
    );
    put!(out, escape(text.trim_end()), "</pre>\n");
}

pub(super) fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    let is_short = value.len() <= MAX_INLINE && !value.contains('\n');
    if is_short {
        put!(
            out,
            "<p class=\"field\"><b>",
            escape(name),
            "</b> <code dir=\"auto\">"
        );
        put!(out, escape(value), "</code></p>\n");
    } else {
        put!(out, "<p class=\"field\"><b>", escape(name), "</b></p>\n");
        block("plain", "Value", value, out);
    }
}

pub(super) fn lines(old: &str, new: &str, out: &mut Vec<u8>) {
    put!(
        out,
        "<pre class=\"diff\" tabindex=\"0\" aria-label=\"Changes\">\n"
    );
    for (side, line) in diff::lines(old, new, DIFF_CONTEXT) {
        let (open, close) = match side {
            Side::Gap(n) => {
                put!(
                    out,
                    "<span class=\"gap\">… ",
                    plural(n as u64, "equal line"),
                    "\n</span>"
                );
                continue;
            }
            Side::Both => ("<span>  ", "\n</span>"),
            Side::Old => ("<del>- ", "\n</del>"),
            Side::New => ("<ins>+ ", "\n</ins>"),
        };
        put!(out, open, escape(line), close);
    }
    put!(out, "</pre>\n");
}

/// Lines that came and went, if a card is about a change.
pub(super) fn changed(card: &ToolCard<'_>) -> Option<(usize, usize)> {
    let mut counts = None;
    for piece in &card.pieces {
        if let CardPart::Diff { old, new, .. } = piece {
            let (plus, minus) = counts.get_or_insert((0, 0));
            for (side, _) in diff::lines(old.as_deref().unwrap_or_default(), new, 0) {
                match side {
                    Side::Both | Side::Gap(_) => (),
                    Side::Old => *minus += 1,
                    Side::New => *plus += 1,
                }
            }
        }
    }
    counts
}

pub(super) fn plus_minus(plus: usize, minus: usize) -> String {
    match (plus, minus) {
        (plus, 0) => format!("+{plus}"),
        (0, minus) => format!("−{minus}"),
        (plus, minus) => format!("+{plus} −{minus}"),
    }
}

pub(super) fn usage(foot: &Footer<'_>, out: &mut Vec<u8>) {
    let totals = foot.totals;
    let facts = summary::totals(totals.n_runs, totals.duration_ms, totals.cost_usd);
    put!(
        out,
        "<p class=\"sum\">",
        escape(&facts.join(" · ")),
        "</p>\n"
    );
    if totals.rows.is_empty() {
        return;
    }
    put!(
        out,
        "<div class=\"table\"><table>\n<caption class=\"sr\">Tokens by model</caption>\n",
        "<thead><tr><th scope=\"col\">Model</th><th scope=\"col\">Input</th>",
        "<th scope=\"col\">Cached</th><th scope=\"col\">Output</th><th scope=\"col\">Cost</th></tr></thead>\n<tbody>\n"
    );
    for row in &totals.rows {
        let tokens = &row.tokens;
        let input = tokens.input.saturating_add(tokens.cache_write);
        let cost = row.cost_usd.map(summary::dollars).unwrap_or_default();
        put!(
            out,
            "<tr><th scope=\"row\">",
            escape(&row.model),
            "</th><td>"
        );
        put!(
            out,
            summary::count(input),
            "</td><td>",
            summary::count(tokens.cache_read)
        );
        put!(
            out,
            "</td><td>",
            summary::count(tokens.output.unwrap_or_default()),
            "</td><td>"
        );
        put!(out, cost, "</td></tr>\n");
    }
    put!(out, "</tbody>\n</table></div>\n");
}

/// A moment, with the part of it that is of interest.
pub(super) fn time(at: Timestamp, shown: std::ops::Range<usize>, out: &mut Vec<u8>) {
    let whole = at.to_string();
    let part = whole.get(shown).unwrap_or(&whole).replace('T', " ");
    put!(
        out,
        "<time datetime=\"",
        escape(&whole),
        "\">",
        escape(&part),
        " UTC</time>"
    );
}

pub(super) fn of(media_type: &str, data: &str) -> String {
    format!("{media_type}, {}", size(data.len() / 4 * 3))
}

/// True for a picture that a browser shows and does not run.
pub(super) fn is_picture(media_type: &str, data: &str) -> bool {
    let magic = match media_type {
        "image/png" => "iVBORw0KGgo",
        "image/jpeg" => "/9j/",
        "image/gif" => "R0lGOD",
        "image/webp" => "UklGR",
        _ => return false,
    };
    let is_base64 = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    data.starts_with(magic) && data.len() <= MAX_PICTURE && data.bytes().all(is_base64)
}

pub(super) fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Shell => "shell",
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Write => "write",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Fetch => "fetch",
        ToolKind::WebSearch => "web",
        ToolKind::Mcp => "mcp",
        ToolKind::Task => "agent-call",
        ToolKind::Todo => "todo-call",
        ToolKind::Ask => "question",
        ToolKind::Think => "think",
        ToolKind::Mode => "mode",
        ToolKind::Other => "other",
    }
}
