//! Runs the steps of a task and sums them up, so that nothing left out goes unseen.
//!
//! A step fails with an error, or passes with warnings: what it could not do and why that is no failure
//! here. A failed step does not stop the others; one run shows everything. Steps are grouped into stages;
//! the lanes of a stage run at the same time, and the output of each of their steps is shown in one piece
//! when it ends.

use std::{
    cell::RefCell,
    fs::{self, File},
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use crate::process::target_dir;

/// What a step left out, in words for the summary.
pub(crate) type Warnings = Vec<String>;

/// One line of the summary, and the work behind it.
pub(crate) struct Step {
    name: &'static str,
    run: Box<dyn Fn() -> Result<Warnings> + Send + Sync>,
    /// What it may take on two cores once everything is built; more is pointed out in the summary.
    budget: Option<Duration>,
}

/// Lanes that run at the same time, each step of a lane after the one before it.
pub(crate) struct Stage(pub(crate) Vec<Vec<Step>>);

impl Step {
    pub(crate) fn new(
        name: &'static str,
        run: impl Fn() -> Result<Warnings> + Send + Sync + 'static,
    ) -> Step {
        Step {
            name,
            run: Box::new(run),
            budget: None,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn within(mut self, seconds: u64) -> Step {
        self.budget = Some(Duration::from_secs(seconds));
        self
    }
}

/// Runs steps one after the other.
pub(crate) fn run_steps(steps: Vec<Step>) -> ExitCode {
    run_stages(&[Stage(vec![steps])])
}

/// Runs every step, prints the table, and says whether all passed.
pub(crate) fn run_stages(stages: &[Stage]) -> ExitCode {
    let start = Instant::now();
    let results: Vec<Outcome> = stages.iter().flat_map(run_stage).collect();
    print_line("\nsummary");
    for it in &results {
        print_line(&it.row());
    }
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let n_failed = results.iter().filter(|it| it.result.is_err()).count();
    let n_passed = results.len() - n_failed;
    print_line(&format!("took {minutes:.1} min"));
    print_line(&format!("steps: {n_passed} passed, {n_failed} failed"));
    match n_failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn run_stage(Stage(lanes): &Stage) -> Vec<Outcome> {
    if let [lane] = lanes.as_slice() {
        return lane.iter().map(run_one).collect();
    }
    let printing = Mutex::new(());
    thread::scope(|scope| {
        let run_lane = |lane: &[Step]| -> Vec<Outcome> {
            lane.iter()
                .map(|step| run_logged(step, &printing))
                .collect()
        };
        let lanes: Vec<_> = lanes
            .iter()
            .map(|lane| scope.spawn(move || run_lane(lane)))
            .collect();
        let results = lanes.into_iter().map(|it| it.join());
        results
            .flat_map(|it| it.expect("a step's panic is caught with its step"))
            .collect()
    })
}

struct Outcome {
    name: &'static str,
    took: Duration,
    budget: Option<Duration>,
    result: Result<Warnings>,
}

fn run_one(step: &Step) -> Outcome {
    print_line(&format!("\n==> {}", step.name));
    let start = Instant::now();
    let result = (step.run)();
    let outcome = Outcome {
        name: step.name,
        took: start.elapsed(),
        budget: step.budget,
        result,
    };
    print_line(&format!(
        "<== {} {} in {:.1} s",
        outcome.name,
        outcome.label(),
        outcome.took.as_secs_f64()
    ));
    outcome
}

/// Runs a step beside others: what it and its commands print is kept, then shown whole.
fn run_logged(step: &Step, printing: &Mutex<()>) -> Outcome {
    let log = match Log::new(step.name) {
        Ok(it) => it,
        Err(err) => return Outcome::failed(step, err),
    };
    let path = log.path.clone();
    LOG.with(|it| it.replace(Some(log)));
    let outcome = catch_unwind(AssertUnwindSafe(|| run_one(step)))
        .unwrap_or_else(|_| Outcome::failed(step, anyhow!("it panicked")));
    LOG.with(|it| it.replace(None));
    let text = fs::read(&path).unwrap_or_default();
    let shown = printing.lock();
    print_line(String::from_utf8_lossy(&text).trim_end());
    drop(shown);
    outcome
}

/// Where a step that runs beside others writes.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn new(name: &str) -> Result<Self> {
        let folder = target_dir()?.join("xtask");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.log", name.replace(' ', "-")));
        let file =
            File::create(&path).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(Self { path, file })
    }
}

thread_local! {
    /// The log of the step that this thread runs; none while steps run one after the other.
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Where the commands of this thread's step are to write, if not to the terminal.
pub(crate) fn log_file() -> Option<File> {
    LOG.with(|it| it.borrow().as_ref()?.file.try_clone().ok())
}

impl Outcome {
    /// Of a step that did not come to its end.
    fn failed(step: &Step, err: anyhow::Error) -> Self {
        Self {
            name: step.name,
            took: Duration::ZERO,
            budget: None,
            result: Err(err),
        }
    }

    fn label(&self) -> &'static str {
        match &self.result {
            Ok(warnings) if warnings.is_empty() => "passed",
            Ok(_) => "WARNING",
            Err(_) => "FAILED",
        }
    }

    fn row(&self) -> String {
        let mut row = format!(
            "  {:<11} {:<8} {:>7.1} s",
            self.name,
            self.label(),
            self.took.as_secs_f64()
        );
        if let Some(budget) = self.budget.filter(|it| self.took > *it) {
            row.push_str(&format!("  over its budget of {} s", budget.as_secs()));
        }
        let notes = match &self.result {
            Ok(warnings) => warnings.clone(),
            Err(err) => vec![format!("{err:#}")],
        };
        for note in notes {
            row.push_str(&format!(
                "\n                {}",
                note.replace('\n', "\n                ")
            ));
        }
        row
    }
}

/// Every message for people goes through here, to stderr.
#[expect(clippy::print_stderr, reason = "a task talks to a person on stderr")]
pub(crate) fn print_line(words: &str) {
    match log_file() {
        // A log that cannot be written is missing in what is shown, and nothing more.
        Some(mut log) => drop(writeln!(log, "{words}")),
        None => eprintln!("{words}"),
    }
}
