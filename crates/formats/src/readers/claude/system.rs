//! `system` lines besides `init`, and rate limits: mostly things worth a notice.

use std::borrow::Cow;

use model::{Compaction, Item, ItemId, Level, Notice, Raw, Status, Text};

use super::{Claude, FrameContext};
use crate::readers::machine::MessageReader as _;
use crate::readers::session_tracker;
use crate::readers::subagents::SubagentStart;
use crate::wire::claude::{self as wire, Line, System};
use crate::wire::scanner;

/// True for a line that only a turn begins with.
pub(super) fn begins_turn(cx: &FrameContext<'_>, line: &Line<'_>) -> bool {
    let is_compacting =
        |(key, value): &(Cow<'_, str>, Raw<'_>)| key == "status" && value.get() == "\"compacting\"";
    match line.subtype.str().as_deref() {
        Some("init" | "compact_boundary") => true,
        Some("status") => cx.extra.iter().any(is_compacting),
        Some(_) | None => false,
    }
}

impl Claude {
    pub(super) fn system<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        // An SDK puts the fields of a system message under `data`.
        if let Some(data) = line.data.0.filter(|it| it.get().starts_with('{')) {
            cx.message = data.get();
        }
        let subtype = line.subtype.str().unwrap_or_default();
        if subtype == "init" {
            return self.init(cx);
        }
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        if subtype == "thinking_tokens" {
            // One for every thinking delta: its fields are in `extra` already.
            return self
                .lifecycle
                .raise(cx, Level::Debug, "thinking_tokens", "thinking");
        }
        cx.extra.clear();
        let system: System<'c> = scanner::from_str(cx.message).unwrap_or_default();
        let (level, code, text) = match &*subtype {
            "status" => return self.status(cx, &system),
            "api_retry" => (Level::Warning, "api_retry", retry_text(&system)),
            "permission_denied" => return self.permission_denied(cx, &system),
            "task_started" if system.task_type.as_deref() == Some("local_agent") => {
                self.subagent_started(cx, &system);
                return self.task(cx, Level::Debug, "task_started", &system);
            }
            "task_started" => return self.task(cx, Level::Info, "task_started", &system),
            "task_progress" => return self.task(cx, Level::Debug, "task_progress", &system),
            "task_updated" => return self.task(cx, Level::Debug, "task_updated", &system),
            "task_notification" => return self.task_notification(cx, &system),
            "background_tasks_changed" => {
                let text = Text::new("the background tasks changed");
                (Level::Debug, "background_tasks", text)
            }
            "hook_started" => {
                let text = format!("hook {} started", hook_name(&system));
                (Level::Info, "hook_started", text.into())
            }
            "hook_response" => {
                let outcome = system.outcome.as_deref().unwrap_or("done");
                let is_fine = matches!(outcome, "done" | "success");
                let level = if is_fine { Level::Info } else { Level::Warning };
                let text = format!("hook {}: {outcome}", hook_name(&system));
                (level, "hook_response", text.into())
            }
            "compact_boundary" => return self.compacted(cx, &system),
            "informational" => {
                let level = match system.level.as_deref() {
                    Some("error") => Level::Error,
                    Some("warning") => Level::Warning,
                    Some(_) | None => Level::Info,
                };
                let text = system.content.text().unwrap_or_default();
                (level, "informational", text)
            }
            "ui_invalidate" => (Level::Debug, "ui_invalidate", Text::new("the view changed")),
            other => return self.lifecycle.unmapped(cx, format!("system `{other}`")),
        };
        self.lifecycle.raise_with_message(cx, level, code, text);
    }

    fn status(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>) {
        let session = self.lifecycle.session.id().map(str::to_owned);
        if let (Some(mode), Some(session)) = (system.permission_mode.as_deref(), session) {
            let mut bound = session_tracker::bound(session);
            bound.permission_mode = Some(Cow::Borrowed(mode));
            self.lifecycle.bind(cx, bound);
        }
        let status = system.status.as_deref().unwrap_or("idle");
        if status == "compacting" {
            self.open_compaction(cx);
        } else {
            self.lifecycle
                .raise_with_message(cx, Level::Debug, "status", status);
        }
    }

    fn open_compaction(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        self.announce_turn();
        self.begin_turn(cx);
        let known = self.compaction.clone();
        if let Some(key) = known.filter(|key| self.lifecycle.is_open(key)) {
            return key;
        }
        let key = self.next_block("compaction");
        let compaction = Item::Compaction(Compaction::new(key.clone()));
        self.lifecycle.open(cx, compaction);
        self.compaction = Some(key.clone());
        key
    }

    /// The conversation was cut; its summary follows in a line of its own.
    fn compacted(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>) {
        let key = self.open_compaction(cx);
        let metadata = &system.compact_metadata;
        let compaction = Compaction {
            trigger: metadata.trigger.owned().map(Cow::Owned),
            tokens_before: metadata.pre_tokens.as_u64(),
            tokens_after: metadata.post_tokens.as_u64(),
            detail: Some(cx.raw()),
            ..Compaction::new(key)
        };
        self.lifecycle.update(cx, Item::Compaction(compaction));
    }

    fn permission_denied(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>) {
        let item = system.tool_use_id.owned().map(ItemId::new);
        if let Some(item) = &item {
            self.remember_denied(item);
        }
        let tool = system.tool_name.as_deref().unwrap_or("tool");
        let text = format!("permission denied: {tool}");
        let notice = Notice {
            item,
            detail: Some(cx.raw()),
            ..Notice::new(Level::Warning, "permission_denied", text.into())
        };
        self.lifecycle.notice(cx, notice);
    }

    fn task(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        system: &System<'_>,
    ) {
        let call = system.tool_use_id.as_deref();
        let agent = self.subagents.find(call, system.task_id.as_deref());
        let text = system.description.text().or(system.summary.text());
        let text = text.unwrap_or_else(|| code.replace('_', " ").into());
        let notice = Notice {
            item: agent.or_else(|| system.tool_use_id.owned().map(ItemId::new)),
            detail: Some(cx.raw()),
            ..Notice::new(level, code, text)
        };
        self.lifecycle.notice(cx, notice);
    }

    fn task_notification<'c>(&mut self, cx: &mut FrameContext<'c>, system: &System<'c>) {
        // A notification before the result wakes nothing: the model is at work anyway.
        self.was_woken |= self.has_result();
        let call = system.tool_use_id.as_deref();
        let found = self.subagents.find(call, system.task_id.as_deref());
        let Some(key) = found.filter(|key| self.lifecycle.is_open(key)) else {
            return self.task(cx, Level::Info, "task_notification", system);
        };
        let status = match system.status.as_deref() {
            Some("completed") => Status::Ok,
            Some("stopped") => Status::Cancelled,
            _ => Status::Error,
        };
        let (report, detail) = (system.summary.text(), cx.raw());
        self.lifecycle.close(cx, &key, status, |item| {
            if let Item::Subagent(it) = item {
                it.report = report;
                it.detail = Some(detail);
            }
        });
    }

    fn subagent_started(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>) {
        // A background sub-agent may start while its run's result is held.
        if self.held.is_none() {
            self.begin_turn(cx);
        }
        let Some(call) = system.tool_use_id.as_deref() else {
            return;
        };
        let start = SubagentStart {
            task: system.task_id.as_deref(),
            parent_task: system.parent_task_id.as_deref(),
            name: system.subagent_type.as_deref(),
            description: system.description,
            prompt: system.prompt,
            is_background: system.is_backgrounded.is_true(),
        };
        self.subagents
            .started(&mut self.lifecycle, cx, call, &start);
    }

    pub(super) fn rate_limit(&mut self, cx: &mut FrameContext<'_>) {
        let line: wire::RateLimitLine<'_> = scanner::from_str(cx.message).unwrap_or_default();
        let status = line.info.status.as_deref().unwrap_or("unknown");
        let level = match status {
            "allowed" => Level::Debug,
            "rejected" => Level::Error,
            _ => Level::Warning,
        };
        let kind = line.info.kind.as_deref().unwrap_or("rate");
        let kind = kind.replace('_', " ");
        let used = line.info.utilization.0;
        let used = used.map(|it| format!(", {:.0} % used", it * 100.0));
        let text = format!("{kind} limit: {status}{}", used.unwrap_or_default());
        self.lifecycle
            .raise_with_message(cx, level, "rate_limit", text);
    }
}

fn retry_text(system: &System<'_>) -> Text<'static> {
    let count = |it: Option<u64>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let attempt = count(system.attempt.as_u64());
    let most = count(system.max_retries.as_u64());
    let wait = system.retry_delay_ms.0.unwrap_or_default() / 1000.0;
    let error = system.error.as_deref().unwrap_or("unknown");
    let status = system.error_status.as_u64().map(|it| format!(" {it}"));
    let status = status.unwrap_or_default();
    Text::new(format!(
        "retry {attempt} of {most} in {wait:.1} s: {error}{status}"
    ))
}

fn hook_name<'s>(system: &'s System<'_>) -> &'s str {
    system.hook_name.as_deref().unwrap_or("hook")
}
