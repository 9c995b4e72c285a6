//! A recording that speaks the protocol of an agent, for the tests of programs that start one.
//!
//! The protocols are those of `claude-sdk`, `exec` and `acp`, with the engine `replay:` behind them. Nothing is
//! stored.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ::acp::AcpConfig;
use clap::Parser as _;
use formats::WriterConfig;
use formats::registry::CANONICAL;
use journal::{Config, Journal, Memory};
use runner::RunOptions;
use runner::engines::{REPLAY, REPLAYS};
use runner::process::Guard;
use tempfile::TempDir;

use super::write;
use crate::cli::{Cli, Command, ConfigFile, ExecArgs, FakeAgent, ReplayArgs, RunCaller};
use crate::commands::claude_sdk::flags::ClaudeFlags;
use crate::commands::exec::settings::CodexSettings;
use crate::commands::serve::StopSignals;
use crate::commands::{claude_sdk, exec, run};
use crate::exit::{Code, Failure};
use crate::{settings, store};

pub(super) fn run(args: &ReplayArgs, agent: FakeAgent) -> Result<(), Failure> {
    let played = Played::find(args)?;
    let engine = format!("{REPLAY}:{}", played.name);
    match agent {
        FakeAgent::Claude => {
            let flags = ClaudeFlags::read(&args.agent_args)?;
            match flags.is_dialogue {
                true => duplex(flags, engine, args.speed),
                false => one_shot(args, &flags, engine),
            }
        }
        FakeAgent::Codex => codex(args, engine),
        FakeAgent::Acp => acp(engine, args.speed),
    }
}

/// `claude -p --output-format stream-json`: the prompt is on the command line or on stdin, and not read.
fn one_shot(args: &ReplayArgs, flags: &ClaudeFlags, engine: String) -> Result<(), Failure> {
    let exec = ExecArgs::default();
    let mut run_args = exec::run_args(&exec, &CodexSettings::default());
    let is_partial = flags.client.wants_partials;
    run_args.to = "claude".to_owned();
    run_args.profile = is_partial.then(|| "partial".to_owned());
    played(&mut run_args, args, engine);
    exec::play(&run_args)
}

/// `codex exec --json`: the prompt is read, because the host blocks until it has been.
fn codex(args: &ReplayArgs, engine: String) -> Result<(), Failure> {
    let words = ["linkspan", "exec"].map(str::to_owned).into_iter();
    let own = args.agent_args.iter().cloned();
    // The real program is called with the command `exec`, too.
    let own = own.skip_while(|it| it == "exec");
    let parsed = match Cli::try_parse_from(words.chain(own)) {
        Ok(Cli {
            command: Command::Exec(parsed),
        }) => parsed,
        Ok(_) => Box::default(),
        Err(err) => return crate::exit::parse_error(&err, Some("exec")),
    };
    let mut run_args = exec::run_args(&parsed, &CodexSettings::read(&parsed.config)?);
    run_args.to = "thread".to_owned();
    run_args.resume = None;
    run_args.options.model = None;
    run_args.options.permissions = None;
    run_args.options.allow = Vec::new();
    played(&mut run_args, args, engine);
    run::prompt::stdin()?;
    exec::play(&run_args)
}

fn played(run_args: &mut crate::cli::RunArgs, args: &ReplayArgs, engine: String) {
    run_args.engine = Some(engine);
    run_args.speed = Some(args.speed);
    run_args.caller = RunCaller {
        is_unkept: true,
        ..RunCaller::default()
    };
}

fn duplex(flags: ClaudeFlags, engine: String, speed: f64) -> Result<(), Failure> {
    let settings = settings::load(&ConfigFile { path: None })?.config;
    let flags = ClaudeFlags {
        // A recording plays the same, whatever options are chosen.
        options: RunOptions::default(),
        mcp_servers: Vec::new(),
        ..flags
    };
    let recording = Some((engine, speed));
    let served = claude_sdk::serve(flags, settings, memory(), recording);
    store::runtime()?.block_on(served)
}

fn acp(engine: String, speed: f64) -> Result<(), Failure> {
    let settings = settings::load(&ConfigFile { path: None })?.config;
    store::runtime()?.block_on(async {
        let mut stops = StopSignals::new()?;
        let config = AcpConfig {
            version: env!("CARGO_PKG_VERSION"),
            engine,
            options: RunOptions {
                speed: Some(speed),
                ..RunOptions::default()
            },
            profile: None,
            settings,
            guard: Guard::own(),
            locks: None,
        };
        let journal = async { memory() };
        let (stdin, stdout) = (io::stdin(), io::stdout());
        ::acp::serve(config, journal, stdin, stdout, stops.next()).await;
        Ok(())
    })
}

fn memory() -> Arc<dyn Journal> {
    Arc::new(Memory::new(Config::default()))
}

/// What is played: a bundled recording, a file, or a session in a file of its own.
struct Played {
    name: String,
    /// Removed when it was played.
    _folder: Option<TempDir>,
}

impl Played {
    fn find(args: &ReplayArgs) -> Result<Self, Failure> {
        let is_bundled = REPLAYS.iter().any(|it| it.name == args.id);
        if is_bundled || Path::new(&args.id).is_file() {
            let name = args.id.clone();
            let _folder = None;
            return Ok(Self { name, _folder });
        }
        let failed = |err: io::Error| Failure::io("cannot write a temporary file", &err, None);
        let folder = tempfile::tempdir().map_err(failed)?;
        let path = folder.path().join("session.events.jsonl");
        let mut file = File::create(&path).map_err(failed)?;
        let data = store::folder(&args.data)?;
        store::runtime()?.block_on(async {
            let (journal, session) = store::open_session(&data, &args.id).await?;
            let config = WriterConfig::default();
            write(journal, &session, CANONICAL, &config, &mut file).await
        })?;
        let name = path.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::new(
                Code::Io,
                "the folder for temporary files has a name that is no text",
            )
        })?;
        Ok(Self {
            name,
            _folder: Some(folder),
        })
    }
}
