//! The one table of controls: their names, what each needs, what it is answered with, and an example.
//! `docs/serve.md` shows every example.

use crate::tokens::Role;

#[derive(Debug)]
pub(super) struct Verb {
    pub(super) name: &'static str,
    pub(super) role: Role,
    /// The type of the reply, for the manual.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the manual is compared with it")
    )]
    pub(super) reply: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the manual is compared with it")
    )]
    pub(super) example: &'static str,
}

const fn verb(name: &'static str, role: Role, reply: &'static str, example: &'static str) -> Verb {
    Verb {
        name,
        role,
        reply,
        example,
    }
}

/// Every control. `SESSION` in an example stands for the id of a session, `SEQ` for a number of an event,
/// `DIR` for a directory.
pub(super) const CONTROLS: &[Verb] = &[
    verb(
        "subscribe",
        Role::Watch,
        "bridge.subscribed",
        r#"{"control":"subscribe","sessionId":"SESSION","since":7}"#,
    ),
    verb(
        "unsubscribe",
        Role::Watch,
        "bridge.unsubscribed",
        r#"{"control":"unsubscribe","sessionId":"SESSION"}"#,
    ),
    verb(
        "run.submit",
        Role::Prompt,
        "bridge.run_submit",
        r#"{"control":"run.submit","text":"Fix the failing test","provider":"claude","workingDir":"DIR"}"#,
    ),
    verb(
        "run.abort",
        Role::Prompt,
        "bridge.run_abort",
        r#"{"control":"run.abort","sessionId":"SESSION"}"#,
    ),
    verb(
        "interrupt",
        Role::Prompt,
        "bridge.run_abort",
        r#"{"control":"interrupt"}"#,
    ),
    verb(
        "queue.remove",
        Role::Prompt,
        "bridge.queue_removed",
        r#"{"control":"queue.remove","sessionId":"SESSION","number":2}"#,
    ),
    verb(
        "ask.settle",
        Role::Approve,
        "bridge.ask_settled",
        r#"{"control":"ask.settle","askId":"SESSION:SEQ","decision":"allow"}"#,
    ),
    verb(
        "provider.select",
        Role::Prompt,
        "bridge.provider",
        r#"{"control":"provider.select","provider":"claude"}"#,
    ),
    verb(
        "claude.session.resume",
        Role::Prompt,
        "bridge.session_resume",
        r#"{"control":"claude.session.resume","enabled":true,"cwd":"DIR"}"#,
    ),
    verb(
        "projects",
        Role::Watch,
        "bridge.projects",
        r#"{"control":"projects"}"#,
    ),
    verb(
        "project.save",
        Role::Prompt,
        "bridge.projects",
        r#"{"control":"project.save","project":{"id":"app","name":"App","workingDir":"DIR"}}"#,
    ),
    verb(
        "project.delete",
        Role::Prompt,
        "bridge.projects",
        r#"{"control":"project.delete","id":"app"}"#,
    ),
    verb(
        "history",
        Role::Watch,
        "bridge.history",
        r#"{"control":"history","limit":5}"#,
    ),
    verb(
        "thread",
        Role::Watch,
        "bridge.thread",
        r#"{"control":"thread","id":"SESSION"}"#,
    ),
    verb(
        "sessions",
        Role::Watch,
        "bridge.sessions",
        r#"{"control":"sessions","limit":5}"#,
    ),
    verb(
        "engines",
        Role::Watch,
        "bridge.engines",
        r#"{"control":"engines"}"#,
    ),
    verb("asks", Role::Watch, "bridge.asks", r#"{"control":"asks"}"#),
    verb(
        "bridge.status",
        Role::Watch,
        "bridge.status",
        r#"{"control":"bridge.status","requestId":1}"#,
    ),
    verb(
        "echo",
        Role::Watch,
        "bridge.echo",
        r#"{"control":"echo","tag":"a","payload":{"b":1}}"#,
    ),
    verb(
        "debug.echo",
        Role::Watch,
        "bridge.echo",
        r#"{"control":"debug.echo","payload":1}"#,
    ),
    verb(
        "debug.ping",
        Role::Watch,
        "bridge.echo",
        r#"{"control":"debug.ping"}"#,
    ),
];

pub(super) fn find(name: &str) -> Option<&'static Verb> {
    CONTROLS.iter().find(|it| it.name == name)
}

/// The names of all controls, for who got one wrong.
pub(super) fn names() -> String {
    let names: Vec<&str> = CONTROLS.iter().map(|it| it.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_the_example_of_every_control() {
        let manual = include_str!("../../../../docs/serve.md");
        for verb in CONTROLS {
            let line = format!("{} → {}", verb.example, verb.reply);
            let is_there = manual.lines().any(|it| it == line);
            assert!(is_there, "docs/serve.md lacks the line\n{line}");
        }
    }

    #[test]
    fn every_example_names_its_control_and_no_control_is_there_twice() {
        for (at, verb) in CONTROLS.iter().enumerate() {
            let example: serde_json::Value = serde_json::from_str(verb.example).unwrap();
            assert_eq!(example["control"], verb.name);
            assert!(CONTROLS[..at].iter().all(|it| it.name != verb.name));
        }
    }
}
