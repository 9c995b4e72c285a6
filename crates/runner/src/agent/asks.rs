//! Asks that wait for too long: when they are due, and that they were answered because of it.

use std::time::Instant;

use super::Agent;
use crate::ask_limit::AskLimit;
use crate::dialogue::NotSettled;
use crate::policy::Asked;
use crate::request::Answer;

impl Agent {
    /// Asks may wait for so long from now on; none waits for ever.
    pub fn set_ask_limit(&mut self, limit: Option<AskLimit>) {
        self.ask_limit = limit;
    }

    /// The asks that nobody has answered in time, with what is to be answered now, see
    /// [`Agent::settle_late`].
    pub fn overdue(&self) -> Vec<(Asked, Answer)> {
        let Some(limit) = self.ask_limit else {
            return Vec::new();
        };
        let now = Instant::now();
        let waiting = self.live.waiting();
        let due = waiting.filter(|(_, since)| *since + limit.timeout <= now);
        due.map(|(it, _)| (it.clone(), limit.answer(it))).collect()
    }

    /// Answers an ask because nobody has done so in time.
    pub fn settle_late(&mut self, ask: &str, answer: &Answer) -> Result<(), NotSettled> {
        let message = self.ask_limit.map(AskLimit::message);
        self.live.is_late(ask, message);
        self.settle(ask, answer)
    }

    /// When the next ask will have waited for too long.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        let limit = self.ask_limit?;
        let waiting = self.live.waiting();
        let unknown =
            waiting.filter(|(it, _)| !self.overdue.iter().any(|id| it.ask.id.as_str() == id));
        unknown.map(|(_, since)| since + limit.timeout).min()
    }

    /// Takes down what has waited for too long; false when nothing has.
    pub(super) fn note_overdue(&mut self) -> bool {
        let overdue = self.overdue();
        let ids: Vec<String> = overdue.iter().map(|it| it.0.ask.id.to_string()).collect();
        let is_new = ids.iter().any(|it| !self.overdue.contains(it));
        self.overdue = ids;
        is_new
    }
}
