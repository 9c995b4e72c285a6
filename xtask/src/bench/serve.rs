//! `cargo xtask bench serve`: what `linkspan serve` costs beside the least that can be done.
//!
//! A recording is run on the server while clients follow it over `/ws`. The events they get are kept, and
//! told again, byte by byte and at the same pace, by a bare broadcast in axum and by one in Node, to as
//! many clients. All of them are measured from the first event to the last, by turns; who has connected
//! before and leaves afterwards is not counted. Memory is looked at while nothing happens, and the
//! journal beside a bare loop over SQLite.

mod contenders;
mod crowd;
mod recording;
mod table;

use std::{thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use self::{
    contenders::{BenchServer, ServeContender, ServeSetup},
    crowd::{Crowd, CrowdReport},
    table::Memory,
};
use super::{
    USAGE, build,
    measure::{Steal, resident, whole_cpu},
    print,
};
use crate::{
    peers,
    process::{capture, target_dir},
    report::print_line,
};

/// How long a server needs to become idle after its start or a load.
const SETTLE: Duration = Duration::from_millis(700);
/// Clients that do nothing.
const IDLE_CLIENTS: usize = 1000;

#[derive(Debug)]
pub(super) struct ServeOptions {
    /// Events of a stream; a quarter of them where there are the most clients.
    events: usize,
    rounds: usize,
}

impl ServeOptions {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            events: 2000,
            rounds: 3,
        };
        for pair in args.chunks(2) {
            match pair {
                ["--events", it] => options.events = it.parse().context("--events")?,
                ["--rounds", it] => options.rounds = it.parse().context("--rounds")?,
                _ => bail!("{USAGE}"),
            }
        }
        if options.events < 100 || options.rounds == 0 {
            bail!("{USAGE}");
        }
        Ok(options)
    }
}

/// How an event looks on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventFormat {
    name: &'static str,
    /// How it begins, unlike what the bridge says besides.
    begin: &'static str,
    /// What only the last one holds.
    end: &'static str,
}

const FORMATS: [EventFormat; 2] = [
    EventFormat {
        name: "linkspan",
        begin: r#"{"v":"#,
        end: r#""run.ended""#,
    },
    EventFormat {
        name: "thread",
        begin: r#"{"sessionId":"#,
        end: r#""type":"bridge.run_ended""#,
    },
];

/// So many clients, and the pace of what they get: that of one agent, or of some that write at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    clients: usize,
    pace: Duration,
    /// So many times fewer events.
    fewer: usize,
    /// What an event to a client may cost beside the bare broadcast, and beside Node's.
    of_floor: Option<f64>,
    of_node: Option<f64>,
    /// In what time half of the deliveries are to be made, from the agent's event on, in milliseconds.
    delay: Option<f64>,
}

/// The last two differ only in their clients, which tells whether the costs grow.
const LOADS: [Load; 4] = [
    Load {
        clients: 1,
        pace: Duration::from_micros(500),
        fewer: 1,
        of_floor: None,
        of_node: None,
        delay: Some(3.0),
    },
    Load {
        clients: 100,
        pace: Duration::from_micros(500),
        fewer: 1,
        of_floor: Some(1.5),
        of_node: Some(1.0 / 3.0),
        delay: None,
    },
    Load {
        clients: 100,
        pace: Duration::from_millis(10),
        fewer: 4,
        of_floor: Some(1.2),
        of_node: None,
        delay: None,
    },
    Load {
        clients: 1000,
        pace: Duration::from_millis(10),
        fewer: 4,
        of_floor: None,
        of_node: Some(0.7),
        delay: None,
    },
];

/// A stream from its first event to its last.
#[derive(Clone, Debug)]
pub(super) struct StreamSample {
    /// Processor time of the server for one event to one client, in microseconds.
    micros: f64,
    report: CrowdReport,
}

pub(super) fn run(options: &ServeOptions) -> Result<()> {
    let target = target_dir()?;
    build()?;
    peers::install_js()?;
    let stage = ServeSetup::set(&target)?;
    for format in FORMATS {
        let steal = Steal::begin()?;
        let streams = streams(&stage, format, options)?;
        print(&table::streams(format, options, &streams, steal.share()?))?;
    }
    print(&table::memory(&memory(&stage, options)?))?;
    let steal = Steal::begin()?;
    let rates = rates(&stage, options)?;
    print(&table::journal(&rates, steal.share()?))
}

/// Samples by load and contender. The contenders take turns, so that a bad minute of the machine hits
/// them all.
fn streams(
    stage: &ServeSetup,
    format: EventFormat,
    options: &ServeOptions,
) -> Result<Vec<(Load, [Vec<StreamSample>; 3])>> {
    let mut streams = LOADS.map(|it| (it, [const { Vec::new() }; 3])).to_vec();
    for round in 1..=options.rounds {
        for (load, samples) in &mut streams {
            let recording = stage.recording(options.events / load.fewer)?;
            let events = stage.events(format);
            let mut pace = load.pace;
            for (contender, samples) in ServeContender::ALL.into_iter().zip(samples) {
                let (name, clients) = (contender.name(), load.clients);
                print_line(&format!(
                    "round {round}: {}, {clients} clients, {name}",
                    format.name
                ));
                let server = stage.start(contender)?;
                let keep = (contender == ServeContender::Linkspan).then_some(events.as_path());
                let crowd = Crowd::gather(stage, &server, load.clients, Some((format, keep)))?;
                thread::sleep(SETTLE);
                let sample = stream(server, crowd, *load, |server| match contender {
                    ServeContender::Linkspan => server.submit(&recording, load.pace),
                    ServeContender::Floor | ServeContender::Node => server.feed(&events, pace),
                })?;
                // The others go at the pace that the first one had.
                pace = sample.report.pace();
                samples.push(sample);
            }
        }
    }
    Ok(streams)
}

fn stream(
    mut server: BenchServer,
    mut crowd: Crowd,
    load: Load,
    begin: impl FnOnce(&mut BenchServer) -> Result<()>,
) -> Result<StreamSample> {
    let before = whole_cpu(server.id())?;
    begin(&mut server)?;
    let report = crowd.report()?;
    let cpu = whole_cpu(server.id())? - before;
    let CrowdReport {
        n_events,
        n_delivered,
        ..
    } = report;
    ensure!(
        n_events > 0 && n_delivered == n_events * load.clients,
        "{n_delivered} events were delivered to {} clients, not {n_events} to each",
        load.clients
    );
    let micros = cpu.as_secs_f64() * 1e6 / n_delivered as f64;
    Ok(StreamSample { micros, report })
}

/// What the server has in memory, alone and with clients that wait.
fn memory(stage: &ServeSetup, options: &ServeOptions) -> Result<Vec<Memory>> {
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        print_line(&format!("round {round}: memory"));
        let server = stage.start(ServeContender::Linkspan)?;
        thread::sleep(SETTLE);
        let alone = resident(server.id())?;
        let crowd = Crowd::gather(stage, &server, IDLE_CLIENTS, None)?;
        thread::sleep(SETTLE);
        let attended = resident(server.id())?;
        drop(crowd);
        rounds.push(Memory {
            alone: alone as f64,
            client: attended.saturating_sub(alone) as f64 / IDLE_CLIENTS as f64,
        });
    }
    Ok(rounds)
}

/// What the example `rate` says: events a second, by round.
#[derive(Debug, Deserialize)]
pub(super) struct Rates {
    /// Events in one append.
    batch: usize,
    bare: Vec<f64>,
    journal: Vec<f64>,
}

fn rates(stage: &ServeSetup, options: &ServeOptions) -> Result<Vec<Rates>> {
    print_line("journal");
    let mut command = stage.rate();
    command.arg((2 * options.rounds + 1).to_string());
    let said = String::from_utf8(capture(&mut command)?.stdout)?;
    let rates = said.lines().map(serde_json::from_str);
    Ok(rates.collect::<Result<_, _>>()?)
}
