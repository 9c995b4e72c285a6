//! `bench cluster`: the journal in PostgreSQL beside a bare loop with the same batches, and how soon an event
//! of one node is on another.
//!
//! `crates/journal/examples/cluster` measures, with a server of its own that waits for its disk.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{
    USAGE, build,
    measure::Steal,
    print,
    table::{MAX_STEAL, beside_bare, goal},
};
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

/// The most milliseconds from a writer on one node to a follower on another.
const MAX_MEDIAN: f64 = 15.0;
const MAX_P99: f64 = 100.0;

/// Appends a second, by round.
#[derive(Debug, Deserialize)]
struct ClusterRates {
    writers: usize,
    bare: Vec<f64>,
    journal: Vec<f64>,
}

/// Milliseconds from a writer on one node to a follower on another.
#[derive(Debug, Deserialize)]
struct HintDelay {
    p50: f64,
    p99: f64,
    max: f64,
}

pub(super) fn run(options: &ClusterOptions) -> Result<()> {
    let program = build()?.join("examples/cluster");
    let mut command = Command::new(&program);
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
    text.push_str(&delay(&program)?);
    print(&text)
}

fn delay(program: &Path) -> Result<String> {
    print_line("500 events a second from one node to another");
    let steal = Steal::begin()?;
    let printed = capture(Command::new(program).arg("delay"))?.stdout;
    let HintDelay { p50, p99, max } = serde_json::from_slice(&printed)?;
    let is_quiet = steal.share()? <= MAX_STEAL;
    let goal = goal(
        "≤ 15 and ≤ 100 ms",
        is_quiet,
        p50 <= MAX_MEDIAN && p99 <= MAX_P99,
    );
    Ok(format!(
        "\nan event of one node on another: p50 {p50:.1} ms, p99 {p99:.1} ms, at most {max:.1} ms ({goal})\n"
    ))
}
