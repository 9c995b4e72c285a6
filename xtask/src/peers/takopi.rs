//! takopi and a Python 3.14 to run it, below the target folder.
//!
//! takopi takes no older Python, and few systems have that one. Where there is none, Debian's is unpacked:
//! nothing is installed, and it runs with the C library that it was built with. Its packages are pinned in
//! `takopi.txt`; the patch release of Python is the one that Debian has that day.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::install::hash;
use crate::{
    process::{capture, root, run, run_with_retries},
    python,
    report::print_line,
};

pub(super) const VERSION: &str = "3.14";
/// What a Python may lack that takopi needs.
const MODULES: &str = "ssl";
const DONE: &str = ".complete";

/// An installation.
#[derive(Debug)]
pub(super) struct Takopi {
    folder: PathBuf,
}

impl Takopi {
    /// Installs it in a folder of `work`, unless it is there; `pip` is a Python that has pip.
    pub(super) fn install(work: &Path, pip: &Path) -> Result<Self> {
        let list = root().join("peers/python/takopi.txt");
        let folder = work.join(format!("takopi-{}", hash(&list)?));
        let takopi = Self { folder };
        if takopi.folder.join(DONE).exists() {
            return Ok(takopi);
        }
        print_line("install peers/python/takopi.txt, and a Python for it");
        if takopi.folder.exists() {
            fs::remove_dir_all(&takopi.folder)?;
        }
        fs::create_dir_all(&takopi.folder)?;
        takopi.add_python()?;
        run_with_retries(|| {
            let mut command = Command::new(pip);
            command.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
            command.args(["--disable-pip-version-check", "--root-user-action=ignore"]);
            // Of another Python than the one that installs.
            command.args(["--python-version", VERSION, "--only-binary=:all:"]);
            command.args(["--ignore-requires-python", "--target"]);
            command.arg(takopi.packages()).arg("--requirement");
            command.arg(&list);
            command
        })?;
        takopi.compile()?;
        takopi.link_types()?;
        fs::write(takopi.folder.join(DONE), "")?;
        Ok(takopi)
    }

    /// A script of `peers/python`, with takopi, with our package as one that is installed, and with the
    /// modules of its tests.
    pub(super) fn script(&self, name: &str) -> Result<Command> {
        let package = root().join("packages/python");
        let modules = [package.join("src"), package.join("tests/agents")];
        let paths = modules
            .into_iter()
            .chain([self.add_metadata()?, self.packages()]);
        let mut command = Command::new(self.python());
        command
            .arg(root().join("peers/python").join(name))
            .env("PYTHONPATH", env::join_paths(paths)?)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }

    pub(super) fn python(&self) -> PathBuf {
        self.folder.join("python/usr/bin/python")
    }

    /// The folder with takopi and what it needs.
    pub(super) fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// What mypy may look at: of all packages, some take the place of its own.
    pub(super) fn types(&self) -> PathBuf {
        self.folder.join("types")
    }

    fn link_types(&self) -> Result<()> {
        fs::create_dir_all(self.types())?;
        for name in ["takopi", "msgspec"] {
            symlink(self.packages().join(name), self.types().join(name))?;
        }
        Ok(())
    }

    /// Neither pip nor Debian's package without its scripts does it, and every start would take seconds.
    fn compile(&self) -> Result<()> {
        let library = self.folder.join("python/usr/lib");
        let library = library.join(format!("python{VERSION}"));
        let library = Some(library).filter(|it| it.exists());
        let mut command = Command::new(self.python());
        command.args(["-m", "compileall", "-q", "-j", "2"]);
        command.arg(self.packages()).args(library);
        // Some files are for tests of the compiler, and are meant to fail.
        capture(&mut command).ok();
        Ok(())
    }

    /// Writes what an installer notes about our package: takopi finds plug-ins by that alone.
    fn add_metadata(&self) -> Result<PathBuf> {
        let folder = self.folder.join("metadata");
        let info = folder.join("linkspan-0.dist-info");
        fs::create_dir_all(&info)?;
        let metadata = "Metadata-Version: 2.1\nName: linkspan\nVersion: 0\n";
        fs::write(info.join("METADATA"), metadata)?;
        fs::write(info.join("entry_points.txt"), entry_points()?)?;
        Ok(folder)
    }

    fn add_python(&self) -> Result<()> {
        let python = self.python();
        let bin = python.parent().context("it has a folder")?;
        fs::create_dir_all(bin)?;
        match python::find_version(VERSION, MODULES) {
            Some(found) => wrap(&python, &format!("exec {found:?} \"$@\""))?,
            None => self.unpack_python(&python)?,
        }
        ensure!(
            python::works(&python, VERSION, MODULES),
            "`{}` does not work",
            python.display()
        );
        Ok(())
    }

    /// Debian's, with all that it depends on. The release with the newest Python has no fixed versions.
    fn unpack_python(&self, python: &Path) -> Result<()> {
        let name = format!("python{VERSION}");
        let apt = self.folder.join("apt");
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(name))?;
        }
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let mirror = debian_mirror().filter(|_| Path::new(keys).exists());
        let mirror = mirror.with_context(|| {
            format!("there is no Python {VERSION}, and no Debian to get it from: install one")
        })?;
        let source = format!("deb [signed-by={keys}] {mirror} sid main\n");
        fs::write(apt.join("sources.list"), source)?;
        // Nothing counts as installed, so nothing that is needed is left out.
        fs::write(apt.join("status"), "")?;
        let settings = [
            ("Dir::Etc::sourcelist", apt.join("sources.list")),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::State", apt.clone()),
            ("Dir::State::status", apt.join("status")),
            ("Dir::Cache", apt.join("cache")),
            ("APT::Install-Recommends", "false".into()),
            ("APT::Sandbox::User", "root".into()),
            ("Acquire::Languages", "none".into()),
            // A mirror that stands still is good enough: signatures are checked all the same.
            ("Acquire::Check-Valid-Until", "false".into()),
            ("Debug::NoLocking", "true".into()),
        ];
        let get = |words: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(["-qq", "-y"]);
            for (key, value) in &settings {
                command.arg("-o").arg(format!("{key}={}", value.display()));
            }
            command.args(words);
            command
        };
        run_with_retries(|| get(&["update"]))?;
        run_with_retries(|| get(&["install", "--download-only", &name]))?;
        let to = self.folder.join("python");
        for package in fs::read_dir(apt.join("cache/archives"))? {
            let package = package?.path();
            if package.extension().is_some_and(|it| it == "deb") {
                run(Command::new("dpkg").arg("-x").arg(package).arg(&to))?;
            }
        }
        fs::remove_dir_all(&apt)?;
        let (libraries, loader) = loader(&to.join("usr/lib"))?;
        let program = python.with_file_name(&name);
        // `$0` is what Python takes itself for, and starts again.
        let line = format!(
            "exec {loader:?} --library-path {libraries:?} --argv0 \"$0\" {program:?} \"$@\""
        );
        wrap(python, &line)
    }
}

/// Where this machine gets Debian's packages from.
fn debian_mirror() -> Option<String> {
    let mut command = Command::new("apt-get");
    let said = capture(command.args(["update", "--print-uris"])).ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let addresses = said.lines().filter_map(|it| it.strip_prefix('\''));
    let mut mirrors = addresses.filter_map(|it| Some(it.split_once("/dists/")?.0));
    mirrors
        .find(|it| it.ends_with("/debian"))
        .map(str::to_owned)
}

/// The C library's folder, and the program in it that starts others.
fn loader(lib: &Path) -> Result<(PathBuf, PathBuf)> {
    for folder in fs::read_dir(lib)? {
        let folder = folder?.path();
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let file = file?;
            let name = file.file_name();
            if name.to_string_lossy().starts_with("ld-linux") {
                return Ok((folder, file.path()));
            }
        }
    }
    bail!("there is no `ld-linux` in `{}`", lib.display())
}

fn wrap(script: &Path, line: &str) -> Result<()> {
    fs::write(script, format!("#!/bin/sh\n{line}\n"))?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Those of takopi in `pyproject.toml`, as an installer writes them.
fn entry_points() -> Result<String> {
    const GROUP: &str = "takopi.engine_backends";
    let text = fs::read_to_string(root().join("pyproject.toml"))?;
    let table = format!("[project.entry-points.\"{GROUP}\"]");
    let (_, rest) = text
        .split_once(&table)
        .with_context(|| format!("`pyproject.toml` has no {table}"))?;
    let entries = rest.split("\n[").next().unwrap_or(rest);
    Ok(format!("[{GROUP}]\n{}\n", entries.replace('"', "").trim()))
}
