//! Tool results: how a call ended, and what only its result tells.

use model::{ItemId, Raw, Status, Text, Tool, ToolKind, ToolResult};

use super::{Claude, FrameContext};
use crate::readers::subagents;
use crate::tools;
use crate::wire::claude::{self as wire, Block};
use crate::wire::scanner;

impl Claude {
    pub(super) fn tool_result<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        block: Block<'c>,
        structured: Option<Raw<'c>>,
        meta: Option<Raw<'c>>,
    ) {
        let Some(id) = block.tool_use_id.str() else {
            return;
        };
        let id = ItemId::new(id);
        // Recordings that begin in the middle, or a full list of open items, have results without
        // calls.
        if !self.lifecycle.is_open(&id) {
            self.lifecycle.open_unseen_call(cx, &id);
        }
        let is_error = block.is_error.is_true();
        let verdict = self.verdict(&id, is_error, meta.as_ref());
        self.lifecycle.settle_by_status(cx, &id, verdict);
        let content = block.content.raw();
        // What Claude tells its model about a call that was interrupted is no output of it.
        let content = content.filter(|it| verdict != Status::Cancelled || !is_refusal(it));
        let content = content.unwrap_or_else(|| Raw::of(&""));
        let tool = self.lifecycle.open_tool(&id);
        let kind = tool.map(|it| it.class.kind);
        let is_notebook = tool.is_some_and(|it| it.name == "NotebookEdit");
        let details = match kind {
            // The structured result of an edit repeats the whole file and adds nothing that is
            // shown: not parsed.
            Some(ToolKind::Edit) if !is_notebook => None,
            Some(ToolKind::Write | ToolKind::Edit | ToolKind::Task | ToolKind::Todo) => structured
                .as_ref()
                .and_then(|it| it.borrowed_str())
                .and_then(|json| scanner::from_str(json).ok()),
            _ => None,
        };
        let details: wire::ToolUseResult<'c> = details.unwrap_or_default();
        if verdict == Status::Ok && kind == Some(ToolKind::Todo) {
            self.task_tool_done(cx, &id, &details);
        }
        // A background agent's call returns at once; `task_notification` ends the agent itself.
        if kind == Some(ToolKind::Task) && !details.is_async.is_true() {
            subagents::call_ended(&mut self.lifecycle, cx, id.as_str(), verdict);
        }
        let result = ToolResult {
            structured,
            meta,
            ..ToolResult::new(content, is_error)
        };
        self.lifecycle
            .close_tool(cx, &id, verdict, result, |tool| refine(tool, &details));
    }

    /// How a call ended: run, failed, not allowed, or stopped.
    fn verdict(&mut self, id: &ItemId<'_>, is_error: bool, meta: Option<&Raw<'_>>) -> Status {
        let was_denied = self.denied.iter().position(|it| it == id);
        // Before `is_error`: the notice of the denial, or the host's answer, is certain.
        if let Some(at) = was_denied {
            self.denied.remove(at);
            return Status::Denied;
        }
        if !is_error {
            return Status::Ok;
        }
        let note = meta
            .and_then(|it| it.borrowed_str())
            .and_then(|json| note_about(json, id));
        let Some(note) = note else {
            return Status::Error;
        };
        let is_rejected = note.permission_decision.decision.as_deref() == Some("reject");
        match note.non_execution_kind.as_deref() {
            // An interrupt rejects all running calls without a decision.
            Some("user-rejected") if !is_rejected && self.lifecycle.ask_of_item(id).is_none() => {
                Status::Cancelled
            }
            Some(_) => Status::Denied,
            None if is_rejected => Status::Denied,
            None => Status::Error,
        }
    }
}

/// The words that Claude puts in place of the result of a call that did not run to its end.
fn is_refusal(content: &Raw<'_>) -> bool {
    content
        .get()
        .starts_with("\"The user doesn't want to proceed with this tool use.")
}

/// What the agent notes beside a result: whether and why the call did not run.
fn note_about<'a>(meta: &'a str, id: &ItemId<'_>) -> Option<wire::ToolResultMeta<'a>> {
    let notes: Vec<wire::ToolResultMeta<'a>> = scanner::from_str(meta).ok()?;
    notes
        .into_iter()
        .find(|it| it.id.as_deref().is_none_or(|it| it == id.as_str()))
}

/// What only the result tells about a call.
fn refine<'r>(tool: &mut Tool<'r>, details: &wire::ToolUseResult<'r>) {
    match tool.class.kind {
        ToolKind::Shell => {
            tool.class.exit_code = tool
                .result
                .as_ref()
                .and_then(|result| match result.is_error {
                    true => tools::exit_code(result.content.get().trim_start_matches('"')),
                    // Claude Code prints no exit code of a command that worked; any other is an
                    // error result.
                    false => Some(0),
                });
        }
        ToolKind::Write => {
            tool.class.change = match details.r#type.as_deref() {
                Some("create") => Some(model::Change::Add),
                Some("update") => Some(model::Change::Update),
                _ => tool.class.change,
            };
            // Only the result of a `Write` says what the file held before.
            if let (Some(old), Some(diff)) = (details.original_file.0, tool.class.diffs.first_mut())
            {
                diff.old = Some(Text::from_json(old));
            }
        }
        ToolKind::Edit => {
            tool.class.change = tool.class.change.or(Some(model::Change::Update));
            // Only the result tells what a changed cell held before.
            if let (Some(old), Some(diff)) = (details.old_source.0, tool.class.diffs.first_mut()) {
                diff.old = Some(Text::from_json(old));
            }
        }
        ToolKind::Delete => tool.class.change = Some(model::Change::Delete),
        ToolKind::Read
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
        | ToolKind::Other => (),
    }
}
