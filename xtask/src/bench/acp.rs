//! `cargo xtask bench acp`: `linkspan acp` beside the adapter that editors start for Claude Code.
//!
//! Both get the same program of Claude Code and the same scripted model, by turns, each time in an
//! empty home. What is measured is what they add to the agent: the time until they answer and until
//! the first words are seen, a second prompt, and their own memory and processor time while thousands
//! of pieces of text stream. Claude Code itself is in the times on the clock, as a user has it, and
//! not in the memory and processor time.

mod client;
mod stage;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use self::{
    client::{AcpSample, Client},
    stage::AcpSetup,
};
use super::{USAGE, build, measure::Steal, print};
use crate::report::print_line;

#[derive(Debug)]
pub(super) struct AcpOptions {
    /// Where the agents are installed.
    agents: Option<PathBuf>,
    /// Pieces of text in the stream.
    pieces: usize,
    rounds: usize,
}

impl AcpOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            agents: None,
            pieces: 5000,
            rounds: 7,
        };
        for pair in args.chunks(2) {
            match pair {
                ["--agents", it] => options.agents = Some(PathBuf::from(it).canonicalize()?),
                ["--pieces", it] => options.pieces = it.parse().context("--pieces")?,
                ["--rounds", it] => options.rounds = it.parse().context("--rounds")?,
                _ => bail!("{USAGE}"),
            }
        }
        if options.pieces == 0 || options.rounds == 0 {
            bail!("{USAGE}");
        }
        Ok(options)
    }
}

/// The program between the client and Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcpContender {
    Linkspan,
    Adapter,
}

pub(super) fn run(options: &AcpOptions) -> Result<()> {
    let stage = AcpSetup::set(&build()?, options)?;
    let steal = Steal::begin()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        for (contender, samples) in [
            (AcpContender::Linkspan, &mut ours),
            (AcpContender::Adapter, &mut theirs),
        ] {
            print_line(&format!("round {round}: {contender:?}"));
            samples.push(measure(&stage, contender, options)?);
        }
    }
    print(&table::table(options, &ours, &theirs, steal.share()?))
}

fn measure(stage: &AcpSetup, contender: AcpContender, options: &AcpOptions) -> Result<AcpSample> {
    let client = Client::start(&mut stage.command(contender)?, contender)?;
    client.measure(&stage.work(), options.pieces)
}
