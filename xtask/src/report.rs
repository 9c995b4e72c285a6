//! Runs steps one after the other and sums them up, so that nothing left out goes unseen.
//!
//! A step fails with an error, or passes with warnings: what it could not do and why that
//! is no failure here. A failed step does not stop the others; one run shows everything.

use std::{
    fmt,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

/// What a step left out, in words for the summary.
pub(crate) type Warnings = Vec<String>;

/// One line of the summary, and the work behind it.
pub(crate) struct Step {
    name: &'static str,
    run: Box<dyn Fn() -> Result<Warnings>>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Step {
    pub(crate) fn new(name: &'static str, run: impl Fn() -> Result<Warnings> + 'static) -> Step {
        Step {
            name,
            run: Box::new(run),
        }
    }
}

/// Runs every step, prints the table, and says whether all passed.
pub(crate) fn run_all(steps: &[Step]) -> ExitCode {
    let results: Vec<Outcome> = steps.iter().map(run_one).collect();
    say("\nsummary");
    for it in &results {
        say(&it.row());
    }
    let n_failed = results.iter().filter(|it| it.result.is_err()).count();
    if n_failed > 0 {
        say(&format!("{n_failed} of {} steps failed", results.len()));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<Warnings>,
}

fn run_one(step: &Step) -> Outcome {
    say(&format!("\n==> {}", step.name));
    let start = Instant::now();
    let result = (step.run)();
    let outcome = Outcome {
        name: step.name,
        took: start.elapsed(),
        result,
    };
    say(&format!(
        "<== {} {} in {:.1} s",
        outcome.name,
        outcome.word(),
        outcome.took.as_secs_f64()
    ));
    outcome
}

impl Outcome {
    fn word(&self) -> &'static str {
        match &self.result {
            Ok(warnings) if warnings.is_empty() => "passed",
            Ok(_) => "WARNING",
            Err(_) => "FAILED",
        }
    }

    fn row(&self) -> String {
        let mut row = format!(
            "  {:<8} {:<8} {:>7.1} s",
            self.name,
            self.word(),
            self.took.as_secs_f64()
        );
        let notes = match &self.result {
            Ok(warnings) => warnings.clone(),
            Err(err) => vec![format!("{err:#}")],
        };
        for note in notes {
            row.push_str(&format!(
                "\n             {}",
                note.replace('\n', "\n             ")
            ));
        }
        row
    }
}

/// Everything said to a person goes through here, to stderr.
#[expect(clippy::print_stderr, reason = "a task talks to a person on stderr")]
pub(crate) fn say(words: &str) {
    eprintln!("{words}");
}
