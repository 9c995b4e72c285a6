//! The input and the output of an agent: both go to the reader.

use model::{Frame, Level, Sink};

use super::{Agent, newest, now};
use crate::dialogue::{Outbox, sent};

impl Agent {
    /// Sends the outbox and shows it to the reader, as it is part of the conversation.
    pub(super) fn flush_outbox(&mut self, sink: &mut dyn Sink) {
        if self.live.is_mismatch && self.stopping.is_none() {
            // A session other than the requested one must not be used.
            self.stop();
        }
        let now = now();
        // A notice is an event with a number, and numbers are not known before the place is.
        if self.newest.is_none()
            && let Some(text) = self.notice.take()
        {
            self.live.notice(sink, now, Level::Info, "api_key", &text);
        }
        if self.outbox.is_empty() {
            return;
        }
        let Outbox {
            lines,
            private,
            warnings,
            failure,
        } = std::mem::take(&mut self.outbox);
        let lines = lines.into_iter().map(|line| (None, line));
        let private = private.into_iter().map(|it| (Some(it.line), it.shown));
        for (secret, shown) in lines.chain(private) {
            let frame = sent(&shown);
            let mut sink = self.live.sink(sink, now);
            let data = Frame::Data(frame.as_bytes());
            newest::read(&mut self.newest, &mut *self.reader, data, &mut sink);
            // An answer may be many megabytes: it is moved, not copied, and only after the reader's copy is gone.
            drop(frame);
            self.source.send(secret.unwrap_or(shown));
        }
        if self.newest.is_some() {
            // They are emitted once the session is known.
            self.outbox.warnings = warnings;
        } else {
            for warning in warnings {
                self.live
                    .notice(sink, now, Level::Warning, warning.code, &warning.text);
            }
        }
        if let Some(failure) = failure {
            self.give_up(&failure.code, failure.message.to_string());
        }
    }

    pub(super) fn on_stdout(&mut self, sink: &mut dyn Sink) {
        let now = now();
        (self.silent_since, self.last_output_at) = (None, now.instant);
        let Self {
            source,
            framer,
            reader,
            dialogue,
            outbox,
            live,
            newest,
            ..
        } = self;
        let mut sink = live.sink(sink, now);
        framer.push(source.take_stdout(), &mut |frame| {
            newest::read(newest, &mut **reader, frame, &mut sink);
            if let (Some(dialogue), Frame::Data(data)) = (dialogue.as_mut(), frame)
                // Every protocol here is JSON, so bytes that are not UTF-8 are not a message.
                && let Ok(line) = std::str::from_utf8(data)
            {
                dialogue.line(line, outbox);
            }
        });
        if self.live.n_ended > 0 {
            self.source.hang_up();
        }
    }

    pub(super) fn on_stderr(&mut self, sink: &mut dyn Sink) {
        let now = now();
        let Self {
            source,
            stderr,
            live,
            newest,
            ..
        } = self;
        let mut events = Vec::new();
        stderr.feed(source.take_stderr(), now.instant, &mut events);
        match newest {
            Some(newest) => newest.hold_stderr(events),
            None => live.on_stderr(sink, now, &events),
        }
    }
}
