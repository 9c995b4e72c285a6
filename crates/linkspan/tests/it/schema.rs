//! `linkspan schema`: what it prints is a schema, and what the program writes fits it.

use std::fs;

use expect_test::expect;
use jsonschema::Validator;
use serde_json::Value;

use crate::program::{fixture, run};

fn validator(args: &[&str]) -> Validator {
    let printed = run(&[&["schema"], args].concat(), b"");
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    jsonschema::validator_for(&schema).unwrap()
}

fn check(validator: &Validator, lines: &str, from: &str) -> usize {
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if let Err(err) = validator.validate(&event) {
            panic!("{from}: {err}\n{line}");
        }
    }
    lines.lines().count()
}

/// The golden files of a format below `fixtures`.
fn goldens(end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![fixture("").into()];
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.to_str().unwrap().to_owned()),
            }
        }
    }
    found.retain(|it| it.ends_with(end));
    found
}

#[test]
fn the_canonical_goldens_fit_the_schema() {
    let by_default = run(&["schema"], b"").stdout;
    assert_eq!(
        run(&["schema", "--format", "linkspan"], b"").stdout,
        by_default
    );
    let validator = validator(&[]);
    let goldens = goldens(".events.jsonl");
    let n_events = goldens
        .iter()
        .map(|it| check(&validator, &fs::read_to_string(it).unwrap(), it));
    let n_events: usize = n_events.sum();
    assert!(
        goldens.len() > 10 && n_events > 100,
        "{n_events} in {goldens:?}"
    );
    assert!(!validator.is_valid(&serde_json::json!({ "v": 1, "seq": "1" })));
}

#[test]
fn the_thread_goldens_fit_their_schema() {
    let validator = validator(&["--format", "thread"]);
    // `seed` leaves out what Codex always writes.
    let goldens = goldens(".thread.jsonl").into_iter();
    let goldens = goldens.filter(|it| !it.contains(".seed."));
    let n_events = goldens.map(|it| check(&validator, &fs::read_to_string(&it).unwrap(), &it));
    let n_events: usize = n_events.sum();
    assert!(n_events > 100, "{n_events}");
    assert!(!validator.is_valid(&serde_json::json!({ "type": "turn.ended" })));
}

#[test]
fn an_unknown_schema_is_answered_with_those_there_are() {
    let shown = ["openhands", "thred"].map(|it| run(&["schema", "--format", it], b"").shown());
    expect![[r#"
        linkspan: there is no schema of `openhands`

        hint: schemas: linkspan, thread
        exit 2
        linkspan: there is no schema of `thred`

        hint: did you mean `thread`? schemas: linkspan, thread
        exit 2
    "#]]
    .assert_eq(&shown.concat());
}
