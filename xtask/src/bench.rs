//! `cargo xtask bench`: how fast and in how much memory, beside what bounds it.
//!
//! Everything is measured as a child process in the same run: the numbers of a shared machine mean
//! nothing by themselves, their ratios do. By hand only; no test waits for a clock.

mod acp;
mod ag_ui;
mod cluster;
mod contenders;
mod corpus;
mod dialects;
mod floor;
mod measure;
mod readers;
mod run;
mod sandbox;
mod serve;
mod table;
mod text;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};

use crate::{
    process::{cargo, run as run_command, target_dir},
    report::print_line,
};
use contenders::Contender;
use corpus::Kind;
use measure::{ProcessSample, Steal};

const USAGE: &str = "usage: cargo xtask bench convert [--megabytes N] [--rounds N]
       cargo xtask bench growth [--rounds N]
       cargo xtask bench ag-ui [--pieces N] [--rate N] [--megabytes N]
       cargo xtask bench run [--agents FOLDER] [--pieces N] [--rounds N] [--starts N]
       cargo xtask bench serve [--events N] [--rounds N]
       cargo xtask bench acp [--agents FOLDER] [--pieces N] [--rounds N]
       cargo xtask bench cluster [--rounds N]";

/// The sizes that `growth` compares.
const SIZES: [u64; 3] = [10, 100, 1000];

/// What the small file holds: for `jq`, which is slow, and to see whether memory grows.
const SLICE_MEGABYTES: u64 = 20;

pub(crate) fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        ["convert", rest @ ..] => convert(&options(rest)?)?,
        ["growth", rest @ ..] => growth(&options(rest)?)?,
        ["ag-ui", rest @ ..] => ag_ui::run(&ag_ui::AgUiOptions::read(rest)?)?,
        ["run", rest @ ..] => run::run(&run::RunOptions::read(rest)?)?,
        ["serve", rest @ ..] => serve::run(&serve::ServeOptions::read(rest)?)?,
        ["acp", rest @ ..] => acp::run(&acp::AcpOptions::read(rest)?)?,
        ["cluster", rest @ ..] => cluster::run(&cluster::ClusterOptions::read(rest)?)?,
        // What follows is run by the above, built for speed.
        ["corpus", name, megabytes, path] => {
            let (megabytes, path) = (megabytes.parse()?, Path::new(path));
            match Kind::named(name) {
                Some(kind) => corpus::write(kind, megabytes, path)?,
                None => dialects::write(name, megabytes, path)?,
            }
        }
        ["copy", program, args @ ..] => run::pipe::copy(program, args)?,
        ["play", path, micros] => run::pipe::play(Path::new(path), micros.parse()?)?,
        ["floor", floor, path] => print(&format!("{}\n", floor::run(floor, Path::new(path))?))?,
        _ => bail!("{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

struct ConvertOptions {
    megabytes: u64,
    rounds: usize,
}

fn options(args: &[&str]) -> Result<ConvertOptions> {
    let mut options = ConvertOptions {
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

/// Builds for speed what is measured by any bench: by one command, so that the next bench finds it built.
fn build() -> Result<PathBuf> {
    let programs = ["linkspan", "scripted-model", "xtask"];
    let examples = ["ag_ui_server", "cluster", "crowd", "floor", "rate", "warm"];
    let mut build = cargo();
    build.args(["build", "--release", "--workspace"]);
    build.args(programs.iter().flat_map(|it| ["--bin", it]));
    build.args(examples.iter().flat_map(|it| ["--example", it]));
    run_command(&mut build)?;
    Ok(target_dir()?.join("release"))
}

fn programs() -> Result<contenders::BenchPrograms> {
    Ok(contenders::BenchPrograms::in_folder(&build()?))
}

fn convert(options: &ConvertOptions) -> Result<()> {
    let programs = programs()?;
    let folder = target_dir()?.join("bench");
    for kind in Kind::ALL {
        let file = folder.join(format!("{}.jsonl", kind.name()));
        programs.write_corpus(kind.name(), options.megabytes, &file)?;
        let slice = folder.join(format!("{}.slice.jsonl", kind.name()));
        programs.write_corpus(kind.name(), SLICE_MEGABYTES.min(options.megabytes), &slice)?;
        let contenders = programs.contenders(&file, &slice)?;
        let steal = Steal::begin()?;
        let rounds = measure_rounds(&contenders, options.rounds)?;
        let rows = contenders.iter().zip(rounds);
        let rows = rows.map(|(it, samples)| table::ConvertRow::new(it, samples));
        let rows: Vec<table::ConvertRow> = rows.collect::<Result<_>>()?;
        print(&table::throughput(kind, options, &rows, steal.share()?))?;
        let small = measure_rounds(&programs.writers(&slice)?, 1)?;
        print(&table::memory(&rows, &small, &file, &slice)?)?;
    }
    readers(&programs, &folder, options)
}

/// Every reader over a session of its own kind.
fn readers(
    programs: &contenders::BenchPrograms,
    folder: &Path,
    options: &ConvertOptions,
) -> Result<()> {
    let contenders = readers::READERS
        .iter()
        .map(|it| it.contender(programs, folder, options.megabytes));
    let contenders: Vec<Contender> = contenders.collect::<Result<_>>()?;
    let steal = Steal::begin()?;
    let rounds = measure_rounds(&contenders, options.rounds)?;
    let rows = contenders.iter().zip(rounds);
    let rows = rows.map(|(it, samples)| table::ConvertRow::new(it, samples));
    let rows: Vec<table::ConvertRow> = rows.collect::<Result<_>>()?;
    print(&table::readers(options, &rows, steal.share()?))
}

/// Whether the cost of a byte depends on how many there are, or on how they are cut.
fn growth(options: &ConvertOptions) -> Result<()> {
    let programs = programs()?;
    let folder = target_dir()?.join("bench");
    let mut grown = Vec::new();
    let steal = Steal::begin()?;
    for source in readers::READERS.iter().chain(readers::SHAPES) {
        let mut rows = Vec::new();
        for megabytes in SIZES {
            let contender = source.contender(&programs, &folder, megabytes)?;
            let samples = measure_rounds(std::slice::from_ref(&contender), options.rounds)?;
            contender.forget()?;
            rows.push(table::ConvertRow::new(&contender, samples.concat())?);
        }
        grown.push(rows);
    }
    print(&table::growth(&SIZES, &grown, steal.share()?))
}

/// Samples by contender. They take turns, so that a bad minute of the machine hits them all.
fn measure_rounds(contenders: &[Contender], rounds: usize) -> Result<Vec<Vec<ProcessSample>>> {
    let mut samples: Vec<Vec<ProcessSample>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            print_line(&format!("round {round}: {}", contender.name));
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
