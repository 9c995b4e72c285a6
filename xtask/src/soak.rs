//! `cargo xtask soak`: what the tests do for seconds, for as long as it takes to trust it. By hand only.
//!
//! The tests of the runner and of crashes say what they did, one line each; the fuzz targets go on from
//! their corpus.

use anyhow::{Context, Result, bail};

use crate::{
    fuzz,
    process::{cargo, run},
    report::{Step, Warnings},
};

/// Hostile agents, of which the fast tier has a tenth; half as many servers are killed.
const RUNS: usize = 2000;

pub(crate) fn steps(args: &[&str]) -> Result<Vec<Step>> {
    let (mut seconds, mut runs) = (fuzz::LONG, RUNS);
    for pair in args.chunks(2) {
        match pair {
            ["--seconds", it] => seconds = it.parse().context("--seconds")?,
            ["--runs", it] => runs = it.parse().context("--runs")?,
            _ => bail!("usage: cargo xtask soak [--seconds N] [--runs N]"),
        }
    }
    Ok(vec![
        Step::new("runner", move || runner(runs)),
        Step::new("fuzz", move || fuzz::run(seconds)),
    ])
}

fn runner(runs: usize) -> Result<Warnings> {
    let mut tests = cargo();
    tests
        // Nothing is chosen before the dashes: cargo would not build the agents then, which are examples.
        .args(["test", "--package", "linkspan", "--"])
        .args(["runner::", "crash::"])
        // One after the other, so that the figures of each are its own.
        .args(["--test-threads", "1"])
        .env("LINKSPAN_SOAK_RUNS", runs.to_string());
    run(&mut tests)?;
    Ok(Warnings::new())
}
