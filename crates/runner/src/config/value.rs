//! What a key can hold, and how text becomes it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Kind;
use crate::engines::ENGINES;
use crate::nearest;
use crate::request::Mode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Unset,
    Text(String),
    Switch(bool),
    List(Vec<String>),
    /// Environment variables; their values may be secrets.
    Table(BTreeMap<String, String>),
    Seconds(Duration),
    /// A count, or bytes.
    Number(u64),
    Count(u32),
    /// Not shown.
    Secret(String),
}

impl Value {
    /// What a variable or a flag says; else what was expected.
    pub(super) fn from_text(kind: Kind, text: &str) -> Result<Self, String> {
        let expected = || expected(kind);
        match kind {
            Kind::Text => Ok(Self::Text(text.to_owned())),
            Kind::Choice(names) if names.contains(&text) => Ok(Self::Text(text.to_owned())),
            Kind::Mode if Mode::parse(text).is_some() => Ok(Self::Text(text.to_owned())),
            Kind::Engine if is_engine(text) => Ok(Self::Text(text.to_owned())),
            Kind::Seconds => {
                let seconds = text.parse().ok().and_then(duration);
                seconds.map(Self::Seconds).ok_or_else(expected)
            }
            Kind::Number => text.parse().map(Self::Number).map_err(|_| expected()),
            Kind::Size => size(text).map(Self::Number).ok_or_else(expected),
            Kind::Secret => Ok(Self::Secret(text.to_owned())),
            Kind::Count => text.parse().map(Self::Count).map_err(|_| expected()),
            Kind::SwitchOrAuto => match text {
                "auto" => Ok(Self::Text(text.to_owned())),
                "true" => Ok(Self::Switch(true)),
                "false" => Ok(Self::Switch(false)),
                _ => Err(expected()),
            },
            Kind::Choice(_) | Kind::Mode | Kind::Engine => Err(expected()),
            Kind::Switch | Kind::List | Kind::Table => Err(expected()),
        }
    }
}

/// The value that was probably meant, where a key takes one of a few.
pub(super) fn meant(kind: Kind, text: &str) -> Option<&'static str> {
    match kind {
        Kind::Choice(names) => nearest(text, names.iter().copied()),
        Kind::Mode => nearest(text, Mode::names()),
        Kind::Engine => {
            let name = text.split(':').next().unwrap_or_default();
            nearest(name, ENGINES.iter().map(|it| it.name))
        }
        Kind::Text | Kind::Secret | Kind::Switch | Kind::SwitchOrAuto | Kind::List => None,
        Kind::Table | Kind::Seconds | Kind::Number | Kind::Size | Kind::Count => None,
    }
}

/// What a key of this kind takes, for people.
pub(super) fn expected(kind: Kind) -> String {
    let one_of = |names: Vec<&str>| format!("one of {}", names.join(", "));
    match kind {
        Kind::Text | Kind::Secret => "a string".to_owned(),
        Kind::Count => "a number".to_owned(),
        Kind::Choice(names) => one_of(names.to_vec()),
        Kind::Mode => one_of(Mode::names()),
        Kind::Engine => one_of(ENGINES.iter().map(|it| it.name).collect()),
        Kind::Switch => "true or false".to_owned(),
        Kind::SwitchOrAuto => "true, false or \"auto\"".to_owned(),
        Kind::List => "a list of strings".to_owned(),
        Kind::Table => "a table of strings".to_owned(),
        Kind::Seconds => "a number of seconds".to_owned(),
        Kind::Number => "a whole number".to_owned(),
        Kind::Size => "a number of bytes, or a text such as \"500 MB\" or \"2 GiB\"".to_owned(),
    }
}

/// Seconds that fit a clock.
pub(super) fn duration(seconds: f64) -> Option<Duration> {
    const A_YEAR: f64 = 366.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|_| seconds <= A_YEAR)
}

/// Bytes, with a unit or without.
fn size(text: &str) -> Option<u64> {
    let end = text.find(|it: char| !it.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Whether it begins with the name of an engine; what follows a colon is looked at when it is used.
fn is_engine(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    ENGINES.iter().any(|it| it.name == name)
}
