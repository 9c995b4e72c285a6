//! Our own events inside AG-UI, read back; those of others are kept as they are.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Binding, Body, Compaction, Decision, Item, ItemId, Level,
    McpServer, Notice, Other, Raw, SessionBound, SessionId, Text,
};

use super::{AgUi, FrameContext, Line, status, wire};
use crate::wire::lenient::{Any, Object as _};

impl AgUi {
    pub(super) fn custom<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        text: &str,
    ) {
        let name = line.name.take().unwrap_or_default();
        let value = line.value;
        match &*name {
            "linkspan.session" => self.session(cx, value),
            "linkspan.notice" => self.on_linkspan_event(cx, value),
            "linkspan.ask" => self.on_ask(cx, value),
            "linkspan.ask_settled" => self.settled(cx, value),
            "linkspan.compaction" => self.compaction(cx, value),
            "linkspan.item" => self.item(cx, value),
            _ => self
                .lifecycle
                .unmapped(cx, format!("custom event `{name}`"), text),
        }
    }

    fn session<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Session<'c> = value.parse().unwrap_or_default();
        cx.extra.append(it.extra());
        cx.extra
            .extend(it.engine.raw().map(|raw| (Cow::Borrowed("engine"), raw)));
        let Some(native) = it.session_id.take() else {
            return;
        };
        let thread = self.lifecycle.session.id();
        let is_same = thread.is_none_or(|thread| thread == native);
        self.cwd = it.cwd.as_deref().map(str::to_owned).or(self.cwd.take());
        let servers = it.mcp_servers.0.into_iter();
        let bound = SessionBound {
            native: SessionId::new(native),
            how: if is_same {
                Binding::Repeat
            } else {
                Binding::Mismatch
            },
            model: it.model.take(),
            cwd: it.cwd.take(),
            permission_mode: it.permission_mode.take(),
            version: it.version.take(),
            tools: it.tools.0.into_iter().filter_map(|it| it.0).collect(),
            mcp_servers: servers
                .filter_map(|it| {
                    Some(McpServer {
                        name: it.name.0?,
                        status: it.status.0,
                    })
                })
                .collect(),
            commands: it.commands.0.into_iter().filter_map(|it| it.0).collect(),
        };
        self.lifecycle.emit(cx, Body::SessionBound(bound));
    }

    fn on_linkspan_event<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Notice<'c> = value.parse().unwrap_or_default();
        let notice = Notice {
            item: it.item_id.take().map(ItemId::new),
            detail: it.detail.raw(),
            ..Notice::new(
                match it.level.as_deref() {
                    Some("error") => Level::Error,
                    Some("warning") => Level::Warning,
                    Some("debug") => Level::Debug,
                    Some(_) | None => Level::Info,
                },
                it.code.take().unwrap_or(Cow::Borrowed("notice")),
                text(it.text),
            )
        };
        self.lifecycle.notice(cx, notice);
    }

    fn on_ask<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Ask<'c> = value.parse().unwrap_or_default();
        let tool = it.tool_call_name.take().unwrap_or_default();
        let title = text(it.title);
        let ask = Ask {
            id: AskId::new(it.id.take().unwrap_or_default()),
            kind: match it.kind.as_deref() {
                Some("question") => AskKind::Question,
                Some("plan") => AskKind::Plan,
                Some(_) | None => AskKind::Permission,
            },
            item: it.tool_call_id.take().map(ItemId::new),
            title: if title.is_empty() {
                Text::new("question")
            } else {
                title
            },
            tool,
            description: it.description.raw().map(Text::from),
            input: it.input.raw(),
            suggestions: it.suggestions.raw(),
            deadline: it.deadline.parse(),
        };
        self.lifecycle.ask(cx, ask);
    }

    fn settled<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::AskSettled<'c> = value.parse().unwrap_or_default();
        let settled = AskSettled {
            id: AskId::new(it.id.take().unwrap_or_default()),
            decision: (it.decision.as_deref())
                .and_then(Decision::find)
                .unwrap_or(Decision::Lost),
            message: it.message.raw().map(Text::from),
            input: it.input.raw(),
            remembered: it.remembered.raw(),
        };
        self.lifecycle.settle(cx, settled);
    }

    fn compaction<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Compaction<'c> = value.parse().unwrap_or_default();
        let id = it.id.take().unwrap_or_default();
        let said = it.status.take().unwrap_or_default();
        let item = Item::Compaction(Compaction {
            id: ItemId::new(format!("compaction:{id}")),
            trigger: it.trigger.take(),
            summary: it.summary.raw().map(Text::from),
            tokens_before: it.tokens_before.as_u64(),
            tokens_after: it.tokens_after.as_u64(),
            detail: None,
        });
        match &*said {
            "in_progress" => self.lifecycle.open(cx, item),
            said => self.lifecycle.close_whole(cx, item, status(said)),
        }
    }

    fn item<'c>(&mut self, cx: &mut FrameContext<'c>, value: Any<'c>) {
        let mut it: wire::Item<'c> = value.parse().unwrap_or_default();
        let id = it.id.take().unwrap_or_default();
        let said = it.status.take().unwrap_or(Cow::Borrowed("ok"));
        let item = Item::Other(Other {
            id: self.free_key(&id, "item"),
            name: it.name.take().unwrap_or_default(),
            text: it.text.raw().map(Text::from),
            data: it.data.raw().unwrap_or_else(|| Raw::of(&())),
        });
        self.lifecycle.close_whole(cx, item, status(&said));
    }
}

fn text(said: Any<'_>) -> Text<'_> {
    said.raw().map(Text::from).unwrap_or_default()
}
