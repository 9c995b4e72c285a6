//! The input of a call: the keys that mean something, of all agents together, and what they say about
//! files.

use model::{Diff, Location, Raw, Text, ToolKind};

use super::patches::{self, PatchedFile};
use crate::wire::lenient::{Any, Flag, List, Num};
use crate::wire::scanner;

object! {
    /// The input keys that mean something, of all agents together.
    ToolInput {
        command: Any<'a> = "command",
        cmd: Any<'a> = "cmd",
        file_path: Any<'a> = "file_path",
        file_path_camel: Any<'a> = "filePath",
        notebook_path: Any<'a> = "notebook_path",
        absolute_path: Any<'a> = "absolute_path",
        path: Any<'a> = "path",
        dir_path: Any<'a> = "dir_path",
        directory: Any<'a> = "directory",
        source: Any<'a> = "source",
        destination: Any<'a> = "destination",
        pattern: Any<'a> = "pattern",
        query: Any<'a> = "query",
        url: Any<'a> = "url",
        description: Any<'a> = "description",
        prompt: Any<'a> = "prompt",
        subject: Any<'a> = "subject",
        old_string: Any<'a> = "old_string",
        old_string_camel: Any<'a> = "oldString",
        old_str: Any<'a> = "old_str",
        new_string: Any<'a> = "new_string",
        new_string_camel: Any<'a> = "newString",
        new_str: Any<'a> = "new_str",
        new_source: Any<'a> = "new_source",
        content: Any<'a> = "content",
        file_text: Any<'a> = "file_text",
        create: Flag = "create",
        edits: List<Edit<'a>> = "edits",
        offset: Num = "offset",
        start_line: Num = "start_line",
        end_line: Num = "end_line",
        limit: Num = "limit",
        insert_line: Num = "insert_line",
        view_range: List<Num> = "view_range",
        questions: List<Question<'a>> = "questions",
        changes: List<PatchedFile<'a>> = "changes",
    }

    /// The input of a patch.
    FileChanges {
        changes: List<PatchedFile<'a>> = "changes",
    }

    Edit {
        old_string: Any<'a> = "old_string",
        new_string: Any<'a> = "new_string",
    }

    Question {
        question: Any<'a> = "question",
    }
}

impl<'a> ToolInput<'a> {
    pub(super) fn parse(raw: &Raw<'a>) -> Option<Self>
    where
        Self: 'a,
    {
        // Only a borrowed input can be taken apart without copying; an owned one is never classified twice.
        raw.borrowed_str()
            .and_then(|json| scanner::from_str(json).ok())
    }

    /// A command line; Codex gives it as a list of words.
    pub(super) fn command(&self) -> Option<Raw<'a>> {
        self.command.raw().or(self.cmd.raw())
    }
}

pub(super) fn text<'a>(value: Any<'a>) -> Option<Text<'a>> {
    value.text()
}

pub(super) fn filled(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|it| !it.is_blank())
}

/// The files that a call names, with the line it begins at.
pub(super) fn locations<'a>(kind: ToolKind, input: &ToolInput<'a>) -> Vec<Location<'a>> {
    // A path in the words of a command or a task is not one that the call itself touches.
    if matches!(
        kind,
        ToolKind::Shell | ToolKind::Task | ToolKind::Todo | ToolKind::Ask
    ) {
        return Vec::new();
    }
    let first = input.view_range.0.first();
    let line = (first.copied().unwrap_or(input.insert_line).as_u64())
        .or(input.offset.as_u64())
        .or(input.start_line.as_u64())
        // ACP counts lines from 1, and an offset may be 0.
        .map(|line| line.max(1));
    let keys = [
        input.file_path,
        input.file_path_camel,
        input.notebook_path,
        input.absolute_path,
        input.path,
        input.dir_path,
        input.directory,
        input.source,
        input.destination,
    ];
    let changed = input.changes.0.iter().map(|it| it.path);
    keys.into_iter()
        .chain(changed)
        .filter_map(|key| filled(text(key)))
        .map(|path| Location { path, line })
        .collect()
}

/// What a call changes in a file.
pub(super) fn diffs<'a>(kind: ToolKind, input: &ToolInput<'a>) -> Vec<Diff<'a>> {
    if !input.changes.0.is_empty() {
        return patches::diffs(&input.changes.0);
    }
    let path = [
        input.file_path,
        input.file_path_camel,
        input.notebook_path,
        input.absolute_path,
        input.path,
    ]
    .into_iter()
    .find_map(text);
    let Some(path) = path else { return Vec::new() };
    let diff = |old: Option<Text<'a>>, new: Text<'a>| Diff {
        path: path.clone(),
        old,
        new,
    };
    if kind == ToolKind::Write {
        // What the file held before is not in the input.
        let new = text(input.content).or(text(input.file_text));
        return new.map(|new| diff(None, new)).into_iter().collect();
    }
    if kind != ToolKind::Edit {
        return Vec::new();
    }
    if !input.edits.0.is_empty() {
        return (input.edits.0.iter())
            .filter_map(|it| Some(diff(Some(text(it.old_string)?), text(it.new_string)?)))
            .collect();
    }
    let old = text(input.old_string)
        .or(text(input.old_string_camel))
        .or(text(input.old_str));
    let new = text(input.new_string)
        .or(text(input.new_string_camel))
        .or(text(input.new_str));
    let (old, new) = match (old, new) {
        // Without a new text the old one is deleted.
        (Some(old), new) => (old, new.unwrap_or_default()),
        // What an inserted line or a changed cell replaces is not in the input.
        (None, new) => match new.or(text(input.new_source)) {
            Some(new) => (Text::EMPTY, new),
            None => return Vec::new(),
        },
    };
    vec![diff(Some(old), new)]
}
