//! Codex: what `codex exec --json` prints, and both directions of `codex app-server`.
//!
//! Facts from recordings of codex-cli 0.166.0 and from the ThreadEvents other programs write. Lines
//! have no deltas; an `error` line ends nothing; an interrupted turn has no end at all; token
//! counts add up over the whole thread, also over a resumed one. The calls of a sub-agent are not
//! reported. A line about another thread than the main one is kept as it is.

mod end;
mod items;
mod server;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use model::{Binding, Cause, Level, Raw, RunEnded, SessionBound, Text, Timestamp, Tokens, Why};

use self::items::Phase;
use super::input::Direction;
use super::lifecycle::{FrameContext, Lifecycle};
use super::machine::MessageReader;
use super::recent::Recent;
use super::{input, session_tracker};
use crate::wire::codex::{self as wire, Line};
use crate::wire::lenient::read;
use crate::wire::scanner;

/// Requests that wait for an answer.
const MAX_WAITING: usize = 256;
#[derive(Clone, Debug, Default)]
pub(crate) struct Codex {
    lifecycle: Lifecycle,
    cwd: Option<String>,
    /// The last message that calls itself final; others may only comment on the work.
    final_answer: Option<Text<'static>>,
    /// What the thread has used so far, by its own count.
    total: Option<Tokens>,
    /// The same as the app server reports it.
    raw_total: Option<Raw<'static>>,
    /// The usage of this run's calls, where each is reported.
    calls: Option<Tokens>,
    was_interrupted: bool,
    /// What the host of an app server asked for and has no answer to.
    requests: Recent<(String, HostRequest), MAX_WAITING>,
    is_server: bool,
}

/// Requests of a host that a run depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostRequest {
    Thread,
    OldThread,
    Turn,
}

impl Codex {
    fn line(&mut self, cx: &mut FrameContext<'_>, direction: Direction) {
        let mut line = Line::default();
        if !input::is_object(&mut self.lifecycle, cx, "a Codex event", &mut line) {
            return;
        }
        if let Some(at) = line.emitted_at.0 {
            cx.at = Some(Timestamp::from_millis(at as i64));
        }
        let kind = line.r#type.as_deref();
        // Also `error`: between two turns it belongs to neither.
        if self.lifecycle.is_over() && kind.is_some_and(is_of_turn) {
            return self.lifecycle.after_end(cx);
        }
        match kind {
            Some("thread.started") => self.thread_started(cx, &line),
            Some("turn.started") => self.turn_started(cx),
            Some("turn.completed") => self.turn_completed(cx, &line),
            Some("turn.failed") => self.turn_failed(cx, &mut line),
            Some("item.started") => self.line_item(cx, &mut line, Phase::Started),
            Some("item.updated") => self.line_item(cx, &mut line, Phase::Updated),
            Some("item.completed") => self.line_item(cx, &mut line, Phase::Completed),
            Some("error") => {
                let message = line.message.text().unwrap_or_default();
                // A line of `codex exec` has no field for a retry; only the app server's
                // `willRetry` says it.
                let is_retry = message.to_str().starts_with("Reconnecting...");
                self.error_notice(cx, message, is_retry);
            }
            Some(name) => self.lifecycle.unmapped(cx, format!("type `{name}`")),
            None => self.rpc(cx, &mut line, direction),
        }
    }

    fn thread_started(&mut self, cx: &mut FrameContext<'_>, line: &Line<'_>) {
        let Some(id) = line.thread_id.as_deref().filter(|it| !it.is_empty()) else {
            return self.lifecycle.unmapped(cx, "thread without an id");
        };
        // A process says this once, first: whatever ran before it has lost its end.
        self.end_unfinished(cx);
        self.bind(cx, session_tracker::bound(id));
    }

    /// Takes a thread as the session; false when the run has failed over it.
    fn bind(&mut self, cx: &mut FrameContext<'_>, bound: SessionBound<'_>) -> bool {
        let id = bound.native.as_str();
        let is_known = self.lifecycle.session.id() == Some(id);
        // A fork answers with a new id, which the check against the requested thread would refuse.
        if bound.how == Binding::Fork {
            self.lifecycle.session.adopt(id);
        } else if !self.accepts_session(cx, id) {
            return false;
        }
        // The counts are the thread's: another thread begins at nothing.
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
            cx.because(Some(Why::NeverOpened), |cx| {
                self.lifecycle.start_run(cx, Cause::Prompt)
            });
        }
    }

    fn line_item<'c>(&mut self, cx: &mut FrameContext<'c>, line: &mut Line<'c>, phase: Phase) {
        if !line.item.is_object() {
            return self.lifecycle.unmapped(cx, "item event without an item");
        }
        let mut item = line.item.take();
        // Codex writes the key `id` twice into a search; the parser keeps the last, but the first
        // one is the item's.
        if item.r#type.as_deref() == Some("web_search") {
            let ids: wire::Ids<'_> = scanner::from_str(cx.message).unwrap_or_default();
            item.id.0 = ids.item.0.map(Cow::Owned).or(item.id.0);
        }
        self.item(cx, item, phase);
    }

    /// An error ends nothing: it is a retry, or the reason of a `turn.failed` that follows.
    fn error_notice(&mut self, cx: &mut FrameContext<'_>, message: Text<'_>, is_retry: bool) {
        let (level, code) = match is_retry {
            true => (Level::Warning, "api_retry"),
            false => (Level::Error, "error"),
        };
        self.lifecycle.raise_with_message(cx, level, code, message);
    }
}

impl MessageReader for Codex {
    const ENGINE: &str = "codex";
    const SESSION_ID: &str = "session_id/thread_id";
    const ANNOUNCES_TURNS: bool = true;

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

    fn message(&mut self, cx: &mut FrameContext<'_>) {
        self.line(cx, Direction::FromAgent);
    }

    fn client_message(&mut self, cx: &mut FrameContext<'_>) {
        self.line(cx, Direction::ToAgent);
    }

    fn end_run(&mut self, cx: &mut FrameContext<'_>, mut ended: RunEnded<'_>) {
        // Where no message calls itself final, the lifecycle fills in the last that is no
        // commentary.
        ended.answer = self.final_answer.take();
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
        // ACP is JSON-RPC with a version; Codex leaves the version out.
        None => line.jsonrpc.0.is_none() && line.method.as_deref().is_some_and(server::is_method),
    }
}
