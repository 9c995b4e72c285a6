//! Codex: what `codex exec --json` prints, and both directions of `codex app-server`.
//!
//! Facts from recordings of codex-cli 0.166.0 and from the ThreadEvents other programs write. Lines
//! have no deltas; an `error` line ends nothing; an interrupted turn has no end at all; token
//! counts add up over the whole thread, also over a resumed one. The calls of a sub-agent are not
//! reported. A line that speaks of another thread than the main one is kept as it is.

mod end;
mod items;
mod server;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::VecDeque;

use model::{
    Binding, Cause, Denial, Level, Notice, Raw, RunEnded, SessionBound, Text, Timestamp, Tokens,
    Why,
};
use serde_json::value::RawValue;

use self::items::Phase;
use super::input::Direction;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::{ReaderConfig, input, session_tracker};
use crate::wire::codex::{self as wire, Line};
use crate::wire::lenient::{Object as _, read};

/// Requests that wait for an answer.
const MAX_WAITING: usize = 256;
/// Denied calls, repeated at the end of the run.
const MAX_DENIALS: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Codex {
    lifecycle: Lifecycle,
    cwd: Option<String>,
    answer: AnswerText,
    denials: Vec<Denial<'static>>,
    /// What the thread has used so far, by its own count.
    total: Option<Tokens>,
    /// The same in the app server's words.
    total_told: Option<Raw<'static>>,
    /// The usage of this run's calls, where each is reported.
    calls: Option<Tokens>,
    was_interrupted: bool,
    /// What the host of an app server asked for and has no answer to.
    requests: VecDeque<(String, HostRequest)>,
    is_server: bool,
}

/// Requests of a host that a run depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRequest {
    Thread,
    OldThread,
    Turn,
}

/// The words that may turn out to be the answer.
#[derive(Clone, Debug, Default)]
struct AnswerText {
    /// The last message that calls itself final.
    last_final: Option<Text<'static>>,
    /// The last one that does not say what it is.
    last: Option<Text<'static>>,
}

impl AnswerText {
    fn take(&mut self) -> Option<Text<'static>> {
        let last = self.last.take();
        self.last_final.take().or(last)
    }
}

impl Codex {
    fn line<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str, direction: Direction) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, text, "a Codex event", &mut line) {
            return;
        }
        cx.extra = std::mem::take(line.extra());
        if let Some(at) = line.emitted_at.0 {
            cx.at = Some(Timestamp::from_millis(at as i64));
        }
        let kind = line.r#type.as_deref();
        if self.lifecycle.is_over() && kind.is_some_and(is_of_turn) {
            return self.lifecycle.after_end(cx);
        }
        match kind {
            Some("thread.started") => self.thread_started(cx, &line, text),
            Some("turn.started") => self.turn_started(cx),
            Some("turn.completed") => self.turn_completed(cx, &line, text),
            Some("turn.failed") => self.turn_failed(cx, &mut line, text),
            Some("item.started") => self.line_item(cx, &mut line, Phase::Started, text),
            Some("item.updated") => self.line_item(cx, &mut line, Phase::Updated, text),
            Some("item.completed") => self.line_item(cx, &mut line, Phase::Completed, text),
            Some("error") => self.error_line(cx, &line, text),
            Some(name) => {
                let what = format!("type `{name}`");
                self.lifecycle.unmapped(cx, what, text);
            }
            None => self.rpc(cx, &mut line, text, direction),
        }
    }

    fn thread_started<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>, text: &'c str) {
        let Some(id) = line.thread_id.as_deref().filter(|it| !it.is_empty()) else {
            return self
                .lifecycle
                .unmapped(cx, "thread without an id".to_owned(), text);
        };
        // A process says this once, first: whatever ran before it has lost its end.
        self.end_unfinished(cx);
        self.bind(cx, session_tracker::bound(id.to_owned()));
    }

    /// Takes a thread as the one that speaks; false when the run has failed over it.
    fn bind(&mut self, cx: &mut FrameContext<'_>, bound: SessionBound<'_>) -> bool {
        let id = bound.native.as_str();
        let is_known = self.lifecycle.session.id() == Some(id);
        if bound.how == Binding::Fork {
            self.lifecycle.session.adopt(id);
        } else if !self.accepts_session(cx, id) {
            return false;
        }
        if !is_known {
            self.total = None;
        }
        self.lifecycle.bind(cx, bound);
        true
    }

    fn turn_started(&mut self, cx: &mut FrameContext<'_>) {
        self.end_unfinished(cx);
        self.lifecycle.start_run(cx, Cause::Prompt);
    }

    /// Makes sure that a run is under way; the stream may begin in the middle of one.
    fn begin(&mut self, cx: &mut FrameContext<'_>) {
        if !self.lifecycle.has_run() {
            let before = cx.why.replace(Why::NeverOpened);
            self.lifecycle.start_run(cx, Cause::Prompt);
            cx.why = before;
        }
    }

    fn line_item<'c>(
        &mut self,
        cx: &mut FrameContext<'c>,
        line: &mut Line<'c>,
        phase: Phase,
        text: &'c str,
    ) {
        if !line.item.is_object() {
            return self
                .lifecycle
                .unmapped(cx, "item event without an item".to_owned(), text);
        }
        let mut item = line.item.take();
        if item.r#type.as_deref() == Some("web_search") {
            let ids: wire::Ids<'_> = serde_json::from_str(text).unwrap_or_default();
            item.id.0 = ids.item.0.map(Cow::Owned).or(item.id.0);
        }
        self.item(cx, item, phase, text);
    }

    /// An `error` line: a retry, or the reason of a `turn.failed` that follows. It ends nothing.
    fn error_line<'c>(&mut self, cx: &mut FrameContext<'c>, line: &Line<'c>, text: &'c str) {
        cx.extra.clear();
        let message = line.message.raw().map(Text::from).unwrap_or_default();
        let is_retry = message.to_str().starts_with("Reconnecting...");
        let (level, code) = if is_retry {
            (Level::Warning, "api_retry")
        } else {
            (Level::Error, "error")
        };
        self.notice(cx, level, code, message, raw(text));
    }

    fn notice(
        &mut self,
        cx: &mut FrameContext<'_>,
        level: Level,
        code: &'static str,
        text: Text<'_>,
        detail: Option<Raw<'_>>,
    ) {
        let code = Cow::Borrowed(code);
        let notice = Notice {
            detail,
            ..Notice::new(level, code, text)
        };
        self.lifecycle.notice(cx, notice);
    }
}

impl MessageReader for Codex {
    const SESSION_ID: &str = "session_id/thread_id";

    fn new(config: &ReaderConfig) -> Self {
        Self {
            lifecycle: Lifecycle::new("codex", config).with_announced_turns(),
            cwd: None,
            answer: AnswerText::default(),
            denials: Vec::new(),
            total: None,
            total_told: None,
            calls: None,
            was_interrupted: false,
            requests: VecDeque::new(),
            is_server: false,
        }
    }

    fn lifecycle(&mut self) -> &mut Lifecycle {
        &mut self.lifecycle
    }

    fn agent(&self) -> &'static str {
        if self.is_server {
            "codex app-server"
        } else {
            "codex exec"
        }
    }

    fn message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        self.line(cx, text, Direction::FromAgent);
    }

    fn client_message<'c>(&mut self, cx: &mut FrameContext<'c>, text: &'c str) {
        self.line(cx, text, Direction::ToAgent);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        ended.answer = self.answer.take();
        ended.denials = std::mem::take(&mut self.denials);
        self.lifecycle.end_run(cx, ended);
        self.calls = None;
        self.was_interrupted = false;
    }

    fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }
}

/// True for a line that belongs to a turn and does not begin one.
fn is_of_turn(kind: &str) -> bool {
    let ends = ["turn.completed", "turn.failed", "error"];
    kind.starts_with("item.") || ends.contains(&kind)
}

/// True when a frame can only be Codex's.
pub(crate) fn recognises(line: &str) -> bool {
    let text = input::message(line);
    let mut line = Line::default();
    if read(text, &mut line).is_err() {
        return false;
    }
    match line.r#type.as_deref() {
        Some("thread.started") => line.thread_id.0.is_some(),
        Some("turn.started") => true,
        Some("turn.completed") => line.usage.0.is_some(),
        Some("turn.failed") => line.error.is_object(),
        Some("item.started" | "item.updated" | "item.completed") => {
            line.item.is_object() && line.item.take().r#type.0.is_some()
        }
        Some(_) => false,
        None => line.jsonrpc.0.is_none() && line.method.as_deref().is_some_and(server::is_method),
    }
}

fn raw(json: &str) -> Option<Raw<'_>> {
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    Some(Raw::borrowed(raw))
}
