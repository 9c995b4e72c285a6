//! A turn: from a prompt to its response, and the history before it.

use hub::Cancelled;
use model::{SessionId, error_chain};
use runner::{Prompt, Resume};
use serde_json::Value;

use super::{Session, writer};
use crate::connection::nothing_yet;
use crate::history;
use crate::rpc::{self, Error, Id};
use crate::wire;

/// The rest of the answer to a prompt that was taken back.
pub(super) const CANCELLED: &str = "\"result\":{\"stopReason\":\"cancelled\"}";

/// A prompt that has no answer yet.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: Id,
    /// Its run, once it has begun.
    pub(super) run: Option<String>,
    pub(super) is_cancelled: bool,
}

impl Session {
    pub(super) async fn on_prompt(&mut self, id: Id, prompt: Prompt) {
        if self.turn.is_some() {
            return self.lines.extend(rpc::refusal(Some(&id), &at_work()));
        }
        self.shared.stats.prompted();
        if self.core.is_stale() {
            self.release_agent().await;
        }
        self.turn = Some(Turn {
            id,
            run: None,
            is_cancelled: false,
        });
        let journal = self.shared.journal().await;
        let (core, mut fanout) = self.parts();
        let accepted = match core.accept(&journal, prompt, &mut fanout).await {
            Ok(accepted) => accepted,
            Err(_) => {
                if let Some(turn) = self.turn.take() {
                    let refusal = rpc::refusal(Some(&turn.id), &elsewhere());
                    self.lines.extend(refusal);
                }
                return;
            }
        };
        if let Some(title) = &accepted.title {
            self.update(wire::SessionUpdate::SessionInfoUpdate { title });
        }
        accepted.warnings.into_iter().for_each(|it| self.warn(it));
    }

    /// Fails the prompt; `code` says why its run failed. Without a prompt the next one will report the error.
    pub(super) fn fail(&mut self, code: &'static str, error: &Error) {
        self.core.drop_waiting();
        if self.is_cancelled() {
            return self.end_turn(CANCELLED);
        }
        self.flush_text();
        if let Some(turn) = self.turn.take() {
            self.end_announced(Some((code, error.message.clone())));
            self.lines.extend(rpc::refusal(Some(&turn.id), error));
        }
    }

    pub(super) fn end_turn(&mut self, end: &str) {
        self.flush_text();
        if let Some(turn) = self.turn.take() {
            self.end_announced(None);
            self.lines
                .extend(rpc::response(turn.id.json(), end).into_bytes());
        }
    }

    /// Ends the run of a turn that is over, unless an agent has.
    fn end_announced(&mut self, failure: Option<(&'static str, String)>) {
        self.has_ended = true;
        self.core.end_announced(failure);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(|it| it.is_cancelled)
    }

    /// Takes the prompt back; one of a request that is over needs no cancelling.
    pub(super) fn cancel(&mut self, request: Option<&Value>) {
        let is_meant = |it: &&mut Turn| request.is_none_or(|request| it.id.is(request));
        let Some(turn) = self.turn.as_mut().filter(is_meant) else {
            return;
        };
        turn.is_cancelled = true;
        match self.core.cancel() {
            Cancelled::NotBegun => self.end_turn(CANCELLED),
            // It is answered when its run ends, or once the agent has started.
            Cancelled::Stopping | Cancelled::Starting => (),
        }
    }

    /// The history that a fork begins with. During a run it is incomplete and cannot be read.
    pub(super) fn branch(&self) -> Result<String, Error> {
        match (&self.turn, self.core.resume()) {
            (Some(_), _) => Err(at_work()),
            (None, Resume::Session(native)) => Ok(native.clone()),
            (None, Resume::Fresh | Resume::Latest | Resume::Fork(_)) => {
                Err(nothing_yet(&self.name))
            }
        }
    }

    pub(super) async fn reopen(&mut self, id: &Id, with_history: bool) {
        let replayed = match (&self.turn, with_history) {
            (Some(_), _) => Err(at_work()),
            (None, true) => self.replay_history().await,
            (None, false) => Ok(()),
        };
        let line = match replayed {
            Ok(()) => rpc::result(id, &self.opened(None)),
            Err(error) => rpc::refusal(Some(id), &error),
        };
        self.lines.extend(line);
    }

    /// Replays the history through a new writer, which leaves out the same things as the live one did.
    async fn replay_history(&mut self) -> Result<(), Error> {
        self.flush_text();
        self.send().await;
        // The history is read from the journal, so all of it must be stored first.
        self.core.worker.log_mut().flush().await;
        let journal = self.shared.journal().await;
        let config = self.core.config();
        let mut writer = writer(&self.shared, &self.name, &config.cwd);
        let session = SessionId::new(config.id.clone());
        if !self.offers.commands.is_empty() {
            writer.set_knows_commands();
        }
        let replayed =
            history::replay(&*journal, &session, &mut writer, &self.shared.outbound).await;
        replayed.map_err(|err| Error::internal(error_chain(&err)))?;
        // It knows what the client has been shown.
        self.writer = writer;
        Ok(())
    }
}

fn elsewhere() -> Error {
    let message = "another program works in this session; try again when it is done";
    Error::new(rpc::INVALID_REQUEST, message)
}

fn at_work() -> Error {
    let message = "the session is at work on a prompt; cancel it or wait for its end";
    Error::new(rpc::INVALID_REQUEST, message)
}
