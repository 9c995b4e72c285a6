//! Questions of the agent, and how they were settled.
//!
//! Live output shows a question when it is asked; a file gets it with its answer.

use model::{AskSettled, Decision, ItemId};

use super::page::{BlockKind, DIM, GREEN, Indent, RED, SafeText, TerminalPage, YELLOW};
use crate::writers::asks::OpenAsk;

impl OpenAsk {
    /// Asks.
    pub(super) fn write(&self, path: &[ItemId<'_>], page: &mut TerminalPage, out: &mut Vec<u8>) {
        page.begin(self.block(), path, out);
        let safe = SafeText::new(&self.question);
        // In full, because a decision may depend on it.
        for (n, line) in safe.lines().enumerate() {
            if n == 0 {
                page.start(Indent(""), out);
                page.put(YELLOW, &SafeText::new("? "), out);
                page.put(YELLOW, &line, out);
                page.end_line(out);
            } else {
                page.line(Indent("  "), YELLOW, &line, out);
            }
        }
    }

    /// Answers, under the question if that is what was written last.
    pub(super) fn settle(
        &self,
        settled: &AskSettled<'_>,
        path: &[ItemId<'_>],
        page: &mut TerminalPage,
        out: &mut Vec<u8>,
    ) {
        if !page.is_last(&self.block()) {
            self.write(path, page, out);
        }
        page.resume(self.block(), path);
        let style = match settled.decision {
            Decision::Allowed | Decision::AllowedAlways => GREEN,
            Decision::Denied => RED,
            Decision::Withdrawn | Decision::Lost => YELLOW,
        };
        page.start(Indent("  "), out);
        page.put(DIM, &SafeText::new("→ "), out);
        page.put(style, &SafeText::new(&self.decision(settled)), out);
        page.end_line(out);
    }

    fn block(&self) -> BlockKind {
        BlockKind::Ask(self.id.clone(), self.call.clone())
    }
}
