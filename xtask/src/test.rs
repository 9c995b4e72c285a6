//! The steps of `cargo xtask test`, quick and likely failures first.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::{
    fuzz, page, peers,
    process::{cargo, run},
    report::{Step, Warnings},
};

pub(crate) fn steps() -> Vec<Step> {
    vec![
        Step::new("fmt", || quiet(cargo().args(["fmt", "--all", "--check"]))),
        Step::new("clippy", || {
            quiet(cargo().args([
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]))
        }),
        Step::new("test", || quiet(cargo().args(["test", "--workspace"]))),
        // The fast tier shows the writers one cut in many; here they see every byte.
        Step::new("every byte", || {
            quiet(
                cargo()
                    .args(["test", "--package", "formats", "--test", "it"])
                    .args(["--", "every_prefix_ends_well"])
                    .env("LINKSPAN_EVERY_BYTE", "1"),
            )
        }),
        Step::new("doc", || {
            quiet(
                cargo()
                    .args(["doc", "--workspace", "--no-deps"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )
        }),
        Step::new("deny", deny),
        Step::new("peers", peers::run),
        // After the peers, which install the same browser and agents.
        Step::new("page", page::run),
        Step::new("fuzz", || fuzz::run(fuzz::SHORT)),
    ]
}

fn quiet(command: &mut Command) -> Result<Warnings> {
    run(command)?;
    Ok(Warnings::new())
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
