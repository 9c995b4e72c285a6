//! Runs one mutant with the tests that reach it, until one of them notices.
//!
//! Cheap tests come first, several in one process. A test that fails among others has to fail alone, too, before
//! the mutant counts as noticed: otherwise a test that fails now and then would hide what no test checks.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::{
    Mutant,
    suite::{Suite, TestRun, run},
};

/// A test hangs when it takes this long, and five times as long as it usually does.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the tests of a mutant's own crate may take in all, the cheapest first, and those of other crates.
const OWN: Duration = Duration::from_secs(120);
const OTHERS: Duration = Duration::from_secs(20);
/// What the tests of the first process take in all; those of the next ones take four times as long.
const FIRST: Duration = Duration::from_millis(300);
const LAST: Duration = Duration::from_secs(20);

/// What the tests make of a mutant.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Verdict {
    Failed(String),
    TimedOut(String),
    Survived,
    Unreached,
}

impl Verdict {
    pub(super) fn is_killed(&self) -> bool {
        matches!(self, Verdict::Failed(_) | Verdict::TimedOut(_))
    }
}

pub(super) struct Judge<'a> {
    pub(super) suites: &'a [Suite],
    /// For what the tests print.
    pub(super) scratch: PathBuf,
    /// The test that noticed the last mutant of a function.
    pub(super) last: Mutex<HashMap<String, Candidate>>,
}

/// A test that reaches a mutant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    suite: usize,
    name: String,
    took: Duration,
}

impl Judge<'_> {
    pub(super) fn judge(&self, mutant: &Mutant, worker: usize) -> Result<Verdict> {
        let candidates = self.candidates(mutant);
        if candidates.is_empty() {
            return Ok(Verdict::Unreached);
        }
        let key = format!("{} {}", mutant.file, mutant.function);
        let last = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(last) = last.filter(|it| candidates.contains(it)) {
            let verdict = self.alone(mutant, &last, worker)?;
            if verdict.is_killed() {
                return Ok(verdict);
            }
        }
        for batch in batches(&candidates) {
            if let Some((verdict, by)) = self.together(mutant, &batch, worker)? {
                self.last
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key, by);
                return Ok(verdict);
            }
        }
        Ok(Verdict::Survived)
    }

    /// The tests of the mutant's own crate that reach it, and others, as far as there is time for them.
    fn candidates(&self, mutant: &Mutant) -> Vec<Candidate> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (n, suite) in self.suites.iter().enumerate() {
            let reaching = suite
                .tests
                .iter()
                .filter(|(_, it)| it.mutants.contains(&mutant.id));
            let candidates = reaching.map(|(name, it)| Candidate {
                suite: n,
                name: name.clone(),
                took: it.took,
            });
            match suite.program.package() == mutant.piece.package {
                true => own.extend(candidates),
                false => others.extend(candidates),
            }
        }
        let mut all = cheapest(own, OWN);
        all.extend(cheapest(others, OTHERS));
        all.sort_by_key(|it| it.took);
        all
    }

    fn alone(&self, mutant: &Mutant, test: &Candidate, worker: usize) -> Result<Verdict> {
        let name = format!("{}: {}", self.suites[test.suite].program.name(), test.name);
        Ok(
            match self.run(mutant, std::slice::from_ref(test), worker)? {
                TestRun::Passed => Verdict::Survived,
                TestRun::Failed(_) => Verdict::Failed(name),
                TestRun::TimedOut => Verdict::TimedOut(name),
            },
        )
    }

    /// Runs tests of one program; the first that notices the mutant alone, too, is named.
    fn together(
        &self,
        mutant: &Mutant,
        tests: &[Candidate],
        worker: usize,
    ) -> Result<Option<(Verdict, Candidate)>> {
        let suspects: Vec<&Candidate> = match self.run(mutant, tests, worker)? {
            TestRun::Passed => return Ok(None),
            TestRun::Failed(Some(name)) => tests.iter().filter(|it| it.name == name).collect(),
            TestRun::Failed(None) | TestRun::TimedOut => {
                let printed = fs::read_to_string(self.log(worker)).unwrap_or_default();
                let passed: HashSet<&str> = printed.lines().filter_map(passed).collect();
                let unfinished = tests.iter().filter(|it| !passed.contains(it.name.as_str()));
                unfinished.collect()
            }
        };
        for suspect in suspects {
            let verdict = self.alone(mutant, suspect, worker)?;
            if verdict.is_killed() {
                return Ok(Some((verdict, suspect.clone())));
            }
        }
        Ok(None)
    }

    fn run(&self, mutant: &Mutant, tests: &[Candidate], worker: usize) -> Result<TestRun> {
        let Some(first) = tests.first() else {
            return Ok(TestRun::Passed);
        };
        let usual: Duration = tests.iter().map(|it| it.took).sum();
        let mut command = self.suites[first.suite].program.command();
        command
            .env("MUTANT", mutant.id.to_string())
            // Most tests wait, for processes or for time.
            .args(["--test-threads", "4", "--exact"])
            .args(tests.iter().map(|it| &it.name));
        run(&mut command, &self.log(worker), PATIENCE.max(usual * 5))
    }

    fn log(&self, worker: usize) -> PathBuf {
        self.scratch.join(format!("test-{worker}.log"))
    }
}

fn passed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... ok")
}

fn cheapest(mut tests: Vec<Candidate>, mut left: Duration) -> Vec<Candidate> {
    tests.sort_by_key(|it| it.took);
    tests.retain(|it| {
        let fits = it.took <= left;
        left = left.saturating_sub(it.took);
        fits
    });
    tests
}

/// Groups of tests, each of one program, that take longer and longer.
fn batches(candidates: &[Candidate]) -> Vec<Vec<Candidate>> {
    let (mut batches, mut limit) = (Vec::new(), FIRST);
    let mut rest = candidates;
    while let Some(first) = rest.first() {
        let mut total = first.took;
        let more = rest[1..].iter().take_while(|it| {
            total += it.took;
            total <= limit
        });
        let n = 1 + more.count();
        let mut by_suite: Vec<Vec<Candidate>> = Vec::new();
        for it in &rest[..n] {
            match by_suite.iter_mut().find(|group| group[0].suite == it.suite) {
                Some(group) => group.push(it.clone()),
                None => by_suite.push(vec![it.clone()]),
            }
        }
        batches.extend(by_suite);
        rest = &rest[n..];
        limit = (limit * 4).min(LAST);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_tests_run_first_and_together() {
        let tests = [(0, 100), (1, 100), (0, 100), (0, 1000), (1, 9000)];
        let tests = tests.map(|(suite, millis)| Candidate {
            suite,
            name: String::new(),
            took: Duration::from_millis(millis),
        });
        let batches: Vec<Vec<(usize, u128)>> = batches(&tests)
            .iter()
            .map(|it| {
                it.iter()
                    .map(|it| (it.suite, it.took.as_millis()))
                    .collect()
            })
            .collect();
        let expected = [
            vec![(0, 100), (0, 100)],
            vec![(1, 100)],
            vec![(0, 1000)],
            vec![(1, 9000)],
        ];
        assert_eq!(batches, expected);
    }
}
