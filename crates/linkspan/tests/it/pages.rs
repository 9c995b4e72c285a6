//! What is printed for people and their shells.

use linkspan::registry::FORMATS;
use serde_json::{Value, json};

use crate::program::{Ran, run};

#[test]
fn no_arguments_print_short_help_to_stderr() {
    let ran = run(&[], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        ran.stderr
            .starts_with("Examples:\n  linkspan serve\n  linkspan run "),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("Usage: linkspan <COMMAND>"),
        "{}",
        ran.stderr
    );
}

#[test]
fn help_leads_with_an_example() {
    let pages: [&[&str]; 9] = [
        &[],
        &["serve"],
        &["stdio"],
        &["schema"],
        &["convert"],
        &["show"],
        &["formats"],
        &["completions"],
        &["man"],
    ];
    for page in pages {
        let Ran {
            code,
            stdout,
            stderr,
        } = run(&[page, &["--help"]].concat(), b"");
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{page:?}");
        assert!(stdout.starts_with("Example"), "{page:?}: {stdout}");
    }
}

#[test]
fn the_version_is_one_line() {
    let shown = run(&["--version"], b"").shown();
    let version = format!("linkspan {} (", env!("CARGO_PKG_VERSION"));
    let build = shown
        .strip_prefix(&version)
        .unwrap_or_else(|| panic!("{shown}"));
    let build = build.strip_suffix(")\nexit 0\n").unwrap();
    // The commit and its day, unless the sources have no history.
    let target = match build.split_once(", ") {
        Some((commit, target)) => {
            let (hash, day) = commit.split_once(' ').unwrap();
            assert!(
                hash.len() >= 7 && hash.bytes().all(|it| it.is_ascii_hexdigit()),
                "{shown}"
            );
            let is_day = day.len() == 10 && day.split('-').all(|it| it.parse::<u32>().is_ok());
            assert!(is_day, "{shown}");
            target
        }
        None => build,
    };
    let machine = [std::env::consts::ARCH, std::env::consts::OS];
    assert!(machine.iter().all(|it| target.contains(it)), "{shown}");
}

#[test]
fn formats_are_listed_with_their_profiles() {
    let ran = run(&["formats"], b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert_eq!(words[..4], ["format", "read", "write", "profile"]);
    for format in FORMATS {
        assert!(words.contains(&format.name), "{}", format.name);
        for profile in format.profiles {
            assert!(words.contains(&profile.name), "{}", profile.name);
        }
    }
}

#[test]
fn formats_as_json_are_one_object_per_line() {
    let ran = run(&["formats", "--json"], b"");
    let lines = ran
        .stdout
        .lines()
        .map(|it| serde_json::from_str(it).unwrap());
    let expected = FORMATS.iter().map(|it| {
        let profiles = it.profiles.iter();
        let profiles = profiles.map(|it| json!({"name": it.name, "summary": it.summary}));
        json!({
            "name": it.name,
            "summary": it.summary,
            "read": it.reader.is_some(),
            "write": it.writer.is_some(),
            "canonical": it.name == "linkspan",
            "profiles": profiles.collect::<Vec<_>>(),
        })
    });
    assert_eq!(lines.collect::<Vec<Value>>(), expected.collect::<Vec<_>>());
}

#[test]
fn every_shell_has_completions_that_know_the_formats() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(&["completions", shell], b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in [
            "convert",
            "serve",
            "acp",
            "token",
            "sessions",
            "prune",
            "cut-above",
        ] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    let bash = run(&["completions", "bash"], b"").stdout;
    assert!(bash.contains("linkspan"), "{bash}");
}

#[test]
fn every_command_has_a_manual_page() {
    let ran = run(&["man"], b"");
    for command in [
        "convert",
        "show",
        "run",
        "serve",
        "acp",
        "token",
        "sessions",
        "replay",
        "formats",
        "engines",
        "config",
        "doctor",
        "completions",
        "man",
    ] {
        assert!(
            ran.stdout.contains(&format!("linkspan\\-{command}(1)")),
            "{}",
            ran.stdout
        );
        let page = run(&["man", command], b"");
        assert_eq!(
            (page.code, page.stderr.as_str()),
            (Some(0), ""),
            "{command}"
        );
        assert!(
            page.stdout.contains(&format!(".TH linkspan-{command} 1")),
            "{}",
            page.stdout
        );
    }
    let convert = run(&["man", "convert"], b"").stdout;
    for part in ["EXIT STATUS", "EXAMPLES", "\\-\\-profile"] {
        assert!(convert.contains(part), "{part}");
    }
    assert_eq!(
        run(&["man", "convrt"], b"").shown(),
        "linkspan: there is no command `convrt`\n\n\
         hint: did you mean `convert`? commands: serve, run, acp, exec, claude-sdk, stdio, sessions, show, replay, convert, engines, formats, schema, token, config, doctor, completions, man\nexit 2\n"
    );
}
