//! Asks that nobody answers in time: until when each one may wait, and which were settled because of that.

use std::time::Instant;

use model::{Ask, AskId, AskSettled, Body, Deadline, Text, Why};

use super::{LiveRun, Now};
use crate::ask_limit::AskLimit;
use crate::policy::PendingAsk;

/// What is known of the deadlines of a session's asks.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// For how long the next asks may wait.
    limit: Option<AskLimit>,
    /// The open asks that have one. It is in their events, so a later limit changes nothing.
    due: Vec<Due>,
}

#[derive(Debug)]
struct Due {
    ask: AskId<'static>,
    at: Instant,
    limit: AskLimit,
    /// It is settled because nobody answered in time.
    is_late: bool,
}

impl Deadlines {
    pub(super) fn asked(&mut self, ask: &Ask<'_>, now: Now) {
        let Some(limit) = self.limit else { return };
        // A time that no clock reaches is none.
        let Some(at) = now.instant.checked_add(limit.timeout) else {
            return;
        };
        self.due.push(Due {
            ask: ask.id.clone().into_owned(),
            at,
            limit,
            is_late: false,
        });
    }

    pub(super) fn settled(&mut self, ask: &AskId<'_>) {
        self.due.retain(|it| it.ask != *ask);
    }
}

impl LiveRun {
    /// What is asked from now on may wait for so long.
    pub(crate) fn set_ask_limit(&mut self, limit: Option<AskLimit>) {
        self.deadlines.limit = limit;
    }

    /// The open asks that have a deadline, with it and with what decides their answer then.
    pub(crate) fn due(&self) -> impl Iterator<Item = (&PendingAsk, Instant, AskLimit)> {
        self.deadlines.due.iter().filter_map(|due| {
            let asked = self.asks.iter().find(|it| it.ask.id == due.ask)?;
            Some((asked, due.at, due.limit))
        })
    }

    /// The timeout of this ask has passed.
    pub(crate) fn is_late(&mut self, ask: &str) {
        let mut due = self.deadlines.due.iter_mut();
        if let Some(due) = due.find(|it| it.ask.as_str() == ask) {
            due.is_late = true;
        }
    }

    /// The deadline that an ask has here. One from a recording has long passed.
    pub(super) fn ask_deadline(&self, ask: &Ask<'_>, now: Now) -> Option<Deadline> {
        let limit = self.deadlines.limit;
        limit.map(|it| it.deadline(ask.kind, now.at))
    }

    /// Whether an ask was settled by its timeout.
    pub(super) fn is_deadline(&self, body: &Body<'_>) -> Option<Why> {
        match body {
            Body::AskSettled(settled) if self.late(settled).is_some() => Some(Why::Deadline),
            _ => None,
        }
    }

    /// Gives a settlement its reason, where the agent's protocol has no place for one.
    pub(super) fn explain_settlement(&self, settled: &mut AskSettled<'_>) {
        if let (None, Some(limit)) = (&settled.message, self.late(settled)) {
            settled.message = Some(Text::new(limit.message()));
        }
    }

    fn late(&self, settled: &AskSettled<'_>) -> Option<AskLimit> {
        let mut late = self.deadlines.due.iter().filter(|it| it.is_late);
        late.find(|it| it.ask == settled.id).map(|it| it.limit)
    }
}
