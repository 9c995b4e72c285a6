//! The table of `bench acp`: medians with their range, side by side, and how they compare.

use super::{Options, client::Sample};
use crate::bench::table::{MAX_STEAL, align, is_steady, median};

/// Fewer rounds are a first look.
const MIN_ROUNDS: usize = 7;

/// What is measured, and what linkspan may take of what the adapter takes.
struct Row {
    name: &'static str,
    value: fn(&Sample, &Options) -> f64,
    most: f64,
    goal: &'static str,
}

const ROWS: [Row; 5] = [
    Row {
        name: "initialize, ms",
        value: |it, _| it.initialize.as_secs_f64() * 1e3,
        most: 1.0 / 20.0,
        goal: "≤ 1/20",
    },
    Row {
        name: "start to first words, ms",
        value: |it, _| it.first.as_secs_f64() * 1e3,
        most: 0.7,
        goal: "≤ 0.7",
    },
    Row {
        name: "second prompt to its words, ms",
        value: |it, _| it.second.as_secs_f64() * 1e3,
        most: 1.0,
        goal: "≤ 1",
    },
    Row {
        name: "processor by piece of text, µs",
        value: |it, options| it.cpu.as_secs_f64() * 1e6 / options.pieces as f64,
        most: 1.0 / 5.0,
        goal: "≤ 1/5",
    },
    Row {
        name: "peak memory, MB",
        value: |it, _| it.kilobytes as f64 / 1024.0,
        most: 1.0 / 10.0,
        goal: "≤ 1/10",
    },
];

pub(super) fn table(options: &Options, ours: &[Sample], theirs: &[Sample], steal: f64) -> String {
    let mut text = format!(
        "\n`linkspan acp` beside claude-agent-acp, {} rounds, {} pieces of text, \
         {:.1} % of the processors stolen\n\n",
        options.rounds,
        options.pieces,
        100.0 * steal
    );
    let header = ["", "linkspan", "range", "adapter", "range", "ratio", "goal"];
    let mut cells = vec![header.map(str::to_owned)];
    for row in ROWS {
        let values = |samples: &[Sample]| -> Vec<f64> {
            samples.iter().map(|it| (row.value)(it, options)).collect()
        };
        let (ours, theirs) = (values(ours), values(theirs));
        // Round by round: both had the same good and bad minutes.
        let ratio = median(ours.iter().zip(&theirs).map(|(a, b)| a / b));
        let is_quiet = steal <= MAX_STEAL && [&ours, &theirs].into_iter().all(|it| is_sure(it));
        let worst = ours.iter().zip(&theirs).map(|(a, b)| a / b);
        let is_always = worst.clone().all(|it| it <= row.most);
        let is_never = worst.clone().all(|it| it > row.most);
        let verdict = match (is_quiet, ratio <= row.most) {
            // However noisy the machine was, every round says the same.
            _ if ours.len() >= MIN_ROUNDS && is_always => "reached",
            _ if ours.len() >= MIN_ROUNDS && is_never => "MISSED",
            (false, _) => "no verdict",
            (true, true) => "reached",
            (true, false) => "MISSED",
        };
        cells.push([
            row.name.to_owned(),
            format!("{:.1}", median(ours.iter().copied())),
            range(&ours),
            format!("{:.1}", median(theirs.iter().copied())),
            range(&theirs),
            format!("{ratio:.3}"),
            format!("{}: {verdict}", row.goal),
        ]);
    }
    align(&mut text, &cells);
    let updates = |samples: &[Sample]| median(samples.iter().map(|it| it.n_updates as f64));
    text.push_str(&format!(
        "\nmemory and processor time are without Claude Code, and with linkspan's guard; the pieces \
         came in {} and {} updates\n",
        updates(ours),
        updates(theirs)
    ));
    text
}

fn is_sure(rounds: &[f64]) -> bool {
    rounds.len() >= MIN_ROUNDS && is_steady(rounds)
}

fn range(rounds: &[f64]) -> String {
    let low = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rounds.iter().copied().fold(0.0, f64::max);
    format!("{low:.1}–{high:.1}")
}
