//! Finds a Python that works, and makes a virtual environment from pinned requirements.
//!
//! OpenHands refuses older Pythons, and version managers put launchers on the path that
//! fail when no version is chosen, so every candidate is tried before it is believed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::process::{run, run_with_retries};

/// Why [`find`] found nothing.
pub(crate) const MISSING: &str = "no Python 3.12 found on the path or under pyenv";
const DONE: &str = ".complete";

/// Returns the interpreter of the environment at `dir`, made first if it is not complete.
pub(crate) fn environment(dir: &Path, requirements: &Path) -> Result<PathBuf> {
    let python = dir.join("bin").join("python");
    if dir.join(DONE).exists() {
        return Ok(python);
    }
    let base = find().context(MISSING)?;
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    run(Command::new(base).args(["-m", "venv"]).arg(dir))?;
    run_with_retries(|| {
        let mut command = Command::new(&python);
        // The list holds everything, so the resolver has nothing to add and much to get wrong.
        command.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
        ]);
        command.arg("--requirement").arg(requirements);
        command
    })?;
    run(Command::new(&python).args(["-m", "pip", "check"]))?;
    fs::write(dir.join(DONE), "")?;
    Ok(python)
}

/// A Python 3.12 that works, and makes environments.
pub(crate) fn find() -> Option<PathBuf> {
    find_version("3.12", "venv, ensurepip")
}

/// A Python of this version that works, and has these modules.
pub(crate) fn find_version(version: &str, modules: &str) -> Option<PathBuf> {
    let path: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let name = format!("python{version}");
    let on_path = path.iter().map(|it| it.join(&name));
    let roots = [
        env::var_os("PYENV_ROOT").map(PathBuf::from),
        env::home_dir().map(|it| it.join(".pyenv")),
    ];
    let managed = roots
        .into_iter()
        .flatten()
        .chain(path.iter().flat_map(|it| managers(it)));
    on_path
        .chain(managed.flat_map(|it| versions(&it, version)))
        .find(|it| works(it, version, modules))
}

// With HOME cleared, pyenv is still found through its shims or versions on the path.
fn managers(dir: &Path) -> Vec<PathBuf> {
    let real = dir
        .join("python3")
        .canonicalize()
        .unwrap_or_else(|_| dir.join("python3"));
    let parents = real.ancestors().filter(|it| it.join("versions").is_dir());
    parents.map(Path::to_owned).collect()
}

fn versions(manager: &Path, version: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(manager.join("versions"))
        .into_iter()
        .flatten()
        .flatten();
    let matching = entries.filter(|it| it.file_name().to_string_lossy().starts_with(version));
    let mut found: Vec<PathBuf> = matching
        .map(|it| it.path().join("bin").join(format!("python{version}")))
        .collect();
    found.sort();
    found
}

/// Whether it is a Python of this version, and has these modules.
pub(crate) fn works(python: &Path, version: &str, modules: &str) -> bool {
    let code =
        format!("import sys, {modules}; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')");
    let mut probe = Command::new(python);
    probe
        .args(["-c", &code])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    python.exists() && probe.status().is_ok_and(|it| it.success())
}
