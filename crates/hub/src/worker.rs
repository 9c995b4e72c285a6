//! One session at work: its agent, its log, and the answers that need nobody's attention.
//!
//! A worker is driven by its owner: [`Worker::step`] waits until something has happened, and everything else
//! (prompts, aborts, answers) is a plain call between two steps. A hub drives one in a task for each of
//! its sessions; `linkspan run`, `linkspan acp` and `Conversation` drive one beside their own input.
//! What holds for a session holds here, once: events are stored in order under the session's lease, the
//! lease is renewed, what others want is read from the journal, and asks are answered by the rules or
//! when their time is up.

mod log;
mod open_log;

use std::pin::Pin;
use std::time::Duration;

use journal::Error;
use model::{Event, Frame, Sink};
use runner::locks::LockHolder;
use runner::{
    Agent, Answer, AskLimit, Mode, NotSettled, PendingAsk, Permissions, PolicyDecision, Setup,
    StartError, Step,
};
use tokio::time::timeout;

pub use self::log::{Announced, SessionLog, parent};
use self::open_log::LogEvent;
pub(crate) use self::open_log::acquire;
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
    /// The agent was told to stop its run, or to go: it is heard to its end, even when the journal falls
    /// behind.
    is_aborting: bool,
    is_closing: bool,
}

/// What a step came to.
#[derive(Debug)]
pub enum Progress {
    /// Events were stored; `has_effects` says that more than the log has changed.
    Stored {
        has_effects: bool,
    },
    /// Events could not be stored now; they are tried again.
    StoreFailed(Error),
    /// Nothing will be stored any more: see [`Worker::stop_logging`].
    LogLost(LogLost),
    /// What others want and the owner of the worker has to decide; nothing, when they have left nothing.
    Requests(Vec<Request>),
    Started,
    NotStarted(StartError),
    /// The agent has produced events, which are on their way into the log.
    Events,
    /// A run has ended, and the agent can be prompted again.
    Ended,
    /// The agent is gone; it still tells how its last run ended.
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

/// What others want, who have left it in the journal. Answers to asks are not among it: the worker passes
/// them on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A prompt waits; only a hub works on those.
    Prompt { number: u64, body: bytes::Bytes },
    /// Take a prompt out of the queue.
    RemovePrompt { number: u64, prompt: u64 },
    /// Stop the run: that of this prompt, or any.
    Abort { number: u64, of: Option<u64> },
    /// Let go of the session once it has nothing more to do.
    Leave { number: u64 },
    /// It cannot be read any more.
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

    /// The agent, which is not this worker's any more.
    pub fn take_agent(&mut self) -> Option<Agent> {
        self.agent.take()
    }

    pub fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Starts an agent as soon as it is known what with; [`Progress::Started`] tells when it is there.
    pub fn start(
        &mut self,
        setup: impl Future<Output = Result<Setup, StartError>> + Send + 'static,
    ) {
        self.starting = Some(Box::pin(async {
            let setup = setup.await?;
            Agent::start(setup, |_| ()).await
        }));
    }

    /// Starts an agent now; `waiting` hears which program has its session.
    pub async fn start_now(
        &mut self,
        setup: Setup,
        waiting: impl FnMut(&LockHolder),
    ) -> Result<(), StartError> {
        let agent = Agent::start(setup, waiting).await?;
        self.set_agent(agent);
        Ok(())
    }

    /// The agent that is being started is not wanted any more; false when there is none.
    pub fn cancel_start(&mut self) -> bool {
        self.starting.take().is_some()
    }

    /// Waits until the agent that is being started is there, but not for longer than `limit`.
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

    /// No more prompts: the agent goes when its run has ended.
    pub fn close(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.close();
            self.is_closing = true;
        }
    }

    /// The same for an agent without work whose session is wanted elsewhere.
    pub fn dismiss(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.dismiss();
            self.is_closing = true;
        }
    }

    /// Nothing is stored from here on; the agent goes on.
    pub fn stop_logging(&mut self) {
        self.log = SessionLog::off();
    }

    /// The log, once the agent is gone: to store what is left, and to let the session go.
    pub fn into_log(self) -> SessionLog {
        self.log
    }

    /// What the agent asks and nobody has answered: neither the rules nor a person.
    pub fn open_asks(&self) -> Vec<PendingAsk> {
        let asks = self.agent.as_ref().map(Agent::asks).unwrap_or_default();
        let open = asks
            .iter()
            .filter(|it| !self.is_answered(it.ask.id.as_str()));
        open.cloned().collect()
    }

    pub(crate) fn is_answered(&self, id: &str) -> bool {
        self.answered.iter().any(|it| it == id)
    }

    /// Answers an ask. An answer that the agent cannot be given leaves it open.
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

    /// The same; an answer that the agent cannot be given becomes a no.
    pub fn settle_or_deny(&mut self, id: &str, answer: &Answer) {
        if let Err(err) = self.settle(id, answer) {
            let message = format!("the answer could not be given: {err}");
            // A no can always be given.
            self.settle(id, &Answer::Deny { message }).ok();
        }
    }

    /// Waits until something has happened. What the agent tells goes to the log and to `sink`, and may be
    /// shown when this returns. May be dropped and called again: nothing is lost.
    pub async fn step<S: Sink>(&mut self, sink: &mut S) -> Progress {
        loop {
            self.settle_overdue().await;
            self.log.append();
            if let Some(progress) = self.poll_journal().await {
                return progress;
            }
            let may_step = self.log.has_room() || self.is_aborting || self.is_closing;
            let Self {
                log,
                agent,
                starting,
                ..
            } = self;
            let (record, mut journal) = log.parts();
            let mut tee = Tee { record, sink };
            let outcome = tokio::select! {
                biased;
                event = journal.next() => StepOutcome::Log(event),
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

    /// Renews the lease and reads what others want, when it is time to.
    async fn poll_journal(&mut self) -> Option<Progress> {
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
        let (Some(id), Ok(told)) = (
            self.log.ask(seq),
            serde_json::from_slice::<StoredAnswer>(answer),
        ) else {
            return;
        };
        if told.is_late() {
            return self.settle_late(&id, &told.into());
        }
        // It counts as answered, so something has to be said.
        self.settle_or_deny(&id, &told.into());
    }

    fn settle_late(&mut self, id: &str, answer: &Answer) {
        if let Some(agent) = &mut self.agent {
            // One that was answered or withdrawn meanwhile needs no answer.
            agent.settle_late(id, answer).ok();
        }
        self.answered.push(id.to_owned());
    }

    /// Answers what nobody has answered in time. In a journal it is answered as anybody else would, so that
    /// the first answer counts; it comes back as a command.
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

/// What the agent tells, into the log and to whoever is at the other end of `sink`.
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
