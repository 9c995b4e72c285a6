//! Builds a copy of the workspace that has every mutant behind a switch.
//!
//! Mutants that the compiler refuses are found by their places in its errors and left out of the next try.
//! Errors come in waves (types first, borrows then, and a crate after those that it needs), so there are some tries.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{
    MutatedFile,
    switch::{Span, instrument},
};
use crate::{
    process::{capture, cargo, root, tail},
    report::print_line,
};

/// The copy, and where it is built.
pub(super) struct TreeCopy {
    tree: PathBuf,
    target: PathBuf,
}

/// Appended to the crate that all others use.
const SWITCH: &str = include_str!("runtime.rs");
const SWITCH_CRATE: &str = "crates/model/src/lib.rs";

impl TreeCopy {
    pub(super) fn new(folder: &Path) -> TreeCopy {
        TreeCopy {
            tree: folder.join("tree"),
            target: folder.join("target"),
        }
    }

    /// Builds all tests; the mutants in `refused` are left out, and those that do not compile are added to it.
    pub(super) fn build(
        &self,
        sources: &[MutatedFile],
        refused: &mut HashSet<usize>,
    ) -> Result<()> {
        let n_mutants = sources.iter().map(MutatedFile::n_mutants).sum::<usize>();
        loop {
            let spans = self.write(sources, refused, n_mutants)?;
            print_line(&format!(
                "building, with {} of {n_mutants} mutants",
                n_mutants - refused.len()
            ));
            let errors = self.try_build()?;
            if errors.is_empty() {
                return Ok(());
            }
            let before = refused.len();
            refused.extend(errors.iter().flat_map(|it| it.mutants(&spans)));
            if refused.len() == before {
                let all: Vec<String> = errors.into_iter().map(|it| it.rendered).collect();
                bail!(
                    "the copy does not build, whatever its mutants\n{}",
                    all.join("\n")
                );
            }
        }
    }

    /// The command that builds the tests, to be asked for their programs.
    pub(super) fn tests(&self) -> Command {
        let mut command = cargo();
        command
            .current_dir(&self.tree)
            .args(["test", "--quiet", "--workspace", "--exclude", "xtask"])
            .args(["--no-run", "--message-format=json", "--target-dir"])
            .arg(&self.target);
        command
    }

    fn try_build(&self) -> Result<Vec<CompileError>> {
        let mut command = self.tests();
        command.arg("--no-fail-fast").stdin(Stdio::null());
        let output = command.output().context("cannot start cargo")?;
        if output.status.success() {
            return Ok(Vec::new());
        }
        let lines = output.stdout.split(|it| *it == b'\n');
        let errors: Vec<CompileError> = lines
            .filter_map(|it| serde_json::from_slice::<CargoLine>(it).ok()?.message)
            .filter(|it| it.level.starts_with("error") && !it.spans.is_empty())
            .collect();
        if errors.is_empty() {
            bail!(
                "cargo failed\n{}",
                tail(&String::from_utf8_lossy(&output.stderr))
            );
        }
        Ok(errors)
    }

    /// Brings the copy up to date. Files that are as they should be keep their times, so that cargo builds little.
    fn write(
        &self,
        sources: &[MutatedFile],
        refused: &HashSet<usize>,
        n_mutants: usize,
    ) -> Result<BTreeMap<String, Vec<Span>>> {
        let listed = capture(Command::new("git").current_dir(root()).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let listed = String::from_utf8(listed.stdout)?;
        let mut spans = BTreeMap::new();
        let mut files = BTreeSet::new();
        for file in listed.split_terminator('\0') {
            let from = root().join(file);
            if from.is_symlink() && from.is_dir() {
                link_if_new(&self.tree.join(file), &fs::read_link(&from)?)?;
                files.insert(self.tree.join(file));
                continue;
            }
            let Ok(mut bytes) = fs::read(from) else {
                continue; // It was deleted, but git does not know that yet.
            };
            if let Some(source) = sources.iter().find(|it| it.file == file) {
                let kept = |id: usize| !refused.contains(&id);
                let (text, found) = instrument(&source.text, &source.sites, source.first, kept);
                bytes = text.into_bytes();
                spans.insert(file.to_owned(), found);
            }
            if file == SWITCH_CRATE {
                let switch = SWITCH.replace("N_MUTANTS", &(n_mutants + 1).to_string());
                bytes.extend(format!("\npub mod mutants {{\n{switch}\n}}\n").into_bytes());
            }
            write_if_new(&self.tree.join(file), &bytes)?;
            files.insert(self.tree.join(file));
        }
        remove_others(&self.tree.join("crates"), &files)?;
        Ok(spans)
    }
}

fn write_if_new(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|it| it == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
    fs::write(path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}

fn link_if_new(path: &Path, target: &Path) -> Result<()> {
    if path.is_symlink() {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a link is in a folder")?)?;
    symlink(target, path).with_context(|| format!("cannot write `{}`", path.display()))
}

/// A module of tests that has been renamed would run twice.
fn remove_others(folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Of the entry, not of the path: a link to a folder is not entered.
        if entry.file_type()?.is_dir() {
            remove_others(&path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct CargoLine {
    message: Option<CompileError>,
}

#[derive(Deserialize)]
struct CompileError {
    level: String,
    spans: Vec<ErrorSpan>,
    rendered: String,
}

#[derive(Deserialize)]
struct ErrorSpan {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: ErrorSpan,
}

impl CompileError {
    /// The mutant that the error is in; else one that it mentions; else all of the expression or function around it.
    fn mutants(&self, spans: &BTreeMap<String, Vec<Span>>) -> Vec<usize> {
        let primary = || self.spans.iter().filter(|it| it.is_primary);
        let found = innermost(primary(), spans, true)
            .or_else(|| innermost(self.spans.iter(), spans, true))
            .or_else(|| innermost(primary(), spans, false))
            .or_else(|| innermost(self.spans.iter(), spans, false));
        found.map(|it| it.ids.clone()).unwrap_or_default()
    }
}

fn innermost<'s, 'e>(
    errors: impl Iterator<Item = &'e ErrorSpan>,
    spans: &'s BTreeMap<String, Vec<Span>>,
    is_mutant: bool,
) -> Option<&'s Span> {
    let around = errors
        .flat_map(|it| it.with_expansions())
        .flat_map(|error| {
            let inside = spans.get(&error.file_name).into_iter().flatten();
            inside.filter(move |it| {
                it.is_mutant == is_mutant
                    && it.bytes.start <= error.byte_start
                    && error.byte_end <= it.bytes.end
            })
        });
    around.min_by_key(|it| it.bytes.len())
}

impl ErrorSpan {
    fn with_expansions(&self) -> impl Iterator<Item = &ErrorSpan> {
        std::iter::successors(Some(self), |it| it.expansion.as_ref().map(|it| &it.span))
    }
}
