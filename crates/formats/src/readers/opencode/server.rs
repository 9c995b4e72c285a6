//! The events of `opencode serve`: sessions, messages, permissions, and the server's own affairs.

use std::borrow::Cow;

use model::{
    Ask, AskId, AskKind, AskSettled, Basis, Body, Decision, ItemId, Level, Notice, Role, Scope,
    Status, Text, Timestamp, Usage,
};

use super::parts::{compaction_id, tokens};
use super::{FrameContext, OpenCode, SessionAbout, model_name};
use crate::readers::plans;
use crate::readers::session_tracker::{self, SessionMatch};
use crate::wire::lenient::{Any, Object as _};
use crate::wire::opencode::{self as wire, Line, Properties};

/// How the names of events begin that are about the server and not about a run.
const NOISE: &[&str] = &[
    "server.",
    "plugin.",
    "catalog.",
    "reference.",
    "integration.",
    "installation.",
    "project.",
    "workspace.",
    "worktree.",
    "global.",
    "file.",
    "lsp.",
    "vcs.",
    "mcp.",
    "ide.",
    "pty.",
    "tui.",
    "models-dev.",
];

/// Whose event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventOwner {
    Main,
    Child,
    /// Of no session at all.
    Unowned,
    /// Of a session that is not being read.
    Other,
}

impl OpenCode {
    pub(super) fn event<'c>(&mut self, cx: &mut FrameContext<'c>, mut line: Line<'c>) {
        let mut properties = line.properties.take();
        let kind = line.r#type.take().unwrap_or_default();
        cx.native = line.id.take();
        cx.extra.append(properties.extra());
        if let Some(at) = properties.time.0 {
            cx.at = Some(Timestamp::from_millis(at as i64));
        }
        // Before the session is looked at: these events are about the server itself.
        if NOISE.iter().any(|it| kind.starts_with(it)) {
            return self.noise(cx, &kind);
        }
        let info: wire::Session<'c> = match &*kind {
            "session.created" | "session.updated" => properties.info.parse().unwrap_or_default(),
            _ => wire::Session::default(),
        };
        let mut part = properties.part.take();
        cx.extra.append(part.extra());
        let session = properties.session_id.take();
        let session = session.or(part.session_id.take()).or(info.id.0.clone());
        let whose = self.whose(cx, &kind, session.as_deref(), info.parent_id.as_deref());
        match &*kind {
            _ if whose == EventOwner::Other => {
                self.lifecycle.unmapped(cx, "event of another session");
            }
            "message.part.delta" => self.part_delta(cx, &mut properties),
            "message.part.updated" => self.part(cx, part, properties.delta),
            "message.updated" => self.message(cx, &properties),
            "session.created" | "session.updated" if whose == EventOwner::Main => {
                self.session(cx, info, &kind);
            }
            "session.status" => self.status(cx, &properties, whose),
            "session.idle" if whose == EventOwner::Main => self.idle(cx, &kind),
            "session.error" => {
                // An error may come before any step: it still has a run to fail. A child's begins
                // none.
                if whose != EventOwner::Child {
                    self.begin(cx);
                }
                self.failed(cx, properties.error, true);
            }
            "session.compacted" => self.compacted(cx),
            "permission.asked" | "permission.updated" => self.permission(cx, properties),
            "question.asked" => self.question(cx, properties),
            "permission.replied" | "question.replied" | "question.rejected" => {
                self.replied(cx, &kind, properties);
            }
            "todo.updated" if self.lifecycle.has_run() => {
                // The event has the bare list; the tools' input, which the parser knows, wraps it.
                let list = properties.todos.0.map(|it| format!("{{\"todos\":{it}}}"));
                let entries = list.and_then(|it| plans::entries(&it));
                self.show_plan(cx, entries);
            }
            "session.created"
            | "session.updated"
            | "session.idle"
            | "session.deleted"
            | "session.diff"
            | "message.removed"
            | "message.part.removed"
            | "command.executed" => {
                self.noise(cx, &kind);
            }
            other => self.lifecycle.unmapped(cx, format!("type `{other}`")),
        }
    }

    /// Something hardly worth telling.
    fn noise(&mut self, cx: &mut FrameContext<'_>, kind: &str) {
        self.lifecycle
            .raise_with_message(cx, Level::Debug, "server_event", kind);
    }

    /// Whose event it is; what a sub-agent does gets its path.
    fn whose(
        &mut self,
        cx: &mut FrameContext<'_>,
        kind: &str,
        session: Option<&str>,
        parent: Option<&str>,
    ) -> EventOwner {
        let Some(session) = session.filter(|it| !it.is_empty()) else {
            return EventOwner::Unowned;
        };
        if let Some(parent) = parent {
            // A sub-agent may start sub-agents of its own.
            let is_ours =
                self.lifecycle.session.id() == Some(parent) || self.sessions.is_child(parent);
            if is_ours {
                self.sessions.learn(session, parent);
                return EventOwner::Child;
            }
        }
        if self.sessions.is_child(session) {
            // That it exists, or is busy, is no work yet.
            let is_work = !kind.starts_with("session.");
            if is_work || matches!(kind, "session.error" | "session.compacted") {
                self.enter(cx, session);
            }
            return EventOwner::Child;
        }
        // A server is used for one session after the other; events of those before it still come.
        let is_first = kind == "session.created" && self.lifecycle.session.expected().is_none();
        if self.lifecycle.session.observe(session) == SessionMatch::Other
            && is_first
            && !self.lifecycle.has_run()
        {
            // The server begins another session; the one before is over.
            self.lifecycle.session.forget();
            self.about = SessionAbout::default();
            self.about_tokens = None;
        }
        match self.lifecycle.session.observe(session) {
            SessionMatch::Same => EventOwner::Main,
            SessionMatch::Other | SessionMatch::Wrong => EventOwner::Other,
        }
    }

    fn session<'c>(&mut self, cx: &mut FrameContext<'c>, mut info: wire::Session<'c>, kind: &str) {
        cx.extra.append(info.extra());
        let mut model = info.model.take();
        let model_id = model.id.take().or(model.model_id.take());
        let owned = |it: Option<Cow<'_, str>>| it.map(Cow::into_owned);
        let about = SessionAbout {
            model: model_name(model.provider_id.as_deref(), model_id.as_deref())
                .or(self.about.model.clone()),
            cwd: owned(info.directory.take()).or(self.about.cwd.clone()),
            version: owned(info.version.take()).or(self.about.version.clone()),
        };
        // `session.updated` comes with every change, also of what is not shown here.
        if self.about == about && self.lifecycle.session.is_bound() {
            self.noise(cx, kind);
        } else if let Some(id) = self.lifecycle.session.id().map(str::to_owned) {
            self.about = about.clone();
            let mut bound = session_tracker::bound(&id);
            bound.model = about.model.map(Cow::Owned);
            bound.cwd = about.cwd.map(Cow::Owned);
            bound.version = about.version.map(Cow::Owned);
            self.lifecycle.bind(cx, bound);
        }
        self.session_usage(cx, info.tokens, info.cost.0);
    }

    /// What the session has used so far.
    fn session_usage(&mut self, cx: &mut FrameContext<'_>, value: Any<'_>, cost_usd: Option<f64>) {
        let Some(tokens) = tokens(value).filter(|it| self.about_tokens != Some(*it)) else {
            return;
        };
        self.about_tokens = Some(tokens);
        // A new session reports that it has used nothing.
        if tokens.all_input() == 0 && tokens.output.unwrap_or_default() == 0 {
            return;
        }
        let usage = Usage {
            cost_usd,
            detail: value.raw(),
            ..Usage::new(Scope::Session, Basis::Cumulative, tokens)
        };
        self.lifecycle.emit(cx, Body::UsageReported(usage));
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, properties: &Properties<'c>) {
        let mut info: wire::Message<'c> = properties.info.parse().unwrap_or_default();
        let Some(id) = info.id.take() else {
            return self.lifecycle.unmapped(cx, "message without an id");
        };
        let is_main = cx.path.is_empty();
        let role = match info.role.as_deref() {
            Some("user") if is_main => Role::User,
            // A sub-agent is prompted by the agent that started it.
            Some("user") => Role::Harness,
            // The summary of a compaction is for the model.
            _ if info.summary.is_true() => Role::Harness,
            _ => Role::Assistant,
        };
        if self.learn_message(&id, role) {
            self.begin(cx);
        }
        if let Some(cwd) = info.path.take().cwd.take() {
            // The session's own report is preferred: a message only fills in what that left out.
            self.about.cwd.get_or_insert(cwd.into_owned());
        }
        if let Some(model) = model_name(info.provider_id.as_deref(), info.model_id.as_deref()) {
            self.about.model.get_or_insert(model);
        }
        let time: wire::Time<'c> = info.time.parse().unwrap_or_default();
        if time.completed.0.is_some() {
            self.end_texts(cx, &id);
        }
        if info.error.0.is_some() && self.lifecycle.has_run() {
            // Not news: `session.error` reports the same error, before or after.
            self.failed(cx, info.error, false);
        }
        self.noise(cx, "message.updated");
    }

    fn status<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        properties: &Properties<'c>,
        whose: EventOwner,
    ) {
        let status: wire::Status<'c> = properties.status.parse().unwrap_or_default();
        match status.r#type.as_deref() {
            Some("idle") if whose == EventOwner::Main => self.idle(cx, "session.status"),
            Some("retry") => {
                let text = status.message.text();
                let notice = Notice {
                    detail: properties.status.raw(),
                    ..Notice::new(
                        Level::Warning,
                        "api_retry",
                        text.unwrap_or(Text::new("the model's provider failed")),
                    )
                };
                self.lifecycle.notice(cx, notice);
            }
            Some("busy") if whose == EventOwner::Main && !self.lifecycle.has_run() => {
                self.begin(cx);
                self.noise(cx, "session.status");
            }
            _ => self.noise(cx, "session.status"),
        }
    }

    fn idle(&mut self, cx: &mut FrameContext<'_>, kind: &str) {
        if self.lifecycle.has_run() {
            // `session.idle` and an idle `session.status` say the same: the second finds no run.
            self.finish_idle(cx);
        } else {
            self.noise(cx, kind);
        }
    }

    fn compacted(&mut self, cx: &mut FrameContext<'_>) {
        let id = compaction_id(cx);
        if !self.lifecycle.is_open(&id) {
            let text = "the conversation was compacted";
            return self.lifecycle.raise(cx, Level::Info, "compacted", text);
        }
        self.lifecycle.close(cx, &id, Status::Ok, |_| ());
    }

    fn permission<'c>(&mut self, cx: &mut FrameContext<'c>, mut properties: Properties<'c>) {
        let Some(id) = properties.id.take() else {
            return self.lifecycle.unmapped(cx, "permission without an id");
        };
        let item = self.asked_item(cx, &mut properties);
        let call = item.as_ref().and_then(|it| self.lifecycle.open_tool(it));
        let patterns = properties.patterns.0.iter().filter_map(|it| it.as_deref());
        let patterns = patterns.collect::<Vec<_>>().join(", ");
        let asks_for = properties.permission.take().or(properties.r#type.take());
        let asks_for = asks_for.unwrap_or(Cow::Borrowed("permission"));
        let title = properties.title.text();
        let title = match (title.filter(|it| !it.is_blank()), call) {
            (Some(title), _) => title,
            (None, Some(call)) => call.class.title.clone(),
            (None, None) if patterns.is_empty() => Text::new(asks_for.clone().into_owned()),
            (None, None) => Text::new(format!("{asks_for}: {patterns}")),
        };
        let input = call.and_then(|it| it.input.clone());
        let tool = call.map_or(asks_for, |it| it.name.clone());
        let ask = Ask {
            item,
            description: Some(Text::new(patterns)).filter(|it| !it.is_empty()),
            input: input.or(properties.metadata.raw()),
            suggestions: properties.always.raw(),
            ..Ask::new(AskId::new(id), AskKind::Permission, tool, title)
        };
        self.begin(cx);
        self.lifecycle.ask(cx, ask);
    }

    fn question<'c>(&mut self, cx: &mut FrameContext<'c>, mut properties: Properties<'c>) {
        let Some(id) = properties.id.take() else {
            return self.lifecycle.unmapped(cx, "question without an id");
        };
        let item = self.asked_item(cx, &mut properties);
        let questions: Vec<wire::Question<'c>> = properties.questions.parse().unwrap_or_default();
        let title = questions.first().and_then(|it| it.question.text());
        let title = title.filter(|it| !it.is_blank());
        let title = title.unwrap_or(Text::new("question"));
        let ask = Ask {
            item,
            input: properties.questions.raw(),
            ..Ask::new(AskId::new(id), AskKind::Question, "question", title)
        };
        self.begin(cx);
        self.lifecycle.ask(cx, ask);
    }

    /// The call that is asked about; what is asked happens where the call does.
    fn asked_item<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        properties: &mut Properties<'c>,
    ) -> Option<ItemId<'c>> {
        let mut call: wire::Call<'c> = properties.tool.parse().unwrap_or_default();
        let item = ItemId::new(call.call_id.take().or(properties.call_id.take())?);
        if let Some(path) = self.lifecycle.path_of(&item) {
            cx.path = Cow::Owned(path.to_vec());
        }
        Some(item)
    }

    fn replied<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        kind: &str,
        mut properties: Properties<'c>,
    ) {
        let id = properties.request_id.take();
        let id = id
            .or(properties.permission_id.take())
            .or(properties.id.take());
        let Some(id) = id else {
            return self.lifecycle.unmapped(cx, "reply without an id");
        };
        let reply = properties.reply.take().or(properties.response.take());
        let decision = match (kind, reply.as_deref()) {
            ("question.replied", _) => Decision::Allowed,
            ("permission.replied", Some("always")) => Decision::AllowedAlways,
            ("permission.replied", Some("once")) => Decision::Allowed,
            _ => Decision::Denied,
        };
        // Another client of the server may have answered first, or the ask was before this stream.
        if !self.lifecycle.is_asked(&id) {
            return self.noise(cx, kind);
        }
        let settled = AskSettled {
            message: properties.message.text(),
            input: properties.answers.raw(),
            ..AskSettled::new(AskId::new(id), decision)
        };
        self.lifecycle.settle(cx, settled);
    }
}
