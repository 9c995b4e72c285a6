//! `cargo xtask bench`: how fast and in how much memory, beside what bounds it.
//!
//! Everything is measured as a child process in the same run: the numbers of a shared machine mean
//! nothing by themselves, their ratios do. By hand only; no test waits for a clock.

mod contenders;
mod corpus;
mod floor;
mod measure;
mod table;
mod text;

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result, bail};

use crate::{
    process::{cargo, run as run_command, target_dir},
    report::say,
};
use contenders::Contender;
use corpus::Kind;
use measure::{Sample, Steal};

const USAGE: &str = "usage: cargo xtask bench convert [--megabytes N] [--rounds N]";

/// What the small file holds: for `jq`, which is slow, and to see whether memory grows.
const SLICE_MEGABYTES: u64 = 20;

pub(crate) fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        ["convert", rest @ ..] => convert(&options(rest)?)?,
        // What follows is run by the above, built for speed.
        ["corpus", kind, megabytes, path] => {
            corpus::write(Kind::named(kind)?, megabytes.parse()?, Path::new(path))?;
        }
        ["floor", floor, path] => print(&format!("{}\n", floor::run(floor, Path::new(path))?))?,
        _ => bail!("{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

struct Options {
    megabytes: u64,
    rounds: usize,
}

fn options(args: &[&str]) -> Result<Options> {
    let mut options = Options {
        megabytes: 200,
        rounds: 3,
    };
    for pair in args.chunks(2) {
        match pair {
            ["--megabytes", it] => options.megabytes = it.parse().context("--megabytes")?,
            ["--rounds", it] => options.rounds = it.parse().context("--rounds")?,
            _ => bail!("{USAGE}"),
        }
    }
    if options.rounds == 0 || options.megabytes == 0 {
        bail!("{USAGE}");
    }
    Ok(options)
}

fn convert(options: &Options) -> Result<()> {
    let built = target_dir()?.join("release");
    run_command(cargo().args([
        "build",
        "--release",
        "--package",
        "linkspan",
        "--package",
        "xtask",
    ]))?;
    let folder = target_dir()?.join("bench");
    let programs = contenders::Programs::in_folder(&built);
    for kind in Kind::ALL {
        let file = folder.join(format!("{}.jsonl", kind.name()));
        programs.write_corpus(kind, options.megabytes, &file)?;
        let slice = folder.join(format!("{}.slice.jsonl", kind.name()));
        programs.write_corpus(kind, SLICE_MEGABYTES.min(options.megabytes), &slice)?;
        let contenders = programs.contenders(&file, &slice)?;
        let steal = Steal::begin()?;
        let rounds = measure_rounds(&contenders, options.rounds)?;
        let rows = contenders.iter().zip(rounds);
        let rows = rows.map(|(it, samples)| table::Row::new(it, samples));
        let rows: Vec<table::Row> = rows.collect::<Result<_>>()?;
        print(&table::throughput(kind, options, &rows, steal.share()?))?;
        let small = measure_rounds(&programs.writers(&slice)?, 1)?;
        print(&table::memory(&rows, &small, &file, &slice)?)?;
    }
    Ok(())
}

/// Samples by contender. They take turns, so that a bad minute of the machine hits them all.
fn measure_rounds(contenders: &[Contender], rounds: usize) -> Result<Vec<Vec<Sample>>> {
    let mut samples: Vec<Vec<Sample>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            say(&format!("round {round}: {}", contender.name));
            samples.push(contender.measure()?);
        }
    }
    Ok(samples)
}

fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
