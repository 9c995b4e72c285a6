//! Starting the program, and what it left behind.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process, thread};

static N_STARTED: AtomicUsize = AtomicUsize::new(0);

/// The program with its arguments, cut off from the settings of whoever runs the tests.
pub(crate) fn linkspan(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkspan"));
    command.args(args);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color");
    // Each has a journal of its own: the sessions of the tests are all called alike.
    let n = N_STARTED.fetch_add(1, Ordering::Relaxed);
    let data = format!("{}/data-{}-{n}", env!("CARGO_TARGET_TMPDIR"), process::id());
    command.env("LINKSPAN_DATA_DIR", data);
    command
}

/// Everything a finished program said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// As a person sees it in a shell; for comparing whole outcomes.
    pub(crate) fn shown(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |it| it.to_string());
        format!("{}{}exit {code}\n", self.stdout, self.stderr)
    }
}

/// Runs to the end with these bytes on stdin.
pub(crate) fn run(args: &[&str], stdin: &[u8]) -> Ran {
    let mut child = linkspan(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // A program that stops early does not read it all, which is its right.
    let feeder = thread::spawn(move || pipe.write_all(&bytes).ok());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    ran(output)
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder that is gone after the test.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("linkspan-it-{}-{name}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a file in it, as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A machine with these programs, each a line of shell, and this config.
pub(crate) fn machine(name: &str, programs: &[(&str, &str)], config: &str) -> Folder {
    let folder = Folder::new(name);
    for part in ["bin", "config/linkspan"] {
        fs::create_dir_all(folder.path(part)).unwrap();
    }
    for (program, script) in programs {
        let path = folder.file(&format!("bin/{program}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.file("config/linkspan/config.toml", config);
    folder
}

/// A recording of the repository.
pub(crate) fn fixture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fixtures.join(name).to_str().unwrap().to_owned()
}

/// One canonical line of a run called `r1`.
pub(crate) fn event(seq: u64, kind: &str, data: &str) -> String {
    format!(
        r#"{{"v":1,"seq":{seq},"session":"s1","run":"r1","engine":"claude","origin":"agent","frame":{seq},"type":"{kind}","data":{data}}}"#
    ) + "\n"
}

/// A whole canonical run: a prompt, an answer, and its end with this outcome.
pub(crate) fn small_run(outcome: &str) -> String {
    let message = r#"{"kind":"message","id":"m1","role":"assistant","text":"Done \u2713"}"#;
    [
        event(1, "run.started", r#"{"cause":"prompt"}"#),
        event(2, "item.opened", &message.replace(r"Done \u2713", "")),
        event(
            3,
            "item.closed",
            &format!(r#"{{"status":"ok","item":{message}}}"#),
        ),
        event(4, "run.ended", &format!(r#"{{"outcome":"{outcome}"}}"#)),
    ]
    .concat()
}

/// The names of the events of canonical lines.
pub(crate) fn kinds(lines: &str) -> Vec<String> {
    let values = lines
        .lines()
        .map(|it| serde_json::from_str::<serde_json::Value>(it).unwrap());
    values
        .map(|it| it["type"].as_str().unwrap().to_owned())
        .collect()
}
