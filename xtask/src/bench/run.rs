//! `cargo xtask bench run`: what `linkspan run` costs beside the agent's program alone.
//!
//! The real Claude Code talks to the scripted model, alone, behind a program that copies its output,
//! and behind linkspan, by turns. A stream of thousands of pieces of text shows time and memory by
//! event, a stream of one word the time until something is seen, and two prompts in one session what
//! a process that stays is worth. A recording of the first stream is then played by a program that
//! does nothing else, which leaves the noise of a real agent out.

pub(super) mod guard;
pub(super) mod pipe;
mod stage;
mod table;
mod watch;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use self::{
    stage::{Lane, RunSetup},
    table::{Goals, Starts, Stream},
    watch::{Below, RunSample, watch},
};
use super::{USAGE, build, measure::Steal, print};
use crate::{
    process::{capture, run as run_command, target_dir},
    report::print_line,
};

/// The formats that a run is written in.
const FORMATS: [&str; 7] = [
    "linkspan",
    "ag-ui",
    "takopi",
    "thread",
    "acp",
    "openhands",
    "text",
];

/// The pause of the made-up agent: long enough that every line is read by itself.
const PAUSE_MICROS: u64 = 100;

#[derive(Debug)]
pub(super) struct RunOptions {
    /// Where the agents are installed.
    agents: Option<PathBuf>,
    /// Pieces of text in a stream.
    pieces: usize,
    /// Streams of each contender.
    rounds: usize,
    /// Starts of each contender.
    starts: usize,
}

impl RunOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            agents: None,
            pieces: 20_000,
            rounds: 3,
            starts: 15,
        };
        for pair in args.chunks(2) {
            match pair {
                ["--agents", it] => options.agents = Some(PathBuf::from(it).canonicalize()?),
                ["--pieces", it] => options.pieces = it.parse().context("--pieces")?,
                ["--rounds", it] => options.rounds = it.parse().context("--rounds")?,
                ["--starts", it] => options.starts = it.parse().context("--starts")?,
                _ => bail!("{USAGE}"),
            }
        }
        if options.pieces == 0 || options.rounds == 0 || options.starts == 0 {
            bail!("{USAGE}");
        }
        Ok(options)
    }
}

pub(super) fn run(options: &RunOptions) -> Result<()> {
    let target = target_dir()?;
    let stage = RunSetup::set(&build()?, options)?;
    let recording = target.join("bench/run.jsonl");
    record(&stage, &recording)?;
    let version = stage.claude_version()?;
    let by_line = format!("a recording of it, a line every {PAUSE_MICROS} µs");
    let agents = [
        (version, stage.claude().to_owned(), Goals::Judged),
        (
            by_line,
            stage.player(&recording, PAUSE_MICROS)?,
            Goals::Judged,
        ),
        // Nothing is read by itself then, and a copy of large pieces costs nothing by line.
        (
            "the same recording as fast as it goes".to_owned(),
            stage.player(&recording, 0)?,
            Goals::None,
        ),
    ];
    for (name, agent, goals) in &agents {
        let steal = Steal::begin()?;
        let streams = stream(&stage, agent, options)?;
        let steal = steal.share()?;
        print(&table::streams(name, *goals, options, &streams, steal))?;
    }
    let steal = Steal::begin()?;
    let starts = start(&stage, options)?;
    print(&table::starts(options, &starts, steal.share()?))
}

/// The agent's output without a program in between.
fn record(stage: &RunSetup, recording: &Path) -> Result<()> {
    print_line("recording");
    fs::create_dir_all(recording.parent().context("a file is in a folder")?)?;
    let mut command = stage.bare(stage.claude(), Lane::Long)?;
    run_command(command.stdout(File::create(recording)?))
}

/// Every format beside a bare copy of the same stream, by turns.
fn stream(stage: &RunSetup, agent: &Path, options: &RunOptions) -> Result<Vec<Stream>> {
    let mut copies = Vec::new();
    let mut formats = FORMATS.map(|_| Vec::new());
    for round in 1..=options.rounds {
        print_line(&format!("round {round}: copy"));
        let mut copy = stage.copied(agent, Lane::Long)?;
        copies.push(whole(watch(&mut copy, Below::Agent)?, options)?);
        for (format, samples) in FORMATS.iter().zip(&mut formats) {
            print_line(&format!("round {round}: {format}"));
            let mut run = stage.linkspan(agent, Lane::Long, format)?;
            samples.push(whole(watch(&mut run, Below::Guard)?, options)?);
        }
    }
    let formats = FORMATS.iter().zip(formats);
    let formats = formats.map(|(name, samples)| Stream::new(name, samples, options));
    Ok([Stream::new("copy", copies, options)]
        .into_iter()
        .chain(formats)
        .collect())
}

/// A faster run that left something out does not count.
fn whole(sample: RunSample, options: &RunOptions) -> Result<RunSample> {
    let n_pieces = sample.n_pieces;
    ensure!(
        n_pieces > 0 && n_pieces.is_multiple_of(options.pieces),
        "{n_pieces} pieces of text were printed, not {} or a multiple",
        options.pieces
    );
    Ok(sample)
}

/// How soon something is seen: of the agent alone, behind linkspan, and of one that is there already.
fn start(stage: &RunSetup, options: &RunOptions) -> Result<Starts> {
    let mut starts = Starts::default();
    for round in 1..=options.starts {
        print_line(&format!("start {round} of {}", options.starts));
        let mut bare = stage.bare(stage.claude(), Lane::Short)?;
        let bare = watch(&mut bare, Below::Agent)?.first;
        let mut run = stage.linkspan(stage.claude(), Lane::Short, "linkspan")?;
        let run = watch(&mut run, Below::Guard)?.first;
        starts.bare.push(millis(bare));
        starts.run.push(millis(run));
        let said = capture(stage.warm()?.stdin(Stdio::null()))?.stdout;
        let [fresh, warm]: [Prompt; 2] = serde_json::from_slice(&said)?;
        starts.fresh.push(fresh.event_ms);
        starts.fresh_text.push(fresh.text_ms);
        starts.warm.push(warm.event_ms);
        starts.warm_text.push(warm.text_ms);
    }
    Ok(starts)
}

/// What the example `warm` says of each prompt.
#[derive(Debug, Deserialize)]
struct Prompt {
    event_ms: f64,
    text_ms: f64,
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
