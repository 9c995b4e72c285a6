//! A transcript as one web page that needs nothing else: no script, no font, no request.
//!
//! Everything foreign passes [`escape`], which also makes control characters and bidirectional
//! overrides visible. Answers are rendered from Markdown by [`prose`], in which HTML is text. The
//! policy in the header forbids whatever might still slip through: it allows the one style sheet
//! by its hash, and pictures that the page itself carries.

mod escape;
mod prose;

use model::{Cause, Decision, Level, Outcome, Plan, PlanStatus, Timestamp, ToolKind};

use self::escape::escape;
use super::diff::{self, Side};
use super::facts::{self, plural};
use super::story::card::{Card, Ending, Piece};
use super::story::{DIFF_CONTEXT, Foot, Head, Markup, Picture, Shown, Turn, TurnEnd, Voice};
use super::words::size;

const STYLE: &str = include_str!("html/page.css");
/// The SHA-256 of [`STYLE`]; a test keeps them together.
const STYLE_HASH: &str = "pEqdUSNTKf8RnFIgNVFWgtBJZIkLIhIIFiBSjJBqg/M=";
/// Base64 of one picture that a page carries.
const MAX_PICTURE: usize = 8 * 1024 * 1024;
/// Values up to this length stand beside their name.
const MAX_INLINE: usize = 120;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Html;

impl Markup for Html {
    const MAX_SHOWN: usize = 256 * 1024;

    fn head(&self, head: &Head<'_>, out: &mut Vec<u8>) {
        let title = escape(head.title);
        put!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-",
            STYLE_HASH,
            "'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"referrer\" content=\"no-referrer\">\n",
            "<meta name=\"generator\" content=\"linkspan\">\n",
            "<title>",
            title,
            "</title>\n<style>",
            STYLE,
            "</style>\n</head>\n<body>\n<header class=\"top\">\n",
        );
        if let Some(session) = head.session {
            put!(
                out,
                "<p class=\"agent\">",
                escape(&session.agent()),
                "</p>\n"
            );
        }
        put!(out, "<h1 dir=\"auto\">", title, "</h1>\n<dl>\n");
        let fact = |name: &str, value: Option<&str>, out: &mut Vec<u8>| {
            if let Some(value) = value.filter(|it| !it.is_empty()) {
                put!(
                    out,
                    "<div><dt>",
                    name,
                    "</dt><dd>",
                    escape(value),
                    "</dd></div>\n"
                );
            }
        };
        if let Some(session) = head.session {
            fact("Model", session.model.as_deref(), out);
            fact("Folder", session.cwd.as_deref(), out);
            fact("Mode", session.mode.as_deref(), out);
        }
        if let Some(at) = head.at {
            put!(out, "<div><dt>Date</dt><dd>");
            time(at, 0..16, out);
            put!(out, "</dd></div>\n");
        }
        put!(out, "</dl>\n</header>\n<main>\n");
    }

    fn turn(&self, turn: &Turn, out: &mut Vec<u8>) {
        let n = turn.n.to_string();
        put!(
            out,
            "<section class=\"turn\" id=\"turn-",
            n,
            "\" aria-label=\"Turn ",
            n,
            "\">\n<h2><a href=\"#turn-",
            n,
            "\">Turn ",
            n,
            "</a>",
        );
        if let Some(at) = turn.at {
            put!(out, " ");
            time(at, 11..16, out);
        }
        put!(out, "</h2>\n");
        match turn.cause {
            Cause::Prompt => (),
            Cause::WakeUp => self.notice(Level::Info, "woken by background work", out),
        }
    }

    fn turn_end(&self, end: &TurnEnd<'_>, out: &mut Vec<u8>) {
        let class = match end.outcome {
            Outcome::Completed => "good",
            Outcome::Failed | Outcome::Limit => "bad",
            Outcome::Aborted | Outcome::Refused | Outcome::Lost => "odd",
        };
        put!(
            out,
            "<footer class=\"end ",
            class,
            "\">\n<p><b>",
            escape(end.verdict),
            "</b>"
        );
        for fact in end.facts {
            put!(out, " <span>", escape(fact), "</span>");
        }
        put!(out, "</p>\n");
        if let Some(reason) = end.reason {
            put!(out, "<p class=\"why\">", escape(reason.trim()), "</p>\n");
        }
        put!(out, "</footer>\n</section>\n");
    }

    fn foot(&self, foot: &Foot<'_>, out: &mut Vec<u8>) {
        put!(out, "</main>\n<footer class=\"bottom\">\n");
        usage(foot, out);
        if let Some(session) = foot.session.filter(|it| !it.native.is_empty()) {
            let id = escape(&session.native);
            put!(out, "<p>Session <code>", id, "</code></p>\n");
        }
        if let Some(resume) = foot.resume {
            put!(out, "<p>Go on with <code>", escape(resume), "</code></p>\n");
        }
        put!(
            out,
            "<p class=\"made\">Made with linkspan.</p>\n</footer>\n</body>\n</html>\n"
        );
    }

    fn words(&self, voice: Voice, text: &str, out: &mut Vec<u8>) {
        match voice {
            Voice::Prompt => {
                put!(
                    out,
                    "<article class=\"prompt\" aria-label=\"Prompt\" dir=\"auto\">"
                );
                put!(out, escape(text.trim()), "</article>\n");
            }
            Voice::Answer => {
                put!(
                    out,
                    "<article class=\"prose\" aria-label=\"Answer\" dir=\"auto\">\n"
                );
                prose::render(text, out);
                put!(out, "</article>\n");
            }
            Voice::Thought => {
                fold("aside thought", "Thinking", Some(text), out);
                put!(out, "<div class=\"prose\" dir=\"auto\">\n");
                prose::render(text, out);
                put!(out, "</div>\n</details>\n");
            }
            Voice::Task => {
                put!(
                    out,
                    "<article class=\"task\" aria-label=\"Task\" dir=\"auto\">"
                );
                put!(out, escape(text.trim()), "</article>\n");
            }
            Voice::Harness => {
                fold("aside", "The agent’s program said", Some(text), out);
                block("plain", "Text", text, out);
                put!(out, "</details>\n");
            }
        }
    }

    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>) {
        put!(out, "<p class=\"picture\">");
        match *picture {
            Picture::Data { media_type, data } if is_picture(media_type, data) => put!(
                out,
                "<img alt=\"Picture, ",
                escape(&of(media_type, data)),
                "\" src=\"data:",
                media_type,
                ";base64,",
                data,
                "\">"
            ),
            Picture::Data { media_type, data } => {
                put!(out, "[", escape(&of(media_type, data)), "]");
            }
            Picture::Url(url) => {
                put!(out, "Picture: ");
                prose::link(url, out);
            }
        }
        put!(out, "</p>\n");
    }

    fn card(&self, card: &Card<'_>, out: &mut Vec<u8>) {
        let class = match card.ending {
            Ending::Ok | Ending::Open | Ending::Background => "",
            Ending::Failed(_) => " bad",
            Ending::Exit(_) | Ending::Denied | Ending::Cancelled | Ending::Lost => " odd",
        };
        put!(
            out,
            "<details class=\"card ",
            kind(card.kind),
            class,
            "\">\n<summary>"
        );
        put!(out, "<i></i><b>", escape(&card.name), "</b>");
        if let Some(about) = &card.about {
            put!(out, " <code dir=\"auto\">", escape(about), "</code>");
        }
        if let Some((plus, minus)) = changed(card) {
            put!(
                out,
                " <span class=\"n\">",
                plus_minus(plus, minus),
                "</span>"
            );
        }
        if let Some(word) = card.ending.word() {
            put!(out, " <span class=\"how\">", escape(&word), "</span>");
        }
        put!(out, "</summary>\n<div class=\"body\">\n");
        for piece in &card.pieces {
            self.piece(piece, out);
        }
        put!(out, "</div>\n</details>\n");
    }

    fn plan(&self, plan: &Plan<'_>, shown: Shown, out: &mut Vec<u8>) {
        let n_done = plan.entries.iter();
        let n_done = n_done
            .filter(|it| it.status == PlanStatus::Completed)
            .count();
        let count = format!("{n_done}/{}", plan.entries.len());
        match shown {
            Shown::Whole => put!(
                out,
                "<section class=\"plan\" aria-label=\"Plan\">\n<h3>Plan <span>",
                count,
                "</span></h3>\n"
            ),
            Shown::Folded => {
                let doing = plan.entries.iter();
                let doing = doing.filter(|it| it.status == PlanStatus::InProgress);
                let doing = doing.map(|it| it.text.to_str()).next();
                fold("aside", &format!("Plan {count}"), doing.as_deref(), out);
            }
        }
        put!(out, "<ul class=\"todo\">\n");
        for entry in &plan.entries {
            let (class, word) = match entry.status {
                PlanStatus::Pending => ("", "to do"),
                PlanStatus::InProgress => (" class=\"doing\"", "in progress"),
                PlanStatus::Completed => (" class=\"done\"", "done"),
            };
            let text = entry.text.to_str();
            put!(out, "<li", class, "><span class=\"sr\">", word, ": </span>");
            put!(out, escape(&text), "</li>\n");
        }
        put!(out, "</ul>\n");
        put!(
            out,
            match shown {
                Shown::Whole => "</section>\n",
                Shown::Folded => "</details>\n",
            }
        );
    }

    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>) {
        let (class, role, word) = match level {
            Level::Debug | Level::Info => ("info", "", ""),
            Level::Warning => ("warning", " role=\"note\"", "<b>Warning</b> "),
            Level::Error => ("error", " role=\"note\"", "<b>Error</b> "),
        };
        put!(out, "<p class=\"notice ", class, "\"", role, ">", word);
        put!(out, escape(text.trim()), "</p>\n");
    }

    fn aside(&self, name: &str, text: &str, out: &mut Vec<u8>) {
        if text.trim().is_empty() {
            return self.notice(Level::Info, name, out);
        }
        fold("aside", name, Some(text), out);
        block("plain", "Text", text, out);
        put!(out, "</details>\n");
    }

    fn ask(&self, question: &str, decision: Decision, answer: &str, out: &mut Vec<u8>) {
        let class = match decision {
            Decision::Allowed | Decision::AllowedAlways => "good",
            Decision::Denied => "bad",
            Decision::Withdrawn | Decision::Lost => "odd",
        };
        put!(
            out,
            "<article class=\"ask ",
            class,
            "\" aria-label=\"Question\">\n<p>"
        );
        put!(
            out,
            escape(question.trim()),
            "</p>\n<p><b>",
            escape(answer),
            "</b></p>\n</article>\n"
        );
    }
}

impl Html {
    fn piece(&self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        match piece {
            Piece::Command(text) => block("command", "Command", text, out),
            Piece::Field { name, value } => field(name, value, out),
            Piece::Diff { path, old, new } => {
                put!(
                    out,
                    "<p class=\"path\"><code dir=\"auto\">",
                    escape(path),
                    "</code></p>\n"
                );
                lines(old.as_deref().unwrap_or_default(), new, out);
            }
            Piece::Decision(text) => {
                put!(out, "<p class=\"decision\">", escape(text), "</p>\n");
            }
            Piece::Inside(bytes) => {
                put!(out, "<section class=\"inside\" aria-label=\"Sub-agent\">\n");
                out.extend_from_slice(bytes);
                put!(out, "</section>\n");
            }
            Piece::Output(text) => block("output", "Output", text, out),
            Piece::HandedBack(text) => {
                fold("aside", "Handed back", Some(text), out);
                block("plain", "Text", text, out);
                put!(out, "</details>\n");
            }
            Piece::Report(text) => {
                put!(out, "<div class=\"prose report\" dir=\"auto\">\n");
                prose::render(text, out);
                put!(out, "</div>\n");
            }
            Piece::Image { media_type, data } => {
                self.picture(&Picture::Data { media_type, data }, out);
            }
            Piece::ImageUrl(url) => self.picture(&Picture::Url(url), out),
            Piece::Cut(note) => put!(out, "<p class=\"cut\">… ", escape(note), "</p>\n"),
            Piece::Nothing => put!(out, "<p class=\"cut\">no output</p>\n"),
        }
    }
}

/// Opens something folded; a glimpse of what is inside stands beside its name.
fn fold(class: &str, name: &str, text: Option<&str>, out: &mut Vec<u8>) {
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
        let line = super::words::cut(line, MAX_INLINE);
        put!(out, " <span dir=\"auto\">", escape(&line), "</span>");
    }
    put!(out, "</summary>\n");
}

/// Text as it is, that scrolls when it is long. A line end after the tag is no part of the text.
fn block(class: &str, label: &str, text: &str, out: &mut Vec<u8>) {
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

fn field(name: &str, value: &str, out: &mut Vec<u8>) {
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

fn lines(old: &str, new: &str, out: &mut Vec<u8>) {
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
fn changed(card: &Card<'_>) -> Option<(usize, usize)> {
    let mut counts = None;
    for piece in &card.pieces {
        if let Piece::Diff { old, new, .. } = piece {
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

fn plus_minus(plus: usize, minus: usize) -> String {
    match (plus, minus) {
        (plus, 0) => format!("+{plus}"),
        (0, minus) => format!("−{minus}"),
        (plus, minus) => format!("+{plus} −{minus}"),
    }
}

fn usage(foot: &Foot<'_>, out: &mut Vec<u8>) {
    let totals = foot.totals;
    let facts = facts::totals(totals.n_runs, totals.duration_ms, totals.cost_usd);
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
        let cost = row.cost_usd.map(facts::dollars).unwrap_or_default();
        put!(
            out,
            "<tr><th scope=\"row\">",
            escape(&row.model),
            "</th><td>"
        );
        put!(
            out,
            facts::count(input),
            "</td><td>",
            facts::count(tokens.cache_read)
        );
        put!(
            out,
            "</td><td>",
            facts::count(tokens.output.unwrap_or_default()),
            "</td><td>"
        );
        put!(out, cost, "</td></tr>\n");
    }
    put!(out, "</tbody>\n</table></div>\n");
}

/// A moment, with the part of it that is of interest.
fn time(at: Timestamp, shown: std::ops::Range<usize>, out: &mut Vec<u8>) {
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

fn of(media_type: &str, data: &str) -> String {
    format!("{media_type}, {}", size(data.len() / 4 * 3))
}

/// True for a picture that a browser shows and does not run.
fn is_picture(media_type: &str, data: &str) -> bool {
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

fn kind(kind: ToolKind) -> &'static str {
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

#[cfg(test)]
mod tests;
