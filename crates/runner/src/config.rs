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
pub use value::Value;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::keys::{KeySpec, ValueKind};
use crate::agent::Limits;
use crate::ask_limit::{AskDefault, AskLimit};
use crate::engines::{Billing, EngineConfig};
use crate::process::GracePeriods;
use crate::request::Mode;

/// Everything that is set, in the order of the table.
#[derive(Clone, Debug)]
pub struct Config {
    settings: Vec<Setting>,
    /// The value of `serve.permissions`, in the config of a server.
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

/// How much of the sessions is kept; none is no limit.
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
        let default = |(key, row): (String, &KeySpec)| Setting {
            key,
            value: row.value(),
            origin: Origin::Default,
        };
        // In the order of the table, in which `linkspan config` lists them.
        let mut config = Self {
            settings: keys::all().map(default).collect(),
            on_server: None,
        };
        if let Some((path, text)) = file {
            let settings = file::read(path, text)?.into_iter();
            settings.for_each(|it| config.set(it));
        }
        for (key, row) in keys::all() {
            // Empty is how a shell script unsets a variable for one command.
            let text = row.variable.and_then(&variable).filter(|it| !it.is_empty());
            if let (Some(name), Some(text)) = (row.variable, text) {
                let place = format!("the variable `{name}`");
                let value = read(row.kind, &text, place)?;
                let origin = Origin::Variable(name);
                config.set(Setting { key, value, origin });
            }
        }
        Ok(config)
    }

    /// Lays a flag over the rest. `key` is one of the table.
    pub fn flag(&mut self, key: &str, flag: &'static str, text: &str) -> Result<(), Error> {
        let row = keys::all().find(|it| it.0 == key);
        let (key, row) = row.ok_or_else(|| Error::NoSuchKey(key.to_owned()))?;
        let value = read(row.kind, text, format!("`{flag}`"))?;
        let origin = Origin::Flag(flag);
        self.set(Setting { key, value, origin });
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
        let section = format!("engines.{engine}");
        let model = self
            .nearest(&section, "model")
            .and_then(|it| it.value.text());
        EngineConfig {
            model: model.map(str::to_owned),
            ..self.section(&section)
        }
    }

    /// The ACP agent that the file has under this name.
    pub fn acp(&self, name: &str) -> Option<EngineConfig> {
        let section = format!("engines.acp.{name}");
        // Every named agent has this key, so without it there is no such agent.
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
        // Before all others: what holds for the user must not hold for the clients of a server.
        if let Some(mode) = self.on_server {
            return mode;
        }
        let skips = self.find(&format!("engines.{engine}.dangerously_skip_permissions"));
        // `false` is the default, and leaves the choice to `permissions`.
        let skips = skips.filter(|it| it.value == Value::Switch(true));
        match nearer(skips, self.find_set("permissions")) {
            Some(it) if it.value == Value::Switch(true) => Mode::Allow,
            Some(it) => it.value.text().and_then(Mode::parse).unwrap_or(unset),
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

    /// For how long asks of an engine may wait, and the answer then; `timeout` and `default` are those
    /// of the run itself. `engine` is a name as in `linkspan run --engine`.
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
        let timeout = timeout.or_else(|| self.nearest(&section, "ask_timeout")?.value.seconds());
        let default = default.or_else(|| {
            let default = self.nearest(&section, "ask_default")?;
            AskDefault::find(default.value.text()?)
        });
        AskLimit::new(timeout?, default.unwrap_or_default())
    }

    pub fn limits(&self) -> Limits {
        let seconds = |key| self.value(key).and_then(Value::seconds).unwrap_or_default();
        // As everywhere in the config, 0 is no limit.
        let or_never = |key| Some(seconds(key)).filter(|it| !it.is_zero());
        Limits {
            start: or_never("start_timeout"),
            idle: or_never("idle_timeout"),
            patience: GracePeriods {
                interrupted: seconds("interrupt_grace"),
                terminated: seconds("terminate_grace"),
            },
        }
    }

    pub fn keep(&self) -> Keep {
        let number = |key| match self.value(key) {
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
        let roots = self.list("serve.roots").iter().map(Path::new);
        roots.map(expand_home).collect()
    }

    /// Pages of other origins that may use the server from a browser.
    pub fn allow_origins(&self) -> Vec<String> {
        self.list("serve.allow_origins").to_vec()
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
        let key = |key: &str| format!("{path}.{key}");
        let text = |it: &str| self.text(&key(it)).map(str::to_owned);
        let list = |it: &str| self.list(&key(it)).to_vec();
        let tools = self.find(&key("allowed_tools"));
        // The default is there to be shown; only `listed` uses it.
        let has_tools = tools.is_some_and(|it| it.origin != Origin::Default);
        let env = self.value(&key("env")).and_then(Value::table);
        EngineConfig {
            program: text("program"),
            args: list("args"),
            env: env.cloned().unwrap_or_default(),
            model: text("model"),
            allowed_tools: has_tools.then(|| list("allowed_tools")),
            use_api_billing: match self.value(&key("use_api_billing")) {
                Some(Value::Switch(true)) => Billing::Key,
                Some(Value::Switch(false)) => Billing::Login,
                // The text `auto`, or an engine without this key.
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

    fn find_set(&self, key: &str) -> Option<&Setting> {
        self.find(key).filter(|it| it.value != Value::Unset)
    }

    /// The key of an engine, or the general one.
    fn nearest(&self, section: &str, key: &str) -> Option<&Setting> {
        let own = self.find_set(&format!("{section}.{key}"));
        nearer(own, self.find_set(key))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.find(key).map(|it| &it.value)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.text()
    }

    fn list(&self, key: &str) -> &[String] {
        self.value(key).and_then(Value::list).unwrap_or_default()
    }

    fn set(&mut self, setting: Setting) {
        match self.settings.iter_mut().find(|it| it.key == setting.key) {
            Some(it) => *it = setting,
            // Keys of named agents and endpoints are not in the table.
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

/// An engine's own setting overrides the general one, unless that comes from a later layer.
fn nearer<'a>(own: Option<&'a Setting>, general: Option<&'a Setting>) -> Option<&'a Setting> {
    match (own, general) {
        (Some(own), Some(all)) if all.origin.layer() > own.origin.layer() => Some(all),
        (own, all) => own.or(all),
    }
}

/// Reads what a variable or a flag sets; `place` names it in an error.
fn read(kind: ValueKind, text: &str, place: String) -> Result<Value, Error> {
    Value::from_text(kind, text).map_err(|expected| Error::Value {
        place,
        value: text.to_owned(),
        expected,
        meant: value::meant(kind, text),
    })
}

#[cfg(test)]
mod tests;
