//! The Agent Client Protocol: both sides of a JSON-RPC log, what the agent printed, or bare updates.
//!
//! Version 1, with the shapes of the draft of version 2 where they differ. A prompt begins a run and
//! its answer ends it. Requests of both sides are numbered independently of each other; in a
//! recording the direction tells whose answer it is, in a plain log the method and the shape do.

mod calls;
mod end;
mod names;
mod requests;
#[cfg(test)]
mod tests;
mod texts;
mod updates;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use model::{Binding, RunEnded, SessionBound, SessionId};

use self::calls::AcpCalls;
use self::end::ContextUsage;
use self::requests::PendingRequests;
use self::texts::AcpTexts;
use super::input;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::subagents::Subagents;
use crate::wire::acp::inbound::{self as wire, Line, Meta};
use crate::wire::lenient::{Any, Object as _, read};
use crate::wire::scanner;

#[derive(Clone, Debug, Default)]
pub(crate) struct Acp {
    lifecycle: Lifecycle,
    session: AcpSession,
    requests: PendingRequests,
    texts: AcpTexts,
    calls: AcpCalls,
    subagents: Subagents,
    used: ContextUsage,
    was_cancelled: bool,
    /// The updates are history: a session is being loaded.
    is_replay: bool,
    /// The client was seen to open a session, so it will be seen to prompt.
    is_opened: bool,
    /// Updates that belong to no run.
    n_skipped: u64,
}

/// What is known of the session.
#[derive(Clone, Debug, Default)]
struct AcpSession {
    cwd: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    version: Option<String>,
    commands: Vec<String>,
    /// It was loaded or resumed.
    is_old: bool,
    /// It begins with what another one holds.
    is_fork: bool,
}

/// Where the method of a notification stands.
const NOTIFICATION_HEAD: usize = 64;
static UPDATE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"session/update\""));

/// Commands kept of a session.
const MAX_COMMANDS: usize = 1024;

impl Acp {
    /// Many answers say nothing: their result is empty, or `null`, which is nothing.
    fn is_response(&self, line: &Line<'_>) -> bool {
        let has_outcome = line.result.0.is_some() || line.error.0.is_some();
        (line.id.0).is_some_and(|id| has_outcome || self.requests.of_client.has(id.get()))
    }

    /// Reads an update in its usual wrapping; false when it is something else.
    fn notification(&mut self, cx: &mut FrameContext<'_>) -> bool {
        let text = cx.message;
        let head = &text.as_bytes()[..text.len().min(NOTIFICATION_HEAD)];
        // Nearly every line is an update, and says so at its start: it is parsed once, into its own type.
        if UPDATE.find(head).is_none() {
            return false;
        }
        let mut line = wire::Notification::default();
        let is_read = read(text, &mut line).is_ok() && line.params.update.is_object();
        let method = line.method.str();
        // An id makes it a request, and `session/update` in a payload is no method: both are read
        // in full.
        if !is_read || line.id.0.is_some() || method.as_deref() != Some("session/update") {
            return false;
        }
        cx.extra = std::mem::take(line.extra());
        cx.extra.append(line.params.extra());
        cx.keep("params._meta", line.params.meta);
        let session = line.params.session_id.str();
        let update = line.params.update.take();
        self.update(cx, session.as_deref(), update);
        true
    }

    /// Checks the session of an update, and introduces it when it is new; false when the run failed.
    fn same_session(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        let named = id.filter(|it| !it.is_empty());
        if let Some(id) = named.filter(|_| self.session.is_fork) {
            // It has a new id, whichever session was asked for.
            self.lifecycle.session.adopt_first(id);
        }
        let is_ours = self.is_of_session(cx, id);
        // Updates may come before the answer that names the session, and bare updates have no
        // answer at all.
        if is_ours && !self.lifecycle.session.is_bound() {
            self.emit_session(cx);
        }
        is_ours
    }

    /// A session is known, or more is known about it.
    fn emit_session(&mut self, cx: &mut FrameContext<'_>) {
        let session = &self.session;
        let Some(id) = self.lifecycle.session.id() else {
            return;
        };
        let own = |it: &Option<String>| it.clone().map(Cow::Owned);
        let how = match session {
            AcpSession { is_fork: true, .. } => Binding::Fork,
            AcpSession { is_old: true, .. } => Binding::Resume,
            AcpSession { .. } => Binding::Init,
        };
        let bound = SessionBound {
            model: own(&session.model),
            cwd: own(&session.cwd),
            permission_mode: own(&session.mode),
            version: own(&session.version),
            commands: session.commands.iter().cloned().map(Cow::Owned).collect(),
            ..SessionBound::new(SessionId::new(id.to_owned()), how)
        };
        self.lifecycle.bind(cx, bound);
    }

    /// What the options of a session say about its model and its mode.
    fn configured(&mut self, options: &[wire::ConfigOption<'_>]) -> bool {
        let before = (self.session.model.clone(), self.session.mode.clone());
        for option in options {
            let value = option.current.owned();
            // Some agents give their options no category, but name them by it.
            match option.category.as_deref().or(option.id.as_deref()) {
                Some("model") => self.session.model = value,
                Some("mode") => self.session.mode = value,
                Some(_) | None => (),
            }
        }
        before != (self.session.model.clone(), self.session.mode.clone())
    }

    /// Where events of an update go, and what else it says about itself.
    fn enter<'c>(&mut self, cx: &mut FrameContext<'c>, meta: Any<'c>) -> Meta<'c> {
        let mut fields: Meta<'c> = meta.parse().unwrap_or_default();
        // Adapters put much into `_meta`; the whole of it is kept only where something in it is not
        // read.
        if !fields.extra().is_empty() {
            cx.keep("_meta", meta);
        }
        let parent = fields.parent_tool_use_id.take();
        // linkspan writes it at the top, the adapter for Claude Code inside of its own object.
        let parent = parent.or(fields.claude_code.parent_tool_use_id.take());
        if let Some(parent) = parent.filter(|it| !it.is_empty()) {
            let path = self.subagents.path_of(&mut self.lifecycle, cx, &parent);
            cx.path = Cow::Owned(path);
        }
        fields
    }
}

impl MessageReader for Acp {
    const ENGINE: &str = "acp";
    const HAS_MANY_ENGINES: bool = true;
    const AGENT: &str = "the agent";

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        if self.notification(cx) {
            return;
        }
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, "an ACP message", &mut line) {
            return;
        }
        let session = line.session_id.take();
        if line.session_update.0.is_some() {
            // The fields of the update are this line's own.
            cx.extra.clear();
            // A bare update has its fields at the top of the line, where `Line` has taken them for
            // its own.
            let update = scanner::from_str(cx.message).unwrap_or_default();
            self.update(cx, session.as_deref(), update);
        } else if line.method.0.is_some() {
            self.method(cx, &line);
        } else if line.update.0.is_some() {
            let update = line.update.parse().unwrap_or_default();
            self.update(cx, session.as_deref(), update);
        } else if self.is_response(&line) {
            self.response(cx, &line);
        } else {
            self.lifecycle.unmapped(cx, "no message of ACP");
        }
    }

    fn client_message(&mut self, cx: &mut FrameContext<'_>) {
        self.message(cx);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.finish_run(cx, ended);
    }

    fn flush(&mut self, cx: &mut FrameContext<'_>) {
        self.end_replay(cx);
    }

    fn start_queued(&mut self, cx: &mut FrameContext<'_>) -> bool {
        self.next(cx)
    }

    fn was_interrupted(&self) -> bool {
        self.was_cancelled
    }
}

/// True when a line can only be a message of ACP.
pub(crate) fn recognises(line: &str) -> bool {
    let line = input::message(line);
    let mut it = Line::default();
    if read(line, &mut it).is_err() {
        return false;
    }
    if it.session_update.0.is_some() || it.session_id.0.is_some() && it.update.0.is_some() {
        return true;
    }
    // Codex has a JSON-RPC of its own, without the version.
    if it.jsonrpc.0.is_none() {
        return false;
    }
    let params: wire::Params<'_> = it.params.parse().unwrap_or_default();
    match it.method.as_deref() {
        // MCP has an `initialize` too, with a date for a version.
        Some("initialize") => params.protocol_version.0.is_some_and(|it| it < 1000.0),
        Some(method) => requests::is_of_acp(method),
        None => {
            let result: wire::Outcome<'_> = it.result.parse().unwrap_or_default();
            result.stop_reason.0.is_some() || result.protocol_version.0.is_some()
        }
    }
}
