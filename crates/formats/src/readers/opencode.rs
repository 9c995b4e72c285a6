//! OpenCode: what `opencode run --format json` prints, and what `opencode serve` sends.
//!
//! Facts from recordings of OpenCode 1.18.33. Both streams are made of the same parts. `run` prints
//! a part when it is whole, so a tool has no start, and has no last line: the process ends. `serve`
//! tells of everything as it grows, of all its sessions, sub-agents' among them, and of its own
//! affairs; a run ends there when its session is idle.

mod growing_text;
mod outcome;
mod parts;
mod server;
mod sessions;
#[cfg(test)]
mod tests;
mod tools;

use std::borrow::Cow;

use model::{Cause, End, Level, Notice, Raw, Role, RunEnded, Text, Timestamp, Tokens};

use self::growing_text::GrowingTexts;
use self::outcome::{RunEndCause, RunState};
use self::sessions::ChildSessions;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::missing_end::MissingEnd;
use super::session_tracker::SessionMatch;
use super::{ReaderConfig, input};
use crate::wire::lenient::{Object as _, read};
use crate::wire::opencode::{self as wire, Line, Part};

#[derive(Clone, Debug)]
pub(crate) struct OpenCode {
    lifecycle: Lifecycle,
    run: RunState,
    /// The sub-agents' sessions.
    sessions: ChildSessions,
    messages: Messages,
    growing: GrowingTexts,
    about: SessionAbout,
    /// The session's last reported usage.
    about_tokens: Option<Tokens>,
}

/// What the server says about the session.
#[derive(Clone, Debug, Default, PartialEq)]
struct SessionAbout {
    model: Option<String>,
    cwd: Option<String>,
    version: Option<String>,
}

impl OpenCode {
    /// A line of `opencode run`.
    fn printed<'c>(&mut self, cx: &mut FrameContext<'c>, mut line: Line<'c>, text: &'c str) {
        if let Some(at) = line.timestamp.0 {
            cx.at = Some(Timestamp::from_millis(at as i64));
        }
        let Some(kind) = line.r#type.take() else {
            return self.lifecycle.unmapped(cx, "no type".to_owned(), text);
        };
        let mut part = line.part.take();
        cx.native = part.id.0.clone().or(line.id.take());
        cx.extra.append(part.extra());
        let session = line.session_id.take().or(part.session_id.take());
        if !self.same_session(cx, session.as_deref()) {
            return;
        }
        match &*kind {
            "step_start" => self.step_start(cx),
            "step_finish" => self.step_finish(cx, part),
            "text" | "reasoning" if self.is_again(cx, part.id.as_deref(), text) => (),
            "text" => self.text(cx, part, Role::Assistant),
            "reasoning" => self.reasoning(cx, part),
            "tool_use" => self.tool(cx, part, text),
            "error" => {
                self.begin(cx);
                self.failed(cx, line.error, true);
            }
            _ => self.lifecycle.unmapped(cx, format!("type `{kind}`"), text),
        }
    }

    /// Checks the session of a printed line; false when the run has failed over it.
    fn same_session(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|it| !it.is_empty()) else {
            return true;
        };
        let is_other = self.lifecycle.session.observe(id) == SessionMatch::Other;
        let is_one = self.lifecycle.session.expected().is_some() || self.lifecycle.has_one_run();
        if is_other && !self.run.is_in_step() && !is_one {
            // Two recordings in one file: the first run is over.
            self.finish_before_next(cx);
            self.lifecycle.session.forget();
        }
        self.is_of_session(cx, Some(id))
    }

    /// The agent works: starts a run if none runs.
    fn begin(&mut self, cx: &mut FrameContext<'_>) {
        self.lifecycle.emit_bound(cx);
        if !self.lifecycle.has_run() {
            self.run = RunState::default();
            let extra = std::mem::take(&mut cx.extra);
            self.lifecycle.start_run(cx, Cause::Prompt);
            cx.extra = extra;
        }
    }

    fn emit_notice(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: impl Into<Cow<'static, str>>,
        text: Text<'_>,
        detail: Option<Raw<'_>>,
    ) {
        let notice = Notice {
            detail,
            ..Notice::new(level, code.into(), text)
        };
        self.lifecycle.notice(cx, notice);
    }
}

impl MessageReader for OpenCode {
    fn new(config: &ReaderConfig) -> Self {
        Self {
            lifecycle: Lifecycle::new("opencode", config),
            run: RunState::default(),
            sessions: ChildSessions::default(),
            messages: Messages::default(),
            growing: GrowingTexts::default(),
            about: SessionAbout::default(),
            about_tokens: None,
        }
    }

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn agent(&self) -> &'static str {
        "opencode"
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        let mut line = Line::default();
        if !input::is_object(
            &mut self.lifecycle,
            cx,
            text,
            "an OpenCode event",
            &mut line,
        ) {
            return;
        }
        if let Some(payload) = line.payload.0.filter(|_| line.r#type.0.is_none()) {
            let mut inner = Line::default();
            if read(payload.get(), &mut inner).is_ok() && inner.properties.is_object() {
                cx.extra = std::mem::take(line.extra());
                return self.event(cx, inner, payload.get());
            }
        }
        cx.extra.append(line.extra());
        if line.properties.is_object() {
            self.event(cx, line, text);
        } else {
            self.printed(cx, line, text);
        }
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, ended: RunEnded<'_>) {
        self.finish_with(cx, ended);
    }

    fn judge(&mut self, end: &End, missing: &mut MissingEnd) {
        self.verdict(RunEndCause::Stream(end), missing);
    }
}

/// True when a frame can be of no other format.
pub(crate) fn recognises(line: &str) -> bool {
    let mut it = Line::default();
    if read(input::message(line), &mut it).is_err() {
        return false;
    }
    if let Some(payload) = it.payload.0.filter(|_| it.r#type.0.is_none()) {
        it = Line::default();
        if read(payload.get(), &mut it).is_err() {
            return false;
        }
    }
    let kind = it.r#type.as_deref().unwrap_or_default();
    match kind {
        "step_start" | "step_finish" | "text" | "reasoning" | "tool_use" => {
            it.session_id.0.is_some() && it.part.is_object()
        }
        "error" => it.session_id.0.is_some() && it.error.0.is_some(),
        _ => it.properties.is_object() && kind.contains('.'),
    }
}

/// Messages remembered; parts name theirs, and only it says whose words they are.
const MAX_MESSAGES: usize = 256;

#[derive(Clone, Debug, Default)]
struct Messages {
    recent: std::collections::VecDeque<(String, Role)>,
}

impl Messages {
    /// Remembers a message; true when it is new.
    fn learn(&mut self, id: &str, role: Role) -> bool {
        if let Some(known) = self.recent.iter_mut().rfind(|(it, _)| it == id) {
            known.1 = role;
            return false;
        }
        if self.recent.len() >= MAX_MESSAGES {
            self.recent.pop_front();
        }
        self.recent.push_back((id.to_owned(), role));
        true
    }

    fn role_of(&self, id: Option<&str>) -> Option<Role> {
        let id = id?;
        let (_, role) = self.recent.iter().rfind(|(it, _)| it == id)?;
        Some(*role)
    }
}

/// The model by the name that OpenCode is asked for it.
fn model_name(provider: Option<&str>, model: Option<&str>) -> Option<String> {
    Some(match (provider, model?) {
        (Some(provider), model) => format!("{provider}/{model}"),
        (None, model) => model.to_owned(),
    })
}

fn has_ended(part: &Part<'_>) -> bool {
    let time: wire::Time<'_> = part.time.parse().unwrap_or_default();
    time.end.0.is_some()
}
