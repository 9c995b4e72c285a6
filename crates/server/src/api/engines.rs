//! The agents that can be run here, and the recordings that work without any.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use runner::config::Config;
use runner::engines::{self, Can, DEFAULT_ORDER, Installed, REPLAYS};
use runner::process::find_program;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::error::{Result, reply};
use crate::state::App;

/// For how long an answer is good: asking every program for its version takes seconds.
const FRESH: Duration = Duration::from_secs(60);

/// Knows what is installed.
#[derive(Debug)]
pub(crate) struct Engines {
    settings: Config,
    known: Mutex<Option<(Instant, Arc<Value>)>>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    summary: String,
    installed: bool,
    version: Option<String>,
    install: Option<&'static str>,
    default: bool,
    can: Ability,
}

#[derive(Debug, Serialize)]
struct Ability {
    resume: bool,
    fork: bool,
    r#continue: bool,
    ask: bool,
    interrupt: bool,
}

impl From<Can> for Ability {
    fn from(can: Can) -> Self {
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
            known: Mutex::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Config {
        &self.settings
    }

    pub(crate) async fn list(&self) -> Arc<Value> {
        // Whoever comes while the programs are asked waits for the same answer.
        let mut known = self.known.lock().await;
        if let Some((at, list)) = &*known
            && at.elapsed() < FRESH
        {
            return Arc::clone(list);
        }
        let settings = self.settings.clone();
        let list = tokio::task::spawn_blocking(move || survey(&settings)).await;
        let list = Arc::new(list.unwrap_or_else(|_| json!({ "engines": [], "replays": [] })));
        *known = Some((Instant::now(), Arc::clone(&list)));
        list
    }
}

fn survey(settings: &Config) -> Value {
    let find = |name: &str| find_program(name.as_ref(), env::var_os("PATH").as_deref());
    let installed = engines::survey(settings, find);
    let first = DEFAULT_ORDER.iter().copied().find(|name| {
        let mut rows = installed.iter();
        rows.any(|it| it.engine.name == *name && it.path.is_some())
    });
    let default = settings.default_engine().or(first);
    let row = |it: Installed| Row {
        default: default == Some(it.engine.name),
        name: it.engine.name.to_owned(),
        summary: it.engine.summary.to_owned(),
        installed: it.path.is_some(),
        version: it.version,
        install: it.engine.program.as_ref().map(|it| it.install),
        can: it.engine.can.into(),
    };
    let mut rows: Vec<Row> = installed.into_iter().map(row).collect();
    let acp = engines::find("acp").map(|it| it.can);
    for name in settings.acp_names() {
        let program = settings.acp(name).and_then(|it| it.program);
        let name = format!("acp:{name}");
        rows.push(Row {
            default: default == Some(&*name),
            name,
            summary: "an agent of the config".to_owned(),
            installed: program.is_some_and(|it| find(&it).is_ok()),
            version: None,
            install: None,
            can: acp.unwrap_or(NOTHING).into(),
        });
    }
    let responses = engines::find("responses").map(|it| it.can);
    for name in settings.endpoint_names() {
        let name = format!("responses:{name}");
        rows.push(Row {
            default: default == Some(&*name),
            summary: "a model of the config".to_owned(),
            installed: engines::select(&name, settings).is_ok(),
            name,
            version: None,
            install: None,
            can: responses.unwrap_or(NOTHING).into(),
        });
    }
    let replays = REPLAYS.iter();
    let replays =
        replays.map(|it| json!({ "name": format!("replay:{}", it.name), "summary": it.summary }));
    json!({ "engines": rows, "replays": replays.collect::<Vec<_>>() })
}

const NOTHING: Can = Can {
    resume: false,
    fork: false,
    latest: false,
    ask: false,
    interrupt: false,
};

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response> {
    Ok(reply(StatusCode::OK, &*app.engines.list().await))
}
