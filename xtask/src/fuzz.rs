//! Fuzzes every target of `fuzz/` for a while, on the stable toolchain.
//!
//! cargo-fuzz wants nightly for its sanitizers; libFuzzer itself only needs the coverage
//! instrumentation that stable rustc can emit, so the flags are given here by hand. Runs
//! work on a copy of the corpus: a finding is kept under `target/fuzz`, the tree stays clean.
//! The target `reader` is run once for each format that can be read, and names them itself.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    process::{capture, cargo, cargo_metadata, root, run as run_command, tail, target_dir},
    report::{Warnings, print_line},
};

/// Seconds per target in `cargo xtask test`: enough to replay the corpus and look around.
pub(crate) const SHORT: u32 = 10;
/// Seconds per target in `cargo xtask soak`.
pub(crate) const LONG: u32 = 600;

/// The target for all readers, and the variable that names the one to fuzz.
const READER: &str = "reader";
const NAME: &str = "LINKSPAN_READER";

const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

pub(crate) fn run(seconds: u32) -> Result<Warnings> {
    let manifest = root().join("fuzz/Cargo.toml");
    if !manifest.exists() {
        return Ok(vec!["SKIPPED: there is no fuzz/Cargo.toml".into()]);
    }
    let targets = targets(&manifest)?;
    if targets.is_empty() {
        bail!("fuzz/Cargo.toml has no [[bin]]");
    }
    let work = target_dir()?.join("fuzz");
    let binaries = build(&manifest, &work)?;
    let mut failures = Vec::new();
    for job in jobs(&targets, &binaries)? {
        let name = &job.name;
        print_line(&format!("fuzz {name}: {seconds} s"));
        match fuzz(&job, &work, seconds) {
            Ok(n_runs) => print_line(&format!("fuzz {name}: {n_runs} runs")),
            Err(err) => {
                print_line(&format!("{err:#}"));
                failures.push(job.name);
            }
        }
    }
    if !failures.is_empty() {
        bail!(
            "{} failed; inputs are in {}",
            failures.join(", "),
            work.join("artifacts").display()
        );
    }
    Ok(Warnings::new())
}

/// A target, for one reader where there is one for all of them.
struct Job {
    /// Also the name of its corpus.
    name: String,
    binary: PathBuf,
    reader: Option<String>,
}

fn jobs(targets: &[String], binaries: &Path) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for target in targets {
        let binary = binaries.join(target);
        if target != READER {
            jobs.push(Job {
                name: target.clone(),
                binary,
                reader: None,
            });
            continue;
        }
        let list = capture(Command::new(&binary).env_remove(NAME))?;
        let names = String::from_utf8(list.stdout)?;
        jobs.extend(names.lines().map(|reader| Job {
            name: format!("{target}_{reader}"),
            binary: binary.clone(),
            reader: Some(reader.to_owned()),
        }));
    }
    Ok(jobs)
}

fn targets(manifest: &Path) -> Result<Vec<String>> {
    let metadata = cargo_metadata(manifest)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|it| it["targets"].as_array().into_iter().flatten());
    let binaries = targets.filter(|it| it["kind"][0] == "bin");
    Ok(binaries
        .filter_map(|it| it["name"].as_str().map(str::to_owned))
        .collect())
}

fn build(manifest: &Path, work: &Path) -> Result<PathBuf> {
    let host = host()?;
    let mut command = cargo();
    command
        .args(["build", "--release", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(work);
    // Without --target the flags also reach build scripts, which cannot link the coverage hooks.
    command
        .args(["--target", &host])
        .env("RUSTFLAGS", RUSTFLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run_command(&mut command)?;
    Ok(work.join(host).join("release"))
}

fn host() -> Result<String> {
    let version = String::from_utf8(capture(Command::new("rustc").arg("-vV"))?.stdout)?;
    let host = version.lines().find_map(|it| it.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Fuzzes one target and returns how many inputs it ran.
fn fuzz(job: &Job, work: &Path, seconds: u32) -> Result<String> {
    let name = &job.name;
    let corpus = work.join("corpus").join(name);
    let artifacts = work.join("artifacts").join(name);
    copy_corpus(&root().join("fuzz/corpus").join(name), &corpus)?;
    fs::create_dir_all(&artifacts)?;
    let log = work.join(format!("{name}.log"));
    let status = Command::new(&job.binary)
        .envs(job.reader.iter().map(|it| (NAME, it)))
        .arg(format!("-max_total_time={seconds}"))
        .args([
            "-rss_limit_mb=2048",
            "-max_len=65536",
            "-print_final_stats=1",
        ])
        // The default of 20 minutes would let a quadratic reader pass.
        .arg("-timeout=10")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .status()
        .with_context(|| format!("cannot start `{}`", job.binary.display()))?;
    let output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        bail!(
            "fuzz {name} failed: {status}, see {}\n{}",
            log.display(),
            reason(&output)
        );
    }
    let n_runs = output
        .lines()
        .find_map(|it| it.strip_prefix("stat::number_of_executed_units:"));
    Ok(n_runs
        .context("libFuzzer printed no statistics")?
        .trim()
        .to_owned())
}

// A panic's own words stand far above the end, behind a backtrace and statistics.
fn reason(output: &str) -> String {
    let panic: Vec<&str> = output
        .lines()
        .skip_while(|it| !it.contains("panicked at"))
        .take(2)
        .collect();
    if panic.is_empty() {
        tail(output)
    } else {
        panic.join("\n")
    }
}

fn copy_corpus(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    if !from.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
