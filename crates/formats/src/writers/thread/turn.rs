//! The frame of a ThreadEvent stream: the thread, its turns, and the ids inside one.
//!
//! A stream begins with `thread.started`, which is written between turns only. A run whose session
//! is not known yet therefore waits with its `turn.started` until there is an item to write; a session
//! that is learned later is announced when the turn is over.

use model::{ModelUsage, Outcome, RunEnded, Text, Tokens, Usage};

use super::{ThreadProfile, codex_passthrough, line};
use crate::wire::thread as wire;
use crate::writers::summary;

/// Warnings kept between turns, where the target has no place for them; the rest is counted.
const MAX_POSTPONED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TurnState {
    #[default]
    None,
    /// A run has started of which nothing is written yet.
    Waiting,
    Open,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    pub(super) profile: ThreadProfile,
    pub(super) turn: TurnState,
    /// The main agent has sent text in this turn.
    pub(super) has_answer: bool,
    /// linkspan's id of the session, until the agent's own is known.
    pub(super) session: String,
    native: Option<String>,
    announced: Option<String>,
    /// Never goes back: a client may keep the items of all turns under their ids. A writer that
    /// starts in the middle of a session must first see the earlier events, so that it numbers
    /// items alike.
    next_item: u64,
    pub(super) postponed: Vec<Text<'static>>,
}

impl Turns {
    pub(super) fn new(profile: ThreadProfile) -> Self {
        Self {
            profile,
            ..Self::default()
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

    /// True when a warning may be written between two turns: Codex does that once the thread is announced.
    pub(super) fn is_between(&self) -> bool {
        self.turn == TurnState::None && self.announced.is_some()
    }

    pub(super) fn bind(&mut self, native: &str, out: &mut Vec<u8>) {
        self.native = Some(native.to_owned());
        match self.turn {
            TurnState::None => self.announce(out),
            TurnState::Waiting => self.begin(out),
            // `thread.started` must not stand inside a turn: `end` announces it.
            TurnState::Open => (),
        }
    }

    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        self.turn = TurnState::Waiting;
        if self.native.is_some() {
            self.begin(out);
        }
    }

    /// Makes sure that a turn is open.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if self.turn == TurnState::Open {
            return;
        }
        self.announce(out);
        self.turn = TurnState::Open;
        self.has_answer = false;
        line(out, &wire::ThreadEvent::TurnStarted);
        // Codex has no items outside of a turn.
        for text in std::mem::take(&mut self.postponed) {
            self.error_item(None, &text, out);
        }
    }

    pub(super) fn end(&mut self, terminal: &wire::ThreadEvent<'_>, out: &mut Vec<u8>) {
        line(out, terminal);
        self.turn = TurnState::None;
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

    /// Something that went wrong and ended nothing, under the id it had, if it had one that fits.
    pub(super) fn error_item(&mut self, id: Option<&str>, message: &Text<'_>, out: &mut Vec<u8>) {
        match self.profile {
            ThreadProfile::Typed => {
                let id = &*self.kept_id(id.unwrap_or_default());
                let details = wire::Details::Error { message };
                let item = wire::ThreadItem { id, details };
                line(out, &wire::ThreadEvent::ItemCompleted { item });
            }
            ThreadProfile::Seed => line(out, &wire::ThreadEvent::Error { message }),
        }
    }

    /// An id for something that has none of its own.
    pub(super) fn new_id(&mut self) -> String {
        let id = format!("item_{}", self.next_item);
        self.next_item += 1;
        id
    }

    /// Reuse the agent's id if it matches our `item_N` scheme, else allocate.
    pub(super) fn kept_id(&mut self, id: &str) -> String {
        match number(id) {
            Some(_) => self.own_id(id),
            None => self.new_id(),
        }
    }

    /// A call's own id, unless it looks like one that was given out here. Codex counts from 0 again in
    /// every process; a repeated `item_0` gets the next number instead.
    pub(super) fn own_id(&mut self, id: &str) -> String {
        match number(id) {
            // Kept as it is, so that a recording of Codex comes out with its own ids.
            Some(Ok(n)) if u64::from(n) >= self.next_item => {
                self.next_item = u64::from(n) + 1;
                id.to_owned()
            }
            Some(_) => self.new_id(),
            None => id.to_owned(),
        }
    }

    fn announce(&mut self, out: &mut Vec<u8>) {
        let thread_id = self.native.as_ref().unwrap_or(&self.session);
        // To a client, `thread.started` means another thread.
        if self.announced.as_ref() != Some(thread_id) {
            line(out, &wire::ThreadEvent::ThreadStarted { thread_id });
            self.announced = Some(thread_id.clone());
        }
    }
}

/// The number of an id like those given out here. An error is one that the reader had to change,
/// because the agent had used it before: `item_0~2`.
fn number(id: &str) -> Option<Result<u32, ()>> {
    let rest = id.strip_prefix("item_")?;
    match rest.split_once('~') {
        None => rest.parse().ok().map(Ok),
        Some((n, again)) => {
            let is_like = n.parse::<u32>().is_ok() && again.parse::<u32>().is_ok();
            is_like.then_some(Err(()))
        }
    }
}

/// The one line that ends a turn.
pub(super) fn terminal<'a>(ended: &'a RunEnded<'_>) -> wire::ThreadEvent<'a> {
    let figures = figures(ended);
    let message = |fallback: &'static str| match &ended.error {
        Some(error) if !error.message.is_empty() => error.message.by_ref(),
        Some(_) | None => Text::new(fallback),
    };
    let message = match ended.outcome {
        Outcome::Completed => {
            let usage = usage(ended).unwrap_or_default();
            return wire::ThreadEvent::TurnCompleted { usage, figures };
        }
        Outcome::Aborted => Text::new("aborted"),
        Outcome::Failed => message("failed"),
        Outcome::Refused => message("the model refused"),
        Outcome::Limit => message("a limit was reached"),
        Outcome::Lost => message("the stream stopped before the run ended"),
    };
    wire::ThreadEvent::TurnFailed {
        error: wire::Error { message },
        // Codex's own failed turns have no counts, and stay as they were.
        usage: usage(ended).filter(|_| figures.usage_scope.is_some()),
        figures,
    }
}

/// What linkspan knows besides the counts that Codex prints.
fn figures<'a>(ended: &'a RunEnded<'_>) -> wire::Figures<'a> {
    let is_of_run = |it: &Usage<'_>| codex_passthrough::usage(it).is_none();
    wire::Figures {
        usage_scope: (ended.usage.as_ref())
            .is_some_and(is_of_run)
            .then_some(wire::OF_THE_RUN),
        model_usage: ended.models.iter().map(model_usage).collect(),
        cost_usd: summary::cost(ended),
        session_cost_usd: ended.session_cost_usd,
        duration_ms: ended.duration_ms,
    }
}

fn model_usage<'a>(of_model: &'a ModelUsage<'_>) -> wire::ModelUsage<'a> {
    wire::ModelUsage {
        model: &of_model.model,
        usage: counts(&of_model.tokens),
        cost_usd: of_model.cost_usd,
        context_window: of_model.context_window,
    }
}

/// The counts and figures of the run itself, also of Codex, which counts the whole thread.
pub(crate) fn run_figures<'a>(ended: &'a RunEnded<'_>) -> (Option<wire::Usage>, wire::Figures<'a>) {
    let usage = ended.usage.as_ref().map(|it| counts(&it.tokens));
    let figures = wire::Figures {
        usage_scope: usage.is_some().then_some(wire::OF_THE_RUN),
        ..figures(ended)
    };
    (usage, figures)
}

fn usage(ended: &RunEnded<'_>) -> Option<wire::Usage> {
    let usage = ended.usage.as_ref()?;
    Some(codex_passthrough::usage(usage).unwrap_or_else(|| counts(&usage.tokens)))
}

fn counts(tokens: &Tokens) -> wire::Usage {
    // Codex counts in signed numbers.
    let count = |n: u64| n.min(i64::MAX.unsigned_abs());
    wire::Usage {
        input_tokens: count(tokens.input),
        cached_input_tokens: count(tokens.cache_read),
        cache_write_input_tokens: count(tokens.cache_write),
        output_tokens: count(tokens.output.unwrap_or_default()),
        reasoning_output_tokens: count(tokens.reasoning.unwrap_or_default()),
    }
}
