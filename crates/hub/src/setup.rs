//! From a queued prompt to the setup of its agent.

use std::io;
use std::path::{Path, PathBuf};

use journal::Journal;
use model::SessionId;
use responses::{Conversation, Endpoint};
use runner::engines::{self, LaunchContext, Machine, Recording, Selected};
use runner::process::find_on_path;
use runner::{
    Backend, Interaction, Mode, Permissions, RecordingError, Request, Resume, ResumePoint, Setup,
    StartError,
};

use crate::command::{Prompt, Settings};
use crate::config::HubConfig;
use crate::error::{Error, Result};
use crate::history;

/// The name of the engine that a prompt without one goes to.
pub(crate) fn default_engine(config: &HubConfig) -> Result<String> {
    match config.settings.default_engine() {
        Some(name) => Ok(name.to_owned()),
        None => Ok(engines::first_installed(&config.settings, find_on_path)?.name),
    }
}

/// The default working directory.
pub(crate) fn cwd(said: Option<&Path>) -> Result<PathBuf> {
    let here = said.unwrap_or(Path::new("."));
    let failed = |source| Error::Cwd {
        cwd: here.to_owned(),
        source,
    };
    let cwd = here.canonicalize().map_err(failed)?;
    match cwd.is_dir() {
        true => Ok(cwd),
        false => Err(failed(io::ErrorKind::NotADirectory.into())),
    }
}

/// What the agent may do.
pub(crate) fn permissions(config: &HubConfig, settings: &Settings) -> Permissions {
    // `acp:COMMAND` and the like have no key of their own.
    let engine = settings.engine.split(':').next().unwrap_or_default();
    let configured = || config.settings.permissions(engine, Mode::Ask);
    Permissions {
        mode: settings.mode().unwrap_or_else(configured),
        allow: (settings.allow.clone()).or_else(|| config.settings.allowed_tools(engine)),
        deny: settings.deny.clone(),
    }
}

/// What a start needs to know.
pub(crate) enum Plan {
    Ready(Box<Setup>),
    /// A model that needs the history of the conversation.
    Recall(Box<Recall>),
}

/// A prompt for a model that remembers nothing by itself.
pub(crate) struct Recall {
    endpoint: Box<Endpoint>,
    session: String,
    prompt: Prompt,
    earlier: ResumePoint,
    /// The last event before the prompt.
    before: u64,
    limits: runner::Limits,
}

impl Plan {
    /// Everything that [`runner::Agent::start`] has to know.
    pub(crate) async fn ready(self, journal: &dyn Journal) -> Result<Setup, StartError> {
        match self {
            Self::Ready(setup) => Ok(*setup),
            Self::Recall(recall) => recall.setup(journal).await,
        }
    }
}

impl Recall {
    async fn setup(self, journal: &dyn Journal) -> Result<Setup, StartError> {
        let failed = |err: Box<dyn std::error::Error + Send + Sync>| StartError::Recall(err);
        let id = SessionId::new(&*self.session);
        let history = history::read(journal, &id, self.before).await;
        let history = history.map_err(|err| failed(err.into()))?;
        let prompt = &self.prompt.prompt;
        let thread = self.prompt.thread();
        let mut conversation = match thread.map_err(failed)? {
            Some(thread) => Conversation::of_client(&self.session, thread, &history),
            None => Conversation::of_prompt(&self.session, history, prompt),
        };
        conversation.model = self.prompt.settings.model.clone();
        if let Some(response) = &self.prompt.resume {
            conversation.follow(response);
        }
        Ok(Setup {
            session: self.session,
            resume_point: self.earlier,
            ..Setup::responses(self.endpoint, conversation, prompt, self.limits)
        })
    }
}

/// The setup for a prompt. `native` is the agent's id of the session, `before` the last event
/// before the prompt.
pub(crate) fn setup(
    config: &HubConfig,
    session: &str,
    native: Option<&str>,
    prompt: &Prompt,
    earlier: ResumePoint,
    before: u64,
) -> Result<Plan> {
    let settings = &prompt.settings;
    let mut agent = match engines::select(&settings.engine, &config.settings)? {
        Selected::Agent(agent) => agent,
        Selected::Responses(endpoint) => {
            return Ok(Plan::Recall(Box::new(Recall {
                endpoint,
                session: session.to_owned(),
                prompt: prompt.clone(),
                earlier,
                before,
                limits: (&config.settings).into(),
            })));
        }
        Selected::Replay(recording) => {
            let setup = replay(config, session, prompt, &recording, earlier)?;
            return Ok(Plan::Ready(Box::new(setup)));
        }
    };
    let request = request(config, &mut agent, native, prompt);
    let around = LaunchContext {
        limits: (&config.settings).into(),
        guard: config.guard.clone(),
        locks: config.locks.clone(),
        holder: "linkspan serve".to_owned(),
        no_wait: false,
    };
    let mut setup = agent.setup(&request, around, find_on_path, Machine::own())?;
    session.clone_into(&mut setup.session);
    setup.resume_point = earlier;
    Ok(Plan::Ready(Box::new(setup)))
}

/// What an agent is asked to do, and the settings of the prompt that belong to its config.
fn request(
    config: &HubConfig,
    agent: &mut engines::SelectedAgent,
    native: Option<&str>,
    prompt: &Prompt,
) -> Request {
    let settings = &prompt.settings;
    let style = &mut agent.config;
    style.output_style = settings.output_style.clone().or(style.output_style.take());
    style.verbosity = settings.verbosity.clone().or(style.verbosity.take());
    let resume = match (native, &prompt.resume, &prompt.fork) {
        (Some(native), _, _) => Resume::Session(native.to_owned()),
        (None, Some(native), _) => Resume::Session(native.clone()),
        (None, None, Some(native)) => Resume::Fork(native.clone()),
        (None, None, None) => Resume::Fresh,
    };
    Request {
        prompt: prompt.prompt.clone(),
        resume,
        model: settings.model.clone(),
        effort: None,
        mcp_servers: Vec::new(),
        cwd: settings.cwd.clone(),
        permissions: permissions(config, settings),
        talk: match agent.engine.dialogue {
            Some(_) => Interaction::Dialogue,
            None => Interaction::OneShot,
        },
    }
}

/// Fails if the prompt's engine is unknown or does not support its options: such a prompt is
/// refused before anything is stored.
pub(crate) fn check(config: &HubConfig, native: Option<&str>, prompt: &Prompt) -> Result<()> {
    let settings = &prompt.settings;
    let selected = engines::select(&settings.engine, &config.settings)?;
    selected.check_lists(settings.allow.as_deref().unwrap_or_default())?;
    match selected {
        Selected::Agent(mut agent) => {
            let request = request(config, &mut agent, native, prompt);
            agent.invocation(&request)?;
        }
        Selected::Responses(_) | Selected::Replay(_) => (),
    }
    Ok(())
}

fn replay(
    config: &HubConfig,
    session: &str,
    prompt: &Prompt,
    recording: &Recording,
    earlier: ResumePoint,
) -> Result<Setup> {
    let (input, format) = recording.open().map_err(|err| match err {
        RecordingError::Read(source) => Error::Recording {
            name: recording.name(),
            source,
        },
        RecordingError::Detect(_) => Error::UnknownRecording(recording.name()),
    })?;
    let work = Backend::Replay {
        input,
        speed: prompt.speed.unwrap_or(f64::INFINITY),
        prompt: Some(prompt.prompt.clone()),
    };
    Ok(Setup {
        session: session.to_owned(),
        resume_point: earlier,
        ..Setup::replay(format, work, (&config.settings).into())
    })
}
