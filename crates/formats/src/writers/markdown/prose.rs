//! Contains foreign Markdown, so that it cannot affect what follows.
//!
//! HTML in it is made text, so that it can close nothing of ours and load nothing; a fence that is
//! left open is closed. Both are found by a real parser, because what is HTML depends on where it
//! stands. Making HTML text can uncover more of it, so this is repeated until nothing is left.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::display_safe;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// Real texts need one round; what needs more than this is made to need them.
const MAX_ROUNDS: usize = 8;

/// The same Markdown, harmless for what stands around it.
pub(super) fn contained(text: &str) -> String {
    let safe = display_safe(text);
    let mut text = safe.trim_end().trim_start_matches('\n').to_owned();
    for _ in 0..MAX_ROUNDS {
        match mended(&text) {
            Some(next) => text = next,
            None => return text,
        }
    }
    // Nothing inside a fence is markup.
    let mut fenced = Vec::new();
    super::fence("markdown", &text, &mut fenced);
    let fenced = String::from_utf8_lossy(&fenced);
    fenced.trim_end().to_owned()
}

/// One round; `None` when there is nothing to mend.
fn mended(text: &str) -> Option<String> {
    let mut signs = Vec::new();
    let mut fence = None;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                let html = text.get(range.clone()).unwrap_or_default();
                signs.extend(html.match_indices('<').map(|(at, _)| range.start + at));
            }
            // Only a fence that reaches the end can be an open one.
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) if range.end == text.len() => {
                fence = text.get(range).and_then(missing);
            }
            _ => (),
        }
    }
    // A fence is closed only when no HTML is left: without it the text may be read differently.
    if signs.is_empty() {
        return fence.map(|fence| format!("{text}\n{fence}"));
    }
    let mut escaped = String::with_capacity(text.len() + 3 * signs.len());
    let mut from = 0;
    for at in signs {
        escaped.push_str(&text[from..at]);
        escaped.push_str("&lt;");
        from = at + 1;
    }
    escaped.push_str(&text[from..]);
    Some(escaped)
}

/// The fence that would close a block, if it has none.
fn missing(block: &str) -> Option<String> {
    let mut lines = block.lines();
    let first = lines.next()?.trim_start();
    let sign = first.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let n = first.chars().take_while(|it| *it == sign).count();
    let last = lines.next_back().unwrap_or_default();
    // In a list or a quotation the last line begins with what belongs to those.
    let last = last.trim_start_matches(['>', ' ', '\t']).trim_end();
    let closes = last.len() >= n && last.chars().all(|it| it == sign);
    (!closes).then(|| sign.to_string().repeat(n))
}
