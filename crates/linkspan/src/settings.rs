//! The user's settings as the program meets them: the real file, the real environment.

use std::env;

use runner::config::{self, Config, File};

use crate::cli::{AskArgs, ConfigFile};
use crate::exit::{self, Code, Failure, printable};

/// The settings of this user, and the file they would come from.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) file: Option<File>,
}

pub(crate) fn load(file: &ConfigFile) -> Result<Settings, Failure> {
    let file = File::find(file.path.as_deref(), variable);
    let config = Config::load(file.as_ref(), variable).map_err(bad_config)?;
    Ok(Settings { config, file })
}

/// Applies the flags about unanswered asks to the config.
pub(crate) fn asks(config: &mut Config, asks: &AskArgs) -> Result<(), Failure> {
    let given = [
        ("ask_timeout", "--ask-timeout", &asks.ask_timeout),
        ("ask_default", "--ask-default", &asks.ask_default),
    ];
    flags(config, given)
}

/// Lays flags over the config: its key, the flag and what was given.
pub(crate) fn flags<const N: usize>(
    config: &mut Config,
    flags: [(&str, &'static str, &Option<String>); N],
) -> Result<(), Failure> {
    for (key, flag, text) in flags {
        if let Some(text) = text {
            config.flag(key, flag, text).map_err(bad_config)?;
        }
    }
    Ok(())
}

/// A value that is not UTF-8 is converted lossily and then rejected as invalid.
fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|it| it.to_string_lossy().into_owned())
}

pub(crate) fn bad_config(err: config::Error) -> Failure {
    let hint = err.hint();
    if let config::Error::Read { source, .. } = &err {
        return Failure::io(&printable(&err.to_string()), source, hint.as_deref());
    }
    Failure::new(Code::Usage, exit::chain(&err)).hint(hint.map(|it| printable(&it)))
}
