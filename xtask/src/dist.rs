//! Makes everything that can be installed, into `target/dist`: `cargo xtask dist`.
//!
//! The program is built once. The wheel is packed first, by the backend of the Python package, which also
//! lets the program print its manual pages and completions; all others take both out of the wheel. The same
//! commit gives the same bytes: times are those of the commit, files are sorted, and belong to nobody.

mod archive;
mod check;
mod deb;
mod formula;
mod npm;
mod platform;
mod program;
mod release;
#[cfg(test)]
mod tests;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use self::{
    archive::{Entry, tar_gz},
    platform::Platform,
    program::ProgramSource,
    release::Release,
};
use crate::{
    process::{root, target_dir},
    report::{Warnings, print_line},
};

/// More is a mistake in the build, or wants a reason.
const MAX_PROGRAM: u64 = 13 * 1024 * 1024;
const SUMS: &str = "SHA256SUMS";

/// The arguments of `cargo xtask dist`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    source: ProgramSource,
    is_checked: bool,
    /// The tag that is released: it must fit the version and the changelog.
    tag: Option<String>,
    /// Nothing is built: the archives of all platforms are there, and want sums and a formula.
    is_collecting: bool,
}

impl Options {
    pub(crate) fn parse(mut args: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        loop {
            args = match args {
                [] => return Ok(options),
                ["--plain", rest @ ..] => {
                    options.source = ProgramSource::Plain;
                    rest
                }
                ["--program", path, rest @ ..] => {
                    options.source = ProgramSource::Given(PathBuf::from(path));
                    rest
                }
                ["--check", rest @ ..] => {
                    options.is_checked = true;
                    rest
                }
                ["--tag", tag, rest @ ..] => {
                    options.tag = Some((*tag).to_owned());
                    rest
                }
                ["--collect", rest @ ..] => {
                    options.is_collecting = true;
                    rest
                }
                [other, ..] => bail!("`dist` has no option `{other}`"),
            };
        }
    }
}

/// Where everything goes.
struct Folders {
    dist: PathBuf,
    npm: PathBuf,
    /// Of this run alone.
    work: PathBuf,
    /// Pinned tools, kept from run to run.
    tools: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Warnings> {
    let release = Release::read()?;
    release.refuse_wrong_version(options.tag.as_deref())?;
    let target = target_dir()?;
    let folders = Folders {
        dist: target.join("dist"),
        npm: target.join("dist/npm"),
        work: target.join("dist-work"),
        tools: target.join("dist-tools"),
    };
    if options.is_collecting {
        formula::write(&release, &folders.dist)?;
        write_sums(&folders.dist)?;
        return Ok(Warnings::new());
    }
    for folder in [&folders.dist, &folders.work] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    fs::create_dir_all(&folders.npm)?;
    fs::create_dir_all(&folders.work)?;
    let mut warnings = Warnings::new();
    let platform = Platform::of_this_machine()?;

    print_line("the program");
    let program = program::build(&options.source, platform, &folders)?;
    let needs = program::needs(&program, platform)?;
    let n_bytes = program.metadata()?.len();
    if n_bytes > MAX_PROGRAM {
        warnings.push(format!(
            "the program has {n_bytes} bytes, more than {MAX_PROGRAM}"
        ));
    }
    print_line("the wheel and the sources");
    let built = wheel::build(&release, platform, &options.source, &program, &folders)?;
    if let (Some(promised), Some(needed)) = (built.glibc, needs.glibc) {
        ensure!(
            needed <= promised,
            "the program needs glibc {needed}, and the wheel is for {promised} and later"
        );
    }
    print_line("the archive");
    tarball(&release, platform, &built.files, &folders.dist)?;
    print_line("the npm packages");
    npm::build(&release, platform, &built.files, &folders)?;
    if let Some(architecture) = platform.deb {
        print_line("the Debian package");
        deb::build(&release, architecture, &needs, &built.files, &folders)?;
    }
    formula::write(&release, &folders.dist)?;
    write_sums(&folders.dist)?;
    print_line(&fs::read_to_string(folders.dist.join(SUMS))?);
    if options.is_checked {
        check::run(&release, platform, &built, &folders)?;
    }
    Ok(warnings)
}

/// The program with everything that belongs to it, to be unpacked anywhere.
fn tarball(
    release: &Release,
    platform: &Platform,
    installed: &wheel::Installed,
    dist: &Path,
) -> Result<()> {
    let top = platform.archive(&release.version);
    let mut entries = vec![Entry::program(
        format!("{top}/linkspan"),
        installed.program.clone(),
    )];
    for (name, content) in &installed.share {
        entries.push(Entry::file(format!("{top}/share/{name}"), content.clone()));
    }
    for name in ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        let content = fs::read(root().join(name)).with_context(|| format!("no `{name}`"))?;
        entries.push(Entry::file(format!("{top}/{name}"), content));
    }
    if platform.deb.is_some() {
        let unit = systemd_unit("%h/.local/bin/linkspan")?;
        entries.push(Entry::file(
            format!("{top}/linkspan.service"),
            unit.into_bytes(),
        ));
    }
    let packed = tar_gz(entries, release.epoch)?;
    fs::write(dist.join(format!("{top}.tar.gz")), packed)?;
    Ok(())
}

/// The unit for a program at this path.
fn systemd_unit(program: &str) -> Result<String> {
    let template = fs::read_to_string(root().join("packages/systemd/linkspan.service"))?;
    Ok(template.replace("@PROGRAM@", program))
}

/// In the form of `sha256sum`, so that `sha256sum --check SHA256SUMS` reads it.
fn write_sums(dist: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for path in files_below(dist)? {
        let name = path.strip_prefix(dist)?.to_string_lossy().into_owned();
        if name != SUMS {
            lines.push(format!("{}  {name}\n", sum(&path)?));
        }
    }
    fs::write(dist.join(SUMS), lines.concat())?;
    Ok(())
}

fn sum(path: &Path) -> Result<String> {
    let digest = Sha256::digest(fs::read(path)?);
    Ok(digest.iter().map(|it| format!("{it:02x}")).collect())
}

/// All files below a folder, sorted; a folder that is not there has none.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = folder.read_dir() else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Makes the folders on the way to it, too.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy `{}`", from.display()))?;
    Ok(())
}
