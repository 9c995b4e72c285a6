//! Builds the program that all packages carry, and reads what it needs of a system.

use std::{
    env,
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{Folders, platform::Platform, sum};
use crate::{
    process::{capture, cargo, root, run, target_dir},
    python,
    report::print_line,
};

/// Where the program comes from.
#[derive(Debug, Default)]
pub(super) enum ProgramSource {
    /// Built so that it runs on old systems, too: on Linux with zig, for glibc 2.17.
    #[default]
    Portable,
    /// The ordinary release build, for systems as new as this one.
    Plain,
    /// Built elsewhere, as `Plain`.
    Given(PathBuf),
}

impl ProgramSource {
    /// The oldest glibc that its wheel promises to run with.
    pub(super) fn glibc(&self) -> Glibc {
        match self {
            Self::Portable => Glibc(2, 17),
            Self::Plain | Self::Given(_) => Glibc(2, 34),
        }
    }
}

/// A version of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glibc(pub(super) u32, pub(super) u32);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What a program asks of the system it runs on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) glibc: Option<Glibc>,
    pub(super) libraries: Vec<String>,
}

/// Returns the path of a stripped program.
pub(super) fn build(
    source: &ProgramSource,
    platform: &Platform,
    folders: &Folders,
) -> Result<PathBuf> {
    let built = match source {
        ProgramSource::Given(path) => path.clone(),
        ProgramSource::Plain => {
            run(cargo().args(["build", "--release"]).args(PROGRAM))?;
            target_dir()?.join("release/linkspan")
        }
        ProgramSource::Portable if platform.is_linux() => zig_build(platform, folders)?,
        ProgramSource::Portable => {
            let mut build = cargo();
            build.args(["build", "--profile", "shipped"]).args(PROGRAM);
            // The one that the wheel's name promises.
            build.env("MACOSX_DEPLOYMENT_TARGET", "11.0");
            build.env("RUSTFLAGS", remapped()?);
            run(&mut build)?;
            target_dir()?.join("shipped/linkspan")
        }
    };
    let program = folders.work.join("linkspan");
    fs::copy(&built, &program)
        .with_context(|| format!("cannot copy the program `{}`", built.display()))?;
    if !matches!(source, ProgramSource::Portable) {
        run(Command::new("strip").arg(&program))?;
    }
    Ok(program)
}

const PROGRAM: [&str; 5] = ["--locked", "--package", "linkspan", "--bin", "linkspan"];

fn zig_build(platform: &Platform, folders: &Folders) -> Result<PathBuf> {
    let python = tools("zig.txt", folders)?;
    let bin = python.parent().unwrap_or(Path::new("."));
    let mut path = OsString::from(bin);
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut build = cargo();
    build
        .args(["zigbuild", "--profile", "shipped"])
        .args(PROGRAM);
    let glibc = ProgramSource::Portable.glibc();
    build
        .arg("--target")
        .arg(format!("{}.{glibc}", platform.triple));
    // cargo finds its subcommand there, and that finds zig.
    build.env("PATH", path);
    build.env("RUSTFLAGS", remapped()?);
    run(&mut build)?;
    Ok(target_dir()?.join(platform.triple).join("shipped/linkspan"))
}

/// The paths of this machine are private, and would make the build irreproducible.
fn remapped() -> Result<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    Ok(format!(
        "--remap-path-prefix={}=cargo --remap-path-prefix={}=linkspan",
        home.display(),
        root().display()
    ))
}

/// A Python with the tools that a list of `packages/tools` pins.
pub(super) fn tools(list: &str, folders: &Folders) -> Result<PathBuf> {
    let list = root().join("packages/tools").join(list);
    let dir = folders.tools.join(&sum(&list)?[..16]);
    if !dir.exists() {
        print_line(&format!("install {}", list.display()));
    }
    python::environment(&dir, &list)
}

/// Reads it with `readelf`, which comes with the linker.
pub(super) fn needs(program: &Path, platform: &Platform) -> Result<Needs> {
    if !platform.is_linux() {
        return Ok(Needs {
            glibc: None,
            libraries: Vec::new(),
        });
    }
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--dynamic", "--version-info"]);
    let printed = capture(readelf.arg(program))?.stdout;
    let needs = parse_needs(&String::from_utf8_lossy(&printed));
    ensure!(
        needs.glibc.is_some(),
        "`{}` names no version of glibc",
        program.display()
    );
    Ok(needs)
}

fn parse_needs(printed: &str) -> Needs {
    let version = |line: &str| {
        let (_, after) = line.split_once("Name: GLIBC_")?;
        let (major, rest) = after.split_whitespace().next()?.split_once('.')?;
        let minor = rest.split('.').next()?;
        Some(Glibc(major.parse().ok()?, minor.parse().ok()?))
    };
    let library = |line: &str| {
        let (_, after) = line.split_once("(NEEDED)")?;
        let (_, name) = after.split_once('[')?;
        Some(name.trim_end().trim_end_matches(']').to_owned())
    };
    Needs {
        glibc: printed.lines().filter_map(version).max(),
        libraries: printed.lines().filter_map(library).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_counts_as_a_number() {
        let printed = "\
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
  0x0060:   Name: GLIBC_2.9  Flags: none  Version: 7
  0x0070:   Name: GLIBC_2.2.5  Flags: none  Version: 3
  0x0090:   Name: GLIBC_2.17  Flags: none  Version: 12
  0x00a0:   Name: GCC_4.2.0  Flags: none  Version: 4
";
        let expected = Needs {
            glibc: Some(Glibc(2, 17)),
            libraries: vec!["libgcc_s.so.1".to_owned(), "libc.so.6".to_owned()],
        };
        assert_eq!(parse_needs(printed), expected);
    }
}
