//! The user's settings: one table of keys, filled in layers, and every value knows where it came from.
//!
//! Defaults, then the user's file, then the environment, then flags; a later layer wins. Nothing is ever
//! read from the working directory, because a repository is not the user. `docs/config.md` is the manual.

mod endpoints;
mod error;
mod file;
mod keys;
mod value;

pub use error::Error;
pub use file::File;
pub use keys::{ACP, KeySpec, PROVIDERS, Preset, RESPONSES, SECTIONS, SectionSpec, ValueKind};
pub use value::Value;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ask_limit::{AskDefault, AskLimit};
use crate::engines::{Billing, EngineConfig};
use crate::request::Mode;

/// Everything that is set, in the order of the table.
#[derive(Clone, Debug)]
pub struct Config {
    settings: Vec<Setting>,
    /// What `serve.permissions` says, in the config of a server.
    on_server: Option<Mode>,
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Such as `engines.claude.model`.
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// Where a value came from. Later ones win over earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(&'static str),
    Flag(&'static str),
}

impl Origin {
    fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Variable(_) => 2,
            Self::Flag(_) => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the agent's first output; `None` means no timeout.
    pub start: Option<Duration>,
    /// Without output during a run; `None` means no timeout.
    pub idle: Option<Duration>,
    /// Between an interrupt and being terminated.
    pub interrupt_grace: Duration,
    /// Between being terminated and being killed.
    pub terminate_grace: Duration,
}

/// How much of the sessions is kept; what is absent has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Since a session was used last.
    pub days: Option<u64>,
    pub sessions: Option<u64>,
    pub bytes: Option<u64>,
    /// Bytes of a text above which it is stored shortened.
    pub cut_above: Option<u64>,
}

impl Config {
    /// Reads the file and the environment.
    pub fn load(
        file: Option<&File>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let text = file.map(File::text).transpose()?.flatten();
        let read = file.map(|it| it.path.as_path()).zip(text.as_deref());
        Self::parse(read, variable)
    }

    /// The same from a file that has been read already.
    pub fn parse(
        file: Option<(&Path, &str)>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut config = Self {
            settings: keys::defaults(),
            on_server: None,
        };
        if let Some((path, text)) = file {
            file::read(path, text)?
                .into_iter()
                .for_each(|it| config.set(it));
        }
        for (key, kind, name) in keys::variables() {
            // Empty is how a shell script unsets a variable for one command.
            if let Some(text) = variable(name).filter(|it| !it.is_empty()) {
                let value = Value::from_text(kind, &text).map_err(|expected| Error::Value {
                    place: format!("the variable `{name}`"),
                    meant: value::meant(kind, &text),
                    value: text.clone(),
                    expected,
                })?;
                config.set(Setting {
                    key,
                    value,
                    origin: Origin::Variable(name),
                });
            }
        }
        Ok(config)
    }

    /// Lays a flag over the rest. `key` is one of the table.
    pub fn flag(&mut self, key: &str, flag: &'static str, text: &str) -> Result<(), Error> {
        let kind = keys::kind(key).ok_or_else(|| Error::NoSuchKey(key.to_owned()))?;
        let value = Value::from_text(kind, text).map_err(|expected| Error::Value {
            place: format!("`{flag}`"),
            value: text.to_owned(),
            expected,
            meant: value::meant(kind, text),
        })?;
        self.set(Setting {
            key: key.to_owned(),
            value,
            origin: Origin::Flag(flag),
        });
        Ok(())
    }

    /// Every key of the table, and the ACP agents that have a name.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    pub fn default_engine(&self) -> Option<&str> {
        self.text("default_engine")
    }

    /// What an engine's rules have to know; `engine` is one of the table that needs no value.
    pub fn engine(&self, engine: &str) -> EngineConfig {
        let mut config = self.section(&format!("engines.{engine}"));
        let general = self.find("model").filter(|it| it.value != Value::Unset);
        let own = self.find(&format!("engines.{engine}.model"));
        if let Some(general) = general
            && own.is_none_or(|own| own.origin.layer() < general.origin.layer())
        {
            config.model = self.text("model").map(str::to_owned);
        }
        config
    }

    /// The ACP agent that the file has under this name.
    pub fn acp(&self, name: &str) -> Option<EngineConfig> {
        let section = format!("engines.acp.{name}");
        self.find(&format!("{section}.program"))?;
        Some(self.section(&section))
    }

    /// The names of those agents.
    pub fn acp_names(&self) -> impl Iterator<Item = &str> {
        let keys = self.settings.iter().map(|it| it.key.as_str());
        keys.filter_map(|it| it.strip_prefix("engines.acp.")?.strip_suffix(".program"))
    }

    /// The permissions of an engine. `unset` applies where nothing is configured: it depends on
    /// whether a client can be asked.
    pub fn permissions(&self, engine: &str, unset: Mode) -> Mode {
        if let Some(mode) = self.on_server {
            return mode;
        }
        let skips = self.find(&format!("engines.{engine}.dangerously_skip_permissions"));
        let skips = skips.filter(|it| it.value == Value::Switch(true));
        let said = self
            .find("permissions")
            .filter(|it| it.value != Value::Unset);
        // The key of an engine overrides the general one, unless that comes from a later layer.
        let is_later =
            |said: &&Setting| skips.is_none_or(|skips| said.origin.layer() > skips.origin.layer());
        match said.filter(is_later) {
            Some(_) => self
                .text("permissions")
                .and_then(Mode::parse)
                .unwrap_or(unset),
            None if skips.is_some() => Mode::Allow,
            None => unset,
        }
    }

    /// The configured list of tools that an engine may run without asking, if any.
    pub fn allowed_tools(&self, engine: &str) -> Option<Vec<String>> {
        self.section(&format!("engines.{engine}")).allowed_tools
    }

    /// The same config for prompts of a server, where `serve.permissions` overrides the general
    /// settings and those of single engines.
    pub fn for_server(self) -> Self {
        let on_server = self.text("serve.permissions").and_then(Mode::parse);
        Self { on_server, ..self }
    }

    /// For how long asks of an engine may wait, and what is answered then; `timeout` and `default` are what
    /// a run says of its own. `engine` is a name as in `linkspan run --engine`.
    pub fn ask_limit(
        &self,
        engine: &str,
        timeout: Option<Duration>,
        default: Option<AskDefault>,
    ) -> Option<AskLimit> {
        let section = match engine.split_once(':') {
            Some((kind, name)) => format!("engines.{kind}.{name}"),
            None => format!("engines.{engine}"),
        };
        let general = |key: &str| self.find(key).filter(|it| it.value != Value::Unset);
        // The later layer wins, as with `permissions`.
        let nearest = |key: &str| {
            let own = general(&format!("{section}.{key}"));
            match (own, general(key)) {
                (Some(own), Some(all)) if all.origin.layer() > own.origin.layer() => Some(all),
                (own, all) => own.or(all),
            }
        };
        let timeout = timeout.or_else(|| match &nearest("ask_timeout")?.value {
            Value::Seconds(it) => Some(*it),
            _ => None,
        });
        let default = default.or_else(|| match &nearest("ask_default")?.value {
            Value::Text(it) => AskDefault::find(it),
            _ => None,
        });
        AskLimit::new(timeout?, default.unwrap_or_default())
    }

    pub fn timeouts(&self) -> Timeouts {
        let seconds = |key| match self.find(key).map(|it| &it.value) {
            Some(Value::Seconds(it)) => *it,
            _ => Duration::ZERO,
        };
        let or_never = |key| Some(seconds(key)).filter(|it| !it.is_zero());
        Timeouts {
            start: or_never("start_timeout"),
            idle: or_never("idle_timeout"),
            interrupt_grace: seconds("interrupt_grace"),
            terminate_grace: seconds("terminate_grace"),
        }
    }

    pub fn keep(&self) -> Keep {
        let number = |key| match self.find(key).map(|it| &it.value) {
            Some(Value::Number(it)) => Some(*it).filter(|it| *it > 0),
            _ => None,
        };
        Keep {
            days: number("journal.keep_days"),
            sessions: number("journal.keep_sessions"),
            bytes: number("journal.keep_bytes"),
            cut_above: number("journal.cut_above"),
        }
    }

    /// The roots of the server; `~` is the user's home. Empty when not configured.
    pub fn roots(&self) -> Vec<PathBuf> {
        let Some(Value::List(roots)) = self.find("serve.roots").map(|it| &it.value) else {
            return Vec::new();
        };
        let roots = roots.iter().map(Path::new);
        roots.map(expand_home).collect()
    }

    /// Pages of other origins that may use the server from a browser.
    pub fn allow_origins(&self) -> Vec<String> {
        match self.find("serve.allow_origins").map(|it| &it.value) {
            Some(Value::List(origins)) => origins.clone(),
            _ => Vec::new(),
        }
    }

    /// How the server writes its log: `json` or `text`.
    pub fn log_format(&self) -> &str {
        self.text("serve.log_format").unwrap_or_default()
    }

    /// The least important lines of the server's log.
    pub fn log_level(&self) -> &str {
        self.text("serve.log_level").unwrap_or_default()
    }

    fn section(&self, path: &str) -> EngineConfig {
        let text = |key: &str| self.text(&format!("{path}.{key}")).map(str::to_owned);
        let find = |key: &str| self.find(&format!("{path}.{key}"));
        let list = |key: &str| match find(key).map(|it| &it.value) {
            Some(Value::List(it)) => it.clone(),
            _ => Vec::new(),
        };
        let is_said = |key: &str| find(key).is_some_and(|it| it.origin != Origin::Default);
        EngineConfig {
            program: text("program"),
            args: list("args"),
            env: match find("env").map(|it| &it.value) {
                Some(Value::Table(it)) => it.clone(),
                _ => Default::default(),
            },
            model: text("model"),
            allowed_tools: is_said("allowed_tools").then(|| list("allowed_tools")),
            use_api_billing: match find("use_api_billing").map(|it| &it.value) {
                Some(Value::Switch(true)) => Billing::Key,
                Some(Value::Switch(false)) => Billing::Login,
                _ => Billing::Auto,
            },
            output_style: text("output_style"),
            verbosity: text("verbosity"),
            sandbox: text("sandbox"),
            auth_method: text("auth_method"),
        }
    }

    fn find(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|it| it.key == key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match &self.find(key)?.value {
            Value::Text(it) => Some(it),
            _ => None,
        }
    }

    fn set(&mut self, setting: Setting) {
        match self.settings.iter_mut().find(|it| it.key == setting.key) {
            Some(it) => *it = setting,
            None => self.settings.push(setting),
        }
    }
}

/// `~` and `~/…` as a shell reads them; everything else as it is.
pub fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), etcetera::home_dir()) {
        (Ok(rest), Ok(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
