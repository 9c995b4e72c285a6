//! The worker's transitions: start a run, step the agent, settle asks, release the agent.

use std::sync::Arc;

use model::{Outcome, RunEnded, RunId, error_chain};
use runner::{Agent, AskLimit, StartError};
use tokio::time::Instant;

use super::{CurrentPrompt, QueuedPrompt, SessionTask};
use crate::command::{Prompt, Settings};
use crate::history;
use crate::record::{Record, failed};
use crate::setup;

impl SessionTask {
    pub(super) fn on_prompt(&mut self, number: u64, body: &[u8]) {
        match Prompt::read(body) {
            Some(prompt) if self.shared.is_withdrawn(prompt.accepted.as_ref()) => {
                self.record().done(number);
            }
            Some(prompt) => self.queue.push_back(QueuedPrompt { number, prompt }),
            // It can never be run; mark it done so that it does not block the queue.
            None => self.record().done(number),
        }
    }

    pub(super) fn remove(&mut self, prompt: u64) -> bool {
        let Some(at) = self.queue.iter().position(|it| it.number == prompt) else {
            return false;
        };
        self.queue.remove(at);
        self.record().done(prompt);
        true
    }

    pub(super) fn is_at(&self, prompt: u64) -> bool {
        self.current.as_ref().is_some_and(|it| it.number == prompt)
    }

    pub(super) fn abort(&mut self) -> bool {
        // There is no agent yet that could end the run.
        if self.worker.cancel_start() {
            self.end_run(RunEnded::new(Outcome::Aborted, None));
            return true;
        }
        let is_at_work = self.worker.agent().is_some() && self.current.is_some();
        if is_at_work {
            self.worker.abort();
            self.is_aborting = true;
        }
        is_at_work
    }

    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        if self.worker.cancel_start() {
            self.end_run(RunEnded::new(Outcome::Aborted, None));
        }
        match self.current {
            Some(_) => self.worker.abort(),
            None => self.release_agent(),
        }
    }

    /// Starts the next prompt, if its turn has come.
    pub(super) fn start_next(&mut self) {
        // A run that background work began ends first.
        let has_run = self.current.is_some() || self.record().open_run().is_some();
        if has_run || self.is_stopping || self.is_releasing {
            return;
        }
        let Some(next) = self.queue.front() else {
            return;
        };
        if self.is_next_of_another() {
            return self.yield_session();
        }
        let has_agent = self.worker.agent().is_some();
        let wanted = &next.prompt.settings;
        // The prompt stays queued until this agent has exited, see `is_releasing`.
        if has_agent && !self.settings.as_ref().is_some_and(|it| it.fit(wanted)) {
            return self.release_agent();
        }
        let Some(QueuedPrompt { number, prompt }) = self.queue.pop_front() else {
            return;
        };
        let permissions = setup::permissions(&self.shared.config, &prompt.settings);
        self.worker.set_permissions(permissions);
        // Gives its permit back: an agent at work does not count as warm.
        self.warm = None;
        // The prompt is published before its agent starts; with that it has left the queue.
        let record = self.record();
        let before = record.seq();
        let run = record.announce(&prompt.prompt, Some(number), prompt.client.as_ref());
        record.expect_first_event(prompt.accepted.clone());
        record.done(number);
        self.current = Some(CurrentPrompt {
            number,
            run: run.clone(),
            before,
            is_warm: has_agent,
            prompt: prompt.clone(),
        });
        self.worker.set_ask_limit(self.ask_limit());
        match has_agent {
            true => (self.worker).prompt(&prompt.prompt.as_str().into(), Some(run)),
            false => self.start(&prompt, run, before),
        }
    }

    /// Starts an agent for a run that was announced.
    fn start(&mut self, prompt: &Prompt, run: RunId<'static>, before: u64) {
        // After the announcement, so that the agent's events are numbered behind it.
        let earlier = self.record().resume_point();
        let config = &self.shared.config;
        let native = self.native.as_deref();
        match setup::of_prompt(config, self.session.as_str(), native, prompt) {
            Ok(mut setup) => {
                setup.resume_point = earlier;
                setup.announced = Some(run);
                let journal = Arc::clone(&config.journal);
                let (session, thread) = (self.session.clone(), prompt.thread.clone());
                self.settings = Some(prompt.settings.clone());
                self.worker.start(async move {
                    if setup.needs_history() {
                        let history = history::read(&*journal, &session, before).await;
                        let failed = |err: journal::Error| StartError::Recall(err.into());
                        setup.recall(history.map_err(failed)?, thread);
                    }
                    Ok(setup)
                });
            }
            Err(err) => self.end_run(failed("start_failed", error_chain(&err))),
        }
    }

    pub(super) fn not_started(&mut self, err: &StartError) {
        self.end_run(failed("start_failed", error_chain(err)));
    }

    /// The timeout of asks.
    fn ask_limit(&self) -> Option<AskLimit> {
        let prompt = &self.current.as_ref()?.prompt;
        let Settings {
            engine, options, ..
        } = &prompt.settings;
        options.ask_limit(&self.shared.config.settings, engine)
    }

    /// Ends the run of the prompt, which its agent has not ended.
    fn end_run(&mut self, ended: RunEnded<'_>) {
        if self.current.take().is_some() {
            self.record().end_run(ended);
        }
    }

    /// Whether the run of the current prompt has ended.
    fn has_ended(&self) -> bool {
        let open = self.worker.log().record().and_then(Record::open_run);
        let current = self.current.as_ref();
        current.is_some_and(|it| open != Some(&it.run))
    }

    pub(super) fn note_native(&mut self) {
        if let Some(native) = self.worker.agent().and_then(Agent::native) {
            self.native = Some(native.to_owned());
        }
    }

    pub(super) fn ended(&mut self) {
        self.note_native();
        if self.has_ended() {
            self.current = None;
            self.is_aborting = false;
        }
        if self.is_stopping {
            self.release_agent();
        }
    }

    pub(super) fn on_agent_exit(&mut self, agent: &Agent) {
        if let Some(native) = agent.native() {
            self.native = Some(native.to_owned());
        }
        self.is_releasing = false;
        self.warm = None;
        if self.has_ended() {
            self.current = None;
        }
        let is_aborted = std::mem::take(&mut self.is_aborting);
        // An agent that is ended this way may exit without an end of its run.
        if is_aborted || self.is_stopping {
            return self.end_run(RunEnded::new(Outcome::Aborted, None));
        }
        // A warm agent may exit before it sees the prompt, or find its session changed by another program:
        // the run is not lost, another agent is started for it.
        if let Some(current) = self.current.as_mut().filter(|it| it.is_warm) {
            current.is_warm = false;
            let (prompt, run, before) =
                (current.prompt.clone(), current.run.clone(), current.before);
            return self.start(&prompt, run, before);
        }
        let message = "the agent ended before it began to work".to_owned();
        self.end_run(failed("crashed", message));
    }

    /// An agent without work may stay for a while, if there are not too many of them.
    pub(super) fn keep_warm(&mut self) {
        let is_idle =
            self.worker.agent().is_some() && self.current.is_none() && self.queue.is_empty();
        if !is_idle || self.is_releasing {
            return;
        }
        if self.release_requested {
            return self.yield_session();
        }
        if self.warm.is_some() {
            return;
        }
        match Arc::clone(&self.shared.warm).try_acquire_owned() {
            Ok(permit) => {
                let until = Instant::now() + self.shared.config.limits.warm;
                self.warm = Some((permit, until));
            }
            Err(_) => self.release_agent(),
        }
    }

    /// Another process waits for the session, and the agent is idle.
    fn yield_session(&mut self) {
        if self.worker.agent().is_some() {
            self.worker.dismiss();
            self.is_releasing = true;
            self.warm = None;
        }
    }

    pub(super) fn release_agent(&mut self) {
        if self.worker.agent().is_some() {
            self.worker.close();
            self.is_releasing = true;
            self.warm = None;
        }
    }
}
