//! `docs/matrix.md`: every reader beside every writer, from the run that judged them.

use std::{collections::BTreeMap, env, fs};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{process::root, report::print_line};

/// One recording that came through one writer.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) reader: String,
    pub(crate) writer: String,
    /// Written without a profile: only these are shown.
    pub(crate) is_default: bool,
    pub(crate) losses: Vec<Loss>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Loss {
    pub(crate) what: String,
    pub(crate) count: u64,
}

/// What judges the output of each writer.
const JUDGES: &[(&str, &str)] = &[
    (
        "claude",
        "our own reader, which finds the same in it, in `cargo test`",
    ),
    ("takopi", "the rules of its page, in `cargo test`"),
    ("thread", "a strict JSON Schema of ThreadEvents"),
    ("openhands", "`openhands-sdk`, which loads every line"),
    (
        "acp",
        "the ACP schema, its lifecycle, and the ACP SDK's client",
    ),
    (
        "ag-ui",
        "`@ag-ui/client`, in chunks of 1 byte, 7 bytes and whole",
    ),
    ("linkspan", "read back and written again, byte for byte"),
    ("markdown", "the rules of its page, in `cargo test`"),
    ("html", "headless Chromium"),
    ("text", "the rules of its page, in `cargo test`"),
];

/// Compares the page with this run; `UPDATE_EXPECT=1` writes it.
pub(crate) fn check(converted: &[Converted]) -> Result<()> {
    let path = root().join("docs/matrix.md");
    let page = page(converted);
    if fs::read_to_string(&path).is_ok_and(|it| it == page) {
        return Ok(());
    }
    if env::var_os("UPDATE_EXPECT").is_none() {
        bail!(
            "docs/matrix.md is not what this run says; `UPDATE_EXPECT=1 cargo xtask peers` writes it"
        );
    }
    fs::write(&path, page).with_context(|| format!("cannot write `{}`", path.display()))?;
    print_line("docs/matrix.md was written");
    Ok(())
}

#[derive(Default)]
struct Cell {
    n: usize,
    losses: BTreeMap<String, u64>,
}

fn page(converted: &[Converted]) -> String {
    let mut cells: BTreeMap<(&str, &str), Cell> = BTreeMap::new();
    for it in converted.iter().filter(|it| it.is_default) {
        let cell = cells.entry((&it.reader, &it.writer)).or_default();
        cell.n += 1;
        for loss in &it.losses {
            *cell.losses.entry(loss.what.clone()).or_default() += loss.count;
        }
    }
    let mut readers: Vec<&str> = cells.keys().map(|it| it.0).collect();
    readers.dedup();
    let is_written = |it: &&(&str, &str)| cells.keys().any(|key| key.1 == it.0);
    let writers: Vec<_> = JUDGES.iter().filter(is_written).collect();

    let mut text = "# The matrix\n\nEvery recording of every reader goes through every writer, and what comes out is judged by its consumer's own code.\nA cell says how many recordings passed. `cargo xtask peers` runs them all and keeps this page.\n\n| from \\ to |".to_owned();
    for (writer, _) in &writers {
        text.push_str(&format!(" {writer} |"));
    }
    text.push_str("\n| --- |");
    text.push_str(&" --: |".repeat(writers.len()));
    text.push('\n');
    for reader in &readers {
        text.push_str(&format!("| `{reader}` |"));
        for (writer, _) in &writers {
            let n = cells.get(&(*reader, *writer)).map_or(0, |it| it.n);
            text.push_str(&format!(" {n} |"));
        }
        text.push('\n');
    }
    text.push_str("\n## Who judges\n\n");
    for (writer, judge) in &writers {
        text.push_str(&format!("- `{writer}`: {judge}\n"));
    }
    text.push_str("\n## What is lost\n\nWhat a target has no place for, in all recordings of a format together; `--report` says it for one stream.\n");
    for (writer, _) in &writers {
        let rows: Vec<_> = readers
            .iter()
            .filter_map(|reader| Some((reader, cells.get(&(*reader, *writer))?)))
            .filter(|(_, cell)| !cell.losses.is_empty())
            .collect();
        text.push_str(&format!("\n### {writer}\n\n"));
        if rows.is_empty() {
            text.push_str("Nothing.\n");
            continue;
        }
        for (reader, cell) in rows {
            let losses: Vec<String> = cell
                .losses
                .iter()
                .map(|(what, n)| format!("{n} × {what}"))
                .collect();
            text.push_str(&format!("- from `{reader}`: {}\n", losses.join(", ")));
        }
    }
    text
}
