//! Whether an agent uses its own login, or the API key of the environment: `use_api_billing`.
//!
//! An agent that has both would bill the key although its user pays for a subscription. One that has
//! nothing but the key needs it. The rule is pure: what there is on the machine is passed in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fmt};

use super::EngineConfig;

/// The login of an agent, and the key that would be used instead.
#[derive(Debug)]
pub struct Login {
    /// The variable with the key.
    pub key: &'static str,
    /// Variables that hold a login.
    pub tokens: &'static [&'static str],
    /// The variable that names the agent's folder, and the folder below the user's home otherwise.
    pub folder: (&'static str, &'static str),
    /// The file in that folder that holds a login.
    pub file: &'static str,
}

/// What is done with the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Billing {
    /// The key is handed on if the agent has no login of its own.
    #[default]
    Auto,
    Key,
    Login,
}

/// What a machine has: its variables and its files.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub exists: &'a dyn Fn(&Path) -> bool,
}

impl Machine<'static> {
    /// The one that this runs on.
    pub fn own() -> Self {
        Self {
            variable: &|name| env::var_os(name),
            exists: &|path| path.exists(),
        }
    }
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

/// What became of a key that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// There is none to decide about, or the user has decided for it.
    Nothing,
    /// It is handed on, because there is no login.
    HandedOn,
    /// It is withheld: there is a login.
    Withheld,
    /// It is withheld because the user says so.
    Refused,
}

impl Login {
    pub(super) fn choose(&self, config: &EngineConfig, machine: Machine<'_>) -> Chosen {
        // What the config sets for this agent is meant for it.
        let own = |name: &str| config.env.get(name).map(OsString::from);
        let variable = |name: &str| {
            let value = own(name).or_else(|| (machine.variable)(name));
            value.filter(|it| !it.is_empty())
        };
        if own(self.key).is_some() || variable(self.key).is_none() {
            return Chosen::Nothing;
        }
        match config.use_api_billing {
            Billing::Key => return Chosen::Nothing,
            Billing::Login => return Chosen::Refused,
            Billing::Auto => (),
        }
        let folder = match variable(self.folder.0) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => variable("HOME").map(|home| Path::new(&home).join(self.folder.1)),
        };
        let has_file = folder.is_some_and(|it| (machine.exists)(&it.join(self.file)));
        match has_file || self.tokens.iter().any(|it| variable(it).is_some()) {
            true => Chosen::Withheld,
            false => Chosen::HandedOn,
        }
    }
}

impl Chosen {
    pub(super) fn is_withheld(&self) -> bool {
        match self {
            Self::Nothing | Self::HandedOn => false,
            Self::Withheld | Self::Refused => true,
        }
    }

    /// What the user is told at the start.
    pub(super) fn notice(&self, engine: &str, login: &Login) -> Option<String> {
        let key = login.key;
        let set = format!("engines.{engine}.use_api_billing");
        match self {
            Self::Nothing | Self::Refused => None,
            Self::HandedOn => Some(format!(
                "{engine} has no login of its own and uses {key}; `{set}` decides it"
            )),
            Self::Withheld => Some(format!(
                "{engine} uses its own login, and {key} is withheld; `{set} = true` uses the key"
            )),
        }
    }

    /// What is added to the message when the agent could not log in.
    pub(super) fn hint(&self, engine: &str, login: &Login) -> Option<String> {
        let key = login.key;
        self.is_withheld().then(|| {
            format!("{key} is withheld from the agent; set `engines.{engine}.use_api_billing = true` in the config to use it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: Login = Login {
        key: "API_KEY",
        tokens: &["OAUTH"],
        folder: ("AGENT_HOME", ".agent"),
        file: "login.json",
    };

    fn chosen(billing: Billing, own: &[(&str, &str)], set: &[(&str, &str)], file: &str) -> Chosen {
        let config = EngineConfig {
            use_api_billing: billing,
            env: own.iter().map(|it| (it.0.into(), it.1.into())).collect(),
            ..EngineConfig::default()
        };
        let variable = |name: &str| {
            let found = set.iter().find(|it| it.0 == name);
            found.map(|it| it.1.into())
        };
        let exists = |path: &Path| path == Path::new(file);
        let machine = Machine {
            variable: &variable,
            exists: &exists,
        };
        LOGIN.choose(&config, machine)
    }

    #[test]
    fn a_key_is_used_where_there_is_no_login() {
        let key = ("API_KEY", "k");
        let home = ("HOME", "/home/me");
        let login = "/home/me/.agent/login.json";
        let auto = |set: &[(&str, &str)], file: &str| chosen(Billing::Auto, &[], set, file);
        assert_eq!(auto(&[home], login), Chosen::Nothing);
        assert_eq!(auto(&[("API_KEY", ""), home], login), Chosen::Nothing);
        assert_eq!(auto(&[key, home], ""), Chosen::HandedOn);
        assert_eq!(auto(&[key], ""), Chosen::HandedOn);
        assert_eq!(auto(&[key, home], login), Chosen::Withheld);
        assert_eq!(auto(&[key, home, ("OAUTH", "t")], ""), Chosen::Withheld);
        let elsewhere = [key, home, ("AGENT_HOME", "/x")];
        assert_eq!(auto(&elsewhere, login), Chosen::HandedOn);
        assert_eq!(auto(&elsewhere, "/x/login.json"), Chosen::Withheld);
        // What the config gives to the agent counts as well.
        let own = |own: &[(&str, &str)]| chosen(Billing::Auto, own, &[key, home], login);
        assert_eq!(own(&[key]), Chosen::Nothing);
        assert_eq!(own(&[("AGENT_HOME", "/x")]), Chosen::HandedOn);
    }

    #[test]
    fn the_user_may_decide() {
        let set = [("API_KEY", "k"), ("HOME", "/home/me")];
        for file in ["", "/home/me/.agent/login.json"] {
            let with = |billing| chosen(billing, &[], &set, file);
            assert_eq!(with(Billing::Key), Chosen::Nothing);
            assert_eq!(with(Billing::Login), Chosen::Refused);
        }
    }

    #[test]
    fn it_is_said_which() {
        let said = [Chosen::HandedOn, Chosen::Withheld, Chosen::Refused]
            .map(|it| (it.notice("agent", &LOGIN), it.hint("agent", &LOGIN)));
        let hint = "API_KEY is withheld from the agent; set `engines.agent.use_api_billing = true` in the config to use it";
        let hint = || Some(hint.to_owned());
        let notice = |it: &str| Some(it.to_owned());
        assert_eq!(
            said,
            [
                (
                    notice(
                        "agent has no login of its own and uses API_KEY; `engines.agent.use_api_billing` decides it"
                    ),
                    None
                ),
                (
                    notice(
                        "agent uses its own login, and API_KEY is withheld; `engines.agent.use_api_billing = true` uses the key"
                    ),
                    hint()
                ),
                (None, hint()),
            ]
        );
    }
}
