//! Mistakes: one line, a hint, and the exit code of `docs/cli.md`.

use std::io::Write;
use std::process::Stdio;
use std::{fs, thread};

use linkspan::registry::{FORMATS, Format};

use crate::program::{Folder, event, linkspan, ran, run, small_run};

fn check(args: &[&str], message: &str, hint: &str, code: i32) {
    let expected = format!("linkspan: {message}\n\nhint: {hint}\nexit {code}\n");
    assert_eq!(run(args, b"").shown(), expected, "{args:?}");
}

fn names(wanted: fn(&Format) -> bool) -> String {
    let formats = FORMATS.iter().filter(|it| wanted(it));
    formats.map(|it| it.name).collect::<Vec<_>>().join(", ")
}

fn readable() -> String {
    names(|it| it.reader.is_some())
}

fn writable() -> String {
    names(|it| it.writer.is_some())
}

/// As the help lists them: what the README begins with comes first.
const COMMANDS: &str = "serve, run, acp, exec, claude-sdk, stdio, sessions, show, replay, convert, engines, formats, schema, token, config, doctor, completions, man";

#[test]
fn a_value_that_no_flag_takes_is_answered_with_those_it_does() {
    check(
        &["run", "--permissions", "alow", "hello"],
        "invalid value 'alow' for '--permissions <MODE>'",
        "did you mean `allow`? possible values: plan, deny, ask, accept-edits, listed, allow",
        2,
    );
    check(
        &["token", "--role", "boss"],
        "invalid value 'boss' for '--role <ROLE>'",
        "possible values: watch, prompt, approve, admin",
        2,
    );
    check(
        &["run", "--ask-default", "alow", "hello"],
        "`--ask-default` is `alow`, expected one of deny, allow",
        "did you mean `allow`?",
        2,
    );
    check(
        &["serve", "--listen", "nonsense"],
        "invalid value 'nonsense' for '--listen <ADDRESS>': it is an IP address and a port, such as `127.0.0.1:8787`, or `unix:PATH`",
        "see `linkspan serve --help`",
        2,
    );
    for flag in ["--allow", "--deny"] {
        check(
            &["run", flag, "", "hello"],
            &format!(
                "invalid value '' for '{flag} <TOOL>': it is empty; name a tool, such as `Bash`"
            ),
            "see `linkspan run --help`",
            2,
        );
    }
    check(
        &["acp", "--allow", " Bash"],
        "invalid value ' Bash' for '--allow <TOOL>': a tool has no spaces around its name and no control characters in it",
        "see `linkspan acp --help`",
        2,
    );
}

#[test]
fn the_help_begins_with_what_the_readme_begins_with() {
    let help = run(&["--help"], b"").stdout;
    let at = |word: &str| help.find(word).unwrap();
    let listed = COMMANDS.split(", ").map(|it| at(&format!("\n  {it}")));
    assert!(listed.is_sorted(), "{help}");
    assert!(at("linkspan serve") < at("linkspan run"), "{help}");
    assert!(at("linkspan run") < at("linkspan convert"), "{help}");
}

#[test]
fn an_unknown_format_is_bad_usage_with_a_guess() {
    check(
        &["run", "--to", "tekst", "hello"],
        "there is no format `tekst`",
        &format!("did you mean `text`? can be written: {}", writable()),
        2,
    );
    check(
        &["convert", "--from", "linkspam", "--to", "linkspan"],
        "there is no format `linkspam`",
        &format!("did you mean `linkspan`? can be read: {}", readable()),
        2,
    );
    check(
        &["convert", "--from", "linkspan", "--to", "morse"],
        "there is no format `morse`",
        &format!("can be written: {}", writable()),
        2,
    );
}

#[test]
fn a_one_way_format_is_an_error_in_the_other_direction() {
    for format in FORMATS {
        if format.reader.is_none() {
            check(
                &["convert", "--from", format.name, "--to", "linkspan"],
                &format!("`{}` can be written, but not read", format.name),
                &format!("can be read: {}", readable()),
                2,
            );
        }
        if format.writer.is_none() {
            check(
                &["convert", "--from", "linkspan", "--to", format.name],
                &format!("`{}` can be read, but not written", format.name),
                &format!("can be written: {}", writable()),
                2,
            );
        }
    }
}

#[test]
fn what_cannot_be_recognised_is_refused_and_nothing_is_written() {
    let hint = format!("name its format with `--from`: {}", readable());
    check(
        &["convert", "--to", "linkspan"],
        "the input is empty: `stdin`",
        "with `--from` an empty stream is a run that was lost",
        2,
    );
    let folder = Folder::new("unknown");
    let input = folder.file("run.jsonl", "{\"a\":1}\nhello\n");
    let output = folder.file("out.jsonl", "kept\n");
    check(
        &[
            "convert", "--from", "auto", "--to", "text", &input, "-o", &output,
        ],
        &format!("cannot detect the input format: `{input}`"),
        &hint,
        2,
    );
    assert_eq!(fs::read_to_string(output).unwrap(), "kept\n");
}

#[test]
fn an_unknown_profile_lists_those_there_are() {
    check(
        &[
            "convert",
            "--from",
            "linkspan",
            "--to",
            "linkspan",
            "--profile",
            "x",
        ],
        "`linkspan` has no profile `x`",
        "`linkspan` has only one shape: leave `--profile` out",
        2,
    );
    for format in FORMATS.iter().filter(|it| !it.profiles.is_empty()) {
        let profiles: Vec<&str> = format.profiles.iter().map(|it| it.name).collect();
        let misspelt = format!("{}z", profiles[0]);
        check(
            &[
                "convert",
                "--from",
                "linkspan",
                "--to",
                format.name,
                "--profile",
                &misspelt,
            ],
            &format!("`{}` has no profile `{misspelt}`", format.name),
            &format!(
                "did you mean `{}`? profiles of `{}`: {}",
                profiles[0],
                format.name,
                profiles.join(", ")
            ),
            2,
        );
    }
}

#[test]
fn missing_flags_show_the_usage() {
    check(
        &["convert"],
        "the following required arguments were not provided: --to <FORMAT>",
        "usage: linkspan convert --to <FORMAT> [INPUT]",
        2,
    );
    check(
        &["convrt"],
        "there is no command `convrt`",
        &format!("did you mean `convert`? commands: {COMMANDS}"),
        2,
    );
    check(
        &["rn"],
        "there is no command `rn`",
        &format!("did you mean `run`? commands: {COMMANDS}"),
        2,
    );
    check(
        &["xyzzy"],
        "there is no command `xyzzy`",
        &format!("commands: {COMMANDS}"),
        2,
    );
    let ran = run(
        &[
            "convert", "--from", "linkspan", "--to", "linkspan", "--json",
        ],
        b"",
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn an_input_that_cannot_be_read_is_one_line() {
    let folder = Folder::new("unreadable");
    let convert = |path: &str| {
        let args = ["convert", "--from", "linkspan", "--to", "linkspan", path];
        run(&args, b"").shown()
    };
    let path = folder.path("none.jsonl");
    assert_eq!(
        convert(&path),
        format!(
            "linkspan: cannot read `{path}`: No such file or directory\n\n\
             hint: check the path; `-` reads stdin\nexit 3\n"
        )
    );
    let path = folder.path("");
    assert_eq!(
        convert(&path),
        format!(
            "linkspan: cannot read `{path}`: Is a directory\n\n\
             hint: name a file; `-` reads stdin\nexit 3\n"
        )
    );
}

#[test]
fn an_output_that_cannot_be_written_is_one_line() {
    let folder = Folder::new("unwritable");
    let path = folder.path("none/out.jsonl");
    check(
        &[
            "convert", "--from", "linkspan", "--to", "linkspan", "-o", &path,
        ],
        &format!("cannot write `{path}`: No such file or directory"),
        "the folder has to exist",
        3,
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported() {
    let args = [
        "convert",
        "--from",
        "linkspan",
        "--to",
        "linkspan",
        "-o",
        "/dev/full",
    ];
    let ran = run(&args, small_run("completed").as_bytes());
    assert_eq!(
        ran.shown(),
        "linkspan: cannot write `/dev/full`: No space left on device\n\n\
         hint: make room, or write somewhere else\nexit 3\n"
    );
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = linkspan(&["formats"])
        .stdout(full)
        .stderr(Stdio::null())
        .status();
    assert_eq!(status.unwrap().code(), Some(3));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = linkspan(&["convert", "--from", "linkspan", "--to", "linkspan"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        stdin
            .write_all(event(1, "run.started", r#"{"cause":"prompt"}"#).as_bytes())
            .ok();
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!(ran(output).shown(), "exit 0\n");
}
