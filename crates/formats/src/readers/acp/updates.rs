//! What an agent says while it works: `session/update`, by its kinds.

use std::borrow::Cow;

use model::{
    Basis, Body, Compaction, Item, ItemId, Level, Notice, Plan, PlanEntry, PlanStatus, Scope,
    Status, Text, Tokens, Usage,
};

use super::texts::ChunkRole;
use super::wire::{self, Update};
use super::{Acp, FrameContext, MAX_COMMANDS};
use crate::readers::RunEnds;
use crate::readers::acp_tool_content;
use crate::readers::content;
use crate::wire::lenient::{Any, List, Object as _};

/// Entries kept; the rest of a longer plan is not shown.
const MAX_ENTRIES: usize = 1024;

impl Acp {
    pub(super) fn update<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        session: Option<&str>,
        mut update: Update<'c>,
        line: &'c str,
    ) {
        if !self.same_session(cx, session) {
            return;
        }
        let name = update.session_update.take().unwrap_or_default();
        if self.is_repeated(&name) {
            cx.extra.clear();
            self.n_skipped += 1;
            return;
        }
        cx.extra.extend(std::mem::take(update.extra()));
        let mut meta = self.enter(cx, update.meta);
        update.name.0 = update.name.0.or(meta.take_tool_name());
        if meta.separator.0 == Some(true) {
            // linkspan's own: it stands between two messages for clients that join them.
            return;
        }
        match &*name {
            "user_message_chunk" => self.chunk(cx, ChunkRole::User, &update),
            "agent_message_chunk" => self.chunk(cx, ChunkRole::Agent, &update),
            "agent_thought_chunk" => self.chunk(cx, ChunkRole::Thought, &update),
            "user_message" => self.whole(cx, ChunkRole::User, &update),
            "agent_message" => self.whole(cx, ChunkRole::Agent, &update),
            "agent_thought" => self.whole(cx, ChunkRole::Thought, &update),
            "tool_call" => self.call(cx, &update, &meta, true),
            "tool_call_update" => self.call(cx, &update, &meta, false),
            "tool_call_content_chunk" => self.output_chunk(cx, &update),
            "plan" => self.plan(cx, update.entries),
            "usage_update" => self.usage(cx, &update, update_in(line)),
            "available_commands_update" => self.commands(cx, &update, update_in(line)),
            "current_mode_update" => {
                let mode = update.current_mode_id.as_deref().map(str::to_owned);
                let is_new = mode != self.session.mode;
                self.session.mode = mode;
                if is_new {
                    self.emit_session(cx);
                }
            }
            "config_option_update" => {
                if self.configured(&update.config_options.0) {
                    self.emit_session(cx);
                }
                let said = Text::new("the options have changed");
                self.lifecycle.notice_with_frame(
                    cx,
                    Level::Debug,
                    "config_options",
                    said,
                    update_in(line),
                );
            }
            "session_info_update" => {
                let title = update.title.raw().map(Text::from).unwrap_or_default();
                self.lifecycle.notice_with_frame(
                    cx,
                    Level::Info,
                    "session_info",
                    title,
                    update_in(line),
                );
            }
            "notice" => self.on_session_info(cx, &update, update_in(line)),
            "compaction_update" => self.compaction(cx, &update),
            "compaction_summary_chunk" => self.summary(cx, &update),
            "state_update" => self.state(cx, &update, update_in(line)),
            "terminal_update" | "terminal_output_chunk" => {
                let said = Text::new("the agent's terminal");
                self.lifecycle.notice_with_frame(
                    cx,
                    Level::Debug,
                    "terminal",
                    said,
                    update_in(line),
                );
            }
            "" => {
                self.lifecycle
                    .unmapped(cx, "an update without a name".to_owned(), update_in(line))
            }
            other => self
                .lifecycle
                .unmapped(cx, format!("update `{other}`"), update_in(line)),
        }
    }

    /// True for what belongs to no run: the history of a session that is loaded to go on with it,
    /// which Gemini tells after the answer, and words about a change of mode. A client that waits
    /// for a run must not mistake this for one.
    fn is_repeated(&self, name: &str) -> bool {
        let is_idle = self.is_replay || self.is_opened && !self.lifecycle.has_run();
        self.run_ends == RunEnds::AtResult
            && is_idle
            && (name.starts_with("user_message")
                || name.starts_with("agent_")
                || name.starts_with("tool_call")
                || name.starts_with("compaction")
                || name == "plan")
    }

    /// The session is open: what follows is new.
    pub(super) fn history_ended(&mut self, cx: &mut FrameContext<'_>) {
        self.end_replay(cx);
        self.is_replay = false;
        self.is_opened = true;
        self.emit_skipped(cx);
    }

    pub(super) fn emit_skipped(&mut self, cx: &mut FrameContext<'_>) {
        let n = std::mem::take(&mut self.n_skipped);
        if n > 0 {
            let notice = Notice::new(
                Level::Debug,
                "outside_of_runs",
                Text::new(format!("{n} updates outside of any run were not told")),
            );
            self.lifecycle.notice(cx, notice);
        }
    }

    fn plan<'c>(&mut self, cx: &mut FrameContext<'c>, list: Any<'c>) {
        let entries: List<wire::PlanEntry<'c>> = list.parse().unwrap_or_default();
        let entries = entries.0;
        // The model knows no priorities.
        let is_plain =
            |it: &wire::PlanEntry<'_>| matches!(it.priority.as_deref(), None | Some("medium"));
        if let Some(raw) = list.raw().filter(|_| !entries.iter().all(is_plain)) {
            cx.extra.push((Cow::Borrowed("entries"), raw));
        }
        let entry = |it: &wire::PlanEntry<'_>| PlanEntry {
            key: None,
            text: it
                .content
                .0
                .map(Text::from_json)
                .unwrap_or_default()
                .into_owned(),
            status: match it.status.as_deref() {
                Some("in_progress") => PlanStatus::InProgress,
                Some("completed") => PlanStatus::Completed,
                Some(_) | None => PlanStatus::Pending,
            },
            doing: None,
        };
        let plan = Plan {
            id: ItemId::new("plan"),
            entries: entries.iter().take(MAX_ENTRIES).map(entry).collect(),
        };
        self.lifecycle.update(cx, Item::Plan(plan));
    }

    /// How full the context is; what it cost counts at the end of the run.
    fn usage<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>, json: &str) {
        self.used.update(update);
        let usage = Usage {
            scope: Scope::Call,
            basis: Basis::Cumulative,
            tokens: Tokens {
                input: update.used.as_u64().unwrap_or_default(),
                ..Tokens::default()
            },
            model: self
                .session
                .model
                .as_deref()
                .map(|it| Cow::Owned(it.to_owned())),
            cost_usd: None,
            detail: Some(model::Raw::parse(json.to_owned())),
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }

    fn commands(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>, json: &str) {
        let names = update.available_commands.0.iter().take(MAX_COMMANDS);
        let names: Vec<String> = names
            .filter_map(|it| it.name.as_deref().map(str::to_owned))
            .collect();
        if names != self.session.commands {
            self.session.commands = names;
            self.emit_session(cx);
        }
        let said = Text::new("commands of the agent");
        self.lifecycle
            .notice_with_frame(cx, Level::Debug, "available_commands", said, json);
    }

    /// A message to the user that is no part of the conversation.
    fn on_session_info(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>, json: &str) {
        let level = match update.severity.as_deref() {
            Some("error") => Level::Error,
            Some("warning") => Level::Warning,
            Some(_) | None => Level::Info,
        };
        let title = update.title.0.map(Text::from_json).unwrap_or_default();
        let notice = Notice {
            detail: Some(model::Raw::parse(json.to_owned())),
            ..Notice::new(level, "notice", title)
        };
        self.lifecycle.notice(cx, notice);
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>) {
        let id = update.compaction_id.as_deref().unwrap_or("compaction");
        let mut it = Compaction {
            id: ItemId::new(id.to_owned()),
            trigger: None,
            summary: None,
            tokens_before: None,
            tokens_after: None,
            detail: update.error.raw(),
        };
        let status = match update.status.as_deref() {
            Some("completed") => Status::Ok,
            Some("failed") => Status::Error,
            Some("cancelled") => Status::Cancelled,
            Some(_) | None => return self.lifecycle.open(cx, Item::Compaction(it)),
        };
        let blocks: List<Any<'c>> = update.summary.parse().unwrap_or_default();
        let blocks = blocks.0.into_iter().filter_map(|it| it.0);
        let (text, _) = content::join_text(blocks.map(acp_tool_content::piece).collect());
        let streamed = self.used.take_summary(id);
        it.summary = Some(text)
            .filter(|it| !it.is_empty())
            .or(streamed.map(Text::new));
        self.lifecycle.close_whole(cx, Item::Compaction(it), status);
    }

    fn summary(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>) {
        let id = update.compaction_id.as_deref().unwrap_or("compaction");
        let text = update.content.0.map(acp_tool_content::piece);
        if let Some(content::ContentPiece::Text(text)) = text {
            self.used.add_summary(id, &text.to_str());
        }
        cx.extra.clear();
    }

    /// Version 2 tells by a state when a turn is over.
    fn state<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>, json: &'c str) {
        match update.state.as_deref() {
            Some("running") => self.lifecycle.start_run(cx, model::Cause::Prompt),
            Some("idle") if self.lifecycle.has_run() => {
                self.stopped(cx, update.stop_reason.as_deref(), json);
            }
            _ => {
                let said = Text::new("the state of the agent");
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "state", said, json);
            }
        }
    }
}

/// The update that a line holds, as it stands there: few updates are kept whole.
fn update_in(line: &str) -> &str {
    let read: wire::Line<'_> = serde_json::from_str(line).unwrap_or_default();
    let params: wire::Params<'_> = read.params.parse().unwrap_or_default();
    let update = params.update.0.or(read.update.0);
    update.map_or(line, |it| it.get())
}
