//! From what the user typed to an engine that can be started: `claude`, `acp:COMMAND`,
//! `responses:NAME`, `replay:FILE`.

use std::ffi::OsString;
use std::path::PathBuf;

use responses::Endpoint;

use super::{
    AgentRules, ENGINES, Engine, EngineConfig, EngineKind, Error, Invocation, REPLAY, RESPONSES,
    Recording,
};
use crate::config::Config;
use crate::options::RunOptions;
use crate::process::NotFound;
use crate::request::{Launch, Mode, Permissions, Request};

/// The default engine: the first of these that is installed.
pub fn default_order() -> Vec<&'static str> {
    let ranked = ENGINES.iter().filter(|it| it.default_rank.is_some());
    let mut ranked: Vec<&Engine> = ranked.collect();
    ranked.sort_by_key(|it| it.default_rank);
    ranked.iter().map(|it| it.name).collect()
}

/// What executes a run.
#[derive(Clone, Debug)]
pub enum Selected {
    Agent(Box<SelectedAgent>),
    Responses(Box<Endpoint>),
    Replay(Recording),
}

/// An agent with its config.
#[derive(Clone, Debug)]
pub struct SelectedAgent {
    pub engine: &'static Engine,
    /// What the user calls it, such as `claude` or `acp:helper --stdio`.
    pub name: String,
    pub config: EngineConfig,
    pub(super) rules: &'static AgentRules,
}

impl Selected {
    pub fn engine(&self) -> &'static Engine {
        let row = match self {
            Self::Agent(agent) => return agent.engine,
            Self::Responses(_) => super::find(RESPONSES),
            Self::Replay(_) => super::find(REPLAY),
        };
        row.expect("the table has a row for every kind of engine")
    }

    /// Fails on options that mean nothing to it: a caller who allows a tool expects it to run.
    pub fn check_options(&self, options: &RunOptions) -> Result<(), Error> {
        self.engine().check_options(options)?;
        let hint = match self {
            Self::Agent(_) => return Ok(()),
            Self::Responses(_) => {
                "a model behind an endpoint runs no tools here: leave `--allow` out"
            }
            Self::Replay(_) => "a recording runs no tools: leave `--allow` out",
        };
        match options.allow.as_deref() {
            None | Some([]) => Ok(()),
            Some(_) => Err(Error::Unable {
                engine: self.engine().name,
                what: "run the tools that are allowed",
                hint,
            }),
        }
    }
}

/// Finds what `name` means; `config` knows the ACP agents that have a name.
pub fn select(name: &str, config: &Config) -> Result<Selected, Error> {
    let (head, value) = match name.split_once(':') {
        Some((head, value)) => (head, Some(value)),
        None => (name, None),
    };
    // Only up to the first colon: a command or a path behind it may hold others.
    let Some(engine) = super::find(head) else {
        return Err(Error::UnknownEngine(name.to_owned()));
    };
    let value = match (engine.argument, value) {
        (Some(_), None | Some("")) => return Err(Error::MissingValue(engine.name)),
        (None, Some(_)) => return Err(Error::NeedlessValue(engine.name)),
        (_, value) => value.unwrap_or_default(),
    };
    let rules = match &engine.kind {
        EngineKind::Agent(rules) => rules,
        EngineKind::Model => return endpoint(value, config),
        EngineKind::Replay => return Ok(Selected::Replay(Recording::new(value))),
    };
    let config = match engine.argument {
        Some(_) => command(value, config)?,
        None => config.engine(engine.name),
    };
    Ok(Selected::Agent(Box::new(SelectedAgent {
        engine,
        name: name.to_owned(),
        config,
        rules,
    })))
}

/// The endpoint that the config has under this name. There is no other way to name one: a key goes
/// to the address it was configured for.
fn endpoint(name: &str, config: &Config) -> Result<Selected, Error> {
    match config.endpoint(name) {
        None => Err(Error::NoEndpoint(name.to_owned())),
        Some(Ok(endpoint)) => Ok(Selected::Responses(Box::new(endpoint))),
        Some(Err(err)) => Err(Error::BadEndpoint {
            name: name.to_owned(),
            message: model::error_chain(&err),
            hint: err.hint(),
        }),
    }
}

/// The agent that the config has under this name, or a command line.
fn command(value: &str, config: &Config) -> Result<EngineConfig, Error> {
    if let Some(named) = config.acp(value) {
        return Ok(named);
    }
    let bad = || Error::BadCommand(value.to_owned());
    let mut words = shell_words::split(value).map_err(|_| bad())?.into_iter();
    Ok(EngineConfig {
        program: Some(words.next().filter(|it| !it.is_empty()).ok_or_else(bad)?),
        args: words.collect(),
        ..EngineConfig::default()
    })
}

/// The default engine. `find` looks for a program.
pub fn first_installed(
    config: &Config,
    find: impl Fn(&str) -> Result<PathBuf, NotFound>,
) -> Result<SelectedAgent, Error> {
    for name in default_order() {
        if let Selected::Agent(agent) = select(name, config)?
            && agent.program().is_some_and(|it| find(it).is_ok())
        {
            return Ok(*agent);
        }
    }
    Err(Error::NoneInstalled)
}

impl SelectedAgent {
    /// The command line of a request, without the program: fails on what this engine does not take.
    pub fn invocation(&self, request: &Request) -> Result<Invocation, Error> {
        (self.rules.invocation)(&self.config, request)
    }

    /// What has to be started for `request`; `find` looks for the program.
    pub fn launch(
        &self,
        request: &Request,
        find: impl Fn(&str) -> Result<PathBuf, NotFound>,
    ) -> Result<Launch, Error> {
        let it = self.invocation(request)?;
        let program = self.program().unwrap_or_default();
        let path = find(program).map_err(|source| Error::NotFound {
            engine: self.engine.name,
            source,
        })?;
        let usual = self.engine.program.as_ref().map_or(&[][..], |it| it.env);
        let usual = usual
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let own = self.config.env.iter();
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Ok(Launch {
            program: path,
            args: it.args,
            // Later ones win: the user's config has the last word.
            env: usual.chain(it.env).chain(own).collect(),
            env_remove: it.env_remove,
            cwd: request.cwd.clone(),
            stdin: it.stdin,
            private: it.private,
        })
    }

    /// The tools that run without a question: those of the caller or of the config; `listed` has a
    /// default.
    pub fn list(&self, permissions: &Permissions) -> Vec<String> {
        let list = permissions
            .allow
            .as_ref()
            .or(self.config.allowed_tools.as_ref());
        let default = match permissions.mode {
            Mode::Listed => self.rules.allowed_tools,
            Mode::Plan | Mode::Deny | Mode::Ask | Mode::AcceptEdits | Mode::Allow => &[],
        };
        match list {
            Some(list) => list.clone(),
            None => default.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    /// The same as text for users; none when nothing runs.
    pub fn listed(&self, permissions: &Permissions) -> Option<String> {
        let list = self.list(permissions);
        match (list.is_empty(), self.rules.sandbox) {
            (true, Some(usual)) if permissions.allow.is_none() => {
                let sandbox = self.config.sandbox.as_deref().unwrap_or(usual);
                Some(format!("commands and edits in the sandbox `{sandbox}`"))
            }
            (true, _) => None,
            (false, _) => Some(list.join(", ")),
        }
    }

    /// The program to look for: the config's, else the usual one.
    pub fn program(&self) -> Option<&str> {
        let usual = self.engine.program.as_ref().map(|it| it.name);
        self.config.program.as_deref().or(usual)
    }
}
