//! A turn: from a prompt to its response, and the history before it.

use journal::NewSession;
use model::{RunId, SessionId, error_chain};
use runner::engines::Selected;
use runner::{Prompt, Resume};
use serde_json::Value;

use super::{FLUSH_INTERVAL, Session, writer};
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
    /// The same, if the journal has its start and its prompt before the agent has them.
    pub(super) announced: Option<RunId<'static>>,
    pub(super) is_cancelled: bool,
}

impl Session {
    pub(super) async fn on_prompt(&mut self, id: Id, prompt: Prompt) {
        if self.turn.is_some() {
            return self.lines.extend(rpc::refusal(Some(&id), &at_work()));
        }
        self.shared.stats.prompted();
        if self.is_stale {
            self.release_agent().await;
        }
        if self.worker.log().is_deferred() {
            self.keep(&prompt.text).await;
        }
        if self.worker.log().is_released() {
            let journal = self.shared.journal().await;
            let reacquired = self.worker.log_mut().reacquire(&journal).await;
            if let Err(journal::Error::Held { .. }) = &reacquired {
                return self.lines.extend(rpc::refusal(Some(&id), &elsewhere()));
            }
            self.not_kept(reacquired.err());
        }
        // The log may have been opened just now.
        self.worker.log_mut().set_longest_rest(FLUSH_INTERVAL);
        self.recall().await;
        self.turn = Some(Turn {
            id,
            run: None,
            announced: None,
            is_cancelled: false,
        });
        self.announce(&prompt).await;
        self.waiting = Some(prompt);
    }

    /// Stores the prompt before its agent has it, so that other clients see it at once.
    async fn announce(&mut self, prompt: &Prompt) {
        // An announced prompt is text; images are stored when the agent repeats the prompt.
        if !prompt.images.is_empty() || self.is_store_failing {
            return;
        }
        match self.worker.log_mut().announce(&prompt.text).await {
            Ok(Some(announced)) => {
                announced.replay(&mut self.parts().1);
                if let Some(turn) = &mut self.turn {
                    turn.announced = Some(announced.run);
                }
            }
            Ok(None) => (),
            Err(err) => {
                self.worker.stop_logging();
                self.not_kept(Some(err));
            }
        }
    }

    /// A model has no memory: it gets the history.
    async fn recall(&mut self) {
        if !matches!(self.selected, Selected::Responses(_)) {
            return;
        }
        match self.worker.log_mut().history().await {
            Ok(history) => self.history = history,
            Err(err) => {
                let title = format!("the history cannot be read: {}", error_chain(&err));
                self.warn(title);
            }
        }
    }

    /// The session is worth keeping from now on.
    async fn keep(&mut self, prompt: &str) {
        let title = hub::title(prompt);
        let journal = self.shared.journal().await;
        // A journal that cannot be read is reported when it cannot be written.
        let parent = hub::parent(&*journal, self.forked.as_deref()).await;
        let session = NewSession {
            id: SessionId::new(self.id.clone()),
            engine: self.engine.clone(),
            cwd: Some(self.cwd.to_string_lossy().into_owned()),
            title: Some(title.clone()),
            parent: parent.unwrap_or_default(),
        };
        let begun = self.worker.log_mut().begin(&journal, session).await;
        self.not_kept(begun.err());
        self.update(wire::SessionUpdate::SessionInfoUpdate { title: &title });
    }

    pub(super) fn not_kept(&mut self, err: Option<journal::Error>) {
        if let Some(err) = err {
            let reason = error_chain(&err);
            self.warn(format!("this session is not kept from here on: {reason}"));
        }
    }

    /// Fails the prompt; `code` says why its run failed. Without a prompt the next one will report the error.
    pub(super) fn fail(&mut self, code: &'static str, error: &Error) {
        self.waiting = None;
        if self.is_cancelled() {
            return self.end_turn(CANCELLED);
        }
        self.flush_text();
        if let Some(turn) = self.turn.take() {
            self.end_announced(&turn, Some((code, error.message.clone())));
            self.lines.extend(rpc::refusal(Some(&turn.id), error));
        }
    }

    pub(super) fn end_turn(&mut self, end: &str) {
        self.flush_text();
        if let Some(turn) = self.turn.take() {
            self.end_announced(&turn, None);
            self.lines
                .extend(rpc::response(turn.id.json(), end).into_bytes());
        }
    }

    /// Ends the run of a turn that is over, unless an agent has.
    fn end_announced(&mut self, turn: &Turn, failure: Option<(&'static str, String)>) {
        self.has_ended = true;
        if let Some(run) = &turn.announced {
            self.worker.end_announced(run, failure);
        }
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
        match self.worker.agent() {
            Some(_) if self.waiting.is_none() => self.worker.abort(),
            _ if !self.worker.is_starting() => {
                self.waiting = None;
                self.end_turn(CANCELLED);
            }
            // It is answered when the agent is there.
            _ => (),
        }
    }

    /// What a fork begins with. While it is written, there is nothing whole to read.
    pub(super) fn branch(&self) -> Result<String, Error> {
        match (&self.turn, &self.resume) {
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
        // The history is read from the journal, so all of it has to be there.
        self.worker.log_mut().flush().await;
        let journal = self.shared.journal().await;
        let mut writer = writer(&self.shared, &self.name, &self.cwd);
        if !self.offers.commands.is_empty() {
            writer.set_knows_commands();
        }
        let session = SessionId::new(self.id.clone());
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
