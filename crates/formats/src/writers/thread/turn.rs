//! The frame of a ThreadEvent stream: the thread, its turns, and the ids inside one.
//!
//! A stream begins with `thread.started`, which is written between turns only. A run whose session
//! is not known yet therefore waits with its `turn.started` until it has something to say; a session
//! that is learned later is announced when the turn is over.

use model::{Outcome, RunEnded, Text};

use super::{Profile, line, own};
use crate::wire::thread as wire;

/// Warnings kept between turns, where the target has no place for them; the rest is counted.
const MAX_POSTPONED: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    /// A run has started of which nothing is written yet.
    Waiting,
    Open,
}

#[derive(Clone, Debug)]
pub(super) struct Turns {
    pub(super) profile: Profile,
    pub(super) turn: Turn,
    /// The main agent has said something in this turn.
    pub(super) has_answer: bool,
    /// linkspan's id of the session, until the agent's own is known.
    session: String,
    native: Option<String>,
    announced: Option<String>,
    next_item: u64,
    postponed: Vec<Text<'static>>,
}

impl Turns {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            turn: Turn::None,
            has_answer: false,
            session: String::new(),
            native: None,
            announced: None,
            next_item: 0,
            postponed: Vec::new(),
        }
    }

    pub(super) fn know_session(&mut self, session: &str) {
        if self.session.is_empty() {
            session.clone_into(&mut self.session);
        }
    }

    pub(super) fn thread_id(&self) -> &str {
        self.announced.as_deref().unwrap_or(&self.session)
    }

    /// True when nothing speaks against telling a warning between two turns.
    pub(super) fn is_between(&self) -> bool {
        self.turn == Turn::None && self.announced.is_some()
    }

    pub(super) fn bind(&mut self, native: &str, out: &mut Vec<u8>) {
        self.native = Some(native.to_owned());
        match self.turn {
            Turn::None => self.announce(out),
            Turn::Waiting => self.begin(out),
            Turn::Open => (),
        }
    }

    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        self.turn = Turn::Waiting;
        if self.native.is_some() {
            self.begin(out);
        }
    }

    /// Makes sure that a turn is open.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if self.turn == Turn::Open {
            return;
        }
        self.announce(out);
        self.turn = Turn::Open;
        self.has_answer = false;
        line(out, &wire::ThreadEvent::TurnStarted);
        for text in std::mem::take(&mut self.postponed) {
            self.error(&text, out);
        }
    }

    pub(super) fn end(&mut self, terminal: &wire::ThreadEvent<'_>, out: &mut Vec<u8>) {
        line(out, terminal);
        self.turn = Turn::None;
        self.next_item = 0;
        if self.native.is_some() {
            self.announce(out);
        }
    }

    /// Keeps a warning for the next turn; false when there are too many.
    pub(super) fn postpone(&mut self, text: &Text<'_>) -> bool {
        let has_room = self.postponed.len() < MAX_POSTPONED;
        if has_room {
            self.postponed.push(text.clone().into_owned());
        }
        has_room
    }

    pub(super) fn n_postponed(&self) -> usize {
        self.postponed.len()
    }

    /// Something that went wrong and ended nothing.
    pub(super) fn error(&mut self, message: &Text<'_>, out: &mut Vec<u8>) {
        self.error_item(None, message, out);
    }

    /// A warning under the id it had, if it had one that fits.
    pub(super) fn error_item(&mut self, id: Option<&str>, message: &Text<'_>, out: &mut Vec<u8>) {
        match self.profile {
            Profile::Typed => {
                let id = &*self.kept_id(id.unwrap_or_default());
                let details = wire::Details::Error { message };
                let item = wire::ThreadItem { id, details };
                line(out, &wire::ThreadEvent::ItemCompleted { item });
            }
            Profile::Seed => line(out, &wire::ThreadEvent::Error { message }),
        }
    }

    /// An id for something that has none of its own.
    pub(super) fn new_id(&mut self) -> String {
        let id = format!("item_{}", self.next_item);
        self.next_item += 1;
        id
    }

    /// The id of something that is no call: its own when it is like those given out here.
    pub(super) fn kept_id(&mut self, id: &str) -> String {
        match id.strip_prefix("item_").map(str::parse::<u32>) {
            Some(Ok(_)) => self.own_id(id),
            Some(Err(_)) | None => self.new_id(),
        }
    }

    /// A call's own id, unless it looks like one that was given out here.
    pub(super) fn own_id(&mut self, id: &str) -> String {
        match id.strip_prefix("item_").map(str::parse::<u32>) {
            Some(Ok(n)) if u64::from(n) < self.next_item => self.new_id(),
            Some(Ok(n)) => {
                self.next_item = u64::from(n) + 1;
                id.to_owned()
            }
            Some(Err(_)) | None => id.to_owned(),
        }
    }

    fn announce(&mut self, out: &mut Vec<u8>) {
        let thread_id = self.native.as_ref().unwrap_or(&self.session);
        if self.announced.as_ref() != Some(thread_id) {
            line(out, &wire::ThreadEvent::ThreadStarted { thread_id });
            self.announced = Some(thread_id.clone());
        }
    }
}

/// The one line that ends a turn.
pub(super) fn terminal<'a>(ended: &'a RunEnded<'_>) -> wire::ThreadEvent<'a> {
    let message = |fallback: &'static str| match &ended.error {
        Some(error) if !error.message.is_empty() => error.message.by_ref(),
        Some(_) | None => Text::new(fallback),
    };
    let message = match ended.outcome {
        Outcome::Completed => {
            let usage = usage(ended);
            return wire::ThreadEvent::TurnCompleted { usage };
        }
        Outcome::Aborted => Text::new("aborted"),
        Outcome::Failed => message("failed"),
        Outcome::Refused => message("the model refused"),
        Outcome::Limit => message("a limit was reached"),
        Outcome::Lost => message("the stream stopped before the run ended"),
    };
    let error = wire::Error { message };
    wire::ThreadEvent::TurnFailed { error }
}

fn usage(ended: &RunEnded<'_>) -> wire::Usage {
    // Codex counts in signed numbers.
    let count = |n: u64| n.min(i64::MAX.unsigned_abs());
    let Some(usage) = &ended.usage else {
        return wire::Usage::default();
    };
    if let Some(own) = own::usage(usage) {
        return own;
    }
    wire::Usage {
        input_tokens: count(usage.tokens.input),
        cached_input_tokens: count(usage.tokens.cache_read),
        cache_write_input_tokens: count(usage.tokens.cache_write),
        output_tokens: count(usage.tokens.output.unwrap_or_default()),
        reasoning_output_tokens: count(usage.tokens.reasoning.unwrap_or_default()),
    }
}
