//! A transcript as Markdown, for a repository, an issue or a note.
//!
//! Answers are Markdown already and stay as they are, apart from what would reach beyond them:
//! HTML is made text, and an open fence is closed ([`prose`]). Everything else is text: in a fence
//! that is longer than any in it, or escaped. Calls, thoughts and long asides are folded with
//! `<details>`, the only HTML besides `<summary>`, `<b>`, `<code>` and comments that mark ends.

mod escape;
mod prose;

use model::{Decision, Level, Plan, PlanStatus, ToolKind};

use self::escape::{inline, plain};
use super::diff::{self, Side};
use super::labels::{cut, size};
use super::page_transcript::card::{CardOutcome, CardPart, ToolCard};
use super::page_transcript::{DIFF_CONTEXT, Footer, PageHeader, Renderer, progress};
use super::sources::SourceLink;
use super::summary;
use super::transcript::{Author, Picture, PlanDisplay, RunEnd, RunStart};

/// Values up to this length stand beside their name.
const MAX_INLINE: usize = 120;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Markdown;

impl Renderer for Markdown {
    const MAX_SHOWN: usize = 32 * 1024;

    fn head(&self, head: &PageHeader<'_>, out: &mut Vec<u8>) {
        put!(out, "# {}\n\n", plain(head.title));
        let mut facts = Vec::new();
        if let Some(session) = head.session {
            facts.push(format!("**{}**", plain(&session.agent())));
            let more = [&session.model, &session.cwd, &session.mode];
            facts.extend(more.into_iter().flatten().map(|it| plain(it)));
        }
        if let Some(at) = head.at {
            let at = at.to_string();
            let minute = at.get(..16).unwrap_or(&at).replace('T', " ");
            facts.push(format!("{minute} UTC"));
        }
        if !facts.is_empty() {
            put!(out, "{}\n\n", facts.join(" · "));
        }
    }

    fn run_started(&self, run: &RunStart, out: &mut Vec<u8>) {
        put!(out, "## Run {}\n\n", run.n);
    }

    fn run_ended(&self, end: &RunEnd<'_>, reason: Option<&str>, out: &mut Vec<u8>) {
        put!(out, "**{}**", plain(end.verdict));
        for fact in end.facts {
            put!(out, " · {}", plain(fact));
        }
        put!(out, "\n\n");
        if let Some(reason) = reason {
            quote(&plain(reason.trim()), out);
        }
        put!(out, "<!-- end of run {} -->\n\n", end.n);
    }

    fn foot(&self, foot: &Footer<'_>, out: &mut Vec<u8>) {
        put!(out, "---\n\n");
        usage(foot, out);
        if let Some(session) = foot.session.filter(|it| !it.native.is_empty()) {
            put!(out, "Session {}\n\n", inline(&session.native));
        }
        if let Some(resume) = foot.resume {
            put!(out, "Resume with {}\n\n", inline(resume));
        }
        put!(out, "<!-- made with linkspan -->\n");
    }

    fn prose(&self, author: Author, text: &str, out: &mut Vec<u8>) {
        match author {
            Author::Prompt | Author::Task => quote(&plain(text.trim()), out),
            Author::Answer => put!(out, "{}\n\n", prose::contained(text)),
            Author::Thought => {
                fold("Thinking", Some(text), out);
                put!(out, "{}\n\n</details>\n\n", prose::contained(text));
            }
            Author::Harness => self.aside("The agent’s program said", text, out),
        }
    }

    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>) {
        match picture {
            // No common reader of Markdown shows pictures that a text carries.
            Picture::Data { media_type, data } => {
                let size = size(data.len() / 4 * 3);
                let text = format!("[{media_type}, {size}]");
                put!(out, "{}\n\n", plain(&text));
            }
            Picture::Url(url) => put!(out, "Picture: {}\n\n", inline(url)),
        }
    }

    fn sources(&self, sources: &[SourceLink], out: &mut Vec<u8>) {
        put!(out, "Sources:\n\n");
        for source in sources {
            put!(out, "- ");
            if let Some(title) = &source.title {
                put!(out, "{} ", plain(title));
            }
            put!(out, "{}\n", place(&source.place));
        }
        put!(out, "\n");
    }

    fn card(&self, card: &ToolCard<'_>, out: &mut Vec<u8>) {
        let name = summary(&card.name);
        put!(out, "<details>\n<summary>{} <b>{name}</b>", sign(card.kind));
        if let Some(about) = &card.about {
            put!(out, " <code>{}</code>", summary(about));
        }
        if let Some(word) = card.ending.label() {
            let mark = match card.ending {
                CardOutcome::Failed(_) => "✗ ",
                CardOutcome::Denied | CardOutcome::Cancelled => "⊘ ",
                CardOutcome::Ok
                | CardOutcome::Exit(_)
                | CardOutcome::Open
                | CardOutcome::Background
                | CardOutcome::Lost => "",
            };
            put!(out, " · {mark}{word}");
        }
        put!(out, "</summary>\n\n");
        for piece in &card.pieces {
            self.piece(piece, out);
        }
        put!(out, "</details>\n\n");
    }

    fn plan(&self, plan: &Plan<'_>, shown: PlanDisplay, out: &mut Vec<u8>) {
        let (count, doing) = progress(plan);
        match shown {
            PlanDisplay::Whole => put!(out, "**Plan {count}**\n\n"),
            PlanDisplay::Folded => fold(&format!("Plan {count}"), doing.as_deref(), out),
        }
        for entry in &plan.entries {
            let text = plain(&entry.text.to_str().replace('\n', " "));
            let (mark, text) = match entry.status {
                PlanStatus::Pending => (" ", text),
                PlanStatus::InProgress => (" ", format!("{text} · in progress")),
                PlanStatus::Completed => ("x", text),
            };
            put!(out, "- [{mark}] {text}\n");
        }
        put!(out, "\n");
        if shown == PlanDisplay::Folded {
            put!(out, "</details>\n\n");
        }
    }

    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>) {
        let text = plain(text.trim());
        match level {
            Level::Debug | Level::Info => put!(out, "· {text}\n\n"),
            Level::Warning => quote(&format!("⚠ **Warning:** {text}"), out),
            Level::Error => quote(&format!("✗ **Error:** {text}"), out),
        }
    }

    fn aside(&self, name: &str, text: &str, out: &mut Vec<u8>) {
        fold(name, Some(text), out);
        fence("", text, out);
        put!(out, "</details>\n\n");
    }

    fn ask(&self, question: &str, decision: Decision, answer: &str, out: &mut Vec<u8>) {
        let mark = match decision {
            Decision::Allowed | Decision::AllowedAlways => "✓",
            Decision::Denied => "✗",
            Decision::Withdrawn | Decision::Lost => "?",
        };
        put!(out, "? {}\\\n", plain(question.trim()));
        put!(out, "→ {mark} {}\n\n", plain(answer));
    }
}

impl Markdown {
    fn piece(&self, piece: &CardPart<'_>, out: &mut Vec<u8>) {
        match piece {
            CardPart::Command(text) => fence("sh", text, out),
            CardPart::Field { name, value } => field(name, value, out),
            CardPart::Diff { path, old, new } => {
                put!(out, "{}\n\n", inline(&crate::visible(path)));
                let mut text = String::new();
                let old = old.as_deref().unwrap_or_default();
                for (side, line) in diff::lines(old, new, DIFF_CONTEXT) {
                    text += &match side {
                        Side::Gap(n) => {
                            format!("@@ {} @@\n", summary::plural(n as u64, "equal line"))
                        }
                        Side::Both => format!(" {line}\n"),
                        Side::Old => format!("-{line}\n"),
                        Side::New => format!("+{line}\n"),
                    };
                }
                fence("diff", &text, out);
            }
            CardPart::Decision(text) => put!(out, "Asked: {}\n\n", plain(text)),
            CardPart::Inside(bytes) => out.extend_from_slice(bytes),
            CardPart::Output(text) => fence("", text, out),
            CardPart::HandedBack(text) => self.aside("Handed back", text, out),
            CardPart::Report(text) => put!(out, "{}\n\n", prose::contained(text)),
            CardPart::Picture(picture) => self.picture(picture, out),
            CardPart::Cut(note) => put!(out, "… {}\n\n", plain(note)),
            CardPart::Nothing => put!(out, "no output\n\n"),
        }
    }
}

/// An address as a link, anything else as it is.
fn place(text: &str) -> String {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    // A sign that would end the link early.
    let is_odd = |it: char| it.is_whitespace() || matches!(it, '<' | '>' | '\\');
    if is_web && !text.contains(is_odd) && crate::display_safe(text) == text {
        format!("<{text}>")
    } else {
        inline(text)
    }
}

/// Opens something folded; a glimpse of what is inside stands beside its name.
fn fold(name: &str, text: Option<&str>, out: &mut Vec<u8>) {
    put!(out, "<details>\n<summary><b>{}</b>", summary(name));
    let line = text.and_then(|it| it.lines().map(str::trim).find(|it| !it.is_empty()));
    if let Some(line) = line {
        put!(out, " {}", summary(&cut(line, MAX_INLINE)));
    }
    put!(out, "</summary>\n\n");
}

/// Text inside of HTML: one line, because an empty one would end the HTML.
fn summary(text: &str) -> String {
    let safe = crate::display_safe(text).replace(['\n', '\t'], " ");
    let safe = safe.replace('&', "&amp;");
    safe.replace('<', "&lt;").replace('>', "&gt;")
}

/// Lines as a quotation.
fn quote(text: &str, out: &mut Vec<u8>) {
    for line in text.split('\n') {
        let space = if line.is_empty() { "" } else { " " };
        put!(out, ">{space}{line}\n");
    }
    put!(out, "\n");
}

/// Text as it is, in a fence that is longer than any in it.
fn fence(language: &str, text: &str, out: &mut Vec<u8>) {
    let safe = crate::display_safe(text);
    let mut longest = 0;
    let mut run = 0;
    for it in safe.bytes() {
        run = if it == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // Fewer than three are no fence.
    let fence = "`".repeat(longest.max(2) + 1);
    put!(out, "{fence}{language}\n{}\n{fence}\n\n", safe.trim_end());
}

fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    let is_short = value.len() <= MAX_INLINE && !value.contains('\n');
    put!(out, "*{}*", plain(name));
    if is_short {
        put!(out, " {}\n\n", inline(value));
    } else {
        put!(out, "\n\n");
        fence("", value, out);
    }
}

fn usage(foot: &Footer<'_>, out: &mut Vec<u8>) {
    let totals = foot.totals;
    let facts = summary::totals(totals.n_runs, totals.duration_ms, totals.cost_usd);
    if !facts.is_empty() {
        put!(out, "**{}**\n\n", plain(&facts.join(" · ")));
    }
    if totals.rows.is_empty() {
        return;
    }
    put!(out, "| Model | Input | Cached | Output | Cost |\n");
    put!(out, "| --- | ---: | ---: | ---: | ---: |\n");
    for row in &totals.rows {
        // A line end would end the row of the table.
        let model = plain(&row.model.replace('\n', " "));
        put!(out, "| {model} | {} |\n", row.cells().join(" | "));
    }
    put!(out, "\n");
}

fn sign(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Shell => "❯",
        ToolKind::Read => "☰",
        ToolKind::Edit => "✎",
        ToolKind::Write => "✚",
        ToolKind::Delete => "✖",
        ToolKind::Move => "➜",
        ToolKind::Search => "⌕",
        ToolKind::Fetch | ToolKind::WebSearch => "⊕",
        ToolKind::Mcp => "◆",
        ToolKind::Task => "⑂",
        ToolKind::Todo => "☑",
        ToolKind::Ask => "?",
        ToolKind::Think => "∴",
        ToolKind::Mode => "⇄",
        ToolKind::Other => "●",
    }
}

#[cfg(test)]
mod tests;
