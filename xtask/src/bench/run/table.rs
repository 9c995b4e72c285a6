//! The tables of `bench run`: medians with their range beside what they are compared with, and a
//! verdict only where the machine was quiet enough for one.

use super::{RunOptions, watch::RunSample};
use crate::bench::table::{MAX_STEAL, align, goal, is_sure, median, range};

/// What linkspan may use for an event: so long, and so many times what a copy uses.
const MAX_MICROS: f64 = 50.0;
const MAX_OF_COPY: f64 = 3.0;
/// What linkspan may have in memory while a run streams.
const MAX_MEGABYTES: f64 = 20.0;
/// How much later the first event may come than the agent's first line.
const MAX_LATER: f64 = 1.05;
/// How much sooner an agent that is there already has to answer.
const MIN_SOONER: f64 = 3.0;

/// The rounds of one contender.
#[derive(Debug)]
pub(super) struct Stream {
    name: String,
    /// Microseconds of processor time by event, linkspan and its guard together.
    micros: Vec<f64>,
    megabytes: f64,
    guard_megabytes: f64,
    guard_millis: f64,
}

impl Stream {
    pub(super) fn new(name: &str, samples: Vec<RunSample>, options: &RunOptions) -> Self {
        let n_events = options.pieces as f64;
        let micros = samples
            .iter()
            .map(|it| (it.cpu + it.guard.cpu).as_secs_f64() * 1e6 / n_events);
        let most = |kilobytes: fn(&RunSample) -> u64| {
            let most = samples.iter().map(kilobytes).max();
            most.unwrap_or(0) as f64 / 1024.0
        };
        Self {
            name: name.to_owned(),
            micros: micros.collect(),
            megabytes: most(|it| it.peak_kilobytes),
            guard_megabytes: most(|it| it.guard.private_kilobytes),
            guard_millis: median(samples.iter().map(|it| it.guard.cpu.as_secs_f64() * 1e3)),
        }
    }

    /// Round by round: both had the same good and bad minutes.
    fn ratio(&self, copy: &Self) -> f64 {
        let rounds = self.micros.iter().zip(&copy.micros);
        median(rounds.map(|(ours, theirs)| ours / theirs))
    }
}

/// Whether the goals are meant for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goals {
    Judged,
    None,
}

/// The first of `streams` is the copy.
pub(super) fn streams(
    agent: &str,
    goals: Goals,
    options: &RunOptions,
    streams: &[Stream],
    steal: f64,
) -> String {
    let mut text = format!(
        "\n{} pieces of text from {agent}, {} rounds, {:.1} % of the processors stolen\n\n",
        options.pieces,
        options.rounds,
        100.0 * steal
    );
    let header = [
        "",
        "µs/event",
        "range",
        "goal",
        "of copy",
        "goal",
        "peak MB",
        "goal",
        "guard MB",
        "guard ms",
    ];
    let mut cells = vec![header.map(str::to_owned)];
    let copy = &streams[0];
    for (at, stream) in streams.iter().enumerate() {
        let micros = median(stream.micros.iter().copied());
        let ratio = stream.ratio(copy);
        let is_quiet = steal <= MAX_STEAL && is_sure(&stream.micros);
        let both = is_quiet && is_sure(&copy.micros);
        let ours = |cell: String| if at == 0 { String::new() } else { cell };
        let judged = |cell: String| match goals {
            Goals::Judged => ours(cell),
            Goals::None => String::new(),
        };
        cells.push([
            stream.name.clone(),
            format!("{micros:.1}"),
            range(&stream.micros),
            judged(goal("≤ 50", is_quiet, micros <= MAX_MICROS)),
            format!("{ratio:.2}x"),
            judged(goal("≤ 3x", both, ratio <= MAX_OF_COPY)),
            format!("{:.1}", stream.megabytes),
            judged(goal("≤ 20", true, stream.megabytes <= MAX_MEGABYTES)),
            ours(format!("{:.1}", stream.guard_megabytes)),
            ours(format!("{:.1}", stream.guard_millis)),
        ]);
    }
    align(&mut text, &cells);
    text.push_str("\nprocessor time of linkspan and its guard, without the agent\n");
    text
}

/// Milliseconds until something was seen, by round.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// The first line of the agent alone.
    pub(super) bare: Vec<f64>,
    /// The first line behind linkspan.
    pub(super) run: Vec<f64>,
    /// The first event of a session's first prompt, from the start of the process on.
    pub(super) fresh: Vec<f64>,
    pub(super) fresh_text: Vec<f64>,
    /// The first event of its second prompt.
    pub(super) warm: Vec<f64>,
    pub(super) warm_text: Vec<f64>,
}

pub(super) fn starts(options: &RunOptions, starts: &Starts, steal: f64) -> String {
    let mut text = format!(
        "\nmilliseconds until the first event, {} rounds, {:.1} % of the processors stolen\n\n",
        options.starts,
        100.0 * steal
    );
    let is_quiet = |rounds: [&[f64]; 2]| steal <= MAX_STEAL && rounds.into_iter().all(is_sure);
    let middle = |rounds: &[f64]| median(rounds.iter().copied());
    let later = middle(&starts.run) / middle(&starts.bare);
    let sooner = middle(&starts.fresh) / middle(&starts.warm);
    let row = |name: &str, rounds: &[f64], beside: String, goal: String| {
        [
            name.to_owned(),
            format!("{:.1}", middle(rounds)),
            range(rounds),
            beside,
            goal,
        ]
    };
    let none = String::new;
    let cells = [
        ["", "median", "range", "", "goal"].map(str::to_owned),
        row("claude alone", &starts.bare, none(), none()),
        row(
            "linkspan run",
            &starts.run,
            format!("{:.1} % of claude alone", 100.0 * later),
            goal(
                "≤ 105 %",
                is_quiet([&starts.bare, &starts.run]),
                later <= MAX_LATER,
            ),
        ),
        row("first prompt of a session", &starts.fresh, none(), none()),
        row(
            "second prompt",
            &starts.warm,
            format!("{sooner:.1}x sooner"),
            goal(
                "≥ 3x",
                is_quiet([&starts.fresh, &starts.warm]),
                sooner >= MIN_SOONER,
            ),
        ),
        row(
            "first prompt, first text",
            &starts.fresh_text,
            none(),
            none(),
        ),
        row(
            "second prompt, first text",
            &starts.warm_text,
            none(),
            none(),
        ),
    ];
    align(&mut text, &cells);
    text
}
