//! Whether an agent uses its own login, or the API key of the environment: `use_api_billing`.
//!
//! An agent that has both would bill the key although its user pays for a subscription. One that has
//! nothing but the key needs it. The rule is pure: what there is on the machine is passed in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use super::EngineConfig;

/// How an agent can log in: with a login of its own, or with an API key.
#[derive(Debug)]
pub struct Login {
    /// The command that logs in.
    pub command: &'static str,
    /// The arguments with which the program logs in when it has a terminal.
    pub terminal_args: &'static [&'static str],
    /// Variables with a key, the one that the agent itself looks at first. The others are handed on under
    /// that name, where there is neither a login nor the first.
    pub keys: &'static [&'static str],
    /// Variables that do instead of a login.
    pub tokens: &'static [&'static str],
    /// The variable that names the agent's folder, and the folder below the user's home otherwise.
    pub folder: (Option<&'static str>, &'static str),
    /// The file in that folder that holds a login.
    pub file: &'static str,
    /// A file in the user's home, and what is in it when there is an account whose login only the agent
    /// can see, such as one in the keychain of macOS.
    pub account: Option<(&'static str, &'static str)>,
    /// The setting that keeps a login where linkspan cannot look.
    pub store: Option<Store>,
    /// Whether `use_api_billing` decides between the key and the login. The other agents decide by
    /// their own settings.
    pub has_billing: bool,
}

/// A setting of an agent's own config (TOML, in its folder) that names the place of its login.
#[derive(Debug)]
pub struct Store {
    pub file: &'static str,
    pub key: &'static str,
    /// The values with which a login may be somewhere else than in its file.
    pub elsewhere: &'static [&'static str],
}

/// How an agent can prove who its user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Login,
    /// A variable that holds a login or a key.
    Variable(&'static str),
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
    pub read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Machine<'static> {
    /// The one that this runs on.
    pub fn own() -> Self {
        Self {
            variable: &|name| env::var_os(name),
            exists: &|path| path.exists(),
            read: &|path| fs::read_to_string(path).ok(),
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
pub(super) enum KeyUse {
    /// There is none to decide about.
    Nothing,
    /// It is used because the config asks for it.
    Wanted(Key),
    /// It is handed on, because there is no login.
    HandedOn(Key),
    /// It is withheld: there is a login.
    Withheld,
    /// It is withheld because the config asks for it.
    Refused,
}

/// A key, and the variable that holds it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) value: OsString,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

/// The variables and files as one agent sees them: what its config sets is meant for it.
struct Seen<'a> {
    config: &'a EngineConfig,
    machine: Machine<'a>,
}

impl Seen<'_> {
    fn own(&self, name: &str) -> Option<OsString> {
        let value = self.config.env.get(name).map(OsString::from);
        value.filter(|it| !it.is_empty())
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let inherited = || (self.machine.variable)(name).filter(|it| !it.is_empty());
        match self.config.env.contains_key(name) {
            // Also when it is empty there: that is how a config takes an inherited variable away.
            true => self.own(name),
            false => inherited(),
        }
    }
}

impl Login {
    pub(super) fn choose(&self, config: &EngineConfig, machine: Machine<'_>) -> KeyUse {
        let seen = Seen { config, machine };
        let key = |name: &&'static str| {
            let value = seen.variable(name)?;
            Some(Key { name, value })
        };
        let first = self.keys.first().and_then(key);
        let Some(any) = self.keys.iter().find_map(key).filter(|_| self.has_billing) else {
            return KeyUse::Nothing;
        };
        // A key in the engine's own `env` was put there for this agent on purpose.
        if seen.own(any.name).is_some() {
            return KeyUse::Wanted(any);
        }
        match (config.use_api_billing, first) {
            (Billing::Key, _) => KeyUse::Wanted(any),
            (Billing::Login, Some(_)) => KeyUse::Refused,
            // The agent does not look at the others by itself.
            (Billing::Login, None) => KeyUse::Nothing,
            (Billing::Auto, first) => match (self.has_login(&seen), first) {
                (true, Some(_)) => KeyUse::Withheld,
                (true, None) => KeyUse::Nothing,
                (false, _) => KeyUse::HandedOn(any),
            },
        }
    }

    /// How the agent can prove who its user is, as far as linkspan can see.
    pub fn find(&self, config: &EngineConfig, machine: Machine<'_>) -> Option<Found> {
        let seen = Seen { config, machine };
        if self.is_in_file(&seen) || self.is_elsewhere(&seen) || self.has_account(&seen) {
            return Some(Found::Login);
        }
        let mut variables = self.tokens.iter().chain(self.keys);
        let found = variables.find(|it| seen.variable(it).is_some());
        found.map(|it| Found::Variable(it))
    }

    fn has_login(&self, seen: &Seen<'_>) -> bool {
        self.is_in_file(seen)
            || self.is_elsewhere(seen)
            || self.tokens.iter().any(|it| seen.variable(it).is_some())
    }

    fn is_in_file(&self, seen: &Seen<'_>) -> bool {
        let folder = self.folder(seen);
        folder.is_some_and(|it| (seen.machine.exists)(&it.join(self.file)))
    }

    /// Whether there may be a login that only the agent can see.
    fn is_elsewhere(&self, seen: &Seen<'_>) -> bool {
        let Some((store, folder)) = self.store.as_ref().zip(self.folder(seen)) else {
            return false;
        };
        let text = (seen.machine.read)(&folder.join(store.file));
        let table = text.and_then(|it| it.parse::<toml::Table>().ok());
        let place = table.as_ref().and_then(|it| it.get(store.key)?.as_str());
        place.is_some_and(|it| store.elsewhere.contains(&it))
    }

    /// An account may be one that is logged out, so this does not decide what is billed.
    fn has_account(&self, seen: &Seen<'_>) -> bool {
        let Some(((file, word), home)) = self.account.zip(seen.variable("HOME")) else {
            return false;
        };
        let text = (seen.machine.read)(&Path::new(&home).join(file));
        text.is_some_and(|it| it.contains(word))
    }

    fn folder(&self, seen: &Seen<'_>) -> Option<PathBuf> {
        let (variable, below_home) = self.folder;
        match variable.and_then(|it| seen.variable(it)) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => seen
                .variable("HOME")
                .map(|home| Path::new(&home).join(below_home)),
        }
    }
}

impl KeyUse {
    pub(super) fn is_withheld(&self) -> bool {
        match self {
            Self::Nothing | Self::Wanted(_) | Self::HandedOn(_) => false,
            Self::Withheld | Self::Refused => true,
        }
    }

    /// The key that the agent is to use.
    pub(super) fn key(&self) -> Option<&Key> {
        match self {
            Self::Wanted(key) | Self::HandedOn(key) => Some(key),
            Self::Nothing | Self::Withheld | Self::Refused => None,
        }
    }

    /// The notice at the start. `product` is the name of the engine for users.
    pub(super) fn notice(&self, engine: &str, product: &str, login: &Login) -> Option<String> {
        let set = format!("engines.{engine}.use_api_billing");
        match self {
            Self::Nothing | Self::Wanted(_) | Self::Refused => None,
            Self::HandedOn(key) => Some(format!(
                "{product} is not logged in, so it uses {}; `{set}` in the config changes that",
                key.name
            )),
            Self::Withheld => {
                let key = login.first_key();
                Some(format!(
                    "{product} uses its own login and not {key}; `{set} = true` in the config changes that"
                ))
            }
        }
    }

    /// What is added to the message when the agent could not log in.
    pub(super) fn hint(&self, engine: &str, login: &Login) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Wanted(key) | Self::HandedOn(key) => Some(format!(
                "the agent was given {}; check that it is right",
                key.name
            )),
            Self::Withheld | Self::Refused => {
                let key = login.first_key();
                Some(format!(
                    "{key} is withheld from the agent; set `engines.{engine}.use_api_billing = true` in the config to use it"
                ))
            }
        }
    }
}

impl Login {
    /// What to do where there is neither a login nor a key.
    pub fn hint(&self) -> String {
        let keys = self.keys.join("` or `");
        format!("log in with `{}`, or set `{keys}`", self.command)
    }

    /// What is typed in a terminal to log in.
    pub fn terminal_command(&self, program: &str) -> String {
        let words = std::iter::once(&program).chain(self.terminal_args);
        words.copied().collect::<Vec<_>>().join(" ")
    }

    /// The variable that the agent looks at.
    pub(super) fn first_key(&self) -> &'static str {
        self.keys.first().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const LOGIN: Login = Login {
        command: "agent login",
        terminal_args: &["login"],
        keys: &["API_KEY", "OTHER_KEY"],
        tokens: &["OAUTH"],
        folder: (Some("AGENT_HOME"), ".agent"),
        file: "login.json",
        account: None,
        store: Some(Store {
            file: "config.toml",
            key: "store",
            elsewhere: &["keyring"],
        }),
        has_billing: true,
    };

    fn key(name: &'static str) -> Key {
        let value = "k".into();
        Key { name, value }
    }

    fn chosen(billing: Billing, own: &[(&str, &str)], set: &[(&str, &str)], file: &str) -> KeyUse {
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
            read: &|path| {
                (path == Path::new("/ring/config.toml")).then(|| "store = 'keyring'".to_owned())
            },
        };
        LOGIN.choose(&config, machine)
    }

    #[test]
    fn a_key_is_used_where_there_is_no_login() {
        let used = || KeyUse::HandedOn(key("API_KEY"));
        let key = ("API_KEY", "k");
        let home = ("HOME", "/home/me");
        let login = "/home/me/.agent/login.json";
        let auto = |set: &[(&str, &str)], file: &str| chosen(Billing::Auto, &[], set, file);
        assert_eq!(auto(&[home], login), KeyUse::Nothing);
        assert_eq!(auto(&[("API_KEY", ""), home], login), KeyUse::Nothing);
        assert_eq!(auto(&[key, home], ""), used());
        assert_eq!(auto(&[key], ""), used());
        assert_eq!(auto(&[key, home], login), KeyUse::Withheld);
        assert_eq!(auto(&[key, home, ("OAUTH", "t")], ""), KeyUse::Withheld);
        let elsewhere = [key, home, ("AGENT_HOME", "/x")];
        assert_eq!(auto(&elsewhere, login), used());
        assert_eq!(auto(&elsewhere, "/x/login.json"), KeyUse::Withheld);
        // What the config gives to the agent counts as well.
        let own = |own: &[(&str, &str)]| chosen(Billing::Auto, own, &[key, home], login);
        assert_eq!(own(&[key]), KeyUse::Wanted(self::key("API_KEY")));
        assert_eq!(own(&[("API_KEY", "")]), KeyUse::Nothing);
        assert_eq!(own(&[("AGENT_HOME", "/x")]), used());
    }

    #[test]
    fn a_key_by_another_name_is_used_where_there_is_nothing_else() {
        let set = [("OTHER_KEY", "k"), ("HOME", "/home/me")];
        let login = "/home/me/.agent/login.json";
        let with = |billing, file| chosen(billing, &[], &set, file);
        let used = key("OTHER_KEY");
        assert_eq!(with(Billing::Auto, ""), KeyUse::HandedOn(used.clone()));
        assert_eq!(with(Billing::Key, login), KeyUse::Wanted(used));
        // The agent does not look at it, so there is nothing to withhold.
        assert_eq!(with(Billing::Auto, login), KeyUse::Nothing);
        assert_eq!(with(Billing::Login, ""), KeyUse::Nothing);
    }

    #[test]
    fn a_login_in_a_keyring_counts_although_it_cannot_be_seen() {
        let set = [("API_KEY", "k"), ("AGENT_HOME", "/ring")];
        assert_eq!(chosen(Billing::Auto, &[], &set, ""), KeyUse::Withheld);
    }

    #[test]
    fn an_account_is_a_login_that_decides_no_bill() {
        let login = Login {
            account: Some((".agent.json", "account")),
            ..LOGIN
        };
        let machine = Machine {
            variable: &|name| match name {
                "HOME" => Some("/home/me".into()),
                "API_KEY" => Some("k".into()),
                _ => None,
            },
            exists: &|_| false,
            read: &|path| {
                (path == Path::new("/home/me/.agent.json")).then(|| "{account}".to_owned())
            },
        };
        let config = EngineConfig::default();
        assert_eq!(login.find(&config, machine), Some(Found::Login));
        let used = KeyUse::HandedOn(key("API_KEY"));
        assert_eq!(login.choose(&config, machine), used);
    }

    #[test]
    fn the_user_may_decide() {
        let set = [("API_KEY", "k"), ("HOME", "/home/me")];
        for file in ["", "/home/me/.agent/login.json"] {
            let with = |billing| chosen(billing, &[], &set, file);
            assert_eq!(with(Billing::Key), KeyUse::Wanted(key("API_KEY")));
            assert_eq!(with(Billing::Login), KeyUse::Refused);
        }
    }

    #[test]
    fn the_notice_names_the_key_in_use() {
        let notice = |it: &KeyUse| it.notice("agent", "The Agent", &LOGIN).unwrap_or_default();
        let hint = |it: &KeyUse| it.hint("agent", &LOGIN).unwrap_or_default();
        let messages = [
            KeyUse::Nothing,
            KeyUse::Wanted(key("API_KEY")),
            KeyUse::HandedOn(key("OTHER_KEY")),
            KeyUse::Withheld,
            KeyUse::Refused,
        ]
        .map(|it| format!("{it:?}\n  {}\n  {}\n", notice(&it), hint(&it)));
        expect![[r#"
            Nothing
              
              
            Wanted(Key("API_KEY"))
              
              the agent was given API_KEY; check that it is right
            HandedOn(Key("OTHER_KEY"))
              The Agent is not logged in, so it uses OTHER_KEY; `engines.agent.use_api_billing` in the config changes that
              the agent was given OTHER_KEY; check that it is right
            Withheld
              The Agent uses its own login and not API_KEY; `engines.agent.use_api_billing = true` in the config changes that
              API_KEY is withheld from the agent; set `engines.agent.use_api_billing = true` in the config to use it
            Refused
              
              API_KEY is withheld from the agent; set `engines.agent.use_api_billing = true` in the config to use it
        "#]]
        .assert_eq(&messages.concat());
        assert_eq!(
            LOGIN.hint(),
            "log in with `agent login`, or set `API_KEY` or `OTHER_KEY`"
        );
    }
}
