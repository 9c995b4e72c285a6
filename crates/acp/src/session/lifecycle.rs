//! The life of a session's agent, as far as the client sees it.

use super::turn::CANCELLED;
use super::{START_FAILED, Session};
use crate::rpc::{self, Error, Id};
use crate::wire;

impl Session {
    /// Gives the prompt to the agent, or starts one.
    pub(super) fn begin(&mut self) {
        if let Err(err) = self.core.begin() {
            self.fail(START_FAILED, &Error::internal(err.advice()));
        }
    }

    pub(super) async fn on_started(&mut self) {
        let (core, mut fanout) = self.parts();
        core.on_started(&mut fanout).await;
        if self.is_cancelled() && self.core.drop_waiting() {
            self.end_turn(CANCELLED);
        }
    }

    /// Releases the agent and reads it to its end.
    pub(super) async fn release_agent(&mut self) {
        let (core, mut fanout) = self.parts();
        core.release_agent(&mut fanout).await;
        self.withdraw_asks();
    }

    /// Another process wants the session: release it, unless the client has work in it.
    pub(super) async fn yield_session(&mut self) {
        if self.turn.is_some() || self.core.has_waiting() {
            return;
        }
        let (core, mut fanout) = self.parts();
        core.yield_session(&mut fanout).await;
        self.withdraw_asks();
    }

    pub(super) async fn leave(mut self, closing: Option<Id>) {
        self.cancel(None);
        // The agent never outlives the session.
        let (core, mut fanout) = self.parts();
        core.wait_for_run_end(&mut fanout, |it| it.turn.is_some())
            .await;
        self.release_agent().await;
        self.end_turn(CANCELLED);
        // Only then can it be opened again; a client that does not read must not hold that up.
        self.core.worker.log_mut().release().await;
        if let Some(id) = closing {
            self.lines.extend(rpc::result(&id, &wire::Empty {}));
        }
        self.send().await;
    }
}
