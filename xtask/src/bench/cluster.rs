//! `bench cluster`: the journal in PostgreSQL beside a bare loop with the same batches.
//!
//! `crates/journal/examples/cluster.rs` measures, with a server of its own that waits for its disk.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{USAGE, build, measure::Steal, print, table::beside_bare};
use crate::{process::capture, report::print_line};

pub(super) struct ClusterOptions {
    rounds: usize,
}

impl ClusterOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let rounds = match args {
            [] => 5,
            ["--rounds", rounds] => rounds.parse().context("--rounds")?,
            _ => bail!("{USAGE}"),
        };
        Ok(Self { rounds })
    }
}

/// Appends a second, by round.
#[derive(Debug, Deserialize)]
struct ClusterRates {
    writers: usize,
    bare: Vec<f64>,
    journal: Vec<f64>,
}

pub(super) fn run(options: &ClusterOptions) -> Result<()> {
    let mut command = Command::new(build()?.join("examples/cluster"));
    command.arg(options.rounds.to_string());
    print_line("appends of 1, 16 and 64 writers");
    let steal = Steal::begin()?;
    let printed = String::from_utf8(capture(&mut command)?.stdout)?;
    let rates = printed.lines().map(serde_json::from_str);
    let rates: Vec<ClusterRates> = rates.collect::<Result<_, _>>()?;
    let steal = steal.share()?;
    let mut text = format!(
        "\nappends of a line of 300 bytes a second into PostgreSQL, {} rounds, {:.1} % stolen\n\n",
        options.rounds,
        100.0 * steal
    );
    let rows = rates
        .iter()
        .map(|it| (it.writers, &it.bare[..], &it.journal[..]));
    beside_bare(&mut text, "writers", rows, steal);
    print(&text)
}
