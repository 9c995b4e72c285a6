//! `linkspan engines`: which agents can be run here, and how to get the others.

use runner::config::Config;
use runner::engines::{self, BundledReplay, ENGINES, EngineKind, Installed, REPLAYS};
use runner::process::find_on_path;
use serde::Serialize;

use crate::cli::EnginesArgs;
use crate::exit::{self, Failure, printable};
use crate::settings;
use crate::table;

pub(crate) fn run(args: &EnginesArgs) -> Result<(), Failure> {
    let config = settings::load(&args.file)?.config;
    let survey = engines::detect_installed(&config, &find_on_path);
    let choice = DefaultEngine::new(&config, &survey);
    let rows = rows(&config, survey, &choice);
    let text = match args.json {
        true => exit::json_lines(&rows),
        false => page(&rows, &choice),
    };
    exit::print(text.as_bytes())
}

/// The default engine.
struct DefaultEngine {
    name: Option<String>,
    why: String,
}

impl DefaultEngine {
    fn new(config: &Config, survey: &[Installed]) -> Self {
        let mut settings = config.settings().iter();
        let origin = settings
            .find(|it| it.key == "default_engine")
            .map(|it| &it.origin);
        if let (Some(name), Some(origin)) = (config.default_engine(), origin) {
            let why = format!("as {} says", printable(&origin.to_string()));
            let name = Some(name.to_owned());
            return Self { name, why };
        }
        let order = engines::default_order().join(", ");
        let name = engines::first_of(survey).map(str::to_owned);
        let why = match &name {
            Some(_) => format!("the first one installed of {order}"),
            None => format!(
                "none of {order} is installed; `linkspan run --engine replay:{}` works anyway",
                REPLAYS[0].name
            ),
        };
        Self { name, why }
    }

    fn line(&self) -> String {
        match &self.name {
            Some(name) => format!("{}, {}", printable(name), self.why),
            None => self.why.clone(),
        }
    }
}

#[derive(Serialize)]
struct EngineRow {
    name: String,
    summary: String,
    /// Null where the name still lacks a value.
    installed: Option<bool>,
    version: Option<String>,
    path: Option<String>,
    install: Option<&'static str>,
    default: bool,
}

fn rows(config: &Config, survey: Vec<Installed>, choice: &DefaultEngine) -> Vec<EngineRow> {
    let mut rows = Vec::new();
    for it in survey {
        rows.push(EngineRow {
            installed: Some(it.path.is_some()),
            version: it.version,
            path: it.path.map(|it| it.to_string_lossy().into_owned()),
            install: it.engine.program.as_ref().map(|it| it.install),
            ..row(it.engine.name.to_owned(), it.engine.summary)
        });
    }
    for engine in ENGINES {
        let Some(value) = engine.argument else {
            continue;
        };
        rows.push(row(format!("{}:{value}", engine.name), engine.summary));
        match engine.kind {
            EngineKind::Agent(_) => rows.extend(config.acp_names().map(|it| agent(it, config))),
            EngineKind::Model => rows.extend(config.endpoint_names().map(|it| model(it, config))),
            EngineKind::Replay => rows.extend(REPLAYS.iter().map(recording)),
        }
    }
    for row in &mut rows {
        row.default = choice.name.as_ref() == Some(&row.name);
    }
    rows
}

/// An ACP agent that the config names.
fn agent(name: &str, config: &Config) -> EngineRow {
    let program = config.acp(name).and_then(|it| it.program);
    let path = program.and_then(|it| find_on_path(&it).ok());
    EngineRow {
        installed: Some(path.is_some()),
        path: path.map(|it| it.to_string_lossy().into_owned()),
        ..row(format!("acp:{name}"), "an agent of the config")
    }
}

/// A model that the config names.
fn model(name: &str, config: &Config) -> EngineRow {
    let endpoint = config.endpoint(name).and_then(Result::ok);
    let summary = match &endpoint {
        Some(it) => format!("{} at {}", it.provider, it.base_url),
        None => "an endpoint that cannot be used".to_owned(),
    };
    EngineRow {
        installed: Some(endpoint.is_some()),
        ..row(format!("responses:{name}"), &summary)
    }
}

fn recording(replay: &BundledReplay) -> EngineRow {
    EngineRow {
        installed: Some(true),
        ..row(format!("replay:{}", replay.name), replay.summary)
    }
}

fn row(name: String, summary: &str) -> EngineRow {
    EngineRow {
        name,
        summary: summary.to_owned(),
        installed: None,
        version: None,
        path: None,
        install: None,
        default: false,
    }
}

fn page(rows: &[EngineRow], choice: &DefaultEngine) -> String {
    let heading = [
        "engine",
        "installed",
        "version",
        "what it is",
        "where, or how to install",
    ];
    let cells = rows.iter().map(|row| {
        let installed = match row.installed {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let version = match (&row.version, &row.path) {
            (Some(version), _) => version.as_str(),
            (None, Some(_)) => "?",
            (None, None) => "",
        };
        let place = match (&row.path, row.install) {
            (Some(path), _) => path.as_str(),
            (None, install) => install.unwrap_or_default(),
        };
        [&row.name, installed, version, &row.summary, place].map(printable)
    });
    let table = table::aligned(heading, cells);
    format!("{table}\ndefault: {}\n", choice.line())
}
