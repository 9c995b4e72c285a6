//! Everything that was said and done, in the transcripts for people.

use serde_json::Value;

use super::{LEFT_OUT, recorded_content};
use crate::fixtures::{convert, recordings};

#[test]
fn in_html() {
    in_page("html", |page| {
        let body = page.split_once("<body>").unwrap().1;
        let mut text = String::new();
        for piece in body.split('<') {
            text.push_str(piece.split_once('>').map_or(piece, |it| it.1));
        }
        for (name, sign) in [
            ("lt", "<"),
            ("gt", ">"),
            ("quot", "\""),
            ("#39", "'"),
            ("amp", "&"),
        ] {
            text = text.replace(&format!("&{name};"), sign);
        }
        text
    });
}

#[test]
fn in_markdown() {
    in_page("markdown", |page| {
        let mut text = rendered(page);
        for (name, sign) in [
            ("lt", "<"),
            ("gt", ">"),
            ("quot", "\""),
            ("#39", "'"),
            ("amp", "&"),
        ] {
            text = text.replace(&format!("&{name};"), sign);
        }
        text
    });
}

/// Every word, name, input and result stands somewhere on the page.
fn in_page(to: &str, text_of: impl Fn(&str) -> String) {
    /// A page cuts what is longer, and says so.
    const SHOWN: usize = 30_000;
    let flat = |text: &str| -> String { formats::display_safe(text).split_whitespace().collect() };
    let mut failures = Vec::new();
    for recording in recordings("claude") {
        if LEFT_OUT.contains(&&*recording.name) {
            continue;
        }
        let content = recorded_content(&recording)
            .without_foreign_items()
            .with_answer_as_text();
        let page = convert("claude", to, None, &recording.bytes, &recording.end);
        let page = flat(&text_of(&page));
        let mut need = |what: &str, text: &str| {
            let text = flat(text);
            let start = &text[..text.floor_char_boundary(SHOWN)];
            if !page.contains(start) {
                failures.push(format!("{}: no {what} {start:.200}", recording.name));
            }
        };
        for text in content.texts.iter().chain(&content.thoughts) {
            need("words", &rendered(text));
        }
        for call in content.calls.values() {
            // A name that people do not need stands apart: `server/tool` is `mcp__server__tool`.
            need("name", &call.name);
            for leaf in leaves(&call.input) {
                leaf.lines().for_each(|line| need("input", line));
            }
            if let Some(result) = call.result.as_ref().filter(|_| !call.is_mixed) {
                need("result", unwrapped(result));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a value is made of, whatever the order of its fields.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(nested).collect(),
        Value::Object(map) => map
            .values()
            .flat_map(|it| match it {
                Value::String(text) => vec![text.clone()],
                other => nested(other),
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

/// The same, inside of a value that is shown as JSON.
fn nested(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().flat_map(nested).collect(),
        Value::Object(map) => map.values().flat_map(nested).collect(),
        other => vec![other.to_string()],
    }
}

/// A reason that is wrapped for a model, without the wrapping.
fn unwrapped(text: &str) -> &str {
    let inner = text
        .strip_prefix("<tool_use_error>")
        .and_then(|it| it.strip_suffix("</tool_use_error>"));
    inner.unwrap_or(text)
}

/// Markdown as the words that are seen.
fn rendered(markdown: &str) -> String {
    use pulldown_cmark::{Event, Parser, Tag};
    let mut text = String::new();
    for event in Parser::new_ext(markdown, crate::pages::OPTIONS) {
        match event {
            Event::Text(it) | Event::Code(it) => text.push_str(&it),
            Event::Html(it) | Event::InlineHtml(it) => text.push_str(&it),
            Event::TaskListMarker(is_done) => text.push(if is_done { '☑' } else { '☐' }),
            Event::Start(Tag::Image { .. }) => text.push_str("picture: "),
            _ => text.push(' '),
        }
    }
    text
}
