//! A transcript as one web page that needs nothing else: no script, no font, no request.
//!
//! Everything foreign passes [`parts::escape`], which also makes control characters and bidirectional
//! overrides visible. Answers are rendered from Markdown by [`prose`], in which HTML is text. The
//! policy in the header forbids whatever might still slip through: it allows the one style sheet
//! by its hash, and pictures that the page itself carries.

mod parts;
mod prose;

use model::{Decision, Level, Outcome, Plan, PlanStatus};

use self::parts::{
    article, block, changed, escape, field, fold, folded_text, is_picture, kind, lines, of,
    plus_minus, time, usage,
};
use super::page_transcript::card::{CardOutcome, CardPart, ToolCard};
use super::page_transcript::{Footer, PageHeader, Renderer, progress};
use super::sources::SourceLink;
use super::transcript::{Author, Picture, PlanDisplay, RunEnd, RunStart};

/// What the page of the server looks like, too, and what only a page without scripts needs.
const STYLE: &str = concat!(
    include_str!("html/transcript.css"),
    include_str!("html/page.css")
);
/// The SHA-256 of [`STYLE`]; a test keeps them together.
const STYLE_HASH: &str = "FJ0m0hpd/NmpmpfjSH6mxyZq2kur7k60VsElWo+J0G4=";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Html;

impl Renderer for Html {
    const MAX_SHOWN: usize = 256 * 1024;

    fn head(&self, head: &PageHeader<'_>, out: &mut Vec<u8>) {
        let title = escape(head.title);
        put!(
            out,
            "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; \
img-src data:; base-uri 'none'; form-action 'none'\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"referrer\" content=\"no-referrer\">
<meta name=\"generator\" content=\"linkspan\">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header class=\"top\">
"
        );
        if let Some(session) = head.session {
            put!(out, "<p class=\"agent\">{}</p>\n", escape(&session.agent()));
        }
        put!(out, "<h1 dir=\"auto\">{title}</h1>\n<dl>\n");
        let fact = |name: &str, value: Option<&str>, out: &mut Vec<u8>| {
            if let Some(value) = value.filter(|it| !it.is_empty()) {
                let value = escape(value);
                put!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>\n");
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

    fn run_started(&self, run: &RunStart, out: &mut Vec<u8>) {
        let n = run.n;
        put!(
            out,
            "<section class=\"run\" id=\"run-{n}\" aria-label=\"Run {n}\">\n"
        );
        put!(out, "<h2><a href=\"#run-{n}\">Run {n}</a>");
        if let Some(at) = run.at {
            put!(out, " ");
            time(at, 11..16, out);
        }
        put!(out, "</h2>\n");
    }

    fn run_ended(&self, end: &RunEnd<'_>, reason: Option<&str>, out: &mut Vec<u8>) {
        let class = match end.outcome {
            Outcome::Completed => "good",
            Outcome::Failed | Outcome::Limit => "bad",
            Outcome::Aborted | Outcome::Refused | Outcome::Lost => "odd",
        };
        let verdict = escape(end.verdict);
        put!(out, "<footer class=\"end {class}\">\n<p><b>{verdict}</b>");
        for fact in end.facts {
            put!(out, " <span>{}</span>", escape(fact));
        }
        put!(out, "</p>\n");
        if let Some(reason) = reason {
            put!(out, "<p class=\"why\">{}</p>\n", escape(reason.trim()));
        }
        put!(out, "</footer>\n</section>\n");
    }

    fn foot(&self, foot: &Footer<'_>, out: &mut Vec<u8>) {
        put!(out, "</main>\n<footer class=\"bottom\">\n");
        usage(foot, out);
        if let Some(session) = foot.session.filter(|it| !it.native.is_empty()) {
            let id = escape(&session.native);
            put!(out, "<p>Session <code>{id}</code></p>\n");
        }
        if let Some(resume) = foot.resume {
            put!(out, "<p>Resume with <code>{}</code></p>\n", escape(resume));
        }
        put!(
            out,
            "<p class=\"made\">Made with linkspan.</p>\n</footer>\n</body>\n</html>\n"
        );
    }

    fn prose(&self, author: Author, text: &str, out: &mut Vec<u8>) {
        match author {
            Author::Prompt => article("prompt", "Prompt", text, out),
            Author::Answer => {
                put!(
                    out,
                    "<article class=\"prose\" aria-label=\"Answer\" dir=\"auto\">\n"
                );
                prose::render(text, out);
                put!(out, "</article>\n");
            }
            Author::Thought => {
                fold("aside thought", "Thinking", Some(text), out);
                put!(out, "<div class=\"prose\" dir=\"auto\">\n");
                prose::render(text, out);
                put!(out, "</div>\n</details>\n");
            }
            Author::Task => article("task", "Task", text, out),
            Author::Harness => folded_text("The agent’s program said", text, out),
        }
    }

    fn picture(&self, picture: &Picture<'_>, out: &mut Vec<u8>) {
        put!(out, "<p class=\"picture\">");
        match picture {
            Picture::Data { media_type, data } if is_picture(media_type, data) => {
                put!(
                    out,
                    "<img alt=\"Picture, {}\"",
                    escape(&of(media_type, data))
                );
                // `is_picture` has checked every byte of both.
                put!(out, " src=\"data:{media_type};base64,{data}\">");
            }
            Picture::Data { media_type, data } => {
                put!(out, "[{}]", escape(&of(media_type, data)));
            }
            Picture::Url(url) => {
                put!(out, "Picture: ");
                prose::link(url, out);
            }
        }
        put!(out, "</p>\n");
    }

    fn sources(&self, sources: &[SourceLink], out: &mut Vec<u8>) {
        put!(
            out,
            "<section class=\"prose\" aria-label=\"Sources\">\n<p>Sources</p>\n<ul>\n"
        );
        for source in sources {
            put!(out, "<li dir=\"auto\">");
            if let Some(title) = &source.title {
                put!(out, "{} ", escape(title));
            }
            prose::link(&source.place, out);
            put!(out, "</li>\n");
        }
        put!(out, "</ul>\n</section>\n");
    }

    fn card(&self, card: &ToolCard<'_>, out: &mut Vec<u8>) {
        let class = match card.ending {
            CardOutcome::Ok | CardOutcome::Open | CardOutcome::Background => "",
            CardOutcome::Failed(_) => " bad",
            CardOutcome::Exit(_)
            | CardOutcome::Denied
            | CardOutcome::Cancelled
            | CardOutcome::Lost => " odd",
        };
        put!(out, "<details class=\"card {}{class}\">\n", kind(card.kind));
        put!(out, "<summary><i></i><b>{}</b>", escape(&card.name));
        if let Some(about) = &card.about {
            put!(out, " <code dir=\"auto\">{}</code>", escape(about));
        }
        if let Some((plus, minus)) = changed(card) {
            put!(out, " <span class=\"n\">{}</span>", plus_minus(plus, minus));
        }
        if let Some(word) = card.ending.label() {
            put!(out, " <span class=\"how\">{}</span>", escape(&word));
        }
        put!(out, "</summary>\n<div class=\"body\">\n");
        for piece in &card.pieces {
            self.piece(piece, out);
        }
        put!(out, "</div>\n</details>\n");
    }

    fn plan(&self, plan: &Plan<'_>, shown: PlanDisplay, out: &mut Vec<u8>) {
        let (count, doing) = progress(plan);
        match shown {
            PlanDisplay::Whole => {
                put!(out, "<section class=\"plan\" aria-label=\"Plan\">\n");
                put!(out, "<h3>Plan <span>{count}</span></h3>\n");
            }
            PlanDisplay::Folded => {
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
            put!(
                out,
                "<li{class}><span class=\"sr\">{word}: </span>{}</li>\n",
                escape(&text)
            );
        }
        let tag = match shown {
            PlanDisplay::Whole => "section",
            PlanDisplay::Folded => "details",
        };
        put!(out, "</ul>\n</{tag}>\n");
    }

    fn notice(&self, level: Level, text: &str, out: &mut Vec<u8>) {
        let (class, role, word) = match level {
            Level::Debug | Level::Info => ("info", "", ""),
            Level::Warning => ("warning", " role=\"note\"", "<b>Warning</b> "),
            Level::Error => ("error", " role=\"note\"", "<b>Error</b> "),
        };
        let text = escape(text.trim());
        put!(out, "<p class=\"notice {class}\"{role}>{word}{text}</p>\n");
    }

    fn aside(&self, name: &str, text: &str, out: &mut Vec<u8>) {
        folded_text(name, text, out);
    }

    fn ask(&self, question: &str, decision: Decision, answer: &str, out: &mut Vec<u8>) {
        let class = match decision {
            Decision::Allowed | Decision::AllowedAlways => "good",
            Decision::Denied => "bad",
            Decision::Withdrawn | Decision::Lost => "odd",
        };
        put!(
            out,
            "<article class=\"ask {class}\" aria-label=\"Question\">\n"
        );
        put!(out, "<p>{}</p>\n", escape(question.trim()));
        put!(out, "<p><b>{}</b></p>\n</article>\n", escape(answer));
    }
}

impl Html {
    fn piece(&self, piece: &CardPart<'_>, out: &mut Vec<u8>) {
        match piece {
            CardPart::Command(text) => block("command", "Command", text, out),
            CardPart::Field { name, value } => field(name, value, out),
            CardPart::Diff { path, old, new } => {
                let path = crate::visible(path);
                put!(
                    out,
                    "<p class=\"path\"><code dir=\"auto\">{}</code></p>\n",
                    escape(&path)
                );
                lines(old.as_deref().unwrap_or_default(), new, out);
            }
            CardPart::Decision(text) => {
                put!(out, "<p class=\"decision\">{}</p>\n", escape(text));
            }
            CardPart::Inside(bytes) => {
                put!(out, "<section class=\"inside\" aria-label=\"Sub-agent\">\n");
                out.extend_from_slice(bytes);
                put!(out, "</section>\n");
            }
            CardPart::Output(text) => block("output", "Output", text, out),
            CardPart::HandedBack(text) => folded_text("Handed back", text, out),
            CardPart::Report(text) => {
                put!(out, "<div class=\"prose report\" dir=\"auto\">\n");
                prose::render(text, out);
                put!(out, "</div>\n");
            }
            CardPart::Picture(picture) => self.picture(picture, out),
            CardPart::Cut(note) => put!(out, "<p class=\"cut\">… {}</p>\n", escape(note)),
            CardPart::Nothing => put!(out, "<p class=\"cut\">no output</p>\n"),
        }
    }
}

#[cfg(test)]
mod tests;
