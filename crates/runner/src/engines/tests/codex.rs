//! The limits of Codex: the arguments and the messages say the same.

use serde_json::Value;

use super::*;

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

/// The limits of every mode, in the order of the table.
fn row(title: &str, config: &Config, talk: Talk) -> String {
    let mut row = format!("| {title} |");
    for mode in MODES.iter().map(|it| it.mode) {
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
fn the_sandbox_of_the_config_narrows_and_is_the_list_of_listed() {
    let mut rows = String::new();
    for sandbox in ["read-only", "workspace-write", "danger-full-access"] {
        let config = config(&format!("[engines.codex]\nsandbox = '{sandbox}'"));
        rows += &format!("{sandbox}\n");
        rows += &format!("{}\n", row("one prompt", &config, Talk::OneShot));
        rows += &format!("{}\n", row("talked with", &config, Talk::Dialogue));
    }
    expect![[r#"
        read-only
        | one prompt | `read-only` | `read-only` | `read-only` | `read-only` | `read-only` | `danger-full-access` |
        | talked with | `read-only`, asks | `read-only` | `read-only`, asks | `read-only`, asks | `read-only` | `danger-full-access` |
        workspace-write
        | one prompt | `read-only` | `read-only` | `read-only` | `workspace-write` | `workspace-write` | `danger-full-access` |
        | talked with | `read-only`, asks | `read-only` | `read-only`, asks | `workspace-write`, asks | `workspace-write` | `danger-full-access` |
        danger-full-access
        | one prompt | `read-only` | `read-only` | `read-only` | `workspace-write` | `danger-full-access` | `danger-full-access` |
        | talked with | `read-only`, asks | `read-only` | `read-only`, asks | `workspace-write`, asks | `danger-full-access` | `danger-full-access` |
    "#]]
    .assert_eq(&rows);
}
