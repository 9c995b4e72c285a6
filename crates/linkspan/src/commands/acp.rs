//! `linkspan acp`: any engine as an agent of the Agent Client Protocol, on stdin and stdout.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::Command;

use ::acp::AcpConfig;
use formats::{WriterConfig, registry};
use runner::config::Config as Settings;
use runner::engines::{self, Selected};
use runner::locks::Locks;
use runner::process::{Guard, find_on_path};
use runner::{Interaction, Mode, Request, Resume, RunOptions};

use super::run::plan::refused;
use super::serve::StopSignals;
use crate::cli::AcpArgs;
use crate::exit::{self, Code, Failure};
use crate::{settings, store, suggestions};

pub(crate) fn run(args: &AcpArgs) -> Result<(), Failure> {
    let mut settings = settings::load(&args.file)?.config;
    settings::asks(&mut settings, &args.options.asks)?;
    let profile = WriterConfig {
        profile: args.profile.clone(),
        ..WriterConfig::default()
    };
    // A wrong profile fails here, and not in the first session of a client.
    registry::writer("acp", &profile).map_err(suggestions::target)?;
    let engine = match args.engine.as_deref().or(settings.default_engine()) {
        Some(name) => name.to_owned(),
        None => {
            let first = engines::first_installed(&settings, find_on_path);
            first.map_err(refused)?.name
        }
    };
    let selected = engines::select(&engine, &settings).map_err(refused)?;
    let options = args.options.run_options();
    check(&selected, &engine, &options, &settings).map_err(refused)?;
    let family = selected.engine().name;
    if args.login {
        return match selected {
            Selected::Agent(agent) => login(&agent),
            Selected::Responses(_) | Selected::Replay(_) => Err(no_login(family)),
        };
    }
    // Started by hand it would wait for JSON without a word.
    if io::stdin().is_terminal() {
        exit::print_line(
            "linkspan: an editor or another program has to start this; see docs/acp.md\n",
        );
    }
    store::runtime()?.block_on(async {
        let mut stops = StopSignals::new()?;
        let journal = store::open_or_memory(&args.data, hub::truncation(&settings));
        let config = AcpConfig {
            version: env!("CARGO_PKG_VERSION"),
            engine,
            options,
            profile: args.profile.clone(),
            settings,
            guard: Guard::own(),
            locks: Locks::own(),
        };
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let summary = ::acp::serve(config, journal, stdin, stdout, stops.next()).await;
        if args.stats {
            exit::print_line(&format!("linkspan: {summary}\n"));
        }
        Ok(())
    })
}

/// Fails on options that no session of this engine could be started with.
fn check(
    selected: &Selected,
    engine: &str,
    options: &RunOptions,
    settings: &Settings,
) -> Result<(), engines::Error> {
    selected.check_options(options)?;
    let Selected::Agent(agent) = selected else {
        return Ok(());
    };
    let request = Request {
        prompt: String::new(),
        resume: Resume::Fresh,
        options: options.clone(),
        permissions: options.permissions(settings, engine, Mode::Ask),
        mcp_servers: Vec::new(),
        cwd: PathBuf::new(),
        talk: Interaction::Dialogue,
    };
    agent.invocation(&request).map(drop)
}

/// Starts the agent as its users do to log in; it has the terminal.
fn login(agent: &engines::SelectedAgent) -> Result<(), Failure> {
    let name = agent.engine.name;
    let (Some(login), Some(program)) = (&agent.engine.login, agent.program()) else {
        return Err(no_login(name));
    };
    let mut command = Command::new(program);
    // With the config's environment, so that the login ends up where the runs look for it.
    command.args(login.terminal_args).envs(&agent.config.env);
    let failed = |err| Failure::io(&format!("cannot start `{program}`"), &err, None);
    match command.status().map_err(failed)?.success() {
        true => Ok(()),
        // The agent has printed the reason.
        false => Err(Failure::Silent(Code::Failed)),
    }
}

fn no_login(engine: &str) -> Failure {
    let message = format!("engine `{engine}` has no login of its own");
    Failure::usage(message, "see `linkspan engines`")
}
