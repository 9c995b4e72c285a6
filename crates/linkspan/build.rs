//! Tells the program which commit and which target it was built from, for `linkspan --version`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let target = env::var("TARGET").expect("cargo sets it");
    let build = match commit() {
        Some(commit) => format!("{commit}, {target}"),
        // A source archive has no commits.
        None => target,
    };
    println!("cargo:rustc-env=LINKSPAN_BUILD={build}");
    println!("cargo:rerun-if-changed=build.rs");
}

/// The commit and its day. Watches for the next one: this crate alone is built again.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Sources that are unpacked inside of somebody's repository are none of its commits.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // Every commit, checkout and reset of this work tree adds a line to it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(log);
    // A file that is not there would count as changed with every build.
    if log.exists() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    git(&["log", "-1", "--format=%h %cs"])
}

fn git(args: &[&str]) -> Option<String> {
    let command = Command::new("git")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(args)
        .output();
    let output = command.ok().filter(|it| it.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}
