//! Our own events inside AG-UI, read back; those of others are kept as they are.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Binding, Body, Compaction, Decision, Item, ItemId, Level,
    McpServer, Notice, Other, Raw, SessionBound, SessionId, Text,
};

use super::{AgUi, FrameContext, Line, status, wire};
use crate::wire::lenient::{Any, Object as _};

impl AgUi {
    pub(super) fn custom<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>) {
        let name = line.name.take().unwrap_or_default();
        let value = line.value;
        match &*name {
            "linkspan.session" => self.session(cx, value),
            "linkspan.notice" => self.notice(cx, value),
            "linkspan.ask" => self.on_ask(cx, value),
            "linkspan.ask_settled" => self.settled(cx, value),
            "linkspan.compaction" => self.compaction(cx, value),
            "linkspan.item" => self.item(cx, value),
            _ => self
                .lifecycle
                .unmapped(cx, format!("custom event `{name}`")),
        }
    }

    fn session<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Session<'c> = value.parse().unwrap_or_default();
        cx.extra.append(it.extra());
        cx.keep("engine", it.engine);
        let Some(native) = it.session_id.take() else {
            return;
        };
        let thread = self.lifecycle.session.id();
        let is_same = thread.is_none_or(|thread| thread == native);
        self.cwd = it.cwd.owned().or(self.cwd.take());
        let servers = it.mcp_servers.0.into_iter().filter_map(|it| {
            let status = it.status.0;
            it.name.0.map(|name| McpServer { name, status })
        });
        let how = match is_same {
            true => Binding::Repeat,
            false => Binding::Mismatch,
        };
        let bound = SessionBound {
            model: it.model.take(),
            cwd: it.cwd.take(),
            permission_mode: it.permission_mode.take(),
            version: it.version.take(),
            tools: it.tools.0.into_iter().filter_map(|it| it.0).collect(),
            mcp_servers: servers.collect(),
            commands: it.commands.0.into_iter().filter_map(|it| it.0).collect(),
            ..SessionBound::new(SessionId::new(native), how)
        };
        self.lifecycle.emit(cx, Body::SessionBound(bound));
    }

    fn notice<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Notice<'c> = value.parse().unwrap_or_default();
        let level = match it.level.as_deref() {
            Some("error") => Level::Error,
            Some("warning") => Level::Warning,
            Some("debug") => Level::Debug,
            Some(_) | None => Level::Info,
        };
        let code = it.code.take().unwrap_or(Cow::Borrowed("notice"));
        let notice = Notice {
            item: it.item_id.take().map(ItemId::new),
            detail: it.detail.raw(),
            ..Notice::new(level, code, it.text.text().unwrap_or_default())
        };
        self.lifecycle.notice(cx, notice);
    }

    fn on_ask<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Ask<'c> = value.parse().unwrap_or_default();
        let tool = it.tool_call_name.take().unwrap_or_default();
        let title = it.title.filled_text().unwrap_or(Text::new("question"));
        let kind = match it.kind.as_deref() {
            Some("question") => AskKind::Question,
            Some("plan") => AskKind::Plan,
            Some(_) | None => AskKind::Permission,
        };
        let id = AskId::new(it.id.take().unwrap_or_default());
        let ask = Ask {
            item: it.tool_call_id.take().map(ItemId::new),
            description: it.description.text(),
            input: it.input.raw(),
            suggestions: it.suggestions.raw(),
            deadline: it.deadline.parse(),
            ..Ask::new(id, kind, tool, title)
        };
        self.lifecycle.ask(cx, ask);
    }

    fn settled<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::AskSettled<'c> = value.parse().unwrap_or_default();
        let decision = it.decision.as_deref().and_then(Decision::find);
        let id = AskId::new(it.id.take().unwrap_or_default());
        let settled = AskSettled {
            message: it.message.text(),
            input: it.input.raw(),
            remembered: it.remembered.raw(),
            ..AskSettled::new(id, decision.unwrap_or(Decision::Lost))
        };
        self.lifecycle.settle(cx, settled);
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Compaction<'c> = value.parse().unwrap_or_default();
        let id = it.id.take().unwrap_or_default();
        let item = Item::Compaction(Compaction {
            trigger: it.trigger.take(),
            summary: it.summary.text(),
            tokens_before: it.tokens_before.as_u64(),
            tokens_after: it.tokens_after.as_u64(),
            // Messages and calls may have the same id; items may not.
            ..Compaction::new(ItemId::new(format!("compaction:{id}")))
        });
        match it.status.as_deref().unwrap_or_default() {
            "in_progress" => self.lifecycle.open(cx, item),
            word => self.lifecycle.close_whole(cx, item, status(word)),
        }
    }

    fn item<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Item<'c> = value.parse().unwrap_or_default();
        let id = it.id.take().unwrap_or_default();
        let status = status(it.status.as_deref().unwrap_or("ok"));
        let item = Item::Other(Other {
            id: self.free_key(&id, "item"),
            name: it.name.take().unwrap_or_default(),
            text: it.text.text(),
            data: it.data.raw().unwrap_or_else(|| Raw::of(&())),
        });
        self.lifecycle.close_whole(cx, item, status);
    }
}
