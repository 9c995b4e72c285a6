//! The bridges of the Python package: takopi runs our engines, FastAPI serves our models.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    ENDPOINT, Validator, built,
    install::{install_python, or_warn},
    installed,
    takopi::Takopi,
};
use crate::{
    process::{capture, root, run, run_with_retries, target_dir},
    report::{Warnings, print_line},
};

/// What is left out has a warning.
pub(super) fn drive() -> Result<Warnings> {
    let mut warnings = Warnings::new();
    let work = target_dir()?.join("peers");
    let python = or_warn("FastAPI", install_python(&work, "ag_ui.txt"), &mut warnings)?;
    let Some(python) = python else {
        return Ok(warnings);
    };
    let linkspan = built()?;
    let recordings = root().join("fixtures/openresponses");
    print_line("`linkspan.ag_ui` as an agent and behind FastAPI");
    let mut live = with_package(&python, "ag_ui_live.py");
    run(live.arg(&linkspan).arg(&recordings))?;
    if let Some(node) = installed()?.of(Validator::AgUi) {
        print_line("`@ag-ui/client` talks with FastAPI");
        let mut client = Command::new(node);
        client.arg(root().join("peers").join(ENDPOINT));
        client.arg(&linkspan).arg(&recordings).arg("--app");
        run(client.arg(&python).env("PYTHONPATH", package()))?;
    }
    let takopi = or_warn("takopi", Takopi::install(&work, &python), &mut warnings)?;
    if let (Some(takopi), Some(agents)) = (&takopi, installed()?.agents()) {
        print_line("takopi runs the engines");
        let model = linkspan.with_file_name("scripted-model");
        let mut live = takopi.script("takopi_live.py")?;
        run(live.arg(&linkspan).arg(model).arg(agents))?;
    }
    check_types(&python, takopi.as_ref(), &work)?;
    Ok(warnings)
}

/// Where the modules of the package are.
fn package() -> PathBuf {
    root().join("packages/python/src")
}

fn with_package(python: &Path, script: &str) -> Command {
    let mut command = Command::new(python);
    command
        .arg(root().join("peers/python").join(script))
        .env("PYTHONPATH", package())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// mypy and pyright on the modules of the bridges; the step `python` has those that need neither takopi
/// nor FastAPI. Both must refuse a use that is wrong.
fn check_types(python: &Path, takopi: Option<&Takopi>, work: &Path) -> Result<()> {
    print_line("mypy and pyright on `linkspan.ag_ui` and `linkspan.takopi`");
    let example = root().join("examples/ag-ui-fastapi/example_server");
    let ag_ui = [package().join("linkspan/ag_ui"), example];
    let takopi_module = package().join("linkspan/takopi.py");
    let sources: Vec<&Path> = ag_ui.iter().map(PathBuf::as_path).collect();
    let checker = TypeChecker {
        python,
        work,
        packages: None,
    };
    checker.check(&sources)?;
    let wrong = root().join("peers/selftest/types/bad.py");
    ensure!(
        checker.mypy(&[&wrong]).is_err() && checker.pyright(&[&wrong])?.is_err(),
        "`{}` is accepted by mypy or pyright",
        wrong.display()
    );
    if let Some(takopi) = takopi {
        let packages = Some(takopi.types());
        TypeChecker {
            packages,
            ..checker
        }
        .check(&[&takopi_module])?;
    }
    Ok(())
}

/// mypy and pyright, both as strict as they can be.
struct TypeChecker<'a> {
    python: &'a Path,
    work: &'a Path,
    /// A folder with the packages of Python 3.14, for a module that is for it alone.
    packages: Option<PathBuf>,
}

impl TypeChecker<'_> {
    fn check(&self, sources: &[&Path]) -> Result<()> {
        self.mypy(sources)?;
        self.pyright(sources)?
    }

    fn version(&self) -> &'static str {
        match self.packages {
            Some(_) => "3.14",
            None => "3.10",
        }
    }

    fn mypy(&self, sources: &[&Path]) -> Result<()> {
        let paths = [Some(package()), self.packages.clone()];
        let mut command = Command::new(self.python);
        command.args(["-m", "mypy", "--strict", "--python-version", self.version()]);
        // What is not ours is looked at for its types alone.
        command.args(["--follow-imports=silent", "--cache-dir"]);
        command.arg(self.work.join("mypy")).args(sources);
        command.env("MYPYPATH", env::join_paths(paths.into_iter().flatten())?);
        capture(&mut command).map(drop)
    }

    /// Pyright takes no other paths than those that are relative to its config.
    fn relative(&self, path: &Path) -> PathBuf {
        let up = self.work.components().skip(1).map(|_| Component::ParentDir);
        up.chain(path.components().skip(1)).collect()
    }

    /// The outer error is one of the installation: the package brings pyright with npm at its first start.
    fn pyright(&self, sources: &[&Path]) -> Result<Result<()>> {
        let config = self.work.join(format!("pyright-{}.json", self.version()));
        let paths = [Some(package()), self.packages.clone()];
        let sources = sources.iter().map(|it| self.relative(it));
        let settings = json!({
            "include": sources.collect::<Vec<_>>(),
            "typeCheckingMode": "strict",
            "pythonVersion": self.version(),
            "extraPaths": paths.into_iter().flatten().collect::<Vec<_>>(),
        });
        fs::write(&config, settings.to_string())?;
        let pyright = |words: &[&OsStr]| {
            let mut command = Command::new(self.python);
            command.args(["-m", "pyright"]).args(words);
            command.env("PYRIGHT_PYTHON_CACHE_DIR", self.work.join("pyright"));
            command.env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1");
            command
        };
        run_with_retries(|| pyright(&["--version".as_ref()]))?;
        let words = ["--pythonpath".as_ref(), self.python.as_os_str()];
        let mut check = pyright(&words);
        check.arg("--project").arg(&config);
        Ok(capture(&mut check).map(drop))
    }
}
