//! What `convert` does with its input, its output and its flags.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use expect_test::expect;
use linkspan::registry::FORMATS;

use crate::program::{Folder, Ran, event, fixture, kinds, linkspan, ran, run, small_run};

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
fn the_format_is_detected_from_the_first_lines_without_loss() {
    let recorded = small_run("completed");
    let noisy = format!("warning: a line somebody printed\n{recorded}");
    let named = same(&[], &noisy);
    let auto = run(&["convert", "--to", "linkspan"], noisy.as_bytes());
    assert_eq!(auto.stdout, named.stdout);
    assert_eq!(auto.stderr, "linkspan: reading linkspan\n");

    let flags = ["convert", "--to", "linkspan", "--report", "--json"];
    let report = run(&flags, recorded.as_bytes()).stderr;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["from"], "linkspan");
}

#[test]
fn a_wrong_input_format_is_reported() {
    let recording = fixture("codex/text.jsonl");
    let args = ["convert", "--from", "claude", "--to", "text", &recording];
    let ran = run(&args, b"");
    assert_eq!(
        ran.shown().replace(&recording, "FILE"),
        "linkspan: the input looks like codex, but is being read as claude\n\
         linkspan: none of the 5 lines of `FILE` is claude\n\n\
         hint: without `--from` linkspan detects the format\nexit 2\n"
    );
    let args = ["convert", "--from", "codex", "--to", "text", &recording];
    assert_eq!(run(&args, b"").stderr, "");
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

#[test]
fn a_recording_goes_into_every_format_and_every_profile() {
    let recording = fixture("claude/multi_tool.partial.jsonl");
    for format in FORMATS.iter().filter(|it| it.writer.is_some()) {
        let profiles = format.profiles.iter().map(|it| vec!["--profile", it.name]);
        for profile in [vec![]].into_iter().chain(profiles) {
            let flags = [
                "convert",
                "--from",
                "claude",
                "--to",
                format.name,
                &recording,
            ];
            let args = [&flags[..], &profile].concat();
            let ran = run(&args, b"");
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
            assert!(!ran.stdout.is_empty(), "{args:?}");
        }
    }
}

#[test]
fn a_recording_of_a_failed_run_is_no_failure() {
    let recording = fixture("claude/api_error_401.jsonl");
    let args = [
        "convert", "--from", "claude", "--to", "linkspan", &recording,
    ];
    let ran = run(&args, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(r#""outcome":"failed""#), "{ran:?}");
}

#[test]
fn what_a_target_has_no_place_for_is_counted() {
    let recording = fixture("claude/multi_tool.partial.jsonl");
    let args = [
        "convert", "--from", "claude", "--to", "thread", "--report", &recording,
    ];
    let ran = run(&args, b"");
    let mut lines = ran.stderr.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("claude to thread: "), "{first}");
    assert!(
        first.ends_with(" events, no place in thread for"),
        "{first}"
    );
    let counts: Vec<(u64, &str)> = lines
        .map(|it| it.trim().split_once("  ").unwrap())
        .map(|(count, what)| (count.parse().unwrap(), what))
        .collect();
    assert!(!counts.is_empty(), "{ran:?}");

    let ran = run(&[&args[..], &["--json"]].concat(), b"");
    let report: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let losses = report["losses"].as_array().unwrap();
    let losses = losses
        .iter()
        .map(|it| (it["count"].as_u64().unwrap(), it["what"].as_str().unwrap()));
    assert_eq!(losses.collect::<Vec<_>>(), counts);
}

#[test]
fn relative_times_are_dated_by_the_file() {
    let folder = Folder::new("dated");
    let path = folder.path("run.jsonl");
    fs::copy(fixture("claude/stdin_multi_turn.duplex.jsonl"), &path).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(moment).unwrap();
    let ran = run(
        &["convert", "--from", "claude", "--to", "linkspan", &path],
        b"",
    );
    assert!(
        ran.stdout.contains(r#""at":"2001-09-09T01:46:4"#),
        "{ran:?}"
    );
}
