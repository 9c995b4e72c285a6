//! What the tools of all agents do, by their names.

use model::{Change, ToolKind};

use super::input::ToolInput;
use super::patches;

/// `mcp__server__tool` taken apart, and Gemini's `mcp_server_tool`, whose servers have no `_`.
pub(super) fn mcp_name(name: &str) -> Option<(&str, &str)> {
    let parts = match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.strip_prefix("mcp_")?.split_once('_'),
    };
    parts.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

pub(super) fn kind(name: &str, input: &ToolInput<'_>) -> ToolKind {
    // Claude Code writes `Bash`, OpenCode `bash`.
    let lower = name.to_ascii_lowercase();
    match &*lower {
        "bash" | "shell" | "powershell" | "killshell" | "terminal" | "execute_bash"
        | "run_shell_command" | "local_shell" | "exec_command" | "command_execution"
        | "execute" => ToolKind::Shell,
        "read" | "read_file" | "read_many_files" | "view" | "view_image" | "notebookread" => {
            ToolKind::Read
        }
        // Codex has one item for all changes: only the files tell what a patch does.
        "edit" | "multiedit" | "notebookedit" | "replace" | "apply_patch" | "patch"
        | "edit_file" | "file_change" => match patches::one_change(&input.changes.0) {
            Some(Change::Add) => ToolKind::Write,
            Some(Change::Delete) => ToolKind::Delete,
            Some(Change::Update) | None => ToolKind::Edit,
        },
        // One tool for everything about files: its command tells which.
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
        // Claude Code lists `Task` among its tools and calls it `Agent`.
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
