//! The tables: medians with their range, ratios to the floor, and a verdict only where the machine
//! was quiet enough for one.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Result, bail};

use super::{
    ConvertOptions,
    contenders::{Contender, FLOOR, JQ},
    corpus::Kind,
    measure::ProcessSample,
};

/// Above these a number says more about the machine than about the program.
pub(super) const MAX_STEAL: f64 = 0.05;
const MAX_RANGE: f64 = 1.5;
/// What has to be left of the rate of a bare loop.
const MIN_OF_BARE: f64 = 0.6;
/// Fewer rounds are a first look.
const MIN_ROUNDS: usize = 3;
/// How much memory a conversion may take, whatever the size of its input.
const MAX_MEMORY_KILOBYTES: u64 = 64 * 1024;

/// What the rounds of one contender came to.
#[derive(Debug)]
pub(crate) struct ConvertRow {
    name: String,
    goal: Option<f64>,
    /// Megabytes per second of processor time, by round.
    rates: Vec<f64>,
    megabytes: f64,
    wall_rate: f64,
    events_per_second: Option<f64>,
    peak_kilobytes: u64,
    is_writer: bool,
}

impl ConvertRow {
    /// Fails when two rounds over the same file did not do the same work.
    pub(crate) fn new(contender: &Contender, samples: Vec<ProcessSample>) -> Result<Self> {
        let said = &samples[0].said;
        if let Some(other) = samples.iter().find(|it| it.said != *said) {
            bail!("{} said `{said}`, then `{}`", contender.name, other.said);
        }
        let megabytes = contender.bytes as f64 / 1e6;
        let rates = samples.iter().map(|it| megabytes / it.cpu.as_secs_f64());
        let wall = median(samples.iter().map(|it| it.wall.as_secs_f64()));
        Ok(Self {
            name: contender.name.clone(),
            goal: contender.goal,
            rates: rates.collect(),
            megabytes,
            wall_rate: megabytes / wall,
            events_per_second: contender.n_events(said)?.map(|it| it as f64 / wall),
            peak_kilobytes: samples
                .iter()
                .map(|it| it.peak_kilobytes)
                .max()
                .unwrap_or(0),
            is_writer: contender.counts == super::contenders::Counts::Report,
        })
    }

    fn range(&self) -> (f64, f64) {
        let rates = self.rates.iter().copied();
        (
            rates.clone().fold(f64::INFINITY, f64::min),
            rates.fold(0.0, f64::max),
        )
    }

    fn is_steady(&self) -> bool {
        is_steady(&self.rates)
    }

    /// How fast beside another, round by round: both had the same good and bad minutes.
    fn ratio(&self, other: &ConvertRow) -> f64 {
        let rounds = self.rates.iter().zip(&other.rates);
        median(rounds.map(|(ours, theirs)| ours / theirs))
    }
}

/// With enough rounds the best and the worst do not count: one bad second is not a bad machine.
pub(super) fn is_steady(rounds: &[f64]) -> bool {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    let inner = match rounds.len() {
        0..5 => &rounds[..],
        n => &rounds[1..n - 1],
    };
    inner.last() <= inner.first().map(|it| it * MAX_RANGE).as_ref()
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn throughput(
    kind: Kind,
    options: &ConvertOptions,
    rows: &[ConvertRow],
    steal: f64,
) -> String {
    let mut text = format!(
        "\n{} MB {}, {} rounds, {:.1} % of the processors stolen\n\n",
        options.megabytes,
        kind.summary(),
        options.rounds,
        100.0 * steal
    );
    let header = [
        "", "MB/cpu s", "range", "MB/s", "events/s", "of floor", "of jq", "peak MB", "goal",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    let find = |name: &str| rows.iter().find(|it| it.name == name);
    let (floor, jq) = (find(FLOOR), find(JQ));
    for row in rows {
        let (low, high) = row.range();
        cells.push([
            row.name.clone(),
            format!("{:.0}", median(row.rates.iter().copied())),
            format!("{low:.0}–{high:.0}"),
            format!("{:.0}", row.wall_rate),
            row.events_per_second
                .map_or("-".to_owned(), |it| format!("{:.0} k", it / 1e3)),
            floor.map_or("-".to_owned(), |it| {
                format!("{:.0} %", 100.0 * row.ratio(it))
            }),
            jq.map_or("-".to_owned(), |it| format!("{:.1}x", row.ratio(it))),
            format!("{:.1}", row.peak_kilobytes as f64 / 1024.0),
            verdict(row, floor, steal),
        ]);
    }
    align(&mut text, &cells);
    text.push_str("\nevents are canonical events for the writers, input lines for the others\n");
    text
}

fn verdict(row: &ConvertRow, floor: Option<&ConvertRow>, steal: f64) -> String {
    let (Some(goal), Some(floor)) = (row.goal, floor) else {
        return String::new();
    };
    let percent = 100.0 * goal;
    if steal > MAX_STEAL || !row.is_steady() || !floor.is_steady() {
        return format!("{percent:.0} %: no verdict");
    }
    let is_reached = row.ratio(floor) >= goal;
    format!(
        "{percent:.0} %: {}",
        if is_reached { "reached" } else { "MISSED" }
    )
}

/// No reader may be slower than this share of the first one.
const READER_GOAL: f64 = 0.5;
/// A byte of a hundred times as many may cost this much more; caches and luck, but no growth.
const MAX_GROWTH: f64 = 1.5;

/// Every reader beside the first.
pub(crate) fn readers(options: &ConvertOptions, rows: &[ConvertRow], steal: f64) -> String {
    let mut text = format!(
        "\nreaders, the {} MB session as each program prints it, to takopi, {} rounds, {:.1} % stolen\n\n",
        options.megabytes,
        options.rounds,
        100.0 * steal
    );
    let header = [
        "",
        "MB",
        "MB/cpu s",
        "range",
        "events/s",
        "of claude",
        "peak MB",
        "goal",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    for row in rows {
        let (low, high) = row.range();
        let ratio = row.ratio(&rows[0]);
        let goal = match steal > MAX_STEAL || !row.is_steady() || !rows[0].is_steady() {
            true => "no verdict",
            false if ratio >= READER_GOAL => "reached",
            false => "MISSED",
        };
        cells.push([
            row.name.clone(),
            format!("{:.0}", row.megabytes),
            format!("{:.0}", median(row.rates.iter().copied())),
            format!("{low:.0}–{high:.0}"),
            row.events_per_second
                .map_or("-".to_owned(), |it| format!("{:.0} k", it / 1e3)),
            format!("{:.0} %", 100.0 * ratio),
            format!("{:.1}", row.peak_kilobytes as f64 / 1024.0),
            format!("{:.0} %: {goal}", 100.0 * READER_GOAL),
        ]);
    }
    align(&mut text, &cells);
    text
}

/// The rate of each reader by the size of its input.
pub(crate) fn growth(sizes: &[u64], grown: &[Vec<ConvertRow>], steal: f64) -> String {
    let mut text = format!(
        "\nMB per processor second by the size of the session in MB, {:.1} % stolen\n\n",
        100.0 * steal
    );
    let mut header = [const { String::new() }; 7];
    for (cell, size) in header[1..].iter_mut().zip(sizes) {
        *cell = size.to_string();
    }
    header[4] = "cost of a byte".to_owned();
    header[5] = "peak MB".to_owned();
    let mut cells = vec![header];
    for rows in grown {
        let mut line = [const { String::new() }; 7];
        line[0].clone_from(&rows[0].name);
        for (cell, row) in line[1..].iter_mut().zip(rows) {
            *cell = format!("{:.0}", median(row.rates.iter().copied()));
        }
        let rate = |row: &ConvertRow| median(row.rates.iter().copied());
        let (first, last) = (&rows[0], &rows[rows.len() - 1]);
        // The smallest file is mostly the start of the program.
        let cost = rate(&rows[1]).max(rate(first)) / rate(last);
        line[4] = format!("{cost:.2}x");
        let peaks: Vec<String> = rows
            .iter()
            .map(|it| format!("{:.0}", it.peak_kilobytes as f64 / 1024.0))
            .collect();
        line[5] = peaks.join(", ");
        line[6] = (if cost <= MAX_GROWTH {
            "linear"
        } else {
            "GROWS"
        })
        .to_owned();
        cells.push(line);
    }
    align(&mut text, &cells);
    text
}

/// Peak memory over the whole file beside that over a slice of it.
pub(crate) fn memory(
    rows: &[ConvertRow],
    small: &[Vec<ProcessSample>],
    file: &Path,
    slice: &Path,
) -> Result<String> {
    let megabytes =
        |path: &Path| fs::metadata(path).map(|it| format!("{} MB", it.len() / 1_000_000));
    let header = [
        String::new(),
        megabytes(slice)?,
        megabytes(file)?,
        String::new(),
    ];
    let mut cells = vec![header];
    for (row, samples) in rows.iter().filter(|it| it.is_writer).zip(small) {
        let small = samples
            .iter()
            .map(|it| it.peak_kilobytes)
            .max()
            .unwrap_or(0);
        let is_bounded = row.peak_kilobytes <= MAX_MEMORY_KILOBYTES;
        cells.push([
            row.name.clone(),
            format!("{:.1}", small as f64 / 1024.0),
            format!("{:.1}", row.peak_kilobytes as f64 / 1024.0),
            (if is_bounded { "bounded" } else { "TOO MUCH" }).to_owned(),
        ]);
    }
    let mut text = "\npeak memory in MB, by the size of the input\n\n".to_owned();
    align(&mut text, &cells);
    Ok(text)
}

/// Whether rounds of the same are enough, and enough alike.
pub(super) fn is_sure(rounds: &[f64]) -> bool {
    rounds.len() >= MIN_ROUNDS && is_steady(rounds)
}

/// From the least to the most.
pub(super) fn range(rounds: &[f64]) -> String {
    let low = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rounds.iter().copied().fold(0.0, f64::max);
    format!("{low:.1}–{high:.1}")
}

/// A goal and what came of it; nothing while the machine was too busy to tell.
pub(super) fn goal(goal: &str, is_quiet: bool, is_reached: bool) -> String {
    let verdict = match (is_quiet, is_reached) {
        (false, _) => "no verdict",
        (true, true) => "reached",
        (true, false) => "MISSED",
    };
    format!("{goal}: {verdict}")
}

/// Rates of a bare loop and of the journal, each with its range; `first` is what their numbers count.
pub(super) fn beside_bare<'a>(
    text: &mut String,
    first: &str,
    rows: impl Iterator<Item = (usize, &'a [f64], &'a [f64])>,
    steal: f64,
) {
    let header = [
        first,
        "bare loop",
        "range",
        "journal",
        "range",
        "of bare",
        "goal",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    for (number, bare, journal) in rows {
        let rounds = journal.iter().zip(bare);
        let ratio = median(rounds.map(|(ours, bare)| ours / bare));
        let is_sure = steal <= MAX_STEAL && is_sure(journal) && is_sure(bare);
        let whole = |rates: &[f64]| {
            let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let high = rates.iter().copied().fold(0.0, f64::max);
            format!("{low:.0}–{high:.0}")
        };
        cells.push([
            number.to_string(),
            format!("{:.0}", median(bare.iter().copied())),
            whole(bare),
            format!("{:.0}", median(journal.iter().copied())),
            whole(journal),
            format!("{:.0} %", 100.0 * ratio),
            goal("≥ 60 %", is_sure, ratio >= MIN_OF_BARE),
        ]);
    }
    align(text, &cells);
}

/// Columns to the right, the first one to the left.
pub(super) fn align<const N: usize>(text: &mut String, rows: &[[String; N]]) {
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            write!(line, "  {cell:>width$}").expect("writing to a string does not fail");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
