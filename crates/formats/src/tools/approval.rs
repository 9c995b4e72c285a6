//! The title of a permission request.
//!
//! What is approved is what runs: the line holds the whole command, every path and every address of
//! the input as the agent gave them, whatever the agent calls it itself. Nothing in it is hidden:
//! see [`visible`]. Only the input of a tool that nobody knows and a command of more than a megabyte
//! are cut, and the cut is counted; the whole input travels beside the line.

use model::{Class, Raw, Text, ToolKind};

use super::{ToolInput, text};
use crate::display_safe::visible;
use crate::wire::scanner;

/// Maximum length of the input of an unknown tool, in characters.
const MAX_INPUT: usize = 2_000;

/// The title of a permission: `title` with everything that would run in it. `call` is what is known
/// of the call, `input` what the question itself brings.
pub(crate) fn approval_title<'t>(
    title: &Text<'t>,
    call: &Class<'_>,
    input: Option<&Raw<'_>>,
) -> Text<'t> {
    let own = title.to_str();
    let mut shown = visible(&own).into_owned();
    let subjects = subjects(call, input);
    // With several paths it is not certain which one a short title means.
    if let [path] = &subjects[..] {
        shown = with_whole_path(shown, path);
    }
    let mut missing: Vec<String> = Vec::new();
    for subject in subjects {
        if !mentions(&shown, &subject) {
            missing.push(subject);
        }
    }
    if let Some(input) = unknown_input(call, input).filter(|it| !mentions(&shown, it)) {
        shown = format!("{shown} {input}");
    }
    if !missing.is_empty() {
        shown = format!("{shown}: {}", missing.join(", "));
    }
    if shown == own {
        return title.clone();
    }
    Text::new(shown)
}

/// True when the title has the subject in it, and not as a part of some other word.
fn mentions(title: &str, subject: &str) -> bool {
    // Without the edges a title about `data.py` would count as one that shows `a.py`.
    let is_edge =
        |it: char| it.is_whitespace() || matches!(it, ':' | ',' | '`' | '\'' | '"' | '(' | ')');
    title.match_indices(subject).any(|(at, _)| {
        let before = title[..at].chars().next_back();
        let after = title[at + subject.len()..].chars().next();
        before.is_none_or(is_edge) && after.is_none_or(is_edge)
    })
}

/// What the call does something with: a command, paths, an address.
fn subjects(call: &Class<'_>, raw: Option<&Raw<'_>>) -> Vec<String> {
    let input: ToolInput<'_> = raw
        .and_then(|it| scanner::from_str(it.get()).ok())
        .unwrap_or_default();
    let show = |it: &Text<'_>| visible(&it.to_str()).into_owned();
    let mut asked = super::facts(call.kind, &input);
    super::repeats::shorten(&mut asked);
    let paths = || {
        // The request overrides the call; omitted fields come from the call.
        let paths = [&asked.paths, &call.paths].into_iter();
        let paths = paths.flatten().map(|it| show(&it.path));
        let diffs = [&asked.diffs, &call.diffs].into_iter().flatten();
        paths.chain(diffs.map(|it| show(&it.path)))
    };
    let found: Vec<String> = match call.kind {
        ToolKind::Shell => {
            let command = asked.command.as_ref().or(call.command.as_ref());
            command.map(show).into_iter().collect()
        }
        ToolKind::Read | ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => {
            paths().collect()
        }
        ToolKind::Search => {
            let query = asked.query.as_ref().or(call.query.as_ref());
            query.map(show).into_iter().chain(paths()).collect()
        }
        ToolKind::Fetch | ToolKind::WebSearch => {
            let whole = text(input.url).or(text(input.prompt)).or(text(input.query));
            let query = whole.as_ref().or(call.query.as_ref());
            query.map(show).into_iter().collect()
        }
        ToolKind::Mcp
        | ToolKind::Task
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Mode
        | ToolKind::Other => Vec::new(),
    };
    let mut subjects: Vec<String> = Vec::new();
    for it in found.into_iter().filter(|it| !it.is_empty()) {
        if !subjects.contains(&it) {
            subjects.push(it);
        }
    }
    subjects
}

/// `Edit a.py` as `Edit /w/a.py`, when that is the path that is meant.
fn with_whole_path(title: String, path: &str) -> String {
    let Some((verb, short)) = title.split_once(' ') else {
        return title;
    };
    let is_end = |it: &str| it.ends_with('/');
    if !title.contains(path) && path.strip_suffix(short).is_some_and(is_end) {
        return format!("{verb} {path}");
    }
    title
}

/// The input of an unknown tool.
fn unknown_input(call: &Class<'_>, input: Option<&Raw<'_>>) -> Option<String> {
    let is_unknown = matches!(call.kind, ToolKind::Mcp | ToolKind::Other);
    let json = input.filter(|_| is_unknown)?.get();
    if matches!(json, "{}" | "null" | "[]" | "\"\"") {
        return None;
    }
    let mut ends = json.char_indices().skip(MAX_INPUT);
    let shown = match ends.next() {
        Some((end, _)) => {
            let n_more = 1 + ends.count();
            let head = visible(&json[..end]);
            format!("{head}… ({n_more} more characters)")
        }
        None => visible(json).into_owned(),
    };
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titled(name: &str, title: &str, input: &str) -> String {
        let raw: Raw<'_> = serde_json::from_str(input).unwrap();
        let call = super::super::classify(name, Some(&raw), Some("/w"));
        approval_title(&Text::new(title), &call, Some(&raw)).to_string()
    }

    #[test]
    fn the_whole_command_is_in_the_title() {
        let check = |title: &str, command: &str, shown: &str| {
            let input = serde_json::json!({ "command": command }).to_string();
            assert_eq!(titled("Bash", title, &input), shown);
        };
        let evil = "cd / && rm -rf /w/etc";
        check(evil, evil, evil);
        check("clean up", evil, "clean up: cd / && rm -rf /w/etc");
        let hidden = "rm -rf /home; /bin/bash -lc ls";
        check("ls", hidden, "ls: rm -rf /home; /bin/bash -lc ls");
        check("ls", "ls\nrm x", "ls: ls\u{240a}rm x");
        check("ls ", "ls ", "ls\u{2420}");
        check("Bash", "a\u{202e}b", "Bash: a\\u{202e}b");
    }

    #[test]
    fn every_path_is_in_the_title() {
        let edit = r#"{"file_path":"/w/a.py","old_string":"a","new_string":"b"}"#;
        assert_eq!(titled("Edit", "Edit a.py", edit), "Edit /w/a.py");
        assert_eq!(titled("Edit", "Fix it", edit), "Fix it: /w/a.py");
        let patch = r#"{"changes":[{"path":"/w/a","kind":"add"},{"path":"/w/b","kind":"delete"},{"path":"/etc/c","kind":"update"}]}"#;
        assert_eq!(
            titled("file_change", "Edit a and 2 more", patch),
            "Edit a and 2 more: /w/a, /w/b, /etc/c"
        );
        let moved = r#"{"source":"/w/a","destination":"/etc/b"}"#;
        assert_eq!(titled("move", "Move a", moved), "Move a: /w/a, /etc/b");
        let fetch = r#"{"prompt":"read https://a.example and post it to https://b.example"}"#;
        assert_eq!(
            titled("web_fetch", "Fetch https://a.example", fetch),
            "Fetch https://a.example: read https://a.example and post it to https://b.example"
        );
    }

    #[test]
    fn the_input_of_an_unknown_tool_is_shown_and_a_cut_is_counted() {
        let title = titled(
            "mcp__github__create_issue",
            "create_issue",
            r#"{"title":"x"}"#,
        );
        assert_eq!(title, r#"create_issue {"title":"x"}"#);
        assert_eq!(titled("mcp__a__b", "b", "{}"), "b");
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(3_000));
        let title = titled("mcp__a__b", "b", &long);
        assert!(title.ends_with("x… (1008 more characters)"), "{title}");
    }

    #[test]
    fn a_complete_title_is_unchanged() {
        let title = titled("Bash", "b: ls -l", r#"{"command":"ls -l"}"#);
        assert_eq!(title, "b: ls -l");
        let title = titled("Bash", "false alarms", r#"{"command":"ls"}"#);
        assert_eq!(title, "false alarms: ls");
        let again = titled("Bash", "x: a\u{240a}b", r#"{"command":"a\nb"}"#);
        assert_eq!(again, "x: a\u{240a}b");
    }
}
