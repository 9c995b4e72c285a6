//! `linkspan formats`: the table of formats, for people or as JSON lines.

use formats::registry::{self, FORMATS, Format};
use serde::Serialize;

use crate::cli::FormatsArgs;
use crate::exit::{self, Failure};
use crate::table;

pub(crate) fn run(args: &FormatsArgs) -> Result<(), Failure> {
    let text = match args.json {
        true => exit::json_lines(FORMATS.iter().map(row)),
        false => table(),
    };
    exit::print(text.as_bytes())
}

#[derive(Serialize)]
struct FormatRow {
    name: &'static str,
    summary: &'static str,
    read: bool,
    write: bool,
    /// linkspan's own events.
    canonical: bool,
    profiles: Vec<ProfileRow>,
}

#[derive(Serialize)]
struct ProfileRow {
    name: &'static str,
    summary: &'static str,
}

fn row(format: &Format) -> FormatRow {
    let profiles = format.profiles.iter().map(|it| ProfileRow {
        name: it.name,
        summary: it.summary,
    });
    FormatRow {
        name: format.name,
        summary: format.summary,
        read: format.reader.is_some(),
        write: format.writer.is_some(),
        canonical: format.name == registry::CANONICAL,
        profiles: profiles.collect(),
    }
}

/// One line per format, and one below it for each of its profiles.
fn table() -> String {
    let mut rows = Vec::new();
    for it in FORMATS {
        let word = |has: bool| if has { "yes" } else { "-" };
        let (read, write) = (word(it.reader.is_some()), word(it.writer.is_some()));
        rows.push([it.name, read, write, "", it.summary]);
        let profiles = it.profiles.iter();
        rows.extend(profiles.map(|it| ["", "", "", it.name, it.summary]));
    }
    let heading = ["format", "read", "write", "profile", "what it is"];
    table::aligned(heading, rows.into_iter().map(|row| row.map(str::to_owned)))
}
