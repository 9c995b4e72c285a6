//! How an agent ends: by a timeout, on request, or by itself.

use std::time::Instant;

use model::{End, Sink, error_chain};

use super::{Agent, Step, now};
use crate::live_run::{EndReason, Now};
use crate::process::Escalation;

impl Agent {
    /// When something has to be done although nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        // No other limit matters now: the escalation ends the agent in any case.
        if let Some(ladder) = &self.stopping {
            return ladder.due();
        }
        let start = self.silent_since.zip(self.limits.start);
        let start = start.map(|(since, limit)| since + limit);
        // An agent that waits for an answer is not idle.
        let is_waiting = self.live.has_run() && self.live.asks.is_empty();
        let idle = self.limits.idle.filter(|_| is_waiting);
        let idle = idle.map(|limit| self.last_output_at + limit);
        let ask = self.next_overdue();
        [start, idle, ask].into_iter().flatten().min()
    }

    pub(super) fn on_deadline(&mut self) {
        let now = Instant::now();
        if let Some(ladder) = &mut self.stopping {
            if let Some(step) = ladder.step(now) {
                self.source.stop(step);
            }
            return;
        }
        // An overdue ask is no reason to end the agent: the caller settles it by its default.
        if self.note_overdue() {
            return;
        }
        let (code, limit, what) = match (self.silent_since, self.limits.start, self.limits.idle) {
            (Some(since), Some(limit), _) if now >= since + limit => {
                ("start_timeout", limit, "after it was started")
            }
            (_, _, Some(limit)) if now >= self.last_output_at + limit => {
                ("idle_timeout", limit, "and was stopped")
            }
            _ => return,
        };
        let message = format!("{} printed nothing for {limit:?} {what}", self.engine);
        self.give_up(code, message);
    }

    /// The agent is unusable.
    pub(super) fn give_up(&mut self, code: &str, message: String) {
        let cause = Some((code.to_owned(), message));
        // The first reason counts, because later ones are its consequences.
        self.reason.get_or_insert(EndReason {
            cause,
            stderr: String::new(),
        });
        self.stop();
    }

    pub(super) fn stop(&mut self) {
        self.source.close_stdin();
        self.stopping = Some(Escalation::signals(Instant::now(), self.limits.patience));
    }

    /// The agent has exited: close everything that is open and end the run.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) -> Step {
        let now = now();
        // These notices belong to the run, so they come before its end.
        self.drain_stderr(sink, now);
        if let Some(err) = self.source.error() {
            let message = format!("the recording could not be read: {}", error_chain(err));
            self.give_up("read_error", message);
        }
        if let Some(failure) = self.source.failure().cloned() {
            self.give_up(&failure.code, failure.message);
            self.live.is_failure = true;
        }
        let mut reason = self.reason.take().unwrap_or_default();
        reason.stderr = self.stderr.tail();
        let end = End {
            exit: self.source.exit(),
            // A timeout or a failure is the better explanation, even if there was an abort too.
            aborted: self.is_aborted && reason.cause.is_none(),
        };
        self.live.reason = Some(reason);
        let Self {
            framer,
            reader,
            live,
            ..
        } = self;
        let mut passing = live.sink(sink, now);
        // The last line may lack its newline, above all when the agent was killed.
        framer.end(&mut |frame| {
            passing.frame(frame);
            reader.frame(frame, &mut passing);
        });
        // An agent that was never prompted has no run to fail.
        if self.is_prompted || live.has_run() {
            reader.end(&end, &mut live.sink(sink, now));
        }
        self.is_gone = true;
        // Not earlier: until its exit the agent may have written the session.
        self.session_lock = None;
        Step::Exited
    }

    fn drain_stderr(&mut self, sink: &mut dyn Sink, now: Now) {
        let mut events = Vec::new();
        self.stderr.end(now.instant, &mut events);
        self.live.on_stderr(sink, now, &events);
    }
}
