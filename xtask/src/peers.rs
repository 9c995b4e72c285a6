//! Judges our output with the real clients and validators of `peers/`.
//!
//! Installs them (cached by a hash of their lock files), lets every judge prove on known
//! examples that it can fail, converts all recordings with the built binary, and hands
//! each judge its files. A peer that cannot be installed is a failure in CI; elsewhere it
//! is a warning, because a contributor without Python 3.12 should still get through.

mod bridges;
pub(crate) mod install;
mod live;
mod npm;
mod package;
mod sdks;
mod takopi;

pub(crate) use install::{install_adapter, install_js, node_of};

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{
    libtest,
    matrix::{self, Converted, Loss},
    process::{capture, root, run as run_command, target_dir},
    report::{Step, Warnings, print_line},
};

use install::Interpreters;

/// One kind of output to judge.
struct Output {
    writer: &'static str,
    profile: Option<&'static str>,
    extension: &'static str,
    judge: Validator,
}

/// Everything that is judged. Left out on purpose: `ag-ui` with profile `thinking`, for which
/// the real client always warns, and `thread` with profile `seed`, which is looser than Codex.
const OUTPUTS: &[Output] = &[
    Output {
        writer: "ag-ui",
        profile: None,
        extension: "sse",
        judge: Validator::AgUi,
    },
    Output {
        writer: "acp",
        profile: None,
        extension: "acp.jsonl",
        judge: Validator::Acp,
    },
    Output {
        writer: "acp",
        profile: Some("seed"),
        extension: "acp.jsonl",
        judge: Validator::Acp,
    },
    Output {
        writer: "thread",
        profile: None,
        extension: "thread.jsonl",
        judge: Validator::Thread,
    },
    Output {
        writer: "openhands",
        profile: None,
        extension: "openhands.jsonl",
        judge: Validator::OpenHands,
    },
    Output {
        writer: "openhands",
        profile: Some("native"),
        extension: "openhands.jsonl",
        judge: Validator::OpenHands,
    },
    Output {
        writer: "openhands",
        profile: Some("acp"),
        extension: "openhands.jsonl",
        judge: Validator::OpenHands,
    },
    Output {
        writer: "openhands",
        profile: Some("message"),
        extension: "openhands.jsonl",
        judge: Validator::OpenHands,
    },
    Output {
        writer: "openhands",
        profile: Some("external"),
        extension: "external.openhands.jsonl",
        judge: Validator::OpenHands,
    },
    Output {
        writer: "html",
        profile: None,
        extension: "html",
        judge: Validator::Html,
    },
];

/// The client that talks with the built program.
const ENDPOINT: &str = "js/agui_endpoint.mjs";

/// The same client in a page of another origin.
const BROWSER: &str = "js/agui_browser.mjs";

/// What judges the server's own description of its routes.
const DOCUMENT: &str = "js/openapi.mjs";

/// The folder of the pages that are made of attacks.
const ATTACKS: &str = "attacks";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Validator {
    AgUi,
    Acp,
    Thread,
    OpenHands,
    Html,
    /// These two talk with the program instead of looking at files.
    AcpLive,
    AcpLivePython,
}

const JUDGES: &[Validator] = &[
    Validator::AgUi,
    Validator::Acp,
    Validator::Thread,
    Validator::OpenHands,
    Validator::Html,
    Validator::AcpLive,
    Validator::AcpLivePython,
];

impl Validator {
    fn script(self) -> &'static str {
        match self {
            Validator::AgUi => "js/agui.mjs",
            Validator::Acp => "js/acp.mjs",
            Validator::Thread => "js/thread.mjs",
            Validator::OpenHands => "python/openhands_judge.py",
            Validator::Html => "js/html.mjs",
            Validator::AcpLive => "js/acp_live.mjs",
            Validator::AcpLivePython => "python/acp_live.py",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Validator::AgUi => &["--chunks"],
            Validator::Acp | Validator::Thread | Validator::OpenHands | Validator::Html => &[],
            Validator::AcpLive | Validator::AcpLivePython => &[],
        }
    }

    fn reads_files(self) -> bool {
        OUTPUTS.iter().any(|it| it.judge == self)
    }
}

/// Everything the peers judge, one step after the other.
pub(crate) fn steps() -> Vec<Step> {
    let mut steps = vec![Step::new("install", install_all), judges()];
    steps.extend(clients());
    // By hand only: Gemini CLI and OpenCode take most of a minute to start as often as it needs them.
    steps.push(Step::new("takopi", bridges::drive_takopi).within(120));
    steps
}

/// One of the steps alone.
pub(crate) fn steps_named(name: &str) -> Result<Vec<Step>> {
    let steps = steps().into_iter();
    let steps: Vec<Step> = steps
        .filter(|it| ["install", name].contains(&it.name()))
        .collect();
    ensure!(steps.len() == 2, "the peers have no step `{name}`");
    Ok(steps)
}

/// The validators that are handed files.
pub(crate) fn judges() -> Step {
    Step::new("judges", judge_files).within(500)
}

/// The clients that talk with the program, and the agents that it talks with.
pub(crate) fn clients() -> Vec<Step> {
    vec![
        Step::new("ag-ui", drive_endpoint).within(60),
        Step::new("browser", drive_browser).within(60),
        Step::new("openapi", judge_document).within(120),
        Step::new("bridges", bridges::drive).within(120),
        Step::new("npm", npm::run).within(60),
        Step::new("acp", talk_acp).within(400),
        Step::new("sdks", drive_sdks).within(60),
        Step::new("agents", try_agents).within(300),
        Step::new("python", try_python_package).within(240),
    ]
}

/// What is installed, and what could not be.
struct Installation {
    interpreters: Interpreters,
    warnings: Warnings,
}

/// Installs all peers, once; steps that come here at the same time wait for the first.
fn installation() -> Result<&'static Installation> {
    static DONE: OnceLock<Installation> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(it) = DONE.get() {
        return Ok(it);
    }
    let (interpreters, warnings) = install::install(&target_dir()?.join("peers"))?;
    Ok(DONE.get_or_init(|| Installation {
        interpreters,
        warnings,
    }))
}

fn installed() -> Result<&'static Interpreters> {
    Ok(&installation()?.interpreters)
}

/// Installs all peers; the later steps find them there.
pub(crate) fn install_all() -> Result<Warnings> {
    let mut warnings = installation()?.warnings.clone();
    let postgres = install::install_postgres();
    install::or_warn("PostgreSQL", postgres, &mut warnings)?;
    Ok(warnings)
}

/// Looks for misspelt words in the tree; `_typos.toml` says where not.
pub(crate) fn typos() -> Result<Warnings> {
    if let Some(typos) = installed()?.typos() {
        run_command(Command::new(typos).current_dir(root()))?;
    }
    Ok(Warnings::new())
}

fn judge_files() -> Result<Warnings> {
    let interpreters = installed()?;
    let judges = JUDGES
        .iter()
        .filter(|it| it.reads_files())
        .filter_map(|&it| Some((it, interpreters.of(it)?)));
    let judges: Vec<(Validator, &Path)> = judges.collect();
    for (judge, interpreter) in &judges {
        self_test(*judge, interpreter)?;
    }
    let out = target_dir()?.join("peers").join("out");
    let binary = built()?;
    let converted = generate(&binary, &out)?;
    if let Some(node) = interpreters.of(Validator::Html) {
        attack(&binary, node, &out)?;
    }
    let mut failures = Vec::new();
    for (judge, interpreter) in &judges {
        print_line(&format!("judge {}", judge.script()));
        let folders = OUTPUTS
            .iter()
            .filter(|it| it.judge == *judge)
            .map(|it| out.join(it.folder()));
        let attacks = (*judge == Validator::Html).then(|| out.join(ATTACKS));
        let result = run_command(
            command(*judge, interpreter)
                .args(judge.flags())
                .args(folders)
                .args(attacks),
        );
        if result.is_err() {
            failures.push(judge.script());
        }
    }
    if !failures.is_empty() {
        bail!(
            "rejected by {}; the files are in {}",
            failures.join(", "),
            out.display()
        );
    }
    // What nobody judged must not be told as judged.
    if judges.len() == JUDGES.iter().filter(|it| it.reads_files()).count() {
        matrix::check(&converted)?;
    }
    Ok(Warnings::new())
}

/// Lets the AG-UI client talk with the built program, and the program with LiteLLM's proxy.
fn drive_endpoint() -> Result<Warnings> {
    let interpreters = installed()?;
    let recordings = root().join("fixtures/openresponses");
    let args = [Some(recordings.as_path()), interpreters.litellm()];
    drive(Validator::AgUi, ENDPOINT, args.into_iter().flatten())
}

/// Lets the AG-UI client talk with the built program from a page of another origin.
fn drive_browser() -> Result<Warnings> {
    // Who judges pages has a browser.
    drive(Validator::Html, BROWSER, None)
}

/// Has the server's OpenAPI document linted, and compared with what the server does.
fn judge_document() -> Result<Warnings> {
    drive(Validator::AgUi, DOCUMENT, installed()?.schemathesis())
}

/// Runs a script on the built program, where the interpreter of that judge is installed.
fn drive<'a>(
    judge: Validator,
    script: &str,
    args: impl IntoIterator<Item = &'a Path>,
) -> Result<Warnings> {
    if let Some(node) = installed()?.of(judge) {
        let mut command = Command::new(node);
        command.arg(root().join("peers").join(script)).arg(built()?);
        run_command(command.args(args))?;
    }
    Ok(Warnings::new())
}

/// Lets the SDKs of other agents drive the built program.
fn drive_sdks() -> Result<Warnings> {
    let interpreters = installed()?;
    if let (Some(node), Some(agents)) = (interpreters.sdks(), interpreters.agents()) {
        sdks::drive(&built()?, node, agents)?;
    }
    Ok(Warnings::new())
}

/// Lets ACP clients talk with the built program.
fn talk_acp() -> Result<Warnings> {
    let interpreters = installed()?;
    for judge in live::CLIENTS {
        if let Some(interpreter) = interpreters.of(judge) {
            self_test(judge, interpreter)?;
        }
    }
    let failures = live::run_all(&built()?, interpreters);
    if !failures.is_empty() {
        bail!("not accepted by {}", failures.join(", "));
    }
    Ok(Warnings::new())
}

fn self_test(judge: Validator, interpreter: &Path) -> Result<()> {
    print_line(&format!("self-test {}", judge.script()));
    run_command(command(judge, interpreter).arg("--selftest"))
}

/// Runs the real agents, in `crates/linkspan/tests/agents`. OpenHands is left to those who name a
/// Python for it: each start takes ten seconds of a processor, which is too slow for its aborts here.
/// Clients talk with it in [`live`].
fn try_agents() -> Result<Warnings> {
    if let Some(programs) = installed()?.agents() {
        let mut tests = libtest::program("linkspan", "agents")?.command();
        run_command(tests.env("LINKSPAN_AGENTS", programs))?;
    }
    Ok(Warnings::new())
}

/// Tries the Python package, where the SDK of OpenHands and the agents are installed.
fn try_python_package() -> Result<Warnings> {
    let interpreters = installed()?;
    let python = interpreters.of(Validator::OpenHands);
    if let (Some(python), Some(agents)) = (python, interpreters.agents()) {
        package::try_package(&built()?, python, agents)?;
    }
    Ok(Warnings::new())
}

fn command(judge: Validator, interpreter: &Path) -> Command {
    let mut command = Command::new(interpreter);
    // Python would otherwise leave compiled files in the tree.
    command
        .arg(root().join("peers").join(judge.script()))
        .current_dir(root())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

impl Output {
    fn folder(&self) -> String {
        folder(self.writer, self.profile)
    }

    fn target(&self) -> ConvertTarget {
        ConvertTarget {
            writer: self.writer.to_owned(),
            profile: self.profile,
            extension: self.extension.to_owned(),
        }
    }
}

fn folder(writer: &str, profile: Option<&str>) -> String {
    match profile {
        Some(profile) => format!("{writer}.{profile}"),
        None => writer.to_owned(),
    }
}

/// A recording, and the format it is read as.
struct Recording {
    reader: String,
    path: PathBuf,
}

/// The program whose output is judged.
pub(crate) fn built() -> Result<PathBuf> {
    run_command(&mut libtest::build())?;
    Ok(target_dir()?.join("debug").join("linkspan"))
}

/// Makes pages in which every text is an attack.
fn attack(binary: &Path, node: &Path, out: &Path) -> Result<()> {
    let events = out.join("attacks.events");
    let script = root().join("peers/js/xss.mjs");
    capture(Command::new(node).arg(script).arg(&events))?;
    let folder = out.join(ATTACKS);
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&events)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let page = folder.join(format!("{}.html", name.trim_end_matches(".events.jsonl")));
        let mut command = Command::new(binary);
        command.args(["convert", "--from", "linkspan", "--to", "html"]);
        capture(command.arg(entry.path()).arg("-o").arg(page))?;
    }
    Ok(())
}

/// Converts every recording of every reader to every judged output and to every other format that
/// is written, from nothing. Returns what each of them had no place for.
fn generate(binary: &Path, out: &Path) -> Result<Vec<Converted>> {
    let formats = formats(binary)?;
    let recordings = recordings(&formats)?;
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let judged = OUTPUTS.iter().map(|it| it.target());
    let others = formats.iter().filter(|it| it.write);
    let others = others.filter(|it| !OUTPUTS.iter().any(|judged| judged.writer == it.name));
    let targets: Vec<ConvertTarget> = judged.chain(others.map(ConvertTarget::unjudged)).collect();
    for target in &targets {
        fs::create_dir_all(out.join(target.folder()))?;
    }
    print_line(&format!(
        "convert {} recordings of {} formats to {} outputs",
        recordings.len(),
        formats.iter().filter(|it| it.read).count(),
        targets.len()
    ));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut converted = Vec::new();
        let mut failures = Vec::new();
        while let Some(recording) = recordings.get(next.fetch_add(1, Ordering::Relaxed)) {
            for target in &targets {
                match convert(binary, target, recording, out) {
                    Ok(it) => converted.push(it),
                    Err(err) => failures.push(format!("{err:#}")),
                }
            }
        }
        (converted, failures)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|it| it.join()).collect()
    });
    let mut converted = Vec::new();
    for result in results {
        let Ok((some, failures)) = result else {
            bail!("a conversion panicked");
        };
        if let Some(first) = failures.first() {
            bail!("{} conversions failed, the first: {first}", failures.len());
        }
        converted.extend(some);
    }
    Ok(converted)
}

#[derive(Deserialize)]
struct Format {
    name: String,
    read: bool,
    write: bool,
    canonical: bool,
}

fn formats(binary: &Path) -> Result<Vec<Format>> {
    let said = capture(Command::new(binary).args(["formats", "--json"]))?.stdout;
    let formats = serde_json::Deserializer::from_slice(&said).into_iter();
    Ok(formats.collect::<Result<_, _>>()?)
}

fn recordings(formats: &[Format]) -> Result<Vec<Recording>> {
    let mut found = Vec::new();
    for format in formats.iter().filter(|it| it.read) {
        // Our own format is read from the events that were made by hand; the others are goldens.
        let folder = match format.canonical {
            true => "model",
            false => &format.name,
        };
        let dir = root().join("fixtures").join(folder);
        let before = found.len();
        for entry in
            fs::read_dir(&dir).with_context(|| format!("cannot read `{}`", dir.display()))?
        {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_events = name.ends_with(".events.jsonl");
            let is_stream = name.ends_with(".jsonl") || name.ends_with(".sse");
            let is_golden = name.contains(&format!(".{}.", format.name));
            if is_stream && is_events == format.canonical && !is_golden {
                found.push(Recording {
                    reader: format.name.clone(),
                    path,
                });
            }
        }
        if found.len() == before {
            bail!("no recording in `{}`", dir.display());
        }
    }
    found.sort_by(|a, b| (&a.reader, &a.path).cmp(&(&b.reader, &b.path)));
    Ok(found)
}

/// What a recording is converted to.
struct ConvertTarget {
    writer: String,
    profile: Option<&'static str>,
    extension: String,
}

impl ConvertTarget {
    fn unjudged(format: &Format) -> Self {
        Self {
            writer: format.name.clone(),
            profile: None,
            extension: format.name.clone(),
        }
    }

    fn folder(&self) -> String {
        folder(&self.writer, self.profile)
    }
}

fn convert(
    binary: &Path,
    target: &ConvertTarget,
    recording: &Recording,
    out: &Path,
) -> Result<Converted> {
    #[derive(Deserialize)]
    struct ConvertReport {
        losses: Vec<Loss>,
    }
    let name = recording
        .path
        .file_stem()
        .context("a recording without a name")?
        .to_string_lossy();
    // Two formats may have recordings of one name.
    let name = format!("{}-{name}.{}", recording.reader, target.extension);
    let mut command = Command::new(binary);
    command.args(["convert", "--from", &recording.reader]);
    command.args(["--to", &target.writer, "--report", "--json"]);
    command.args(
        target
            .profile
            .map(|it| ["--profile", it])
            .into_iter()
            .flatten(),
    );
    command.arg(&recording.path);
    command.arg("-o").arg(out.join(target.folder()).join(name));
    let said = capture(&mut command)?.stderr;
    let report: ConvertReport = serde_json::from_slice(&said).context("the report is not JSON")?;
    Ok(Converted {
        reader: recording.reader.clone(),
        writer: target.writer.clone(),
        is_default: target.profile.is_none(),
        losses: report.losses,
    })
}
