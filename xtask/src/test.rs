//! The stages of `cargo xtask test`, quick and likely failures first.
//!
//! What needs the network is installed while cargo checks and builds. The tests of the workspace have
//! both cores to themselves, because some of them watch the clock. After them, what only computes runs
//! beside what mostly waits for agents, browsers and clients.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::{
    fuzz, page, peers,
    process::{capture, cargo, run},
    report::{Stage, Step, Warnings},
};

/// Run once, in full, in a step of its own.
const EVERY_PREFIX: &str = "every_prefix_ends_well";

pub(crate) fn stages() -> Vec<Stage> {
    let checks = vec![
        Step::new("fmt", || quiet(cargo().args(["fmt", "--all", "--check"]))),
        Step::new("clippy", clippy),
        Step::new("build", || {
            quiet(cargo().args(["test", "--quiet", "--workspace", "--no-run"]))
        }),
        Step::new("doc", doc).within(60),
        Step::new("deny", deny),
    ];
    let install = vec![Step::new("install", peers::install_all)];
    let test = vec![Step::new("test", test).within(300)];
    let computing = vec![
        Step::new("every byte", every_byte).within(500),
        peers::judges(),
        Step::new("fuzz", || fuzz::run(fuzz::SHORT)).within(360),
    ];
    let mut waiting = peers::clients();
    waiting.push(Step::new("page", page::run).within(200));
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
    quiet(cargo().args(["test", "--workspace", "--", "--skip", EVERY_PREFIX]))
}

fn doc() -> Result<Warnings> {
    quiet(
        cargo()
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The fast tier shows the writers one cut in many; here they see every byte.
fn every_byte() -> Result<Warnings> {
    let tests = test_program("formats", "it")?;
    quiet(
        Command::new(tests)
            .arg(EVERY_PREFIX)
            .current_dir(crate::process::root().join("crates/formats"))
            .env("LINKSPAN_EVERY_BYTE", "1"),
    )
}

/// The built test program of a crate. Cargo would build its dependencies again for `--package`, with
/// fewer features.
pub(crate) fn test_program(package: &str, target: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Artifact {
        package_id: Option<String>,
        target: Option<Target>,
        executable: Option<String>,
    }
    #[derive(serde::Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let mut command = cargo();
    command.args(["test", "--quiet", "--workspace", "--no-run"]);
    command.args(["--test", target]);
    let printed = capture(command.arg("--message-format=json"))?.stdout;
    let artifacts = serde_json::Deserializer::from_slice(&printed).into_iter::<Artifact>();
    let folder = format!("/{package}#");
    let is_wanted = |it: &Artifact| {
        let is_test = |it: &Target| it.name == target && it.kind.iter().any(|kind| kind == "test");
        it.target.as_ref().is_some_and(is_test)
            && it
                .package_id
                .as_ref()
                .is_some_and(|id| id.contains(&folder))
    };
    // Warnings about the program are messages of their own, without one.
    let program = (artifacts.flatten().filter(is_wanted)).find_map(|it| it.executable);
    program.with_context(|| format!("cargo built no test program `{target}` of `{package}`"))
}

// cargo-deny takes minutes to build, so it is used where it is installed and never fetched,
// not even in CI: licences and sources change only with Cargo.lock, which is reviewed.
fn deny() -> Result<Warnings> {
    let mut probe = cargo();
    probe
        .args(["deny", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status().is_ok_and(|it| it.success()) {
        return Ok(vec![
            "SKIPPED: licences, bans and sources were not checked; `cargo install cargo-deny --locked`".into(),
        ]);
    }
    quiet(cargo().args(["deny", "check", "licenses", "bans", "sources"]))
}
