//! The labels of tool calls, the same in every transcript.

use std::borrow::Cow;

use model::{Raw, Text, Tool, ToolKind};

use crate::display_safe;

/// Room for the input of a tool whose meaning is not known.
const MAX_INPUT: usize = 100;

/// Characters of a prompt that make a title.
const MAX_TITLE: usize = 100;

/// Tools whose own names are no words.
const NAMES: [(&str, &str); 9] = [
    ("command_execution", "Command"),
    ("exec_command", "Command"),
    ("file_change", "Edit files"),
    ("apply_patch", "Edit files"),
    ("mcp_tool_call", "MCP tool"),
    ("web_search", "Web search"),
    ("todo_list", "To-do list"),
    ("ExitPlanMode", "Plan"),
    ("AskUserQuestion", "Question"),
];

/// What the titles of known tools begin with.
const VERBS: [&str; 7] = ["Read", "Edit", "Write", "Delete", "Move", "Fetch", "Search"];

/// The name of a call and its subject. Titles of known tools begin with a verb of their own.
pub(crate) fn label_and_target(tool: &Tool<'_>) -> (String, Option<String>) {
    let title = tool.class.title.to_str();
    let name = || tool_name(&tool.name).to_owned();
    match tool.class.kind {
        ToolKind::Shell => {
            let command = tool.class.command.as_ref().map(Text::to_str);
            // A title in the agent's own words does not show what is run.
            let about = match command.filter(|it| !title.contains(&**it)) {
                Some(command) if title != tool.name && !command.contains(&*title) => {
                    Some(format!("{title}: {command}"))
                }
                Some(command) => Some(command.into_owned()),
                None => (title != tool.name).then(|| title.into_owned()),
            };
            (name(), about)
        }
        ToolKind::Task | ToolKind::Ask => {
            let about = (title != tool.name).then(|| title.into_owned());
            (name(), about)
        }
        ToolKind::Read
        | ToolKind::Edit
        | ToolKind::Write
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Search
        | ToolKind::Fetch
        | ToolKind::WebSearch
        | ToolKind::Todo => match title.split_once(' ') {
            Some((verb, about)) if VERBS.contains(&verb) || verb == tool.name => {
                (verb.to_owned(), Some(about.to_owned()))
            }
            // A title of the agent's own may leave out the file or the pattern.
            Some(_) => match target(tool).filter(|it| !title.contains(&**it)) {
                Some(target) => (name(), Some(format!("{title}: {target}"))),
                None => (name(), Some(title.into_owned())),
            },
            None => (title.into_owned(), None),
        },
        ToolKind::Mcp => {
            let name = match &tool.class.mcp {
                Some(mcp) => format!("{}/{}", mcp.server, mcp.tool),
                None => name(),
            };
            (name, input(tool))
        }
        ToolKind::Think | ToolKind::Mode | ToolKind::Other => (name(), input(tool)),
    }
}

/// A tool as people call it.
pub(crate) fn tool_name(name: &str) -> &str {
    let known = NAMES.iter().find(|(own, _)| *own == name);
    known.map_or(name, |(_, word)| word)
}

/// What a session is called after its first prompt.
pub(crate) fn title(prompt: &str) -> Option<String> {
    let mut lines = prompt.lines().map(str::trim);
    let line = lines.find(|it| !it.is_empty())?;
    Some(cut(line, MAX_TITLE).into_owned())
}

/// What is looked for, or the file that is meant.
fn target<'a>(tool: &'a Tool<'_>) -> Option<Cow<'a, str>> {
    let path = tool.class.paths.first().map(|it| &it.path);
    let target = tool.class.query.as_ref().or(path)?.to_str();
    (!target.trim().is_empty()).then_some(target)
}

/// A call on one line: its name and its subject.
pub(crate) fn label(tool: &Tool<'_>) -> String {
    let (name, about) = label_and_target(tool);
    match about {
        Some(about) => format!("{name}  {}", about.lines().next().unwrap_or_default()),
        None => name,
    }
}

fn input(tool: &Tool<'_>) -> Option<String> {
    let raw = tool.input.as_ref()?;
    (raw.get() != "{}" && !raw.is_null()).then(|| compact(raw))
}

/// JSON on one short line.
pub(crate) fn compact(raw: &Raw<'_>) -> String {
    let one_line = raw.get().replace(['\n', '\r'], " ");
    cut(&display_safe(&one_line), MAX_INPUT).into_owned()
}

/// The first `n` characters, and an ellipsis when there are more.
pub(crate) fn cut(text: &str, n: usize) -> Cow<'_, str> {
    match text.char_indices().nth(n) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

pub(crate) fn size(n: usize) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{} KB", n / 1024),
        _ => format!("{:.1} MB", n as f64 / 1_048_576.0),
    }
}

/// Some agents wrap an error for their model, as `<tool_error>…</tool_error>`; people need no wrapping.
pub(crate) fn unwrapped(text: &str) -> &str {
    let inner = || {
        let (tag, rest) = text.strip_prefix('<')?.split_once('>')?;
        let is_name = tag.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        let rest = rest
            .strip_suffix('>')?
            .strip_suffix(tag)?
            .strip_suffix("</")?;
        is_name.then_some(rest)
    };
    inner().unwrap_or(text)
}
