//! A conversation with an agent: messages in, events out, one run after the other.
//!
//! The shape is that of the OpenHands `Conversation`: messages are sent, and a run works on them. The
//! agent stays between runs where it can, so that the next one pays no start-up; when it is gone, the
//! next run resumes the session.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hub::{Progress, SessionLog, SetupError, Worker};
use journal::{Journal, Memory, NewSession};
use model::{Event, Outcome, SessionId, Sink};
use runner::config::{self, Config};
use runner::engines::{self, LaunchContext};
use runner::locks::Locks;
use runner::process::Guard;
use runner::{
    Agent, Answer, Interaction, Mode, PendingAsk, Permissions, Request, Resume, RunOptions,
    RunResult, Setup, StartError, no_one_to_ask_message,
};
use tokio::sync::Notify;

/// The engine and the options of a conversation.
#[derive(Clone, Debug)]
pub struct ConversationConfig {
    /// As in `linkspan run --engine`.
    pub engine: String,
    /// Absolute.
    pub cwd: PathBuf,
    /// How it is run. Tools may be allowed by the agent's names or by those of OpenHands; unanswered asks are
    /// up to [`Conversation::on_ask`].
    pub options: RunOptions,
    /// A session of the agent to resume.
    pub resume: Option<String>,
    /// A `linkspan` program as the guard of the agents. Without one they are ended with the conversation,
    /// but not when this process is killed.
    pub guard: Option<PathBuf>,
    /// The user's settings.
    pub settings: Config,
}

impl ConversationConfig {
    /// A new session of `engine` in `cwd`, with the user's own settings. Asks are put to `on_ask`.
    pub fn new(engine: &str, cwd: &Path) -> Result<Self, config::Error> {
        let variable = |name: &str| env::var(name).ok();
        let file = config::File::find(None, variable);
        Ok(Self {
            engine: engine.to_owned(),
            cwd: cwd.to_owned(),
            options: RunOptions {
                permissions: Some(Mode::Ask),
                ..RunOptions::default()
            },
            resume: None,
            guard: None,
            settings: Config::load(file.as_ref(), variable)?,
        })
    }
}

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was run yet.
    Idle,
    /// A run is on.
    Running,
    /// The last run was completed.
    Finished,
    /// The last run was not.
    Error,
}

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// No message was added since the last run.
    #[error("there is no message that was not sent")]
    NothingToSend,
    /// There is no such engine, or it cannot be used.
    #[error(transparent)]
    Engine(#[from] engines::Error),
    /// The options, the directory or the program do not fit.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The agent could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The journal does not take the session.
    #[error("the session cannot be kept")]
    Journal(#[from] journal::Error),
}

type OnEvent = Box<dyn FnMut(&Event<'_>) + Send>;
type OnAsk = Box<dyn FnMut(&PendingAsk) -> Answer + Send>;

/// A conversation with an agent.
pub struct Conversation {
    /// Its own name, the same for every prompt.
    id: String,
    config: ConversationConfig,
    permissions: Permissions,
    state: State,
    unsent: Vec<String>,
    listeners: Listeners,
    on_ask: Option<OnAsk>,
    /// Where the session is kept: in memory, unless [`Conversation::keep_in`] says otherwise.
    journal: Option<Arc<dyn Journal>>,
    /// From the first run on.
    worker: Option<Worker>,
    /// The agent was started with permissions that no longer apply.
    is_stale: bool,
    resume: Option<String>,
    aborting: Arc<Notify>,
    last: Option<RunResult>,
}

/// Stops the run of a conversation, from anywhere.
#[derive(Clone, Debug)]
pub struct Aborter(Arc<Notify>);

impl Aborter {
    /// The run ends as aborted; without a run, the next one does.
    pub fn abort(&self) {
        // `notify_one` is kept for the next run; `notify_waiters` would be lost without one.
        self.0.notify_one();
    }
}

/// A run without an end.
const LOST: RunResult = RunResult {
    outcome: Outcome::Lost,
    code: None,
    message: None,
};

impl Conversation {
    /// A conversation without a message; the agent starts with the first run.
    pub fn new(mut config: ConversationConfig) -> Self {
        let options = &mut config.options;
        options.allow = options.allow.as_deref().map(allowed_tools);
        Self {
            id: runner::new_id(),
            permissions: options.permissions(&config.settings, &config.engine, Mode::Ask),
            resume: config.resume.clone(),
            config,
            state: State::Idle,
            unsent: Vec::new(),
            listeners: Listeners::default(),
            on_ask: None,
            journal: None,
            worker: None,
            is_stale: false,
            aborting: Arc::default(),
            last: None,
        }
    }

    /// Calls `listener` with every event.
    pub fn on_event(&mut self, listener: impl FnMut(&Event<'_>) + Send + 'static) {
        self.listeners.0.push(Box::new(listener));
    }

    /// Lets `answer` decide what was not allowed beforehand. Without it, such asks are denied.
    pub fn on_ask(&mut self, answer: impl FnMut(&PendingAsk) -> Answer + Send + 'static) {
        self.on_ask = Some(Box::new(answer));
    }

    /// Keeps the session in a journal, where others can follow it. Before the first run.
    pub fn keep_in(&mut self, journal: Arc<dyn Journal>) {
        self.journal = Some(journal);
    }

    /// Adds a message; the next run works on it.
    pub fn send_message(&mut self, text: impl Into<String>) {
        self.unsent.push(text.into());
    }

    /// Sets the model of later runs; false if the running agent cannot change it.
    pub fn set_model(&mut self, model: &str) -> bool {
        self.config.options.model = Some(model.to_owned());
        let agent = self.worker.as_mut().and_then(Worker::agent_mut);
        agent.is_none_or(|it| it.set_model(model))
    }

    /// Changes the permissions of later runs; false when the running agent cannot change them: then the
    /// next run starts it again, in the same session.
    pub fn set_permissions(&mut self, mode: Mode) -> bool {
        self.permissions.mode = mode;
        let Some(worker) = &mut self.worker else {
            return true;
        };
        worker.set_permissions(self.permissions.clone());
        let is_set = worker.agent_mut().is_none_or(|it| it.set_mode(mode));
        self.is_stale |= !is_set;
        is_set
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// How the last run ended.
    pub fn last(&self) -> Option<&RunResult> {
        self.last.as_ref()
    }

    /// The agent's own id of the session, once it is known.
    pub fn session(&self) -> Option<&str> {
        self.resume.as_deref()
    }

    /// A handle that stops its runs.
    pub fn aborter(&self) -> Aborter {
        Aborter(Arc::clone(&self.aborting))
    }

    /// Sends the messages since the last run, and waits for the end of the run.
    pub async fn run(&mut self) -> Result<RunResult, ConversationError> {
        if self.unsent.is_empty() {
            return Err(ConversationError::NothingToSend);
        }
        let prompt = self.unsent.join("\n\n");
        self.open().await?;
        if std::mem::take(&mut self.is_stale)
            && let Some(mut agent) = self.worker.as_mut().and_then(Worker::take_agent)
        {
            // It must have exited before another agent resumes its session.
            agent.step_to_end().await;
        }
        match self.worker.as_mut().and_then(Worker::agent_mut) {
            Some(agent) => agent.prompt(&prompt.as_str().into()),
            None => self.start(&prompt).await?,
        }
        // Not before: after a failed start the messages are still to be sent.
        self.unsent.clear();
        self.state = State::Running;
        let ended = match self.follow().await {
            Some(ended) => ended,
            // A new agent reads what the other program has added to the session.
            None => {
                self.start(&prompt).await?;
                self.follow().await.unwrap_or(LOST)
            }
        };
        self.state = match ended.outcome {
            Outcome::Completed => State::Finished,
            Outcome::Failed
            | Outcome::Aborted
            | Outcome::Refused
            | Outcome::Limit
            | Outcome::Lost => State::Error,
        };
        self.last = Some(ended.clone());
        Ok(ended)
    }

    /// Ends the agent. Another run would start it again.
    pub async fn close(&mut self) {
        let Some(worker) = &mut self.worker else {
            return;
        };
        worker.close();
        // Its last events still have to reach the listeners and the journal.
        while worker.agent().is_some() {
            worker.step(&mut self.listeners).await;
        }
    }

    /// The worker of the session, from now on.
    async fn open(&mut self) -> Result<(), ConversationError> {
        if self.worker.is_some() {
            return Ok(());
        }
        let journal = self.journal.take();
        let journal = journal.unwrap_or_else(|| Arc::new(Memory::new(journal::Config::default())));
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new(self.id.clone()),
            engine: self.config.engine.clone(),
            cwd: Some(self.config.cwd.to_string_lossy().into_owned()),
            title: self.unsent.first().map(|it| hub::title(it)),
            parent: None,
        };
        let log = SessionLog::create(journal, session).await?;
        let mut worker = Worker::new(log, self.permissions.clone());
        let ConversationConfig {
            options, settings, ..
        } = &self.config;
        worker.set_ask_limit(options.ask_limit(settings, &self.config.engine));
        self.worker = Some(worker);
        Ok(())
    }

    async fn start(&mut self, prompt: &str) -> Result<(), ConversationError> {
        let mut setup = self.setup(prompt)?;
        let Some(worker) = &mut self.worker else {
            return Ok(());
        };
        if setup.needs_history() {
            setup.recall(worker.log_mut().history().await?, None);
        }
        setup.resume_point = worker.log().resume_point();
        worker.start_now(setup, |_| ()).await?;
        Ok(())
    }

    /// How the run ended; none when another program has used the session while the agent idled, so that a
    /// new agent needs the prompt.
    async fn follow(&mut self) -> Option<RunResult> {
        let aborting = Arc::clone(&self.aborting);
        loop {
            let worker = self.worker.as_mut()?;
            let progress = tokio::select! {
                progress = worker.step(&mut self.listeners) => progress,
                () = aborting.notified() => {
                    worker.abort();
                    continue;
                }
            };
            if let Some(native) = worker.agent().and_then(Agent::native) {
                self.resume = Some(native.to_owned());
            }
            answer(worker, &mut self.on_ask);
            match progress {
                Progress::Ended => {
                    let last = worker.agent().and_then(Agent::last);
                    return Some(last.cloned().unwrap_or(LOST));
                }
                // A conversation names its session, so it cannot be busy.
                Progress::Busy(_) => return Some(LOST),
                Progress::Gone(mut agent) => {
                    if let Some(native) = agent.native() {
                        self.resume = Some(native.to_owned());
                    }
                    let is_unsent = agent.take_unsent().is_some();
                    return (!is_unsent).then(|| agent.last().cloned().unwrap_or(LOST));
                }
                Progress::LogLost(_) => worker.stop_logging(),
                Progress::Requests(requests) => {
                    let is_abort = |it: &hub::Request| matches!(it, hub::Request::Abort { .. });
                    if requests.iter().any(is_abort) {
                        worker.abort();
                    }
                }
                Progress::Events
                | Progress::Found
                | Progress::Started
                | Progress::NotStarted(_)
                | Progress::Stored { .. }
                | Progress::StoreFailed(_) => (),
            }
        }
    }

    /// A recording is played anew for every run.
    fn setup(&self, prompt: &str) -> Result<Setup, ConversationError> {
        let ConversationConfig {
            engine,
            settings,
            cwd,
            options,
            guard,
            ..
        } = &self.config;
        let request = Request {
            prompt: prompt.to_owned(),
            resume: self.resume.clone().map_or(Resume::Fresh, Resume::Session),
            options: options.clone(),
            permissions: self.permissions.clone(),
            mcp_servers: Vec::new(),
            cwd: cwd.clone(),
            talk: Interaction::Dialogue,
        };
        let around = LaunchContext {
            limits: settings.limits(),
            guard: guard.clone().map_or(Guard::None, Guard::Exe),
            locks: Locks::own(),
            holder: "a conversation".to_owned(),
            no_wait: false,
        };
        let selected = engines::select(engine, settings)?;
        Ok(hub::setup(&selected, &self.id, &request, around)?)
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("engine", &self.config.engine)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Answers the asks that the policy leaves open: with the callback, else with a denial.
fn answer(worker: &mut Worker, on_ask: &mut Option<OnAsk>) {
    for asked in worker.open_asks() {
        let answer = match on_ask {
            Some(on_ask) => on_ask(&asked),
            None => Answer::Deny {
                message: no_one_to_ask_message(&asked),
            },
        };
        worker.settle_or_deny(asked.ask.id.as_str(), &answer);
    }
}

/// The tools of an agent by the names OpenHands has for them; other names are kept.
pub fn allowed_tools(names: &[String]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for name in names {
        let known: &[&str] = match &**name {
            "terminal" | "execute_bash" | "bash" => &["Bash"],
            "file_editor" | "str_replace_editor" => &["Read", "Edit", "Write"],
            "browser" => &["WebFetch"],
            "task_tracker" => &["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"],
            other => &[other],
        };
        for tool in known {
            if !tools.iter().any(|it| it == tool) {
                tools.push((*tool).to_owned());
            }
        }
    }
    tools
}

/// The callbacks of [`Conversation::on_event`].
#[derive(Default)]
struct Listeners(Vec<OnEvent>);

impl Sink for Listeners {
    fn event(&mut self, event: &Event<'_>) {
        self.0.iter_mut().for_each(|listener| listener(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_openhands_are_allowed_by_their_names_here() {
        let names = [
            "terminal",
            "file_editor",
            "browser",
            "bash",
            "task_tracker",
            "WebSearch",
        ];
        let expected = [
            "Bash",
            "Read",
            "Edit",
            "Write",
            "WebFetch",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskUpdate",
            "WebSearch",
        ];
        assert_eq!(allowed_tools(&names.map(str::to_owned)), expected);
    }
}
