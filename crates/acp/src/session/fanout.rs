//! Events of the agent on their way to the client.

use formats::AcpAgent;
use model::{Body, Cause, Event, Sink};

use super::turn::{CANCELLED, Turn};
use crate::rpc;
use crate::stats::Stats;

pub(super) struct Fanout<'a> {
    pub(super) writer: &'a mut AcpAgent,
    pub(super) turn: &'a mut Option<Turn>,
    pub(super) lines: &'a mut Vec<u8>,
    pub(super) has_ended: &'a mut bool,
    pub(super) stats: &'a Stats,
    pub(super) agent_mode: &'a mut Option<String>,
}

impl Sink for Fanout<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.stats.record_event(1);
        let run = event.run.as_ref().map(|it| it.as_str());
        match &event.body {
            // A run started by background work does not answer the prompt.
            Body::RunStarted(it) if it.cause == Cause::Prompt => {
                if let Some(turn) = self.turn
                    && turn.run.is_none()
                {
                    turn.run = run.map(str::to_owned);
                }
            }
            Body::SessionBound(bound) => {
                if let Some(mode) = &bound.permission_mode {
                    *self.agent_mode = Some(mode.to_string());
                }
            }
            _ => (),
        }
        let Some(end) = self.writer.event(event, self.lines) else {
            return;
        };
        let is_its = |it: &mut Turn| it.run.as_deref() == run;
        if let Some(turn) = self.turn.take_if(is_its) {
            let end = match turn.is_cancelled {
                // This is the end of the client's turn, whatever its outcome.
                true => CANCELLED,
                false => &end,
            };
            *self.has_ended = true;
            self.lines
                .extend(rpc::response(turn.id.json(), end).into_bytes());
        }
    }
}
