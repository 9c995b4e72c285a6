//! OpenCode: what `opencode run --format json` prints, and what `opencode serve` sends.
//!
//! Facts from recordings of OpenCode 1.18.33. Both streams are made of the same parts. `run` prints
//! a part when it is whole, so a tool has no start, and has no last line: the process ends. `serve`
//! reports everything as it grows, of all its sessions, sub-agents' among them, and its own
//! affairs; a run ends there when its session is idle.

mod growing_text;
mod outcome;
mod parts;
mod server;
mod sessions;
#[cfg(test)]
mod tests;
mod tools;

use model::{Cause, End, Role, RunEnded, Timestamp, Tokens};

use self::growing_text::GrowingTexts;
use self::outcome::{RunEndCause, RunState};
use self::sessions::ChildSessions;
use super::input;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::missing_end::MissingEnd;
use super::recent::Recent;
use super::session_tracker::SessionMatch;
use crate::wire::lenient::{Object as _, read};
use crate::wire::opencode::{self as wire, Line, Part};

/// Messages remembered at once.
const MAX_MESSAGES: usize = 256;

#[derive(Clone, Debug, Default)]
pub(crate) struct OpenCode {
    lifecycle: Lifecycle,
    run: RunState,
    /// The sub-agents' sessions.
    sessions: ChildSessions,
    /// Whose words the parts of a message are: parts name theirs, and only it says.
    messages: Recent<(String, Role), MAX_MESSAGES>,
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
    fn printed<'c>(&mut self, cx: &mut FrameContext<'c>, mut line: Line<'c>) {
        if let Some(at) = line.timestamp.0 {
            cx.at = Some(Timestamp::from_millis(at as i64));
        }
        let Some(kind) = line.r#type.take() else {
            return self.lifecycle.unmapped(cx, "no type");
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
            "text" | "reasoning" if self.is_again(cx, part.id.as_deref()) => (),
            "text" => self.text(cx, part, Role::Assistant),
            "reasoning" => self.reasoning(cx, part),
            "tool_use" => self.tool(cx, part),
            "error" => {
                self.begin(cx);
                self.failed(cx, line.error, true);
            }
            _ => self.lifecycle.unmapped(cx, format!("type `{kind}`")),
        }
    }

    /// Checks the session of a printed line; false when the run has failed over it.
    fn same_session(&mut self, cx: &mut FrameContext<'_>, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|it| !it.is_empty()) else {
            return true;
        };
        let is_other = self.lifecycle.session.observe(id) == SessionMatch::Other;
        // Where one session was asked for, another one on the stream is a failure and no second
        // run.
        let is_one = self.lifecycle.session.expected().is_some() || self.lifecycle.has_one_run();
        // In the middle of a step a line of another session is a stray one.
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
            cx.without_extra(|cx| self.lifecycle.start_run(cx, Cause::Prompt));
        }
    }

    /// Remembers a message; true when it is new.
    fn learn_message(&mut self, id: &str, role: Role) -> bool {
        let known = self.messages.iter_mut().rfind(|(it, _)| it == id);
        match known {
            Some(known) => known.1 = role,
            None => {
                self.messages.push((id.to_owned(), role));
                return true;
            }
        }
        false
    }
}

impl MessageReader for OpenCode {
    const ENGINE: &str = "opencode";

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, "an OpenCode event", &mut line) {
            return;
        }
        // Streams of all projects wrap each event, beside the directory it is from.
        if let Some(payload) = line.payload.0.filter(|_| line.r#type.0.is_none()) {
            let mut inner = Line::default();
            if read(payload.get(), &mut inner).is_ok() && inner.properties.is_object() {
                cx.message = payload.get();
                cx.extra.append(inner.extra());
                line = inner;
            }
        }
        if line.properties.is_object() {
            self.event(cx, line);
        } else {
            self.printed(cx, line);
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
        // Every event of the server has a dot in its name.
        _ => it.properties.is_object() && kind.contains('.'),
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
