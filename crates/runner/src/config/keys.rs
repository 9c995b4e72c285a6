//! The one table of keys: the file, the variables and `linkspan config` follow it. `docs/config.md` says what
//! each key is for; a test finds the keys that it lacks.

mod agents;
mod endpoints;
mod general;

use std::time::Duration;

use self::agents::{AGENT, CLAUDE, CODEX, GEMINI, LOGIN, OPENCODE, OPENHANDS, PROCESS};
use self::endpoints::{AZURE, ENDPOINT, OPENCLAW};
use self::general::{JOURNAL, SERVE, TOP};
use super::Value;

/// One key of a section.
#[derive(Debug)]
pub(super) struct KeySpec {
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    pub(super) preset: Preset,
    /// The environment variable that sets it too.
    pub(super) variable: Option<&'static str>,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueKind {
    Text,
    Choice(&'static [&'static str]),
    Mode,
    Engine,
    Switch,
    /// `true`, `false`, or `"auto"`.
    SwitchOrAuto,
    List,
    Table,
    Seconds,
    Number,
    /// Bytes, perhaps with a unit.
    Size,
    /// A number of times.
    Count,
    /// A text that is not shown.
    Secret,
}

/// The default of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preset {
    Unset,
    Off,
    Text(&'static str),
    List(&'static [&'static str]),
    Seconds(u64),
    On,
    Count(u32),
}

impl ValueKind {
    /// A key that takes this, without a default and without a variable.
    const fn key(self, name: &'static str) -> KeySpec {
        KeySpec {
            name,
            kind: self,
            preset: Preset::Unset,
            variable: None,
        }
    }
}

impl KeySpec {
    const fn preset(self, preset: Preset) -> Self {
        Self { preset, ..self }
    }

    const fn variable(self, name: &'static str) -> Self {
        Self {
            variable: Some(name),
            ..self
        }
    }
}

/// A table of the file; the top of the file has an empty path.
#[derive(Debug)]
pub(super) struct SectionSpec {
    pub(super) path: &'static str,
    keys: &'static [&'static [KeySpec]],
    /// The tables in it.
    pub(super) tables: &'static [&'static str],
    pub(super) required: Option<RequiredKey>,
}

/// A key that a table cannot be without.
#[derive(Debug)]
pub struct RequiredKey {
    pub(super) key: &'static str,
    /// Its name for users.
    pub(super) name: &'static str,
    pub(super) example: &'static str,
}

impl SectionSpec {
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static KeySpec> + use<> {
        self.keys.iter().copied().flatten()
    }
}

const fn section(path: &'static str, keys: &'static [&'static [KeySpec]]) -> SectionSpec {
    SectionSpec {
        path,
        keys,
        tables: &[],
        required: None,
    }
}

pub(super) const SECTIONS: &[SectionSpec] = &[
    SectionSpec {
        tables: &["claude", "engines", "journal", "serve"],
        ..section("", &[TOP])
    },
    section("journal", &[JOURNAL]),
    section("serve", &[SERVE]),
    section("engines.claude", &[PROCESS, AGENT, CLAUDE]),
    section("engines.codex", &[PROCESS, AGENT, CODEX]),
    section("engines.opencode", &[PROCESS, AGENT, OPENCODE]),
    section("engines.gemini", &[PROCESS, AGENT, GEMINI]),
    section("engines.openhands", &[PROCESS, AGENT, OPENHANDS]),
];

/// `[engines.acp.NAME]`, for any name.
pub(super) static ACP: SectionSpec = SectionSpec {
    required: Some(RequiredKey {
        key: "program",
        name: "program",
        example: "COMMAND",
    }),
    ..section("engines.acp.NAME", &[PROCESS, LOGIN])
};

/// `[engines.responses.NAME]`, for any name.
pub(super) static RESPONSES: SectionSpec = SectionSpec {
    tables: &["azure", "openclaw"],
    required: Some(RequiredKey {
        key: "base_url",
        name: "address",
        example: "https://…/v1",
    }),
    ..section("engines.responses.NAME", &[ENDPOINT])
};

/// The tables inside of it, for one provider each.
pub(super) const PROVIDERS: &[SectionSpec] = &[
    section("engines.responses.NAME.azure", &[AZURE]),
    section("engines.responses.NAME.openclaw", &[OPENCLAW]),
];

/// The full name of a key.
pub(super) fn full(section: &str, name: &str) -> String {
    match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    }
}

/// Every key that has a fixed name, with it.
pub(super) fn all() -> impl Iterator<Item = (String, &'static KeySpec)> {
    let keys = |section: &'static SectionSpec| {
        (section.keys()).map(|key| (full(section.path, key.name), key))
    };
    SECTIONS.iter().flat_map(keys)
}

impl KeySpec {
    /// Its default.
    pub(super) fn value(&self) -> Value {
        match self.preset {
            Preset::Unset => Value::Unset,
            Preset::Off => Value::Switch(false),
            Preset::On => Value::Switch(true),
            Preset::Text(it) => Value::Text(it.to_owned()),
            Preset::Count(it) => Value::Count(it),
            Preset::List(items) => Value::List(items.iter().map(|it| (*it).to_owned()).collect()),
            Preset::Seconds(it) => Value::Seconds(Duration::from_secs(it)),
        }
    }
}
