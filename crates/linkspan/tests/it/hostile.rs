//! Foreign text that is printed by the program itself: names, titles, bad flags. Nothing in it drives
//! the terminal, and nothing in it is hidden.

use crate::program::{Folder, run};

/// Moves the cursor, turns the text round, and hides a word in tag characters.
const EVIL: &str = "a\u{1b}[2Jb\u{202e}c\u{200f}d\u{e0072}\u{200b}e";

#[track_caller]
fn check(args: &[&str]) {
    let ran = run(args, b"");
    for shown in [&ran.stdout, &ran.stderr] {
        let safe = formats::display_safe(shown);
        assert_eq!(*shown, safe, "{args:?}");
    }
}

#[test]
fn every_command_shows_foreign_text_as_it_is() {
    let folder = Folder::new("hostile");
    let data = folder.path("data");
    let at = ["--data-dir", &data];
    let engine = ["run", "--engine", "replay:tools", "--speed", "0"];
    check(&[&engine[..], &at, &[EVIL]].concat());
    let evil = |args: &[&'static str]| [args, &[EVIL][..]].concat();
    for args in [
        evil(&["convert", "--to", "text", "--from"]),
        evil(&["convert", "--from", "claude", "--to"]),
        evil(&["convert", "--from", "claude", "--to", "takopi", "--profile"]),
        evil(&["convert", "--from", "claude", "--to", "text"]),
        evil(&["run", "--engine"]),
        evil(&["run", "--to"]),
        evil(&["acp", "--engine"]),
        evil(&["engines", "--config"]),
        evil(&["config", "--config"]),
        evil(&["completions"]),
        evil(&[]),
        evil(&["serve", "--listen"]),
    ] {
        check(&args);
    }
    for args in [
        evil(&["sessions"]),
        evil(&["sessions", "--remove"]),
        evil(&["sessions", "--state"]),
        evil(&["show"]),
        evil(&["replay"]),
        evil(&["token", "--role"]),
    ] {
        check(&[&args[..], &at].concat());
    }
    let listed = run(&[&["sessions"][..], &at].concat(), b"");
    assert!(
        listed
            .stdout
            .contains("a\u{241b}[2Jb\\u{202e}c\\u{200f}d\\u{e0072}\\u{200b}e"),
        "{}",
        listed.stdout
    );
}

#[test]
fn json_is_one_line_for_every_parser() {
    let folder = Folder::new("hostile-json");
    let data = folder.path("data");
    let title = "a\u{2028}b\u{2029}c\u{85}d";
    let run_args = [
        "run",
        "--engine",
        "replay:tools",
        "--speed",
        "0",
        "--to",
        "linkspan",
    ];
    let ran = run(
        &[&run_args[..], &["--data-dir", &data, title]].concat(),
        b"",
    );
    let listed = run(&["sessions", "--json", "--data-dir", &data], b"");
    let id = listed.stdout.split("\"id\":\"").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    let replayed = run(
        &["replay", id, "--to", "linkspan", "--data-dir", &data],
        b"",
    );
    for out in [&ran.stdout, &listed.stdout, &replayed.stdout] {
        assert_eq!(out.find(['\u{2028}', '\u{2029}', '\u{85}']), None, "{out}");
        assert!(out.contains("a\\u2028b\\u2029c\\u0085d"), "{out}");
    }
}
