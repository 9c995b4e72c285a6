//! Asks that nobody answers in time: since when each one waits, and which were settled because of that.

use std::time::Instant;

use model::{AskSettled, Body, Text, Why};

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

    /// Nobody has answered this ask in time; `message` says so.
    pub(crate) fn is_late(&mut self, ask: &str, message: Option<String>) {
        let open = self.asks.iter().find(|it| it.ask.id.as_str() == ask);
        let late = open.map(|it| (it.ask.id.clone(), message));
        self.late.extend(late);
    }

    /// Whether an ask is settled because nobody answered in time.
    pub(super) fn is_deadline(&self, body: &Body<'_>) -> Option<Why> {
        match body {
            Body::AskSettled(settled) if self.late(settled).is_some() => Some(Why::Deadline),
            _ => None,
        }
    }

    /// A settlement with the reason for it, where the agent's protocol has no place for one.
    pub(super) fn settled<'a>(&self, settled: &AskSettled<'a>) -> AskSettled<'a> {
        let mut settled = settled.clone();
        if let (None, Some(Some(message))) = (&settled.message, self.late(&settled)) {
            settled.message = Some(Text::new(message.clone()));
        }
        settled
    }

    fn late(&self, settled: &AskSettled<'_>) -> Option<&Option<String>> {
        let late = self.late.iter().find(|it| it.0 == settled.id);
        late.map(|it| &it.1)
    }
}
