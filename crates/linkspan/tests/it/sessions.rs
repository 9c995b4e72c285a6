//! `linkspan sessions`: what is listed, and what is removed.

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::program::{Folder, run};

/// A data directory with sessions of these titles, the oldest first.
fn filled(name: &str, titles: &[&str]) -> (Folder, String) {
    let folder = Folder::new(name);
    let data = folder.path("data");
    for title in titles {
        let args = ["run", "--engine", "replay:tools", "--speed", "0"];
        let ran = run(&[&args[..], &["--data-dir", &data, title]].concat(), b"");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    (folder, data)
}

fn titles(data: &str, args: &[&str]) -> Vec<String> {
    let args = [&["sessions", "--json", "--data-dir", data], args].concat();
    let lines = run(&args, b"").stdout;
    let sessions = lines.lines().map(serde_json::from_str::<Value>);
    sessions
        .map(|it| it.unwrap()["title"].as_str().unwrap().to_owned())
        .collect()
}

/// What a command on this data directory says. How long sessions are does not matter.
fn check(data: &str, args: &[&str], expect: Expect) {
    let ran = run(&[args, &["--data-dir", data]].concat(), b"");
    let shown = ran.shown();
    let shown = match shown.split_once(" bytes\n") {
        Some((before, after)) => {
            let (words, _) = before.rsplit_once(' ').unwrap();
            format!("{words} N bytes\n{after}")
        }
        None => shown,
    };
    // Where the config is depends on the machine.
    let shown = match shown.split_once("the config, `") {
        Some((before, after)) => {
            let (_, after) = after.split_once('`').unwrap();
            format!("{before}the config, `FILE`{after}")
        }
        None => shown,
    };
    expect.assert_eq(&shown);
}

#[test]
fn sessions_over_the_limits_are_removed_and_counted() {
    let (folder, data) = filled("prune", &["one", "two", "three"]);
    check(
        &data,
        &["sessions", "--prune"],
        expect![[r#"
        linkspan: no limits are configured

        hint: give `--keep-days`, `--keep-sessions` or `--keep-bytes`, or set them in `[journal]` of the config, `FILE`
        exit 2
    "#]],
    );
    check(
        &data,
        &["sessions", "--keep-days", "3"],
        expect![[r#"
        linkspan: `--keep-days` is for removing sessions

        hint: add `--prune`
        exit 2
    "#]],
    );
    check(
        &data,
        &["sessions", "--prune", "--keep-days", "x"],
        expect![[r#"
            linkspan: `--keep-days` is `x`, expected a whole number
            exit 2
        "#]],
    );
    check(
        &data,
        &["sessions", "--prune", "--keep-days", "1"],
        expect![[r#"
            linkspan: nothing is over the limits, nothing was removed
            exit 0
        "#]],
    );
    check(
        &data,
        &["sessions", "--prune", "--keep-sessions", "0"],
        expect![[r#"
            linkspan: no limits are configured

            hint: give `--keep-days`, `--keep-sessions` or `--keep-bytes`, or set them in `[journal]` of the config, `FILE`
            exit 2
        "#]],
    );
    assert_eq!(titles(&data, &[]), ["three", "two", "one"]);
    let config = folder.file("c.toml", "[journal]\nkeep_sessions = 1\n");
    check(
        &data,
        &[
            "sessions",
            "--prune",
            "--config",
            &config,
            "--keep-sessions",
            "2",
        ],
        expect![[r#"
            linkspan: removed 1 session of N bytes
            exit 0
        "#]],
    );
    assert_eq!(titles(&data, &[]), ["three", "two"]);
    check(
        &data,
        &["sessions", "--prune", "--config", &config],
        expect![[r#"
            linkspan: removed 1 session of N bytes
            exit 0
        "#]],
    );
    assert_eq!(titles(&data, &[]), ["three"]);
}

#[test]
fn long_texts_are_kept_short_if_the_user_wants_it() {
    let folder = Folder::new("cut");
    let data = folder.path("data");
    let config = folder.file("c.toml", "[journal]\ncut_above = '2 KiB'\n");
    let prompt = "word ".repeat(2000);
    let ran = run(
        &[
            "run",
            "--engine",
            "replay:tools",
            "--speed",
            "0",
            "--config",
            &config,
            "--to",
            "linkspan",
            "--data-dir",
            &data,
            &prompt,
        ],
        b"",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&prompt));
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"").stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed["id"].as_str().unwrap();
    let kept = run(
        &["replay", id, "--to", "linkspan", "--data-dir", &data],
        b"",
    )
    .stdout;
    assert_eq!(kept.lines().count(), ran.stdout.lines().count());
    assert!(kept.contains("… [7952 bytes cut]"), "{kept}");
    assert!(!kept.contains(&prompt));
}

#[test]
fn times_are_relative_for_people_and_absolute_in_json() {
    let (_folder, data) = filled("times", &["one"]);
    let page = run(&["sessions", "--data-dir", &data], b"").stdout;
    let row = page.lines().nth(1).unwrap();
    assert!(
        row.contains(" just now ") || row.contains(" min ago "),
        "{row}"
    );
    let lines = run(&["sessions", "--json", "--data-dir", &data], b"").stdout;
    let session: Value = serde_json::from_str(&lines).unwrap();
    let active = session["active_at"].as_str().unwrap();
    assert!(active.ends_with('Z') && active.contains('T'), "{active}");
}
