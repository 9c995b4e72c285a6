//! The limits of Codex: the manual, the arguments and the messages say the same.

use serde_json::Value;

use super::*;

const MODES_OF_THE_TABLE: [Mode; 5] = [
    Mode::Ask,
    Mode::Allow,
    Mode::Deny,
    Mode::AcceptEdits,
    Mode::Plan,
];

/// The sandbox, and when Codex asks, by the arguments.
fn by_arguments(config: &Config, request: &Request) -> (String, String) {
    let args = launch("codex", config, request).unwrap().args;
    let value = |key: &str| {
        let args = args.iter().map(|it| it.to_str().unwrap());
        let mut values = args.filter_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        values.next().unwrap().trim_matches('"').to_owned()
    };
    (value("sandbox_mode"), value("approval_policy"))
}

/// The same by the message that opens the thread.
fn by_message(config: &Config, request: &Request) -> (String, String) {
    let mut dialogue = agent("codex", config).dialogue(request);
    let mut out = crate::dialogue::Outbox::default();
    dialogue.open(&mut out);
    dialogue.line(r#"{"id":1,"result":{}}"#, &mut out);
    let message: Value = serde_json::from_str(out.lines.last().unwrap()).unwrap();
    let value = |key: &str| message["params"][key].as_str().unwrap().to_owned();
    (value("sandbox"), value("approvalPolicy"))
}

/// A row as the manual has it.
fn row(title: &str, config: &Config, talk: Talk) -> String {
    let mut row = format!("| {title} |");
    for mode in MODES_OF_THE_TABLE {
        let request = request(mode, talk, Resume::Fresh);
        let limits = by_arguments(config, &request);
        if talk == Talk::Dialogue {
            assert_eq!(by_message(config, &request), limits, "{mode:?}");
        }
        let asks = match &*limits.1 {
            "on-request" => ", asks",
            "never" => "",
            other => panic!("{other}"),
        };
        row += &format!(" `{}`{asks} |", limits.0);
    }
    row
}

#[test]
fn the_manual_has_what_every_mode_becomes() {
    let manual = include_str!("../../../../../docs/engines.md");
    for (title, talk) in [
        ("`codex`, one prompt", Talk::OneShot),
        ("`codex`, talked with", Talk::Dialogue),
    ] {
        let row = row(title, &config(""), talk);
        assert!(
            manual.lines().any(|it| it == row),
            "the manual lacks:\n{row}"
        );
    }
}

#[test]
fn the_sandbox_of_the_config_holds_except_in_allow_and_plan() {
    let config = config("[engines.codex]\nsandbox = 'workspace-write'");
    let rows = row("one prompt", &config, Talk::OneShot)
        + "\n"
        + &row("talked with", &config, Talk::Dialogue);
    expect![[r#"
        | one prompt | `read-only` | `danger-full-access` | `read-only` | `workspace-write` | `read-only` |
        | talked with | `read-only`, asks | `danger-full-access` | `read-only` | `workspace-write`, asks | `read-only`, asks |"#]]
    .assert_eq(&rows);
}
