//! The limits of Codex: the arguments and the messages say the same.

use std::ffi::OsStr;

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
    let mut dialogue = agent("codex", config).dialogue(request, None);
    let mut out = crate::dialogue::Outbox::default();
    dialogue.open(&mut out);
    dialogue.line(r#"{"id":1,"result":{}}"#, &mut out);
    let message: Value = serde_json::from_str(out.lines.last().unwrap()).unwrap();
    let value = |key: &str| message["params"][key].as_str().unwrap().to_owned();
    (value("sandbox"), value("approvalPolicy"))
}

/// The limits of every mode, in the order of the table.
fn row(title: &str, config: &Config, talk: Interaction) -> String {
    let mut row = format!("| {title} |");
    for mode in MODES.iter().map(|it| it.mode) {
        let request = request(mode, talk, Resume::Fresh);
        let limits = by_arguments(config, &request);
        if talk == Interaction::Dialogue {
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
        rows += &format!("{}\n", row("one prompt", &config, Interaction::OneShot));
        rows += &format!("{}\n", row("talked with", &config, Interaction::Dialogue));
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

/// How the environment and the arguments differ with a key that Codex is to use.
fn with_key(talk: Interaction, set: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
    let variable = |name: &str| {
        let found = set.iter().find(|it| it.0 == name);
        found.map(|it| it.1.into())
    };
    let machine = Machine {
        variable: &variable,
        exists: &|_| false,
        read: &|_| None,
    };
    let request = request(Mode::Ask, talk, Resume::Fresh);
    let around = LaunchContext {
        limits: config("").limits(),
        guard: crate::process::Guard::None,
        locks: None,
        holder: "test".to_owned(),
        no_wait: false,
    };
    let find = |_: &str| Ok("/bin/codex".into());
    let setup = agent("codex", &config("")).setup(&request, around, find, machine);
    let (crate::Backend::OneShot { launch, .. } | crate::Backend::Dialogue { launch, .. }) =
        setup.unwrap().backend
    else {
        panic!("Codex is a process");
    };
    let text = |it: &OsStr| it.to_str().unwrap().to_owned();
    let env = launch.env.iter().map(|it| (text(&it.0), text(&it.1)));
    let last = launch.args.iter().rev().take(2).rev();
    (env.collect(), last.map(|it| text(it)).collect())
}

#[test]
fn any_key_reaches_codex_where_it_has_no_login() {
    let pair = |name: &str| vec![(name.to_owned(), "k".to_owned())];
    for name in ["CODEX_API_KEY", "OPENAI_API_KEY"] {
        let (env, _) = with_key(Interaction::OneShot, &[(name, "k")]);
        assert_eq!(env, pair("CODEX_API_KEY"), "{name}");
        let (env, last) = with_key(Interaction::Dialogue, &[(name, "k")]);
        let setting = r#"cli_auth_credentials_store="ephemeral""#;
        assert_eq!(
            (env, last),
            (vec![], vec!["-c".to_owned(), setting.to_owned()])
        );
    }
    let (env, last) = with_key(Interaction::Dialogue, &[]);
    assert_eq!(env, vec![]);
    assert!(!last[1].contains("ephemeral"), "{last:?}");
}
