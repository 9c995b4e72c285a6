//! The project's own tasks, run as `cargo xtask <task>`.
//!
//! `test` is the one command of the README and of continuous integration; the others run
//! one part of it alone, or longer. All words go to stderr, exit code 1 means failure.

mod bench;
mod deny;
mod dist;
mod fuzz;
mod libtest;
mod matrix;
mod model;
mod mutants;
mod page;
mod peers;
mod process;
mod python;
mod report;
mod soak;
mod test;

use std::{env, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::report::Step;

const USAGE: &str = "\
usage: cargo xtask <task>

  test                  everything below, and what cargo checks: fmt, clippy, tests, docs
  peers                 install the real clients and validators, judge our output with them
  page                  the page of the server: its types, its parts, and Chromium against a mock
                        and against the real server, with the real Claude Code
  peers NAME            only one step of them: `judges`, `ag-ui`, `browser`, `openapi`,
                        `bridges`, `npm`, `acp`, `sdks`, `agents`, `python` or `takopi`
  fuzz [--seconds N]    fuzz every target for N seconds, 10 by default
  soak [--seconds N] [--runs N]
                        the same for long, 600 by default, after N hostile agents, 2000 by
                        default, and as many more of all else that the runner is tested with
  dist [--plain | --program FILE] [--check] [--tag TAG]
                        everything that can be installed, into target/dist: wheel, sources, npm
                        packages, .deb, archive, formula, sums. With zig, for glibc 2.17;
                        `--plain` packs the ordinary release build, `--program` one that is there;
                        `--check` installs and tries each; `--tag` refuses any other version
  dist --collect        the formula and the sums for what is in target/dist
  mutants [--piece NAME] [--only PART-OF-A-PATH] [--also PACKAGE] [--sample N] [--fresh]
                        how many small errors in the code the tests notice, by piece
  bench convert [--megabytes N] [--rounds N]
                        throughput and memory of every writer, beside what bounds them
  bench ag-ui [--pieces N] [--rate N] [--megabytes N]
                        what the AG-UI endpoint adds to a model's stream
  bench run [--agents FOLDER] [--pieces N] [--rounds N] [--starts N]
                        what `linkspan run` costs beside the agent's program alone
  bench serve [--events N] [--rounds N]
                        what `linkspan serve` costs beside a bare broadcast, and Node's
  bench acp [--agents FOLDER] [--pieces N] [--rounds N]
                        `linkspan acp` beside the adapter that editors start for Claude Code";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(err) => {
            report::print_line(&format!("xtask: {err:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        ["test"] => Ok(report::run_stages(&test::stages())),
        ["peers"] => Ok(report::run_steps(peers::steps())),
        ["page"] => Ok(report::run_steps(vec![Step::new("page", page::run)])),
        ["peers", name] => Ok(report::run_steps(peers::steps_named(name)?)),
        ["fuzz", rest @ ..] => fuzz_for(seconds(rest, fuzz::SHORT)?),
        ["soak", rest @ ..] => Ok(report::run_steps(soak::steps(rest)?)),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["dist", rest @ ..] => dist_with(dist::Options::parse(rest)?),
        // A new task is one arm here and one module.
        _ => bail!("{USAGE}"),
    }
}

fn dist_with(options: dist::Options) -> Result<ExitCode> {
    let dist = Step::new("dist", move || dist::run(&options));
    Ok(report::run_steps(vec![dist]))
}

fn fuzz_for(seconds: u32) -> Result<ExitCode> {
    let fuzz = Step::new("fuzz", move || fuzz::run(seconds));
    Ok(report::run_steps(vec![fuzz]))
}

fn seconds(args: &[&str], default: u32) -> Result<u32> {
    match args {
        [] => Ok(default),
        ["--seconds", it] => it
            .parse()
            .with_context(|| format!("`--seconds {it}` is no number")),
        _ => bail!("{USAGE}"),
    }
}
