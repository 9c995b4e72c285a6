//! Values from outside that become arguments: they are never flags, and never end early.
//!
//! Prompts may hold anything, so they travel behind `--` or on stdin. Ids, models and tools are short
//! words that travel as values of flags; one that could be read as a flag is refused.

use super::Error;

/// Longer than any agent's id; a longer one is a mistake or an attack.
const MAX_BYTES: usize = 512;

/// A session id that can be handed to an agent. Ids are opaque, but never flags.
pub(super) fn id(id: &str) -> Result<&str, Error> {
    flag_value("the session id", id)
}

pub(super) fn model(model: &str) -> Result<&str, Error> {
    flag_value("the model", model)
}

/// The verbosities that Codex has.
pub(crate) const VERBOSITIES: &[&str] = &["low", "medium", "high"];

pub(super) fn verbosity(verbosity: &str) -> Result<&str, Error> {
    match VERBOSITIES.contains(&verbosity) {
        true => Ok(verbosity),
        false => Err(refused(
            "the verbosity",
            "is none of low, medium and high",
            verbosity,
        )),
    }
}

pub(super) fn tools(tools: &[String]) -> Result<(), Error> {
    tools
        .iter()
        .try_for_each(|it| flag_value("the tool", it).map(|_| ()))
}

/// Tools for an engine that knows them by name only: a pattern such as `shell(rm *)` names none.
pub(super) fn whole_tools(tools: &[String]) -> Result<(), Error> {
    self::tools(tools)?;
    match tools.iter().find(|it| it.contains('(')) {
        Some(it) => Err(refused(
            "the tool",
            "is a pattern, where this engine takes the name of a whole tool",
            it,
        )),
        None => Ok(()),
    }
}

pub(super) fn flag_value<'a>(what: &'static str, value: &'a str) -> Result<&'a str, Error> {
    let why = if value.is_empty() {
        "is empty"
    } else if value.len() > MAX_BYTES {
        "is longer than 512 bytes"
    } else if value.starts_with('-') {
        "begins with `-`"
    // A NUL would end the argument early, and a terminal obeys others wherever the value is shown.
    } else if value.chars().any(char::is_control) {
        "holds a control character"
    } else if value.trim() != value {
        "begins or ends with a space"
    } else {
        return Ok(value);
    };
    Err(refused(what, why, value))
}

/// A name that is part of a dotted key.
pub(super) fn key<'a>(what: &'static str, value: &'a str) -> Result<&'a str, Error> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    match flag_value(what, value)?.chars().all(is_plain) {
        true => Ok(value),
        false => Err(refused(
            what,
            "has more than letters, digits, `_` and `-`",
            value,
        )),
    }
}

/// The value is shown in part, and without what a terminal would obey.
pub(super) fn refused(what: &'static str, why: &'static str, value: &str) -> Error {
    let shown = value
        .chars()
        .take(40)
        .flat_map(char::escape_debug)
        .collect();
    Error::BadValue { what, why, shown }
}

/// Whether this is the usual form of a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    let is_dash = |at| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, it): (usize, u8)| match is_dash(at) {
        true => it == b'-',
        false => it.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}
