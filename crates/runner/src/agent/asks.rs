//! Ask timeouts: when asks are due, and which were settled because of it.

use std::time::Instant;

use super::Agent;
use crate::ask_limit::AskLimit;
use crate::dialogue::NotSettled;
use crate::policy::PendingAsk;
use crate::request::Answer;

impl Agent {
    /// What is asked from now on may wait for so long; without a limit it waits for ever. What a recording
    /// asks is answered by the recording.
    pub fn set_ask_limit(&mut self, limit: Option<AskLimit>) {
        self.live
            .set_ask_limit(limit.filter(|_| self.dialogue.is_some()));
    }

    /// The overdue asks with their default answers, see [`Agent::settle_late`].
    pub fn overdue(&self) -> Vec<(PendingAsk, Answer)> {
        let now = Instant::now();
        let due = self.live.due().filter(|(_, at, _)| *at <= now);
        due.map(|(it, _, limit)| (it.clone(), limit.answer(it)))
            .collect()
    }

    /// Settles an ask because its timeout has passed.
    pub fn settle_late(&mut self, ask: &str, answer: &Answer) -> Result<(), NotSettled> {
        // Before the answer: the reader emits the settlement as soon as it sees the line.
        self.live.is_late(ask);
        self.settle(ask, answer)
    }

    /// When the next ask will have waited for too long.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let is_known = |it: &PendingAsk| self.overdue.iter().any(|id| it.ask.id.as_str() == id);
        // A deadline that has passed would end every wait at once until the ask is settled.
        let unknown = self.live.due().filter(|(it, ..)| !is_known(it));
        unknown.map(|(_, at, _)| at).min()
    }

    /// Records overdue asks; false when there are none.
    pub(super) fn note_overdue(&mut self) -> bool {
        let overdue = self.overdue();
        let ids: Vec<String> = overdue.iter().map(|it| it.0.ask.id.to_string()).collect();
        let is_new = ids.iter().any(|it| !self.overdue.contains(it));
        self.overdue = ids;
        is_new
    }
}
