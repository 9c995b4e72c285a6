//! What every page owes its reader: whatever is opened is closed, nothing foreign is markup, and each
//! run has one end.

use std::collections::BTreeMap;
use std::fs;

use model::End;
use pulldown_cmark::{Event, Options, Parser};
use serde_json::Value;

use crate::fixtures::{convert, root};

/// Elements that a page is made of; everything else would be somebody else's.
#[rustfmt::skip]
const ELEMENTS: &[&str] = &[
    "a", "article", "b", "blockquote", "body", "caption", "code", "dd", "del", "details", "div",
    "dl", "dt", "em", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "html", "i",
    "ins", "li", "main", "ol", "p", "pre", "s", "section", "span", "strong", "style", "summary",
    "table", "tbody", "td", "th", "thead", "time", "title", "tr", "ul",
];
const VOID: &[&str] = &["br", "hr", "img", "meta"];
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "alt", "aria-label", "charset", "class", "content", "datetime", "dir", "href", "http-equiv",
    "id", "lang", "name", "rel", "role", "scope", "src", "start", "tabindex",
];

/// Takes the style sheet out, which is known and long; true when that is done.
pub(crate) fn strip_style(page: &mut Vec<u8>) -> bool {
    let find = |needle: &str| memchr::memmem::find(page, needle.as_bytes());
    let (Some(from), Some(to)) = (find("<style>"), find("</style>")) else {
        return false;
    };
    page.drain(from..to + b"</style>".len());
    true
}

/// Elements are known, nested and closed; attributes are known and quoted; links lead outside or to a run.
pub(crate) fn html(page: &[u8], n_runs: usize) -> Result<(), String> {
    let page = std::str::from_utf8(page).map_err(|err| err.to_string())?;
    let Some(mut rest) = page.strip_prefix("<!doctype html>\n") else {
        return Err("no doctype".to_owned());
    };
    let mut open = Vec::new();
    let mut n_ends = 0;
    while let Some(at) = rest.find(['<', '>']) {
        if rest.as_bytes()[at] == b'>' {
            return Err(format!("a bare `>` before {:.60}", &rest[at..]));
        }
        let Some((tag, after)) = rest[at + 1..].split_once('>') else {
            return Err(format!("an open tag: {:.60}", &rest[at..]));
        };
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name = tag.split(' ').next().unwrap_or_default();
        attributes(&tag[name.len()..])?;
        n_ends += usize::from(tag.starts_with("footer class=\"end "));
        if ELEMENTS.contains(&name) {
            open.push(name);
        } else if !VOID.contains(&name) {
            return Err(format!("a strange element `{name}`"));
        }
    }
    if !open.is_empty() {
        return Err(format!("left open: {open:?}"));
    }
    if n_ends != n_runs {
        return Err(format!("{n_runs} runs, {n_ends} ends"));
    }
    Ok(())
}

fn attributes(mut rest: &str) -> Result<(), String> {
    while let Some(some) = rest.strip_prefix(' ') {
        let parts = some.split_once("=\"");
        let parts = parts.and_then(|(name, it)| Some((name, it.split_once('"')?)));
        let Some((name, (value, after))) = parts else {
            return Err(format!("a bare attribute: {some}"));
        };
        let is_safe = match name {
            "href" => {
                let schemes = ["https://", "http://", "mailto:", "#run-"];
                let value = value.to_ascii_lowercase();
                schemes.iter().any(|it| value.starts_with(it))
            }
            "src" => {
                let types = ["png", "jpeg", "gif", "webp"];
                types
                    .iter()
                    .any(|it| value.starts_with(&format!("data:image/{it};base64,")))
            }
            _ => ATTRIBUTES.contains(&name),
        };
        if !is_safe {
            return Err(format!("a strange attribute {name}=\"{value}\""));
        }
        rest = after;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(format!("after the attributes: {rest}"))
    }
}

pub(crate) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// As a real parser sees it: the only HTML is ours, what it opens it closes, and the last word is
/// ours too, so no fence or quotation has swallowed it.
pub(crate) fn markdown(page: &[u8], n_runs: usize) -> Result<(), String> {
    let page = std::str::from_utf8(page).map_err(|err| err.to_string())?;
    let mut html = String::new();
    for event in Parser::new_ext(page, OPTIONS) {
        if let Event::Html(text) | Event::InlineHtml(text) = event {
            html.push_str(&text);
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut depth = 0_usize;
    let mut rest = &*html;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((tag, after)) = after.split_once('>') else {
            return Err(format!("an open tag: {after:.60}"));
        };
        rest = after;
        match tag {
            "details" => depth += 1,
            "/details" => {
                depth = depth.checked_sub(1).ok_or("a `</details>` too many")?;
            }
            "summary" | "/summary" | "b" | "/b" | "code" | "/code" => {
                *counts.entry(tag).or_default() += 1;
            }
            "!-- made with linkspan --" => *counts.entry("last").or_default() += 1,
            _ if tag.starts_with("!-- end of run ") => *counts.entry("end").or_default() += 1,
            _ => return Err(format!("strange HTML: <{tag}>")),
        }
    }
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    for name in ["summary", "b", "code"] {
        if count(name) != count(&format!("/{name}")) {
            return Err(format!("a <{name}> is not closed"));
        }
    }
    if depth != 0 || count("last") != 1 || !html.trim_end().ends_with("linkspan -->") {
        return Err(format!("{depth} details open at the end:\n{page}"));
    }
    if count("end") != n_runs {
        return Err(format!("{n_runs} runs, {} ends", count("end")));
    }
    Ok(())
}

/// Words of the model itself; everything else is a stranger's.
#[rustfmt::skip]
const OURS: &[&str] = &[
    "at", "basis", "cause", "channel", "decision", "how", "kind", "level", "origin", "outcome",
    "role", "scope", "status", "type", "why",
];

#[test]
fn attacks_stay_text_wherever_they_stand() {
    let read = |name: &str| fs::read_to_string(root().join("model").join(name)).unwrap();
    let events = read("everything.events.jsonl");
    for line in read("xss.payloads.jsonl").lines() {
        let attack: String = serde_json::from_str(line).unwrap();
        let mut hostile = String::new();
        let mut n_runs = 0;
        for event in events.lines().filter(|it| !it.contains("item.delta")) {
            n_runs += usize::from(event.contains("\"run.ended\""));
            let mut event = serde_json::from_str(event).unwrap();
            replace(&mut event, "", &attack);
            hostile += &format!("{event}\n");
        }
        let page = |to| convert("linkspan", to, None, hostile.as_bytes(), &End::default());
        let mut bytes = page("html").into_bytes();
        assert!(strip_style(&mut bytes));
        let verdict = html(&bytes, n_runs);
        let verdict = verdict.and_then(|()| markdown(page("markdown").as_bytes(), n_runs));
        assert_eq!(verdict, Ok(()), "{attack}");
    }
}

/// Puts an attack in the place of every text; ids stay apart.
fn replace(value: &mut Value, key: &str, attack: &str) {
    match value {
        Value::String(_) if OURS.contains(&key) => (),
        Value::String(text) if key == "id" || key == "item" || key == "call" || key == "path" => {
            *text = format!("{attack}{text}");
        }
        Value::String(text) => attack.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(|it| replace(it, key, attack)),
        Value::Object(map) => map
            .iter_mut()
            .for_each(|(key, it)| replace(it, key, attack)),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}
