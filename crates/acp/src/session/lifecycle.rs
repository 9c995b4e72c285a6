//! The life of a session's agent: started when there is work or soon may be, and released.

use std::sync::Arc;

use hub::{Progress, SessionLog};
use model::error_chain;
use responses::Conversation;
use runner::engines::{self, LaunchContext, Machine, Selected};
use runner::process::find_on_path;
use runner::{Backend, Interaction, Request, Resume, Setup, StartError};
use tokio::time::timeout;

use super::turn::CANCELLED;
use super::{PATIENCE, Session};
use crate::rpc::{self, Error, Id};
use crate::wire;

impl Session {
    /// Gives the prompt to the agent, or starts one.
    pub(super) fn begin(&mut self) {
        if self.worker.is_starting() {
            return;
        }
        if let (Some(agent), Some(prompt)) = (self.worker.agent_mut(), &self.waiting) {
            agent.prompt(prompt);
            self.waiting = None;
            return;
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
            Err(error) => self.fail(&error),
        }
    }

    /// What to start; nothing for a recording without a prompt.
    pub(super) fn setup(&mut self) -> Result<Option<Setup>, Error> {
        let config = Arc::clone(&self.shared.config);
        let refused = |err: engines::Error| {
            let message = match err.hint() {
                Some(hint) => format!("{}; {hint}", error_chain(&err)),
                None => error_chain(&err),
            };
            Error::internal(message)
        };
        let selected = engines::select(&self.engine, &config.settings).map_err(refused)?;
        let earlier = self.worker.log().resume_point();
        let mut setup = match selected {
            Selected::Agent(agent) => {
                let request = Request {
                    prompt: String::new(),
                    resume: self.resume.clone(),
                    model: self.chosen.model.clone(),
                    effort: self.chosen.effort.clone(),
                    mcp_servers: self.mcp_servers.clone(),
                    cwd: self.cwd.clone(),
                    permissions: self.worker.permissions().clone(),
                    talk: Interaction::Dialogue,
                };
                let around = LaunchContext {
                    limits: (&config.settings).into(),
                    guard: config.guard.clone(),
                    locks: config.locks.clone(),
                    holder: "linkspan acp".to_owned(),
                    no_wait: true,
                };
                agent
                    .setup(&request, around, find_on_path, Machine::own())
                    .map_err(refused)?
            }
            Selected::Responses(endpoint) => {
                let Some(prompt) = self.waiting.take() else {
                    return Ok(None);
                };
                let history = std::mem::take(&mut self.said);
                let mut told = Conversation::of_prompt(&self.id, history, &prompt.text);
                told.model.clone_from(&self.chosen.model);
                if let Resume::Session(response) = &self.resume {
                    told.follow(response);
                }
                Setup::responses(endpoint, told, &prompt.text, (&config.settings).into())
            }
            Selected::Replay(recording) => {
                let opened = recording.open();
                let (input, format) = opened.map_err(|err| Error::internal(error_chain(&err)))?;
                let Some(prompt) = self.waiting.take() else {
                    return Ok(None);
                };
                let work = Backend::Replay {
                    input,
                    speed: f64::INFINITY,
                    prompt: Some(prompt.text),
                };
                Setup::replay(format, work, (&config.settings).into())
            }
        };
        self.id.clone_into(&mut setup.session);
        setup.resume_point = earlier;
        Ok(Some(setup))
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
        let (worker, mut telling) = self.parts();
        match worker.step(&mut telling).await {
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
        let log = std::mem::replace(self.worker.log_mut(), SessionLog::off());
        log.finish().await;
        if let Some(id) = closing {
            self.lines.extend(rpc::result(&id, &wire::Empty {}));
        }
        self.send().await;
    }
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
        let others = place.held().filter(|it| it.pid != std::process::id());
        if let Some(held) = others.cloned() {
            return Err(StartError::Busy { session, held });
        }
    }
    Ok(setup)
}
