//! The tools that OpenHands has itself, for the `native` profile: shell, files, search, task list.
//!
//! A call that fits none of them, or holds something theirs cannot (several edits at once, a
//! notebook), stays generic. Loading these kinds needs `openhands.tools` besides the SDK.

use std::borrow::Cow;

use model::{Change, Raw, Text, Tool, ToolKind};

use crate::wire::lenient::{Any, Flag, List, Num, Str};
use crate::wire::openhands::{Action, EditorCommand, ObservationDetail, Task, TaskStatus};
use crate::wire::scanner;

object! {
    /// The keys that the classification has no field for.
    NativeInput {
        timeout: Num = "timeout",
        offset: Num = "offset",
        limit: Num = "limit",
        path: Any<'a> = "path",
        glob: Any<'a> = "glob",
        todos: List<NativeTodo<'a>> = "todos",
    }

    NativeTodo {
        content: Any<'a> = "content",
        status: Str<'a> = "status",
    }

    /// What Claude Code adds to the text of a result.
    ClaudeDetails {
        filenames: List<Str<'a>> = "filenames",
        truncated: Flag = "truncated",
        original_file: Any<'a> = "originalFile",
        replace_all: Flag = "replaceAll",
        user_modified: Flag = "userModified",
    }
}

/// The action of a call that OpenHands has a tool for.
pub(super) fn action<'a>(tool: &'a Tool<'_>) -> Option<Action<'a>> {
    let class = &tool.class;
    let input = NativeInput::read(tool.input.as_ref()?)?;
    match class.kind {
        ToolKind::Shell => Some(Action::TerminalAction {
            command: class.command.as_ref()?.by_ref(),
            timeout: seconds(&tool.name, input.timeout),
        }),
        ToolKind::Read => match &*class.paths {
            // The editor of OpenHands views one file at a time.
            [place] => Some(Action::FileEditorAction {
                command: EditorCommand::View,
                path: place.path.by_ref(),
                file_text: None,
                old_str: None,
                new_str: None,
                view_range: range(&input),
            }),
            _ => None,
        },
        ToolKind::Edit | ToolKind::Write => edit(tool),
        // Claude Code's `TaskCreate` has one entry; a plan of OpenHands is always whole.
        ToolKind::Todo if input.todos.0.is_empty() => None,
        ToolKind::Todo => Some(Action::TaskTrackerAction {
            command: "plan",
            task_list: input.todos.0.iter().map(task).collect(),
        }),
        ToolKind::Search => search(tool, &input),
        ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Fetch
        | ToolKind::WebSearch
        | ToolKind::Mcp
        | ToolKind::Task
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Mode
        | ToolKind::Other => None,
    }
}

/// What came back from that action.
pub(super) fn observation<'a>(tool: &'a Tool<'_>, is_error: bool) -> Option<ObservationDetail<'a>> {
    let structured = ClaudeDetails::of(tool);
    match action(tool)? {
        Action::TerminalAction { command, .. } => Some(ObservationDetail::TerminalObservation {
            command,
            // A command that succeeded without reporting one exited with 0.
            exit_code: tool.class.exit_code.or((!is_error).then_some(0)),
        }),
        Action::FileEditorAction {
            command,
            path,
            file_text,
            old_str,
            new_str,
            ..
        } => {
            let is_new = file_text.is_some() && tool.class.change == Some(Change::Add);
            let whole = match (file_text, old_str.zip(new_str)) {
                _ if is_error => None,
                (Some(text), _) => {
                    let before = tool.class.diffs.first().and_then(|it| it.old.as_ref());
                    Some((before.map(Text::by_ref), text))
                }
                (None, Some((old, new))) => structured.edited(&old, &new),
                (None, None) => None,
            };
            let (old_content, new_content) = whole.unzip();
            Some(ObservationDetail::FileEditorObservation {
                command,
                path,
                prev_exist: !is_new,
                old_content: old_content.flatten(),
                new_content,
            })
        }
        Action::TaskTrackerAction { command, task_list } => {
            Some(ObservationDetail::TaskTrackerObservation { command, task_list })
        }
        Action::GlobAction { pattern, path } => Some(ObservationDetail::GlobObservation {
            truncated: structured.truncated.is_true(),
            files: structured.files(),
            pattern,
            // The SDK requires a path.
            search_path: path.unwrap_or(Text::new(".")),
        }),
        Action::GrepAction {
            pattern,
            path,
            include,
        } => Some(ObservationDetail::GrepObservation {
            truncated: structured.truncated.is_true(),
            matches: structured.files(),
            pattern,
            search_path: path.unwrap_or(Text::new(".")),
            include_pattern: include,
        }),
        Action::MCPToolAction { .. }
        | Action::ExternalToolAction { .. }
        | Action::FinishAction { .. } => None,
    }
}

impl<'a> NativeInput<'a> {
    /// An input of any other type than an object has nothing to offer.
    fn read(raw: &'a Raw<'_>) -> Option<Self> {
        let input: Self = scanner::from_str(raw.get()).ok()?;
        input.is_object.then_some(input)
    }
}

impl<'a> ClaudeDetails<'a> {
    fn of(tool: &'a Tool<'_>) -> Self {
        let raw = tool.result.as_ref().and_then(|it| it.structured.as_ref());
        raw.and_then(|it| scanner::from_str(it.get()).ok())
            .unwrap_or_default()
    }

    fn files(self) -> Vec<Cow<'a, str>> {
        self.filenames.0.into_iter().filter_map(|it| it.0).collect()
    }

    /// The file before and after, if known for certain.
    fn edited(&self, old: &Text<'_>, new: &Text<'_>) -> Option<(Option<Text<'a>>, Text<'a>)> {
        let before = Text::from_json(self.original_file.0?);
        let (old, new) = (old.to_str(), new.to_str());
        let after = {
            let text = before.to_str();
            // The user may have changed the edit before it was applied.
            if self.user_modified.is_true() || old.is_empty() || !text.contains(&*old) {
                return None;
            }
            if self.replace_all.is_true() {
                text.replace(&*old, &new)
            } else {
                text.replacen(&*old, &new, 1)
            }
        };
        Some((Some(before), Text::new(after)))
    }
}

/// One replacement, or one whole file; the text before a write is only known at its end.
fn edit<'a>(tool: &'a Tool<'_>) -> Option<Action<'a>> {
    let [diff] = &*tool.class.diffs else {
        return None;
    };
    let (command, file_text, old, new) = match tool.class.kind == ToolKind::Write {
        true => (EditorCommand::Create, Some(diff.new.by_ref()), None, None),
        false => {
            // `str_replace` needs something to replace.
            let old = diff.old.as_ref().filter(|it| !it.is_empty())?;
            (EditorCommand::StrReplace, None, Some(old), Some(&diff.new))
        }
    };
    Some(Action::FileEditorAction {
        command,
        path: diff.path.by_ref(),
        file_text,
        old_str: old.map(Text::by_ref),
        new_str: new.map(Text::by_ref),
        view_range: None,
    })
}

fn search<'a>(tool: &'a Tool<'_>, input: &NativeInput<'a>) -> Option<Action<'a>> {
    let pattern = tool.class.query.as_ref()?.by_ref();
    let path = input.path.0.map(Text::from_json);
    // Finding files by name and by content is one kind to us and two tools to OpenHands.
    match &*tool.name.to_ascii_lowercase() {
        "glob" => Some(Action::GlobAction { pattern, path }),
        "grep" => Some(Action::GrepAction {
            pattern,
            path,
            include: input.glob.0.map(Text::from_json),
        }),
        _ => None,
    }
}

fn task<'a>(todo: &NativeTodo<'a>) -> Task<'a> {
    Task {
        title: todo.content.0.map(Text::from_json).unwrap_or_default(),
        notes: "",
        status: match todo.status.as_deref() {
            Some("in_progress") => TaskStatus::InProgress,
            Some("completed") => TaskStatus::Done,
            Some(_) | None => TaskStatus::Todo,
        },
    }
}

/// Lines from and to, both included; -1 is the end of the file.
fn range(input: &NativeInput<'_>) -> Option<[i64; 2]> {
    let whole = |it: Num| it.as_u64().and_then(|it| i64::try_from(it).ok());
    let from = whole(input.offset).map(|it| it.max(1));
    match (from, whole(input.limit)) {
        (None, None) => None,
        (from, Some(limit)) => {
            let from = from.unwrap_or(1);
            Some([from, from.saturating_add(limit.max(1) - 1)])
        }
        (Some(from), None) => Some([from, -1]),
    }
}

/// Claude Code's shell counts its timeout in milliseconds.
fn seconds(name: &str, timeout: Num) -> Option<f64> {
    let timeout = timeout.0.filter(|it| it.is_finite() && *it >= 0.0)?;
    (name == "Bash").then_some(timeout / 1000.0)
}
