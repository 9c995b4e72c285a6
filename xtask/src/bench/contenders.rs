//! The contenders: every writer of the table, and the programs that bound them from above and below.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::measure;
use crate::process::{capture, run as run_command};

/// The writers to measure, with the share of the floor each should reach.
const WRITERS: [(&str, Option<f64>); 7] = [
    ("takopi", Some(0.8)),
    ("thread", Some(0.8)),
    ("ag-ui", Some(0.8)),
    ("acp", Some(0.75)),
    ("openhands", Some(0.75)),
    ("linkspan", None),
    ("text", None),
];

/// The contender whose rate is the floor.
pub(crate) const FLOOR: &str = "typed parse";
pub(crate) const JQ: &str = "jq -c .";

#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) goal: Option<f64>,
    pub(crate) bytes: u64,
    program: PathBuf,
    args: Vec<String>,
    pub(crate) counts: Counts,
}

/// How a contender says what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// A number of lines.
    Lines,
    /// The report of `linkspan convert`.
    Report,
    /// Its output, which is thrown away.
    Nothing,
}

impl Contender {
    pub(crate) fn measure(&self) -> Result<measure::ProcessSample> {
        let mut command = Command::new(&self.program);
        measure::watch(command.args(&self.args))
    }

    /// Deletes the file that was read, which may be large.
    pub(crate) fn forget(&self) -> Result<()> {
        let file = self.args.last().context("a contender reads a file")?;
        Ok(fs::remove_file(file)?)
    }

    /// Lines or events that one round went through.
    pub(crate) fn n_events(&self, said: &str) -> Result<Option<u64>> {
        #[derive(Deserialize)]
        struct ContenderReport {
            events: u64,
        }
        match self.counts {
            Counts::Nothing => Ok(None),
            Counts::Lines => {
                let number = said.split_whitespace().next().unwrap_or_default();
                Ok(Some(
                    number
                        .parse()
                        .with_context(|| format!("{} said `{said}`", self.name))?,
                ))
            }
            Counts::Report => {
                let report: ContenderReport = serde_json::from_str(said)
                    .with_context(|| format!("{} said `{said}`", self.name))?;
                Ok(Some(report.events))
            }
        }
    }
}

/// The programs built for speed.
#[derive(Debug)]
pub(crate) struct BenchPrograms {
    linkspan: PathBuf,
    xtask: PathBuf,
}

impl BenchPrograms {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            linkspan: folder.join("linkspan"),
            xtask: folder.join("xtask"),
        }
    }

    pub(crate) fn linkspan(&self) -> &Path {
        &self.linkspan
    }

    pub(crate) fn xtask(&self) -> &Path {
        &self.xtask
    }

    pub(crate) fn write_corpus(&self, name: &str, megabytes: u64, path: &Path) -> Result<()> {
        let mut command = Command::new(&self.xtask);
        command.args(["bench", "corpus", name, &megabytes.to_string()]);
        run_command(command.arg(path))
    }

    pub(crate) fn contenders(&self, file: &Path, slice: &Path) -> Result<Vec<Contender>> {
        let xtask = |name: &str, floor: &str| {
            let args = ["bench", "floor", floor, &file.to_string_lossy()].map(str::to_owned);
            contender(name, &self.xtask, args.to_vec(), file, Counts::Lines)
        };
        let mut all = vec![
            contender(
                "wc -l",
                Path::new("wc"),
                arguments(&["-l"], file),
                file,
                Counts::Lines,
            )?,
            xtask("line split", "lines")?,
            xtask(FLOOR, "parse")?,
        ];
        if has_jq() {
            // Its output is thrown away by a shell, so that the pipe to us costs it nothing.
            let script = "exec jq -c . \"$1\" > /dev/null";
            let args = arguments(&["-c", script, "sh"], slice);
            all.push(contender(
                JQ,
                Path::new("sh"),
                args,
                slice,
                Counts::Nothing,
            )?);
        }
        all.extend(self.writers(file)?);
        Ok(all)
    }

    /// One reader, before the writer that says least.
    pub(crate) fn reader(&self, name: &str, from: &str, file: &Path) -> Result<Contender> {
        let flags = [
            "convert",
            "--from",
            from,
            "--to",
            "takopi",
            "--report",
            "--json",
            "-o",
            "/dev/null",
        ];
        let args = arguments(&flags, file);
        contender(name, &self.linkspan, args, file, Counts::Report)
    }

    /// Those of the writers that this build has.
    pub(crate) fn writers(&self, file: &Path) -> Result<Vec<Contender>> {
        #[derive(Deserialize)]
        struct FormatRow {
            name: String,
            write: bool,
        }
        let formats = capture(Command::new(&self.linkspan).args(["formats", "--json"]))?.stdout;
        let formats = serde_json::Deserializer::from_slice(&formats).into_iter::<FormatRow>();
        let formats: Vec<FormatRow> = formats.collect::<Result<_, _>>()?;
        let is_there = |name: &str| formats.iter().any(|it| it.write && it.name == name);
        let writers = WRITERS.iter().filter(|(name, _)| is_there(name));
        writers
            .map(|(name, goal)| {
                let flags = [
                    "convert", "--from", "claude", "--to", name, "--report", "--json",
                ];
                let flags = [&flags[..], &["-o", "/dev/null"]].concat();
                let args = arguments(&flags, file);
                let it = contender(name, &self.linkspan, args, file, Counts::Report)?;
                Ok(Contender { goal: *goal, ..it })
            })
            .collect()
    }
}

fn contender(
    name: &str,
    program: &Path,
    args: Vec<String>,
    file: &Path,
    counts: Counts,
) -> Result<Contender> {
    Ok(Contender {
        name: name.to_owned(),
        goal: None,
        bytes: fs::metadata(file)?.len(),
        program: program.to_owned(),
        args,
        counts,
    })
}

fn arguments(flags: &[&str], file: &Path) -> Vec<String> {
    let mut args: Vec<String> = flags.iter().map(|it| (*it).to_owned()).collect();
    args.push(file.to_string_lossy().into_owned());
    args
}

fn has_jq() -> bool {
    let mut command = Command::new("jq");
    let status = command.arg("--version").stdout(Stdio::null()).status();
    status.is_ok_and(|it| it.success())
}
