//! Why an engine cannot be started as asked.

use super::{ENGINES, EngineOption, REPLAYS, family};
use crate::nearest;
use crate::process::NotFound;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("there is no engine `{0}`")]
    UnknownEngine(String),
    #[error("engine `{0}` needs a value")]
    MissingValue(&'static str),
    #[error("engine `{0}` takes no value")]
    NeedlessValue(&'static str),
    #[error("cannot split the command of `acp:{0}` into words")]
    BadCommand(String),
    #[error("the config has no endpoint `{0}`")]
    NoEndpoint(String),
    #[error("endpoint `{name}` cannot be used: {message}")]
    BadEndpoint {
        name: String,
        message: String,
        hint: Option<&'static str>,
    },
    #[error("no agent is installed")]
    NoneInstalled,
    #[error("engine `{engine}` cannot be started")]
    NotFound {
        engine: &'static str,
        #[source]
        source: NotFound,
    },
    #[error("{what} {why}: `{shown}`")]
    BadValue {
        what: &'static str,
        why: &'static str,
        shown: String,
    },
    #[error("engine `{engine}` cannot choose the {}", option.text())]
    NoOption {
        engine: &'static str,
        option: EngineOption,
    },
    #[error("engine `{engine}` cannot {what}")]
    Unable {
        engine: &'static str,
        what: &'static str,
        hint: &'static str,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownEngine(name) => Some(unknown(name)),
            Self::MissingValue(name) => Some(format!("write `{}`", value_of(name))),
            Self::NeedlessValue(name) => Some(format!("write `{name}`")),
            Self::BadCommand(_) => Some("close every quote".to_owned()),
            Self::NoEndpoint(name) => Some(format!(
                "add `[engines.responses.{name}]` with its `base_url` to the config"
            )),
            Self::BadEndpoint { hint, .. } => hint.map(str::to_owned),
            Self::NoneInstalled => Some(none_installed()),
            Self::NotFound { engine, .. } => Some(not_found(engine)),
            Self::BadValue { .. } => None,
            Self::NoOption { option, .. } => Some(no_option(*option)),
            Self::Unable { hint, .. } => Some((*hint).to_owned()),
        }
    }
}

/// All engines, and the one that was probably meant.
fn unknown(name: &str) -> String {
    let names: Vec<String> = ENGINES.iter().map(|it| value_of(it.name)).collect();
    let all = format!("engines: {}", names.join(", "));
    match nearest(family(name), ENGINES.iter().map(|it| it.name)) {
        Some(it) => format!("did you mean `{}`? {all}", value_of(it)),
        None => all,
    }
}

fn value_of(name: &str) -> String {
    let engine = ENGINES.iter().find(|it| it.name == name);
    match engine.and_then(|it| it.argument) {
        Some(value) => format!("{name}:{value}"),
        None => name.to_owned(),
    }
}

fn no_option(option: EngineOption) -> String {
    let engines: Vec<String> = option.engines().map(|it| value_of(it.name)).collect();
    let engines = engines.join(", ");
    format!("leave it out, or use an engine that has it: {engines}")
}

fn none_installed() -> String {
    let programs = ENGINES.iter().filter_map(|it| it.program.as_ref());
    let installs: Vec<String> = programs.map(|it| format!("  {}", it.install)).collect();
    format!(
        "install one of these and run it again, or watch a recording, with the engine `replay:{}`\n{}",
        REPLAYS[0].name,
        installs.join("\n")
    )
}

fn not_found(engine: &str) -> String {
    match super::find(engine).and_then(|it| it.program.as_ref()) {
        Some(it) => format!(
            "install it with `{}`, or say where it is with `engines.{engine}.program` in the config, or with \
             `--program PATH` of `linkspan run`",
            it.install
        ),
        None => "it is looked for in the directories of `PATH`".to_owned(),
    }
}
