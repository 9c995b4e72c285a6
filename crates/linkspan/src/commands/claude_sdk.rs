//! `linkspan claude-sdk`: any engine as the `claude` program of the Claude Agent SDK.

pub(crate) mod flags;

use std::env;
use std::io;
use std::sync::Arc;

use ::claude_sdk::ClaudeSdkConfig;
use hub::{ClientSessionConfig, SessionLog};
use journal::{Config, Journal, Memory};
use runner::config::Config as Settings;
use runner::engines;
use runner::locks::Locks;
use runner::process::{Guard, find_on_path};
use runner::{Resume, RunOptions};

use self::flags::ClaudeFlags;
use super::run::plan::refused;
use super::serve::StopSignals;
use crate::cli::{ClaudeSdkArgs, ConfigFile, DataDir};
use crate::exit::{self, Code, Failure, printable};
use crate::settings;
use crate::store::{self, OpenMode};

/// The SDK of Claude sets it when it wants to know whether the session is idle.
const READS_STATE: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";
/// First, because a program that uses the SDK sets variables more easily than flags.
const ENGINE: &str = "LINKSPAN_ENGINE";

pub(crate) fn run(args: &ClaudeSdkArgs) -> Result<(), Failure> {
    let flags = ClaudeFlags::read(&args.flags)?;
    let settings = settings::load(&ConfigFile { path: None })?.config;
    store::runtime()?.block_on(async {
        let journal = open_journal(&settings).await;
        serve(flags, settings, journal, None).await
    })
}

/// The shared journal; if it cannot be used, sessions are kept in memory.
async fn open_journal(settings: &Settings) -> Arc<dyn Journal> {
    let cut = hub::truncation(settings);
    let opened = match store::folder(&DataDir { dir: None }) {
        Ok(folder) => store::open(&folder, cut, OpenMode::ReadWrite).await,
        Err(failure) => Err(failure),
    };
    opened.unwrap_or_else(|failure| {
        let message = failure.message();
        exit::print_line(&format!("{message}; this session is not kept\n"));
        Arc::new(Memory::new(Config::default()))
    })
}

/// `recording` is played instead of an engine.
pub(super) async fn serve(
    flags: ClaudeFlags,
    settings: Settings,
    journal: Arc<dyn Journal>,
    recording: Option<(String, f64)>,
) -> Result<(), Failure> {
    for line in &flags.ignored {
        exit::print_line(&format!("linkspan: {line}\n"));
    }
    let mut stops = StopSignals::new()?;
    let is_recording = recording.is_some();
    let (engine, speed) = recording.map_or((None, None), |it| (Some(it.0), Some(it.1)));
    let named = engine
        .or_else(|| env::var(ENGINE).ok())
        .or(flags.engine.clone());
    let wanted = flags.resume.as_deref().filter(|_| !is_recording);
    let opened = OpenedSession::find(&flags, wanted, named, &settings, &journal).await?;
    let cwd = env::current_dir();
    let cwd = cwd.map_err(|err| Failure::io("cannot read the current directory", &err, None))?;
    let config = ClaudeSdkConfig {
        version: env!("CARGO_PKG_VERSION"),
        session: ClientSessionConfig {
            id: opened.id,
            engine: opened.engine,
            cwd,
            mcp_servers: flags.mcp_servers,
            resume: opened.resume,
            options: RunOptions {
                speed,
                ..flags.options
            },
            settings,
            guard: Guard::own(),
            locks: Locks::own(),
            holder: "linkspan claude-sdk",
        },
        client: flags.client,
        asks_host: flags.asks_host,
        reports_state: env::var_os(READS_STATE).is_some_and(|it| it == "1"),
    };
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let served = ::claude_sdk::serve(config, journal, opened.log, stdin, stdout, stops.next());
    served
        .await
        .map_err(|err| Failure::new(Code::Usage, printable(&err.advice())))
}

/// The session that the host talks with.
struct OpenedSession {
    id: String,
    engine: String,
    resume: Resume,
    /// Of one that is kept already.
    log: Option<SessionLog>,
}

impl OpenedSession {
    async fn find(
        flags: &ClaudeFlags,
        wanted: Option<&str>,
        engine: Option<String>,
        settings: &Settings,
        journal: &Arc<dyn Journal>,
    ) -> Result<Self, Failure> {
        let stored = match wanted {
            Some(id) => store::find(&**journal, id).await?,
            None => None,
        };
        if let (Some(engine), Some(stored)) = (&engine, &stored)
            && *engine != stored.engine
        {
            let (id, of) = (printable(stored.id.as_str()), printable(&stored.engine));
            return Err(Failure::usage(
                format!(
                    "session `{id}` is one of {of}, not of {}",
                    printable(engine)
                ),
                format!("set `LINKSPAN_ENGINE` to `{of}`"),
            ));
        }
        let of_session = stored.as_ref().map(|it| it.engine.clone());
        let engine = match engine
            .or(of_session)
            .or(settings.default_engine().map(str::to_owned))
        {
            Some(engine) => engine,
            None => {
                let first = engines::first_installed(settings, find_on_path);
                first.map_err(refused)?.name
            }
        };
        let begin = |native: String| match flags.is_fork {
            true => Resume::Fork(native),
            false => Resume::Session(native),
        };
        let Some(stored) = stored else {
            if let Some(id) = wanted
                && engines::find(&engine).is_some_and(|it| it.rules().is_none())
            {
                // An agent knows sessions that are not kept here; a model has no others.
                let message = format!("no session matches `{}`", printable(id));
                return Err(Failure::new(Code::Failed, message));
            }
            let resume = wanted.map_or(Resume::Fresh, |it| begin(it.to_owned()));
            let id = runner::new_id();
            return Ok(Self {
                id,
                engine,
                resume: match flags.is_continue && wanted.is_none() {
                    true => Resume::Latest,
                    false => resume,
                },
                log: None,
            });
        };
        let native = stored.native.as_ref().map(|it| begin(it.to_string()));
        let resume = native.unwrap_or(Resume::Fresh);
        if flags.is_fork {
            let id = runner::new_id();
            return Ok(Self {
                id,
                engine,
                resume,
                log: None,
            });
        }
        let log = SessionLog::open(Arc::clone(journal), &stored.id).await;
        let log = log.map_err(|err| match err {
            journal::Error::Held { .. } => {
                let id = printable(stored.id.as_str());
                let message = format!("session `{id}` is in use");
                Failure::new(Code::Busy, message)
            }
            err => store::failed(err),
        })?;
        Ok(Self {
            id: stored.id.to_string(),
            engine,
            resume,
            log: Some(log),
        })
    }
}
