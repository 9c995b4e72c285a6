//! From flags, config and prompt to an agent that can be started.

use std::path::{Path, PathBuf};
use std::{env, io};

use hub::SetupError;
use journal::Truncate;
use runner::config::Config;
use runner::engines::{self, LaunchContext, Selected};
use runner::locks::Locks;
use runner::process::{Guard, find_on_path};
use runner::{
    AskLimit, Interaction, Mode, Permissions, RecordingError, Request, Resume, RunOptions, Setup,
};

use super::prompt::PromptSource;
use crate::cli::RunArgs;
use crate::exit::{Code, Failure, chain, printable};
use crate::settings;
use crate::store::{self, OpenMode};
use crate::streams::InputStream;

/// How fast a recording is played on a terminal.
const RECORDED_SPEED: f64 = 1.0;

/// What is to be done.
pub(super) struct RunPlan {
    pub(super) setup: Setup,
    pub(super) permissions: Permissions,
    /// For how long an ask may wait.
    pub(super) ask_limit: Option<AskLimit>,
    pub(super) kept: SessionMeta,
    pub(super) request: PlannedRequest,
    /// What is printed when it starts, a line each.
    pub(super) notices: Vec<String>,
    /// The tools that run without a question.
    pub(super) list: Vec<String>,
}

/// What a plan is made from. The prompt and the config may have come from a pipe, which cannot be read again.
#[derive(Clone)]
pub(super) struct PlannedRequest {
    selected: Selected,
    request: Request,
    config: Config,
}

/// Under which name the journal keeps it.
#[derive(Clone)]
pub(super) struct SessionMeta {
    pub(super) engine: String,
    pub(super) cwd: Option<PathBuf>,
    pub(super) title: String,
    /// The agent's session that is resumed.
    pub(super) native: Option<String>,
    /// The newest session is resumed, which only the agent can name.
    pub(super) is_latest: bool,
    /// The agent's session that it begins with, when it is a fork.
    pub(super) forked: Option<String>,
    /// How long a text may be there.
    pub(super) cut: Option<Truncate>,
}

impl RunPlan {
    /// `is_attended`: a user at a terminal can be asked.
    pub(super) fn new(args: &RunArgs, is_attended: bool) -> Result<Self, Failure> {
        let mut config = settings::load(&args.file)?.config;
        settings::asks(&mut config, &args.options.asks)?;
        let by_session = engine_of_session(args)?;
        let named = args.engine.as_deref().or(by_session.as_deref());
        let name = named.or(config.default_engine());
        let selected = name.map(|it| engines::select(it, &config)).transpose();
        let selected = selected.map_err(refused)?;
        // Before stdin is read for the prompt.
        if let Some(selected) = &selected {
            check_options(args, selected)?;
        }
        let (selected, request) = match selected {
            Some(it @ Selected::Replay(_)) => (it, replay_request(args)?),
            selected => {
                let prompt = PromptSource::of_run(args)?;
                let selected = choose(args, &config, selected, &prompt)?;
                check_options(args, &selected)?;
                let request = match &selected {
                    Selected::Agent(agent) => {
                        agent_request(args, &config, agent, prompt, is_attended)?
                    }
                    Selected::Responses(_) => model_request(args, prompt)?,
                    Selected::Replay(_) => return Err(nothing_to_resume("the resume line")),
                };
                (selected, request)
            }
        };
        let planned = PlannedRequest {
            selected,
            request,
            config,
        };
        Self::of(args, planned)
    }

    /// The same with the session `native`, which was found out meanwhile.
    pub(super) fn in_session(
        args: &RunArgs,
        mut planned: PlannedRequest,
        native: &str,
    ) -> Result<Self, Failure> {
        planned.request.resume = Resume::Session(native.to_owned());
        Self::of(args, planned)
    }

    fn of(args: &RunArgs, planned: PlannedRequest) -> Result<Self, Failure> {
        let PlannedRequest {
            selected,
            request,
            config,
        } = &planned;
        let agent = match selected {
            Selected::Agent(agent) => Some(agent),
            Selected::Responses(_) | Selected::Replay(_) => None,
        };
        let around = LaunchContext {
            limits: config.limits(),
            guard: Guard::own(),
            // Models and recordings have no session of their own that two programs could write.
            locks: agent.map(|_| locks()).transpose()?,
            holder: "linkspan run".to_owned(),
            no_wait: args.no_wait,
        };
        let setup = hub::setup(selected, &runner::new_id(), request, around);
        let mut setup = setup.map_err(|err| not_set_up(selected, err))?;
        let permissions = request.permissions.clone();
        let listed = agent.and_then(|it| listed(it, &permissions));
        Ok(Self {
            ask_limit: agent.and_then(|it| request.options.ask_limit(config, &it.name)),
            kept: SessionMeta::of(&planned),
            notices: setup.notice.take().into_iter().chain(listed).collect(),
            list: agent.map(|it| it.list(&permissions)).unwrap_or_default(),
            permissions,
            setup,
            request: planned,
        })
    }
}

impl SessionMeta {
    fn of(planned: &PlannedRequest) -> Self {
        let PlannedRequest {
            selected,
            request,
            config,
        } = planned;
        let (engine, title) = match selected {
            Selected::Agent(agent) => (agent.name.clone(), request.prompt.clone()),
            Selected::Responses(it) => (format!("responses:{}", it.name), request.prompt.clone()),
            Selected::Replay(recording) => {
                let name = recording.name();
                let engine = format!("replay:{name}");
                match request.prompt.is_empty() {
                    true => (engine, name),
                    false => (engine, request.prompt.clone()),
                }
            }
        };
        let (native, forked) = match &request.resume {
            Resume::Session(native) => (Some(native.clone()), None),
            Resume::Fork(native) => (None, Some(native.clone())),
            Resume::Fresh | Resume::Latest => (None, None),
        };
        Self {
            engine,
            cwd: Some(request.cwd.clone()).filter(|it| !it.as_os_str().is_empty()),
            title: hub::title(&title),
            is_latest: request.resume == Resume::Latest,
            forked,
            native,
            cut: hub::truncation(config),
        }
    }
}

fn not_set_up(selected: &Selected, err: SetupError) -> Failure {
    match (err, selected) {
        (SetupError::Engine(err), _) => refused(err),
        (
            SetupError::Recording {
                name,
                source: RecordingError::Read(cause),
            },
            Selected::Replay(recording),
        ) if cause.kind() == io::ErrorKind::NotFound => {
            let message = format!("there is no recording `{}`", printable(&name));
            Failure::new(Code::Io, message).hint(Some(printable(&recording.offer())))
        }
        (SetupError::Recording { name, source }, _) => InputStream::refused(&name, source.into()),
    }
}

fn check_options(args: &RunArgs, selected: &Selected) -> Result<(), Failure> {
    let checked = selected.check_options(&options(args));
    checked.map_err(refused)
}

fn agent_request(
    args: &RunArgs,
    config: &Config,
    chosen: &engines::SelectedAgent,
    prompt: PromptSource,
    is_attended: bool,
) -> Result<Request, Failure> {
    let unset = match is_attended {
        true => Mode::Ask,
        false => Mode::Listed,
    };
    let options = options(args);
    let permissions = options.permissions(config, &chosen.name, unset);
    Ok(Request {
        talk: interaction(chosen, permissions.mode, is_attended),
        resume: native(args, chosen, resume(args, &prompt)?)?,
        prompt: prompt.text,
        options,
        permissions,
        mcp_servers: Vec::new(),
        cwd: cwd(args.cwd.as_deref())?,
    })
}

/// A model behind an endpoint: it has no process, and its history is in the journal.
fn model_request(args: &RunArgs, prompt: PromptSource) -> Result<Request, Failure> {
    if args.fork.is_some() || args.r#continue {
        return Err(Failure::usage(
            "a model has no sessions of its own to fork or to continue",
            "name the session with `--resume`",
        ));
    }
    let resume = resume(args, &prompt)?;
    let cwd = cwd(args.cwd.as_deref())?;
    Ok(plain_request(args, prompt.text, resume, cwd))
}

fn replay_request(args: &RunArgs) -> Result<Request, Failure> {
    if args.resume.is_some() || args.fork.is_some() || args.r#continue {
        return Err(nothing_to_resume("`--resume`, `--continue` and `--fork`"));
    }
    // A recording needs no prompt, so stdin is not read for one.
    let prompt = match args.prompt.is_empty() && args.caller.prompt.is_none() {
        true => String::new(),
        false => PromptSource::of_run(args)?.text,
    };
    let here = env::current_dir().unwrap_or_default();
    let mut request = plain_request(args, prompt, Resume::Fresh, here);
    // A program that starts `exec` need not read along.
    if args.caller.prompt.is_none() {
        request.options.speed.get_or_insert(RECORDED_SPEED);
    }
    Ok(request)
}

/// The options of the run, by its flags.
fn options(args: &RunArgs) -> RunOptions {
    RunOptions {
        speed: args.speed,
        ..args.options.run_options()
    }
}

fn nothing_to_resume(cause: &str) -> Failure {
    Failure::usage(
        "a recording has no sessions to resume",
        format!("leave {cause} out"),
    )
}

/// A request to something that runs no tools.
fn plain_request(args: &RunArgs, prompt: String, resume: Resume, cwd: PathBuf) -> Request {
    Request {
        prompt,
        resume,
        options: options(args),
        permissions: Permissions::default(),
        mcp_servers: Vec::new(),
        cwd,
        talk: Interaction::OneShot,
    }
}

/// Print the tools that `listed` allows, because they run without asking.
fn listed(chosen: &engines::SelectedAgent, permissions: &Permissions) -> Option<String> {
    match permissions.mode {
        Mode::Listed => (),
        Mode::Plan | Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Allow => return None,
    }
    Some(match chosen.listed(permissions) {
        Some(list) => format!(
            "runs without asking: {list}; everything else is denied (`--permissions listed`)"
        ),
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
    Failure::new(code, chain(&err)).hint(err.hint())
}

/// What was asked for by the prompt, else `selected` by a flag, a session or the config, else the first
/// agent that is installed.
fn choose(
    args: &RunArgs,
    config: &Config,
    selected: Option<Selected>,
    prompt: &PromptSource,
) -> Result<Selected, Failure> {
    let by_prompt = match &prompt.resume {
        Some(line) if line.engine.is_none() => engine_of(args, &line.id)?,
        Some(line) => line.engine.clone(),
        None => None,
    };
    if let (Some(flag), Some(named)) = (args.engine.as_deref(), by_prompt.as_deref())
        && flag != named
    {
        return Err(Failure::usage(
            format!("the prompt resumes a session of {named}, and `--engine` says {flag}"),
            "leave one of them out",
        ));
    }
    let mut chosen = match (by_prompt, selected) {
        (Some(name), _) => engines::select(&name, config).map_err(refused)?,
        (None, Some(chosen)) => chosen,
        (None, None) => {
            let first = engines::first_installed(config, find_on_path).map_err(refused)?;
            Selected::Agent(Box::new(first))
        }
    };
    if let Selected::Agent(agent) = &mut chosen {
        if let Some(program) = &args.program {
            agent.config.program = Some(program.to_string_lossy().into_owned());
        }
        let passed = args.caller.agent_args.iter().cloned();
        agent.config.args.extend(passed);
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
    let named = prompt.resume.as_ref().map(|it| &it.id);
    let flag = args.resume.as_ref().or(args.fork.as_ref());
    if let (true, Some(named)) = (args.r#continue, named) {
        return Err(Failure::usage(
            format!("the prompt resumes session `{named}`, and `--continue` with the newest"),
            "leave one of them out",
        ));
    }
    if let (Some(flag), Some(named)) = (flag, named)
        && flag != named
    {
        return Err(Failure::usage(
            format!("the prompt resumes session `{named}`, and the flag says `{flag}`"),
            "leave one of them out",
        ));
    }
    Ok(match (&args.fork, args.resume.as_ref().or(named)) {
        (Some(id), _) => Resume::Fork(id.clone()),
        (None, Some(id)) => Resume::Session(id.clone()),
        (None, None) if args.r#continue => Resume::Latest,
        (None, None) => Resume::Fresh,
    })
}

/// What the journal has under an id, if there is a journal.
pub(crate) fn stored(args: &RunArgs, id: &str) -> Result<Option<journal::Session>, Failure> {
    // Without a journal there are only the agent's names.
    let folder = store::folder(&args.data).ok();
    let Some(folder) = folder.filter(|it| store::exists(it)) else {
        return Ok(None);
    };
    let found = store::runtime()?.block_on(async {
        let journal = store::open(&folder, None, OpenMode::ReadWrite).await?;
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
        (None, Some(id)) => engine_of(args, id),
        _ => Ok(None),
    }
}

fn engine_of(args: &RunArgs, id: &str) -> Result<Option<String>, Failure> {
    Ok(stored(args, id)?.map(|it| it.engine.to_string()))
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
    let id = printable(id);
    if session.engine != chosen.name {
        let (engine, name) = (printable(&session.engine), &chosen.name);
        return Err(Failure::usage(
            format!("session `{id}` is one of {engine}, not of {name}"),
            format!("add `--engine {engine}`"),
        ));
    }
    let Some(native) = session.native.map(|it| it.to_string()) else {
        return Err(Failure::usage(
            format!("the agent has not named session `{id}`, so it cannot be resumed"),
            "leave `--resume` and `--fork` out to begin a new one",
        ));
    };
    Ok(match resume {
        Resume::Fork(_) => Resume::Fork(native),
        _ => Resume::Session(native),
    })
}

/// Where the agent works: as the flag says, else the nearest git root, else here.
fn cwd(flag: Option<&Path>) -> Result<PathBuf, Failure> {
    let here = flag.unwrap_or(Path::new("."));
    let failed = |err: io::Error| {
        let hint = Some("name a folder that exists with `--cwd`");
        Failure::io(&format!("cannot work in `{}`", here.display()), &err, hint)
    };
    let here = here.canonicalize().map_err(failed)?;
    if !here.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    // Not `is_dir`: in a worktree or a submodule `.git` is a file.
    let root = here.ancestors().find(|it| it.join(".git").exists());
    Ok(match (flag, root) {
        (None, Some(root)) => root.to_owned(),
        (Some(_), _) | (None, None) => here,
    })
}

fn locks() -> Result<Locks, Failure> {
    Locks::own().ok_or_else(|| Failure::usage("there is no home directory", "set `HOME`"))
}
