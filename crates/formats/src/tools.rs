//! What a tool call means: one place that turns a name and an input into a kind, a title and facts.
//!
//! Covers the tools of Claude Code, Codex, OpenCode, Gemini and OpenHands, and MCP names. Writers
//! take what they show from here and never look at names themselves. An unknown tool is
//! [`ToolKind::Other`], with its name as the title.

mod approval;
mod commands;
mod patches;
mod repeats;

use std::borrow::Cow;

use model::{Change, Class, Diff, Location, Mcp, Raw, Text, ToolKind};

pub(crate) use self::approval::approval_title;
use self::patches::PatchedFile;
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

/// Classifies a call; `cwd` shortens the paths in the title.
pub(crate) fn classify<'a>(name: &str, input: Option<&Raw<'a>>, cwd: Option<&str>) -> Class<'a> {
    let input = input.and_then(ToolInput::parse).unwrap_or_default();
    classify_fields(name, &input, cwd)
}

/// Classifies a call whose input is spread over the fields of a larger object.
pub(crate) fn classify_fields<'a>(
    name: &str,
    input: &ToolInput<'a>,
    cwd: Option<&str>,
) -> Class<'a> {
    if let Some((server, tool)) = mcp_name(name) {
        let mut class = Class::plain(ToolKind::Mcp, Text::new(tool.to_owned()));
        class.mcp = Some(Mcp {
            server: Cow::Owned(server.to_owned()),
            tool: Cow::Owned(tool.to_owned()),
        });
        return class;
    }
    let kind = kind(name, input);
    let mut class = Class::plain(kind, Text::EMPTY);
    class.paths = locations(kind, input);
    class.diffs = diffs(kind, input);
    class.change = patches::one_change(&input.changes.0);
    if matches!(kind, ToolKind::Write | ToolKind::Edit) && input.create.is_true() {
        class.change = Some(Change::Add);
    }
    match kind {
        ToolKind::Shell => class.command = input.command().map(commands::line),
        ToolKind::Search => class.query = text(input.pattern).or(text(input.query)),
        // Gemini's fetch has its addresses in the words of a prompt.
        ToolKind::Fetch => class.query = text(input.url).or(text(input.prompt).map(address_in)),
        ToolKind::WebSearch => class.query = text(input.query),
        ToolKind::Read
        | ToolKind::Edit
        | ToolKind::Write
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Mcp
        | ToolKind::Task
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Mode
        | ToolKind::Other => (),
    }
    class.title = title(name, &class, input, cwd).unwrap_or_else(|| fallback_title(name));
    repeats::shorten(&mut class);
    class
}

/// Classifies a call that an agent has described itself, as agents do over ACP: the tool's name may
/// be missing, the kind is one of ACP's, and the title is the agent's own.
pub(crate) fn classify_acp<'a>(
    name: Option<&str>,
    kind: Option<&str>,
    title: Option<Text<'a>>,
    input: Option<&Raw<'a>>,
    cwd: Option<&str>,
) -> Class<'a> {
    let named = name.map(|it| classify(it, input, cwd));
    let mut class = match named {
        Some(class) if class.kind != ToolKind::Other => class,
        named => {
            let stand_in = match kind {
                Some("other") | None => "",
                // The kinds of ACP are names that are known here.
                Some(kind) => kind,
            };
            match named {
                Some(class) if stand_in.is_empty() => class,
                Some(_) | None => classify(stand_in, input, cwd),
            }
        }
    };
    if let Some(title) = filled(title) {
        class.title = title;
    }
    class
}

/// What a tool of this name does, as far as the name alone tells.
pub(crate) fn kind_of(name: &str) -> ToolKind {
    kind(name, &ToolInput::default())
}

/// The exit code in a shell's error text: `Exit code N` at its start.
pub(crate) fn exit_code(text: &str) -> Option<i32> {
    let digits = text.strip_prefix("Exit code ")?;
    let end = digits
        .find(|it: char| !it.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// `mcp__server__tool` taken apart, and Gemini's `mcp_server_tool`, whose servers have no `_`.
fn mcp_name(name: &str) -> Option<(&str, &str)> {
    let parts = match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.strip_prefix("mcp_")?.split_once('_'),
    };
    parts.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

fn kind(name: &str, input: &ToolInput<'_>) -> ToolKind {
    let lower = name.to_ascii_lowercase();
    match &*lower {
        "bash" | "shell" | "powershell" | "killshell" | "terminal" | "execute_bash"
        | "run_shell_command" | "local_shell" | "exec_command" | "command_execution"
        | "execute" => ToolKind::Shell,
        "read" | "read_file" | "read_many_files" | "view" | "view_image" | "notebookread" => {
            ToolKind::Read
        }
        "edit" | "multiedit" | "notebookedit" | "replace" | "apply_patch" | "patch"
        | "edit_file" | "file_change" => match patches::one_change(&input.changes.0) {
            Some(Change::Add) => ToolKind::Write,
            Some(Change::Delete) => ToolKind::Delete,
            Some(Change::Update) | None => ToolKind::Edit,
        },
        "str_replace_editor" | "file_editor" | "planning_file_editor" => match input.command() {
            Some(command) if command.get() == "\"view\"" => ToolKind::Read,
            Some(command) if command.get() == "\"create\"" => ToolKind::Write,
            Some(_) | None => ToolKind::Edit,
        },
        "write" | "write_file" | "create_file" => ToolKind::Write,
        "delete" | "delete_file" => ToolKind::Delete,
        "move" | "move_file" | "rename" => ToolKind::Move,
        "grep"
        | "glob"
        | "find"
        | "ls"
        | "list"
        | "list_directory"
        | "search"
        | "search_file_content"
        | "grep_search"
        | "file_search"
        | "codesearch"
        | "lsp"
        | "toolsearch" => ToolKind::Search,
        "webfetch" | "web_fetch" | "fetch" | "browser" | "browser_use" => ToolKind::Fetch,
        "websearch" | "web_search" | "google_web_search" => ToolKind::WebSearch,
        "task"
        | "agent"
        | "delegate"
        | "spawn_agent"
        | "send_input"
        | "wait"
        | "close_agent"
        | "start_child_conversation"
        | "workflow"
        | "invoke_agent"
        | "delegate_to_agent"
        | "codebase_investigator" => ToolKind::Task,
        "todowrite" | "todoread" | "task_tracker" | "update_plan" | "write_todos"
        | "taskcreate" | "taskupdate" | "tasklist" | "taskget" => ToolKind::Todo,
        "askuserquestion" | "ask_user" | "question" => ToolKind::Ask,
        "think" => ToolKind::Think,
        "exitplanmode" | "enterplanmode" | "plan_exit" | "plan_enter" | "exit_plan_mode"
        | "enter_plan_mode" | "switch_mode" => ToolKind::Mode,
        other if other.starts_with("browser_") => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn title<'a>(
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

fn fallback_title(name: &str) -> Text<'static> {
    if name.trim().is_empty() {
        Text::new("tool")
    } else {
        Text::new(name.to_owned())
    }
}

fn locations<'a>(kind: ToolKind, input: &ToolInput<'a>) -> Vec<Location<'a>> {
    if matches!(
        kind,
        ToolKind::Shell | ToolKind::Task | ToolKind::Todo | ToolKind::Ask
    ) {
        return Vec::new();
    }
    let line = input
        .view_range
        .0
        .first()
        .copied()
        .or(Some(input.insert_line));
    let line = line
        .and_then(Num::as_u64)
        .or(input.offset.as_u64())
        .or(input.start_line.as_u64())
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

fn diffs<'a>(kind: ToolKind, input: &ToolInput<'a>) -> Vec<Diff<'a>> {
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
    match kind {
        ToolKind::Edit if !input.edits.0.is_empty() => (input.edits.0.iter())
            .filter_map(|it| Some(diff(Some(text(it.old_string)?), text(it.new_string)?)))
            .collect(),
        ToolKind::Edit => {
            let old = text(input.old_string)
                .or(text(input.old_string_camel))
                .or(text(input.old_str));
            let new = text(input.new_string)
                .or(text(input.new_string_camel))
                .or(text(input.new_str));
            match (old, new) {
                (Some(old), Some(new)) => vec![diff(Some(old), new)],
                // What an inserted line or a changed cell replaces is not in the input.
                (None, new) => new
                    .or(text(input.new_source))
                    .map(|new| diff(Some(Text::EMPTY), new))
                    .into_iter()
                    .collect(),
                (Some(old), None) => vec![diff(Some(old), Text::EMPTY)],
            }
        }
        ToolKind::Write => {
            let new = text(input.content).or(text(input.file_text));
            new.map(|new| diff(None, new)).into_iter().collect()
        }
        ToolKind::Shell
        | ToolKind::Read
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Search
        | ToolKind::Fetch
        | ToolKind::WebSearch
        | ToolKind::Mcp
        | ToolKind::Task
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Mode
        | ToolKind::Other => Vec::new(),
    }
}

impl<'a> ToolInput<'a> {
    fn parse(raw: &Raw<'a>) -> Option<Self>
    where
        Self: 'a,
    {
        // Only a borrowed input can be taken apart without copying; an owned one is never classified twice.
        raw.borrowed_str()
            .and_then(|json| scanner::from_str(json).ok())
    }

    /// A command line; Codex gives it as a list of words.
    fn command(&self) -> Option<Raw<'a>> {
        self.command.raw().or(self.cmd.raw())
    }
}

fn text<'a>(value: Any<'a>) -> Option<Text<'a>> {
    value.raw().map(Text::from)
}

fn filled(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|it| !it.is_blank())
}

/// The first address in a text, or the text when there is none.
fn address_in(text: Text<'_>) -> Text<'_> {
    let words = text.to_str();
    let mut words = words.split_whitespace();
    match words.find(|it| it.starts_with("http://") || it.starts_with("https://")) {
        Some(address) => Text::new(address.to_owned()),
        None => text,
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
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        Some(_) | None => path.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, input: &str, expect: Expect) {
        let raw: Raw<'_> = serde_json::from_str(input).unwrap();
        let class = classify(name, Some(&raw), Some("/w"));
        expect.assert_eq(&serde_json::to_string(&class).unwrap());
    }

    #[test]
    fn shell_commands() {
        check(
            "Bash",
            r#"{"command":"cat /w/a \"b\""}"#,
            expect![[r#"{"kind":"shell","title":"cat /w/a \"b\"","command":"cat /w/a \"b\""}"#]],
        );
        check(
            "execute_bash",
            r#"{"command":"ls"}"#,
            expect![[r#"{"kind":"shell","title":"ls","command":"ls"}"#]],
        );
        check(
            "Bash",
            "{}",
            expect![[r#"{"kind":"shell","title":"Bash"}"#]],
        );
        check(
            "shell",
            r#"{"command":["git","status"]}"#,
            expect![[r#"{"kind":"shell","title":"git status","command":"git status"}"#]],
        );
        check(
            "shell",
            r#"{"command":["bash","-lc","echo 'it is' > a"]}"#,
            expect![[
                r#"{"kind":"shell","title":"bash -lc 'echo '\\''it is'\\'' > a'","command":"bash -lc 'echo '\\''it is'\\'' > a'"}"#
            ]],
        );
        check(
            "shell",
            r#"{"command":["ls",7]}"#,
            expect![[r#"{"kind":"shell","title":"[\"ls\",7]","command":"[\"ls\",7]"}"#]],
        );
    }

    #[test]
    fn patches() {
        check(
            "file_change",
            r#"{"changes":[{"path":"/w/a","kind":"add"},{"path":"/w/b","kind":"delete"},{"path":"/w/c","kind":"update"}]}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a and 2 more","paths":[{"path":"/w/a"},{"path":"/w/b"},{"path":"/w/c"}]}"#
            ]],
        );
        check(
            "file_change",
            r#"{"changes":[{"path":"/w/a","kind":{"type":"add"},"diff":"x\n"},{"path":"/w/b","kind":{"type":"add"},"diff":""}]}"#,
            expect![[
                r#"{"kind":"write","title":"Write a and b","paths":[{"path":"/w/a"},{"path":"/w/b"}],"diffs":[{"path":"/w/a","new":"x\n"},{"path":"/w/b","new":""}],"change":"add"}"#
            ]],
        );
        check(
            "file_change",
            r#"{"changes":[{"path":"/w/a","kind":{"type":"delete"},"diff":"x\n"}]}"#,
            expect![[
                r#"{"kind":"delete","title":"Delete a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x\n","new":""}],"change":"delete"}"#
            ]],
        );
        check(
            "file_change",
            r#"{"changes":[{"path":"/w/a","kind":{"type":"update"},"diff":"@@ -1,2 +1,2 @@\n x\n-y\n+z\n@@ -9 +9 @@\n-p\n+q\n\\ No newline at end of file\n"}]}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x\ny\n","new":"x\nz\n"},{"path":"/w/a","old":"p\n","new":"q\n"}],"change":"update"}"#
            ]],
        );
    }

    #[test]
    fn files() {
        check(
            "Read",
            r#"{"file_path":"/w/src/a.py","offset":10,"limit":5}"#,
            expect![[
                r#"{"kind":"read","title":"Read src/a.py (10 - 14)","paths":[{"path":"/w/src/a.py","line":10}]}"#
            ]],
        );
        check(
            "Edit",
            r#"{"file_path":"/w/a.py","old_string":"a","new_string":"b","replace_all":false}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a.py","paths":[{"path":"/w/a.py"}],"diffs":[{"path":"/w/a.py","old":"a","new":"b"}]}"#
            ]],
        );
        check(
            "MultiEdit",
            r#"{"file_path":"/w/a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"a","new":"b"},{"path":"/w/a","old":"c","new":"d"}]}"#
            ]],
        );
        check(
            "Write",
            r#"{"file_path":"/other/n.txt","content":"x\ny"}"#,
            expect![[
                r#"{"kind":"write","title":"Write /other/n.txt","paths":[{"path":"/other/n.txt"}],"diffs":[{"path":"/other/n.txt","new":"x\ny"}]}"#
            ]],
        );
        check(
            "NotebookEdit",
            r#"{"notebook_path":"/w/nb.ipynb","cell_id":"c1","new_source":"print(2)"}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit nb.ipynb","paths":[{"path":"/w/nb.ipynb"}],"diffs":[{"path":"/w/nb.ipynb","old":"","new":"print(2)"}]}"#
            ]],
        );
        check(
            "file_editor",
            r#"{"command":"view","path":"/w/a.py","view_range":[3,9]}"#,
            expect![[
                r#"{"kind":"read","title":"Read a.py (3 - 9)","paths":[{"path":"/w/a.py","line":3}]}"#
            ]],
        );
        check(
            "str_replace_editor",
            r#"{"command":"insert","path":"/w/a.py","insert_line":4,"new_str":"x"}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a.py","paths":[{"path":"/w/a.py","line":4}],"diffs":[{"path":"/w/a.py","old":"","new":"x"}]}"#
            ]],
        );
        check(
            "write_file",
            r#"{"file_path":"/w/a","content":""}"#,
            expect![[
                r#"{"kind":"write","title":"Write a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","new":""}]}"#
            ]],
        );
    }

    #[test]
    fn looking_things_up() {
        check(
            "Grep",
            r#"{"pattern":"TODO","path":"/w/src"}"#,
            expect![[
                r#"{"kind":"search","title":"Grep TODO in src","paths":[{"path":"/w/src"}],"query":"TODO"}"#
            ]],
        );
        check(
            "Glob",
            r#"{"pattern":"**/*.rs"}"#,
            expect![[r#"{"kind":"search","title":"Glob **/*.rs","query":"**/*.rs"}"#]],
        );
        check(
            "LS",
            r#"{"path":"/w"}"#,
            expect![[r#"{"kind":"search","title":"LS .","paths":[{"path":"/w"}]}"#]],
        );
        check(
            "WebSearch",
            r#"{"query":"rust ndjson"}"#,
            expect![[
                r#"{"kind":"web_search","title":"Search \"rust ndjson\"","query":"rust ndjson"}"#
            ]],
        );
        check(
            "WebFetch",
            r#"{"url":"https://example.com","prompt":"sum up"}"#,
            expect![[
                r#"{"kind":"fetch","title":"Fetch https://example.com","query":"https://example.com"}"#
            ]],
        );
    }

    #[test]
    fn the_rest() {
        check(
            "Agent",
            r#"{"description":"Count files","prompt":"count"}"#,
            expect![[r#"{"kind":"task","title":"Count files"}"#]],
        );
        check(
            "TaskCreate",
            r#"{"subject":"Search code"}"#,
            expect![[r#"{"kind":"todo","title":"TaskCreate Search code"}"#]],
        );
        check(
            "AskUserQuestion",
            r#"{"questions":[{"question":"Which color?"}]}"#,
            expect![[r#"{"kind":"ask","title":"Which color?"}"#]],
        );
        check(
            "ExitPlanMode",
            r#"{"plan":"do it"}"#,
            expect![[r#"{"kind":"mode","title":"ExitPlanMode"}"#]],
        );
        check(
            "mcp__github__create_issue",
            r#"{"title":"x"}"#,
            expect![[
                r#"{"kind":"mcp","title":"create_issue","mcp":{"server":"github","tool":"create_issue"}}"#
            ]],
        );
        check(
            "mcp__broken",
            "{}",
            expect![[r#"{"kind":"other","title":"mcp__broken"}"#]],
        );
        check("", "7", expect![[r#"{"kind":"other","title":"tool"}"#]]);
    }

    #[test]
    fn calls_that_an_agent_describes_itself() {
        let check = |name: Option<&str>, kind: &str, title: &str, input: &str, expect: Expect| {
            let raw: Raw<'_> = serde_json::from_str(input).unwrap();
            let title = Some(Text::new(title));
            let class = classify_acp(name, Some(kind), title, Some(&raw), None);
            expect.assert_eq(&serde_json::to_string(&class).unwrap());
        };
        check(
            None,
            "execute",
            "run the tests",
            r#"{"command":"make"}"#,
            expect![[r#"{"kind":"shell","title":"run the tests","command":"make"}"#]],
        );
        check(
            Some("Write"),
            "edit",
            "",
            r#"{"file_path":"/w/a","content":"x"}"#,
            expect![[
                r#"{"kind":"write","title":"Write /w/a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","new":"x"}]}"#
            ]],
        );
        check(
            Some("my_search"),
            "search",
            "",
            r#"{"pattern":"x"}"#,
            expect![[r#"{"kind":"search","title":"search x","query":"x"}"#]],
        );
        check(
            Some("my_tool"),
            "other",
            " ",
            "{}",
            expect![[r#"{"kind":"other","title":"my_tool"}"#]],
        );
        check(
            None,
            "brand_new",
            "",
            "{}",
            expect![[r#"{"kind":"other","title":"brand_new"}"#]],
        );
        check(
            Some("delegate"),
            "think",
            "",
            r#"{"command":"spawn"}"#,
            expect![[r#"{"kind":"task","title":"delegate spawn"}"#]],
        );
    }

    #[test]
    fn tools_of_opencode_and_gemini() {
        check(
            "edit",
            r#"{"filePath":"/w/a","oldString":"x","newString":"y"}"#,
            expect![[
                r#"{"kind":"edit","title":"Edit a","paths":[{"path":"/w/a"}],"diffs":[{"path":"/w/a","old":"x","new":"y"}]}"#
            ]],
        );
        check(
            "task",
            r#"{"description":"count","prompt":"p","subagent_type":"general"}"#,
            expect![[r#"{"kind":"task","title":"count"}"#]],
        );
        check(
            "lsp",
            r#"{"operation":"hover","filePath":"/w/a.rs","line":3}"#,
            expect![[r#"{"kind":"search","title":"lsp a.rs","paths":[{"path":"/w/a.rs"}]}"#]],
        );
        check(
            "read_file",
            r#"{"file_path":"/w/a","start_line":3,"end_line":9}"#,
            expect![[
                r#"{"kind":"read","title":"Read a (3 - 9)","paths":[{"path":"/w/a","line":3}]}"#
            ]],
        );
        check(
            "grep_search",
            r#"{"pattern":"x","dir_path":"/w/src"}"#,
            expect![[
                r#"{"kind":"search","title":"grep_search x in src","paths":[{"path":"/w/src"}],"query":"x"}"#
            ]],
        );
        check(
            "web_fetch",
            r#"{"prompt":"sum up https://example.com"}"#,
            expect![[
                r#"{"kind":"fetch","title":"Fetch https://example.com","query":"https://example.com"}"#
            ]],
        );
        check(
            "list_directory",
            r#"{"dir_path":"/w"}"#,
            expect![[r#"{"kind":"search","title":"list_directory .","paths":[{"path":"/w"}]}"#]],
        );
        check(
            "invoke_agent",
            r#"{"agent_name":"codebase_investigator","prompt":"look"}"#,
            expect![[r#"{"kind":"task","title":"look"}"#]],
        );
        check(
            "exit_plan_mode",
            "{}",
            expect![[r#"{"kind":"mode","title":"exit_plan_mode"}"#]],
        );
        check(
            "mcp_demo_echo",
            r#"{"text":"x"}"#,
            expect![[r#"{"kind":"mcp","title":"echo","mcp":{"server":"demo","tool":"echo"}}"#]],
        );
        check(
            "mcp_demo",
            "{}",
            expect![[r#"{"kind":"other","title":"mcp_demo"}"#]],
        );
    }

    #[test]
    fn exit_codes_are_read_from_the_text() {
        assert_eq!(exit_code("Exit code 3\nboom"), Some(3));
        assert_eq!(exit_code("Exit code "), None);
        assert_eq!(exit_code("exit 3"), None);
    }
}
