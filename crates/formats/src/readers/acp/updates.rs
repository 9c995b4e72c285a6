//! What an agent says while it works: `session/update`, by its kinds.

use std::borrow::Cow;

use model::{
    Basis, Body, Compaction, Item, ItemId, Level, Notice, Plan, PlanEntry, Scope, Status, Text,
    Tokens, Usage,
};

use super::texts::ChunkRole;
use super::wire::{self, Update};
use super::{Acp, FrameContext, MAX_COMMANDS};
use crate::readers::RunEnds;
use crate::readers::acp_tool_content;
use crate::readers::content;
use crate::readers::lifecycle::raw;
use crate::readers::plans::{self, MAX_ENTRIES};
use crate::wire::lenient::{Any, List, Object as _};
use crate::wire::scanner;

impl Acp {
    pub(super) fn update<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        session: Option<&str>,
        mut update: Update<'c>,
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
            "usage_update" => self.usage(cx, &update),
            "available_commands_update" => self.commands(cx, &update),
            "current_mode_update" => {
                let mode = update.current_mode_id.owned();
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
                let text = "the options have changed";
                self.keep_update(cx, Level::Debug, "config_options", text);
            }
            "session_info_update" => {
                let title = update.title.text().unwrap_or_default();
                self.keep_update(cx, Level::Info, "session_info", title);
            }
            "notice" => self.notice(cx, &update),
            "compaction_update" => self.compaction(cx, &update),
            "compaction_summary_chunk" => self.summary(cx, &update),
            "state_update" => self.state(cx, &update),
            "terminal_update" | "terminal_output_chunk" => {
                self.keep_update(cx, Level::Debug, "terminal", "the agent's terminal");
            }
            name => {
                let what = match name {
                    "" => "an update without a name".to_owned(),
                    name => format!("update `{name}`"),
                };
                let update = update_in(cx.message);
                self.lifecycle.unmapped_part(cx, what, update);
            }
        }
    }

    /// A notice with the update in it.
    fn keep_update<'t>(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: impl Into<Text<'t>>,
    ) {
        let update = update_in(cx.message);
        self.lifecycle
            .raise_with(cx, level, code, text.into(), update);
    }

    /// True for what belongs to no run: the history of a session that is loaded to go on with it,
    /// which Gemini tells after the answer, and words about a change of mode. A client that waits
    /// for a run must not mistake this for one.
    fn is_repeated(&self, name: &str) -> bool {
        let is_idle = self.is_replay || self.is_opened && !self.lifecycle.has_run();
        // A recording is converted for its history; only a live client would take it for an answer.
        self.lifecycle.run_ends == RunEnds::AtResult
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
            let text = format!("{n} updates outside of any run were not told");
            self.lifecycle
                .raise(cx, Level::Debug, "outside_of_runs", text);
        }
    }

    fn plan<'c>(&mut self, cx: &mut FrameContext<'c>, list: Any<'c>) {
        let entries: List<wire::PlanEntry<'c>> = list.parse().unwrap_or_default();
        let entries = entries.0;
        // The model knows no priorities.
        let is_plain =
            |it: &wire::PlanEntry<'_>| matches!(it.priority.as_deref(), None | Some("medium"));
        if !entries.iter().all(is_plain) {
            cx.keep("entries", list);
        }
        let entry = |it: &wire::PlanEntry<'c>| {
            let text = it.content.text().unwrap_or_default();
            PlanEntry::new(text, plans::status(it.status.as_deref()))
        };
        let plan = Plan {
            id: ItemId::new("plan"),
            entries: entries.iter().take(MAX_ENTRIES).map(entry).collect(),
        };
        self.lifecycle.update(cx, Item::Plan(plan));
    }

    /// How full the context is; what it cost counts at the end of the run.
    fn usage<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>) {
        self.used.update(update);
        let tokens = Tokens {
            input: update.used.count(),
            ..Tokens::default()
        };
        let usage = Usage {
            model: self.session.model.clone().map(Cow::Owned),
            detail: Some(raw(update_in(cx.message))),
            // `used` is what the context holds now, not what one call added to it.
            ..Usage::new(Scope::Call, Basis::Cumulative, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }

    fn commands(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>) {
        let names = update.available_commands.0.iter().take(MAX_COMMANDS);
        let names: Vec<String> = names.filter_map(|it| it.name.owned()).collect();
        if names != self.session.commands {
            self.session.commands = names;
            self.emit_session(cx);
        }
        let text = "commands of the agent";
        self.keep_update(cx, Level::Debug, "available_commands", text);
    }

    /// A message to the user that is no part of the conversation.
    fn notice(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>) {
        let level = match update.severity.as_deref() {
            Some("error") => Level::Error,
            Some("warning") => Level::Warning,
            Some(_) | None => Level::Info,
        };
        let title = update.title.text().unwrap_or_default();
        let notice = Notice {
            detail: Some(raw(update_in(cx.message))),
            ..Notice::new(level, "notice", title)
        };
        self.lifecycle.notice(cx, notice);
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, update: &Update<'c>) {
        let id = update.compaction_id.as_deref().unwrap_or("compaction");
        let mut it = Compaction {
            detail: update.error.raw(),
            ..Compaction::new(ItemId::new(id.to_owned()))
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
    fn state(&mut self, cx: &mut FrameContext<'_>, update: &Update<'_>) {
        match update.state.as_deref() {
            Some("running") => self.lifecycle.start_run(cx, model::Cause::Prompt),
            Some("idle") if self.lifecycle.has_run() => {
                self.stopped(cx, update.stop_reason.as_deref());
            }
            _ => self.keep_update(cx, Level::Debug, "state", "the state of the agent"),
        }
    }
}

/// The update that a line holds, as it stands there: few updates are kept whole.
pub(super) fn update_in(line: &str) -> &str {
    let read: wire::Line<'_> = scanner::from_str(line).unwrap_or_default();
    let params: wire::Params<'_> = read.params.parse().unwrap_or_default();
    let update = params.update.0.or(read.update.0);
    update.map_or(line, |it| it.get())
}
