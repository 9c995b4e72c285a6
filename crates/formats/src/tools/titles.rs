//! The title of a call: one line for people.

use model::{Class, Text, ToolKind};

use super::input::{ToolInput, filled, text};

pub(super) fn title<'a>(
    name: &str,
    class: &Class<'a>,
    input: &ToolInput<'a>,
    cwd: Option<&str>,
) -> Option<Text<'a>> {
    let path = match &class.paths[..] {
        [] => None,
        [path] => Some(relative(&path.path, cwd)),
        // A move has two paths and is known by where it began.
        [path, ..] if input.changes.0.is_empty() => Some(relative(&path.path, cwd)),
        [first, second] => {
            let (first, second) = (relative(&first.path, cwd), relative(&second.path, cwd));
            Some(format!("{first} and {second}"))
        }
        [first, rest @ ..] => {
            let first = relative(&first.path, cwd);
            Some(format!("{first} and {} more", rest.len()))
        }
    };
    let with_path = |verb: &str| {
        path.as_ref()
            .map(|path| Text::new(format!("{verb} {path}")))
    };
    match class.kind {
        // To the letter: it is what people decide by.
        ToolKind::Shell => filled(class.command.clone()),
        ToolKind::Read => path
            .as_ref()
            .map(|path| Text::new(format!("Read {path}{}", lines(input)))),
        ToolKind::Edit => with_path("Edit"),
        ToolKind::Write => with_path("Write"),
        ToolKind::Delete => with_path("Delete"),
        ToolKind::Move => with_path("Move"),
        ToolKind::Search => match (&class.query, &path) {
            (Some(query), Some(path)) => Some(Text::new(format!("{name} {query} in {path}"))),
            (Some(query), None) => Some(Text::new(format!("{name} {query}"))),
            (None, Some(path)) => Some(Text::new(format!("{name} {path}"))),
            (None, None) => None,
        },
        ToolKind::Fetch => class
            .query
            .as_ref()
            .map(|url| Text::new(format!("Fetch {url}"))),
        ToolKind::WebSearch => (class.query.as_ref())
            // Codex starts a search before its query is known.
            .filter(|it| !it.is_blank())
            .map(|query| Text::new(format!("Search \"{query}\""))),
        ToolKind::Task => filled(text(input.description))
            .or(filled(text(input.prompt)))
            // OpenHands' `delegate` says by a command whether it starts agents or gives them work.
            .or_else(|| {
                let command = text(input.command).filter(|it| it.to_str() != name)?;
                Some(Text::new(format!("{name} {command}")))
            }),
        ToolKind::Todo => text(input.subject).map(|subject| Text::new(format!("{name} {subject}"))),
        ToolKind::Ask => input
            .questions
            .0
            .first()
            .and_then(|it| filled(text(it.question))),
        ToolKind::Mcp | ToolKind::Think | ToolKind::Mode | ToolKind::Other => None,
    }
}

pub(super) fn fallback_title(name: &str) -> Text<'static> {
    if name.trim().is_empty() {
        Text::new("tool")
    } else {
        Text::new(name.to_owned())
    }
}

/// Which lines a read covers, as ` (10 - 14)`.
fn lines(input: &ToolInput<'_>) -> String {
    if let [from, to] = input.view_range.0[..]
        && let (Some(from), Some(to)) = (from.as_u64(), to.as_u64())
    {
        return format!(" ({from} - {to})");
    }
    if let (Some(from), Some(to)) = (input.start_line.as_u64(), input.end_line.as_u64()) {
        return format!(" ({from} - {to})");
    }
    match (input.offset.as_u64(), input.limit.as_u64()) {
        (Some(from), Some(n)) if n > 0 => format!(" ({} - {})", from.max(1), from.max(1) + n - 1),
        (Some(from), _) => format!(" (from line {})", from.max(1)),
        (None, Some(n)) => format!(" (1 - {n})"),
        (None, None) => String::new(),
    }
}

/// The path relative to the working directory.
fn relative(path: &Text<'_>, cwd: Option<&str>) -> String {
    let path = path.to_str();
    let rest = cwd
        .filter(|it| !it.is_empty())
        .and_then(|cwd| path.strip_prefix(cwd));
    match rest {
        Some("") => ".".to_owned(),
        // `/work/a` is not inside `/w`.
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        Some(_) | None => path.into_owned(),
    }
}
