//! Installs every package in a clean place and uses it there, without cargo and the working tree's program.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    Folders, copy, files_below, platform::Platform, program, release::Release, systemd_unit,
    wheel::Built,
};
use crate::{
    peers::install,
    process::{capture, root, run as run_command},
    python,
    report::print_line,
};

/// Programs that packages may use: those of the system, and Node wherever it is; cargo is not among them.
fn system_path() -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let node = env::split_paths(&path).find(|it| it.join("node").exists());
    let node = node.unwrap_or_else(|| PathBuf::from("/usr/bin"));
    format!("/usr/local/bin:/usr/bin:/bin:{}", node.display())
}

/// A clean place: an empty home, and nothing of ours in the environment.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(work: &Path, name: &str) -> Result<Self> {
        print_line(&format!("check {name}"));
        let folder = work.join("check").join(name);
        fs::create_dir_all(folder.join("home"))?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", system_path())
            .env("LANG", "C.UTF-8")
            .env("HOME", self.path("home"))
            .current_dir(&self.folder);
        command
    }
}

pub(super) fn run(
    release: &Release,
    platform: &Platform,
    built: &Built,
    folders: &Folders,
) -> Result<()> {
    check_wheel(release, built, folders)?;
    check_sources(release, built, folders)?;
    check_archive(release, platform, folders)?;
    check_npm(release, platform, folders)?;
    if let Some(architecture) = platform.deb {
        check_deb(release, architecture, folders)?;
    }
    Ok(())
}

fn check_wheel(release: &Release, built: &Built, folders: &Folders) -> Result<()> {
    let place = Place::new(&folders.work, "wheel")?;
    let environment = place.path("venv");
    let python = python::environment(&environment, &root().join("packages/tools/pytest.txt"))?;
    let before = files_below(&environment)?;
    let pip = |words: &[&str]| {
        let mut pip = place.command(&python);
        pip.args(["-m", "pip", "--disable-pip-version-check", "-q"]);
        pip.args(words);
        pip
    };
    run_command(pip(&["install", "--no-index", "--no-compile"]).arg(&built.wheel))?;
    run_command(&mut pip(&["check"]))?;
    use_program(release, &place, &environment.join("bin/linkspan"))?;
    let page = environment.join("share/man/man1/linkspan-serve.1");
    ensure!(page.exists(), "the wheel installed no `{}`", page.display());
    print_line("check the Python package's own tests");
    python_tests(&place, &python)?;
    run_command(&mut pip(&["uninstall", "--yes", "linkspan"]))?;
    let left: Vec<PathBuf> = files_below(&environment)?
        .into_iter()
        .filter(|it| !before.contains(it) && !it.to_string_lossy().contains("__pycache__"))
        .collect();
    ensure!(left.is_empty(), "`pip uninstall` leaves {left:?}");
    let mut twine = Command::new(program::tools("twine.txt", folders)?);
    twine.args(["-m", "twine", "check", "--strict"]);
    run_command(twine.args([&built.wheel, &built.sources]))
}

fn python_tests(place: &Place, python: &Path) -> Result<()> {
    // Without the modules beside them, they import those that are installed.
    let source = root().join("packages/python");
    for file in files_below(&source)? {
        let name = file.strip_prefix(&source)?;
        if name.starts_with("tests") || name.ends_with("pytest.ini") {
            copy(&file, &place.path("packages/python").join(name))?;
        }
    }
    for name in ["docs", "fixtures", "web"] {
        symlink(root().join(name), place.path(name))?;
    }
    let mut command = place.command(python);
    command.args(["-m", "pytest", "--quiet"]);
    // Those of the bridges need the SDKs, those of the types need type checkers: `cargo xtask peers` has them.
    command.args(["tests/core", "--ignore", "tests/core/test_types.py"]);
    command.current_dir(place.path("packages/python"));
    run_command(command.env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// The sources give the same wheel, and cargo can read all that it would build.
fn check_sources(release: &Release, built: &Built, folders: &Folders) -> Result<()> {
    let place = Place::new(&folders.work, "sources")?;
    run_command(place.command("tar").arg("-xf").arg(&built.sources))?;
    let folder = place.path(&format!("linkspan-{}", release.version));
    let base = python::find().context(python::MISSING)?;
    let mut pip = place.command(base);
    pip.args(["-m", "pip", "--disable-pip-version-check", "-q", "wheel"]);
    pip.args(["--no-index", "--no-deps", "--no-build-isolation"]);
    pip.arg("--config-settings").arg(format!(
        "program={}",
        folders.work.join("linkspan").display()
    ));
    pip.arg("--config-settings")
        .arg(format!("platform={}", built.tag));
    pip.arg("--wheel-dir")
        .arg(place.path("wheels"))
        .arg(&folder);
    run_command(pip.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    let name = built.wheel.file_name().context("the wheel has a name")?;
    let again = fs::read(place.path("wheels").join(name))?;
    ensure!(
        again == fs::read(&built.wheel)?,
        "the sources give another wheel than the working tree"
    );
    let mut metadata = crate::process::cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    metadata
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"));
    capture(&mut metadata)?;
    Ok(())
}

fn check_archive(release: &Release, platform: &Platform, folders: &Folders) -> Result<()> {
    let place = Place::new(&folders.work, "archive")?;
    let name = platform.archive(&release.version);
    let archive = folders.dist.join(format!("{name}.tar.gz"));
    run_command(place.command("tar").arg("-xf").arg(archive))?;
    let folder = place.path(&name);
    use_program(release, &place, &folder.join("linkspan"))?;
    let bash = folder.join("share/bash-completion/completions/linkspan");
    run_command(place.command("bash").arg("-n").arg(bash))?;
    let page = folder.join("share/man/man1/linkspan.1");
    let is_page = fs::read_to_string(&page)?.starts_with(".ie");
    ensure!(is_page, "`{}` is no manual page", page.display());
    match platform.is_linux() {
        true => check_unit(&place, &folder.join("linkspan")),
        false => Ok(()),
    }
}

/// systemd reads the unit without complaint; a program that is not there would be one.
fn check_unit(place: &Place, program: &Path) -> Result<()> {
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        print_line("NOT TRIED: the unit, because there is no systemd-analyze");
        return Ok(());
    }
    let unit = place.path("linkspan.service");
    fs::write(&unit, systemd_unit(&program.to_string_lossy())?)?;
    let mut analyze = place.command("systemd-analyze");
    analyze.args(["--user", "verify", "--man=no"]).arg(unit);
    analyze.env("XDG_RUNTIME_DIR", place.path("home"));
    let said = capture(&mut analyze)?.stderr;
    ensure!(
        said.is_empty(),
        "systemd says of the unit: {}",
        String::from_utf8_lossy(&said)
    );
    Ok(())
}

fn check_npm(release: &Release, platform: &Platform, folders: &Folders) -> Result<()> {
    let place = Place::new(&folders.work, "npm")?;
    let archive = |name: &str| {
        let file = format!("{name}-{}.tgz", release.version);
        folders.npm.join(file)
    };
    fs::write(place.path("package.json"), "{}")?;
    let mut npm = place.command("npm");
    // Without the network: programs of other platforms are optional, and not to be had.
    npm.args(["install", "--offline", "--no-audit", "--no-fund"]);
    npm.arg("--no-update-notifier");
    npm.args(["linkspan", &platform.npm_package()].map(archive));
    run_command(&mut npm)?;
    let modules = place.path("node_modules");
    use_program(release, &place, &modules.join(".bin/linkspan"))?;
    print_line("check the npm package's own tests");
    let program = modules.join(platform.npm_package()).join("bin/linkspan");
    npm_tests(&place, &modules, &program)
}

fn npm_tests(place: &Place, modules: &Path, program: &Path) -> Result<()> {
    install::install_js()?;
    // The tests import `../linkspan`, which is the installed package here, and all else from the working tree.
    let tests = place.path("packages/npm/tests");
    fs::create_dir_all(place.path("packages/npm"))?;
    symlink(
        modules.join("linkspan"),
        place.path("packages/npm/linkspan"),
    )?;
    for name in ["fixtures", "peers", "web"] {
        symlink(root().join(name), place.path(name))?;
    }
    let mut node = place.command("node");
    node.args(["--test", "--test-reporter=dot"]);
    for file in files_below(&root().join("packages/npm/tests"))? {
        let name = file.file_name().context("a file has a name")?;
        let test = tests.join(name);
        copy(&file, &test)?;
        let name = name.to_string_lossy();
        // Those of the archive and of the page have judges and a browser of their own: `cargo xtask peers npm`.
        let is_other = name.starts_with("package.") || name.starts_with("browser.");
        if name.ends_with(".test.mjs") && !is_other {
            node.arg(test);
        }
    }
    run_command(node.env("LINKSPAN", program))
}

fn check_deb(release: &Release, architecture: &str, folders: &Folders) -> Result<()> {
    let place = Place::new(&folders.work, "deb")?;
    let tree = place.path("root");
    for folder in ["info", "updates"] {
        fs::create_dir_all(tree.join("var/lib/dpkg").join(folder))?;
    }
    fs::write(tree.join("var/lib/dpkg/status"), "")?;
    let deb = format!("linkspan_{}_{architecture}.deb", release.version);
    let deb = folders.dist.join(deb);
    let dpkg = |words: &[&str]| {
        let mut dpkg = place.command("dpkg");
        dpkg.env("PATH", format!("{}:/usr/sbin:/sbin", system_path()));
        // The private root has none of the packages that it depends on.
        dpkg.args(["--force-depends", "--force-not-root", "--log=/dev/null"]);
        dpkg.arg(format!("--root={}", tree.display())).args(words);
        dpkg
    };
    run_command(dpkg(&["--install"]).arg(&deb))?;
    use_program(release, &place, &tree.join("usr/bin/linkspan"))?;
    let verified = capture(&mut dpkg(&["--verify", "linkspan"]))?.stdout;
    ensure!(
        verified.is_empty(),
        "`dpkg --verify` says {}",
        String::from_utf8_lossy(&verified)
    );
    run_command(&mut dpkg(&["--purge", "linkspan"]))?;
    let left = files_below(&tree.join("usr"))?;
    ensure!(left.is_empty(), "`dpkg --purge` leaves {left:?}");
    Ok(())
}

/// What a user does first: the version, a conversion, a server with its page.
fn use_program(release: &Release, place: &Place, program: &Path) -> Result<()> {
    let version = capture(place.command(program).arg("--version"))?.stdout;
    let version = String::from_utf8(version)?;
    // The commit may follow.
    let is_ours = version
        .split_whitespace()
        .take(2)
        .eq(["linkspan", &release.version]);
    ensure!(is_ours, "`linkspan --version` prints {version:?}");
    let mut convert = place.command(program);
    convert.args(["convert", "--to", "linkspan"]);
    let converted = capture(convert.arg(root().join("fixtures/codex/commands.jsonl")))?.stdout;
    let expected = fs::read(root().join("fixtures/codex/commands.events.jsonl"))?;
    ensure!(
        converted == expected,
        "`linkspan convert` made other events"
    );
    serve(place, program)
}

fn serve(place: &Place, program: &Path) -> Result<()> {
    let mut serve = place.command(program);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    serve.arg(place.path("data")).stdin(Stdio::null());
    let mut server = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    // Kept open to the end: the server goes on writing its log there.
    let mut log = BufReader::new(server.stderr.take().context("stderr is a pipe")?);
    let page = page_of(&mut log);
    let stopped = capture(Command::new("kill").arg(server.id().to_string()));
    let status = server.wait()?;
    ensure!(
        page? == fs::read(root().join("web/index.html"))?,
        "the server has another page than `web/index.html`"
    );
    stopped?;
    ensure!(status.success(), "`linkspan serve` ended with {status}");
    Ok(())
}

/// What a server that says where it listens answers to a browser.
fn page_of(log: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut line = String::new();
    log.read_line(&mut line)?;
    let Some((_, address)) = line.trim_end().split_once("http://") else {
        bail!("`linkspan serve` says {line:?}, and no address");
    };
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let end = end.context("the server's answer has no end of its head")?;
    Ok(answer.split_off(end + 4))
}
