//! The one table of keys: the file, the variables, `linkspan config` and the manual follow it.

mod agents;
mod endpoints;
mod general;

use std::time::Duration;

use self::agents::{AGENT, CLAUDE, CODEX, GEMINI, LOGIN, OPENCODE, OPENHANDS, PROCESS};
use self::endpoints::{AZURE, ENDPOINT, OPENCLAW};
use self::general::{JOURNAL, SERVE, TOP};
use super::{Origin, Setting, Value};

/// One key of a section.
#[derive(Debug)]
pub struct KeySpec {
    pub name: &'static str,
    pub kind: ValueKind,
    pub preset: Preset,
    /// The environment variable that sets it too.
    pub variable: Option<&'static str>,
    pub summary: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
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
pub enum Preset {
    Unset,
    Off,
    Text(&'static str),
    List(&'static [&'static str]),
    Seconds(u64),
    On,
    Count(u32),
}

/// A table of the file; the top of the file has an empty path.
#[derive(Debug)]
pub struct SectionSpec {
    pub path: &'static str,
    pub keys: &'static [&'static [KeySpec]],
}

impl SectionSpec {
    pub fn keys(&self) -> impl Iterator<Item = &'static KeySpec> + use<> {
        self.keys.iter().copied().flatten()
    }
}

pub const SECTIONS: &[SectionSpec] = &[
    SectionSpec {
        path: "",
        keys: &[TOP],
    },
    SectionSpec {
        path: "journal",
        keys: &[JOURNAL],
    },
    SectionSpec {
        path: "serve",
        keys: &[SERVE],
    },
    SectionSpec {
        path: "engines.claude",
        keys: &[PROCESS, AGENT, CLAUDE],
    },
    SectionSpec {
        path: "engines.codex",
        keys: &[PROCESS, AGENT, CODEX],
    },
    SectionSpec {
        path: "engines.opencode",
        keys: &[PROCESS, AGENT, OPENCODE],
    },
    SectionSpec {
        path: "engines.gemini",
        keys: &[PROCESS, AGENT, GEMINI],
    },
    SectionSpec {
        path: "engines.openhands",
        keys: &[PROCESS, AGENT, OPENHANDS],
    },
];

/// `[engines.acp.NAME]`, for any name.
pub const ACP: SectionSpec = SectionSpec {
    path: "engines.acp.NAME",
    keys: &[PROCESS, LOGIN],
};

/// `[engines.responses.NAME]`, for any name.
pub const RESPONSES: SectionSpec = SectionSpec {
    path: "engines.responses.NAME",
    keys: &[ENDPOINT],
};

/// The tables inside of it, for one provider each.
pub const PROVIDERS: &[SectionSpec] = &[
    SectionSpec {
        path: "engines.responses.NAME.azure",
        keys: &[AZURE],
    },
    SectionSpec {
        path: "engines.responses.NAME.openclaw",
        keys: &[OPENCLAW],
    },
];

/// The full name of a key.
pub(super) fn full(section: &str, name: &str) -> String {
    match section {
        "" => name.to_owned(),
        _ => format!("{section}.{name}"),
    }
}

pub(super) fn defaults() -> Vec<Setting> {
    let mut settings = Vec::new();
    for section in SECTIONS {
        settings.extend(section.keys().map(|key| Setting {
            key: full(section.path, key.name),
            value: preset(key.preset),
            origin: Origin::Default,
        }));
    }
    settings
}

/// The keys that a variable can set: key, kind, variable.
pub(super) fn variables() -> impl Iterator<Item = (String, ValueKind, &'static str)> {
    let keys = SECTIONS
        .iter()
        .flat_map(|section| section.keys().map(move |key| (section.path, key)));
    keys.filter_map(|(section, key)| Some((full(section, key.name), key.kind, key.variable?)))
}

pub(super) fn kind(key: &str) -> Option<ValueKind> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let section = SECTIONS.iter().find(|it| it.path == section)?;
    section.keys().find(|it| it.name == name).map(|it| it.kind)
}

fn preset(preset: Preset) -> Value {
    match preset {
        Preset::Unset => Value::Unset,
        Preset::Off => Value::Switch(false),
        Preset::On => Value::Switch(true),
        Preset::Text(it) => Value::Text(it.to_owned()),
        Preset::Count(it) => Value::Count(it),
        Preset::List(items) => Value::List(items.iter().map(|it| (*it).to_owned()).collect()),
        Preset::Seconds(it) => Value::Seconds(Duration::from_secs(it)),
    }
}
