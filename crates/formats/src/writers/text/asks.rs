//! Questions of the agent, and how they were settled.
//!
//! Live output shows a question when it is asked; a file gets it with its answer.

use model::{AskSettled, Decision};

use super::TextLayout;
use super::page::{BlockKind, DIM, GREEN, RED, SafeText, YELLOW};
use crate::writers::asks::OpenAsk;
use crate::writers::transcript::Place;

impl TextLayout {
    pub(super) fn question(&mut self, ask: &OpenAsk, place: &mut Place<'_>) {
        self.page.begin(block(ask), place);
        let safe = SafeText::from(&*ask.question);
        // In full, because a decision may depend on it.
        for (n, line) in safe.lines().enumerate() {
            self.page.start(if n == 0 { "" } else { "  " }, place.out);
            self.page
                .put(YELLOW, if n == 0 { "? " } else { "" }, place.out);
            self.page.put(YELLOW, line.trim_end(), place.out);
            self.page.end_line(place.out);
        }
    }

    /// Writes the answer, under the question if that is what was written last.
    pub(super) fn answer(
        &mut self,
        ask: &OpenAsk,
        settled: &AskSettled<'_>,
        place: &mut Place<'_>,
    ) {
        if !self.page.is_last(&block(ask)) {
            self.question(ask, place);
        }
        self.page.resume(block(ask), place.path);
        let style = match settled.decision {
            Decision::Allowed | Decision::AllowedAlways => GREEN,
            Decision::Denied => RED,
            Decision::Withdrawn | Decision::Lost => YELLOW,
        };
        self.page.start("  ", place.out);
        self.page.put(DIM, "→ ", place.out);
        self.page.put(style, ask.decision(settled), place.out);
        self.page.end_line(place.out);
    }
}

fn block(ask: &OpenAsk) -> BlockKind {
    BlockKind::Ask(ask.id.clone(), ask.call.clone())
}
