//! The one table of controls: their names, what each does and needs, what it is answered with, and an
//! example. The OpenAPI document lists it, and `docs/serve.md` shows every example.
//!
//! A message is looked up here before anything else is done with it, so no control is without a role.

use crate::tokens::Role;

#[derive(Debug)]
pub(crate) struct ControlInfo {
    pub(crate) name: &'static str,
    pub(super) action: Action,
    pub(crate) role: Role,
    /// The type of the reply.
    pub(crate) reply: &'static str,
    pub(crate) example: &'static str,
}

/// What a control does; some have several names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// These two change what the socket itself follows.
    Subscribe,
    Unsubscribe,
    Work(Work),
}

/// What is worked on beside the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Submit,
    Abort,
    RemoveQueued,
    Settle,
    SelectProvider,
    ResumeSession,
    Projects,
    SaveProject,
    DeleteProject,
    History,
    Thread,
    Sessions,
    Engines,
    Asks,
    Status,
    Echo,
}

const fn verb(
    name: &'static str,
    action: Action,
    role: Role,
    reply: &'static str,
    example: &'static str,
) -> ControlInfo {
    ControlInfo {
        name,
        action,
        role,
        reply,
        example,
    }
}

/// Every control. `SESSION` in an example stands for the id of a session, `SEQ` for a number of an event,
/// `DIR` for a directory.
pub(crate) const CONTROLS: &[ControlInfo] = &[
    verb(
        "subscribe",
        Action::Subscribe,
        Role::Watch,
        "bridge.subscribed",
        r#"{"control":"subscribe","sessionId":"SESSION","since":7}"#,
    ),
    verb(
        "unsubscribe",
        Action::Unsubscribe,
        Role::Watch,
        "bridge.unsubscribed",
        r#"{"control":"unsubscribe","sessionId":"SESSION"}"#,
    ),
    verb(
        "run.submit",
        Action::Work(Work::Submit),
        Role::Prompt,
        "bridge.run_submit",
        r#"{"control":"run.submit","text":"Fix the failing test","provider":"claude","workingDir":"DIR"}"#,
    ),
    verb(
        "run.abort",
        Action::Work(Work::Abort),
        Role::Prompt,
        "bridge.run_abort",
        r#"{"control":"run.abort","sessionId":"SESSION"}"#,
    ),
    verb(
        "interrupt",
        Action::Work(Work::Abort),
        Role::Prompt,
        "bridge.run_abort",
        r#"{"control":"interrupt"}"#,
    ),
    verb(
        "queue.remove",
        Action::Work(Work::RemoveQueued),
        Role::Prompt,
        "bridge.queue_removed",
        r#"{"control":"queue.remove","sessionId":"SESSION","number":2}"#,
    ),
    verb(
        "ask.settle",
        Action::Work(Work::Settle),
        Role::Approve,
        "bridge.ask_settled",
        r#"{"control":"ask.settle","askId":"SESSION:SEQ","decision":"allow"}"#,
    ),
    verb(
        "provider.select",
        Action::Work(Work::SelectProvider),
        Role::Prompt,
        "bridge.provider",
        r#"{"control":"provider.select","provider":"claude"}"#,
    ),
    verb(
        "claude.session.resume",
        Action::Work(Work::ResumeSession),
        Role::Prompt,
        "bridge.session_resume",
        r#"{"control":"claude.session.resume","enabled":true,"cwd":"DIR"}"#,
    ),
    verb(
        "projects",
        Action::Work(Work::Projects),
        Role::Watch,
        "bridge.projects",
        r#"{"control":"projects"}"#,
    ),
    verb(
        "project.save",
        Action::Work(Work::SaveProject),
        Role::Prompt,
        "bridge.projects",
        r#"{"control":"project.save","project":{"id":"app","name":"App","workingDir":"DIR"}}"#,
    ),
    verb(
        "project.delete",
        Action::Work(Work::DeleteProject),
        Role::Prompt,
        "bridge.projects",
        r#"{"control":"project.delete","id":"app"}"#,
    ),
    verb(
        "history",
        Action::Work(Work::History),
        Role::Watch,
        "bridge.history",
        r#"{"control":"history","limit":5}"#,
    ),
    verb(
        "thread",
        Action::Work(Work::Thread),
        Role::Watch,
        "bridge.thread",
        r#"{"control":"thread","id":"SESSION"}"#,
    ),
    verb(
        "sessions",
        Action::Work(Work::Sessions),
        Role::Watch,
        "bridge.sessions",
        r#"{"control":"sessions","limit":5}"#,
    ),
    verb(
        "engines",
        Action::Work(Work::Engines),
        Role::Watch,
        "bridge.engines",
        r#"{"control":"engines"}"#,
    ),
    verb(
        "asks",
        Action::Work(Work::Asks),
        Role::Watch,
        "bridge.asks",
        r#"{"control":"asks"}"#,
    ),
    verb(
        "bridge.status",
        Action::Work(Work::Status),
        Role::Watch,
        "bridge.status",
        r#"{"control":"bridge.status","requestId":1}"#,
    ),
    verb(
        "echo",
        Action::Work(Work::Echo),
        Role::Watch,
        "bridge.echo",
        r#"{"control":"echo","tag":"a","payload":{"b":1}}"#,
    ),
    verb(
        "debug.echo",
        Action::Work(Work::Echo),
        Role::Watch,
        "bridge.echo",
        r#"{"control":"debug.echo","payload":1}"#,
    ),
    verb(
        "debug.ping",
        Action::Work(Work::Echo),
        Role::Watch,
        "bridge.echo",
        r#"{"control":"debug.ping"}"#,
    ),
];

pub(super) fn find(name: &str) -> Option<&'static ControlInfo> {
    CONTROLS.iter().find(|it| it.name == name)
}

/// The names of all controls, for error messages.
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
