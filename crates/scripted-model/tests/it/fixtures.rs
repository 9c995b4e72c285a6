//! The scripts that the recordings were made with, and what is wrong with wrong ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use scripted_model::{Lanes, Scenario};
use serde::Deserialize;

#[derive(Deserialize)]
struct Entry {
    model_turns: Option<Lanes>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

#[test]
fn every_recorded_script_is_understood() {
    let n_scripts = |engine: &str| {
        let index = fs::read_to_string(fixture(engine).join("index.json")).unwrap();
        let index: Vec<Entry> = serde_json::from_str(&index).unwrap();
        index.iter().filter(|it| it.model_turns.is_some()).count()
    };
    let claude = fs::read_to_string(fixture("claude/scripts.json")).unwrap();
    let claude: BTreeMap<String, Lanes> = serde_json::from_str(&claude).unwrap();
    assert_eq!(
        [
            n_scripts("codex"),
            n_scripts("opencode"),
            n_scripts("gemini"),
            claude.len()
        ],
        [33, 11, 8, 88]
    );
}

#[test]
fn an_invalid_script_is_reported_with_its_error() {
    let turns = [
        r#"{"blcks": []}"#,
        r#"{}"#,
        r#"{"blocks": [], "status": 500}"#,
        r#"{"status": 200}"#,
        r#"{"status": 500, "chunk": 3}"#,
        r#"{"blocks": [{"text": "a", "tool": "b"}]}"#,
        r#"{"blocks": [{"text": "a"}], "cut_after": 1}"#,
        r#"{"blocks": [{"text": "a"}], "cut_after": 0, "error_after": 0}"#,
        r#"{"blocks": [], "cut": "drop"}"#,
        r#"{"blocks": [], "failed": {"message": "boom"}}"#,
        r#"{"blocks": [], "chunk": 0}"#,
        r#"{"blocks": [], "delay_ms": -1}"#,
        r#"{"blocks": [], "headers": {"a b": "c"}}"#,
        r#"{"blocks": [{"custom": "patch", "input": {}}]}"#,
        r#"{"blocks": [{"text": "abcd", "times": 100000000}]}"#,
    ];
    let errors = turns.map(|turn| {
        let script = format!(r#"{{"lanes": {{"main": [{turn}]}}}}"#);
        format!(
            "{turn}\n    {}\n",
            Scenario::from_json(&script).unwrap_err()
        )
    });
    expect![[r#"
        {"blcks": []}
            unknown field `blcks`, expected one of `blocks`, `stop`, `usage`, `usage_in`, `chunk`, `chunk_delay_ms`, `cut`, `cut_after`, `cut_after_chunks`, `error_after`, `failed`, `status`, `error_type`, `etype`, `message`, `body`, `headers`, `delay_ms` at line 1 column 28
        {}
            a turn has either `blocks` or an error `status` at line 1 column 23
        {"blocks": [], "status": 500}
            a turn has either `blocks` or an error `status` at line 1 column 50
        {"status": 200}
            `status` is 200; an error status is 400 to 599 at line 1 column 36
        {"status": 500, "chunk": 3}
            a turn with an error `status` has only `error_type`, `message`, `body`, `headers` and `delay_ms` at line 1 column 48
        {"blocks": [{"text": "a", "tool": "b"}]}
            a block has one of `text`, `thinking`, `redacted`, `refusal`, `tool`, `custom`, `raw` at line 1 column 59
        {"blocks": [{"text": "a"}], "cut_after": 1}
            `cut_after` is 1, and the turn has 1 blocks (counted from 0) at line 1 column 64
        {"blocks": [{"text": "a"}], "cut_after": 0, "error_after": 0}
            a turn ends by one of `cut_after`, `cut_after_chunks`, `error_after`, `failed` at line 1 column 82
        {"blocks": [], "cut": "drop"}
            `cut` needs `cut_after` or `cut_after_chunks` at line 1 column 50
        {"blocks": [], "failed": {"message": "boom"}}
            `failed` comes after a block, and the turn has none at line 1 column 66
        {"blocks": [], "chunk": 0}
            invalid value: integer `0`, expected a nonzero usize at line 1 column 45
        {"blocks": [], "delay_ms": -1}
            `delay_ms` is a number of milliseconds, zero or more at line 1 column 51
        {"blocks": [], "headers": {"a b": "c"}}
            `a b: c` is no HTTP header at line 1 column 60
        {"blocks": [{"custom": "patch", "input": {}}]}
            the `input` of a `custom` tool is a string at line 1 column 65
        {"blocks": [{"text": "abcd", "times": 100000000}]}
            `times` makes the text longer than 268435456 bytes at line 1 column 69
    "#]].assert_eq(&errors.concat());
}
