//! Asks that nobody answers in time: since when each one waits, and which were settled because of that.

use std::time::Instant;

use model::{Body, Why};

use super::Live;
use crate::policy::Asked;

impl Live {
    /// What waits for an answer, and since when.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Asked, Instant)> {
        self.asks.iter().filter_map(|asked| {
            let at = self.asked_at.iter().find(|it| it.0 == asked.ask.id);
            at.map(|it| (asked, it.1))
        })
    }

    /// Nobody has answered this ask in time.
    pub(crate) fn is_late(&mut self, ask: &str) {
        let open = self.asks.iter().find(|it| it.ask.id.as_str() == ask);
        self.late.extend(open.map(|it| it.ask.id.clone()));
    }

    /// Whether an ask is settled because nobody answered in time.
    pub(super) fn is_deadline(&self, body: &Body<'_>) -> Option<Why> {
        match body {
            Body::AskSettled(settled) if self.late.contains(&settled.id) => Some(Why::Deadline),
            _ => None,
        }
    }
}
