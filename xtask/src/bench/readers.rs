//! Every reader beside Claude Code's, and how the cost of each grows with its input.
//!
//! The sessions are the same made-up ones: written by linkspan itself where it writes the format,
//! by a dialect of the generator where it does not. All go to `takopi`, the writer that says least.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{
    contenders::{BenchPrograms, Contender},
    corpus::Kind,
};
use crate::process::run as run_command;

/// A file to read, and where it comes from.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) from: &'static str,
    made: SourceKind,
}

enum SourceKind {
    Claude(Kind),
    /// Written by linkspan from the Claude Code corpus.
    Written(&'static str),
    Dialect(&'static str),
}

/// The readers, Claude Code's first: the others are measured by it.
pub(crate) const READERS: &[Source] = &[
    source("claude", "claude", SourceKind::Claude(Kind::Partial)),
    source("codex", "codex", SourceKind::Written("thread")),
    source("opencode", "opencode", SourceKind::Dialect("opencode")),
    source("gemini", "gemini", SourceKind::Dialect("gemini")),
    source(
        "openresponses",
        "openresponses",
        SourceKind::Dialect("openresponses"),
    ),
    source("openhands", "openhands", SourceKind::Written("openhands")),
    source("acp", "acp", SourceKind::Written("acp")),
    source("ag-ui", "ag-ui", SourceKind::Written("ag-ui")),
    source("linkspan", "linkspan", SourceKind::Written("linkspan")),
];

/// Shapes of input that a careless reader is slow on.
pub(crate) const SHAPES: &[Source] = &[
    source("small lines", "claude", SourceKind::Dialect("small-lines")),
    source("large lines", "claude", SourceKind::Dialect("large-lines")),
    source("updates of one call", "acp", SourceKind::Dialect("updates")),
];

const fn source(name: &'static str, from: &'static str, made: SourceKind) -> Source {
    Source { name, from, made }
}

impl Source {
    /// Writes the file and says how it is converted.
    pub(crate) fn contender(
        &self,
        programs: &BenchPrograms,
        folder: &Path,
        megabytes: u64,
    ) -> Result<Contender> {
        let file = folder.join(format!("{}.{megabytes}", self.name.replace(' ', "-")));
        match self.made {
            SourceKind::Claude(kind) => programs.write_corpus(kind.name(), megabytes, &file)?,
            SourceKind::Dialect(name) => programs.write_corpus(name, megabytes, &file)?,
            SourceKind::Written(to) => written(programs, folder, to, megabytes, &file)?,
        }
        programs.reader(self.name, self.from, &file)
    }
}

/// Sizes differ between formats: the table says how large each file is.
fn written(
    programs: &BenchPrograms,
    folder: &Path,
    to: &str,
    megabytes: u64,
    file: &Path,
) -> Result<()> {
    let claude: PathBuf = folder.join(format!("claude-for-{to}.{megabytes}"));
    programs.write_corpus(Kind::Partial.name(), megabytes, &claude)?;
    let mut command = Command::new(programs.linkspan());
    command.args(["convert", "--from", "claude", "--to", to]);
    run_command(command.arg(&claude).arg("-o").arg(file))?;
    fs::remove_file(claude)?;
    Ok(())
}
