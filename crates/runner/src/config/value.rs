//! What a key can hold, and how text becomes it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::keys::ValueKind;
use crate::engines::{self, ENGINES};
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
    /// Reads the text of a variable or a flag; the error is what was expected.
    pub(super) fn from_text(kind: ValueKind, text: &str) -> Result<Self, String> {
        let expected = || expected(kind);
        match kind {
            ValueKind::Text => Ok(Self::Text(text.to_owned())),
            ValueKind::Choice(names) if names.contains(&text) => Ok(Self::Text(text.to_owned())),
            ValueKind::Mode if Mode::parse(text).is_some() => Ok(Self::Text(text.to_owned())),
            ValueKind::Engine if is_engine(text) => Ok(Self::Text(text.to_owned())),
            ValueKind::Seconds => {
                let seconds = text.parse().ok().and_then(duration);
                seconds.map(Self::Seconds).ok_or_else(expected)
            }
            ValueKind::Number => text.parse().map(Self::Number).map_err(|_| expected()),
            ValueKind::Size => size(text).map(Self::Number).ok_or_else(expected),
            ValueKind::Secret => Ok(Self::Secret(text.to_owned())),
            ValueKind::Count => text.parse().map(Self::Count).map_err(|_| expected()),
            ValueKind::SwitchOrAuto => match text {
                "auto" => Ok(Self::Text(text.to_owned())),
                "true" => Ok(Self::Switch(true)),
                "false" => Ok(Self::Switch(false)),
                _ => Err(expected()),
            },
            ValueKind::Choice(_) | ValueKind::Mode | ValueKind::Engine => Err(expected()),
            ValueKind::Switch | ValueKind::List | ValueKind::Table => Err(expected()),
        }
    }
}

/// The content of a value, where it is of that kind.
impl Value {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(it) | Self::Secret(it) => Some(it),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[String]> {
        match self {
            Self::List(it) => Some(it),
            _ => None,
        }
    }

    pub(super) fn table(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Table(it) => Some(it),
            _ => None,
        }
    }

    pub(super) fn seconds(&self) -> Option<Duration> {
        match self {
            Self::Seconds(it) => Some(*it),
            _ => None,
        }
    }
}

/// The value that was probably meant, where a key takes one of a few.
pub(super) fn meant(kind: ValueKind, text: &str) -> Option<&'static str> {
    match kind {
        ValueKind::Choice(names) => nearest(text, names.iter().copied()),
        ValueKind::Mode => nearest(text, Mode::names()),
        ValueKind::Engine => nearest(engines::family(text), ENGINES.iter().map(|it| it.name)),
        ValueKind::Text
        | ValueKind::Secret
        | ValueKind::Switch
        | ValueKind::SwitchOrAuto
        | ValueKind::List => None,
        ValueKind::Table
        | ValueKind::Seconds
        | ValueKind::Number
        | ValueKind::Size
        | ValueKind::Count => None,
    }
}

/// The values that a key of this kind takes, for error messages.
pub(super) fn expected(kind: ValueKind) -> String {
    let one_of = |names: Vec<&str>| format!("one of {}", names.join(", "));
    match kind {
        ValueKind::Text | ValueKind::Secret => "a string".to_owned(),
        ValueKind::Count => "a number".to_owned(),
        ValueKind::Choice(names) => one_of(names.to_vec()),
        ValueKind::Mode => one_of(Mode::names()),
        ValueKind::Engine => one_of(ENGINES.iter().map(|it| it.name).collect()),
        ValueKind::Switch => "true or false".to_owned(),
        ValueKind::SwitchOrAuto => "true, false or \"auto\"".to_owned(),
        ValueKind::List => "a list of strings".to_owned(),
        ValueKind::Table => "a table of strings".to_owned(),
        ValueKind::Seconds => "a number of seconds".to_owned(),
        ValueKind::Number => "a whole number".to_owned(),
        ValueKind::Size => {
            "a number of bytes, or a text such as \"500 MB\" or \"2 GiB\"".to_owned()
        }
    }
}

/// Seconds that fit a clock.
pub(super) fn duration(seconds: f64) -> Option<Duration> {
    const A_YEAR: f64 = 366.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds)
        .ok()
        // Such a time can be added to any moment; a larger one might overflow the clock.
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
    engines::find(text).is_some()
}
