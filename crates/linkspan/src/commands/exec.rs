//! `linkspan exec`: the command line of `codex exec`, as `@openai/codex-sdk` uses it, in front of a run.
//!
//! One process per turn: the prompt on stdin, ThreadEvents on stdout. Flags that only Codex has are passed on
//! to Codex. With any other engine a flag is refused if ignoring it would change the result, and otherwise
//! reported and ignored.

pub(super) mod settings;

use std::path::PathBuf;

use runner::Mode;
use runner::engines::{self, ENGINES, Engine};

use self::settings::CodexSettings;
use super::run;
use super::run::plan;
use crate::cli::{
    AskArgs, Color, ConfigFile, DataDir, ExecArgs, ExecCommand, OptionArgs, RunArgs, RunCaller,
    Sandbox,
};
use crate::exit::{self, Code, Failure};
use crate::settings as config;

pub(crate) fn run(args: &ExecArgs) -> Result<(), Failure> {
    let settings = CodexSettings::read(&args.config)?;
    let mut run_args = run_args(args, &settings);
    let stored = match &run_args.resume {
        Some(id) => plan::stored(&run_args, id)?,
        None => None,
    };
    let name = match (&settings.engine, &stored) {
        (Some(name), _) => name.clone(),
        (None, Some(stored)) => stored.engine.clone(),
        (None, None) => default_engine(&run_args)?,
    };
    let engine = engines::find(&name);
    let is_recording = engine.is_some_and(Engine::is_recording);
    if let (Some(id), None) = (&run_args.resume, &stored)
        && engine.is_some_and(|it| it.rules().is_none())
        && !is_recording
    {
        // An agent may know sessions that are not in the journal; a model cannot.
        let message = format!("no session matches `{}`", exit::printable(id));
        return Err(Failure::new(Code::Failed, message));
    }
    let handed = HandedOn::new(args, &settings, engine, &name)?;
    run_args.engine = Some(name);
    for line in &handed.ignored {
        exit::print_line(&format!("linkspan: {line}\n"));
    }
    run_args.options.effort = handed.effort;
    run_args.caller.agent_args = handed.args;
    if is_recording {
        // It plays the same turn every time.
        run_args.resume = None;
    }
    run_args.caller.prompt = Some(run::prompt::stdin()?);
    play(&run_args)
}

/// A program that starts Codex gets Codex, unless the user has configured another default engine.
fn default_engine(args: &RunArgs) -> Result<String, Failure> {
    let config = config::load(&args.file)?.config;
    let own = ENGINES.iter().find(|it| it.takes_exec_flags);
    let default = config.default_engine().or(own.map(|it| it.name));
    Ok(default.unwrap_or_default().to_owned())
}

/// The run, with the exit codes of Codex: a turn that was not completed is 1.
pub(super) fn play(args: &RunArgs) -> Result<(), Failure> {
    match run::run(args) {
        Err(Failure::Silent(_)) => Err(Failure::Silent(Code::Failed)),
        ran => ran,
    }
}

/// The same as arguments of `linkspan run`.
pub(super) fn run_args(args: &ExecArgs, settings: &CodexSettings) -> RunArgs {
    let resume = args.command.as_ref().map(|it| match it {
        ExecCommand::Resume { id } => id.clone(),
    });
    let sandbox = args.sandbox.map(|it| match it {
        Sandbox::ReadOnly => Mode::Plan,
        // Codex lets commands write there as well, which the engine's own list says for the others.
        Sandbox::WorkspaceWrite => Mode::Listed,
        Sandbox::DangerFullAccess => Mode::Allow,
    });
    RunArgs {
        prompt: Vec::new(),
        engine: settings.engine.clone(),
        to: if args.json { "thread" } else { "text" }.to_owned(),
        profile: None,
        resume,
        r#continue: false,
        fork: None,
        attach: None,
        // Not the git root: Codex works in the folder that it is started in.
        cwd: Some(args.cd.clone().unwrap_or_else(|| PathBuf::from("."))),
        options: OptionArgs {
            model: args.model.clone(),
            effort: None,
            permissions: settings.permissions.or(sandbox),
            allow: settings.allowed_tools.clone(),
            deny: Vec::new(),
            output_style: None,
            verbosity: None,
            asks: AskArgs {
                ask_timeout: None,
                ask_default: None,
            },
        },
        no_wait: false,
        program: None,
        file: ConfigFile { path: None },
        data: DataDir { dir: None },
        speed: None,
        color: Color::Never,
        caller: RunCaller::default(),
    }
}

/// How the flags that linkspan has no option for are handled.
#[derive(Debug, Default, PartialEq, Eq)]
struct HandedOn {
    /// For the command line of an agent that has these flags.
    args: Vec<String>,
    effort: Option<String>,
    /// Messages about accepted flags that have no effect, one line each.
    ignored: Vec<String>,
}

impl HandedOn {
    /// `name` is the engine's name, for messages.
    fn new(
        args: &ExecArgs,
        settings: &CodexSettings,
        engine: Option<&Engine>,
        name: &str,
    ) -> Result<Self, Failure> {
        if let Some(policy) = &settings.approval_policy
            && policy != "never"
        {
            return Err(Failure::usage(
                format!("`approval_policy` cannot be `{}`", exit::printable(policy)),
                "nobody could answer; leave it out, or use `never`",
            ));
        }
        let mut it = Self::default();
        let is_own = engine.is_some_and(|it| it.takes_exec_flags);
        let path = |it: &PathBuf| it.to_string_lossy().into_owned();
        let mut kept_by_codex: Vec<(&str, String)> = Vec::new();
        kept_by_codex.extend(args.add_dir.iter().map(|it| ("--add-dir", path(it))));
        kept_by_codex.extend(
            args.output_schema
                .iter()
                .map(|it| ("--output-schema", path(it))),
        );
        let program = args.cyber_access_program.iter();
        kept_by_codex.extend(program.map(|it| ("--cyber-access-program", it.clone())));
        kept_by_codex.extend(args.image.iter().map(|it| ("--image", path(it))));
        for (flag, value) in kept_by_codex {
            if !is_own {
                return Err(not_kept(flag, name));
            }
            it.args.push(format!("{flag}={value}"));
        }
        if let Some(source) = &args.thread_source {
            match is_own {
                true => it.args.push(format!("--thread-source={source}")),
                false => it
                    .ignored
                    .push(format!("`--thread-source` has no effect with {name}")),
            }
        }
        if let Some(effort) = &settings.effort {
            let is_known = engine.is_some_and(|it| it.efforts.contains(&&**effort));
            match is_known || is_own {
                true => it.effort = Some(effort.clone()),
                false => it.ignored.push(format!(
                    "`model_reasoning_effort` `{effort}` has no effect with {name}"
                )),
            }
        }
        for setting in &settings.others {
            match setting.key() {
                _ if is_own => it.args.push(format!("--config={}", setting.text)),
                key if settings::MAY_BE_IGNORED.contains(&key) => {
                    it.ignored
                        .push(format!("`{key}` has no effect with {name}"));
                }
                key => return Err(not_kept(&exit::printable(key), name)),
            }
        }
        Ok(it)
    }
}

fn not_kept(what: &str, engine: &str) -> Failure {
    let engine = exit::printable(engine);
    Failure::usage(
        format!("`{what}` is not supported by {engine}"),
        "leave it out, or choose the engine `codex` with `--config linkspan.engine=codex`",
    )
}

#[cfg(test)]
mod tests;
