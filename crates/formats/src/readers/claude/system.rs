//! `system` lines besides `init`, and rate limits: mostly things worth a notice.

use std::borrow::Cow;

use model::{Compaction, Item, ItemId, Level, Notice, Raw, Status, Text};

use super::{Claude, FrameContext};
use crate::readers::machine::MessageReader as _;
use crate::readers::session_tracker;
use crate::readers::subagents::SubagentStart;
use crate::wire::claude::{self as wire, Line, System};

/// True for a line that only a turn begins with.
pub(super) fn begins_turn(line: &Line<'_>) -> bool {
    let is_compacting = || {
        let has = |(key, value): &(Cow<'_, str>, Raw<'_>)| {
            key == "status" && value.get() == "\"compacting\""
        };
        line.extra.iter().any(has)
    };
    match line.subtype.str().as_deref() {
        Some("init" | "compact_boundary") => true,
        Some("status") => is_compacting(),
        Some(_) | None => false,
    }
}

impl Claude {
    pub(super) fn system<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &'c str,
    ) {
        // An SDK puts the fields of a system message under `data`.
        let text = line
            .data
            .0
            .filter(|it| it.get().starts_with('{'))
            .map_or(text, |it| it.get());
        let subtype = line.subtype.str().unwrap_or_default();
        if subtype == "init" {
            return self.init(cx, text);
        }
        let session = line.session_id.str();
        if !self.is_of_session(cx, session.as_deref()) {
            return;
        }
        if subtype == "thinking_tokens" {
            // One for every thinking delta: its fields are in `extra` already.
            return self.debug(cx, "thinking_tokens", "thinking");
        }
        cx.extra.clear();
        let system: System<'c> = serde_json::from_str(text).unwrap_or_default();
        match &*subtype {
            "status" => self.status(cx, &system, text),
            "api_retry" => self.api_retry(cx, &system, text),
            "permission_denied" => self.permission_denied(cx, &system, text),
            "task_started" if system.task_type.as_deref() == Some("local_agent") => {
                self.begin_turn_unless_held(cx);
                self.subagent_started(cx, &system);
                self.task(cx, Level::Debug, "task_started", &system, text);
            }
            "task_started" => self.task(cx, Level::Info, "task_started", &system, text),
            "task_progress" => self.task(cx, Level::Debug, "task_progress", &system, text),
            "task_updated" => self.task(cx, Level::Debug, "task_updated", &system, text),
            "task_notification" => self.task_notification(cx, &system, text),
            "background_tasks_changed" => self.lifecycle.notice_with_frame(
                cx,
                Level::Debug,
                "background_tasks",
                Text::new("the background tasks changed"),
                text,
            ),
            "hook_started" | "hook_response" => self.hook(cx, &subtype, &system, text),
            "compact_boundary" => self.compacted(cx, &system, text),
            "informational" => {
                let said = system.content.raw().map(Text::from).unwrap_or_default();
                let level = if system.level.as_deref() == Some("error") {
                    Level::Error
                } else {
                    Level::Info
                };
                self.lifecycle
                    .notice_with_frame(cx, level, "informational", said, text);
            }
            "ui_invalidate" => self.lifecycle.notice_with_frame(
                cx,
                Level::Debug,
                "ui_invalidate",
                Text::new("the view changed"),
                text,
            ),
            other => self
                .lifecycle
                .unmapped(cx, format!("system `{other}`"), text),
        }
    }

    /// Something hardly worth telling; what else the line says stays in `extra`.
    pub(super) fn debug(
        &mut self,
        cx: &mut FrameContext<'_>,
        code: &'static str,
        said: &'static str,
    ) {
        let notice = Notice::new(Level::Debug, code, Text::new(said));
        self.lifecycle.notice(cx, notice);
    }

    fn status(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>, json: &str) {
        let session = self.lifecycle.session.id().map(str::to_owned);
        if let (Some(mode), Some(session)) = (system.permission_mode.as_deref(), session) {
            let mut bound = session_tracker::bound(session);
            bound.permission_mode = Some(Cow::Borrowed(mode));
            self.lifecycle.bind(cx, bound);
        }
        match system.status.as_deref() {
            Some("compacting") => {
                self.announce_turn();
                self.begin_turn(cx);
                self.open_compaction(cx);
            }
            Some(_) | None => {
                let said = system.status.as_deref().unwrap_or("idle").to_owned();
                self.lifecycle
                    .notice_with_frame(cx, Level::Debug, "status", Text::new(said), json);
            }
        }
    }

    fn open_compaction(&mut self, cx: &mut FrameContext<'_>) -> ItemId<'static> {
        if let Some(key) = self
            .compaction
            .clone()
            .filter(|key| self.lifecycle.is_open(key))
        {
            return key;
        }
        let key = self.responses.block_id("compaction");
        let compaction = Compaction {
            id: key.clone(),
            trigger: None,
            summary: None,
            tokens_before: None,
            tokens_after: None,
            detail: None,
        };
        self.lifecycle.open(cx, Item::Compaction(compaction));
        self.compaction = Some(key.clone());
        key
    }

    /// The conversation was cut; its summary follows in a line of its own.
    fn compacted(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>, json: &str) {
        self.announce_turn();
        self.begin_turn(cx);
        let key = self.open_compaction(cx);
        let metadata = &system.compact_metadata;
        let compaction = Compaction {
            id: key,
            trigger: metadata
                .trigger
                .as_deref()
                .map(|it| Cow::Owned(it.to_owned())),
            summary: None,
            tokens_before: metadata.pre_tokens.as_u64(),
            tokens_after: metadata.post_tokens.as_u64(),
            detail: Some(Raw::parse(json.to_owned())),
        };
        self.lifecycle.update(cx, Item::Compaction(compaction));
    }

    fn api_retry(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>, json: &str) {
        let count = |it: Option<u64>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
        let attempt = count(system.attempt.as_u64());
        let most = count(system.max_retries.as_u64());
        let wait = system.retry_delay_ms.0.unwrap_or_default() / 1000.0;
        let error = system.error.as_deref().unwrap_or("unknown");
        let status = system
            .error_status
            .as_u64()
            .map(|it| format!(" {it}"))
            .unwrap_or_default();
        let said = format!("retry {attempt} of {most} in {wait:.1} s: {error}{status}");
        self.lifecycle
            .notice_with_frame(cx, Level::Warning, "api_retry", Text::new(said), json);
    }

    fn permission_denied(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>, json: &str) {
        let call = system.tool_use_id.as_deref();
        let item = call.map(|it| ItemId::new(it.to_owned()));
        if let Some(item) = &item {
            self.remember_denied(item);
        }
        cx.extra.clear();
        let tool = system.tool_name.as_deref().unwrap_or("tool");
        let text = Text::new(format!("permission denied: {tool}"));
        let detail = Some(Raw::parse(json.to_owned()));
        let code = Cow::Borrowed("permission_denied");
        self.lifecycle.notice(
            cx,
            Notice {
                item,
                detail,
                ..Notice::new(Level::Warning, code, text)
            },
        );
    }

    fn task(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        system: &System<'_>,
        json: &str,
    ) {
        let item = self
            .subagents
            .find(system.tool_use_id.as_deref(), system.task_id.as_deref())
            .or_else(|| {
                system
                    .tool_use_id
                    .as_deref()
                    .map(|it| ItemId::new(it.to_owned()))
            });
        let said = system
            .description
            .raw()
            .or(system.summary.raw())
            .map(Text::from);
        let text = said.unwrap_or_else(|| Text::new(code.replace('_', " ")));
        let detail = Some(Raw::parse(json.to_owned()));
        self.lifecycle.notice(
            cx,
            Notice {
                item,
                detail,
                ..Notice::new(level, code, text)
            },
        );
    }

    fn task_notification<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        system: &System<'c>,
        json: &'c str,
    ) {
        self.was_woken |= self.has_result();
        let found = self
            .subagents
            .find(system.tool_use_id.as_deref(), system.task_id.as_deref());
        let Some(key) = found.filter(|key| self.lifecycle.is_open(key)) else {
            return self.task(cx, Level::Info, "task_notification", system, json);
        };
        let status = match system.status.as_deref() {
            Some("completed") => Status::Ok,
            Some("stopped") => Status::Cancelled,
            _ => Status::Error,
        };
        let report = system.summary.raw().map(Text::from);
        let detail = Raw::parse(json.to_owned());
        self.lifecycle
            .close(cx, &key, status, |item: &mut Item<'c>| {
                if let Item::Subagent(it) = item {
                    it.report = report;
                    it.detail = Some(detail);
                }
            });
    }

    fn subagent_started(&mut self, cx: &mut FrameContext<'_>, system: &System<'_>) {
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

    /// A background sub-agent may start while its run's result is held.
    fn begin_turn_unless_held(&mut self, cx: &mut FrameContext<'_>) {
        if self.held.is_none() {
            self.begin_turn(cx);
        }
    }

    fn hook(&mut self, cx: &mut FrameContext<'_>, subtype: &str, system: &System<'_>, json: &str) {
        let name = system.hook_name.as_deref().unwrap_or("hook");
        let outcome = system.outcome.as_deref();
        let (code, said) = match subtype {
            "hook_started" => ("hook_started", format!("hook {name} started")),
            _ => (
                "hook_response",
                format!("hook {name}: {}", outcome.unwrap_or("done")),
            ),
        };
        let is_fine = outcome.is_none_or(|it| it == "success");
        let level = if is_fine { Level::Info } else { Level::Warning };
        self.lifecycle
            .notice_with_frame(cx, level, code, Text::new(said), json);
    }

    pub(super) fn rate_limit(&mut self, cx: &mut FrameContext<'_>, json: &str) {
        let line: wire::RateLimitLine<'_> = serde_json::from_str(json).unwrap_or_default();
        let status = line.info.status.as_deref().unwrap_or("unknown");
        let level = match status {
            "allowed" => Level::Debug,
            "rejected" => Level::Error,
            _ => Level::Warning,
        };
        let kind = line
            .info
            .kind
            .as_deref()
            .unwrap_or("rate")
            .replace('_', " ");
        let used = line
            .info
            .utilization
            .0
            .map(|it| format!(", {:.0} % used", it * 100.0))
            .unwrap_or_default();
        self.lifecycle.notice_with_frame(
            cx,
            level,
            "rate_limit",
            Text::new(format!("{kind} limit: {status}{used}")),
            json,
        );
    }
}
