//! What is sent to a conversation that linkspan runs: lines of its own, not of OpenHands.
//!
//! Answers hold what no event does: who allowed a call, and when. The first line marks a
//! conversation of linkspan. OpenHands reports everything else itself, including prompts and
//! interrupts.

use model::{AskSettled, Decision, ItemId};

use super::wire::Sent;
use super::{FrameContext, OpenHands};
use crate::wire::lenient::read;

impl OpenHands {
    pub(super) fn sent(&mut self, cx: &mut FrameContext<'_>) {
        let mut sent = Sent::default();
        let is_read = read(cx.message, &mut sent).is_ok();
        match sent.r#type.as_deref().filter(|_| is_read) {
            Some("answer") => self.answer(cx, &sent),
            Some("open") => self.is_ours = true,
            Some("prompt" | "interrupt" | "model" | "permissions") => (),
            _ => self.lifecycle.unmapped(cx, "message to the agent"),
        }
    }

    fn answer(&mut self, cx: &mut FrameContext<'_>, sent: &Sent<'_>) {
        let call = ItemId::new(sent.call.owned().unwrap_or_default());
        let Some(id) = self.lifecycle.ask_of_item(&call) else {
            return;
        };
        let decision = match (sent.allow.is_true(), sent.always.is_true()) {
            (true, true) => Decision::AllowedAlways,
            (true, false) => Decision::Allowed,
            (false, _) => Decision::Denied,
        };
        let settled = AskSettled {
            message: sent.reason.text(),
            ..AskSettled::new(id, decision)
        };
        self.lifecycle.settle(cx, settled);
    }
}
