//! The stages of `cargo xtask test`, quick and likely failures first.
//!
//! What needs the network is installed while cargo checks and builds. The tests of the workspace have
//! both cores to themselves, because some of them watch the clock. After them, what only computes runs
//! beside what mostly waits for agents, browsers and clients.

use std::process::Command;

use anyhow::Result;

use crate::{
    deny, fuzz, libtest, page, peers,
    process::{cargo, run},
    report::{Stage, Step, Warnings},
};

/// The rules for any bytes, which run thoroughly in a step of their own.
const PROPERTIES: &str = "properties::";
/// The longest of them, which runs only there.
const EVERY_PREFIX: &str = "every_prefix_ends_well";

pub(crate) fn stages() -> Vec<Stage> {
    let checks = vec![
        Step::new("fmt", || quiet(cargo().args(["fmt", "--all", "--check"]))),
        Step::new("clippy", clippy),
        Step::new("build", || quiet(&mut libtest::build())),
        Step::new("doc", doc).within(60),
        Step::new("doctest", || {
            quiet(cargo().args(["test", "--quiet", "--workspace", "--doc"]))
        }),
        Step::new("deny", || deny::run().map(|()| Warnings::new())),
    ];
    let install = vec![
        Step::new("install", peers::install_all),
        Step::new("typos", peers::typos),
    ];
    let test = vec![Step::new("test", test).within(300)];
    let computing = vec![
        Step::new("every byte", every_byte).within(660),
        Step::new("fuzz", || fuzz::run(fuzz::SHORT)).within(360),
    ];
    let mut waiting = peers::clients();
    waiting.push(Step::new("page", page::run).within(200));
    // Not beside the page: both drive Chromium, and two of them slow each other down.
    waiting.push(peers::judges());
    vec![
        Stage(vec![checks, install]),
        Stage(vec![test]),
        Stage(vec![computing, waiting]),
    ]
}

fn quiet(command: &mut Command) -> Result<Warnings> {
    run(command)?;
    Ok(Warnings::new())
}

fn clippy() -> Result<Warnings> {
    quiet(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn test() -> Result<Warnings> {
    libtest::run_all(libtest::programs()?, &["--skip", EVERY_PREFIX])?;
    Ok(Warnings::new())
}

fn doc() -> Result<Warnings> {
    quiet(
        cargo()
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The fast tier damages recordings here and there; here they are cut at every byte.
fn every_byte() -> Result<Warnings> {
    let mut tests = libtest::program("formats", "it")?.command();
    quiet(tests.arg(PROPERTIES).env("LINKSPAN_EVERY_BYTE", "1"))
}
