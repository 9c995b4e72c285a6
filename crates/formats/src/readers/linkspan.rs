//! The canonical form read back: `linkspan` JSONL, as written by this or an earlier version.
//!
//! A whole file comes back as it was. A damaged one is made lawful again by the same lifecycle that
//! every reader has: what was never opened is opened, what was left open is closed.

use model::{Body, End, Event, Frame, Outcome, Reader, RunEnded, RunError, Sink, Text, Why};

use super::lifecycle::{FrameContext, Lifecycle};
use super::{ReaderConfig, input};

#[derive(Clone, Debug)]
pub(crate) struct Linkspan {
    lifecycle: Lifecycle,
    /// The number the next line should have.
    next_seq: Option<u64>,
}

pub(crate) fn recognises(text: &str) -> bool {
    Event::from_json(text).is_ok()
}

impl Linkspan {
    pub(crate) fn new(config: &ReaderConfig) -> Self {
        let mut lifecycle = Lifecycle::new("linkspan", config);
        // A canonical file has a `run.started` for every run: items between two runs are out of
        // place.
        lifecycle.expect_announced_turns();
        Self {
            lifecycle,
            next_seq: None,
        }
    }

    /// Numbers have no gaps: a jump means that lines are missing or moved.
    fn check_seq(&mut self, cx: &mut FrameContext<'_>, seq: u64) {
        // A recording may be a part of a session: any number may be the first.
        if let Some(expected) = self.next_seq.replace(seq.saturating_add(1))
            && expected != seq
        {
            let text = format!("event {expected} was expected here, this is {seq}");
            self.lifecycle.warn(cx, "missing_events", text, None);
        }
    }

    fn event(&mut self, cx: &mut FrameContext<'_>, body: Body<'_>) {
        let lifecycle = &mut self.lifecycle;
        match body {
            Body::RunStarted(started) => {
                if lifecycle.has_run() {
                    // Two starts without an end: a damaged file, or two files in one.
                    lost(lifecycle, cx);
                }
                lifecycle.start_this_run(cx, started);
            }
            Body::RunEnded(ended) if lifecycle.has_run() => lifecycle.end_run(cx, ended),
            Body::RunEnded(_) => {
                let text = "a run ended that had not started".to_owned();
                lifecycle.warn(cx, "never_opened", text, None);
            }
            Body::ItemOpened(item) => lifecycle.open(cx, item),
            Body::ItemUpdated(item) => lifecycle.update(cx, item),
            Body::ItemDelta(it) => lifecycle.delta(cx, &it.item, it.channel, it.text),
            Body::ItemClosed(it) => lifecycle.close_whole(cx, it.item, it.status),
            Body::AskOpened(ask) => lifecycle.ask(cx, ask),
            Body::AskSettled(settled) => lifecycle.settle(cx, settled),
            body @ (Body::SessionBound(_)
            | Body::UsageReported(_)
            | Body::NoticeRaised(_)
            | Body::FrameUnmapped(_)) => lifecycle.emit(cx, body),
        }
    }
}

impl Reader for Linkspan {
    fn frame(&mut self, frame: Frame<'_>, sink: &mut dyn Sink) {
        let mut cx = FrameContext::new(sink);
        let Some(text) = input::text(&mut self.lifecycle, &mut cx, frame) else {
            return;
        };
        match Event::from_json(&text) {
            Ok(event) => {
                // Before anything is emitted: the first event has the numbers and names of the
                // file.
                self.lifecycle.adopt(&event);
                self.check_seq(&mut cx, event.seq);
                let mut cx = FrameContext {
                    native: event.native,
                    at: event.at,
                    origin: event.origin,
                    path: event.path,
                    extra: event.extra.into_owned(),
                    why: event.why,
                    // The number of the agent's frame, as it was when the event was made; not the
                    // line of this file.
                    frame: event.frame,
                    message: &text,
                    ..FrameContext::new(cx.sink)
                };
                self.event(&mut cx, event.body);
            }
            Err(err) => {
                let why = format!("not a linkspan event: {err}");
                self.lifecycle.bad_line(&mut cx, &text, &why);
            }
        }
    }

    fn end(&mut self, _: &End, sink: &mut dyn Sink) {
        // The exit of a process is ignored here: the file's own events would contain it.
        lost(&mut self.lifecycle, &mut FrameContext::new(sink));
    }

    fn clone_box(&self) -> Box<dyn Reader> {
        Box::new(self.clone())
    }
}

/// Ends a run whose end is not in the file.
fn lost(lifecycle: &mut Lifecycle, cx: &mut FrameContext<'_>) {
    let message = Text::new("the recording stops before the run ended");
    let error = RunError::new("missing_end", message);
    let ended = RunEnded::new(Outcome::Lost, Some(error));
    cx.because(Some(Why::MissingEnd), |cx| lifecycle.end_run(cx, ended));
}
