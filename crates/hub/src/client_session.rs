//! A session of one client at a pair of pipes: its agent is started when there is work or soon may be,
//! stays between prompts, and is replaced when other settings were chosen.
//!
//! `linkspan acp` has one for each session of its client, `linkspan claude-sdk` a single one. Both drive it
//! as they drive the [`Worker`] inside it, and write what happens in their own protocols.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use formats::History;
use journal::{Journal, NewSession};
use model::{RunId, SessionId, Sink, error_chain};
use runner::config::Config;
use runner::engines::{self, LaunchContext, Selected};
use runner::locks::Locks;
use runner::process::Guard;
use runner::{
    Agent, Interaction, McpServer, Mode, Prompt, Request, Resume, RunOptions, Setup, StartError,
};
use tokio::time::timeout;

use crate::hub::title;
use crate::setup::{SetupError, setup};
use crate::worker::{Progress, SessionLog, Worker, parent};

/// Grace periods for an agent to stop, and then to exit.
const PATIENCE: Duration = Duration::from_secs(3);

/// Appends to the journal are so far apart: one for every piece of text would cost more than all else that
/// is done with it.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// What a session is opened with.
#[derive(Clone)]
pub struct ClientSessionConfig {
    /// As the journal calls it.
    pub id: String,
    /// As in `linkspan run --engine`.
    pub engine: String,
    pub cwd: PathBuf,
    pub mcp_servers: Vec<McpServer>,
    pub resume: Resume,
    pub options: RunOptions,
    pub settings: Config,
    pub guard: Guard,
    /// Where the agents' own sessions are locked.
    pub locks: Option<Locks>,
    /// The name of this program, for others that wait for the session.
    pub holder: &'static str,
}

impl fmt::Debug for ClientSessionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSessionConfig")
            .field("id", &self.id)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// A session, its agent and its next prompt.
pub struct ClientSession {
    config: ClientSessionConfig,
    selected: Selected,
    /// The agent's session that it begins with, when it is a fork.
    forked: Option<String>,
    pub worker: Worker,
    /// The agent was started with something else than what is chosen now.
    is_stale: bool,
    /// An agent is wanted although there is nothing to do for it yet.
    is_warming: bool,
    /// A prompt that no agent has yet.
    waiting: Option<Prompt>,
    /// Its run, if the journal has its start and the prompt before the agent has them.
    announced: Option<RunId<'static>>,
    /// The messages before it, for an engine without a memory.
    history: History,
    /// The journal could not be written when it was tried last.
    pub is_store_failing: bool,
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// A prompt was accepted.
#[derive(Debug, Default)]
pub struct AcceptedPrompt {
    /// The session is kept from now on, under this title.
    pub title: Option<String>,
    /// What the client should know, one line each.
    pub warnings: Vec<String>,
}

/// What happens to a run that is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The agent ends it.
    Stopping,
    /// No agent has its prompt: it is over.
    NotBegun,
    /// Its agent is still starting: the run ends once the agent is up.
    Starting,
}

impl ClientSession {
    /// Fails where the engine cannot be started at all.
    pub fn new(config: ClientSessionConfig) -> Result<Self, SetupError> {
        let selected = engines::select(&config.engine, &config.settings)?;
        let options = &config.options;
        let permissions = options.permissions(&config.settings, &config.engine, Mode::Ask);
        // Nothing is kept before the first prompt, see `keep`.
        let mut worker = Worker::new(SessionLog::deferred(), permissions);
        worker.set_ask_limit(options.ask_limit(&config.settings, &config.engine));
        let mut session = Self {
            selected,
            forked: match &config.resume {
                Resume::Fork(native) => Some(native.clone()),
                Resume::Fresh | Resume::Latest | Resume::Session(_) => None,
            },
            worker,
            is_stale: false,
            // Before the first prompt, which then does not wait for the agent's start.
            is_warming: true,
            waiting: None,
            announced: None,
            history: History::default(),
            is_store_failing: false,
            config,
        };
        // Report start errors now, not with the first prompt.
        session.setup()?;
        Ok(session)
    }

    /// It is one that is kept already.
    pub fn resumes(&mut self, mut log: SessionLog) {
        log.set_longest_rest(FLUSH_INTERVAL);
        *self.worker.log_mut() = log;
    }

    pub fn config(&self) -> &ClientSessionConfig {
        &self.config
    }

    /// The agent's own name of the session, as far as it has one.
    pub fn resume(&self) -> &Resume {
        &self.config.resume
    }

    pub fn options(&self) -> &RunOptions {
        &self.config.options
    }

    pub fn mode(&self) -> Mode {
        self.worker.permissions().mode
    }

    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// A prompt waits for its agent.
    pub fn has_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Gives the prompt to the agent, or starts one.
    pub fn begin(&mut self) -> Result<(), SetupError> {
        if self.worker.is_starting() {
            return Ok(());
        }
        if self.worker.agent().is_some()
            && let Some(prompt) = self.waiting.take()
        {
            self.worker.prompt(&prompt, self.announced.clone());
            return Ok(());
        }
        let is_wanted = self.waiting.is_some() || std::mem::take(&mut self.is_warming);
        if self.worker.agent().is_some() || !is_wanted {
            return Ok(());
        }
        if let Some(setup) = self.setup()? {
            let is_fork = matches!(self.config.resume, Resume::Fork(_));
            self.worker.start(prepare(setup, is_fork));
        }
        Ok(())
    }

    /// What to start; nothing for a model or a recording without a prompt.
    fn setup(&mut self) -> Result<Option<Setup>, SetupError> {
        // An agent gets its prompt once it is running; models and recordings start with theirs.
        let is_agent = matches!(self.selected, Selected::Agent(_));
        let prompt = self.waiting.as_ref().filter(|_| !is_agent);
        let config = &self.config;
        let request = Request {
            prompt: prompt.map(|it| it.text.clone()).unwrap_or_default(),
            resume: config.resume.clone(),
            options: config.options.clone(),
            permissions: self.worker.permissions().clone(),
            mcp_servers: config.mcp_servers.clone(),
            cwd: config.cwd.clone(),
            talk: Interaction::Dialogue,
        };
        let around = LaunchContext {
            limits: config.settings.limits(),
            guard: config.guard.clone(),
            locks: config.locks.clone(),
            holder: config.holder.to_owned(),
            // Fail now, rather than leave the client's prompt waiting without any message.
            no_wait: true,
        };
        let mut setup = setup(&self.selected, &config.id, &request, around)?;
        if !is_agent && self.waiting.take().is_none() {
            return Ok(None);
        }
        setup.recall(std::mem::take(&mut self.history), None);
        setup.resume_point = self.worker.log().resume_point();
        if !is_agent {
            setup.announced = self.announced.clone();
        }
        Ok(Some(setup))
    }

    /// Takes a prompt, for [`ClientSession::begin`]. It is stored before its agent has it, so that other
    /// clients see it at once. Fails where another program works in the session.
    pub async fn accept<S: Sink>(
        &mut self,
        journal: &Arc<dyn Journal>,
        prompt: Prompt,
        sink: &mut S,
    ) -> Result<AcceptedPrompt, journal::Error> {
        let mut accepted = AcceptedPrompt::default();
        if self.worker.log().is_deferred() {
            self.keep(journal, &prompt.text, &mut accepted).await;
        }
        if self.worker.log().is_released() {
            match self.worker.log_mut().reacquire(journal).await {
                Ok(()) => (),
                Err(err @ journal::Error::Held { .. }) => return Err(err),
                Err(err) => accepted.not_kept(&err),
            }
        }
        // The log may have been opened just now.
        self.worker.log_mut().set_longest_rest(FLUSH_INTERVAL);
        self.recall(&mut accepted).await;
        self.announced = None;
        // An announced prompt is text; images are stored when the agent repeats the prompt.
        if prompt.images.is_empty() && !self.is_store_failing {
            match self.worker.log_mut().announce(&prompt.text).await {
                Ok(Some(announced)) => {
                    announced.replay(sink);
                    self.announced = Some(announced.run);
                }
                Ok(None) => (),
                Err(err) => {
                    self.worker.stop_logging();
                    accepted.not_kept(&err);
                }
            }
        }
        self.waiting = Some(prompt);
        Ok(accepted)
    }

    /// The session is worth keeping from now on.
    async fn keep(
        &mut self,
        journal: &Arc<dyn Journal>,
        prompt: &str,
        accepted: &mut AcceptedPrompt,
    ) {
        let title = title(prompt);
        // A journal that cannot be read is reported when it cannot be written.
        let parent = parent(&**journal, self.forked.as_deref()).await;
        let session = NewSession {
            home: journal::Node::default(),
            id: SessionId::new(self.config.id.clone()),
            engine: self.config.engine.clone(),
            cwd: Some(self.config.cwd.to_string_lossy().into_owned()),
            title: Some(title.clone()),
            parent: parent.unwrap_or_default(),
        };
        if let Err(err) = self.worker.log_mut().begin(journal, session).await {
            accepted.not_kept(&err);
        }
        accepted.title = Some(title);
    }

    /// A model has no memory: it gets the history.
    async fn recall(&mut self, accepted: &mut AcceptedPrompt) {
        if !matches!(self.selected, Selected::Responses(_)) {
            return;
        }
        match self.worker.log_mut().history().await {
            Ok(history) => self.history = history,
            Err(err) => {
                let warning = format!("the history cannot be read: {}", error_chain(&err));
                accepted.warnings.push(warning);
            }
        }
    }

    /// Stops the run of the last prompt.
    pub fn cancel(&mut self) -> Cancelled {
        match self.worker.agent() {
            Some(_) if self.waiting.is_none() => {
                self.worker.abort();
                Cancelled::Stopping
            }
            _ if !self.worker.is_starting() => {
                self.waiting = None;
                Cancelled::NotBegun
            }
            _ => Cancelled::Starting,
        }
    }

    /// The prompt that no agent has is taken back; false when there is none.
    pub fn drop_waiting(&mut self) -> bool {
        self.waiting.take().is_some()
    }

    /// Ends the run of the last prompt, unless an agent has: as failed with this code and message, or as
    /// aborted.
    pub fn end_announced(&mut self, failure: Option<(&'static str, String)>) {
        if let Some(run) = self.announced.take() {
            self.worker.end_announced(&run, failure);
        }
    }

    /// The agent has started; if its options are outdated by now, it is replaced.
    pub async fn on_started<S: Sink>(&mut self, sink: &mut S) {
        if self.is_stale {
            self.release_agent(sink).await;
            self.is_warming = true;
        }
    }

    /// The agent has made progress: it may have named its session.
    pub fn on_step(&mut self) {
        if let Some(native) = self.worker.agent().and_then(Agent::native) {
            self.config.resume = Resume::Session(native.to_owned());
        }
    }

    /// The agent has exited. True when the prompt goes to a new one, because another process has resumed the
    /// session and this agent does not know of that.
    pub fn agent_gone(&mut self, agent: &mut Agent) -> bool {
        if let Some(native) = agent.native() {
            self.config.resume = Resume::Session(native.to_owned());
        }
        self.worker.log_mut().forget_deferred();
        let unsent = agent.take_unsent();
        let is_again = unsent.is_some();
        if is_again {
            self.waiting = unsent;
        }
        is_again
    }

    /// Later asks are answered in this mode.
    pub fn change_mode(&mut self, mode: Mode) {
        // An agent that is still starting uses the previous choice.
        self.is_stale |= self.worker.is_starting() && self.mode() != mode;
        self.worker.set_mode(mode);
        if let Some(agent) = self.worker.agent_mut() {
            // An agent that cannot change is restarted for the next prompt.
            self.is_stale |= !agent.set_mode(mode);
        }
    }

    /// None is the agent's own default.
    pub fn change_model(&mut self, model: Option<String>) {
        if self.config.options.model == model {
            return;
        }
        let is_starting = self.worker.is_starting();
        match (self.worker.agent_mut(), &model) {
            (Some(agent), Some(model)) => self.is_stale |= !agent.set_model(model),
            // Only a new agent goes back to its own default: it has no name to be set.
            (Some(_), None) => self.is_stale = true,
            (None, _) => self.is_stale |= is_starting,
        }
        self.config.options.model = model;
    }

    /// None is the agent's own default.
    pub fn change_effort(&mut self, effort: Option<String>) {
        // An agent takes its effort when it starts, so another one is needed.
        let has_agent = self.worker.agent().is_some() || self.worker.is_starting();
        self.is_stale |= has_agent && self.config.options.effort != effort;
        self.config.options.effort = effort;
    }

    /// Releases the agent and reads it to its end.
    pub async fn release_agent<S: Sink>(&mut self, sink: &mut S) {
        self.is_stale = false;
        // It may have the lock of the session already, which the next one needs.
        self.worker.finish_start(PATIENCE).await;
        self.worker.close();
        if timeout(PATIENCE, self.wait_for_exit(sink)).await.is_err() {
            self.worker.kill();
            self.wait_for_exit(sink).await;
        }
        self.worker.log_mut().forget_deferred();
    }

    /// Another process wants the session, in which there is no work: the next prompt reacquires it, with a
    /// new agent that sees the other's changes.
    pub async fn yield_session<S: Sink>(&mut self, sink: &mut S) {
        self.worker.dismiss();
        self.release_agent(sink).await;
        self.worker.log_mut().release().await;
    }

    async fn wait_for_exit<S: Sink>(&mut self, sink: &mut S) {
        while self.worker.agent().is_some() {
            self.step_out(sink).await;
        }
    }

    /// Reads an agent that was stopped, as long as `is_running` says that its run has not ended.
    pub async fn wait_for_run_end<S: Sink>(
        &mut self,
        sink: &mut S,
        is_running: impl Fn(&S) -> bool,
    ) {
        let ended = async {
            while is_running(sink) && self.worker.agent().is_some() {
                self.step_out(sink).await;
            }
        };
        timeout(PATIENCE, ended).await.ok();
    }

    /// A step of an agent that is on its way out.
    async fn step_out<S: Sink>(&mut self, sink: &mut S) {
        match self.worker.step(sink).await {
            Progress::LogLost(_) => self.worker.stop_logging(),
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
}

impl AcceptedPrompt {
    fn not_kept(&mut self, err: &journal::Error) {
        self.warnings.push(not_kept(err));
    }
}

/// The message to a client whose session is no longer stored.
pub fn not_kept(err: &journal::Error) -> String {
    let reason = error_chain(err);
    format!("this session is not kept from here on: {reason}")
}

/// The parent of a fork is only read: it is enough that no other program is running an agent in it.
async fn prepare(mut setup: Setup, is_fork: bool) -> Result<Setup, StartError> {
    if is_fork && let Some((locks, session)) = setup.locks.clone().zip(setup.in_use.take()) {
        let place = locks
            .queue_to_read(&setup.engine, &session, &setup.holder)
            .await;
        let place = match place {
            Ok(place) => place,
            Err(source) => return Err(StartError::Lock { session, source }),
        };
        // If our own agent is there it is idle: a running session is not forked.
        let others = place.held().filter(|it| it.pid != std::process::id());
        if let Some(held) = others.cloned() {
            return Err(StartError::Busy { session, held });
        }
    }
    Ok(setup)
}
