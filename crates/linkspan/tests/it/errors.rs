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

#[test]
fn an_unknown_format_is_bad_usage_with_a_guess() {
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
fn a_format_that_goes_only_one_way_says_so() {
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
        "unrecognized subcommand 'convrt'",
        "a similar subcommand exists: 'convert'",
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
fn a_full_disk_is_said() {
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
