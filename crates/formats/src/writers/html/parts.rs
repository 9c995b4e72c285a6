//! The smaller parts of a page.

use std::borrow::Cow;

use model::{Timestamp, ToolKind};

use crate::display_safe;
use crate::writers::diff::{self, Side};
use crate::writers::labels::{cut, size};
use crate::writers::page_transcript::card::{CardPart, ToolCard};
use crate::writers::page_transcript::{DIFF_CONTEXT, Footer};
use crate::writers::summary::{self, plural};

/// Base64 of one picture that a page carries.
const MAX_PICTURE: usize = 8 * 1024 * 1024;
/// Values up to this length stand beside their name.
const MAX_INLINE: usize = 120;

/// The same text without a character that HTML, or a terminal it is copied to, would obey.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let safe = display_safe(text);
    if !safe.contains(['&', '<', '>', '"', '\'']) {
        return safe;
    }
    let mut escaped = String::with_capacity(safe.len() + safe.len() / 8);
    for it in safe.chars() {
        match it {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(it),
        }
    }
    Cow::Owned(escaped)
}

/// Opens something folded; a glimpse of what is inside stands beside its name.
pub(super) fn fold(class: &str, name: &str, text: Option<&str>, out: &mut Vec<u8>) {
    let name = escape(name);
    put!(out, "<details class=\"{class}\">\n<summary><b>{name}</b>");
    let line = text.and_then(|it| it.lines().map(str::trim).find(|it| !it.is_empty()));
    if let Some(line) = line {
        let line = cut(line, MAX_INLINE);
        put!(out, " <span dir=\"auto\">{}</span>", escape(&line));
    }
    put!(out, "</summary>\n");
}

/// A text behind its name and its first line.
pub(super) fn folded_text(name: &str, text: &str, out: &mut Vec<u8>) {
    fold("aside", name, Some(text), out);
    block("plain", "Text", text, out);
    put!(out, "</details>\n");
}

/// A text that is no Markdown.
pub(super) fn article(class: &str, label: &str, text: &str, out: &mut Vec<u8>) {
    put!(
        out,
        "<article class=\"{class}\" aria-label=\"{label}\" dir=\"auto\">"
    );
    put!(out, "{}</article>\n", escape(text.trim()));
}

/// Text as it is, that scrolls when it is long. A line end after the tag is no part of the text.
pub(super) fn block(class: &str, label: &str, text: &str, out: &mut Vec<u8>) {
    put!(
        out,
        "<pre class=\"{class}\" tabindex=\"0\" aria-label=\"{label}\">\n"
    );
    put!(out, "{}</pre>\n", escape(text.trim_end()));
}

pub(super) fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    let is_short = value.len() <= MAX_INLINE && !value.contains('\n');
    put!(out, "<p class=\"field\"><b>{}</b>", escape(name));
    if is_short {
        put!(out, " <code dir=\"auto\">{}</code></p>\n", escape(value));
    } else {
        put!(out, "</p>\n");
        block("plain", "Value", value, out);
    }
}

pub(super) fn lines(old: &str, new: &str, out: &mut Vec<u8>) {
    put!(
        out,
        "<pre class=\"diff\" tabindex=\"0\" aria-label=\"Changes\">\n"
    );
    for (side, line) in diff::lines(old, new, DIFF_CONTEXT) {
        let line = escape(line);
        match side {
            Side::Gap(n) => {
                let lines = plural(n as u64, "equal line");
                put!(out, "<span class=\"gap\">… {lines}\n</span>");
            }
            Side::Both => put!(out, "<span>  {line}\n</span>"),
            Side::Old => put!(out, "<del>- {line}\n</del>"),
            Side::New => put!(out, "<ins>+ {line}\n</ins>"),
        }
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
    put!(out, "<p class=\"sum\">{}</p>\n", escape(&facts.join(" · ")));
    if totals.rows.is_empty() {
        return;
    }
    put!(out, "<div class=\"table\"><table>\n");
    put!(
        out,
        "<caption class=\"sr\">Tokens by model</caption>\n<thead><tr>"
    );
    for column in ["Model", "Input", "Cached", "Output", "Cost"] {
        put!(out, "<th scope=\"col\">{column}</th>");
    }
    put!(out, "</tr></thead>\n<tbody>\n");
    for row in &totals.rows {
        put!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.model));
        for cell in row.cells() {
            put!(out, "<td>{cell}</td>");
        }
        put!(out, "</tr>\n");
    }
    put!(out, "</tbody>\n</table></div>\n");
}

/// A moment, with the part of it that is of interest.
pub(super) fn time(at: Timestamp, shown: std::ops::Range<usize>, out: &mut Vec<u8>) {
    let whole = at.to_string();
    let part = whole.get(shown).unwrap_or(&whole).replace('T', " ");
    put!(
        out,
        "<time datetime=\"{}\">{} UTC</time>",
        escape(&whole),
        escape(&part)
    );
}

pub(super) fn of(media_type: &str, data: &str) -> String {
    format!("{media_type}, {}", size(data.len() / 4 * 3))
}

/// True for a picture that a browser shows and does not run.
pub(super) fn is_picture(media_type: &str, data: &str) -> bool {
    // The type is only what the agent says: the data has to begin like one, too.
    let magic = match media_type {
        "image/png" => "iVBORw0KGgo",
        "image/jpeg" => "/9j/",
        "image/gif" => "R0lGOD",
        "image/webp" => "UklGR",
        // SVG may hold scripts.
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
