//! The agents that can be run here, and the recordings that work without any.

use std::env;
use std::path::PathBuf;
use std::result::Result as StdResult;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use runner::config::Config;
use runner::engines::{self, Capabilities, Installed, REPLAYS};
use runner::process::{NotFound, find_program};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::error::{Result, reply};
use crate::state::App;

/// How long a survey is cached: asking every program for its version takes seconds.
const FRESH: Duration = Duration::from_secs(60);
/// How long a client waits for versions; a later one is in the next answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Knows what is installed.
#[derive(Debug)]
pub(crate) struct Engines {
    settings: Config,
    known: watch::Sender<Option<CachedEngines>>,
    /// The programs are being asked.
    survey: Mutex<Option<JoinHandle<()>>>,
}

/// An answer, and when it was found.
#[derive(Clone, Debug)]
struct CachedEngines {
    at: Instant,
    list: Arc<EngineList>,
}

#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Engines"))]
pub(crate) struct EngineList {
    engines: Vec<EngineRow>,
    replays: Vec<ReplayRow>,
}

/// A recording that is part of the program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Replay"))]
struct ReplayRow {
    name: String,
    summary: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Engine"))]
struct EngineRow {
    name: String,
    summary: String,
    installed: bool,
    version: Option<String>,
    /// How to install it.
    install: Option<&'static str>,
    default: bool,
    can: Ability,
}

/// What the engine is able to do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Ability {
    resume: bool,
    fork: bool,
    r#continue: bool,
    ask: bool,
    interrupt: bool,
}

impl From<Capabilities> for Ability {
    fn from(can: Capabilities) -> Self {
        Self {
            resume: can.resume,
            fork: can.fork,
            r#continue: can.latest,
            ask: can.ask,
            interrupt: can.interrupt,
        }
    }
}

impl Engines {
    pub(crate) fn new(settings: Config) -> Self {
        Self {
            settings,
            known: watch::Sender::new(None),
            survey: Mutex::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Config {
        &self.settings
    }

    pub(crate) async fn list(&self) -> Arc<EngineList> {
        let mut known = self.known.subscribe();
        let before = known.borrow_and_update().clone();
        if let Some(CachedEngines { at, list }) = &before
            && at.elapsed() < FRESH
        {
            return Arc::clone(list);
        }
        // Concurrent requests wait for the same survey.
        self.ask();
        let answered = timeout(PATIENCE, known.changed()).await;
        let now = known.borrow().clone();
        match (answered, now.or(before)) {
            // An earlier survey is better than none while the programs are slow.
            (_, Some(known)) => known.list,
            // A program that does not say its version is there all the same.
            (_, None) => {
                let settings = self.settings.clone();
                let found = spawn_blocking(move || listed(&settings, engines::find_installed));
                Arc::new(found.await.unwrap_or_default())
            }
        }
    }

    /// Has all programs asked, unless they are being asked.
    fn ask(&self) {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        if survey.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        let (settings, known) = (self.settings.clone(), self.known.clone());
        *survey = Some(spawn_blocking(move || {
            let list = Arc::new(listed(&settings, engines::detect_installed));
            let at = Instant::now();
            // `send` would drop the answer when the clients that asked have left.
            known.send_replace(Some(CachedEngines { at, list }));
        }));
    }
}

/// How installed programs are found.
type Find<'a> = &'a dyn Fn(&str) -> StdResult<PathBuf, NotFound>;

fn listed(settings: &Config, look: fn(&Config, Find<'_>) -> Vec<Installed>) -> EngineList {
    let find = |name: &str| find_program(name.as_ref(), env::var_os("PATH").as_deref());
    let installed = look(settings, &find);
    let default = settings.default_engine().or(engines::first_of(&installed));
    let row = |it: Installed| EngineRow {
        default: default == Some(it.engine.name),
        name: it.engine.name.to_owned(),
        summary: it.engine.summary.to_owned(),
        installed: it.path.is_some(),
        version: it.version,
        install: it.engine.program.as_ref().map(|it| it.install),
        can: it.engine.capabilities.into(),
    };
    let mut rows: Vec<EngineRow> = installed.into_iter().map(row).collect();
    let configured = |engine: &str, name: &str, summary: &str, installed: bool| {
        let can = engines::find(engine).map(|it| it.capabilities);
        let name = format!("{engine}:{name}");
        EngineRow {
            default: default == Some(&*name),
            name,
            summary: summary.to_owned(),
            installed,
            version: None,
            install: None,
            can: can.unwrap_or_default().into(),
        }
    };
    for name in settings.acp_names() {
        let program = settings.acp(name).and_then(|it| it.program);
        let is_installed = program.is_some_and(|it| find(&it).is_ok());
        let summary = "an agent of the config";
        rows.push(configured(engines::ACP, name, summary, is_installed));
    }
    for name in settings.endpoint_names() {
        let is_usable = settings.endpoint(name).is_some_and(|it| it.is_ok());
        let summary = "a model of the config";
        rows.push(configured(engines::RESPONSES, name, summary, is_usable));
    }
    let replays = REPLAYS.iter().map(|it| ReplayRow {
        name: format!("replay:{}", it.name),
        summary: it.summary,
    });
    EngineList {
        engines: rows,
        replays: replays.collect(),
    }
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response> {
    Ok(reply(StatusCode::OK, &*app.engines.list().await))
}
