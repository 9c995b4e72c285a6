//! The wheel and the archive of the sources, made by the backend of the Python package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{
    Folders, files_below,
    platform::Platform,
    program::{Glibc, ProgramSource},
    release::Release,
};
use crate::{
    process::{root, run},
    python,
};

/// `build_backend.py` as pip calls it: the wheel, then the sources.
const BUILD: &str = "\
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import build_backend
_, _, dist, program, platform = sys.argv
build_backend.build_wheel(dist, {'program': program, 'platform': platform})
build_backend.build_sdist(dist)
";

/// What was built.
pub(super) struct Built {
    pub(super) wheel: PathBuf,
    pub(super) sources: PathBuf,
    /// The platform in the wheel's name.
    pub(super) tag: String,
    /// The oldest glibc that the wheel's name promises.
    pub(super) glibc: Option<Glibc>,
    pub(super) files: Installed,
}

/// The files of the wheel other than Python modules.
pub(super) struct Installed {
    pub(super) program: Vec<u8>,
    /// Manual pages and completions, by their paths below `share`.
    pub(super) share: Vec<(String, Vec<u8>)>,
}

pub(super) fn build(
    release: &Release,
    platform: &Platform,
    source: &ProgramSource,
    program: &Path,
    folders: &Folders,
) -> Result<Built> {
    let glibc = platform.is_linux().then(|| source.glibc());
    let tag = tag(platform, glibc);
    let python = python::find().context(python::MISSING)?;
    let mut build = Command::new(python);
    build
        .args(["-c", BUILD])
        .arg(root().join("packages/python"))
        .args([&folders.dist, program])
        .arg(&tag)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    run(&mut build)?;
    let name = format!("linkspan-{}", release.version);
    let wheel = folders.dist.join(format!("{name}-py3-none-{tag}.whl"));
    let unpacked = folders.work.join("wheel");
    unpack(&wheel, &unpacked)?;
    let files = installed(&unpacked.join(format!("{name}.data")))?;
    Ok(Built {
        sources: folders.dist.join(format!("{name}.tar.gz")),
        wheel,
        tag,
        glibc,
        files,
    })
}

/// The platform in the name of a wheel; older versions of pip know 2.17 as `manylinux2014` only.
fn tag(platform: &Platform, glibc: Option<Glibc>) -> String {
    let machine = platform.wheel;
    match glibc {
        None => machine.to_owned(),
        Some(Glibc(2, 17)) => format!("manylinux_2_17_{machine}.manylinux2014_{machine}"),
        Some(Glibc(major, minor)) => format!("manylinux_{major}_{minor}_{machine}"),
    }
}

fn unpack(wheel: &Path, folder: &Path) -> Result<()> {
    let python = python::find().context(python::MISSING)?;
    let mut unzip = Command::new(python);
    unzip.args(["-m", "zipfile", "-e"]).args([wheel, folder]);
    run(&mut unzip)
}

fn installed(data: &Path) -> Result<Installed> {
    let share = data.join("data/share");
    let file = |path: PathBuf| -> Result<(String, Vec<u8>)> {
        let name = path.strip_prefix(&share)?.to_string_lossy().into_owned();
        Ok((name, fs::read(path)?))
    };
    let program = data.join("scripts/linkspan");
    Ok(Installed {
        program: fs::read(&program)
            .with_context(|| format!("the wheel has no `{}`", program.display()))?,
        share: files_below(&share)?
            .into_iter()
            .map(file)
            .collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::platform::PLATFORMS;

    #[test]
    fn a_wheel_is_named_after_the_oldest_system_it_runs_on() {
        let names: Vec<String> = PLATFORMS
            .iter()
            .map(|it| tag(it, it.is_linux().then(|| ProgramSource::Portable.glibc())))
            .collect();
        let expected = [
            "manylinux_2_17_x86_64.manylinux2014_x86_64",
            "manylinux_2_17_aarch64.manylinux2014_aarch64",
            "macosx_11_0_x86_64",
            "macosx_11_0_arm64",
        ];
        assert_eq!(names, expected);
        let plain = tag(&PLATFORMS[0], Some(ProgramSource::Plain.glibc()));
        assert_eq!(plain, "manylinux_2_34_x86_64");
    }
}
