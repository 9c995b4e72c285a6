//! A tool call as an action: kind, title and detail of the default shape.
//!
//! The kinds are those of the mapping document, and takopi's own for tools it does not list; both
//! come from the classification, not from the tool's name.

use std::borrow::Cow;

use model::{Change, Status, Text, Tool, ToolKind};

use crate::wire::takopi::{self as wire, Kind};

pub(super) fn heading<'t>(tool: &'t Tool<'_>, cwd: Option<&str>) -> (Kind, Text<'t>) {
    let class = &tool.class;
    let (kind, title) = match class.kind {
        ToolKind::Shell => (Kind::Command, class.command.as_ref().map(Text::by_ref)),
        ToolKind::Edit | ToolKind::Write | ToolKind::Delete | ToolKind::Move => {
            (Kind::FileChange, paths(tool, cwd))
        }
        ToolKind::Read => {
            let title = paths(tool, cwd).map(|it| Text::new(format!("Read {it}")));
            (Kind::Tool, title)
        }
        ToolKind::WebSearch | ToolKind::Fetch => {
            (Kind::WebSearch, class.query.as_ref().map(Text::by_ref))
        }
        ToolKind::Task => (Kind::Subagent, None),
        ToolKind::Todo | ToolKind::Ask | ToolKind::Think => (Kind::Note, None),
        ToolKind::Mcp => (Kind::Tool, Some(Text::new(&*tool.name))),
        ToolKind::Search | ToolKind::Mode | ToolKind::Other => (Kind::Tool, None),
    };
    let title = title.filter(|it| !it.is_empty());
    (kind, title.unwrap_or_else(|| class.title.by_ref()))
}

pub(super) fn detail<'t>(
    tool: &'t Tool<'_>,
    kind: Kind,
    parent: Option<&'t str>,
    is_closed: bool,
) -> wire::ToolDetail<'t> {
    let result = tool.result.as_ref();
    wire::ToolDetail {
        tool_name: Some(&tool.name),
        tool_input: tool.input.as_ref(),
        message_id: tool.group.as_deref(),
        parent_tool_use_id: parent,
        changes: changes(tool, kind),
        tool_use_id: is_closed.then(|| tool.id.as_str()),
        content: result.map(|it| &it.content),
        is_error: result.map(|it| it.is_error),
        exit_code: tool.class.exit_code,
    }
}

/// Why a call that has ended has no result.
pub(super) fn why_no_result(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok | Status::Error | Status::Denied => None,
        Status::Cancelled => Some("stopped before it had a result"),
        Status::Lost => Some("the run ended before it had a result"),
    }
}

fn changes<'t>(tool: &'t Tool<'_>, kind: wire::Kind) -> Vec<wire::Change<'t>> {
    if kind != Kind::FileChange {
        return Vec::new();
    }
    // A patch of Codex may add one file and change another; the class knows one kind for all.
    let by_file = super::codex::changes(tool);
    if !by_file.is_empty() {
        return by_file;
    }
    let kind = change_kind(tool.class.change);
    let paths = tool.class.paths.iter();
    paths
        .map(|it| wire::Change {
            path: it.path.by_ref(),
            kind,
        })
        .collect()
}

pub(super) fn change_kind(change: Option<Change>) -> wire::ChangeKind {
    match change {
        Some(Change::Add) => wire::ChangeKind::Add,
        Some(Change::Delete) => wire::ChangeKind::Delete,
        // Takopi has no kind for a file of which only the result tells whether it is new.
        Some(Change::Update) | None => wire::ChangeKind::Update,
    }
}

/// The paths of a call, seen from the working directory.
fn paths<'t>(tool: &'t Tool<'_>, cwd: Option<&str>) -> Option<Text<'t>> {
    match &tool.class.paths[..] {
        [] => None,
        [path] => Some(relative(&path.path, cwd)),
        paths => {
            let paths = paths
                .iter()
                .map(|it| relative(&it.path, cwd).to_str().into_owned());
            Some(Text::new(paths.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// `path` without the working directory in front.
pub(super) fn relative<'t>(path: &'t Text<'_>, cwd: Option<&str>) -> Text<'t> {
    let Some(cwd) = cwd
        .map(|it| it.trim_end_matches('/'))
        .filter(|it| !it.is_empty())
    else {
        return path.by_ref();
    };
    match path.to_str().strip_prefix(cwd) {
        Some("") => Text::new("."),
        Some(rest) if rest.starts_with('/') => Text::Plain(Cow::Owned(rest[1..].to_owned())),
        Some(_) | None => path.by_ref(),
    }
}
