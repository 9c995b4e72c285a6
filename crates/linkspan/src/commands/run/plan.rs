//! From flags, config and prompt to an agent that can be started.

use std::path::{Path, PathBuf};
use std::{env, io};

use formats::History;
use journal::Truncate;
use responses::{Conversation, Endpoint};
use runner::config::Config;
use runner::engines::{self, LaunchContext, Machine, Recording, Selected};
use runner::locks::Locks;
use runner::process::{Guard, find_on_path};
use runner::{
    AskLimit, Backend, Interaction, Mode, Permissions, RecordingError, Request, Resume, Setup,
};

use super::prompt::PromptSource;
use crate::cli::RunArgs;
use crate::exit::{Code, Failure, chain, printable};
use crate::streams::InputStream;
use crate::{settings, store};

/// What is to be done.
pub(super) struct RunPlan {
    pub(super) setup: Setup,
    pub(super) permissions: Permissions,
    /// For how long an ask may wait.
    pub(super) ask_limit: Option<AskLimit>,
    pub(super) kept: SessionMeta,
    /// What an agent was told; it may have come from stdin, which cannot be read again.
    pub(super) prompt: Option<PromptSource>,
    /// The settings; their file may be a pipe, which cannot be read again.
    pub(super) config: Config,
    /// What the user is told when it starts, a line each.
    pub(super) said: Vec<String>,
    /// The tools that run without a question.
    pub(super) list: Vec<String>,
}

/// Under which name the journal keeps it.
#[derive(Clone)]
pub(super) struct SessionMeta {
    pub(super) engine: String,
    pub(super) cwd: Option<PathBuf>,
    pub(super) title: String,
    /// The agent's session that it goes on with.
    pub(super) native: Option<String>,
    /// It goes on with the newest session, which only the agent can name.
    pub(super) is_latest: bool,
    /// The agent's session that it begins with, when it is a fork.
    pub(super) forked: Option<String>,
    /// How long a text may be there.
    pub(super) cut: Option<Truncate>,
}

impl RunPlan {
    /// `is_attended`: a user at a terminal can be asked.
    pub(super) fn new(args: &RunArgs, is_attended: bool) -> Result<Self, Failure> {
        let mut config = settings::with_permissions(&args.file, args.permissions)?;
        settings::asks(&mut config, &args.asks)?;
        let by_session = engine_of_session(args)?;
        let named = args.engine.as_deref().or(by_session.as_deref());
        if let Some(name) = named.or(config.default_engine()) {
            let selected = engines::select(name, &config).map_err(refused)?;
            selected.check_lists(&args.allow).map_err(refused)?;
            match selected {
                Selected::Agent(_) => (),
                Selected::Responses(endpoint) => return model(args, endpoint, &config),
                Selected::Replay(recording) => return replay(args, name, &recording, &config),
            }
        }
        Self::for_agent(
            args,
            &config,
            is_attended,
            PromptSource::read(&args.prompt)?,
            None,
        )
    }

    /// For an agent; `known` is a session that was found out meanwhile.
    pub(super) fn for_agent(
        args: &RunArgs,
        config: &Config,
        is_attended: bool,
        prompt: PromptSource,
        known: Option<&str>,
    ) -> Result<Self, Failure> {
        let chosen = choose(args, config, &prompt)?;
        let unset = match is_attended {
            true => Mode::Ask,
            false => Mode::Listed,
        };
        let permissions = Permissions {
            mode: config.permissions(chosen.engine.name, unset),
            allow: settings::list(&args.allow, config, chosen.engine.name),
            deny: args.deny.clone(),
        };
        let request = Request {
            talk: interaction(&chosen, permissions.mode, is_attended),
            resume: match known {
                Some(id) => Resume::Session(id.to_owned()),
                None => native(args, &chosen, resume(args, &prompt)?)?,
            },
            prompt: prompt.text.clone(),
            model: args.model.clone(),
            effort: None,
            mcp_servers: Vec::new(),
            cwd: cwd(args.cwd.as_deref())?,
            permissions,
        };
        let mut setup = agent(args, config, &chosen, &request)?;
        let said = [setup.notice.take(), listed(&chosen, &request.permissions)];
        let kept = SessionMeta {
            engine: chosen.name.clone(),
            cwd: Some(request.cwd),
            title: hub::title(&request.prompt),
            is_latest: request.resume == Resume::Latest,
            forked: match &request.resume {
                Resume::Fork(native) => Some(native.clone()),
                Resume::Fresh | Resume::Latest | Resume::Session(_) => None,
            },
            native: match request.resume {
                Resume::Session(native) => Some(native),
                Resume::Fresh | Resume::Latest | Resume::Fork(_) => None,
            },
            cut: hub::truncation(config),
        };
        let permissions = request.permissions;
        Ok(Self {
            ask_limit: config.ask_limit(&chosen.name, None, None),
            setup,
            list: chosen.list(&permissions),
            permissions,
            kept,
            prompt: Some(prompt),
            config: config.clone(),
            said: said.into_iter().flatten().collect(),
        })
    }
}

/// Print the tools that `listed` allows, because they run without asking.
fn listed(chosen: &engines::SelectedAgent, permissions: &Permissions) -> Option<String> {
    match permissions.mode {
        Mode::Listed => (),
        Mode::Plan | Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Allow => return None,
    }
    Some(match chosen.listed(permissions) {
        Some(list) => {
            format!(
                "runs without asking: {list}; everything else is denied (`--permissions listed`)"
            )
        }
        None => "nothing runs without asking, and whatever the agent asks for is denied \
                 (`--permissions listed`, and the list is empty)"
            .to_owned(),
    })
}

pub(crate) fn refused(err: engines::Error) -> Failure {
    let code = match &err {
        engines::Error::NoneInstalled | engines::Error::NotFound { .. } => Code::Failed,
        _ => Code::Usage,
    };
    Failure::Message {
        code,
        hint: err.hint(),
        message: chain(&err),
    }
}

/// The engine that was asked for by a flag, by the prompt, by the session to go on with, by the config, or
/// by being there.
fn choose(
    args: &RunArgs,
    config: &Config,
    prompt: &PromptSource,
) -> Result<engines::SelectedAgent, Failure> {
    let by_prompt = prompt.resume.as_ref().map(|it| &*it.0);
    if let (Some(flag), Some(said)) = (args.engine.as_deref(), by_prompt)
        && flag != said
    {
        return Err(Failure::usage(
            format!("the prompt goes on with a session of {said}, and `--engine` says {flag}"),
            "leave one of them out",
        ));
    }
    let by_session = engine_of_session(args)?;
    let name = args
        .engine
        .as_deref()
        .or(by_prompt)
        .or(by_session.as_deref());
    let chosen = match name.or(config.default_engine()) {
        Some(name) => engines::select(name, config).map_err(refused)?,
        None => {
            return engines::first_installed(config, find_on_path).map_err(refused);
        }
    };
    let mut chosen = match chosen {
        Selected::Agent(chosen) => *chosen,
        Selected::Responses(_) | Selected::Replay(_) => {
            return Err(Failure::usage(
                "a recording has no sessions to resume",
                "leave the resume line out",
            ));
        }
    };
    if let Some(program) = &args.program {
        chosen.config.program = Some(program.to_string_lossy().into_owned());
    }
    Ok(chosen)
}

/// An agent is talked with when it has no other way, or when its questions can be answered.
fn interaction(chosen: &engines::SelectedAgent, mode: Mode, is_attended: bool) -> Interaction {
    let can_answer = match mode {
        Mode::Ask | Mode::AcceptEdits | Mode::Plan => is_attended,
        Mode::Allow | Mode::Deny | Mode::Listed => false,
    };
    match chosen.engine.one_shot {
        Some(_) if !(can_answer && chosen.engine.capabilities.ask) => Interaction::OneShot,
        Some(_) | None => Interaction::Dialogue,
    }
}

fn resume(args: &RunArgs, prompt: &PromptSource) -> Result<Resume, Failure> {
    let said = prompt.resume.as_ref().map(|it| &it.1);
    let flag = args.resume.as_ref().or(args.fork.as_ref());
    if let (true, Some(said)) = (args.r#continue, said) {
        return Err(Failure::usage(
            format!("the prompt goes on with session `{said}`, and `--continue` with the newest"),
            "leave one of them out",
        ));
    }
    if let (Some(flag), Some(said)) = (flag, said)
        && flag != said
    {
        return Err(Failure::usage(
            format!("the prompt goes on with session `{said}`, and the flag says `{flag}`"),
            "leave one of them out",
        ));
    }
    Ok(match (&args.fork, args.resume.as_ref().or(said)) {
        (Some(id), _) => Resume::Fork(id.clone()),
        (None, Some(id)) => Resume::Session(id.clone()),
        (None, None) if args.r#continue => Resume::Latest,
        (None, None) => Resume::Fresh,
    })
}

/// What the journal has under an id, if there is a journal.
fn stored(args: &RunArgs, id: &str) -> Result<Option<journal::Session>, Failure> {
    // Without a journal there are only the agent's names.
    let folder = store::folder(&args.data).ok();
    let Some(folder) = folder.filter(|it| store::exists(it)) else {
        return Ok(None);
    };
    let found = store::runtime()?.block_on(async {
        let journal = store::open(&folder, None).await?;
        store::find(&*journal, id).await
    });
    match found {
        // An unusable journal does not prevent a run and is reported later.
        Err(Failure::Message { code: Code::Io, .. }) => Ok(None),
        found => found,
    }
}

/// The engine of the session that the flags name, where no flag names the engine.
fn engine_of_session(args: &RunArgs) -> Result<Option<String>, Failure> {
    match (&args.engine, args.fork.as_ref().or(args.resume.as_ref())) {
        (None, Some(id)) => Ok(stored(args, id)?.map(|it| it.engine.to_string())),
        _ => Ok(None),
    }
}

/// A session that is named as it is here is one that its agent has another name for.
fn native(
    args: &RunArgs,
    chosen: &engines::SelectedAgent,
    resume: Resume,
) -> Result<Resume, Failure> {
    let (Resume::Session(id) | Resume::Fork(id)) = &resume else {
        return Ok(resume);
    };
    let found = stored(args, id)?;
    let Some(session) = found.filter(|it| it.native.as_ref().is_none_or(|it| it.as_str() != id))
    else {
        return Ok(resume);
    };
    if session.engine != chosen.name {
        let engine = printable(&session.engine);
        return Err(Failure::usage(
            format!(
                "session `{}` is one of {engine}, not of {}",
                printable(id),
                chosen.name
            ),
            format!("add `--engine {engine}`"),
        ));
    }
    let Some(native) = session.native.map(|it| it.to_string()) else {
        return Err(Failure::usage(
            format!(
                "the agent has not named session `{}`, so it cannot be resumed",
                printable(id)
            ),
            "leave `--resume` and `--fork` out to begin a new one",
        ));
    };
    Ok(match resume {
        Resume::Fork(_) => Resume::Fork(native),
        _ => Resume::Session(native),
    })
}

/// Where the agent works: as said, else the nearest git root, else here.
fn cwd(said: Option<&Path>) -> Result<PathBuf, Failure> {
    let here = said.unwrap_or(Path::new("."));
    let failed = |err: io::Error| {
        let hint = Some("name a folder that exists with `--cwd`");
        Failure::io(&format!("cannot work in `{}`", here.display()), &err, hint)
    };
    let here = here.canonicalize().map_err(failed)?;
    if !here.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let root = here.ancestors().find(|it| it.join(".git").exists());
    Ok(match (said, root) {
        (None, Some(root)) => root.to_owned(),
        (Some(_), _) | (None, None) => here,
    })
}

fn agent(
    args: &RunArgs,
    config: &Config,
    chosen: &engines::SelectedAgent,
    request: &Request,
) -> Result<Setup, Failure> {
    let around = LaunchContext {
        limits: config.into(),
        guard: Guard::own(),
        locks: Some(locks()?),
        holder: "linkspan run".to_owned(),
        no_wait: args.no_wait,
    };
    chosen
        .setup(request, around, find_on_path, Machine::own())
        .map_err(refused)
}

/// A model behind an endpoint: it has no process, and what was said before is in the journal.
fn model(args: &RunArgs, endpoint: Box<Endpoint>, config: &Config) -> Result<RunPlan, Failure> {
    if args.fork.is_some() || args.r#continue {
        return Err(Failure::usage(
            "a model has no sessions of its own to fork or to continue",
            "name the session with `--resume`",
        ));
    }
    let prompt = PromptSource::read(&args.prompt)?;
    let native = args.resume.clone();
    let kept = SessionMeta {
        engine: format!("responses:{}", endpoint.name),
        cwd: Some(cwd(args.cwd.as_deref())?),
        title: hub::title(&prompt.text),
        native: native.clone(),
        is_latest: false,
        forked: None,
        cut: hub::truncation(config),
    };
    // The session is not known yet; the conversation gets its name when it starts.
    let mut told = Conversation::of_prompt("", History::default(), &prompt.text);
    told.model = args.model.clone();
    if let Some(response) = &native {
        told.follow(response);
    }
    Ok(RunPlan {
        setup: Setup::responses(endpoint, told, &prompt.text, config.into()),
        permissions: Permissions::default(),
        ask_limit: None,
        kept,
        prompt: None,
        config: config.clone(),
        said: Vec::new(),
        list: Vec::new(),
    })
}

fn replay(
    args: &RunArgs,
    engine: &str,
    recording: &Recording,
    config: &Config,
) -> Result<RunPlan, Failure> {
    if args.resume.is_some() || args.fork.is_some() || args.r#continue {
        return Err(Failure::usage(
            "a recording has no sessions to resume",
            "leave `--resume`, `--continue` and `--fork` out",
        ));
    }
    let name = recording.name();
    let (input, format) = recording.open().map_err(|err| match &err {
        RecordingError::Read(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Failure::Message {
                code: Code::Io,
                message: format!("there is no recording `{}`", printable(&name)),
                hint: Some(printable(&recording.offer())),
            }
        }
        RecordingError::Read(_) | RecordingError::Detect(_) => {
            InputStream::refused(&name, err.into())
        }
    })?;
    let prompt = match &*args.prompt {
        [] => None,
        words => Some(PromptSource::read(words)?.text),
    };
    let kept = SessionMeta {
        engine: engine.to_owned(),
        cwd: env::current_dir().ok(),
        title: hub::title(prompt.as_deref().unwrap_or(&name)),
        native: None,
        is_latest: false,
        forked: None,
        cut: hub::truncation(config),
    };
    let speed = args.speed;
    let work = Backend::Replay {
        input,
        speed,
        prompt,
    };
    Ok(RunPlan {
        setup: Setup::replay(format, work, config.into()),
        permissions: Permissions::default(),
        ask_limit: None,
        kept,
        prompt: None,
        config: config.clone(),
        said: Vec::new(),
        list: Vec::new(),
    })
}

fn locks() -> Result<Locks, Failure> {
    Locks::own().ok_or_else(|| Failure::usage("there is no home directory", "set `HOME`"))
}
