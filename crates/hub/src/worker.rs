//! One session: its agent, its log, and the asks that the policy answers.
//!
//! A worker is driven by its owner: [`Worker::step`] waits until something has happened, and everything else
//! (prompts, aborts, answers) is a plain call between two steps. A hub drives one in a task for each of
//! its sessions; `linkspan run`, `linkspan acp` and `Conversation` drive one beside their own input.
//! The rules of a session are implemented here, once: events are stored in order under the session's lease,
//! the lease is renewed, commands are read from the journal, and asks are answered by the policy or at
//! their deadline.

mod log;
mod open_log;

use std::pin::Pin;
use std::time::Duration;

use journal::Error;
use model::{Event, Frame, RunId, Sink};
use runner::locks::LockHolder;
use runner::{
    Agent, Answer, AskLimit, Mode, NotSettled, PendingAsk, Permissions, PolicyDecision, Prompt,
    Setup, StartError, Step,
};
use tokio::time::timeout;

pub use self::log::{Announced, SessionLog, parent};
pub(crate) use self::open_log::acquire;
use self::open_log::{JournalLink, LogEvent};
use crate::append::AppendFailure;
use crate::command::{Abort, StoredAnswer};

/// An agent on its way.
type Starting = Pin<Box<dyn Future<Output = Result<Agent, StartError>> + Send>>;

/// A session's agent and log.
pub struct Worker {
    log: SessionLog,
    agent: Option<Agent>,
    starting: Option<Starting>,
    permissions: Permissions,
    ask_limit: Option<AskLimit>,
    /// Asks that were answered, in case the agent is slow to notice.
    answered: Vec<String>,
    /// The agent was asked to stop its run or to exit: it is read to its end, even when the journal falls
    /// behind.
    is_aborting: bool,
    is_closing: bool,
}

/// The result of a step.
#[derive(Debug)]
pub enum Progress {
    /// Events were stored; `has_effects` when more than the log has changed.
    Stored {
        has_effects: bool,
    },
    /// Events could not be stored; the append is retried.
    StoreFailed(Error),
    /// Nothing more will be stored: see [`Worker::stop_logging`].
    LogLost(LogLost),
    /// Commands that the owner of the worker has to decide; may be empty.
    Requests(Vec<Request>),
    Started,
    NotStarted(StartError),
    /// The agent has produced events, which are on their way into the log.
    Events,
    /// A run has ended, and the agent can be prompted again.
    Ended,
    /// The agent has exited; it still has the outcome of its last run.
    Gone(Box<Agent>),
    /// The newest session was asked for, and the agent has named it; see [`Step::Found`].
    Found,
    /// The newest session was asked for, and another program works in it; see [`Step::SessionBusy`].
    Busy(Box<Agent>),
}

/// Why a log takes no more events.
#[derive(Debug)]
pub struct LogLost {
    pub error: Error,
    /// The session is still ours: the journal refuses these events.
    pub is_refused: bool,
}

/// A command of another process, read from the journal. Answers to asks are not among them: the worker
/// passes those on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A prompt waits; only a hub works on those.
    Prompt { number: u64, body: bytes::Bytes },
    /// Remove a prompt from the queue.
    RemovePrompt { number: u64, prompt: u64 },
    /// Stop the run: that of this prompt, or any.
    Abort { number: u64, of: Option<u64> },
    /// Release the session once it is idle.
    Leave { number: u64 },
    /// The stored command is damaged.
    Damaged { number: u64 },
}

impl Worker {
    pub fn new(log: SessionLog, permissions: Permissions) -> Self {
        Self {
            log,
            agent: None,
            starting: None,
            permissions,
            ask_limit: None,
            answered: Vec::new(),
            is_aborting: false,
            is_closing: false,
        }
    }

    pub fn log(&self) -> &SessionLog {
        &self.log
    }

    pub fn log_mut(&mut self) -> &mut SessionLog {
        &mut self.log
    }

    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    pub fn agent_mut(&mut self) -> Option<&mut Agent> {
        self.agent.as_mut()
    }

    /// Takes the agent out of this worker.
    pub fn take_agent(&mut self) -> Option<Agent> {
        self.agent.take()
    }

    pub fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Gives the agent its next prompt. `announced` is its run, if the log has it already.
    pub fn prompt(&mut self, prompt: &Prompt, announced: Option<RunId<'static>>) {
        self.skip_stored();
        let Some(agent) = &mut self.agent else {
            return;
        };
        if let Some(run) = announced {
            agent.announced(run);
        }
        agent.prompt(prompt);
    }

    /// Ends an announced run that no agent has ended: as failed with this code and message, or as aborted.
    pub fn end_announced(&mut self, run: &RunId<'_>, failure: Option<(&'static str, String)>) {
        self.log.end_announced(run, failure);
        self.skip_stored();
    }

    /// Numbers the agent's next event after those that others have added to the log.
    fn skip_stored(&mut self) {
        if let (Some(agent), Some(record)) = (&mut self.agent, self.log.record()) {
            agent.skip_to(record.seq());
        }
    }

    /// Starts an agent when its setup is ready; [`Progress::Started`] follows.
    pub fn start(
        &mut self,
        setup: impl Future<Output = Result<Setup, StartError>> + Send + 'static,
    ) {
        self.starting = Some(Box::pin(async {
            let setup = setup.await?;
            Agent::start(setup, |_| ()).await
        }));
    }

    /// Starts an agent now; `waiting` is called with the program that holds its session.
    pub async fn start_now(
        &mut self,
        setup: Setup,
        waiting: impl FnMut(&LockHolder),
    ) -> Result<(), StartError> {
        let agent = Agent::start(setup, waiting).await?;
        self.set_agent(agent);
        Ok(())
    }

    /// Cancels the start of an agent; false when none is being started.
    pub fn cancel_start(&mut self) -> bool {
        self.starting.take().is_some()
    }

    /// Waits for the agent that is being started, but not for longer than `limit`.
    pub async fn finish_start(&mut self, limit: Duration) {
        if let Some(starting) = self.starting.take()
            && let Ok(Ok(agent)) = timeout(limit, starting).await
        {
            self.set_agent(agent);
        }
    }

    fn set_agent(&mut self, mut agent: Agent) {
        agent.set_ask_limit(self.ask_limit);
        self.agent = Some(agent);
        // A prompt may have been announced while it was being started.
        self.skip_stored();
        self.answered.clear();
        (self.is_aborting, self.is_closing) = (false, false);
    }

    /// Later asks are answered by these rules.
    pub fn set_permissions(&mut self, permissions: Permissions) {
        self.permissions = permissions;
    }

    /// The same in another mode.
    pub fn set_mode(&mut self, mode: Mode) {
        self.permissions.mode = mode;
    }

    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// For how long asks may wait from now on.
    pub fn set_ask_limit(&mut self, limit: Option<AskLimit>) {
        self.ask_limit = limit;
        if let Some(agent) = &mut self.agent {
            agent.set_ask_limit(limit);
        }
    }

    /// Stops the run; an agent that can be talked with stays.
    pub fn abort(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.abort();
            self.is_aborting = true;
        }
    }

    /// Ends the agent and all it started, now.
    pub fn kill(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.kill();
            self.is_closing = true;
        }
    }

    /// No more prompts: the agent exits when its run has ended.
    pub fn close(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.close();
            self.is_closing = true;
        }
    }

    /// The same for an idle agent whose session another process wants.
    pub fn dismiss(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.dismiss();
            self.is_closing = true;
        }
    }

    /// Nothing is stored from here on; the agent continues.
    pub fn stop_logging(&mut self) {
        self.log = SessionLog::off();
    }

    /// The log, once the agent has exited: to store the rest, and to release the session.
    pub fn into_log(self) -> SessionLog {
        self.log
    }

    /// Asks that neither the policy nor a person has answered.
    pub fn open_asks(&self) -> Vec<PendingAsk> {
        self.unanswered(self.agent.as_ref().map(Agent::asks))
    }

    /// The same of a recording, for a client that answers in its place.
    pub fn recorded_asks(&self) -> Vec<PendingAsk> {
        self.unanswered(self.agent.as_ref().map(Agent::recorded_asks))
    }

    fn unanswered(&self, asks: Option<&[PendingAsk]>) -> Vec<PendingAsk> {
        let asks = asks.unwrap_or_default().iter();
        let open = asks.filter(|it| !self.is_answered(it.ask.id.as_str()));
        open.cloned().collect()
    }

    pub(crate) fn is_answered(&self, id: &str) -> bool {
        self.answered.iter().any(|it| it == id)
    }

    /// Answers an ask. An answer that the agent cannot take leaves it open.
    pub fn settle(&mut self, id: &str, answer: &Answer) -> Result<(), NotSettled> {
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        match agent.settle(id, answer) {
            // One that was withdrawn meanwhile needs no answer.
            Ok(()) | Err(NotSettled::NotOpen) => {
                self.answered.push(id.to_owned());
                Ok(())
            }
            Err(err @ (NotSettled::BadInput | NotSettled::FixedInput)) => Err(err),
        }
    }

    /// The same; an answer that the agent cannot take becomes a denial.
    pub fn settle_or_deny(&mut self, id: &str, answer: &Answer) {
        if let Err(err) = self.settle(id, answer) {
            let message = format!("the answer could not be given: {err}");
            // Every agent takes a denial.
            self.settle(id, &Answer::Deny { message }).ok();
        }
    }

    /// Waits until something has happened. The agent's events go to the log and to `sink`, and may be shown
    /// when this returns. May be dropped and called again: nothing is lost.
    pub async fn step<S: Sink>(&mut self, sink: &mut S) -> Progress {
        loop {
            self.settle_overdue().await;
            self.log.append();
            if let Some(progress) = self.poll_journal().await {
                return progress;
            }
            // An agent that is not read blocks at its full pipe, and could not end.
            let may_step = self.log.has_room() || self.is_aborting || self.is_closing;
            let Self {
                log,
                agent,
                starting,
                ..
            } = self;
            let (record, journal) = log.parts();
            let mut tee = Tee { record, sink };
            let outcome = tokio::select! {
                biased;
                event = log_event(journal) => StepOutcome::Log(event),
                agent = started(starting), if starting.is_some() => StepOutcome::Started(agent.map(Box::new)),
                step = step(agent, &mut tee), if agent.is_some() && may_step => StepOutcome::Stepped(step),
            };
            let progress = match outcome {
                StepOutcome::Log(event) => self.on_log_event(event),
                StepOutcome::Started(started) => Some(self.on_started(started)),
                StepOutcome::Stepped(step) => Some(self.on_step(step)),
            };
            if let Some(progress) = progress {
                return progress;
            }
        }
    }

    fn on_log_event(&mut self, event: LogEvent) -> Option<Progress> {
        match event {
            LogEvent::Stored { has_effects } => Some(Progress::Stored { has_effects }),
            LogEvent::Failed(failed) => {
                let error = failed.error.clone();
                Some(match self.log.failed(failed) {
                    AppendFailure::Retry => Progress::StoreFailed(error),
                    AppendFailure::Fenced => lost(error, false),
                    AppendFailure::Discard => lost(error, true),
                })
            }
            LogEvent::Closed => Some(lost(Error::Storage(journal::Fault::Closed), false)),
            // Read at the beginning of the next round: a step may be dropped while it reads.
            LogEvent::Changed => None,
        }
    }

    /// Renews the lease and reads commands, when either is due.
    async fn poll_journal(&mut self) -> Option<Progress> {
        // The lease first: commands are for its owner alone.
        if let Err(error) = self.log.renew_if_due().await {
            return Some(lost(error, false));
        }
        if !self.log.has_changed() {
            return None;
        }
        let mut requests = Vec::new();
        for command in self.log.commands().await {
            self.on_command(command, &mut requests);
        }
        Some(Progress::Requests(requests))
    }

    fn on_command(&mut self, command: journal::Command, requests: &mut Vec<Request>) {
        let number = command.number;
        let request = match command.order {
            journal::CommandBody::Prompt(body) => {
                // Not done yet: a prompt leaves the queue together with the start of its run.
                return requests.push(Request::Prompt { number, body });
            }
            journal::CommandBody::Settle { ask, answer } => {
                self.log.done(number);
                return self.settle_by_command(ask, &answer);
            }
            journal::CommandBody::Abort(body) => match serde_json::from_slice(&body) {
                Ok(Abort { leave: true, .. }) => Request::Leave { number },
                Ok(Abort {
                    prompt: Some(prompt),
                    ..
                }) => Request::RemovePrompt { number, prompt },
                Ok(Abort { of, .. }) => Request::Abort { number, of },
                Err(_) => Request::Damaged { number },
            },
            journal::CommandBody::Damaged => Request::Damaged { number },
        };
        self.log.done(number);
        requests.push(request);
    }

    fn settle_by_command(&mut self, seq: u64, answer: &[u8]) {
        let stored = serde_json::from_slice(answer);
        let (Some(id), Ok(StoredAnswer { answer, is_late })) = (self.log.ask(seq), stored) else {
            return;
        };
        match is_late {
            true => self.settle_late(&id, &answer),
            // In the journal it is answered, so the agent needs some answer.
            false => self.settle_or_deny(&id, &answer),
        }
    }

    fn settle_late(&mut self, id: &str, answer: &Answer) {
        if let Some(agent) = &mut self.agent {
            // One that was answered or withdrawn meanwhile needs no answer.
            agent.settle_late(id, answer).ok();
        }
        self.answered.push(id.to_owned());
    }

    /// Answers asks past their deadline. With a journal the answer goes through it like any other, so that
    /// the first one counts; it comes back as a command.
    async fn settle_overdue(&mut self) {
        let overdue = self.agent.as_ref().map(Agent::overdue).unwrap_or_default();
        for (asked, answer) in overdue {
            let id = asked.ask.id.as_str();
            if self.is_answered(id) {
                continue;
            }
            if !self.log.is_open() {
                self.settle_late(id, &answer);
            } else if self.log.settle_late(id, answer).await {
                self.answered.push(id.to_owned());
            }
        }
    }

    fn on_started(&mut self, started: Result<Box<Agent>, StartError>) -> Progress {
        self.starting = None;
        match started {
            Ok(agent) => {
                self.set_agent(*agent);
                Progress::Started
            }
            Err(err) => Progress::NotStarted(err),
        }
    }

    fn on_step(&mut self, step: Step) -> Progress {
        // The agent of a busy session was ended and its events do not count; before `Found` there
        // are none.
        if !matches!(step, Step::SessionBusy | Step::Found) {
            self.log.commit();
        }
        match step {
            Step::Progress => {
                self.answer_by_rules();
                Progress::Events
            }
            Step::RunEnded => {
                self.is_aborting = false;
                self.answer_by_rules();
                Progress::Ended
            }
            Step::Found => Progress::Found,
            Step::Exited | Step::SessionBusy => {
                self.answered.clear();
                let agent = Box::new(self.agent.take().expect("it was the agent's step"));
                match step {
                    Step::SessionBusy => Progress::Busy(agent),
                    _ => Progress::Gone(agent),
                }
            }
        }
    }

    /// Settles the asks that the policy decides.
    fn answer_by_rules(&mut self) {
        let Some(agent) = &self.agent else {
            return;
        };
        if agent.asks().is_empty() && self.answered.is_empty() {
            return;
        }
        let asks = agent.asks().to_vec();
        let is_asked = |id: &String| asks.iter().any(|it| it.ask.id.as_str() == id);
        // Bounds the list by what the agent asks now.
        self.answered.retain(is_asked);
        for asked in asks {
            let id = asked.ask.id.as_str();
            if !self.is_answered(id)
                && let PolicyDecision::Settle(answer) = runner::decide(&self.permissions, &asked)
            {
                self.settle_or_deny(id, &answer);
            }
        }
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("log", &self.log)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// What ended the wait of a step.
enum StepOutcome {
    Log(LogEvent),
    Started(Result<Box<Agent>, StartError>),
    Stepped(Step),
}

/// Sends the agent's events to the log and to `sink`.
struct Tee<'a, S> {
    record: log::LogSink<'a>,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Tee<'_, S> {
    fn event(&mut self, event: &Event<'_>) {
        self.record.event(event);
        self.sink.event(event);
    }

    fn frame(&mut self, frame: Frame<'_>) {
        self.record.frame(frame);
        self.sink.frame(frame);
    }
}

fn lost(error: Error, is_refused: bool) -> Progress {
    Progress::LogLost(LogLost { error, is_refused })
}

async fn log_event(journal: Option<&mut JournalLink>) -> LogEvent {
    match journal {
        Some(journal) => journal.next().await,
        None => std::future::pending().await,
    }
}

async fn started(starting: &mut Option<Starting>) -> Result<Agent, StartError> {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

async fn step(agent: &mut Option<Agent>, sink: &mut impl Sink) -> Step {
    match agent {
        Some(agent) => agent.step(sink).await,
        None => std::future::pending().await,
    }
}
