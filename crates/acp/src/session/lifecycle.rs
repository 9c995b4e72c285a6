//! The life of a session's agent: started when there is work or soon may be, and released.

use hub::{Progress, SetupError};
use model::{RunId, error_chain};
use runner::engines::{LaunchContext, Selected};
use runner::{Interaction, Request, Resume, Setup, StartError};
use tokio::time::timeout;

use super::turn::CANCELLED;
use super::{PATIENCE, START_FAILED, Session};
use crate::rpc::{self, Error, Id};
use crate::wire;

impl Session {
    /// Gives the prompt to the agent, or starts one.
    pub(super) fn begin(&mut self) {
        if self.worker.is_starting() {
            return;
        }
        if self.worker.agent().is_some()
            && let Some(prompt) = self.waiting.take()
        {
            return self.worker.prompt(&prompt, self.announced());
        }
        let is_wanted = self.waiting.is_some() || std::mem::take(&mut self.is_warming);
        if self.worker.agent().is_some() || !is_wanted {
            return;
        }
        match self.setup() {
            Ok(Some(setup)) => {
                let is_fork = matches!(self.resume, Resume::Fork(_));
                self.worker.start(prepare(setup, is_fork));
            }
            Ok(None) => (),
            Err(error) => self.fail(START_FAILED, &error),
        }
    }

    /// What to start; nothing for a model or a recording without a prompt.
    pub(super) fn setup(&mut self) -> Result<Option<Setup>, Error> {
        // An agent is prompted once it is there; anything else begins with its prompt.
        let is_agent = matches!(self.selected, Selected::Agent(_));
        let prompt = self.waiting.as_ref().filter(|_| !is_agent);
        let request = Request {
            prompt: prompt.map(|it| it.text.clone()).unwrap_or_default(),
            resume: self.resume.clone(),
            options: self.options.clone(),
            permissions: self.worker.permissions().clone(),
            mcp_servers: self.mcp_servers.clone(),
            cwd: self.cwd.clone(),
            talk: Interaction::Dialogue,
        };
        let config = &self.shared.config;
        let around = LaunchContext {
            limits: config.settings.limits(),
            guard: config.guard.clone(),
            locks: config.locks.clone(),
            holder: "linkspan acp".to_owned(),
            // An error at once, not a prompt that waits in the editor without a word.
            no_wait: true,
        };
        let setup = hub::setup(&self.selected, &self.id, &request, around);
        let mut setup = setup.map_err(refused)?;
        if !is_agent && self.waiting.take().is_none() {
            return Ok(None);
        }
        setup.recall(std::mem::take(&mut self.history), None);
        setup.resume_point = self.worker.log().resume_point();
        if !is_agent {
            setup.announced = self.announced();
        }
        Ok(Some(setup))
    }

    /// The run of the turn, if it was announced.
    fn announced(&self) -> Option<RunId<'static>> {
        self.turn.as_ref().and_then(|it| it.announced.clone())
    }

    pub(super) async fn on_started(&mut self) {
        if self.is_stale {
            // Something else was chosen while it was being started.
            self.release_agent().await;
            self.is_warming = true;
        }
        if self.is_cancelled() && self.waiting.take().is_some() {
            self.end_turn(CANCELLED);
        }
    }

    /// Releases the agent and reads it to its end.
    pub(super) async fn release_agent(&mut self) {
        self.is_stale = false;
        // It may have the lock of the session already, which the next one needs.
        self.worker.finish_start(PATIENCE).await;
        self.worker.close();
        if timeout(PATIENCE, self.wait_for_exit()).await.is_err() {
            self.worker.kill();
            self.wait_for_exit().await;
        }
        self.on_agent_exit();
    }

    /// Another process wants the session: release it, unless the client has work in it. The
    /// client's next prompt reacquires it, with a new agent that sees the other's changes.
    pub(super) async fn yield_session(&mut self) {
        if self.turn.is_some() || self.waiting.is_some() {
            return;
        }
        self.worker.dismiss();
        self.release_agent().await;
        self.worker.log_mut().release().await;
    }

    /// The agent has exited; clear its open asks.
    pub(super) fn on_agent_exit(&mut self) {
        self.withdraw_asks();
        self.worker.log_mut().forget_deferred();
    }

    async fn wait_for_exit(&mut self) {
        while self.worker.agent().is_some() {
            self.step().await;
        }
    }

    async fn wait_for_run_end(&mut self) {
        while self.turn.is_some() && self.worker.agent().is_some() {
            self.step().await;
        }
    }

    /// A step of an agent that is on its way out.
    async fn step(&mut self) {
        let (worker, mut fanout) = self.parts();
        match worker.step(&mut fanout).await {
            Progress::LogLost(_) => worker.stop_logging(),
            Progress::Stored { .. }
            | Progress::StoreFailed(_)
            | Progress::Requests(_)
            | Progress::Started
            | Progress::NotStarted(_)
            | Progress::Events
            | Progress::Ended
            | Progress::Found
            | Progress::Gone(_)
            | Progress::Busy(_) => (),
        }
    }

    pub(super) async fn leave(mut self, closing: Option<Id>) {
        self.cancel(None);
        // The agent never outlives the session.
        timeout(PATIENCE, self.wait_for_run_end()).await.ok();
        self.release_agent().await;
        self.end_turn(CANCELLED);
        // Only then can it be opened again; a client that does not read must not hold that up.
        self.worker.log_mut().release().await;
        if let Some(id) = closing {
            self.lines.extend(rpc::result(&id, &wire::Empty {}));
        }
        self.send().await;
    }
}

pub(super) fn refused(err: SetupError) -> Error {
    let message = match &err {
        SetupError::Engine(engine) => match engine.hint() {
            Some(hint) => format!("{}; {hint}", error_chain(engine)),
            None => error_chain(engine),
        },
        SetupError::Recording { source, .. } => error_chain(source),
    };
    Error::internal(message)
}

/// What a fork begins with is only read: it is enough that no agent of another program works in it now.
async fn prepare(mut setup: Setup, is_fork: bool) -> Result<Setup, StartError> {
    if is_fork && let Some((locks, session)) = setup.locks.clone().zip(setup.in_use.take()) {
        let place = locks
            .queue_to_read(&setup.engine, &session, &setup.holder)
            .await;
        let place = match place {
            Ok(place) => place,
            Err(source) => return Err(StartError::Lock { session, source }),
        };
        // An agent of our own is idle there: `branch` refuses a session at work.
        let others = place.held().filter(|it| it.pid != std::process::id());
        if let Some(held) = others.cloned() {
            return Err(StartError::Busy { session, held });
        }
    }
    Ok(setup)
}
