//! The table of `bench acp`: medians with their range, side by side, and how they compare.

use super::{AcpOptions, client::AcpSample};
use crate::bench::table::{MAX_STEAL, align, is_sure, median, range};

/// Fewer rounds are a first look.
const MIN_ROUNDS: usize = 7;

/// The chance that rounds agree although there is nothing to agree on.
const MAX_CHANCE: f64 = 0.05;

/// What is measured, and what linkspan may take of what the adapter takes.
struct AcpRow {
    name: &'static str,
    value: fn(&AcpSample, &AcpOptions) -> f64,
    most: f64,
    goal: &'static str,
}

const ROWS: [AcpRow; 5] = [
    AcpRow {
        name: "initialize, ms",
        value: |it, _| it.initialize.as_secs_f64() * 1e3,
        most: 1.0 / 20.0,
        goal: "≤ 1/20",
    },
    AcpRow {
        name: "start to first words, ms",
        value: |it, _| it.first.as_secs_f64() * 1e3,
        most: 0.7,
        goal: "≤ 0.7",
    },
    AcpRow {
        name: "second prompt to its words, ms",
        value: |it, _| it.second.as_secs_f64() * 1e3,
        most: 1.0,
        goal: "≤ 1",
    },
    AcpRow {
        name: "processor by piece of text, µs",
        value: |it, options| it.cpu.as_secs_f64() * 1e6 / options.pieces as f64,
        most: 1.0 / 5.0,
        goal: "≤ 1/5",
    },
    AcpRow {
        name: "peak memory, MB",
        value: |it, _| it.kilobytes as f64 / 1024.0,
        most: 1.0 / 10.0,
        goal: "≤ 1/10",
    },
];

pub(super) fn table(
    options: &AcpOptions,
    ours: &[AcpSample],
    theirs: &[AcpSample],
    steal: f64,
) -> String {
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
        let values = |samples: &[AcpSample]| -> Vec<f64> {
            samples.iter().map(|it| (row.value)(it, options)).collect()
        };
        let (ours, theirs) = (values(ours), values(theirs));
        // Round by round: both had the same good and bad minutes.
        let ratio = median(ours.iter().zip(&theirs).map(|(a, b)| a / b));
        let is_quiet = ours.len() >= MIN_ROUNDS
            && steal <= MAX_STEAL
            && [&ours, &theirs].into_iter().all(|it| is_sure(it));
        let pairs = ours.iter().zip(&theirs);
        let n_within = pairs.filter(|(a, b)| *a / *b <= row.most).count();
        let verdict = match (is_quiet, ratio <= row.most) {
            // However noisy the machine was, nearly every round says the same.
            _ if is_clear(n_within, ours.len()) => "reached",
            _ if is_clear(ours.len() - n_within, ours.len()) => "MISSED",
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
    let updates = |samples: &[AcpSample]| median(samples.iter().map(|it| it.n_updates as f64));
    text.push_str(&format!(
        "\nmemory and processor time are without Claude Code, and with linkspan's guard; the pieces \
         came in {} and {} updates\n",
        updates(ours),
        updates(theirs)
    ));
    text
}

/// True when throws of a coin would hardly ever agree as often as these rounds do.
fn is_clear(n_agreeing: usize, n_rounds: usize) -> bool {
    let (mut n_ways, mut n_all) = (1.0, 0.0);
    for n in (n_agreeing..=n_rounds).rev() {
        n_all += n_ways;
        n_ways *= n as f64 / (n_rounds - n + 1) as f64;
    }
    n_rounds >= MIN_ROUNDS && n_all / 2_f64.powf(n_rounds as f64) <= MAX_CHANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_must_all_agree_and_of_many_most() {
        let least = |n_rounds: usize| (0..=n_rounds).find(|it| is_clear(*it, n_rounds));
        assert_eq!(
            [5, 7, 8, 15, 20].map(least),
            [None, Some(7), Some(7), Some(12), Some(15)]
        );
    }
}
