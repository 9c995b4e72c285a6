//! What `convert` does with its input, its output and its flags.

use std::fs;
use std::process::Stdio;

use expect_test::expect;

use crate::program::{Folder, Ran, event, kinds, linkspan, ran, run, small_run};

const SAME: [&str; 5] = ["convert", "--from", "linkspan", "--to", "linkspan"];

fn same(more: &[&str], stdin: &str) -> Ran {
    run(&[&SAME[..], more].concat(), stdin.as_bytes())
}

#[test]
fn stdin_a_dash_and_a_file_are_the_same_input() {
    let folder = Folder::new("inputs");
    let recorded = small_run("completed");
    let path = folder.file("run.jsonl", &recorded);
    let expected = Ran {
        code: Some(0),
        stdout: recorded.clone(),
        stderr: String::new(),
    };
    assert_eq!(same(&[], &recorded), expected);
    assert_eq!(same(&["-"], &recorded), expected);
    assert_eq!(same(&[&path], ""), expected);
    assert_eq!(same(&[&path, "-o", "-"], ""), expected);
}

#[test]
fn output_goes_to_a_file_and_replaces_it() {
    let folder = Folder::new("output");
    let recorded = small_run("completed");
    let path = folder.file("out.jsonl", &"old\n".repeat(1000));
    let ran = same(&["--output", &path], &recorded);
    assert_eq!(ran.shown(), "exit 0\n");
    assert_eq!(fs::read_to_string(path).unwrap(), recorded);
}

#[test]
fn a_failed_run_is_converted_well() {
    let ran = same(&[], &small_run("failed"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn no_input_is_no_output() {
    assert_eq!(same(&[], "").shown(), "exit 0\n");
}

#[test]
fn a_bad_line_is_a_notice_and_costs_nothing_else() {
    let recorded = small_run("completed");
    let (first, rest) = recorded.split_at(recorded.find('\n').unwrap() + 1);
    let ran = same(&[], &format!("{first}{{oops\n{rest}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        kinds(&ran.stdout),
        [
            "run.started",
            "notice.raised",
            "item.opened",
            "item.closed",
            "run.ended"
        ]
    );
}

#[test]
fn a_cut_input_still_ends() {
    let ran = same(&[], &event(1, "run.started", r#"{"cause":"prompt"}"#));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(kinds(&ran.stdout), ["run.started", "run.ended"]);
}

#[test]
fn the_report_goes_to_stderr_beside_the_data() {
    let recorded = small_run("completed");
    let ran = same(&["--report"], &recorded);
    assert_eq!(ran.stdout, recorded);
    expect![[r#"
        linkspan to linkspan: 4 events, nothing was lost
    "#]]
    .assert_eq(&ran.stderr);
}

#[test]
fn the_report_as_json_is_one_object() {
    let recorded = small_run("completed");
    let ran = same(&["--report", "--json"], &recorded);
    assert_eq!(ran.stdout, recorded);
    let n = recorded.len();
    let expected = format!(
        r#"{{"from":"linkspan","to":"linkspan","profile":null,"events":4,"bytes_read":{n},"bytes_written":{n},"losses":[]}}"#
    );
    assert_eq!(ran.stderr, expected + "\n");
}

#[test]
fn the_input_is_never_overwritten() {
    let folder = Folder::new("overwrite");
    let recorded = small_run("completed");
    let path = folder.file("run.jsonl", &recorded);
    let other = folder.path("link.jsonl");
    fs::hard_link(&path, &other).unwrap();
    let refused = format!(
        "linkspan: the output is the input, `{path}`\n\n\
         hint: write to another file, and rename it after\nexit 2\n"
    );
    assert_eq!(same(&[&path, "-o", &path], "").shown(), refused);
    assert_eq!(same(&[&path, "-o", &other], "").shown(), refused);

    let append = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let output = linkspan(&[&SAME[..], &[&path]].concat())
        .stdin(Stdio::null())
        .stdout(append)
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|it| it.wait_with_output());
    assert_eq!(ran(output.unwrap()).shown(), refused);
    assert_eq!(fs::read_to_string(path).unwrap(), recorded);
}

#[test]
fn a_mistyped_name_does_not_empty_the_output() {
    let folder = Folder::new("mistyped");
    let path = folder.file("out.jsonl", "precious\n");
    let ran = same(&["--profile", "nope", "-o", &path], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), "precious\n");
}
