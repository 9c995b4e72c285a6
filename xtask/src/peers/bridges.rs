//! The bridges of the Python package: takopi runs our engines, FastAPI serves our models.

use std::{
    env, fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{
    ENDPOINT, Validator, built, installed,
    takopi::{self, Takopi},
};
use crate::{
    process::{capture, root, run, target_dir},
    report::{Warnings, print_line},
};

/// How often the benchmark runs each way; more than that says the same.
const N_MEASURED: &str = "100";

/// What could not be installed is a warning of the installation already, and an error in CI.
pub(super) fn drive() -> Result<Warnings> {
    let Some(python) = installed()?.fastapi() else {
        return Ok(Warnings::new());
    };
    serve_with_fastapi(python)?;
    run_in_takopi(&[])?;
    check_types(python, installed()?.takopi())?;
    Ok(Warnings::new())
}

/// The engines that take too long to start for every day, as well.
pub(super) fn drive_takopi() -> Result<Warnings> {
    run_in_takopi(&["--every-engine"])?;
    Ok(Warnings::new())
}

fn serve_with_fastapi(python: &Path) -> Result<()> {
    let linkspan = built()?;
    let recordings = root().join("fixtures/openresponses");
    print_line("`linkspan.ag_ui` as an agent and behind FastAPI");
    let mut live = with_package(python, "ag_ui_live.py");
    run(live.arg(&linkspan).arg(&recordings))?;
    if let Some(node) = installed()?.of(Validator::AgUi) {
        print_line("`@ag-ui/client` talks with FastAPI");
        let mut client = Command::new(node);
        client.arg(root().join("peers").join(ENDPOINT));
        client.arg(&linkspan).arg(&recordings).arg("--app");
        run(client.arg(python).env("PYTHONPATH", package()))?;
    }
    print_line("what FastAPI adds to a run");
    let mut bench = with_package(python, "ag_ui_bench.py");
    run(bench.arg(&linkspan).arg(&recordings).arg(N_MEASURED))
}

fn run_in_takopi(options: &[&str]) -> Result<()> {
    let interpreters = installed()?;
    if let (Some(takopi), Some(agents)) = (interpreters.takopi(), interpreters.agents()) {
        print_line("takopi runs the engines");
        let linkspan = built()?;
        let model = linkspan.with_file_name("scripted-model");
        let mut live = takopi.script("takopi_live.py")?;
        run(live.arg(&linkspan).arg(model).arg(agents).args(options))?;
    }
    Ok(())
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
fn check_types(python: &Path, takopi: Option<&Takopi>) -> Result<()> {
    let work = &target_dir()?.join("peers");
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
        checker.refuses(&wrong)?,
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
    /// Shows what they say.
    fn check(&self, sources: &[&Path]) -> Result<()> {
        run(&mut self.mypy(sources)?)?;
        run(&mut self.pyright(sources)?)
    }

    /// Whether both have something to say.
    fn refuses(&self, source: &Path) -> Result<bool> {
        let accepts = |mut it: Command| capture(&mut it).is_ok();
        Ok(!accepts(self.mypy(&[source])?) && !accepts(self.pyright(&[source])?))
    }

    fn version(&self) -> &'static str {
        match self.packages {
            Some(_) => takopi::VERSION,
            None => "3.10",
        }
    }

    fn mypy(&self, sources: &[&Path]) -> Result<Command> {
        let paths = [Some(package()), self.packages.clone()];
        let mut command = Command::new(self.python);
        command.args(["-m", "mypy", "--strict", "--python-version", self.version()]);
        // What is not ours is looked at for its types alone.
        command.args(["--follow-imports=silent", "--cache-dir"]);
        command.arg(self.work.join("mypy")).args(sources);
        command.env("MYPYPATH", env::join_paths(paths.into_iter().flatten())?);
        Ok(command)
    }

    /// Pyright takes no other paths than those that are relative to its config.
    fn relative(&self, path: &Path) -> PathBuf {
        let up = self.work.components().skip(1).map(|_| Component::ParentDir);
        up.chain(path.components().skip(1)).collect()
    }

    fn pyright(&self, sources: &[&Path]) -> Result<Command> {
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
        let mut command = Command::new(self.python);
        command.args(["-m", "pyright", "--pythonpath"]);
        command.arg(self.python).arg("--project").arg(&config);
        // It would look for a newer release of itself.
        command.env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1");
        command.env("PYRIGHT_PYTHON_CACHE_DIR", self.work.join("pyright"));
        Ok(command)
    }
}
