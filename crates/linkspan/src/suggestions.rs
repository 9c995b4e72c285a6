//! Names that are not in the table of formats, and the one that was probably meant.

use formats::registry::{Error, FORMATS, Format};
use linkspan::DetectError;
use runner::did_you_mean;

use crate::exit::{Failure, printable};

/// The input's format cannot be used.
pub(crate) fn source(err: Error) -> Failure {
    format(err, "can be read", &names(|it| it.reader.is_some()))
}

/// The format of the input is unknown.
pub(crate) fn undetected_format(name: &str, why: DetectError) -> Failure {
    let formats = names(|it| it.reader.is_some());
    let hint = match &why {
        DetectError::Several(names) => {
            format!("name its format with `--from`: {}", names.join(", "))
        }
        DetectError::Unknown => format!("name its format with `--from`: {}", formats.join(", ")),
        DetectError::Empty => "with `--from` an empty stream is a run that was lost".to_owned(),
        DetectError::Stored(_) => "only what the agent prints can be read".to_owned(),
        DetectError::Document => "`jq -c .` makes lines of a document".to_owned(),
    };
    let message = format!("{}: `{}`", linkspan::Error::Detect(why), printable(name));
    Failure::usage(message, hint)
}

/// The input was named, and none of its lines is of that format.
pub(crate) fn foreign(name: &str, named: &str, n_frames: u64, looks_like: Option<&str>) -> Failure {
    let lines = if n_frames == 1 { "line" } else { "lines" };
    let message = format!(
        "none of the {n_frames} {lines} of `{}` is {named}",
        printable(name)
    );
    let hint = match looks_like {
        Some(it) => format!("it looks like {it}, which linkspan does not read"),
        None => "without `--from` linkspan detects the format".to_owned(),
    };
    Failure::usage(message, hint)
}

/// The warning about an input that looks like another format than the named one.
pub(crate) fn misnamed(looks_like: &str, named: &str) -> String {
    format!("linkspan: the input looks like {looks_like}, but is being read as {named}\n")
}

/// The output's format or profile cannot be used.
pub(crate) fn target(err: Error) -> Failure {
    format(err, "can be written", &names(|it| it.writer.is_some()))
}

/// A flag takes one of a few values, and this is none of them.
pub(crate) fn value(name: &str, offer: &[String]) -> String {
    let offer: Vec<&str> = offer.iter().map(String::as_str).collect();
    hint(name, "possible values", &offer)
}

/// There is no command of this name.
pub(crate) fn command(name: &str, offer: &[&str]) -> Failure {
    let message = format!("there is no command `{}`", printable(name));
    Failure::usage(message, hint(name, "commands", offer))
}

fn format(err: Error, way: &str, offer: &[&str]) -> Failure {
    let hint = match &err {
        Error::UnknownFormat(name) => hint(name, way, offer),
        // The name is right, so a similar one would be no help.
        Error::CannotRead(_) | Error::CannotWrite(_) => hint("", way, offer),
        Error::UnknownProfile { format, profile } => profiles(format, profile),
    };
    Failure::usage(linkspan::Error::from(err).to_string(), hint)
}

fn profiles(format: &str, profile: &str) -> String {
    let of_format = FORMATS.iter().filter(|it| it.name == format);
    let offer: Vec<&str> = of_format
        .flat_map(|it| it.profiles.iter().map(|it| it.name))
        .collect();
    if offer.is_empty() {
        format!("`{format}` has only one shape: leave `--profile` out")
    } else {
        hint(profile, &format!("profiles of `{format}`"), &offer)
    }
}

fn names(wanted: fn(&Format) -> bool) -> Vec<&'static str> {
    let formats = FORMATS.iter().filter(|it| wanted(it));
    formats.map(|it| it.name).collect()
}

fn hint(name: &str, what: &str, offer: &[&str]) -> String {
    let all = format!("{what}: {}", offer.join(", "));
    did_you_mean(name, offer.iter().copied(), &all)
}
