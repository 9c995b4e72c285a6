//! The tables of `bench serve`: medians with their range beside what they are compared with, and a
//! verdict only where the machine was quiet enough for one.

use super::{EventFormat, Load, Rates, ServeOptions, StreamSample, contenders::ServeContender};
use crate::bench::table::{MAX_STEAL, align, beside_bare, goal, is_sure, median, range};

/// How much more it may cost with ten times the clients: caches and luck, but no growth.
const MAX_GROWTH: f64 = 1.3;
/// A client that waits longer than this after the first one counts as starved.
const MAX_LAG_MILLIS: f64 = 1000.0;
const MAX_ALONE_KILOBYTES: f64 = 25.0 * 1024.0;
const MAX_CLIENT_KILOBYTES: f64 = 64.0;

/// The rounds of one contender under one load.
struct ServeRow<'a>(&'a [StreamSample]);

impl ServeRow<'_> {
    fn micros(&self) -> Vec<f64> {
        self.0.iter().map(|it| it.micros).collect()
    }

    fn median(&self) -> f64 {
        median(self.micros().into_iter())
    }

    /// Round by round: both had the same good and bad minutes.
    fn ratio(&self, other: &Self) -> f64 {
        let rounds = self.0.iter().zip(other.0);
        median(rounds.map(|(ours, theirs)| ours.micros / theirs.micros))
    }

    fn lags(&self) -> impl Iterator<Item = f64> {
        self.0.iter().flat_map(|it| it.report.lag_millis.clone())
    }

    /// The median of the rounds; none when the events name no time.
    fn delay(&self) -> Option<f64> {
        let delays: Option<Vec<f64>> = self.0.iter().map(|it| it.report.delay_millis).collect();
        delays.map(|it| median(it.into_iter()))
    }

    fn worst_lag(&self) -> f64 {
        self.lags().fold(0.0, f64::max)
    }
}

pub(super) fn streams(
    format: EventFormat,
    options: &ServeOptions,
    streams: &[(Load, [Vec<StreamSample>; 3])],
    steal: f64,
) -> String {
    let mut text = format!(
        "\nevents as `{}`, {} rounds, {:.1} % of the processors stolen\n\n",
        format.name,
        options.rounds,
        100.0 * steal
    );
    let header = [
        "",
        "clients",
        "events",
        "ms apart",
        "µs/delivery",
        "range",
        "of floor",
        "goal",
        "of Node",
        "goal",
        "lag ms",
        "worst",
        "goal",
        "delay ms",
        "goal",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    for (load, samples) in streams {
        let [ours, floor, node] = samples.each_ref().map(|it| ServeRow(it));
        let is_sure = |others: &[&ServeRow<'_>]| {
            steal <= MAX_STEAL && others.iter().all(|it| is_sure(&it.micros()))
        };
        for (contender, row) in ServeContender::ALL.into_iter().zip([&ours, &floor, &node]) {
            let of_floor = row.ratio(&floor);
            let of_node = row.ratio(&node);
            let judged = |it: Option<String>| match contender {
                ServeContender::Linkspan => it.unwrap_or_default(),
                ServeContender::Floor | ServeContender::Node => String::new(),
            };
            let floor_goal = load.of_floor.map(|most| {
                let name = format!("≤ {most:.1}x");
                goal(&name, is_sure(&[row, &floor]), of_floor <= most)
            });
            let node_goal = load.of_node.map(|most| {
                let name = format!("≤ {most:.2}x");
                goal(&name, is_sure(&[row, &node]), of_node <= most)
            });
            let worst = row.worst_lag();
            let delay = row.delay();
            let delay_goal = load.delay.zip(delay).map(|(most, delay)| {
                let name = format!("≤ {most:.0}");
                goal(&name, is_sure(&[row]), delay <= most)
            });
            cells.push([
                contender.name().to_owned(),
                load.clients.to_string(),
                row.0[0].report.n_events.to_string(),
                format!(
                    "{:.1}",
                    median(row.0.iter().map(|it| it.report.pace().as_secs_f64() * 1e3))
                ),
                format!("{:.1}", row.median()),
                range(&row.micros()),
                format!("{of_floor:.2}x"),
                judged(floor_goal),
                format!("{of_node:.2}x"),
                judged(node_goal),
                format!("{:.1}", median(row.lags())),
                format!("{worst:.1}"),
                judged(Some(goal("≤ 1000", true, worst <= MAX_LAG_MILLIS))),
                judged(delay.map(|it| format!("{it:.1}"))),
                judged(delay_goal),
            ]);
        }
    }
    align(&mut text, &cells);
    text.push_str(
        "\nprocessor time of the server for one event to one client; every client got every event\n\
         lag: from the first client that had an event to the last\n\
         delay: in what time half of the deliveries were made, from when the agent had said it\n",
    );
    text.push_str(&growth(streams, steal));
    text
}

/// What a delivery costs with the most clients beside the load before it.
fn growth(streams: &[(Load, [Vec<StreamSample>; 3])], steal: f64) -> String {
    let [.., (few, few_samples), (many, many_samples)] = streams else {
        return String::new();
    };
    let mut text = String::new();
    for (at, contender) in ServeContender::ALL.into_iter().enumerate() {
        let (before, after) = (ServeRow(&few_samples[at]), ServeRow(&many_samples[at]));
        let growth = after.ratio(&before);
        let is_sure = steal <= MAX_STEAL && is_sure(&before.micros()) && is_sure(&after.micros());
        let verdict = match contender {
            ServeContender::Linkspan => goal("; ≤ 1.3x", is_sure, growth <= MAX_GROWTH),
            ServeContender::Floor | ServeContender::Node => String::new(),
        };
        text.push_str(&format!(
            "{}: with {} clients a delivery costs {growth:.2}x what it costs with {}{verdict}\n",
            contender.name(),
            many.clients,
            few.clients
        ));
    }
    text
}

/// What the server has in memory, in kilobytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) alone: f64,
    /// For each client that is there and gets nothing.
    pub(super) client: f64,
}

pub(super) fn memory(rounds: &[Memory]) -> String {
    let alone: Vec<f64> = rounds.iter().map(|it| it.alone / 1024.0).collect();
    let client: Vec<f64> = rounds.iter().map(|it| it.client).collect();
    let row = |name: &str, rounds: &[f64], unit: &str, goal: String| {
        let most = rounds.iter().copied().fold(0.0, f64::max);
        [name.to_owned(), format!("{most:.1} {unit}"), goal]
    };
    let most = |rounds: &[f64]| rounds.iter().copied().fold(0.0, f64::max);
    let cells = [
        row(
            "server that nobody uses",
            &alone,
            "MB",
            goal("≤ 25", true, most(&alone) <= MAX_ALONE_KILOBYTES / 1024.0),
        ),
        row(
            "each client that is attached",
            &client,
            "KB",
            goal("≤ 64", true, most(&client) <= MAX_CLIENT_KILOBYTES),
        ),
    ];
    let mut text = format!("\nresident memory, the most of {} rounds\n\n", rounds.len());
    align(&mut text, &cells);
    text
}

pub(super) fn journal(rates: &[Rates], steal: f64) -> String {
    let rounds = rates.first().map_or(0, |it| it.bare.len());
    let mut text = format!(
        "\nevents of 1 KB a second into the journal, each append durable, {rounds} rounds, {:.1} % stolen\n\n",
        100.0 * steal
    );
    let rows = rates
        .iter()
        .map(|it| (it.batch, &it.bare[..], &it.journal[..]));
    beside_bare(&mut text, "events an append", rows, steal);
    text
}
