//! `linkspan formats`: the table of formats, for people or as JSON lines.

use formats::registry::{FORMATS, Format};
use serde::Serialize;

use crate::cli::FormatsArgs;
use crate::exit::{self, Failure};
use crate::table;

pub(crate) fn run(args: &FormatsArgs) -> Result<(), Failure> {
    let text = if args.json { json() } else { table() };
    exit::print(text.as_bytes())
}

#[derive(Serialize)]
struct FormatRow {
    name: &'static str,
    summary: &'static str,
    read: bool,
    write: bool,
    profiles: Vec<ProfileRow>,
}

#[derive(Serialize)]
struct ProfileRow {
    name: &'static str,
    summary: &'static str,
}

fn json() -> String {
    let mut text = String::new();
    for format in FORMATS {
        let row = FormatRow {
            name: format.name,
            summary: format.summary,
            read: format.reader.is_some(),
            write: format.writer.is_some(),
            profiles: profiles(format),
        };
        text.push_str(&serde_json::to_string(&row).expect("a row has only strings and booleans"));
        text.push('\n');
    }
    text
}

fn profiles(format: &Format) -> Vec<ProfileRow> {
    let profiles = format.profiles.iter();
    profiles
        .map(|it| ProfileRow {
            name: it.name,
            summary: it.summary,
        })
        .collect()
}

/// One line per format, and one below it for each of its profiles.
fn table() -> String {
    let mut rows = vec![["format", "read", "write", "profile", "what it is"]];
    for it in FORMATS {
        let word = |has: bool| if has { "yes" } else { "-" };
        let (read, write) = (word(it.reader.is_some()), word(it.writer.is_some()));
        rows.push([it.name, read, write, "", it.summary]);
        let profiles = it.profiles.iter();
        rows.extend(profiles.map(|it| ["", "", "", it.name, it.summary]));
    }
    table::aligned(&rows)
}
