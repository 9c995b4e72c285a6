//! From a prompt to the setup of its agent: the one place for the server, `linkspan run`, `linkspan acp` and
//! `Conversation`.

use std::io;
use std::path::{Path, PathBuf};

use formats::History;
use model::error_chain;
use responses::Conversation;
use runner::engines::{self, LaunchContext, Machine, Recording, Selected};
use runner::process::find_on_path;
use runner::{Backend, Interaction, Mode, Permissions, RecordingError, Request, Resume, Setup};

use crate::command::{Prompt, Settings};
use crate::config::HubConfig;
use crate::error::{Error, Result};

/// Why no agent can be started for a request.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Engine(#[from] engines::Error),
    #[error("cannot play the recording `{name}`")]
    Recording {
        name: String,
        #[source]
        source: RecordingError,
    },
}

impl SetupError {
    /// What went wrong and the way out, in one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Engine(engine) => match engine.hint() {
                Some(hint) => format!("{}; {hint}", error_chain(engine)),
                None => error_chain(engine),
            },
            Self::Recording { source, .. } => error_chain(source),
        }
    }
}

/// Everything that an agent is started with. A model gets only the prompt here; [`Setup::recall`] adds the
/// history.
pub fn setup(
    selected: &Selected,
    session: &str,
    request: &Request,
    around: LaunchContext,
) -> Result<Setup, SetupError> {
    let Request {
        prompt,
        resume,
        options,
        ..
    } = request;
    selected.check_options(options)?;
    let setup = match selected {
        Selected::Agent(agent) => agent.setup(request, around, find_on_path, Machine::own())?,
        Selected::Responses(endpoint) => {
            let mut conversation = Conversation::of_prompt(session, History::default(), prompt);
            conversation.model.clone_from(&options.model);
            conversation.effort.clone_from(&options.effort);
            if let Resume::Session(response) = resume {
                conversation.follow(response);
            }
            Setup::responses(endpoint.clone(), conversation, prompt, around.limits)
        }
        Selected::Replay(recording) => {
            let (input, format) = open(recording)?;
            let work = Backend::Replay {
                input,
                speed: options.speed(),
                prompt: (!prompt.is_empty()).then(|| prompt.clone()),
            };
            Setup::replay(format, work, around.limits)
        }
    };
    Ok(Setup {
        session: session.to_owned(),
        ..setup
    })
}

fn open(recording: &Recording) -> Result<(Box<dyn io::Read + Send>, &'static str), SetupError> {
    let opened = recording.open();
    opened.map_err(|source| SetupError::Recording {
        name: recording.name(),
        source,
    })
}

/// The name of the engine that a prompt without one goes to.
pub(crate) fn default_engine(config: &HubConfig) -> Result<String> {
    match config.settings.default_engine() {
        Some(name) => Ok(name.to_owned()),
        None => Ok(engines::first_installed(&config.settings, find_on_path)?.name),
    }
}

/// The absolute working directory of a prompt; by default the hub's own.
pub(crate) fn cwd(wanted: Option<&Path>) -> Result<PathBuf> {
    let here = wanted.unwrap_or(Path::new("."));
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

/// The permissions of a queued prompt.
pub(crate) fn permissions(config: &HubConfig, settings: &Settings) -> Permissions {
    let Settings {
        engine, options, ..
    } = settings;
    options.permissions(&config.settings, engine, Mode::Ask)
}

/// The setup for a queued prompt. `native` is the agent's id of the session.
pub(crate) fn of_prompt(
    config: &HubConfig,
    session: &str,
    native: Option<&str>,
    prompt: &Prompt,
) -> Result<Setup, SetupError> {
    let selected = engines::select(&prompt.settings.engine, &config.settings)?;
    let around = LaunchContext {
        limits: config.settings.limits(),
        guard: config.guard.clone(),
        locks: config.locks.clone(),
        holder: "linkspan serve".to_owned(),
        no_wait: false,
    };
    let request = request(config, &selected, native, prompt);
    setup(&selected, session, &request, around)
}

/// Fails if the prompt's engine does not support its options, is not installed, or has no such recording: such a
/// prompt is refused before anything is stored.
pub(crate) fn check(
    config: &HubConfig,
    selected: &Selected,
    native: Option<&str>,
    prompt: &Prompt,
) -> Result<()> {
    selected.check_options(&prompt.settings.options)?;
    check_begin(selected, prompt)?;
    match selected {
        Selected::Agent(agent) => {
            let request = request(config, selected, native, prompt);
            agent.launch(&request, find_on_path).map(drop)?;
        }
        Selected::Replay(recording) => open(recording).map(drop)?,
        // Whether an endpoint can be reached shows only when it is asked.
        Selected::Responses(_) => (),
    }
    Ok(())
}

/// Fails where a session begins with one of the agent's and the engine has no such sessions.
fn check_begin(selected: &Selected, prompt: &Prompt) -> Result<(), engines::Error> {
    let engine = selected.engine();
    let what = match (&prompt.resume, &prompt.fork) {
        (Some(_), _) if !engine.capabilities.resume => "resume a session",
        (_, Some(_)) if !engine.capabilities.fork => "fork a session",
        _ => return Ok(()),
    };
    Err(engines::Error::Unable {
        engine: engine.name,
        what,
        hint: "begin a new session, or use an engine that can",
    })
}

fn request(
    config: &HubConfig,
    selected: &Selected,
    native: Option<&str>,
    prompt: &Prompt,
) -> Request {
    let settings = &prompt.settings;
    // The agent's own id comes first: `resume` and `fork` are for the run that begins a session.
    let resume = match (native, &prompt.resume, &prompt.fork) {
        (Some(native), _, _) => Resume::Session(native.to_owned()),
        (None, Some(native), _) => Resume::Session(native.clone()),
        (None, None, Some(native)) => Resume::Fork(native.clone()),
        (None, None, None) => Resume::Fresh,
    };
    Request {
        prompt: prompt.prompt.clone(),
        resume,
        options: settings.options.clone(),
        permissions: permissions(config, settings),
        mcp_servers: Vec::new(),
        cwd: settings.cwd.clone(),
        talk: match selected {
            Selected::Agent(agent) if agent.engine.dialogue.is_none() => Interaction::OneShot,
            Selected::Agent(_) | Selected::Responses(_) | Selected::Replay(_) => {
                Interaction::Dialogue
            }
        },
    }
}
